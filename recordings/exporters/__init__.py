"""Writes what vrik has: tracker poses and solved bodies, in formats other programs read."""

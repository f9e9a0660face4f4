"""Compiled inner loops of the core: vectors, quaternions, forward kinematics."""

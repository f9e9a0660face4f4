"""Compiled inner loops of the solvers: float64 arrays and numbers in, the same arrays changed in place."""

"""Eigenvalues and eigenvectors of the small symmetric matrices that solvers meet (J J^T: 3x3 or 6x6).

Cyclic Jacobi: turn one off-diagonal number after the other to zero until none is left. Exact to the last
digits also for the smallest eigenvalues, and it needs no special cases.

Source: Golub & Van Loan, "Matrix Computations", 4th ed., algorithms 8.5.1 and 8.5.3.
"""

import math

from vrik.arrays import Floats
from vrik.jit import kernel

SIZE = 6
"""Largest matrix."""

VECTORS, VALUES = SIZE, 2 * SIZE
"""Rows of a table (at least 13, 6): the matrix, then its eigenvectors, one a row, then its eigenvalues."""

SWEEPS = 12
"""A 6x6 matrix takes four to six."""

SMALL = 1e-15
"""Off-diagonal numbers below this share of the trace count as zero."""


@kernel
def eigen(table: Floats, n: int) -> None:
    """Fill rows ``VECTORS`` and ``VALUES`` of ``table`` for the symmetric n x n matrix at its top.

    Row ``VECTORS + k`` is the unit eigenvector of ``table[VALUES, k]``; they are in no order. Of the matrix
    only the diagonal and what is above it are read, and both are used up.
    """
    trace = 0.0
    for i in range(n):
        trace += abs(table[i, i])
        for j in range(n):
            table[VECTORS + i, j] = 1.0 if i == j else 0.0
    for _ in range(SWEEPS):
        turned = False
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(table[p, q]) > SMALL * trace:
                    turned = True
                    rotate(table, n, p, q)
        if not turned:
            break
    for i in range(n):
        table[VALUES, i] = table[i, i]


@kernel
def rotate(table: Floats, n: int, p: int, q: int) -> None:
    """Turn axes p and q so that number (p, q), which is not zero, becomes zero (p < q)."""
    apq = table[p, q]
    tau = (table[q, q] - table[p, p]) / (2.0 * apq)
    t = 1.0 / (abs(tau) + math.sqrt(1.0 + tau * tau))
    if tau < 0.0:
        t = -t
    c = 1.0 / math.sqrt(1.0 + t * t)
    s = t * c
    table[p, p] -= t * apq
    table[q, q] += t * apq
    table[p, q] = 0.0
    for k in range(n):
        if k != p and k != q:  # (i, j) stands for (j, i): the one above the diagonal is kept
            i, j = min(k, p), max(k, p)
            f, g = min(k, q), max(k, q)
            a = table[i, j]
            b = table[f, g]
            table[i, j] = c * a - s * b
            table[f, g] = s * a + c * b
        u = table[VECTORS + p, k]
        v = table[VECTORS + q, k]
        table[VECTORS + p, k] = c * u - s * v
        table[VECTORS + q, k] = s * u + c * v

"""The same inverse kinematics for vrik and for other libraries: the parts of ``tools/bench_peers.py``.

``problems`` makes chains and targets, ``measure`` reads and times them, and each ``run_*`` is a program that
solves them with one library, in that library's own environment.
"""

"""The ``vrik`` command. ``commands.py`` lists what it can do; each command is one module of this folder.

Nothing here may import numpy, numba, scipy or mcap before a command really runs: ``vrik --help`` and
every ``vrik COMMAND --help`` answer at once.
"""

from vrik.cli.app import main

__all__ = ["main"]

"""``python -m vrik`` is the ``vrik`` command."""

import sys

from vrik.cli import main

if __name__ == "__main__":
    sys.exit(main())

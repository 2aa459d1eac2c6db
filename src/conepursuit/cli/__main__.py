"""``python -m conepursuit.cli``."""

import sys

from conepursuit.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -m sweet`: the command line."""

import sys

from sweet.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""The program `kymo`: `python -m kymo print trace/`."""

from __future__ import annotations

import os
import sys

from . import _kymo


def main() -> None:
    """Runs the command line, and ends the process."""
    words = ["kymo", *sys.argv[1:]]
    code = _kymo.main([os.fsencode(word).decode(errors="surrogateescape") for word in words])
    # What the program has written is written: nothing of Python waits.
    os._exit(code)


if __name__ == "__main__":
    main()

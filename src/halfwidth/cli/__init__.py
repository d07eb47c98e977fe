"""The command line: parse, call one function, print."""

from __future__ import annotations

import sys


def main() -> None:
    """The `halfwidth` command; what is wrong with the input is said in one line, with exit code 2."""
    from halfwidth.cli.app import app
    from halfwidth.errors import HalfwidthError

    try:
        app()
    except HalfwidthError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)

"""The command line: parse, call one function, print."""

from __future__ import annotations

import os
import sys

_BAD_INPUT = 2
_CLOSED = "error: standard output was closed before everything was written"


def main() -> None:
    """The `halfwidth` command; what is wrong with the input is said in one line, with exit code 2."""
    from halfwidth.cli.app import app
    from halfwidth.errors import HalfwidthError

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal has no letters for is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    code: object = 0
    try:
        app()
    except HalfwidthError as error:
        code = _say(f"error: {error}")
    except SystemExit as ended:
        code = _say(_CLOSED) if _pipe_was_closed() else ended.code
    except OSError as error:
        if error.filename is not None:
            raise
        code = _say(f"error: the output could not be written: {error}")
    sys.exit(_flushed(code))  # type: ignore[arg-type]  # click's exit codes are what sys.exit takes


def _pipe_was_closed() -> bool:
    """Whether click met a closed pipe: it leaves quietly, and wraps the output so that nothing is flushed again."""
    return type(sys.stdout).__name__ == "PacifyFlushWrapper"


def _say(text: str) -> int:
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"{text}\n")
        except OSError:
            return _BAD_INPUT
    return _BAD_INPUT


def _flushed(code: object) -> object:
    """The exit code, once everything was really written."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read has gone, as `head` does
        code = _say(_CLOSED)
    except OSError as error:
        code = _say(f"error: standard output could not be written: {error}; a checkpoint or --json FILE keeps results")
    else:
        return code
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that nothing is flushed again on the way out
    return code

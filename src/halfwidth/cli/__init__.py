"""The command line: parse, call one function, print."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halfwidth.state.ending import Ending

__all__ = ["main"]

_BAD_INPUT = 2
_TYPERS_INTERRUPT = 130
_CLOSED_PIPE = 141  # 128 + SIGPIPE, which is what ends other programs in front of `head`


def main() -> None:
    """Run the `halfwidth` command; what is wrong with the input is said in one line, with exit code 2.

    A signal raises `Interrupted` from here on. Until the command runs this may happen inside an import, which turns it
    into errors of its own: whatever comes out then is the interruption.
    """
    from halfwidth.state.ending import Ending

    sys.unraisablehook = _not_raised
    with Ending(at_once=True, then_default=True) as ending:
        try:
            code = _called(ending)
        except BaseException:
            if ending.received is None:
                raise
            _say("interrupted")
            code = 128 + ending.received
        code = _flushed(code)
    sys.exit(code)  # type: ignore[arg-type]  # click's exit codes are what sys.exit takes


def _called(ending: Ending) -> object:
    """Run the command, and return its exit code."""
    from halfwidth.cli.app import app
    from halfwidth.cli.interrupts import Ended
    from halfwidth.errors import HalfwidthError

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal has no letters for is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except HalfwidthError as error:
        return _say(f"error: {error}")
    except Ended as ended:
        _say(str(ended))
        return ended.code
    except SystemExit as ended:
        if ending.received is not None and ended.code == _TYPERS_INTERRUPT:  # before the command itself began
            raise
        return _CLOSED_PIPE if _pipe_was_closed() else ended.code
    except BrokenPipeError:
        return _CLOSED_PIPE
    except OSError as error:
        if error.filename is not None:
            raise
        return _say(f"error: the output could not be written: {error}")
    return 0


def _not_raised(error: sys.UnraisableHookArgs) -> None:
    """Say that a signal was lost inside the interpreter, which drops errors of its own callbacks; show other errors."""
    if issubclass(error.exc_type, KeyboardInterrupt):
        _say("a signal came when it could not be answered; send it again")
    else:
        sys.__unraisablehook__(error)


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
        if sys.stdout is not None and code != _CLOSED_PIPE:
            sys.stdout.flush()
    except BrokenPipeError:
        code = _CLOSED_PIPE
    except OSError as error:
        code = _say(f"error: standard output could not be written: {error}; a checkpoint or --json FILE keeps results")
    else:
        if code != _CLOSED_PIPE:
            return code
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that nothing is flushed again on the way out
    return code

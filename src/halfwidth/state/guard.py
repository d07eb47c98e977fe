"""One call at a time, taken whole or not at all.

A call that changes an object goes through its guard. Two threads in one object raise: neither would know what the other
did. A call that ends in anything but a refusal of its input (`InputError`, raised before anything changes or after it
was put back, which is not so where somebody's function raised it: `spoil`), or in iterates that diverged (`Diverged`,
which every later call raises too), leaves the object half changed; it is then marked as broken, and refuses to go on
and to be read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar

from halfwidth.errors import Busy, Diverged, HalfInterrupted, InputError

Returned = TypeVar("Returned")

_pid = [os.getpid()]
"""This process; asking the system at every call would cost as much as a row."""


def _after_fork() -> None:
    _pid[0] = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Guard:
    """Holds an object while a call changes it; a context manager."""

    _lock: threading.Lock
    _owner: tuple[int, int] | None
    _broken: str | None

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._lock, self._owner, self._broken = threading.Lock(), None, None

    def check(self) -> None:
        """Raise if the object is broken, or if another thread is changing it."""
        owner = self._owner
        if owner is not None and owner[0] != _pid[0]:
            self._broken = "the process was forked while a call was changing it"
        if self._broken is not None:
            raise HalfInterrupted(
                f"this object is half changed: {self._broken}. Go on from its last saved state, or start again"
            )
        if owner is not None and owner != (_pid[0], threading.get_ident()):
            raise Busy("another thread is changing this object; give each thread an object of its own, and pool them")

    def spoil(self, error: Exception) -> None:
        """A call was left half done by this error, whatever its type."""
        self._broken = f"a call that changed it ended in {type(error).__name__}"

    def renew(self) -> None:
        """Forget that the object was broken, when it starts anew; raise if another thread is changing it."""
        self._broken = None
        if self._owner is not None and self._owner[0] != _pid[0]:
            self._reset()
        self.check()

    def __enter__(self) -> Guard:
        self.check()
        if not self._lock.acquire(blocking=False):
            self.check()
            raise Busy("a call is already changing this object; calls cannot be nested")
        self._owner = (_pid[0], threading.get_ident())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, (InputError, Diverged)):
            self._broken = f"a call that changed it ended in {type(error).__name__}"
        self._owner = None
        self._lock.release()

    def __getstate__(self) -> dict[str, Any]:
        self.check()
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._reset()  # a copy in another process has a lock of its own


def guard_of(thing: Any) -> Guard:
    """The guard of an object, made when it is first asked for."""
    guard: Guard | None = vars(thing).get("_guard")
    if guard is None:
        made: Guard = vars(thing).setdefault("_guard", Guard())
        return made
    return guard


def whole_only(method: Callable[..., Returned]) -> Callable[..., Returned]:
    """The same method, which raises on an object that is broken or being changed."""

    @wraps(method)
    def checked(self: Any, *arguments: Any, **options: Any) -> Returned:
        guard_of(self).check()
        return method(self, *arguments, **options)

    return checked

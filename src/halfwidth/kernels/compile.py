"""Plain functions in, cached machine code out; Numba is imported only when something runs.

- `@kernel` compiles a function at its first call and keeps the machine code on disk for the next process.
- `@jitable` marks a small function (a sampler, a gradient) that kernels may call.
- `specialise(factory, *functions)` builds a kernel around such functions. Marked ones are inlined and cached on
  disk; a user's own `numba.njit` functions are inlined and compiled once a process; plain Python functions run
  as plain Python, through the very same code.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from halfwidth.kernels.products import link

Function = Callable[..., Any]

_ANNOUNCE_AFTER_SECONDS = 1.0
# Sums may be reassociated (so that dot products vectorise); nan and inf keep their meaning, and 1/0 is inf: a division
# that may raise costs three times a sigmoid, for the references it must give back.
_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}, "nogil": True, "error_model": "numpy"}
# Left to itself the compiler calls a sampler with thirty arguments on the stack, and takes half as long again.
_MARKED_OPTIONS: dict[str, Any] = {**_OPTIONS, "forceinline": True}
_marked: list[Function] = []
_registered: list[str] = []  # the source of each marked function that Numba knows


def jitable(function: Function) -> Function:
    """Mark a function of this package as one that kernels may call."""
    _marked.append(function)
    return function


@contextmanager
def _announced(what: str) -> Iterator[None]:
    """Tell the user, on stderr, when a first call keeps them waiting."""
    message = f"halfwidth: compiling {what}; this takes a few seconds\n"
    timer = threading.Timer(_ANNOUNCE_AFTER_SECONDS, lambda: sys.stderr.write(message))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Kernel:
    """A function that becomes machine code at its first call."""

    def __init__(self, function: Function, *, cache: bool = True) -> None:
        self.python = function
        self._cache = cache
        self._compiled: Function | None = None

    def __call__(self, *args: Any) -> Any:
        if self._compiled is None:
            with _announced(self.python.__name__):
                from numba import njit

                link()
                self._compiled = njit(cache=self._cache, **_OPTIONS)(self.python)
                return self._compiled(*args)
        return self._compiled(*args)


def kernel(function: Function) -> Kernel:
    """Decorate a module-level function to compile it at its first call, with the result cached on disk."""
    return Kernel(function)


def _register_marked() -> str:
    """Make the marked functions known to Numba; returns a fingerprint of their source and of the options.

    Numba's disk cache watches the file of the kernel only. The fingerprint is part of the kernel's closure,
    hence of its cache key, so an edited sampler never runs as stale machine code.
    """
    from numba.extending import register_jitable

    for function in _marked[len(_registered) :]:  # a room imported later marks its functions later
        register_jitable(**_MARKED_OPTIONS)(function)
        _registered.append(inspect.getsource(function))
    options = str([sorted(value) if isinstance(value, set) else value for value in _MARKED_OPTIONS.values()])
    return hashlib.sha256("".join([options, *_registered]).encode()).hexdigest()


def _is_compiled(function: Function) -> bool:
    return hasattr(function, "py_func")


@lru_cache(maxsize=256)
def specialise(factory: Callable[..., Function], *functions: Function) -> Function:
    """The kernel `factory(*functions, fingerprint)`, as fast as its functions allow."""
    if all(function in _marked for function in functions):
        return Kernel(factory(*functions, _register_marked()))
    if all(function in _marked or _is_compiled(function) for function in functions):
        return Kernel(factory(*functions, _register_marked()), cache=False)
    return factory(*functions, "")

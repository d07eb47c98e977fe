"""Plain functions in, cached machine code out; Numba is imported only when something runs.

- `@kernel` compiles a function at its first call and keeps the machine code on disk for the next process.
- `@jitable` marks a small function (a sampler, a gradient) that kernels may call; it is inlined.
- `specialise(factory, *functions)` builds a kernel around such functions. Marked ones are inlined and cached on
  disk; a user's own `numba.njit` functions are inlined and compiled once per process; plain Python functions run
  as plain Python, through the very same code.

State, data and configuration enter a kernel as NamedTuples, and a kernel has at most eight parameters.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from halfwidth.kernels.arrays import Function
from halfwidth.kernels.cache_key import Closure, digest_of
from halfwidth.kernels.deferred_signals import DeferredSignals
from halfwidth.kernels.products import OVERLOADS, link

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Function)

_ANNOUNCE_AFTER_SECONDS = 1.0
# Sums may be reassociated (so that dot products vectorise); nan and inf keep their meaning, and 1/0 is inf: a division
# that may raise costs three times a sigmoid, for the references it must give back.
_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}, "nogil": True, "error_model": "numpy"}
# Left to itself the compiler calls a sampler with thirty arguments on the stack, and takes half as long again.
_MARKED_OPTIONS: dict[str, Any] = {**_OPTIONS, "forceinline": True}
_marked: set[Function] = set()
_registered: set[Function] = set()  # the marked functions that Numba knows


def jitable(function: F) -> F:
    """Mark a function of this package as one that kernels may call."""
    _marked.add(function)
    return function


@contextmanager
def _announced(what: str) -> Iterator[None]:
    """Tell the user, on stderr, when a first call takes long."""
    message = f"halfwidth: compiling {what}; this takes a few seconds\n"
    timer = threading.Timer(_ANNOUNCE_AFTER_SECONDS, lambda: sys.stderr.write(message))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Kernel(Generic[P, R]):
    """A function that becomes machine code at its first call.

    Parameters
    ----------
    function : callable
        The body, which Numba must be able to compile; it stays available as `python`.
    cache : bool, default True
        Whether the machine code is kept on disk, under `key`.
    made_from : tuple, optional
        The factory of the body and its functions: what a pickle holds, for the body itself has no name.
    """

    def __init__(
        self, function: Callable[P, R], *, cache: bool = True, made_from: tuple[Function, ...] | None = None
    ) -> None:
        self.python = function
        self._cache, self._made_from = cache, made_from
        self._compiled: Any = None  # Numba's dispatcher, once there is one

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the machine code, which is compiled or loaded at the first call."""
        result: R
        if self._compiled is None:
            with DeferredSignals(), _announced(self.python.__name__):
                compiled = self._dispatcher()
                result = compiled(*args, **kwargs)
                self._compiled = compiled
        elif np.random.Generator in map(type, args):
            with DeferredSignals():
                result = self._compiled(*args, **kwargs)
        else:
            result = self._compiled(*args, **kwargs)
        return result

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self._made_from is None:
            return super().__reduce__()
        return specialise, self._made_from

    @cached_property
    def _closure(self) -> Closure:
        link()
        return Closure(self.python, OVERLOADS)

    @cached_property
    def key(self) -> str:
        """The key of the machine code on disk: a digest of all that the kernel calls and of the compiler's options."""
        return digest_of((self._closure.digest, _described(_OPTIONS), _described(_MARKED_OPTIONS)))

    def _dispatcher(self) -> Any:
        from numba import njit

        for function in self._closure.functions:
            _register(function)
        dispatcher: Any = njit(**_OPTIONS)(self.python)
        if self._cache:
            from halfwidth.kernels.disk_cache import KeyedCache

            dispatcher._cache = KeyedCache(self.python, self.key)
        return dispatcher


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Decorate a module-level function to compile it at its first call, with the result cached on disk."""
    return Kernel(function)


def _described(options: dict[str, Any]) -> str:
    return str([(name, sorted(value) if isinstance(value, set) else value) for name, value in options.items()])


def _register(function: Function) -> None:
    """Make a marked function known to Numba, once."""
    if function in _marked and function not in _registered:
        from numba.extending import register_jitable

        register_jitable(**_MARKED_OPTIONS)(function)
        _registered.add(function)


def _is_compiled(function: Function) -> bool:
    return hasattr(function, "py_func")


@lru_cache(maxsize=256)
def specialise(factory: Callable[..., Callable[P, R]], *functions: Function) -> Callable[P, R]:
    """The kernel `factory(*functions)`, as fast as its functions allow."""
    body = factory(*functions)
    if all(function in _marked for function in functions):
        return Kernel(body, made_from=(factory, *functions))
    if all(function in _marked or _is_compiled(function) for function in functions):
        return Kernel(body, cache=False, made_from=(factory, *functions))
    return body

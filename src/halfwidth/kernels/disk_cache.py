"""Numba's disk cache under a key of our own.

Numba finds machine code by a stamp of the file that holds the kernel. That misses edits of functions in other files,
and discards machine code when anything else in the file changes. `KeyedCache` finds it by `Kernel.key` instead; the
format of the files stays Numba's. This is the only place that touches Numba's internals.
"""

from __future__ import annotations

import sys
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

from halfwidth.kernels.arrays import Function
from halfwidth.kernels.cache_key import described


class KeyedCache(FunctionCache):
    """The machine code of one kernel, for each signature it was called with.

    Parameters
    ----------
    function : callable
        The body of the kernel.
    key : str
        The kernel's key. It is part of the file's name: kernels never share an index file, in which two processes that
        compile at the same time could overwrite each other's entries.
    """

    def __init__(self, function: Function, key: str) -> None:
        FunctionCache.__init__(self, function)
        name = f"{function.__module__}.{function.__name__}.{key[:20]}.{sys.implementation.cache_tag}"
        self._cache_file = IndexDataCacheFile(self._cache_path, name, key)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        # As text, so that an index can be read after a class that one of its signatures names has moved.
        return (*(described(argument) for argument in sig), *map(str, codegen.magic_tuple()))

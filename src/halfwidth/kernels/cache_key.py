"""The key under which the machine code of a kernel is kept on disk.

The key is a digest of everything that the machine code is made from: the byte code of the kernel, of every function
that it calls, directly or not, of the implementations that overload them for Numba, and the values of the global
constants and closure variables that any of them reads. What a kernel does not reach is not in its key, so that keys
depend neither on the order of imports nor on edits elsewhere. Byte code differs between Python versions, and so does
the name of the file that holds the machine code.
"""

from __future__ import annotations

import dis
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from halfwidth.kernels.arrays import Function

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None))


class Closure:
    """Everything that a function reaches.

    Parameters
    ----------
    function : callable
        A plain Python function, such as the body of a kernel.
    overloads : mapping of functions to functions
        For a function that Numba replaces by another implementation: that implementation.

    Attributes
    ----------
    functions : tuple of functions
        The function itself and every Python function that it calls, directly or not, in the order of the visit.
    digest : str
        Hexadecimal digest of their byte code and of the constants they read.
    """

    def __init__(self, function: Function, overloads: Mapping[Function, Function]) -> None:
        self._overloads = overloads
        self._visited: dict[Any, int] = {}
        self.digest = digest_of(self._parts(function.__name__, function))
        self.functions: tuple[Function, ...] = tuple(self._visited)

    def _parts(self, name: str, value: Any) -> Iterator[str]:
        """What the value of a name contributes to the digest."""
        if isinstance(value, FunctionType):
            yield from self._function_parts(value)
        elif isinstance(value, ModuleType):
            yield f"module {value.__name__}"
        elif isinstance(value, tuple):
            for item in value:
                yield from self._parts(name, item)
        elif isinstance(value, _CONSTANTS):
            yield repr(value)
        elif isinstance(value, BuiltinFunctionType | type):
            yield f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', '')}"
        elif hasattr(value, "symbol"):  # a function outside Python, known by its name in the machine code
            yield f"external {value.symbol}"
        elif hasattr(value, "py_func"):  # a function that was compiled by its author
            yield from self._parts(name, value.py_func)
        else:
            raise TypeError(f"a kernel reads {name!r}, and a {type(value).__name__} cannot be part of its cache key")

    def _function_parts(self, function: FunctionType) -> Iterator[str]:
        if function in self._visited:
            yield f"function {self._visited[function]}"
            return
        self._visited[function] = len(self._visited)
        code = function.__code__
        yield from _code_parts(code)
        if function in self._overloads:
            yield from self._parts(function.__name__, self._overloads[function])
            return
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        reads = {name: cell.cell_contents for name, cell in cells}
        reads |= {name: function.__globals__[name] for name in _globals_of(code) if name in function.__globals__}
        for name in sorted(reads):
            yield name
            yield from self._parts(name, reads[name])


def described(numba_type: Any) -> str:
    """A Numba type as text, with the place and the fields of every named tuple in it."""
    members = getattr(numba_type, "types", None)
    if members is None:
        return repr(numba_type)
    inner = [described(member) for member in members]
    cls = getattr(numba_type, "instance_class", None)
    if cls is None:
        return f"({', '.join(inner)})"
    fields = ", ".join(f"{name}: {text}" for name, text in zip(cls._fields, inner, strict=True))
    return f"{cls.__module__}.{cls.__qualname__}({fields})"


def digest_of(parts: Iterable[str]) -> str:
    """The SHA-256 digest of a sequence of texts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()


def _code_parts(code: CodeType) -> Iterator[str]:
    yield f"{code.co_argcount} {code.co_varnames} {code.co_names} {code.co_freevars} {code.co_cellvars}"
    yield code.co_code.hex()
    yield code.co_exceptiontable.hex()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        else:
            yield repr(sorted(constant, key=repr) if isinstance(constant, frozenset) else constant)


def _globals_of(code: CodeType) -> set[str]:
    names = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _globals_of(constant)
    return names

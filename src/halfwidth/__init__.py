"""Confidence intervals for models learned by stochastic gradient steps over a stream.

One pass over the rows, memory that does not grow with their number, and an interval at any moment: for independent
rows, for rows that depend on each other, and for state-dependent data, which respond to the deployed parameter.

=====================================  =======================================================================
`fit`, `LinearRegression`, ...         regression on files, tables and streams, with scikit-learn's conventions
`Auto`, `CappedSGD`, ...               learners: they own theta and consume rows
`OverlappingBatchMeans`, ...           watchers: they observe the iterates of any optimiser
`Result`, `Interval`                   what all of these end in
`problem`, `Problem`, `run_study`      sources of rows with an exact truth, and studies of coverage on them
=====================================  =======================================================================

Public names are imported at first use, so that importing the package is quick. Where a name lives is read from the
stub `__init__.pyi`, which is also what type checkers and editors read.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

__version__ = "0.1.0"


def _packages() -> dict[str, str]:
    """The package of each public name, from the import statements of the stub."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


_PACKAGES = _packages()

__all__ = ["__version__", *sorted(_PACKAGES)]


def __getattr__(name: str) -> object:
    """Import a public name at its first use."""
    if name not in _PACKAGES:
        raise AttributeError(f"module 'halfwidth' has no attribute {name!r}")
    value = getattr(import_module(_PACKAGES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""Coded terms of a formula, and the cells of their levels, each with its place among the columns of X."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from halfwidth.streams.design.factors import CategorySpec
from halfwidth.streams.design.formula_terms import Coding, Term

Cell = tuple[int, tuple[int, ...], tuple[int, ...]]  # coded term, columns of its numeric factors, levels


@dataclass
class CodedTerm:
    """A term with its categories coded, and for each choice of numeric columns where the cells are in X."""

    order: list[str]
    numbers: list[str]
    categories: list[tuple[str, bool]]
    places: dict[tuple[int, ...], NDArray[np.int64]] = field(default_factory=dict)


def coded_term(term: Term, coding: Coding) -> CodedTerm:
    """A term whose categories are coded in full, or without their reference."""
    numbers = [factor.text for factor in term if not isinstance(factor, CategorySpec)]
    return CodedTerm([factor.text for factor in term], numbers, list(coding.items()))


def widened(coded: CodedTerm, chosen: tuple[int, ...], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The places of cells in X by level, made wide enough for the levels so far: -1 never, -2 not yet."""
    known = coded.places.get(chosen)
    if known is not None and known.shape == shape:
        return known
    wide = np.full(shape, -2, dtype=np.int64)
    for axis, (_, full) in enumerate(coded.categories):
        if not full:
            wide[(slice(None),) * axis + (0,)] = -1
    if known is not None:
        wide[tuple(slice(size) for size in known.shape)] = known
    coded.places[chosen] = wide
    return wide


def first_rows(
    places: NDArray[np.int64], codes: tuple[NDArray[np.int64], ...], usable: NDArray[np.bool_]
) -> list[tuple[int, tuple[int, ...]]]:
    """The cells without a place into which usable rows fall, each with its first row."""
    if not (places == -2).any():
        return []
    rows = np.flatnonzero(usable & np.all([code >= 0 for code in codes], axis=0))
    at = tuple(code[rows] for code in codes)
    new = places[at] == -2
    flat = np.ravel_multi_index(tuple(code[new] for code in at), places.shape)
    cells, first = np.unique(flat, return_index=True)
    levels = zip(*(axis.tolist() for axis in np.unravel_index(cells, places.shape)), strict=True)
    return list(zip(rows[new][first].tolist(), levels, strict=True))

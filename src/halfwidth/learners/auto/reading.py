"""From the sums of a steered engine to a result: root, errors, notes and flags."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation import Equation, Sums
from halfwidth.equation.errors import Errors
from halfwidth.equation.result import FEWEST, rare_below
from halfwidth.errors import NotEnoughData
from halfwidth.inference import Diagnostics
from halfwidth.inference.autoregressive_bias import shortfall
from halfwidth.inference.batch_result import in_pairs, too_short
from halfwidth.inference.longrun import long_run_covariance
from halfwidth.inference.slow_dependence import reach
from halfwidth.inference.student_law import StudentLaw
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto import status
from halfwidth.learners.auto.careful_result import careful_result, of_kernel, shown_only, with_doubt
from halfwidth.learners.auto.curved_response import Curved
from halfwidth.learners.auto.determined import check_determined
from halfwidth.learners.auto.excitation import MOST_INFLATION, MOST_INFLATION_SESSIONS, Profile, drift
from halfwidth.learners.auto.expanded import far, flat, late_batches, near_batches, unweighted_degrees
from halfwidth.learners.auto.facts import Facts
from halfwidth.learners.auto.feedback import Response
from halfwidth.learners.auto.probes import nonlinearity, saturates
from halfwidth.learners.auto.result import AutoResult, Feedback, GivenResult
from halfwidth.learners.auto.settling import unsettled
from halfwidth.learners.auto.slopes import share_of
from halfwidth.learners.auto.steered import Steered
from halfwidth.learners.auto.stores import most_means, power_of_two
from halfwidth.learners.auto.unequal import degrees_of_freedom, neighbours, wander

ALIKE = 0.1
"""The correlation of neighbouring batches' Hessians below which chunks are not unlike each other."""
LONG_ENOUGH = 2.0
"""Standard deviations by which longer batches may show more noise before they are taken for all coefficients."""


def batch_means_result(
    equation: Equation,
    sums: Sums,
    origin: Vector,
    response: Response,
    name: str,
    truncations: tuple[int, ...],
    chunk_rows: int,
) -> AutoResult:
    """Root and batch means; coefficients that no row has shown stay where they are, with nan for their error."""
    inside, shown = shown_only(equation)
    centre, influences = inside.solve()
    K, n = len(influences), int(equation.rows.sum())
    if K < 2:
        raise NotEnoughData(f"an interval needs at least 2 batches; there is {K}. Feed more rows and ask again")
    dim = len(origin)
    params, wide, covariance = origin.copy(), np.full((K, dim), np.nan), np.full((dim, dim), np.nan)
    params[shown], wide[:, shown] = origin[shown] + centre, influences
    variance, freedom = _variance(influences, equation.rows, response)
    covariance[np.ix_(shown, shown)] = n * variance * response.inflation(sums, params - origin)
    memory = chunk_rows * response.memory_chunks if response.detected else 0.0
    return AutoResult(
        params,
        covariance,
        n,
        StudentLaw(freedom),
        name,
        Diagnostics(
            freedom,
            truncations=len(truncations),
            truncated_at=truncations,
            coefficient_flags=_flags(sums, shown),
        ),
        influences=wide,
        feedback=Feedback(response.detected, response.strength, memory),
        truncations=truncations,
    )


def _flags(sums: Sums, shown: NDArray[np.bool_]) -> tuple[tuple[str, ...], ...]:
    """Of every coefficient: whether no row has shown it, or few batches."""
    degrees = np.zeros(len(shown))
    degrees[shown] = degrees_of_freedom(sums.H, shown)
    few = rare_below(len(sums.n))
    both = zip(shown, degrees, strict=True)
    flags = tuple(("rare",) * bool(own < few) if seen else ("unidentified",) for seen, own in both)
    return flags if any(flags) else ()


def _variance(influences: Vector, rows: Vector, response: Response) -> tuple[Vector, float]:
    """The covariance of the root and its degrees of freedom: by a kernel where noise is known to outlast a chunk."""
    K = len(influences)
    if not response.denied:
        return K / (K - 1.0) * (influences.T @ influences), response.degrees_of_freedom(K)
    dependence = reach(influences)
    long_run = long_run_covariance(influences, dependence.bandwidth)
    information = np.tile(rows[:, None], influences.shape[1])
    factors = np.sqrt(shortfall(influences, information, *dependence))
    return long_run.covariance * np.outer(factors, factors), long_run.degrees_of_freedom


def long_enough(equation: Equation, sums: Sums, most: int, response: Response) -> tuple[Equation, Sums]:
    """The batches behind the means: neighbours merge, down to 16 of them, while longer ones show more noise.

    A kernel, where noise is known to outlast a chunk, is over at most `most` of them.
    """
    if response.denied:
        return equation.merged(most), sums
    while len(equation.rows) >= 2 * status.FEW_BATCHES:
        if not too_short(shown_only(equation)[0].solve()[1], LONG_ENOUGH):
            break
        equation, sums = equation.in_pairs(), Sums(*(in_pairs(array) for array in sums))
    return equation, sums


def engine_profile(engine: Steered, equation: Equation, response: Response, skipped: float) -> Profile | None:
    """How noisy the deployed theta was in each batch, where that matters: the data respond to it.

    Batches are those after so many rows since estimation began.
    """
    if response.kept <= 0.0 and response.share == 0.0:
        return None
    noise = engine.noise(equation.rows, skipped)
    return Profile.of(noise, equation.rows, MOST_INFLATION_SESSIONS if engine.careful else MOST_INFLATION)


def shifts(engine: Steered, equation: Equation, response: Response, skipped: float = 0.0) -> bool:
    """Whether batches in which the deployed theta was noisier say something else."""
    profile = engine_profile(engine, equation, response, skipped)
    return profile is not None and profile.shifts(shown_only(equation)[0].solve()[1])


def _unseen(engine: Steered, response: Response) -> float:
    """How large a share of the Hessian data may respond by, within two standard errors, where none is corrected for."""
    if not engine.detect or response.unlike or response.kept > 0.0 or response.denied:
        return 0.0
    moments = engine.notes.moments()
    if moments.chunks < 2 * engine.dim + 8:
        return math.inf
    share, error = share_of(moments, engine.store.curvature() / engine.store.rows, engine.m)
    return max(share, 0.0) + 2.0 * error


def _steepness(engine: Steered) -> float:
    along, change, _ = engine.moving.swept.tolist()
    return change / along if along > 0.0 else 1.0


def _alike(sums: Sums) -> bool:
    """Whether batches next to each other are no more alike than others."""
    return neighbours(sums.H, sums.n) < max(ALIKE, 2.0 / math.sqrt(len(sums.n)))


def last_half(sums: Sums, merged: Equation) -> Sums:
    """The batches that went into the last half of the merged ones."""
    before = merged.rows[: len(merged.rows) // 2].sum()
    first = int(np.searchsorted(np.cumsum(sums.n), before, side="right"))
    return Sums(*(array[first:] for array in sums))


def _with_curved_doubts(
    found: AutoResult | GivenResult, engine: Steered, every: Sums, late: Sums, largest: Vector
) -> AutoResult | GivenResult:
    """The result, with doubts of coefficients that may be held where a curved loss is flat (`expanded`)."""
    found = with_doubt(found, "not-settled", flat(every))
    saturating = saturates(engine.moving.probed)
    if saturating:
        away, errors = found.params - engine.steering.origin, np.sqrt(np.diag(found.covariance) / found.n)
        found = with_doubt(found, "not-settled", far(late, away, errors, largest))
    if not (isinstance(found, GivenResult) and isinstance(found.errors, Errors)):
        return found
    degrees = unweighted_degrees(late, found.errors, found.most_df)
    if saturating:
        return with_doubt(found, "rare", degrees < rare_below(found.errors.batches))
    return replace(found, df=np.where(found.df < FEWEST, found.df, np.clip(degrees, FEWEST, found.df)))


@np.errstate(over="ignore", invalid="ignore")  # the equation refuses what is not finite
def steered_result(engine: Steered, name: str, n_seen: int, curvature: str) -> AutoResult | GivenResult:
    """What a steered engine says now."""
    response = replace(engine.response(), linear=engine.quadratic())
    Q, D = engine.corrections()
    every = late = sums = engine.store.closed()
    check_determined(every.H.sum(axis=0), differenced=engine.differences)
    unit = engine.m * nonlinearity(engine.moving.probed)
    if engine.curved:
        late = late_batches(every, engine.began, n_seen)
        sums = near_batches(late, response.share, unit)
    skipped = float(every.n.sum() - sums.n.sum())
    curved = Curved.of(engine.moving.swept, engine.m, sums, response)
    equation = Equation.of(sums, response.J if response.kept > 0.0 else None, Q, D, response.share, curved.bend)
    truncations = tuple(engine.truncations)
    most, profile = most_means(engine.dim), engine_profile(engine, equation, response, skipped)
    shifted = shifts(engine, equation.merged(most), response, skipped)
    equation = equation if profile is None else equation.weighted(profile.weights)
    means = equation.merged(most)
    behind, own = (means, sums) if response.unlike else long_enough(equation, sums, most, response)
    plain = batch_means_result(behind, own, engine.steering.origin, response, name, truncations, engine.m)
    R = sums.R.sum(axis=0) if profile is None else profile.weights @ sums.R
    facts = Facts(
        n_seen=n_seen,
        burn_in=4 * engine.first,
        began=engine.began + int(skipped),
        chunk_rows=engine.m,
        batch_rows=engine.store.length * power_of_two(len(equation.rows) / len(behind.rows)),
        curvature=curvature,
        response=response,
        clipped_share=engine.clipped / engine.chunks,
        bent=engine.bent,
        restarts=engine.restarts,
        truncations=truncations,
        jumps=engine.jumps,
        shifted=shifted,
        drift=drift(engine.noise(sums.n), sums.n, sums.H) if response.kept > 0.0 and not response.unlike else 1.0,
        wander=0.0 if response.unlike else wander(own.H, own.n, response),
        quadratic=response.linear,
        steepness=_steepness(engine),
        curved=curved.doubts(curved.shift(behind, R, plain.bse)),
        detect=engine.detect,
        unseen=_unseen(engine, response),
        alike=response.unlike and _alike(late_batches(every, engine.began, n_seen)),
        hidden=tuple(np.flatnonzero(plain.unidentified).tolist()),
    )
    flags = status.flags(facts, plain)
    doubted = "not-settled" in dict(flags)
    if not response.unlike:
        point = None if facts.quadratic else engine.steering.point
        rests = response.leverage(last_half(sums, means), plain.params - engine.steering.origin)
        if response.kept > 0.0 and response.spread is None:
            rests = np.inf  # a slow response: nothing is known of that
        doubts = () if doubted else unsettled(means, plain, point, leverage=rests)
        return plain.with_facts(*flags, *doubts, notes=status.notes(facts, plain))
    more = engine.shares.more(response.share) if engine.shares is not None and response.share != 0.0 else None
    saturating = engine.curved and engine.shares is not None and saturates(engine.moving.probed)
    found = careful_result(equation, sums, profile, plain, response, more, saturating=saturating)
    kernel, doubts = of_kernel(found, engine.store.length)
    if engine.curved and engine.shares is not None:
        found = _with_curved_doubts(found, engine, every, late, unit * engine.shares.largest)
    doubts += () if doubted else unsettled(equation, found, None, alike=False)
    return found.with_facts(*flags, *doubts, notes=status.notes(facts, plain, kernel))

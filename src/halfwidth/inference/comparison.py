"""The comparison of two results on independent streams: each coefficient by itself, and all of them at once.

For results a and b the difference of a coefficient has the variance se_a^2 + se_b^2 and, by B. L. Welch (Biometrika 34,
1947) and F. E. Satterthwaite (1946), about

    (se_a^2 + se_b^2)^2 / (se_a^4 / df_a + se_b^4 / df_b)

degrees of freedom. Jointly, with covariances V_a and V_b of q differences and V = V_a + V_b, the statistic
d' V^-1 d is Hotelling's with about

    (q + q^2) / sum_i (tr((V_i V^-1)^2) + tr(V_i V^-1)^2) / df_i

degrees of freedom (K. Krishnamoorthy and J. Yu, Statistics & Probability Letters 66, 2004); df_i is the smallest of the
coefficients' in result i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import HalfwidthError, InputError
from halfwidth.inference.contrasts import ContrastTest
from halfwidth.inference.student_law import StudentLaw
from halfwidth.inference.wald import WaldTest, wald_test
from halfwidth.kernels.arrays import Vector

if TYPE_CHECKING:
    from halfwidth.inference.result import Result


@dataclass(frozen=True)
class Comparison(ContrastTest):
    """t tests of the differences of two results, one at a time, and a joint test of all of them.

    Parameters
    ----------
    effect, sd, value, pvalue, df_denom, labels, quantiles
        As in `ContrastTest`.
    joint_or_error : WaldTest or HalfwidthError
        The joint test that no coefficient differs, or why there is none.
    tested : int
        How many coefficients the joint test is about: those with a standard error in both results.
    """

    joint_or_error: WaldTest | HalfwidthError
    tested: int

    @property
    def joint(self) -> WaldTest:
        """The joint test that no coefficient differs; it raises where there is none, and says why."""
        if isinstance(self.joint_or_error, HalfwidthError):
            raise self.joint_or_error
        return self.joint_or_error

    def _notes(self) -> list[str]:
        which = "all" if self.tested == self.effect.size else f"the {self.tested} with a standard error in both"
        return [f"{which} at once: {self.joint_or_error}"]


def compare(a: Result, b: Result, names: Sequence[str]) -> Comparison:
    """Test that the named coefficients are the same in two results on independent streams."""
    eye = np.eye(a.params.size)
    at = [b.coefficient_names.index(name) for name in names]
    va, vb = a.bse**2, b.bse[at] ** 2
    dfa, dfb = a.degrees_of_freedom(eye), b.degrees_of_freedom(eye)[at]
    effect, variance = a.params - b.params[at], va + vb
    with np.errstate(divide="ignore", invalid="ignore"):
        df = variance**2 / (va**2 / dfa + vb**2 / dfb)
    df = np.where(np.isfinite(df) & (df > 0.0), df, np.minimum(dfa, dfb))
    laws = [StudentLaw(float(nu)) for nu in df]
    sd = np.sqrt(variance)
    p = np.array([float(law.two_sided_tail(t)) for law, t in zip(laws, effect / sd, strict=True)])
    known = np.flatnonzero(np.isfinite(sd) & (sd > 0.0)).astype(np.int64)
    try:
        jointly: WaldTest | HalfwidthError = _joint(a, b, known, np.array(at, dtype=np.int64)[known])
    except HalfwidthError as error:
        jointly = error
    labels = tuple(f"{name}: difference" for name in names)
    return Comparison(
        effect, sd, np.zeros_like(effect), p, df, labels, lambda level: [law.quantile(level) for law in laws],
        jointly, len(known),
    )  # fmt: skip


def _joint(a: Result, b: Result, ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> WaldTest:
    if not len(ours):
        raise InputError("no coefficient has a standard error in both results")
    pieces = []
    for result, places in ((a, ours), (b, theirs)):
        V = result.cov_params()[np.ix_(places, places)]
        pieces.append((V, float(result.degrees_of_freedom(np.eye(result.params.size)[places]).min())))
    total = pieces[0][0] + pieces[1][0]
    gap = a.params[ours] - b.params[theirs]
    return wald_test(gap, total, 1, StudentLaw(joint_degrees_of_freedom(pieces)))


def joint_degrees_of_freedom(pieces: Sequence[tuple[Vector, float]]) -> float:
    """Of the sum of independent covariance estimates (V_i, df_i), for a joint test."""
    total = np.asarray(sum(V for V, _ in pieces))
    q = len(total)
    inverse_df = 0.0
    for V, nu in pieces:
        share = np.linalg.solve(total, V)
        inverse_df += float(np.trace(share @ share) + np.trace(share) ** 2) / nu
    return (q + q**2) / inverse_df if inverse_df > 0.0 else np.inf

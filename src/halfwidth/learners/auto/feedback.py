"""Whether, and how, the data respond to the deployed theta.

Chunk c has the gradient sum g_c, while theta_c = origin + x_c was deployed. g_c is taken at the linearisation point
and put back to the fixed origin by the mean Hessian: a point that moves would look like feedback. If the data respond,
E g_c / m moves with theta_c: the slope J of that regression is the part of the mean field's Jacobian H + J that no
Hessian shows. With C, V the centred sums of g x' and m x x', and Omega the centred mean of g g' / m,

    J_raw = C V^-1,   F = tr(Omega^-1 J_raw C') (1 - (d + 1) / chunks),

F is about chi-square with d^2 degrees of freedom when nothing responds, so J = 0 unless F > d^2 + 3 sqrt(2) d.

**Slow responses.** What the data do now may be a response to thetas of earlier chunks. With x~ the trace of x, a moving
average over past chunks (`moments`), g = J x + G (x~ - x) has the whole response to a constant theta in J, whatever is
still on its way. This regression takes the place of the one above where F of G, given x, is above d^2 + 3 sqrt(2) d.
The share c of the response that is late, G = c J (0 to 1, in the metric of Omega and V), is measured low, since the
trace forgets at its own speed: errors are those of (1 + 0.15 c) J. J alone enters the equation: a response that comes
late differs from one that does not by sums of moves of theta, and these add up to nothing. Noise that stays correlated
gives a G too, of the opposite sign. A response that comes late by less than a chunk makes F small and J too small all
the same. So, where F is not significant, one number is fitted, the share c of the response that is late, G = c J, and g
is regressed on x + c (x~ - x); c is shrunk by 1 - 1 / t^2, t its ratio to its standard error, and zero where it is
negative.

**In proportion.** Where chunks are unlike each other no constant J fits. There, in place of all that, the share k of a
response in proportion to each chunk's own Hessian is measured with the dither (`proportional`, `careful`).

**The instrument.** Noise that stays correlated for longer than a chunk gives a J_raw too, for theta follows the noise
of earlier chunks: no regression on theta's own motion can tell the two apart (U. Forssell and L. Ljung 1999). A dither
can. While there is a doubt, theta_c = base_c + z_c is deployed with z_c = a L s_c, random signs s_c and L L' the
covariance of theta's own noise (`dither`). With e_c the residuals of the regression on base_c alone, whose slope is
J_b, and V_z = m sum z z',

    T = tr(Omega_e^-1 sum e z' J_b') / N,   N^2 = tr(Omega_e^-1 J_b V_z J_b');

where the response is slow, the larger one of this T and of the same with the trace of z in place of z. Without feedback
gradients and base know nothing of the signs, and T is standard normal whatever the noise is; with feedback it has the
mean E = N - d tr(V_b^-1 V_z) / N, where V_b is m sum base base': what noise adds to J_b adds to N, not to T. Feedback
is *detected* where T > 2.33. It is denied, J = 0, where T < 2.33 and T < E - 5, or T < E - 2.33 if G has the sign that
correlated noise gives it. Otherwise it is undecided, and J as estimated is used, for which the equation is consistent
too. The dither ends where T > 3.3, for it adds to the variance of theta and so to the bias that a curved response
makes, or where T < 2.33 and is below E by 5, and below N of a slow response by 5 where there may be one.

**Bias.** J_raw is biased: theta_c follows the noise of earlier chunks, and least squares then finds faster mixing than
there is, as in every autoregression. Steps along (H + J)^-1 renew theta R = sum m eta_c times, and to first order
E (H + J_raw) = (1 + (d + 3) / R) (H + J) (D. F. Nicholls and A. L. Pope 1988). So

    J = (H + J_raw) / (1 + (d + 3) / R) - H,   with (d + 3) / R taken as at most 1/2.

Where theta moved by far more than its noise moves it, as after an excursion, there is less of that: R is then what V
says (below), if that is four times as large. H + J has a relative variance of about 2 / R in every direction. A
standard error that is as uncertain has R / 4 degrees of freedom; that batches longer than a renewal make up for an
error of J is left out of account. Where theta moved less than R renewals would have moved it, R is what V itself says:
J_raw has the covariance Omega (x) V^-1, and with Sigma = (H + J)^-1 Omega (H + J)^-T that is 2 d / tr(V^-1 Sigma), on
average over directions.

The covariance of the root allows for J being fitted to the same rows, and for its error (`slope_error`). The interval
uses J. The steps use `kept` J with kept = 1 - d^2 / F, the positive-part shrinkage of W. James and C. Stein (1961),
which does not overshoot early on. The *gain* is the root mean square of (H + J)^-1 H per coordinate, or of (H + kept
J)^-1 H: one can be far from singular while the other is not. Above 10, steps before J was known renewed theta less
often than R says, and R is at most twice the smallest squared t-value of H + J, an eigenvalue of Omega^-1 (H + J) V (H
+ J)'. Above 15, J is rejected unless feedback is detected. It is always rejected where H^-1 (H + J) has an eigenvalue
without a positive real part: theta could not have settled at such a root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from halfwidth.equation import Sums
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.instrument import Instrument, instrument_of
from halfwidth.learners.auto.moments import Moments
from halfwidth.learners.auto.proportional import Proportion, ShareSums
from halfwidth.learners.auto.slope_error import added, leverage, taken
from halfwidth.learners.auto.slopes import TINY, Slope, climbs, gain_of, is_slow, regular, slope_of, strength_of

LARGE_GAIN, LARGEST_GAIN = 10.0, 15.0
_ENOUGH_RENEWALS, _RENEWALS_PER_GAIN = 96.0, 32.0
LOW, MOST_SHORTFALL = 0.15, 1.5
"""By what share of itself a response that is late may be larger than the trace shows; by how much errors allow for."""


@dataclass(frozen=True)
class Response:
    """J (0: none was seen), the share of it that steps use, F / d^2, the gain (H + J)^-1 H, and R."""

    J: Vector
    kept: float
    evidence: float
    gain: float = 1.0
    rejected: bool = False
    renewals: float = math.inf
    instrument: Instrument | None = None
    strength: float = 0.0
    memory_chunks: float = 1.0
    freedom: float = math.inf
    """Degrees of freedom of a standard error that rests on J."""
    spread: Vector | None = None
    """V of the regression, unless the response is slow or in proportion."""
    proportion: Proportion | None = None
    """What the dither says of the share k, where J_c = -k H_c on every chunk."""
    unlike: bool = False
    """Whether chunks are unlike each other: only a response in proportion is looked for."""
    shortfall: float = 1.0
    """How much larger the gain is if a slow response was measured as low as it may have been."""
    linear: bool = False
    """Whether gradients were seen to be linear in theta."""

    @property
    def share(self) -> float:
        """k, and 0 where the response is not in proportion to the Hessian."""
        return self.proportion.share if self.proportion is not None and not self.rejected else 0.0

    @property
    def steering(self) -> Vector:
        """What the steps use of J."""
        return self.kept * self.J

    @property
    def confirmed(self) -> bool:
        """Whether the dither has confirmed what least squares sees."""
        return self.instrument is not None and self.instrument.confirms

    @property
    def detected(self) -> bool:
        return self.kept > 0.0 and self.confirmed and (self.suspected or not self.unlike)

    @property
    def settled(self) -> bool:
        """Whether feedback is detected and its slope so well known that theta need not move to show it."""
        return self.detected and self.renewals >= max(_ENOUGH_RENEWALS, _RENEWALS_PER_GAIN * self.gain)

    @property
    def denied(self) -> bool:
        """Whether what least squares sees was found to be correlated noise."""
        return self.kept == 0.0 and self.instrument is not None and self.instrument.denies

    @property
    def correlated(self) -> bool:
        """Whether it was denied, and has the shape of correlated noise."""
        return self.denied and self.instrument is not None and self.instrument.correlated

    @property
    def undecided(self) -> bool:
        """Whether nothing has confirmed what least squares sees, or found it to be correlated noise."""
        if self.unlike:
            return self.doubtful
        return self.suspected and not self.confirmed and not self.correlated

    @property
    def doubtful(self) -> bool:
        """Whether a dither is needed to tell feedback from correlated noise."""
        if self.unlike:
            return self.proportion is None or self.proportion.vague
        return self.suspected and (self.instrument is None or not self.instrument.decided)

    @property
    def suspected(self) -> bool:
        """Whether least squares sees a response, of data or of theta to correlated noise."""
        return self.evidence >= 1.0 + 3.0 * math.sqrt(2.0) / len(self.J)

    def degrees_of_freedom(self, batches: int) -> float:
        """Of a standard error from so many batches: 1 / (1 / (K - 1) + 4 / R), or K - 1 where J = 0."""
        unsure = 1.0 / self.freedom if self.kept > 0.0 else 0.0
        return 1.0 / (1.0 / (batches - 1.0) + unsure)

    def taken(self, sums: Sums) -> float:
        """The share of these batches' noise that the fit of J has removed from them."""
        return taken(self.spread, sums) if self.kept > 0.0 and self.spread is not None else 0.0

    def inflation(self, sums: Sums, centre: Vector) -> float:
        """What the covariance of these batches' centre is multiplied by, since J is estimated and not known."""
        linear = self.settled and self.linear and self.proportion is None
        more = added(len(centre), 4.0 * self.freedom) if linear else 0.0
        low = min(self.shortfall, MOST_SHORTFALL) ** 2
        return low * (1.0 + self.leverage(sums, centre)) / (1.0 + more - self.taken(sums))

    def leverage(self, sums: Sums, centre: Vector) -> float:
        """By which share an error of J adds to the variance of these batches' root, near this centre; 0 if unknown."""
        return leverage(self.spread, sums, centre) if self.kept > 0.0 and self.spread is not None else 0.0


def regress(moments: Moments, hessian: Vector, chunk_rows: int, excited: bool = False) -> Response:
    """The response, given the mean static Hessian, and whether there were excursions."""
    dim, n = len(hessian), moments.chunks
    none = np.zeros((dim, dim))
    if n < 2 * dim + 8:
        return Response(none, 0.0, 0.0)
    C, V, noise = moments.centred(chunk_rows)
    raw, omega = slope_of(C, V), regular(noise / (n * chunk_rows))
    F = float(np.trace(np.linalg.solve(omega, raw @ C.T))) * (n - dim - 1) / n
    evidence = F / dim**2
    response = Response(none, 0.0, evidence)
    if not response.suspected:
        return response
    slow = is_slow(moments, chunk_rows)
    instrument = instrument_of(moments, chunk_rows, slow)
    response = replace(response, instrument=instrument)
    if instrument is not None and instrument.denies:
        return response
    seen = Slope.of(moments, chunk_rows, slow)
    kept, R = 1.0 - 1.0 / evidence, moments.renewals / seen.inflation
    J = np.asarray((hessian + seen.J) / (1.0 + seen.bias(hessian, R, excited)) - hessian)
    confirmed = response.confirmed
    gain = max(gain_of(hessian, J), gain_of(hessian, kept * J))
    freedom = R / 4.0
    if gain < math.inf:
        slowest, typical = seen.renewals(hessian + J)
        R = max(min(R, slowest), 1.0) if gain > LARGE_GAIN else R
        freedom = max(min(R, typical), 4.0) / 4.0
    too_large = gain > LARGEST_GAIN and not (confirmed and math.isfinite(gain))
    if too_large or climbs(hessian, J):
        return Response(none, 0.0, evidence, gain, rejected=True, instrument=instrument)
    how = (strength_of(hessian, J), seen.memory_chunks, freedom, None if slow else seen.spread)
    larger = gain_of(hessian, (1.0 + LOW * seen.late) * J)
    low = max(larger / gain, 1.0) if 0.0 < gain < math.inf else 1.0
    return Response(J, kept, evidence, gain, False, R, instrument, *how, shortfall=low)


def in_proportion(sums: ShareSums, hessian: Vector, chunk_rows: int) -> Response:
    """The response J = -k H of every chunk, by the dither alone; k is used whether it is significant or not."""
    none = np.zeros((len(hessian), len(hessian)))
    found = sums.proportion(chunk_rows)
    if found is None:
        return Response(none, 0.0, 0.0, unlike=True)
    gain = 1.0 / abs(1.0 - found.share) if found.share != 1.0 else math.inf
    rejected = not found.fits or found.share >= 1.0 or (gain > LARGEST_GAIN and found.vague)
    R = 2.0 * (1.0 - found.share) ** 2 / max(found.variance, TINY)
    return Response(
        none if rejected else -found.share * hessian,
        0.0 if rejected else found.kept,
        (1.0 + 3.0 * math.sqrt(2.0) / len(hessian)) * (found.t / 3.0) ** 2,
        gain,
        rejected,
        R,
        Instrument(found.t, found.t, found.t, found.t, False),
        abs(found.share),
        freedom=R / 4.0,
        proportion=found,
        unlike=True,
    )

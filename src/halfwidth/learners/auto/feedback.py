"""Whether, and how, the data respond to the deployed theta.

Chunk c has the gradient sum g_c, while theta_c = origin + x_c was deployed. g_c is taken at the linearisation point
and put back to the fixed origin by the mean Hessian: a point that moves would look like feedback. If the data respond,
E g_c / m moves with theta_c: the slope J of that regression is the part of the mean field's Jacobian H + J that no
Hessian shows. With C, V the centred sums of g x' and m x x', and Omega the centred mean of g g' / m,

    J_raw = C V^-1,   F = tr(Omega^-1 J_raw C') (1 - (d + 1) / chunks),

F is about chi-square with d^2 degrees of freedom when nothing responds, so J = 0 unless F > d^2 + 3 sqrt(2) d.

**The instrument.** Noise that stays correlated for longer than a chunk gives a J_raw too, for theta follows the noise
of earlier chunks: no regression on theta's own motion can tell the two apart (U. Forssell and L. Ljung 1999). A dither
can. While there is a doubt, theta_c = base_c + z_c is deployed with z_c = a L s_c, random signs s_c and L L' the
covariance of theta's own noise (`dither`). With e_c the residuals of the regression on base_c alone, whose slope is
J_b, and V_z = m sum z z',

    T = tr(Omega_e^-1 sum e z' J_b') / N,   N^2 = tr(Omega_e^-1 J_b V_z J_b').

Without feedback gradients and base know nothing of the signs, and T is standard normal whatever the noise is; with
feedback it has the mean E = N - d tr(V_b^-1 V_z) / N, where V_b is m sum base base': what noise adds to J_b adds to N,
not to T. Feedback is *detected* where T > 2.33; J = 0 where T < 2.33 and T < E - 2.33; otherwise it is undecided, and J
as estimated is used, for which the equation is consistent too. The dither ends where T > 3.3, for it adds to the
variance of theta and so to the bias that a curved response makes, or where T < 2.33 and T < E - 5. Where T contradicts
the size of J_b, H + J is alpha (H + J_b) with the alpha that the instrument gives: correlated noise shrinks H + J_b as
a whole.

**Bias.** J_raw is biased: theta_c follows the noise of earlier chunks, and least squares then finds faster mixing than
there is, as in every autoregression. Steps along (H + J)^-1 renew theta R = sum m eta_c times, and to first order
E (H + J_raw) = (1 + (d + 3) / R) (H + J) (D. F. Nicholls and A. L. Pope 1988). So

    J = (H + J_raw) / (1 + (d + 3) / R) - H,   with (d + 3) / R taken as at most 1/2,

and H + J has a relative variance of about 2 / R in every direction. A standard error that is as uncertain has R / 4
degrees of freedom; that batches longer than a renewal make up for an error of J is left out of account.

The interval uses J. The steps use `kept` J with kept = 1 - d^2 / F, the positive-part shrinkage of W. James and C.
Stein (1961), which does not overshoot early on. J is rejected if H + J or H + kept J is nearly singular (root mean
square of (H + J)^-1 H above 15 per coordinate): one can be far from singular while the other is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.moments import Moments

LARGEST_GAIN = 15.0
SURE = 2.33
CONFIRMED, DENIED = 3.3, 5.0
_MOST_BIAS = 0.5
_ROUNDING = 1e-9
_TINY = 1e-300


@dataclass(frozen=True)
class Feedback:
    """What a run knows about the response of its data to the deployed parameter.

    Attributes
    ----------
    detected : bool
        Whether the data were seen to respond. False, too, where nobody looked: `feedback="none"`.
    strength : float
        The size of H^-1 J: 0.5 where a unit of theta moves the gradient half as much through the data as directly.
    memory_rows : float
        Over how many rows the response lasts; at most a chunk where nothing else was seen, 0 without feedback.
    """

    detected: bool = False
    strength: float = 0.0
    memory_rows: float = 0.0


@dataclass(frozen=True)
class Instrument:
    """T, N, the mean that T has if the slope is what least squares says, and the factor alpha of H + J with its error."""

    T: float
    N: float
    expected: float
    alpha: float
    alpha_error: float

    @property
    def confirms(self) -> bool:
        return self.T > SURE

    @property
    def denies(self) -> bool:
        return not self.confirms and self.T < self.expected - SURE

    @property
    def decided(self) -> bool:
        """Whether no more dither is needed."""
        return self.T > CONFIRMED or (self.T < SURE and self.expected - self.T > DENIED)

    @property
    def contradicts_size(self) -> bool:
        return abs(self.alpha - 1.0) > SURE * self.alpha_error


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

    @property
    def steering(self) -> Vector:
        """What the steps use of J."""
        return self.kept * self.J

    @property
    def detected(self) -> bool:
        return self.kept > 0.0 and self.instrument is not None and self.instrument.confirms

    @property
    def doubtful(self) -> bool:
        """Whether a dither is needed to tell feedback from correlated noise."""
        return self.suspected and (self.instrument is None or not self.instrument.decided)

    @property
    def suspected(self) -> bool:
        """Whether least squares sees a response, of data or of theta to correlated noise."""
        return self.evidence >= 1.0 + 3.0 * math.sqrt(2.0) / len(self.J)

    def degrees_of_freedom(self, batches: int) -> float:
        """Of a standard error from so many batches: 1 / (1 / (K - 1) + 4 / R), or K - 1 where J = 0."""
        unsure = 4.0 / self.renewals if self.kept > 0.0 else 0.0
        return 1.0 / (1.0 / (batches - 1.0) + unsure)


def regress(moments: Moments, hessian: Vector, chunk_rows: int) -> Response:
    """The response, given the mean static Hessian."""
    dim, n = len(hessian), moments.chunks
    none = np.zeros((dim, dim))
    if n < 2 * dim + 8:
        return Response(none, 0.0, 0.0)
    C, V, noise = moments.centred(chunk_rows)
    raw, omega = _slope(C, V), _regular(noise / (n * chunk_rows))
    F = float(np.trace(np.linalg.solve(omega, raw @ C.T))) * (n - dim - 1) / n
    evidence = F / dim**2
    response = Response(none, 0.0, evidence)
    if not response.suspected:
        return response
    instrument = instrument_of(moments, hessian, chunk_rows)
    if instrument is not None and instrument.denies:
        return Response(none, 0.0, evidence, instrument=instrument)
    kept, R = 1.0 - 1.0 / evidence, moments.renewals
    factor = 1.0 / (1.0 + min((dim + 3.0) / max(R, 1.0), _MOST_BIAS))
    if instrument is not None and instrument.confirms and instrument.contradicts_size:
        factor, raw = instrument.alpha, base_slope(moments, chunk_rows)[0]
    J = np.asarray(factor * (hessian + raw) - hessian)
    gain, steering_gain = _gain(hessian, J), _gain(hessian, kept * J)
    if max(gain, steering_gain) > LARGEST_GAIN:
        return Response(none, 0.0, evidence, max(gain, steering_gain), rejected=True, instrument=instrument)
    return Response(J, kept, evidence, gain, False, R, instrument, _strength(hessian, J))


def instrument_of(moments: Moments, hessian: Vector, chunk_rows: int) -> Instrument | None:
    """What the dither says, if there was any."""
    V_z = chunk_rows * moments.dither_spread
    if not V_z.any():
        return None
    dim, V_base = len(V_z), moments.centred(chunk_rows, base=True)[1]
    slope, omega = base_slope(moments, chunk_rows)
    # The residuals on base = x - z and the dither itself: sum (g - J_b m (x - z)) z', about their means.
    cross = moments.dithered_gradients() - chunk_rows * slope @ moments.dithered_bases()
    weighted = np.linalg.solve(omega, slope)
    size = math.sqrt(max(float(np.sum((weighted @ V_z) * slope)), 0.0))
    T = float(np.sum(weighted * cross)) / size if size > 0.0 else 0.0
    whole = hessian + slope
    against = np.linalg.solve(omega, whole)
    information = max(float(np.sum((against @ V_z) * whole)), _TINY)
    alpha = 1.0 + float(np.sum(against * (cross - slope @ V_z))) / information
    noise = dim * float(np.trace(np.linalg.solve(_regular(V_base), V_z)))
    expected = max(size - noise / size, 0.0) if size > 0.0 else 0.0
    return Instrument(T, size, expected, alpha, 1.0 / math.sqrt(information))


def residual_covariance(moments: Moments, chunk_rows: int) -> Vector:
    """The covariance of a row's gradient noise, less what theta explains of it."""
    C, V, noise = moments.centred(chunk_rows)
    left = noise - chunk_rows * _slope(C, V) @ C.T
    return np.asarray(0.5 * (left + left.T) / (moments.chunks * chunk_rows))


def base_slope(moments: Moments, chunk_rows: int) -> tuple[Vector, Vector]:
    """The slope on theta without its dither, and the covariance of what it leaves, per row."""
    C, V, noise = moments.centred(chunk_rows, base=True)
    slope = _slope(C, V)
    left = noise - chunk_rows * slope @ C.T
    return slope, _regular(0.5 * (left + left.T) / (moments.chunks * chunk_rows))


def _slope(C: Vector, V: Vector) -> Vector:
    return np.asarray(np.linalg.solve(_regular(V), C.T).T)


def _regular(matrix: Vector) -> Vector:
    regular = matrix.copy()
    regular[np.diag_indices(len(matrix))] = np.diag(matrix) * (1.0 + _ROUNDING) + _TINY
    return regular


def _gain(hessian: Vector, J: Vector) -> float:
    """Root mean square, per coordinate, of (H + J)^-1 H; infinite where H + J is singular."""
    try:
        return math.sqrt(np.square(np.linalg.solve(hessian + J, hessian)).sum() / len(J))
    except np.linalg.LinAlgError:
        return math.inf


def _strength(hessian: Vector, J: Vector) -> float:
    try:
        return float(np.linalg.norm(np.linalg.solve(hessian, J), 2))
    except np.linalg.LinAlgError:
        return math.inf

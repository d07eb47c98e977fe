"""The law of batch means and random scaling with few effective blocks: a normal over a Brownian functional.

Let B be a Brownian motion on [0, 1] (the rescaled sums of the iterates) and D the variance estimator written as a
functional of B. For batch means D is a quadratic form of the bridge B(t) - t B(1), hence independent of B(1), and
D = sum_j w_j X_j with X_j independent chi-squares with one degree of freedom and weights w_j that depend on the block
plan and n only (Karhunen-Loeve). The studentised estimate converges to Z / sqrt(D). Craig's form of the normal tail
(J. W. Craig, MILCOM 1991), P(|Z| > s) = (2/pi) int_0^{pi/2} exp(-s^2 / (2 sin^2 phi)) dphi, turns its distribution
into a smooth integral:

    P(|Z| > x sqrt(D)) = (2/pi) int_0^{pi/2} prod_j (1 + w_j x^2 / sin^2 phi)^{-1/2} dphi,

which Gauss-Legendre resolves to rounding at any level. In q dimensions the denominator is the random matrix
M = sum_j w_j z_j z_j' with z_j standard normal in R^q, and Z' M^-1 Z = R^2 u' M^-1 u with R^2 chi-square(q)
independent of the direction u: averaging the chi-square tail over simulated (M, u) gives smooth quantiles and
p-values. The number of draws sets their resolution: no joint p-value below 1/JOINT_DRAWS is ever reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_level
from halfwidth.errors import InputError, NotEnoughData
from halfwidth.inference.laws import LimitLaw

JOINT_DRAWS = 40_000
_JOINT_SEED = 20_240_229
_MODES = 600


@dataclass(frozen=True)
class BrownianLaw(LimitLaw):
    """The law of Z / sqrt(sum_j w_j X_j + rest), with X_j independent chi-squares with one degree of freedom.

    Parameters
    ----------
    weights : tuple of float
        The weights w_j, largest first.
    rest : float, default 0.0
        The mean of the terms that the weights leave out.

    Examples
    --------
    Equal weights give Student's t:

    >>> round(BrownianLaw((0.2,) * 5).quantile(0.95), 3)
    2.571
    """

    weights: tuple[float, ...]
    rest: float = 0.0
    name = "brownian"

    @property
    def degrees_of_freedom(self) -> float:
        """The chi-square with the same mean and variance: (sum w + rest)^2 / sum w^2."""
        w = np.asarray(self.weights)
        return float((w.sum() + self.rest) ** 2 / np.sum(w**2))

    def two_sided_tail(self, x: ArrayLike) -> NDArray[np.float64]:
        return _ratio_tail(np.asarray(self.weights), self.rest, np.abs(np.asarray(x, dtype=np.float64)))

    def quantile(self, level: float) -> float:
        return _cached_quantile(self, check_level(level))

    def joint_quantile(self, level: float, q: int) -> float:
        if q == 1:
            return self.quantile(level) ** 2
        if check_level(level) > 1.0 - 20.0 / JOINT_DRAWS:
            raise InputError.of("level", f"be at most {1.0 - 20.0 / JOINT_DRAWS} for joint statements", level)
        return _cached_joint_quantile(self, level, q)

    def joint_tail(self, x: float, q: int) -> float:
        self._check_dimensions(q)
        if q == 1:
            return float(self.two_sided_tail(math.sqrt(max(x, 0.0))))
        from scipy.special import gammaincc

        tail = float(np.mean(gammaincc(0.5 * q, 0.5 * x / _joint_spreads(self, q))))
        return max(tail, 1.0 / JOINT_DRAWS)

    def _check_dimensions(self, q: int) -> None:
        """Refuse nearly as many directions as degrees of freedom: there the inverse covariance is mostly noise."""
        nu = self.degrees_of_freedom
        if q > 1 and q > nu - 1.0:
            raise NotEnoughData(
                f"a joint statement about {q} directions needs at least {q + 1} effective degrees of freedom; "
                f"this run has {nu:.1f}. Feed more rows, test fewer directions, or use interval() for each"
            )


@lru_cache(maxsize=1)
def _craig_nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes for (2/pi) int_0^{pi/2} f(1 / sin^2 phi) dphi, graded towards phi = 0 where f varies fastest."""
    x, w = np.polynomial.legendre.leggauss(200)
    s = 0.5 * (x + 1.0)
    phi = 0.5 * np.pi * s**3
    return 1.0 / np.sin(phi) ** 2, 0.5 * w * 3.0 * s**2


def _ratio_tail(weights: NDArray[np.float64], rest: float, x: NDArray[np.float64]) -> NDArray[np.float64]:
    inverse_sin2, node_weights = _craig_nodes()
    t = np.multiply.outer(x**2, inverse_sin2)
    log_mgf = -0.5 * rest * t
    for w in weights:
        log_mgf -= 0.5 * np.log1p(w * t)
    return np.asarray(np.exp(log_mgf) @ node_weights)


def _invert_tail(tail: Callable[[float], float], level: float) -> float:
    """The x > 0 with tail(x) = 1 - level, for a tail that falls from 1 to 0."""
    from scipy.optimize import brentq

    def excess(log_x: float) -> float:
        return math.log(max(tail(math.exp(log_x)), 1e-300)) - math.log1p(-level)

    low, high = -1.0, 1.0
    while excess(low) < 0.0:
        low -= 2.0
    while excess(high) > 0.0:
        high += 1.0
    return math.exp(float(brentq(excess, low, high, xtol=1e-12)))


@lru_cache(maxsize=512)
def _cached_quantile(law: BrownianLaw, level: float) -> float:
    return _invert_tail(lambda x: float(law.two_sided_tail(x)), level)


@lru_cache(maxsize=64)
def _cached_joint_quantile(law: BrownianLaw, level: float, q: int) -> float:
    return _invert_tail(lambda x: law.joint_tail(x, q), level)


@lru_cache(maxsize=16)
def _joint_spreads(law: BrownianLaw, q: int) -> NDArray[np.float64]:
    """Draws of u' M^-1 u with u uniform on the sphere; always the same draws for the same law."""
    rng = np.random.default_rng([_JOINT_SEED, q])
    weights = np.asarray(law.weights)
    small = weights < 1e-3 * weights[0]
    rest, weights = law.rest + weights[small].sum(), weights[~small]
    spreads = np.empty(JOINT_DRAWS)
    slab = 2_000
    for at in range(0, JOINT_DRAWS, slab):
        z = rng.standard_normal((slab, weights.size, q)) * np.sqrt(weights)[:, None]
        m = np.einsum("sjp,sjq->spq", z, z) + rest * np.eye(q)
        u = rng.standard_normal((slab, q))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        spreads[at : at + slab] = np.einsum("sp,sp->s", u, np.linalg.solve(m, u[:, :, None])[:, :, 0])
    return spreads


@lru_cache(maxsize=512)
def block_law(starts: tuple[int, ...], n: int) -> BrownianLaw:
    """Return the law of overlapping batch means whose blocks start at `starts`, after n rows.

    On [0, 1] the estimator is D = int W(t)^2 dt / int l(t) dt with l(t) the age of the current block and
    W(t) = B(t) - B(t - l(t)) - l(t) B(1). Its kernel is min(l(s), l(t)) within a block, 0 across blocks, minus
    l(s) l(t) everywhere. On a block of length L the first part has eigenvalues 1/f_j^2, f_j = (j - 1/2) pi / L,
    with eigenfunctions sqrt(2/L) sin(f_j x), on which l(x) = x has coefficients sqrt(2/L) (-1)^(j-1) / f_j^2:
    a diagonal matrix minus a rank-one matrix.
    """
    edges = np.append(np.asarray(starts, dtype=np.float64) - 1.0, float(n)) / n
    lengths = np.diff(edges)
    lengths = lengths[lengths > 0]
    j = np.arange(1, 61) - 0.5
    diagonal = (lengths[:, None] / (j * np.pi)) ** 2
    signs = np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    coefficients = np.sqrt(2.0 / lengths)[:, None] * signs * diagonal
    # What the largest modes leave out goes into the mean: with so many blocks its randomness no longer matters.
    largest = np.argsort(diagonal, axis=None)[::-1][:_MODES]
    keep = largest[diagonal.flat[largest] > 1e-5 * diagonal.max()]
    d, c = diagonal.flat[keep], coefficients.flat[keep]
    weight = np.sum(lengths**2) / 2.0
    eigenvalues = np.linalg.eigvalsh(np.diag(d) - np.outer(c, c)) / weight
    eigenvalues = eigenvalues[eigenvalues > 1e-9 * eigenvalues[-1]][::-1]
    mean = 1.0 - np.sum(lengths**3) / 3.0 / weight
    return BrownianLaw(tuple(eigenvalues.tolist()), max(float(mean - eigenvalues.sum()), 0.0))


def pooled_law(laws: tuple[BrownianLaw, ...], shares: tuple[float, ...]) -> BrownianLaw:
    """The law when independent trajectories are pooled, each with its share of the covariance estimate."""
    weights = [share * w for law, share in zip(laws, shares, strict=True) for w in law.weights]
    rest = sum(share * law.rest for law, share in zip(laws, shares, strict=True))
    return BrownianLaw(tuple(sorted(weights, reverse=True)), rest)

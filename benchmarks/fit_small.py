"""Coverage and interval score of `fit` on small samples, independent and AR(0.7), and where noise hides AR(0.99).

    python -m benchmarks.fit_small [--replicates 250] [--slow]

Three regressors and the noise are AR(phi) of variance one, all slopes and the intercept are zero, n is 50 to 500. With
`--slow` n is 500 to 50,000, and a share of the variance of all four is AR(phi), the rest white noise. The mean interval
score at 95% is given relative to that of the interval that knows the standard deviation of the estimates.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse

import numpy as np
from scipy.signal import lfilter
from scipy.stats import norm

from halfwidth.models import LinearRegression

SIZES, SHOCKS, ALPHA = (50, 100, 200, 350, 500), ((0.0, 1.0), (0.7, 1.0)), 0.05
SLOW_SIZES, SLOW = (500, 2_000, 10_000, 50_000), ((0.0, 1.0), (0.9, 1.0), (0.95, 0.2), (0.99, 0.5), (0.99, 0.2))


def autoregression(rng: np.random.Generator, n: int, d: int, phi: float, share: float) -> np.ndarray:
    burn_in = 200 if phi < 0.95 else 2_000
    fresh = np.sqrt(1.0 - phi**2) * rng.standard_normal((n + burn_in, d))
    slow = np.asarray(lfilter([1.0], [1.0, -phi], fresh, axis=0)[burn_in:])
    return slow if share == 1.0 else np.sqrt(share) * slow + np.sqrt(1.0 - share) * rng.standard_normal((n, d))


def row(n: int, phi: float, share: float, replicates: int) -> str:
    """Of the table: share ok, coverage of those and of all, and the score."""
    ok, covered, scores, estimates = [], [], [], []
    for seed in range(replicates):
        rng = np.random.default_rng([n, seed])
        X, y = autoregression(rng, n, 3, phi, share), autoregression(rng, n, 1, phi, share)[:, 0]
        result = LinearRegression().partial_fit(X, y).inference()
        ok.append([result.status == status == "ok" for status in result.coefficient_status])
        low, high = np.asarray(result.conf_int(ALPHA)).T
        covered.append((low <= 0.0) & (high >= 0.0))
        scores.append(high - low + 2.0 / ALPHA * (np.maximum(low, 0.0) + np.maximum(-high, 0.0)))
        estimates.append(result.params)
    good, inside = np.array(ok), np.array(covered)
    oracle = 4.0 * norm.pdf(norm.ppf(1.0 - ALPHA / 2.0)) * np.std(estimates, axis=0) / ALPHA
    score = float(np.mean(np.mean(scores, axis=0) / oracle))
    of_ok = f"{inside[good].mean():.3f}" if good.sum() > 100 else "-"
    return f"{good.mean():.2f} | {of_ok} | {inside.mean():.3f} | {score:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=250)
    parser.add_argument("--slow", action="store_true")
    options = parser.parse_args()
    print("noise, n | ok | covered, of those | covered, of all | interval score")
    for phi, share in SLOW if options.slow else SHOCKS:
        name = f"AR({phi})" if phi else "independent"
        for n in SLOW_SIZES if options.slow else SIZES:
            print(f"{name}, {share:.0%}, {n} | {row(n, phi, share, options.replicates)}", flush=True)


if __name__ == "__main__":
    main()

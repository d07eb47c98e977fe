"""How far `Auto.consume` ends from the offline fit on real rows in time order, in HAC standard errors.

    python benchmarks/auto_real_rows.py

Beijing (linear, logistic) and flights (logistic); standardised columns, with the problem's Hessian and from gradients
alone. The offline fit is by Newton steps over all rows; the standard errors are Newey and West's with 500 lags.
"""

from __future__ import annotations

import numpy as np

from halfwidth import Auto, Problem
from halfwidth.problems.row_losses import LINEAR, LOGISTIC
from halfwidth.streams.datasets.frames import features, regression_frame

LAGS = 500
CASES = (("beijing", "log_pm25", "linear"), ("beijing", "high", "logistic"), ("flights", "late", "logistic"))


def offline(X, y, kind):
    """The fit over all rows, and its HAC standard errors."""
    theta = np.zeros(X.shape[1])
    for _ in range(1 if kind == "linear" else 25):
        mean = X @ theta if kind == "linear" else 1.0 / (1.0 + np.exp(-X @ theta))
        weight = np.ones(len(X)) if kind == "linear" else mean * (1.0 - mean)
        A = (X.T * weight) @ X
        theta = theta + np.linalg.solve(A, X.T @ (y - mean))
    mean = X @ theta if kind == "linear" else 1.0 / (1.0 + np.exp(-X @ theta))
    scores = (y - mean)[:, None] * X
    S = scores.T @ scores
    for lag in range(1, LAGS + 1):
        G = scores[lag:].T @ scores[:-lag]
        S += (1.0 - lag / (LAGS + 1.0)) * (G + G.T)
    A_inverse = np.linalg.inv(A)
    return theta, np.sqrt(np.diag(A_inverse @ S @ A_inverse))


def main():
    losses = {"linear": (LINEAR, [1.0]), "logistic": (LOGISTIC, [0.0])}
    for name, target, kind in CASES:
        frame = regression_frame(name)
        X, y = frame[features(name)].to_numpy(float), frame[target].to_numpy(float)
        X = np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / X.std(axis=0)])
        fit, errors = offline(X, y, kind)
        loss, params = losses[kind]
        world = Problem(X.shape[1], **loss._asdict(), params=params, row_size=X.shape[1] + 1)
        for gradient_only in (False, True):
            result = Auto(world, gradient_only=gradient_only).consume(np.column_stack([X, y])).result()
            away = np.abs(result.params - fit) / errors
            ratio = np.median(result.bse / errors)
            how = "gradients only" if gradient_only else "Hessian"
            print(
                f"{name} {kind}, {len(X):,} rows, {how}: median {np.median(away):.2g}, worst {away.max():.2g}; "
                f"standard errors {ratio:.2f} times HAC's; {result.status}"
            )


if __name__ == "__main__":
    main()

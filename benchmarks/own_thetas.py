"""What `auto` says along an optimiser of one's own: `python -m benchmarks.own_thetas`.

Linear and logistic regressions told call by call, 312 calls of 64 rows. Runs that settle, runs that cannot know (theta
far from the root, or frozen), data that respond to theta, and data that are declared not to: the share of runs with
status ok, and the coverage of these at 95%, of the coefficient that is covered least.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import halfwidth as hw

RUNS, CALLS, ROWS = 100, 312, 64
SKEWED, MILD, WIDE = (-3.0, 2.0), (-0.5, 1.0), (-1.0, 1.0, 0.5, -0.5, 0.25)
CASES = {
    "linear, steps 0.2": (SKEWED, 0.2, {}),
    "linear, steps 0.2, 5 coefficients": (WIDE, 0.2, {}),
    "linear, least squares": (SKEWED, None, {}),
    "logistic, steps 2": (MILD, 2.0, {"logistic": True}),
    "feedback 0.5, steps 1": (SKEWED, 1.0, {"share": 0.5}),
    "feedback 0.5, steps 0.2": (SKEWED, 0.2, {"share": 0.5}),
    "feedback 0.5, steps 0.001": (SKEWED, 0.001, {"share": 0.5}),
    "feedback 0.5, frozen": (SKEWED, 0.0, {"share": 0.5}),
    "feedback 0.5, steps 0.2 from the root": (SKEWED, 0.2, {"share": 0.5, "at_root": True}),
    "feedback 0.5, steps 1 from the root": (SKEWED, 1.0, {"share": 0.5, "at_root": True}),
    "feedback 0.5, least squares from the root": (SKEWED, None, {"share": 0.5, "at_root": True}),
}
DECLARED = {
    "linear, steps 0.2": (SKEWED, 0.2, {}),
    "linear, steps 0.2, 5 coefficients": (WIDE, 0.2, {}),
    "linear, least squares": (SKEWED, None, {}),
    "linear, least squares, 5 coefficients": (WIDE, None, {}),
    "logistic, steps 2": (MILD, 2.0, {"logistic": True}),
    "logistic, steps 2, 5 coefficients": (WIDE, 2.0, {"logistic": True}),
    "logistic, Newton": (MILD, None, {"logistic": True}),
    "logistic, Newton, 5 coefficients": (WIDE, None, {"logistic": True}),
    "logistic, skewed, steps 5": (SKEWED, 5.0, {"logistic": True}),
    "logistic, skewed, steps 0.2": (SKEWED, 0.2, {"logistic": True}),
    "logistic, skewed, steps 0.02": (SKEWED, 0.02, {"logistic": True}),
    "logistic, skewed, frozen": (SKEWED, 0.0, {"logistic": True}),
}
"""Here `feedback="none"` says that data cannot respond."""


def told(
    seed: int,
    truth: tuple[float, ...],
    step: float | None,
    *,
    logistic: bool = False,
    share: float = 0.0,
    at_root: bool = False,
    start: tuple[float, ...] | None = None,
    feedback: str | None = None,
    scale: float = 1.0,
) -> tuple[hw.Result, NDArray[np.float64]]:
    """A result, and the truth: steps of step / sqrt(k + 1) from 0 (or `start`), or to the root of all calls so far.

    `share` of the prediction comes back in the target; the Hessian is told `scale` times too large.
    """
    rng, dim = np.random.default_rng(seed), len(truth)
    root = np.array(truth) / (1.0 - share)
    learner, theta = hw.Auto(dim=dim, feedback=feedback), np.zeros(dim)
    if at_root or start is not None:
        theta = root if at_root else np.array(start)
    H_sum, b_sum = np.eye(dim), np.zeros(dim)
    for k in range(CALLS):
        X = np.c_[np.ones(ROWS), rng.standard_normal((ROWS, dim - 1))]
        if logistic:
            p = 1.0 / (1.0 + np.exp(-X @ theta))
            error, weights = p - (rng.random(ROWS) < 1.0 / (1.0 + np.exp(-X @ truth))), p * (1.0 - p)
        else:
            error = X @ theta - (X @ truth + share * (X @ theta) + rng.standard_normal(ROWS))
            weights = np.ones(ROWS)
        H, g = (X.T * weights) @ X, error @ X
        learner.tell(theta=theta, gradients=error[:, None] * X, hessian=scale * H)
        H_sum, b_sum = H_sum + H, b_sum + H @ theta - g
        theta = np.linalg.solve(H_sum, b_sum) if step is None else theta - step / np.sqrt(k + 1.0) * g / ROWS
    return learner.result(), root


def main() -> None:
    """Print the table."""
    print(f"{'':48s}    ok  covers  doubts")
    declared = {f"declared: {name}": (*case[:2], case[2] | {"feedback": "none"}) for name, case in DECLARED.items()}
    for name, (truth, step, settings) in (CASES | declared).items():
        covered, doubts = [], set()
        for seed in range(RUNS):
            result, root = told(seed, truth, step, **settings)
            doubts |= {flag for flag, _ in result.diagnostics.flags}
            if not result.diagnostics.flags:
                covered.append(result.interval().covers(root))
        share = f"{np.mean(covered, axis=0).min():.2f}" if covered else "-"
        print(f"{name:48s} {len(covered) / RUNS:5.2f}  {share:>6s}  {', '.join(sorted(doubts))}", flush=True)


if __name__ == "__main__":
    main()

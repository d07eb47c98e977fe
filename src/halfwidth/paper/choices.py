"""What the paper says, what had to be chosen to run it, and why: one table."""

from __future__ import annotations

CHOICES: tuple[tuple[str, str, str], ...] = (
    (
        "theta_r and theta_0 of the synthetic streams are not given",
        "theta_r = linspace(0, 1, d), theta_0 = 0, features start at 0",
        "theta* then grows with d, as a regression with more signal does; any start is forgotten",
    ),
    (
        "K_0 is the ball of radius 10; how K_q grows is not said",
        "radius 10 + q",
        "doubling lets later excursions become enormous; a linear growth keeps the resets harmless",
    ),
    (
        "squared loss (y - z'theta)^2, without 1/2",
        "gradient 2 (z'theta - y) z, also in the stabilised runs",
        "as printed; Sigma does not depend on it, the transient does",
    ),
    (
        "Algorithm 1 with eta_k = 2 k^-0.5005 and d_k = 10 k^-0.3",
        "`synthetic` runs it as printed, and again *stabilised*: the same steps capped at 1 / curvature of the row, "
        "without truncation; all other targets are stabilised",
        "as printed the first steps explode from about d = 10 on, and the truncation, which the paper does not report, "
        "fires again and again",
    ),
    (
        "theta* and Sigma are estimated from 500 runs",
        "the same, from 500 runs that are not among the 200 scored ones; beside it the exact theta* and Sigma",
        "the mean of many runs shares the bias of the average, so its coverage cannot see it",
    ),
    (
        "coverage and error 'over iterations'",
        "12 checkpoints, evenly spaced in log n from N/100 to N; slopes are fitted over all of them",
        "enough for a slope; each checkpoint costs an eigenvalue problem in d x d",
    ),
    (
        "Boot after Fang et al. and Ramprasad et al.; the law of its weights is not said",
        "weights 0 or 2 with equal chances, interval theta_bar +- 1.96 sd over the copies, capped steps",
        "mean 1 and variance 1, as both sources ask; no weighted step exceeds twice a capped one",
    ),
    (
        "credit: outliers are removed, 9,000 agents drawn at random",
        "incomplete rows, the codes 96 and 98 in past-due counts and rows above the 99.5% quantile of any feature go; "
        "9,000 of the rest by seed 0, standardised; no intercept, labels as they are",
        "codes are not counts; the quantile rule removes the worst values where a rule in deviations keeps them",
    ),
    (
        "credit: logistic loss with a regulariser; no N",
        "0.005 |theta|^2 as in the synthetic logistic regression; N = 20,000",
        "the only regulariser that the paper states",
    ),
    (
        "credit: n_1 random agents move at every row, alpha = 0.5 lambda, lambda = 0.01",
        "each agent moves with probability n_1 / 9,000, independently, towards u + lambda theta",
        "the same on average, with the same theta* and Sigma; a higher score is what agents are after, as printed",
    ),
    (
        "the theorem is asymptotic; the longest runs have 125,000 rows",
        "`rate` goes on to 2^24 rows, 400 replicates, with steps 0.5 k^-a capped at 1 / curvature, half the squared "
        "loss and blocks floor(2 m^(2/(1-a)))",
        "at the paper's n the slope is not yet that of the theorem; eta and the factor of the loss change the "
        "transient, not Sigma",
    ),
)


def choices_table() -> str:
    """The table in Markdown."""
    lines = ["| the paper says | we chose | why |", "|---|---|---|"]
    return "\n".join(lines + [f"| {says} | {chosen} | {why} |" for says, chosen, why in CHOICES])

"""The table of limit laws: what each one is, where its critical values come from, and which class computes them.

A method names its law by a key of `LAWS`; the critical values themselves live in `halfwidth.inference`, nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

from halfwidth.inference import BrownianLaw, FunctionalLaw, LimitLaw, MixtureLaw, NormalLaw, StudentLaw


@dataclass(frozen=True)
class LawRow:
    """One row of the table of limit laws.

    Parameters
    ----------
    name : str
        The key of the law in the table.
    limit : str
        What (estimate - truth) / standard error converges to; Z is a standard normal variable.
    critical : str
        Where the critical values come from.
    source : str
        The citation.
    kind : type of LimitLaw
        The class that computes the critical values.
    """

    name: str
    limit: str
    critical: str
    source: str
    kind: type[LimitLaw]


_ROWS = (
    LawRow(
        "normal",
        "Z; the covariance is taken as known",
        "SciPy's normal quantile",
        "Polyak and Juditsky (1992)",
        NormalLaw,
    ),
    LawRow(
        "t",
        "Student's t: the standard error has as many degrees of freedom as the method says",
        "SciPy's t quantile; Hotelling's T^2 for joint statements",
        "Schmeiser (1982)",
        StudentLaw,
    ),
    LawRow(
        "block plan",
        "Z / sqrt(D), D = sum_j w_j X_j a quadratic functional of a Brownian bridge; w from the block plan at n",
        "computed by quadrature at any level; simulated again in the slow tests",
        "halfwidth; tail integral: Craig (1991)",
        BrownianLaw,
    ),
    LawRow(
        "random scaling",
        "Z / sqrt(integral of a squared Brownian bridge)",
        "the same quadrature with w_j = 6 / (j pi)^2",
        "Lee, Liao, Seo and Shin (2022)",
        BrownianLaw,
    ),
    LawRow(
        "functional",
        "Z / the L1, L4 or L6 norm of a Brownian bridge",
        "tabulated from a million simulated bridges, to level 0.999; simulated again in the slow tests",
        "Li, Liang and Zhang (2023)",
        FunctionalLaw,
    ),
    LawRow(
        "time-uniform",
        "below the normal-mixture boundary at all rows together",
        "closed form",
        "Robbins (1970); Waudby-Smith et al. (2021)",
        MixtureLaw,
    ),
    LawRow(
        "hull",
        "none: each run is as likely above the truth as below; the hull misses with a binomial probability",
        "binomial tail; tests use t with runs - 1 degrees of freedom",
        "Kuchibhotla, Balakrishnan and Wasserman (2024)",
        StudentLaw,
    ),
)
LAWS: dict[str, LawRow] = {row.name: row for row in _ROWS}

"""Problems: a loss, a source of rows (independent, Markov, state-dependent), and the truth where it is known."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from halfwidth.errors import InputError, UnknownName
from halfwidth.problems.adaptive_linear import adaptive_linear
from halfwidth.problems.autoregressive import ar_logistic, ar_poisson
from halfwidth.problems.base import Problem, Truth
from halfwidth.problems.control.actor_critic import actor_critic
from halfwidth.problems.control.q_learning import q_learning
from halfwidth.problems.control.temporal_difference import frozen_lake_td, garnet_td, random_walk_td
from halfwidth.problems.feature_table import table_linear, table_logistic, table_poisson
from halfwidth.problems.linear_streams import ar_linear, iid_linear, seed_linear
from halfwidth.problems.location_games import multi_player_game, pricing
from halfwidth.problems.location_scale import location_scale
from halfwidth.problems.missing_normal import missing_normal
from halfwidth.problems.mixed_logistic import mixed_logistic
from halfwidth.problems.performative_ar import performative_ar
from halfwidth.problems.performative_mean import performative_mean
from halfwidth.problems.quantile_linear import quantile_linear
from halfwidth.problems.rotating_game import rotating_game
from halfwidth.problems.seed_logistic import seed_logistic
from halfwidth.problems.strategic import strategic_logistic
from halfwidth.problems.strategic_credit import strategic_credit
from halfwidth.problems.swap_game import swap_game
from halfwidth.problems.troubled import troubled_linear, troubled_logistic

__all__ = ["PROBLEMS", "Problem", "Truth", "problem", "problem_settings"]

PROBLEMS: dict[str, Callable[..., Problem]] = {
    "iid-linear": iid_linear,
    "ar-linear": ar_linear,
    "seed-linear": seed_linear,
    "seed-logistic": seed_logistic,
    "ar-logistic": ar_logistic,
    "ar-poisson": ar_poisson,
    "performative-mean": performative_mean,
    "swap-game": swap_game,
    "strategic-logistic": strategic_logistic,
    "strategic-credit": strategic_credit,
    "location-scale": location_scale,
    "multi-player-game": multi_player_game,
    "pricing": pricing,
    "garnet-td": garnet_td,
    "random-walk-td": random_walk_td,
    "frozen-lake-td": frozen_lake_td,
    "q-learning": q_learning,
    "actor-critic": actor_critic,
    "missing-normal": missing_normal,
    "mixed-logistic": mixed_logistic,
    "adaptive-linear": adaptive_linear,
    "rotating-game": rotating_game,
    "performative-ar": performative_ar,
    "troubled-linear": troubled_linear,
    "troubled-logistic": troubled_logistic,
    "quantile-linear": quantile_linear,
    "table-linear": table_linear,
    "table-logistic": table_logistic,
    "table-poisson": table_poisson,
}


def problem_settings(name: str) -> dict[str, Any]:
    """Return the settings of a built-in problem.

    Parameters
    ----------
    name : str
        The name of the problem.

    Returns
    -------
    dict
        The defaults by name.
    """
    if name not in PROBLEMS:
        raise UnknownName.among("problem", name, PROBLEMS)
    own = {key: parameter.default for key, parameter in inspect.signature(PROBLEMS[name]).parameters.items()}
    return {**own, "theta_0": None}


def problem(name: str, /, *, theta_0: ArrayLike | None = None, **settings: Any) -> Problem:
    """Build one of the built-in problems, with its exact truth.

    Parameters
    ----------
    name : str
        The name of the problem; ``halfwidth problems`` lists them all with their settings.
    theta_0 : array_like of shape (d,), optional
        Where learners start; the problem's own start otherwise.
    **settings : Any
        The settings of this problem. Those that several share: `dim`, the number of coefficients; `epsilon`, how
        strongly the data respond to the deployed parameter (0: not at all); `rho`, how fast; `phi` and `psi`, the
        autocorrelation of features and noise; `noise`, its standard deviation; `theta_r`, the parameter that generates
        the data.

    Returns
    -------
    Problem
        The problem; its `theta_star` and `sigma` are the truth that a study scores intervals against.

    Raises
    ------
    UnknownName
        If there is no problem of that name.
    InputError
        If it has no such setting, or a setting breaks its rule.

    Examples
    --------
    >>> import halfwidth as hw
    >>> problem = hw.problem("performative-mean", dim=2, epsilon=0.5)
    >>> problem.theta_star.tolist(), problem.sigma.tolist()
    ([2.0, 2.0], [[4.0, 0.0], [0.0, 4.0]])
    """
    known = problem_settings(name)
    for key in settings:
        if key not in known:
            raise InputError(f"problem {name!r} has no setting {key!r}; it has: {', '.join(known)}")
    built = PROBLEMS[name](**settings)
    return built if theta_0 is None else replace(built, theta_0=theta_0)

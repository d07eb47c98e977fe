"""Losses of a linear predictor: loss(eta, y) with eta = offset + x'theta; used by problems and by models.

| family   | loss(eta, y)                              | slope d/d eta   | weight d2/d eta2     | mean     |
|----------|-------------------------------------------|-----------------|----------------------|----------|
| linear   | e^2 / 2                                   | -e              | 1                    | eta      |
| logistic | log(1 + exp(eta)) - y eta                 | s(eta) - y      | s(eta) (1 - s(eta))  | s(eta)   |
| multinomial | log sum exp(eta) - eta_y               | p - 1{y = c}    | diag(p) - p p'       | p        |
| poisson  | exp(eta) - y eta                          | exp(eta) - y    | exp(eta)             | exp(eta) |
| gamma    | y / exp(eta) + eta                        | 1 - y / exp(eta) | y / exp(eta)        | exp(eta) |
| negative-binomial | (y + 1/a) log(1 + a m) - y eta | (m - y) / (1 + a m) | m (1 + a y) / (1 + a m)^2 | m |
| quantile | e tau + h phi(e/h) - e Phi(-e/h)          | Phi(-e/h) - tau | phi(e/h) / h         | eta      |
| huber    | e^2 / 2 if abs(e) <= t, else t abs(e) - t^2 / 2 | -clip(e, -t, t) | 1{abs(e) <= t} | eta      |

with e = y - eta, s the logistic function, phi and Phi the normal density and distribution, p the
probabilities of classes, m =
exp(eta), a the dispersion alpha, tau the quantile, h the bandwidth and t the threshold. A new family is a new
file here and an entry in `FAMILIES`.
"""

from __future__ import annotations

from typing import Any

from halfwidth.errors import UnknownName
from halfwidth.families.base import Loss
from halfwidth.families.gamma import Gamma
from halfwidth.families.huber import Huber
from halfwidth.families.linear import Linear
from halfwidth.families.logistic import Logistic
from halfwidth.families.multinomial import Multinomial
from halfwidth.families.negative_binomial import NegativeBinomial
from halfwidth.families.poisson import Poisson
from halfwidth.families.quantile import Quantile

__all__ = ["ALIASES", "FAMILIES", "Loss", "make_loss"]

FAMILIES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (Linear, Logistic, Multinomial, Poisson, Gamma, NegativeBinomial, Quantile, Huber)
}
ALIASES = {"gaussian": "linear", "binomial": "logistic"}


def make_loss(family: str, **options: Any) -> Loss:
    """Return the loss of a family by its name.

    Parameters
    ----------
    family : str
        A key of `FAMILIES`, or ``"gaussian"`` or ``"binomial"``.
    **options : Any
        What the family takes: `quantile` for ``"quantile"``, `alpha` for ``"negative-binomial"``,
        `classes` for ``"multinomial"``.

    Returns
    -------
    Loss
        The loss.

    Raises
    ------
    UnknownName
        If there is no such family.

    Examples
    --------
    >>> make_loss("logistic").mean(np.array([0.0])).tolist()
    [0.5]
    """
    name = ALIASES.get(family, family)
    if name not in FAMILIES:
        raise UnknownName.among("family", str(family), [*FAMILIES, *ALIASES])
    return FAMILIES[name](**options)

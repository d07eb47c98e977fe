"""Regression in one pass with scikit-learn's conventions and statsmodels' results."""

from halfwidth.models.base import StreamModel
from halfwidth.models.classifier import LogisticRegression
from halfwidth.models.dispersed import GammaRegressor, NegativeBinomialRegressor
from halfwidth.models.fit import fit
from halfwidth.models.multinomial import MultinomialRegression
from halfwidth.models.performative import PerformativeResult, performative
from halfwidth.models.registry import MODELS, load
from halfwidth.models.regressors import HuberRegressor, LinearRegression, PoissonRegressor, QuantileRegressor
from halfwidth.models.results import RegressionResult
from halfwidth.models.run_status import FitWarning
from halfwidth.models.strategic import strategic
from halfwidth.models.strategic_result import StrategicResult

__all__ = [
    "MODELS",
    "FitWarning",
    "GammaRegressor",
    "HuberRegressor",
    "LinearRegression",
    "LogisticRegression",
    "MultinomialRegression",
    "NegativeBinomialRegressor",
    "PerformativeResult",
    "PoissonRegressor",
    "QuantileRegressor",
    "RegressionResult",
    "StrategicResult",
    "StreamModel",
    "fit",
    "load",
    "performative",
    "strategic",
]

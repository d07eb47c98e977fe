"""Every loss: its slope and weight are its derivatives, and its root and score agree in the mean."""

import numpy as np
import pytest

from family_targets import DRAWS, FIXED, drawn
from halfwidth.errors import InputError, UnknownName
from halfwidth.families import FAMILIES, make_loss
from halfwidth.families.quantile import Quantile
from halfwidth.models import MODELS
from halfwidth.models.model_state import CLASSES

ETA = np.linspace(-2.0, 2.0, 41)
SCALAR = [
    family for family in FAMILIES if make_loss(family).equations == 1
]  # tests/unit/test_multinomial.py has the rest


@pytest.mark.parametrize("family", SCALAR)
def test_slope_and_weight_are_derivatives(family):
    loss = make_loss(family)
    y = loss.mean(ETA) if FIXED[family] is None else np.full_like(ETA, FIXED[family])
    h = 1e-5
    slope = (loss.value(ETA + h, y) - loss.value(ETA - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.slope(ETA, y), slope, atol=1e-8)
    inside = np.abs(np.abs(y - ETA) - 1.345) > 1e-3  # Huber's slope has corners
    weight = (loss.slope(ETA + h, y) - loss.slope(ETA - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.weight(ETA, y)[inside], weight[inside], atol=1e-6)


@pytest.mark.parametrize("family", SCALAR)
def test_mean_slope_is_the_derivative_of_the_mean(family):
    loss = make_loss(family)
    h = 1e-5
    np.testing.assert_allclose(loss.mean_slope(ETA), (loss.mean(ETA + h) - loss.mean(ETA - h)) / (2 * h), atol=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_drawn_targets_are_allowed(family):
    loss = make_loss(family)
    assert loss.allows(drawn(family, np.random.default_rng(0), ETA)).all()
    assert not loss.allows(np.array([np.nan, np.inf])).any()


def test_every_family_has_a_model_a_name_in_states_and_targets_in_the_tests():
    assert {model.__name__: family for family, model in MODELS.items()} == CLASSES
    assert set(MODELS) == set(FAMILIES) == set(DRAWS) == set(FIXED)


def test_the_smooth_root_of_a_quantile_is_nearly_unbiased():
    """Against the normal law: bias O(h^4) for `root`, O(h^2) for `slope` (the control)."""
    from scipy.special import ndtr, ndtri

    loss = Quantile(0.8)
    loss.bandwidth = 0.3
    y = np.linspace(-9.0, 9.0, 200_001)
    density = np.exp(-0.5 * y**2) / np.sqrt(2 * np.pi) * (y[1] - y[0])
    at = np.full_like(y, ndtri(0.8))
    assert abs(loss.score(at, y) @ density) < 1e-4
    assert abs(loss.root(at, y) @ density) < 2e-4
    assert abs(loss.slope(at, y) @ density) > 5e-3
    assert ndtr(at[0]) == pytest.approx(0.8)


def test_names_and_settings_are_checked():
    assert make_loss("gaussian").name == "linear"
    assert make_loss("binomial").name == "logistic"
    with pytest.raises(UnknownName, match="logistic"):
        make_loss("logit")
    with pytest.raises(InputError, match="quantile must lie strictly between 0 and 1"):
        make_loss("quantile", quantile=1.5)

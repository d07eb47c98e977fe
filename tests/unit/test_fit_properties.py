"""What must not matter to a regression: units and origins of columns, weights' unit, chunks, labels of groups."""

import warnings
from itertools import compress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from family_targets import drawn
from halfwidth.models import MODELS

FEW = settings(max_examples=6)
ROWS = {"newton": 300, "sgd": 1_600}
ENGINES = [(family, "newton") for family in MODELS] + [
    (family, "sgd") for family in ("linear", "logistic", "poisson", "quantile", "huber")
]
seeds = st.integers(0, 2**32 - 1)
exponents = st.floats(-6.0, 6.0)


def draw(family, rows, seed):
    """Two columns, targets, weights and labels of 60 groups."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 2))
    eta = 0.3 + X @ [0.6, -0.3]
    if family == "logistic":
        y = (rng.random(rows) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    elif family in ("poisson", "negative-binomial"):
        y = rng.poisson(np.exp(eta) * (rng.gamma(2.0, 0.5, rows) if family != "poisson" else 1.0)).astype(float)
    elif family == "gamma":
        y = np.exp(eta) * rng.gamma(2.0, 0.5, rows)
    elif family == "multinomial":
        y = drawn(family, rng, eta)
    else:
        y = eta + rng.standard_t(4, rows)
    return X, y, rng.random(rows) + 0.2, rng.integers(0, 60, rows)


def learned(family, engine, X, y, **options):
    model = MODELS[family](engine=engine).partial_fit(X, y, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.inference()


@pytest.mark.parametrize(("family", "engine"), ENGINES)
@FEW
@given(seeds, exponents, exponents, st.floats(-1e6, 1e6))
def test_units_and_origins_of_columns(family, engine, seed, first, second, shift):
    X, y, *_ = draw(family, ROWS[engine], seed)
    scale = np.array([10.0**first, -(10.0**second)])
    plain = learned(family, engine, X, y)
    moved = learned(family, engine, scale * (X + np.array([shift, 0.0])), y)
    params, errors = (
        [values.reshape(-1, 3)[:, 1:] for values in pair]
        for pair in ((moved.params, plain.params), (moved.bse, plain.bse))
    )
    np.testing.assert_allclose(params[0] * scale, params[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(errors[0] * np.abs(scale), errors[1], rtol=1e-5)
    slopes = [name.rpartition(":")[2] != "Intercept" for name in plain.names]
    assert list(compress(moved.coefficient_status, slopes)) == list(compress(plain.coefficient_status, slopes))


@pytest.mark.parametrize(("family", "engine"), ENGINES)
@FEW
@given(seeds, exponents)
def test_the_unit_of_weights(family, engine, seed, exponent):
    X, y, weight, _ = draw(family, ROWS[engine], seed)
    plain = learned(family, engine, X, y, sample_weight=weight)
    scaled = learned(family, engine, X, y, sample_weight=10.0**exponent * weight)
    np.testing.assert_allclose(scaled.params, plain.params, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(scaled.bse, plain.bse, rtol=1e-8)
    assert scaled.coefficient_status == plain.coefficient_status


@pytest.mark.parametrize(("family", "engine"), ENGINES)
@FEW
@given(seeds, st.lists(st.integers(1, 1_599), min_size=1, max_size=6))
def test_where_rows_are_cut_into_chunks(family, engine, seed, places):
    X, y, weight, _ = draw(family, ROWS[engine], seed)
    whole = learned(family, engine, X, y, sample_weight=weight)
    model = MODELS[family](engine=engine)
    classes = {"classes": np.unique(y)} if family in ("logistic", "multinomial") else {}
    for part in np.split(np.arange(len(X)), sorted({place for place in places if place < len(X)})):
        model.partial_fit(X[part], y[part], sample_weight=weight[part], **classes)
    cut = model.inference()
    exact = 0.0 if engine == "newton" else 1e-12  # sums of SGD's watchers may round by where they are cut
    np.testing.assert_allclose(cut.params, whole.params, rtol=exact)
    np.testing.assert_allclose(cut.bse, whole.bse, rtol=exact)


@pytest.mark.parametrize("family", MODELS)
@FEW
@given(seeds, st.sampled_from(["text", "long", "real", "shuffled"]))
def test_labels_of_groups(family, seed, kind):
    X, y, _, groups = draw(family, 600, seed)
    names = np.random.default_rng(seed).permutation(60)
    labels = {
        "text": np.array([f"group {name}" for name in names])[groups],
        "long": np.uint64(2**63) + names.astype(np.uint64)[groups],
        "real": names[groups] + 0.5,
        "shuffled": names[groups],
    }[kind]
    plain = learned(family, "newton", X, y, groups=groups)
    named = learned(family, "newton", X, y, groups=labels)
    np.testing.assert_allclose(named.params, plain.params, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(named.bse, plain.bse, rtol=1e-8)
    assert named.basis.groups == plain.basis.groups == (60, True)

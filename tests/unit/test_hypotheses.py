"""Linear hypotheses written as text."""

import numpy as np
import pytest

from halfwidth.errors import InputError
from halfwidth.inference.hypotheses import parse_hypotheses

NAMES = ["Intercept", "x", "xx", "z", "C(carrier)[T.AA]", "log(x)", "a-b"]


def unit(name):
    return np.eye(len(NAMES))[NAMES.index(name)]


@pytest.mark.parametrize(
    ("text", "R", "r"),
    [
        ("x", [unit("x")], [0.0]),
        ("x = 0.5", [unit("x")], [0.5]),
        ("x - z", [unit("x") - unit("z")], [0.0]),
        ("x = z", [unit("x") - unit("z")], [0.0]),
        ("x = z = 0", [unit("x") - unit("z"), unit("z")], [0.0, 0.0]),
        ("2 * x + z / 4 = 1e1", [2 * unit("x") + unit("z") / 4], [10.0]),
        ("-(x - 3) * 2 = z", [-2 * unit("x") - unit("z")], [-6.0]),
        ("x = 1, z = 2", [unit("x"), unit("z")], [1.0, 2.0]),
        ("xx", [unit("xx")], [0.0]),
        ("C(carrier)[T.AA] - log(x) = 0", [unit("C(carrier)[T.AA]") - unit("log(x)")], [0.0]),
        ("a-b", [unit("a-b")], [0.0]),
        ("  x=.5 ", [unit("x")], [0.5]),
        ("0.5 = x", [-unit("x")], [-0.5]),
    ],
)
def test_a_text_is_rows_of_a_linear_hypothesis(text, R, r):
    found = parse_hypotheses(text, NAMES)
    np.testing.assert_allclose(found.R, R)
    np.testing.assert_allclose(found.r, r)


def test_several_texts_and_their_labels():
    found = parse_hypotheses(["x = 1", "x = z = 0"], NAMES)
    assert found.labels == ("x = 1", "x = z = 0 (1)", "x = z = 0 (2)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("w = 1", "no coefficient named 'w'"),
        ("x * z", "a product of coefficients is not linear"),
        ("x / z", "only a number other than 0 can divide"),
        ("x / 0", "only a number other than 0 can divide"),
        ("x z", "an operator, '=' or ',' is missing"),
        ("x +", "a coefficient or a number is missing"),
        ("(x", "a bracket is not closed"),
        ("1 = 2", "is about no coefficient"),
        ("x ^ 2", "unknown sign"),
        ("", "hypotheses must name at least one"),
        ("__import__('os')", "no coefficient named '__import__'"),
    ],
)
def test_what_is_not_linear_is_named(text, message):
    with pytest.raises(InputError) as caught:
        parse_hypotheses(text, NAMES)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["1e400 * x", "1e200 * 1e200 * x", "x = 1e400", "x - 1e101 * z", "x / 1e-300 = 1"])
def test_numbers_beyond_all_numbers_are_refused(text):
    with pytest.raises(InputError, match=r"must lie between -1e\+100 and 1e\+100"):
        parse_hypotheses(text, ["x", "z"])

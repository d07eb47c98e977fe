"""Exceptions and the checks at the border."""

import pickle

import numpy as np
import pytest

from halfwidth import errors
from halfwidth.checks import check_count, check_positive, check_vector
from halfwidth.errors import (
    BadRow,
    CannotPool,
    Diverged,
    HalfwidthError,
    InputError,
    Interrupted,
    MissingExtra,
    NotEnoughData,
    NotIdentified,
    UnknownName,
)


def test_every_exception_is_ours_and_bad_input_is_a_value_error():
    ours = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert all(issubclass(error, HalfwidthError) for error in ours)
    assert all(issubclass(error, ValueError) for error in (InputError, UnknownName, NotEnoughData, CannotPool))
    assert issubclass(Diverged, ArithmeticError)
    assert issubclass(MissingExtra, ImportError)


def test_messages_carry_argument_rule_value_and_advice():
    assert str(InputError.of("level", "lie in (0, 1)", 2)) == "level must lie in (0, 1); got 2"
    assert "needs at least 9 rows; 3 were seen" in str(NotEnoughData.rows("an interval", 3, 9))
    assert "pip install 'halfwidth[plots]'" in str(MissingExtra.named("matplotlib", "plots"))


def test_an_unknown_name_lists_the_known_ones_and_suggests_the_nearest():
    message = str(UnknownName.among("problem", "seed-liner", ["seed-linear", "iid-linear"]))
    assert "known: iid-linear, seed-linear." in message
    assert "Did you mean 'seed-linear'?" in message
    assert "Did you mean" not in str(UnknownName.among("problem", "zzz", ["seed-linear"]))


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", None])
def test_a_count_is_a_whole_number_of_at_least_one(value):
    with pytest.raises(InputError, match="dim must be an integer of at least 1"):
        check_count("dim", value)


def test_counts_may_be_numpy_integers():
    assert check_count("dim", np.int64(3)) == 3
    assert check_count("steps", 0, at_least=0) == 0


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_positive_number_is_finite_and_above_zero(value):
    with pytest.raises(InputError, match="eta must be positive and finite"):
        check_positive("eta", value)


@pytest.mark.parametrize("values", [[1.0], [1.0, np.nan], [[1.0, 2.0]], [np.inf, 0.0], 1.0])
def test_a_vector_has_its_length_and_finite_entries(values):
    with pytest.raises(InputError, match="theta_0 must be 2 finite numbers"):
        check_vector("theta_0", values, 2)


def test_a_checked_vector_is_a_copy():
    given = np.array([1.0, 2.0])
    checked = check_vector("theta_0", given, 2)
    checked[0] = 7.0
    assert given[0] == 1.0


@pytest.mark.parametrize(
    "error",
    [
        NotIdentified("collinear", "collinear-columns"),
        Interrupted("stopped", 2),
        BadRow.at("a.csv", 3, "y", "missing", "no value", "give one"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_pickle_of_an_exception_keeps_its_fields(error):
    """Workers send exceptions back by pickle."""
    other = pickle.loads(pickle.dumps(error))
    assert type(other) is type(error)
    assert (other.args, vars(other)) == (error.args, vars(error))

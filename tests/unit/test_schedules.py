"""Step sizes, thresholds, truncation sets and block plans."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins
from halfwidth.errors import InputError
from halfwidth.schedules import BlockPlan, ConstantStep, PowerStep, Threshold, TruncationSets

K = np.arange(1, 50)


def test_power_step_is_eta_times_k_plus_offset_to_the_minus_a():
    expected = [2.0 * (k + 3.0) ** -0.7 for k in range(1, 50)]
    np.testing.assert_allclose(PowerStep(2.0, 0.7, 3.0)(K), expected, rtol=1e-14)


def test_constant_step_is_constant_and_says_that_it_is_outside_the_theory():
    assert ConstantStep(0.3)(K).tolist() == [0.3] * 49
    assert not ConstantStep(0.3).within_theory
    assert PowerStep().within_theory


def test_threshold_is_D_k_to_the_minus_b_and_infinite_before_the_first_row():
    values = Threshold(10.0, 0.3)(np.array([0, 1, 32]))
    assert values[0] == np.inf
    np.testing.assert_allclose(values[1:], [10.0, 10.0 * 32**-0.3], rtol=1e-14)


def test_truncation_sets_grow_as_stated():
    assert TruncationSets(10.0, 0.5)(np.array([0, 1, 4])).tolist() == [10.0, 10.5, 12.0]
    assert TruncationSets(10.0, 2.0, "geometric")(np.array([0, 1, 4])).tolist() == [10.0, 20.0, 160.0]


def test_geometric_truncation_sets_end_at_infinity_without_a_warning():
    assert TruncationSets(10.0, 2.0, "geometric")(np.array([5000])).tolist() == [np.inf]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PowerStep(0.0), "eta must be positive and finite; got 0.0"),
        (lambda: PowerStep(-1.0), "eta must be positive"),
        (lambda: PowerStep(float("nan")), "eta must be positive"),
        (lambda: PowerStep(float("inf")), "eta must be positive"),
        (lambda: PowerStep(1.0, 0.5), "step exponent a must satisfy 1/2 < a < 1; got 0.5"),
        (lambda: PowerStep(1.0, 1.0), "1/2 < a < 1"),
        (lambda: PowerStep(1.0, float("nan")), "1/2 < a < 1"),
        (lambda: PowerStep(1.0, 0.6, -1.0), "offset k0 must be at least 0 and finite; got -1.0"),
        (lambda: PowerStep(1.0, 0.6, float("inf")), "offset k0 must be at least 0"),
        (lambda: ConstantStep(0.0), "eta must be positive"),
        (lambda: Threshold(0.0), "threshold scale D must be positive"),
        (lambda: Threshold(10.0, 0.375), "threshold exponent b must satisfy 0 < b < 3/8; got 0.375"),
        (lambda: Threshold(10.0, 0.0), "0 < b < 3/8"),
        (lambda: TruncationSets(0.0), "radius must be positive"),
        (lambda: TruncationSets(1.0, -1.0), "growth must be positive"),
        (lambda: TruncationSets(1.0, 1.0, "cubic"), "kind must be 'linear' or 'geometric'; got 'cubic'"),
        (lambda: TruncationSets(1.0, 1.0, "geometric"), "growth must exceed 1 when kind='geometric'"),
        (lambda: BlockPlan(0.0, 4.0), "block constant c must be positive"),
        (lambda: BlockPlan(2.0, -1.0), "block exponent beta must be positive"),
        (lambda: BlockPlan(2.0, 1.0), "block exponent beta must exceed 1"),
        (lambda: BlockPlan(0.05, 4.0), "block starts must strictly increase.*a_2 = 0 comes after a_1 = 1"),
        (lambda: BlockPlan(0.3, 2.1), "a_2 = 1 comes after a_1 = 1.*choose a larger c"),
        (lambda: BlockPlan.for_step(0.5), "1/2 < a < 1"),
        (lambda: BlockPlan.for_step(0.6, 2.0, 2.5), r"beta must exceed 1/\(1-a\) = 2.5 for step exponent a=0.6"),
        (lambda: BlockPlan.for_step(0.6, 2.0, float("nan")), r"beta must exceed 1/\(1-a\)"),
        (lambda: BlockPlan.for_step(0.999), "beta must leave the first block starts finite; got 199"),
        (lambda: BlockPlan(1e-300, 1.5), "block starts must strictly increase"),
        (lambda: BlockPlan(1e308, 4.0), "must leave the first block starts finite"),
    ],
)
def test_a_broken_condition_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_the_plan_for_a_step_has_exponent_two_over_one_minus_a():
    assert BlockPlan.for_step(0.6) == BlockPlan(2.0, 2.0 / 0.4)
    assert BlockPlan.for_step(0.6, 3.0, 2.6) == BlockPlan(3.0, 2.6)


def test_the_papers_plan_has_twelve_blocks_at_fifty_thousand():
    assert BlockPlan.for_step(0.505).blocks_up_to(50_000) == 12


@given(constant=st.floats(0.5, 50.0), exponent=st.floats(2.0, 12.0), n=st.integers(1, 20_000))
def test_block_starts_are_those_of_the_definition(constant, exponent, n):
    plan = BlockPlan(constant, exponent)
    starts = twins.block_starts(constant, exponent, n)
    assert plan.starts_up_to(n).tolist() == starts
    assert plan.blocks_up_to(n) == len(starts)
    assert (np.diff(starts) > 0).all()


@given(constant=st.floats(0.01, 5.0), exponent=st.floats(1.05, 5.0))
def test_a_plan_is_refused_exactly_when_its_starts_do_not_increase(constant, exponent):
    starts = np.array([1] + [np.floor(constant * float(m) ** exponent) for m in range(2, 3000)])
    increasing = bool((np.diff(starts) > 0).all())
    try:
        BlockPlan(constant, exponent)
    except InputError:
        assert not increasing
    else:
        assert increasing

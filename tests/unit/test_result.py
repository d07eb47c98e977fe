"""Intervals, the result object, Wald tests, ellipsoids, the summary and the diagnostics."""

import json
import math

import numpy as np
import pytest
import scipy.signal

from halfwidth import OverlappingBatchMeans
from halfwidth.errors import InputError, NotEnoughData
from halfwidth.inference import BrownianLaw, Diagnostics, Interval, NormalLaw, Result
from halfwidth.inference.diagnostics import batch_diagnostics

PARAMS = np.array([1.0, -2.0, 0.5])
COVARIANCE = np.array([[4.0, 1.0, 0.0], [1.0, 9.0, -2.0], [0.0, -2.0, 16.0]])
N = 400
T_LAW = BrownianLaw((0.1,) * 10)  # Student's t with ten degrees of freedom
T_95 = 2.2281388519649385


def result(law=None, covariance=COVARIANCE, **changes):
    settings = {"method": "a-method", "diagnostics": Diagnostics(10.0), **changes}
    return Result(PARAMS, covariance, N, law or NormalLaw(), **settings)


def test_every_coordinate_is_estimate_plus_minus_critical_times_std_error():
    interval = result(T_LAW).interval(level=0.95)
    np.testing.assert_allclose(interval.std_error, [0.1, 0.15, 0.2], rtol=1e-14)
    assert interval.critical == pytest.approx(T_95, rel=1e-9)
    np.testing.assert_allclose(interval.lower, PARAMS - T_95 * np.array([0.1, 0.15, 0.2]), rtol=1e-9)
    np.testing.assert_allclose(interval.upper, PARAMS + T_95 * np.array([0.1, 0.15, 0.2]), rtol=1e-9)
    assert (interval.n, interval.level, interval.method, interval.status) == (N, 0.95, "a-method", "ok")
    assert interval.degrees_of_freedom == pytest.approx(10.0)


def test_one_direction_gives_floats_and_several_give_arrays():
    v = np.array([1.0, 2.0, -1.0])
    one = result().interval(v)
    assert isinstance(one.estimate, float)
    assert isinstance(one.lower, float)
    assert one.estimate == pytest.approx(v @ PARAMS)
    assert one.std_error == pytest.approx(math.sqrt(v @ COVARIANCE @ v / N))
    many = result().interval([v, [0.0, 1.0, 0.0]])
    assert many.estimate.shape == (2,)
    assert many.lower[0] == pytest.approx(one.lower)
    assert many.upper[1] == pytest.approx(result().interval().upper[1])


@pytest.mark.parametrize(
    "direction", [np.ones(2), np.ones((2, 2)), np.ones((1, 1, 3)), 1.0, [np.nan, 0.0, 0.0], [np.inf, 0.0, 0.0]]
)
def test_a_bad_direction_is_refused(direction):
    with pytest.raises(InputError, match=r"direction must be finite, of shape \(3,\) or \(m, 3\)"):
        result().interval(direction)


def test_width_and_coverage():
    interval = Interval(1.0, 0.5, 1.5, 0.25, 0.95, 10, "m", 2.0, math.inf)
    assert (interval.width, interval.half_width) == (1.0, 0.5)
    assert interval.covers(0.5) is True
    assert interval.covers(1.6) is False
    several = result().interval()
    assert several.covers(PARAMS).tolist() == [True, True, True]
    assert several.covers([1.0, 5.0, 0.5]).tolist() == [True, False, True]


def test_an_interval_becomes_json_and_text():
    text = json.dumps(result().interval().to_dict(), allow_nan=False)
    assert json.loads(text)["degrees_of_freedom"] is None
    assert json.loads(text)["estimate"] == PARAMS.tolist()
    assert json.loads(json.dumps(result(T_LAW).interval([1, 0, 0]).to_dict()))["estimate"] == 1.0
    flagged = result(diagnostics=Diagnostics(1.0, flags=(("short-run", "run longer"),)))
    assert "95% by a-method, n = 400 (short-run: run longer)" in str(flagged.interval())
    assert str(result().interval(level=0.9)).count("\n") == 3


def test_the_statsmodels_vocabulary():
    r = result(T_LAW)
    np.testing.assert_allclose(r.bse, np.sqrt(np.diag(COVARIANCE) / N))
    np.testing.assert_allclose(r.tvalues, PARAMS / r.bse)
    np.testing.assert_allclose(r.cov_params(), COVARIANCE / N)
    np.testing.assert_allclose(r.conf_int(0.1)[:, 0], r.interval(level=0.9).lower)
    np.testing.assert_allclose(r.conf_int(0.1)[:, 1], r.interval(level=0.9).upper)
    np.testing.assert_allclose(r.pvalues, T_LAW.two_sided_tail(r.tvalues))


def test_an_interval_excludes_zero_exactly_when_the_p_value_says_so():
    r = result(T_LAW)
    for j, p in enumerate(r.pvalues):
        direction = np.eye(3)[j]
        assert not r.interval(direction, level=1 - p - 1e-9).covers(0.0)
        assert r.interval(direction, level=1 - p + 1e-9).covers(0.0)


def test_a_diagonal_result_answers_about_coordinates_only():
    full, diagonal = result(), result(covariance=np.diag(COVARIANCE))
    np.testing.assert_allclose(diagonal.interval().lower, full.interval().lower)
    assert diagonal.interval([0.0, -2.0, 0.0]).std_error == pytest.approx(full.interval([0.0, -2.0, 0.0]).std_error)
    np.testing.assert_allclose(diagonal.interval(np.eye(3)).upper, full.interval().upper)
    with pytest.raises(InputError, match="single coordinate under view='diagonal'"):
        diagonal.interval([1.0, 1.0, 0.0])
    for ask in (diagonal.cov_params, lambda: diagonal.wald_test(np.eye(3)), diagonal.ellipsoid):
        with pytest.raises(InputError, match="needs covariances; view='diagonal' keeps variances only"):
            ask()


def test_the_wald_statistic_is_the_quadratic_form():
    R, r = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]), np.array([-0.8, 0.9])
    gap = R @ PARAMS - r
    expected = N * gap @ np.linalg.inv(R @ COVARIANCE @ R.T) @ gap
    test = result().wald_test(R, r)
    assert test.statistic == pytest.approx(expected)
    assert test.p_value == pytest.approx(math.exp(-expected / 2), rel=1e-9)  # chi-square with two degrees of freedom
    assert (test.dimensions, test.law) == (2, "normal")
    assert "F(2, inf) = 0.5403, p = 0.583" in str(test)


def test_a_wald_test_in_one_direction_agrees_with_the_interval():
    r = result(T_LAW)
    assert r.wald_test([0.0, 0.0, 1.0]).p_value == pytest.approx(r.pvalues[2], rel=1e-9)


def test_the_calibrated_wald_test_is_more_careful_than_the_chi_square():
    R = np.eye(3)[:2]
    r = PARAMS[:2] + 0.2
    assert result(T_LAW).wald_test(R, r).p_value > result().wald_test(R, r).p_value


def test_dependent_directions_are_refused():
    with pytest.raises(InputError, match="linearly independent"):
        result().wald_test([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    with pytest.raises(InputError, match="linearly independent"):
        result().ellipsoid([[0.0, 0.0, 0.0]])


def test_badly_scaled_directions_are_not_dependent():
    assert result().wald_test([[1e9, 0.0, 0.0], [0.0, 1e-9, 0.0]]).statistic == pytest.approx(
        result().wald_test(np.eye(3)[:2]).statistic
    )


@pytest.mark.parametrize("r", [[1.0, 2.0, 3.0], [np.nan, 0.0], np.inf, np.ones((2, 2))])
def test_a_bad_right_hand_side_is_refused(r):
    with pytest.raises(InputError, match="r must be"):
        result().wald_test(np.eye(3)[:2], r)


def test_the_ellipsoid_holds_exactly_the_points_that_the_wald_test_keeps():
    r, R, level = result(T_LAW), np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), 0.9
    ellipsoid = r.ellipsoid(R, level)
    rng = np.random.default_rng(0)
    points = ellipsoid.center + rng.normal(0.0, 0.5, (200, 2))
    kept = [r.wald_test(R, point).p_value >= 1 - level for point in points]
    assert [ellipsoid.contains(point) for point in points] == kept
    assert 0 < sum(kept) < len(points)


def test_semi_axes_touch_the_boundary_longest_first():
    ellipsoid = result().ellipsoid(level=0.5)
    lengths, directions = ellipsoid.semi_axes()
    assert (np.diff(lengths) < 0).all()
    for length, direction in zip(lengths, directions.T, strict=True):
        assert ellipsoid.contains(ellipsoid.center + 0.999 * length * direction)
        assert not ellipsoid.contains(ellipsoid.center + 1.001 * length * direction)


def test_joint_statements_are_refused_when_blocks_are_few():
    few = result(BrownianLaw((0.5, 0.3, 0.2)))
    with pytest.raises(NotEnoughData, match="effective degrees of freedom"):
        few.wald_test(np.eye(3))
    with pytest.raises(NotEnoughData, match="effective degrees of freedom"):
        few.ellipsoid()


def test_the_summary_says_what_the_errors_rest_on():
    facts = Diagnostics(4.2, 37.0, truncations=3, capped_share=0.125, flags=(("few-blocks", "run longer"),))
    text = result(T_LAW, diagnostics=facts, names=("intercept", "age", "dose")).summary(level=0.9)
    for part in (
        "method a-method, n = 400, brownian law, critical value 1.812",
        "effective degrees of freedom 4.2",
        "correlation time about 37 rows",
        "3 truncations",
        "12.5% of steps capped",
        "[0.05",
        "0.95]",
        "intercept",
        "warning (few-blocks): run longer",
    ):
        assert part in text
    row = next(line for line in text.splitlines() if line.startswith("age"))
    assert row.split()[1:4] == ["-2.0000", "0.1500", "-13.333"]
    assert "theta[2]" in result().summary()
    assert "warning" not in result().summary()


def test_facts_are_added_to_a_copy():
    plain = result()
    marked = plain.with_facts(("outside-theory", "no"), truncations=2)
    assert (marked.status, marked.diagnostics.truncations, marked.diagnostics.warnings) == (
        "outside-theory",
        2,
        ("no",),
    )
    assert (plain.status, plain.diagnostics.truncations) == ("ok", None)


def test_flags_follow_their_stated_lines():
    assert batch_diagnostics(10.0, 9.9, 100, 1000).status == "ok"
    assert batch_diagnostics(10.0, 10.1, 100, 1000).status == "short-run"
    assert batch_diagnostics(2.9, 1.0, 100, 1000).status == "few-blocks"
    both = batch_diagnostics(2.9, 50.0, 100, 1000)
    assert [name for name, _ in both.flags] == ["short-run", "few-blocks"]
    assert "about 50 rows" in both.warnings[0]
    assert "2.9 effective blocks after 1,000 rows" in both.warnings[1]


def trajectory(memory, seed, n=20_000):
    noise = np.random.default_rng(seed).standard_normal(n)
    return scipy.signal.lfilter([1.0], [1.0, -memory], noise)[:, None]


def short_runs(memory, offset=0.0, replicates=40):
    watchers = [OverlappingBatchMeans(1).update_many(offset + trajectory(memory, s)) for s in range(replicates)]
    return sum(watcher.interval().status == "short-run" for watcher in watchers) / replicates


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("memory", [1.0, 0.9999])
def test_the_short_run_warning_fires_for_what_never_forgets(memory, offset):
    """A random walk, and an autoregression that remembers half the run: most runs are caught."""
    assert short_runs(memory, offset) >= 0.7


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("memory", [0.0, 0.9, 0.99])
def test_the_short_run_warning_is_silent_for_what_forgets(memory, offset):
    assert short_runs(memory, offset) == 0.0


def test_the_short_run_warning_tells_what_to_do():
    watcher = OverlappingBatchMeans(1).update_many(trajectory(1.0, 0))
    assert "Run longer, or take larger steps" in watcher.interval().warnings[0]
    assert watcher.interval(critical="normal").status == "short-run"


def test_the_correlation_time_of_an_autoregression_is_found():
    """Sigma / (2 var) = (1 + phi) / (2 (1 - phi)) = 9.5 for phi = 0.9, on average over runs."""
    watchers = [OverlappingBatchMeans(1).update_many(trajectory(0.9, seed)) for seed in range(40)]
    times = [watcher.correlation_time() for watcher in watchers]
    law = watchers[0].law()
    mean = 9.5 * (sum(law.weights) + law.rest)  # the estimator is centred at its own average, which takes a share
    assert abs(np.mean(times) - mean) < 3.5 * np.std(times) / math.sqrt(len(times))


def test_pooling_keeps_the_correlation_time():
    a, b = (OverlappingBatchMeans(1).update_many(trajectory(0.9, seed)) for seed in (1, 2))
    times = sorted(watcher.correlation_time() for watcher in (a, b))
    assert times[0] < a.pool(b).correlation_time() < times[1]


def test_few_blocks_are_reported_and_pass_with_more_rows():
    watcher = OverlappingBatchMeans(1).update_many(trajectory(0.0, 0, 300))
    assert "few-blocks" in dict(watcher.diagnostics().flags)
    watcher.update_many(trajectory(0.0, 1, 50_000))
    assert watcher.diagnostics().status == "ok"


def test_a_coordinate_that_never_moves_has_no_error_and_no_correlation_time():
    watcher = OverlappingBatchMeans(2).update_many(np.full((1000, 2), 3.7))
    assert watcher.interval().std_error.tolist() == [0.0, 0.0]
    assert watcher.correlation_time() == 0.0


def test_every_coefficient_has_a_status_of_its_own():
    result = OverlappingBatchMeans(dim=2).update_many(np.random.default_rng(0).standard_normal((2_000, 2))).result()
    assert result.coefficient_status == ("ok", "ok")
    flagged = result.with_facts(coefficient_flags=((), ("leverage", "rare")))
    assert flagged.coefficient_status == ("ok", "leverage")
    assert flagged.status == result.status

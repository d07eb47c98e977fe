"""Limit laws and their quantiles."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import twins
from halfwidth.checks import check_level
from halfwidth.errors import InputError, NotEnoughData
from halfwidth.inference import brownian_law
from halfwidth.inference.brownian_law import JOINT_DRAWS, BrownianLaw, block_law, pooled_law
from halfwidth.inference.laws import NormalLaw
from halfwidth.schedules import BlockPlan

LEVELS = (1e-6, 0.01, 0.5, 0.9, 0.95, 0.999, 1 - 1e-6, 1 - 1e-12)


def law_at(n, step_exponent=0.505, constant=2.0):
    return block_law(tuple(BlockPlan.for_step(step_exponent, constant).starts_up_to(n).tolist()), n)


@pytest.mark.parametrize(
    ("step_exponent", "n", "expected"),
    [
        (0.505, 10_000, 2.75),
        (0.505, 50_000, 2.52),
        (0.505, 100_000, 2.41),
        (0.505, 1_000_000, 2.24),
        (0.5005, 50_000, 2.46),
    ],
)
def test_quantiles_are_the_simulated_ones(step_exponent, n, expected):
    """Two-sided 95% values that were simulated before, known to a unit of their last digit."""
    assert law_at(n, step_exponent).quantile(0.95) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("level", LEVELS)
def test_the_normal_law_is_scipys(level):
    law = NormalLaw()
    assert law.quantile(level) == pytest.approx(scipy.stats.norm.isf(0.5 * (1 - level)), rel=1e-9)
    assert law.joint_quantile(level, 3) == pytest.approx(scipy.stats.chi2.isf(1 - level, 3), rel=1e-9)
    assert law.joint_tail(7.0, 3) == pytest.approx(scipy.stats.chi2.sf(7.0, 3), rel=1e-12)
    np.testing.assert_allclose(law.two_sided_tail([-3.0, 0.0, 20.0]), 2 * scipy.stats.norm.sf([3.0, 0.0, 20.0]))
    assert law.degrees_of_freedom == math.inf


@pytest.mark.parametrize("nu", [1, 2, 5, 30])
@pytest.mark.parametrize("level", LEVELS)
def test_equal_weights_give_students_t(nu, level):
    law = BrownianLaw((1.0 / nu,) * nu)
    assert law.degrees_of_freedom == pytest.approx(nu)
    tail = 2 * scipy.stats.t.sf(law.quantile(level), nu)
    assert tail == pytest.approx(1 - level, rel=1e-6)
    assert tail == pytest.approx(1 - level, abs=1e-10)


@pytest.mark.parametrize("nu", [1, 2, 5])
def test_tails_of_students_t_are_exact_far_out(nu):
    x = np.array([1e-3, 0.1, 1.0, 10.0, 1e3, 1e5])
    tail = BrownianLaw((1.0 / nu,) * nu).two_sided_tail(x)
    np.testing.assert_allclose(tail, 2 * scipy.stats.t.sf(x, nu), rtol=1e-8)


def test_a_law_without_randomness_is_normal():
    """All of the mean in `rest` is an exactly known variance."""
    law = BrownianLaw((1e-9,), 1.0)
    assert law.quantile(0.95) == pytest.approx(1.959964, abs=1e-5)


@given(n=st.integers(200, 10**7), exponent=st.floats(0.501, 0.8), level=st.floats(1e-6, 1 - 1e-9))
def test_quantile_inverts_the_tail(n, exponent, level):
    law = law_at(n, exponent)
    assert 1.0 - law.two_sided_tail(law.quantile(level)) == pytest.approx(level, rel=1e-6)
    assert law.two_sided_tail(law.quantile(level)) == pytest.approx(1 - level, rel=1e-6)


@given(n=st.integers(200, 10**7), level=st.floats(0.001, 0.999))
def test_calibrated_quantiles_exceed_normal_ones(n, level):
    assert law_at(n).quantile(level) > NormalLaw().quantile(level)


def test_the_law_tends_to_the_normal():
    quantiles = [law_at(10**k).quantile(0.95) for k in (3, 5, 8, 11, 14)]
    assert sorted(quantiles, reverse=True) == quantiles
    assert quantiles[-1] == pytest.approx(1.96, abs=0.01)


def test_tails_are_symmetric_and_fall_from_one():
    law = law_at(5_000)
    x = np.linspace(0.0, 50.0, 200)
    tail = law.two_sided_tail(x)
    assert tail[0] == pytest.approx(1.0)
    assert (np.diff(tail) < 0).all()
    np.testing.assert_array_equal(law.two_sided_tail(-x), tail)


@pytest.mark.parametrize(("constant", "exponent", "n"), [(2.0, 4.04, 600), (2.0, 2.2, 900), (0.5, 3.0, 700)])
def test_weights_are_the_eigenvalues_of_the_discretised_functional(constant, exponent, n):
    """Every row of the plan is stretched to `coarse` rows: the discrete form differs from its limit by O(1/n)."""
    coarse = 20
    starts = [1 + (start - 1) * coarse for start in twins.block_starts(constant, exponent, n // coarse)]
    form = twins.batch_means_map(starts, n)
    ages = np.concatenate([np.arange(1, b - a + 1) for a, b in zip(starts, [*starts[1:], n + 1], strict=True)])
    direct = np.linalg.eigvalsh(form @ form.T)[::-1] / ages.sum()
    law = block_law(tuple(starts), n)
    np.testing.assert_allclose(law.weights[:8], direct[:8], atol=3.0 / n * direct[0])
    assert law.degrees_of_freedom == pytest.approx(np.sum(direct) ** 2 / np.sum(direct**2), rel=0.02)


@given(n=st.integers(10, 10**6), constant=st.floats(0.5, 5.0), exponent=st.floats(2.1, 8.0))
def test_the_weights_sum_to_the_mean_of_the_functional(n, constant, exponent):
    """E D = int (l - l^2) / int l, block by block."""
    starts = np.array(twins.block_starts(constant, exponent, n))
    law = block_law(tuple(starts.tolist()), n)
    edges = np.append(starts - 1, n) / n
    length = np.diff(edges)
    expected = np.sum(length**2 / 2 - length**3 / 3) / np.sum(length**2 / 2)
    assert sum(law.weights) + law.rest == pytest.approx(expected, rel=1e-6)
    assert law.rest >= 0.0
    assert law.weights[-1] > 0.0


def test_one_block_is_the_cramer_von_mises_functional():
    """With a single block D = 2 int (bridge)^2, whose weights are 2 / (j pi)^2."""
    np.testing.assert_allclose(block_law((1,), 10).weights[:10], 2.0 / (np.arange(1, 11) * np.pi) ** 2, rtol=1e-4)


@pytest.mark.parametrize("n", [10**4, 10**6])
def test_leaving_out_small_modes_does_not_move_the_quantile(n, monkeypatch):
    starts = tuple(BlockPlan.for_step(0.505).starts_up_to(n).tolist())
    usual = block_law(starts, n)
    monkeypatch.setattr(brownian_law, "_MODES", 10**6)
    assert usual.quantile(0.95) == pytest.approx(block_law.__wrapped__(starts, n).quantile(0.95), abs=1e-6)


def test_a_law_of_very_many_blocks_is_still_quick():
    """Ten billion rows, or thousands of blocks: the size of the eigenvalue problem stays bounded."""
    assert len(law_at(10**10).weights) <= 600
    plan = BlockPlan.for_step(0.501, 2.0, 2.01)
    assert len(block_law(tuple(plan.starts_up_to(10**7).tolist()), 10**7).weights) <= 600


STARTS = (1, 15, 60, 150, 300, 500, 760, 1100, 1500)
N = 2_000


def simulated(seed, replicates, q, starts=STARTS, n=N):
    rng = np.random.default_rng(seed)
    slabs = [twins.studentised_means(rng.standard_normal((500, n, q)), starts) for _ in range(replicates // 500)]
    means, covariances = (np.concatenate(part) for part in zip(*slabs, strict=True))
    return means, covariances


def assert_binomial(hits, trials, p):
    """Within 3.5 binomial standard errors."""
    assert abs(hits / trials - p) < 3.5 * math.sqrt(p * (1 - p) / trials)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_the_quantile_has_its_level_in_simulated_functionals(level):
    means, covariances = simulated(1, 10_000, 1)
    studentised = np.abs(means[:, 0]) / np.sqrt(covariances[:, 0, 0])
    assert_binomial(np.sum(studentised <= block_law(STARTS, N).quantile(level)), len(means), level)


def test_the_normal_quantile_does_not_have_its_level_in_simulated_functionals():
    means, covariances = simulated(1, 10_000, 1)
    studentised = np.abs(means[:, 0]) / np.sqrt(covariances[:, 0, 0])
    assert np.mean(studentised <= NormalLaw().quantile(0.95)) < 0.95 - 10 * math.sqrt(0.95 * 0.05 / len(means))


@pytest.mark.parametrize("q", [2, 3])
def test_the_joint_quantile_has_its_level_in_simulated_functionals(q):
    means, covariances = simulated(q, 5_000, q)
    wald = np.einsum("rp,rp->r", means, np.linalg.solve(covariances, means[:, :, None])[:, :, 0])
    law = block_law(STARTS, N)
    for level in (0.5, 0.95):
        assert_binomial(np.sum(wald <= law.joint_quantile(level, q)), len(wald), level)
    assert np.mean(wald <= NormalLaw().joint_quantile(0.95, q)) < 0.95 - 10 * math.sqrt(0.95 * 0.05 / len(wald))


def test_the_pooled_law_has_its_level_in_simulated_functionals():
    one, two = (1, 15, 60, 150), (1, 15, 60, 150, 300, 500)
    (m1, s1), (m2, s2) = simulated(7, 10_000, 1, one, 250), simulated(8, 10_000, 1, two, 700)
    ages = []
    for starts, n in ((one, 250), (two, 700)):
        lengths = np.diff([*starts, n + 1])
        ages.append(np.sum(lengths * (lengths + 1)) / 2)
    share = ages[0] / sum(ages)
    law = pooled_law((block_law(one, 250), block_law(two, 700)), (share, 1 - share))
    mean = (math.sqrt(250) * m1 + math.sqrt(700) * m2)[:, 0] / math.sqrt(950)
    variance = (share * s1 + (1 - share) * s2)[:, 0, 0]
    hits = np.sum(np.abs(mean) / np.sqrt(variance) <= law.quantile(0.95))
    assert_binomial(hits, 10_000, 0.95)
    assert_binomial(np.sum(np.abs(mean) / np.sqrt(variance) <= law.quantile(0.8)), 10_000, 0.8)


def test_pooling_one_law_changes_nothing_and_pooling_equals_adds_degrees_of_freedom():
    law = law_at(5_000)
    assert pooled_law((law,), (1.0,)).quantile(0.95) == pytest.approx(law.quantile(0.95), rel=1e-12)
    four = pooled_law((law,) * 4, (0.25,) * 4)
    assert four.degrees_of_freedom == pytest.approx(4 * law.degrees_of_freedom)


def test_one_dimension_is_the_same_law_joint_or_not():
    law = law_at(5_000)
    assert law.joint_quantile(0.9, 1) == pytest.approx(law.quantile(0.9) ** 2)
    assert law.joint_tail(4.0, 1) == pytest.approx(float(law.two_sided_tail(2.0)))


def test_the_joint_law_of_equal_weights_is_hotellings():
    """M = Wishart / nu: T'T is q nu / (nu - q + 1) times F(q, nu - q + 1); known to Monte Carlo error."""
    nu, q = 12, 2
    law = BrownianLaw((1.0 / nu,) * nu)
    exact = scipy.stats.f(q, nu - q + 1)
    for level in (0.5, 0.9, 0.95, 0.99):
        x = law.joint_quantile(level, q)
        assert law.joint_tail(x, q) == pytest.approx(1 - level, rel=1e-6)
        # Averaging the chi-square tail keeps the error below that of counting draws.
        error = math.sqrt(level * (1 - level) / JOINT_DRAWS)
        assert exact.sf(x * (nu - q + 1) / (nu * q)) == pytest.approx(1 - level, abs=3.5 * error)


def test_joint_statements_are_refused_near_the_degrees_of_freedom():
    law = law_at(10_000)
    assert 2.0 < law.degrees_of_freedom < 5.0
    with pytest.raises(NotEnoughData, match="5 directions needs at least 6 effective degrees of freedom"):
        law.joint_tail(1.0, 5)
    with pytest.raises(NotEnoughData, match="Feed more rows"):
        law.joint_quantile(0.95, 5)


def test_joint_levels_and_p_values_stop_at_the_resolution_of_the_draws():
    law = law_at(10**6)
    assert law.joint_tail(1e12, 2) == 1.0 / JOINT_DRAWS
    with pytest.raises(InputError, match=r"level must be at most 0\.9995 for joint statements"):
        law.joint_quantile(0.9999, 2)


@pytest.mark.parametrize("level", [0, 1, 0.0, 1.0, -0.1, 1.5, float("nan"), float("inf"), "0.95", None, True])
def test_a_level_lies_strictly_between_zero_and_one(level):
    with pytest.raises(InputError, match="level must lie strictly between 0 and 1"):
        check_level(level)


def test_levels_may_be_numpy_floats():
    assert check_level(np.float64(0.9)) == check_level(np.float32(0.5)) + 0.4

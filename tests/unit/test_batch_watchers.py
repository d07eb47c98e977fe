"""What each watcher promises beyond the laws that all of them obey."""

import math

import numpy as np
import pytest
import scipy.stats
from scipy.signal import lfilter
from scipy.special import erfc

import halfwidth as hw
from halfwidth.errors import InputError, NotEnoughData
from halfwidth.inference.laws import NormalLaw
from halfwidth.inference.normal_mixture import MixtureLaw
from halfwidth.inference.scaling_laws import LEVELS, MEAN_SQUARE, QUANTILES, FunctionalLaw, scaling_law
from halfwidth.methods import METHODS, Setting, method
from halfwidth.watchers import EqualBatchMeans, OverlappingBatchMeans, RandomScaling, SpectralVariance
from halfwidth.watchers.flat_top import flat_top_degrees_of_freedom
from halfwidth.watchers.kinds import restored
from halfwidth.watchers.spectral_variance import bartlett_moments

REPLICATES = 4_000


def coverage(watcher, rows, seed, level=0.95):
    """Coverage of zero by intervals for white noise: every coordinate is a replicate."""
    rng = np.random.default_rng(seed)
    done = 0
    while done < rows:
        chunk = min(500, rows - done)
        watcher.update_many(rng.standard_normal((chunk, watcher.dim)))
        done += chunk
    return np.mean(watcher.interval(level=level).covers(0.0))


def band(level, slack=0.0):
    """Three and a half binomial standard errors, and what a two-moment approximation may cost."""
    return 3.5 * math.sqrt(level * (1 - level) / REPLICATES) + slack


EXACT = {
    "fixed": (lambda: hw.FixedBatchMeans(REPLICATES, batches=4, view="diagonal"), 1_003),
    "equal": (lambda: hw.EqualBatchMeans(REPLICATES, view="diagonal"), 700),
    "increasing": (lambda: hw.IncreasingBatchMeans(REPLICATES, planned_rows=600, batches=4, view="diagonal"), 640),
    "random-scaling": (lambda: hw.RandomScaling(REPLICATES, view="diagonal"), 600),
    "functional-1": (lambda: hw.FunctionalScaling(REPLICATES, power=1), 600),
    "functional-4": (lambda: hw.FunctionalScaling(REPLICATES, power=4), 600),
    "functional-6": (lambda: hw.FunctionalScaling(REPLICATES, power=6), 600),
    "extrapolated": (
        lambda: hw.Extrapolated(REPLICATES, step=hw.PowerStep(1.0, 0.7), batches=5, view="diagonal"),
        700,
    ),
    "burned": (
        lambda: hw.BurnIn(lambda: hw.FixedBatchMeans(REPLICATES, batches=4, view="diagonal"), first_start=10),
        700,
    ),
}
BY_TWO_MOMENTS = {
    "lugsail": (
        lambda: hw.EqualBatchMeans(REPLICATES, lugsail=True, batch_constant=0.1, view="diagonal"),
        2_000,
    ),
    "flat-top": (lambda: hw.FlatTopBatchMeans(REPLICATES, batch_constant=0.1, view="diagonal"), 2_000),
    "spectral": (lambda: hw.SpectralVariance(REPLICATES, batch_constant=1.0, view="diagonal"), 1_000),
}


@pytest.mark.parametrize(("make", "rows"), EXACT.values(), ids=EXACT)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_exact_laws_have_their_level_on_white_noise(make, rows, level):
    assert coverage(make(), rows, 7, level) == pytest.approx(level, abs=band(level))


@pytest.mark.parametrize(("make", "rows"), BY_TWO_MOMENTS.values(), ids=BY_TWO_MOMENTS)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_approximate_laws_nearly_have_their_level_on_white_noise(make, rows, level):
    assert coverage(make(), rows, 8, level) == pytest.approx(level, abs=band(level, slack=0.006))


def test_the_normal_law_does_not_have_its_level_with_four_batches():
    watcher = hw.FixedBatchMeans(REPLICATES, batches=4, view="diagonal")
    coverage(watcher, 1_000, 7)
    assert np.mean(watcher.interval(critical="normal").covers(0.0)) < 0.95 - 3 * band(0.95)


@pytest.fixture(scope="module")
def slow_noise():
    """Autoregressions that remember 20 rows, 300 at once, with long-run variance one."""
    memory = math.exp(-1 / 20)
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((8_000, 300)) * (1 - memory)
    return lfilter([1.0], [1.0, -memory], noise, axis=0)


def mean_variance(watcher, thetas):
    return float(np.mean(watcher.update_many(thetas).covariance()))


@pytest.mark.parametrize("name", ["lugsail", "flat-top"])
def test_bias_corrections_remove_what_batches_of_five_correlation_times_miss(slow_noise, name):
    constant = 100 / 8_000**0.7525
    plain = hw.EqualBatchMeans(300, batch_constant=0.6 * constant, view="diagonal")
    corrected = {
        "lugsail": hw.EqualBatchMeans(300, batch_constant=1.2 * constant, lugsail=True, view="diagonal"),
        "flat-top": hw.FlatTopBatchMeans(300, batch_constant=constant, view="diagonal"),
    }[name]
    assert mean_variance(plain, slow_noise) == pytest.approx(1 - 20 / 64, abs=0.03)
    assert mean_variance(corrected, slow_noise) == pytest.approx(1.0, abs=0.04)


def test_short_runs_of_slow_iterates_are_flagged(slow_noise):
    for watcher in (hw.FixedBatchMeans(300), hw.EqualBatchMeans(300), hw.SpectralVariance(300)):
        assert watcher.update_many(slow_noise[:800]).diagnostics().status == "short-run"
    settled = hw.FixedBatchMeans(2).update_many(slow_noise[:, :2]).diagnostics()
    assert settled.status == "ok"
    assert 8 < settled.correlation_time < 50  # twenty, by a variance with nine degrees of freedom


def test_degrees_of_freedom_approach_their_limits():
    assert flat_top_degrees_of_freedom(250, 2) == pytest.approx(3 * 250 / (8 * 2), rel=0.12)
    assert flat_top_degrees_of_freedom(150, 15) == pytest.approx(2.4, abs=0.1)
    assert bartlett_moments(250, 8)[1] == pytest.approx(1.5 * 250 / 8, rel=0.07)
    lugsail = hw.EqualBatchMeans(1, lugsail=True, batch_constant=0.1).update_many(np.zeros((20_000, 1)))
    assert lugsail.law().degrees_of_freedom == pytest.approx(20_000 / (5 * lugsail.block_rows() / 2), rel=0.05)


@pytest.mark.parametrize(("n", "rows"), [(1_000, 128), (10_000, 1024), (16_384, 2048), (50_000, 4096), (100, 16)])
def test_equal_batches_double_with_the_stream(n, rows):
    watcher = hw.EqualBatchMeans(1).update_many(np.arange(n, dtype=float)[:, None])
    assert watcher.block_rows() == rows
    assert watcher.law().degrees_of_freedom == n // rows - 1


def test_there_is_no_block_before_there_are_rows():
    with pytest.raises(NotEnoughData, match="a block needs at least 4 rows; 0 were seen"):
        hw.EqualBatchMeans(1).block_rows()


def test_flat_top_asks_for_rows_while_its_windows_are_long():
    watcher = hw.FlatTopBatchMeans(1).update_many(np.random.default_rng(0).standard_normal((600, 1)))
    with pytest.raises(NotEnoughData, match="a covariance needs at least 667 rows; 600 were seen"):
        watcher.covariance()


@pytest.mark.parametrize(
    "watcher", [hw.FlatTopBatchMeans(2, batch_constant=0.2), hw.EqualBatchMeans(2, lugsail=True)], ids=lambda w: w.kind
)
def test_a_negative_variance_raises(watcher):
    """Sums that swing back within two windows: the longer window sees less than the shorter one."""
    k = np.arange(600)
    rows = watcher.update_many(np.zeros((600, 2))).block_rows()
    fresh = restored(type(watcher)(2, **{name: getattr(watcher, name) for name in watcher.settings}).to_state())
    period = 2 * rows if watcher.kind == "flat-top-batch-means" else rows
    swing = np.sin(2 * np.pi * k / period)
    with pytest.raises(NotEnoughData, match="variance of coordinate 1 came out negative"):
        fresh.update_many(np.column_stack([np.random.default_rng(0).standard_normal(600), swing])).covariance()


def test_a_direction_of_negative_variance_is_refused_and_so_is_a_joint_statement():
    result = hw.Result(
        np.zeros(2),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        100,
        NormalLaw(),
        "m",
        hw.FixedBatchMeans(1).update_many(np.random.default_rng(0).standard_normal((50, 1))).diagnostics(),
    )
    assert result.interval([1.0, 1.0]).half_width > 0
    with pytest.raises(NotEnoughData, match="variance of a direction came out negative"):
        result.interval([1.0, -1.0])
    with pytest.raises(NotEnoughData, match="not positive definite"):
        result.ellipsoid()


def test_increasing_batches_end_at_the_planned_rows():
    watcher = hw.IncreasingBatchMeans(1, planned_rows=50_000)
    assert watcher.batches == 15
    assert watcher.batch_end(watcher.batches) == 50_000
    lengths = np.diff([watcher.batch_end(k) for k in range(watcher.batches + 1)])
    assert (np.diff(lengths) > 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hw.IncreasingBatchMeans(1, planned_rows=1), "planned_rows must be an integer of at least 2"),
        (lambda: hw.IncreasingBatchMeans(1, planned_rows=30, batches=9), "planned_rows must leave at least one row"),
        (lambda: hw.FixedBatchMeans(1, batches=1), "batches must be an integer of at least 2"),
        (lambda: hw.FixedBatchMeans(1, batches=33), "batches must be at most 32"),
        (lambda: hw.EqualBatchMeans(1, batch_constant=0.0), "batch_constant must be positive"),
        (lambda: hw.EqualBatchMeans(1, step_exponent=0.4), "1/2 < a < 1"),
        (lambda: hw.FunctionalScaling(1, power=2), "RandomScaling is the power 2"),
        (lambda: hw.FunctionalScaling(1, power=4, view="full"), "not a quadratic form"),
        (lambda: hw.Extrapolated(1, step=hw.PowerStep(), batches=3), "batches must be an integer of at least 4"),
        (lambda: hw.ConfidenceSequence(hw.RandomScaling(1)), "variance must be a watcher whose variance is consistent"),
        (lambda: hw.ConfidenceSequence(hw.FixedBatchMeans(1)), "variance must be a watcher whose variance is consist"),
        (lambda: hw.ConfidenceSequence(hw.EqualBatchMeans(1), tightest=0), "tightest must be an integer"),
        (lambda: hw.BurnIn(lambda: hw.FixedBatchMeans(1), share=0.0), "share must lie between 0 and 0.5"),
        (lambda: hw.BurnIn(lambda: hw.Extrapolated(1, step=hw.PowerStep())), "does not read the steps"),
        (lambda: restored({"kind": "crystal-ball"}), "state.kind must be one of"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


WATCHING = [row for row in METHODS.values() if row.watch is not None]


@pytest.mark.parametrize("row", WATCHING, ids=lambda row: row.name)
def test_every_watching_method_gives_an_interval_for_any_direction(row):
    watcher = row.watch(3, Setting(watched_rows=5_000))
    watcher.update_many(np.random.default_rng(0).standard_normal((5_000, 3)))
    interval = watcher.interval([1.0, -1.0, 2.0], critical=row.critical)
    assert 0.0 < interval.half_width < 1.0
    assert abs(interval.estimate) < 4 * interval.half_width


def test_increasing_batches_must_be_told_the_number_of_rows():
    with pytest.raises(InputError, match="must be told the number of rows beforehand; use batch-means"):
        method("batch-means-increasing").watch(3, Setting())


def test_random_scaling_has_the_published_quantiles():
    published = {0.80: 3.875, 0.90: 5.323, 0.95: 6.747, 0.99: 10.02}
    for level, value in published.items():
        assert math.sqrt(6) * scaling_law().quantile(level) == pytest.approx(value, rel=1e-3)
    assert scaling_law().degrees_of_freedom == pytest.approx(2.5, rel=1e-3)


@pytest.mark.parametrize(("power", "published"), [(1, 8.35), (4, 5.35), (6, 4.71)])
def test_functionals_have_the_published_quantiles(power, published):
    law = FunctionalLaw(power)
    assert law.quantile(0.95) / math.sqrt(MEAN_SQUARE[power]) == pytest.approx(published, abs=0.01)
    for level in (0.3, 0.77, 0.95, 0.97, 0.999):
        assert law.two_sided_tail(law.quantile(level)) == pytest.approx(1 - level, rel=1e-9)
    assert law.two_sided_tail(1e9) == pytest.approx(1 - LEVELS[-1])
    assert law.joint_tail(4.0, 1) == pytest.approx(float(law.two_sided_tail(2.0)))
    with pytest.raises(InputError, match="where the simulated table ends"):
        law.quantile(0.9999)
    with pytest.raises(InputError, match="one direction at a time"):
        law.joint_quantile(0.95, 2)


def simulated_norms(seed, draws, grid, powers):
    """F_m of simulated bridges, for each power."""
    rng = np.random.default_rng(seed)
    found = {power: [] for power in powers}
    for _ in range(draws // 1_000):
        walk = np.cumsum(rng.standard_normal((1_000, grid)), axis=1) / math.sqrt(grid)
        bridge = np.abs(walk - walk[:, -1:] * np.arange(1, grid + 1) / grid)
        for power in powers:
            found[power].append(np.mean(bridge**power, axis=1) ** (1 / power))
    return {power: np.concatenate(parts) for power, parts in found.items()}


def worst_table_error(norms, power):
    """The largest gap between simulated and tabulated tails, in units of what chance and the table's own 1% allow."""
    worst = 0.0
    for level, quantile in zip(LEVELS[1:], QUANTILES[power][1:], strict=True):
        tails = erfc(quantile * norms / math.sqrt(2))
        allowed = 4 * tails.std() / math.sqrt(len(tails)) + 0.01 * (1 - level)
        worst = max(worst, abs(tails.mean() - (1 - level)) / allowed)
    return worst


def assert_table_agrees(norms, power):
    assert worst_table_error(norms, power) < 1.0
    assert np.mean(norms**2) == pytest.approx(MEAN_SQUARE[power], abs=4 * np.std(norms**2) / math.sqrt(len(norms)))


def test_the_table_of_functionals_agrees_with_a_simulation():
    norms = simulated_norms(5, 10_000, 256, (1, 4, 6))
    for power in (1, 4, 6):
        assert_table_agrees(norms[power], power)
    assert worst_table_error(1.05 * norms[4], 4) > 1.0  # the control: norms off by a twentieth are noticed


@pytest.mark.slow
def test_the_table_of_functionals_agrees_with_a_long_simulation():
    norms = simulated_norms(6, 300_000, 512, (1, 2, 4, 6))
    for power in (1, 4, 6):
        assert_table_agrees(norms[power], power)
    for level in (0.8, 0.95, 0.99, 0.999):
        tails = erfc(math.sqrt(6) * scaling_law().quantile(level) * norms[2] / math.sqrt(2))
        assert tails.mean() == pytest.approx(1 - level, abs=4 * tails.std() / math.sqrt(len(tails)))


def test_a_functional_measures_a_direction_on_its_own_path():
    thetas = np.cumsum(np.random.default_rng(0).standard_normal((700, 3)), axis=0)
    direction = np.array([1.0, -2.0, 0.5])
    whole = hw.FunctionalScaling(3, power=4).update_many(thetas).interval(direction)
    alone = hw.FunctionalScaling(3, power=4, view="projection", projection=direction[None]).update_many(thetas)
    assert whole.half_width == pytest.approx(float(alone.interval().half_width[0]), rel=1e-9)
    assert whole.estimate == pytest.approx(float(alone.estimate()[0]), rel=1e-9)


def test_extrapolation_recovers_the_intercept_that_the_average_misses():
    step = hw.PowerStep(1.0, 0.6)
    k = np.arange(1, 20_001)
    noise = 0.2 * np.random.default_rng(1).standard_normal((20_000, 2))
    truth, bias = np.array([3.0, -1.0]), np.array([20.0, -5.0])
    thetas = truth + np.outer(step(k), bias) + noise
    watcher = hw.Extrapolated(2, step=step).update_many(thetas)
    assert watcher.interval(level=0.99).covers(truth).all()
    assert not hw.FixedBatchMeans(2).update_many(thetas).interval(level=0.99).covers(truth).any()
    np.testing.assert_allclose(watcher.slope(), bias, rtol=0.2)


def test_extrapolation_needs_steps_that_fall_and_writes_only_power_steps():
    watcher = hw.Extrapolated(1, step=hw.ConstantStep(0.1)).update_many(np.zeros((50, 1)))
    with pytest.raises(InputError, match="step must fall along the stream"):
        watcher.estimate()
    with pytest.raises(InputError, match="step must be a PowerStep to be written"):
        watcher.to_state()


@pytest.mark.parametrize(("share", "first_start"), [(0.05, 125), (0.3, 7), (0.5, 1)])
def test_burn_in_discards_some_rows_but_never_more_than_its_share(share, first_start):
    watcher = hw.BurnIn(lambda: hw.FixedBatchMeans(1), share=share, first_start=first_start)
    least = first_start / share
    for n in range(1, 4_000):
        watcher.update([float(n)])
        assert watcher.discarded <= share * n
        if n > least / share:
            assert watcher.discarded >= share**2 * n / 2
        assert watcher.reported.n_seen == n - watcher.discarded


def test_burn_in_reports_the_rows_it_rests_on():
    thetas = np.random.default_rng(0).standard_normal((50_000, 2))
    thetas[:2_000] += 100.0
    watcher = hw.BurnIn(lambda: hw.EqualBatchMeans(2)).update_many(thetas)
    result = watcher.result()
    assert (result.n, watcher.n_seen, watcher.discarded) == (47_500, 50_000, 2_500)
    assert result.method == "burn-in equal-batch-means"
    interval = result.interval()
    assert interval.covers(0.0).all()
    unburned = hw.EqualBatchMeans(2).update_many(thetas).interval()
    assert (np.abs(unburned.estimate) > 3.0).all()
    assert (unburned.half_width > 100 * interval.half_width).all()


def crossings(paths, critical):
    """How many random walks ever leave the interval, looking after every row."""
    t = np.arange(1, paths.shape[1] + 1)
    return np.mean((np.abs(paths) > np.sqrt(t) * critical).any(axis=1))


def test_confidence_sequences_are_rarely_left_at_any_time():
    """With known variance; 2,000 walks of 5,000 rows. Looking at a fixed-time interval every row fails most walks."""
    paths = np.cumsum(np.random.default_rng(4).standard_normal((2_000, 5_000)), axis=1)
    critical = np.array([MixtureLaw(t, 500).quantile(0.95) for t in range(1, 5_001)])
    assert 0.01 < crossings(paths, critical) < 0.05
    assert crossings(paths, np.full(5_000, NormalLaw().quantile(0.95))) > 0.4


@pytest.mark.slow
def test_confidence_sequences_over_an_estimated_variance_are_rarely_left():
    """Looks every 500 rows from 5,000 to 50,000 on, at a variance that is itself estimated."""
    rng = np.random.default_rng(5)
    watcher = hw.ConfidenceSequence(hw.SpectralVariance(1_000, batch_constant=0.3, view="diagonal"), tightest=20_000)
    watcher.update_many(rng.standard_normal((5_000, 1_000)))
    left = np.zeros(1_000, dtype=bool)
    fixed_left = left.copy()
    for _ in range(90):
        watcher.update_many(rng.standard_normal((500, 1_000)))
        left |= ~watcher.interval().covers(0.0)
        fixed_left |= ~watcher.variance.interval().covers(0.0)
    assert left.mean() < 0.05
    assert fixed_left.mean() > 0.12


def test_the_boundary_is_tightest_where_asked_and_inverts():
    laws = [MixtureLaw(t, 1_000) for t in (10, 100, 1_000, 10_000, 100_000)]
    quantiles = [law.quantile(0.95) for law in laws]
    assert min(quantiles) == quantiles[2]
    for law, quantile in zip(laws, quantiles, strict=True):
        assert law.two_sided_tail(quantile) == pytest.approx(0.05, rel=1e-9)
        assert law.quantile(0.95) ** 2 == law.joint_quantile(0.95, 1)
        assert law.joint_tail(quantile**2, 1) == pytest.approx(0.05, rel=1e-9)
    assert laws[0].two_sided_tail([0.0, 1e6]).tolist() == [1.0, 0.0]
    with pytest.raises(InputError, match=r"level must be at least 0\.393"):
        laws[0].quantile(0.2)
    with pytest.raises(InputError, match="one direction at a time"):
        laws[0].joint_quantile(0.95, 2)
    with pytest.raises(InputError, match="one direction at a time"):
        laws[0].joint_tail(1.0, 2)


def test_pooled_batches_add_their_degrees_of_freedom():
    rng = np.random.default_rng(0)
    parts = [hw.FixedBatchMeans(2, batches=5).update_many(rng.standard_normal((n, 2))) for n in (100, 300, 50)]
    pooled = parts[0].pool(parts[1]).pool(parts[2])
    assert pooled.law().degrees_of_freedom == 12
    assert pooled.block_rows() == max(part.block_rows() for part in parts)
    assert pooled.interval().critical == pytest.approx(scipy.stats.t.isf(0.025, 12))


@pytest.mark.parametrize("view", ["full", "diagonal"])
@pytest.mark.parametrize("kind", [EqualBatchMeans, OverlappingBatchMeans, RandomScaling, SpectralVariance])
def test_iterates_that_stand_still_are_doubted(kind, view):
    moving = np.random.default_rng(0).standard_normal(4_000)
    for value in (0.0, 0.1, 1e9):
        result = kind(2, view=view).update_many(np.column_stack([moving, np.full(4_000, value)])).result()
        assert result.status == "exact-fit"
        assert np.isnan(result.tvalues[1]) or abs(result.tvalues[1]) > 1e12
    assert kind(1, view=view).update_many(1e9 + 1e-3 * moving[:, None]).result().status == "ok"

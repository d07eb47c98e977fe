"""The runs behind `reproduce rate`: the loop over lanes against its slow twin, the store, scores and verdicts."""

import numpy as np
import pytest

from halfwidth.paper.lanes import LANES
from halfwidth.paper.rate_compare import EARLIER, compare, rate_from
from halfwidth.paper.rate_runs import CHUNK, ETA, Case, Runs, ages_at, ages_up_to, run_group, run_groups
from halfwidth.paper.rate_scores import AUTO, BM, CALIBRATED, case_rows, critical_value, theory
from halfwidth.paper.rate_sheets import sheets
from halfwidth.paper.rate_words import in_words
from halfwidth.paper.run_arms import Runner
from halfwidth.schedules import BlockPlan, PowerStep
from halfwidth.study.backends import LocalBackend
from halfwidth.study.store import Store
from halfwidth.watchers import OverlappingBatchMeans

CHECKPOINTS = (CHUNK, 2 * CHUNK)
MIXED = (
    Case("linear", 2, 0.0),
    Case("linear", 4, 0.5),
    Case("linear", 2, 0.5, 0.6),
    Case("logistic", 2, 0.5),
    Case("logistic", 3, -0.8, 0.7),
)


class Replayed:
    """Stands for a generator: hands out numbers that were drawn before."""

    def __init__(self, normals, uniform):
        self._normals, self._uniform = iter(normals), uniform

    def standard_normal(self):
        return next(self._normals)

    def random(self):
        return self._uniform


def innovations(seed, group, dim, rows):
    """What `run_group` draws, drawn by NumPy itself."""
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(group,))))
    for _ in range(0, rows, CHUNK):
        normals, uniforms = rng.standard_normal((CHUNK, 2 + dim, LANES)), rng.random((CHUNK, LANES))
        yield from zip(normals, uniforms, strict=True)


def twin(case, drawn, lane):
    """One replicate by the problem's own functions, one row after the other, watched by the watcher."""
    world = case.problem
    theta, state = np.zeros(case.dim), np.zeros(case.dim)
    row, gradient = np.empty(case.dim + 1), np.empty(case.dim)
    watcher = OverlappingBatchMeans(case.dim, step_exponent=case.exponent)
    step = PowerStep(ETA, case.exponent)
    read = []
    for k, (normals, uniforms) in enumerate(drawn, start=1):
        mine = [*normals[: 1 + case.dim, lane], normals[-1, lane]]
        world.sample(Replayed(mine, uniforms[lane]), theta, state, world.params, row)
        world.gradient(theta, row, world.params, gradient)
        theta = theta - min(step(np.array([k]))[0], 1.0 / world.curvature(theta, row, world.params)) * gradient
        watcher.update(theta)
        if k in CHECKPOINTS:
            read.append((watcher.estimate(), watcher.covariance()))
    return read


@pytest.fixture(scope="module")
def group():
    return run_group(MIXED, CHECKPOINTS, 7, 3)


@pytest.mark.parametrize("at", range(len(MIXED)))
@pytest.mark.parametrize("lane", [0, LANES - 1])
def test_every_lane_is_a_run_of_the_problem_watched_by_the_watcher(at, lane, group):
    drawn = innovations(7, 3, max(case.dim for case in MIXED), CHECKPOINTS[-1])
    for c, (average, covariance) in enumerate(twin(MIXED[at], drawn, lane)):
        assert group[at].averages[lane, c] == pytest.approx(average, rel=1e-9)
        assert group[at].covariances[lane, c] == pytest.approx(covariance, rel=1e-8, abs=1e-10)


def test_ages_are_those_of_the_definition():
    plan, n = BlockPlan.for_step(0.505), 700
    starts = plan.starts_up_to(n)
    ages = [k - max(start for start in starts if start <= k) + 1 for k in range(1, n + 1)]
    assert ages_at(np.arange(1, n + 1), starts).tolist() == ages
    sums = ages_up_to(plan, n)
    assert (sums.ages, sums.age_squares) == (sum(ages), sum(age**2 for age in ages))


class NoBackend:
    def map(self, function, tasks):
        assert not tasks, "nothing should be left to run"
        yield from ()


def test_groups_depend_neither_on_the_workers_nor_on_interruptions(tmp_path):
    cases, told = MIXED[:2], []
    store = Store(tmp_path)
    alone = run_groups(cases, CHECKPOINTS, 1, 3, Runner(LocalBackend(1), None, told.append))
    run_groups(cases, CHECKPOINTS, 1, 2, Runner(LocalBackend(1), store, told.append))
    parallel = run_groups(cases, CHECKPOINTS, 1, 3, Runner(LocalBackend(2), store, told.append))
    kept = run_groups(cases, CHECKPOINTS, 1, 3, Runner(NoBackend(), store, told.append))
    for one, other, third in zip(alone, parallel, kept, strict=True):
        assert one.averages.shape == (3 * LANES, 2, one.averages.shape[2])
        for runs in (other, third):
            assert np.array_equal(one.averages, runs.averages)
            assert np.array_equal(one.covariances, runs.covariances)
    with pytest.raises(AssertionError, match="nothing should be left"):
        run_groups(cases, CHECKPOINTS, 2, 3, Runner(NoBackend(), store, told.append))


def test_damaged_arrays_count_as_not_there(tmp_path):
    store = Store(tmp_path)
    store.save_arrays("key", "one", {"x": np.arange(3.0)})
    assert store.load_arrays("key", "one")["x"].tolist() == [0.0, 1.0, 2.0]
    assert store.load_arrays("key", "two") is None
    assert store.load_arrays("other key", "one") is None
    (path,) = tmp_path.rglob("one.span")
    path.write_bytes(path.read_bytes()[:40])
    assert store.load_arrays("key", "one") is None


STEPS = tuple(2**power for power in range(10, 19))


def made_runs(case, errors, rng, replicates=400):
    """Averages with the exact covariance; Sigma_hat off by a multiple of I: about `errors(n)`, of either sign."""
    root = np.linalg.cholesky(case.problem.sigma)
    averages = [
        case.problem.theta_star + rng.standard_normal((replicates, case.dim)) @ root.T / np.sqrt(n) for n in STEPS
    ]
    signs = rng.choice([-1.0, 1.0], size=(replicates, len(STEPS)))
    off = signs * (1.0 + 0.2 * rng.standard_normal(signs.shape)) * [errors(n) for n in STEPS]
    covariances = case.problem.sigma + off[:, :, None, None] * np.eye(case.dim)
    return Runs(np.stack(averages, axis=1), covariances)


def rows_with(power, cases):
    """Rows of cases whose error falls like n^power and grows like the square root of d."""
    rng = np.random.default_rng(1)
    return [
        row
        for case in cases
        for row in case_rows(
            case,
            made_runs(case, lambda n, dim=case.dim: 0.5 * (dim / 2) ** 0.5 * (n / STEPS[0]) ** power, rng),
            STEPS,
        )
    ]


def test_fields_of_sigma_hat_follow_their_definitions():
    case = Case("linear", 2, 0.5)
    plus, minus = np.diag([3.0, 0.0]), np.diag([-1.0, 0.0])
    covariances = (case.problem.sigma + np.array([plus, minus]))[:, None]
    averages = (case.problem.theta_star + np.array([[0.0, 0.0], [1.0, 1.0]]))[:, None]
    normal, calibrated = case_rows(case, Runs(averages, covariances), (STEPS[0],))
    assert (normal["sigma_error"], normal["sigma_bias"], normal["sigma_spread"]) == pytest.approx((2.0, 1.0, 2.0))
    assert normal["sigma_bias_se"] == pytest.approx(2.0)  # sd of (3, -1) is sqrt(8), over sqrt(2)
    assert (normal["name"], calibrated["name"]) == (BM, CALIBRATED)
    assert normal["coverage"] == calibrated["coverage"] == 0.5  # an error of 2 at n = 1,024 is far outside
    v = case.problem.sigma.sum()
    widths = 2 * 1.959964 * np.sqrt([(v + 3.0) / 1024, (v - 1.0) / 1024])
    assert normal["width"] == pytest.approx(widths.mean(), rel=1e-6)
    assert normal["width_ratio"] == pytest.approx((widths / (2 * 1.959964 * np.sqrt(v / 1024))).mean(), rel=1e-6)
    assert normal["bias_over_sd"] == pytest.approx(1.0 / np.sqrt(v / 1024))
    assert "sigma_error" not in calibrated


def test_rows_do_not_depend_on_how_the_runs_lie_in_memory():
    case = Case("linear", 5, 0.5)
    runs = made_runs(case, lambda n: 0.5, np.random.default_rng(0))
    turned = Runs(np.asfortranarray(runs.averages), np.asfortranarray(runs.covariances))
    assert case_rows(case, turned, STEPS) == case_rows(case, runs, STEPS)


def test_the_calibrated_critical_value_is_the_watchers_and_waits_for_three_blocks():
    case, n = Case("linear", 2, 0.5, 0.7), 2**12
    rng = np.random.default_rng(0)
    watcher = OverlappingBatchMeans(2, step_exponent=0.7).update_many(rng.standard_normal((n, 2)))
    assert critical_value(case, CALIBRATED, n) == pytest.approx(watcher.law().quantile(0.95))
    assert critical_value(case, CALIBRATED, 2**10) is None
    assert critical_value(case, BM, 2**10) == pytest.approx(1.959964)


FROM = "every local slope is within 3 standard errors of -(1-a)/4 from this n on"


def verdicts(rows):
    found = {}
    for comparison in compare(rows, 0.505):
        found.setdefault(comparison.claim, []).append(comparison.verdict)
    return found


def test_an_error_that_follows_the_theorem_agrees_and_one_that_does_not_differs():
    cases = tuple(Case("linear", dim, 0.0) for dim in (2, 5, 10))
    good, flat = verdicts(rows_with(theory(0.505), cases)), verdicts(rows_with(-0.05, cases))
    over = "local slope over the last factor of 16"
    assert good[f"{over} is -(1-a)/4"] == good[f"{over} within 0.02 of -(1-a)/4"] == ["agrees"] * 3
    assert good[FROM] == ["from 2^14 on"] * 3
    assert good["the error grows like d^(1/2)"] == ["agrees"]
    assert good["without feedback the average has no bias at the end (in sd)"] == ["agrees"] * 3
    assert all(verdict.startswith("differs") for verdict in flat[f"{over} is -(1-a)/4"])
    assert all(verdict.startswith("differs: by +0.0") for verdict in flat[f"{over} within 0.02 of -(1-a)/4"])
    assert flat[FROM] == ["not yet at the end"] * 3


def test_the_rate_holds_from_the_first_n_after_the_last_slope_that_differs():
    slopes = [-0.124, -0.08, -0.10, -0.13]
    run = [{"step": 2**k, "a": 0.505, "local_slope": s, "local_slope_se": 0.01} for k, s in enumerate(slopes, 14)]
    assert rate_from([{"step": 2**13, "a": 0.505, "local_slope": None}, *run]) == 2**16
    assert rate_from([*run, run[1] | {"step": 2**20}]) is None


def test_runs_reproduce_the_numbers_of_another_program():
    """At 2^14 rows, 160 replicates, three standard errors; the same with other steps, a = 0.7, must not pass."""
    cases, known = (Case("linear", 2, 0.0), Case("linear", 2, 0.0, 0.7)), EARLIER[2, 0.0, 14]
    groups = [run_group(cases, (2**14,), 11, group) for group in range(4)]
    rows = [case_rows(case, Runs.join([group[i] for group in groups]), (2**14,))[0] for i, case in enumerate(cases)]
    away = [
        max(abs(row[field] - known[field]) / row[f"{field}_se"] for field in ("sigma_error", "coverage"))
        for row in rows
    ]
    assert away[0] < 3.0 < 5.0 < away[1]


def test_pictures_and_words_are_made_from_rows_alone():
    cases = (Case("linear", 2, 0.0), Case("linear", 2, 0.5), Case("linear", 5, 0.5), Case("linear", 2, 0.5, 0.6))
    rows = rows_with(theory(0.505), cases)
    small = [row | {"name": AUTO, "a": None} for row in rows if row["name"] == BM and row["a"] == 0.505]
    drawn = {sheet.name: sheet for sheet in sheets(rows + small)}
    assert list(drawn) == ["rate", "rate-coverage", "rate-steps", "rate-dimension", "rate-auto"]
    slopes = drawn["rate"].panels[2]
    assert all(len(line.half_band) == len(line.x) == 5 for line in slopes.lines)
    assert slopes.references[0][1] == [theory(0.505)] * 5
    text = in_words(rows + small)
    assert "| linear, d = 2, epsilon = 0.0, a = 0.505 | -0.124 | -0.1" in text
    assert " | 2^14 |\n" in text
    assert text.count("**") == 12
    assert "| linear, epsilon = 0.5 | 0.5" in text

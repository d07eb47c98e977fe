"""Learners with results of their own, and learners with other steps, held to slow twins and to their equations."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

import learner_twins
import twins
from halfwidth import OverlappingBatchMeans, PowerStep, Problem
from halfwidth.errors import Diverged, InputError, NotEnoughData
from halfwidth.inference.replicate_result import hull_rank
from halfwidth.learners import (
    LEARNERS,
    CappedSGD,
    ChunkedNewton,
    HiGrad,
    HullOfRuns,
    ImplicitSGD,
    LocalSGD,
    MiniBatchBootstrap,
    MultiplierBootstrap,
    OneStep,
    OnlineDebiasing,
    ParallelRuns,
    PlugIn,
    PlusMinus,
    RichardsonRomberg,
    TrajectoryRegression,
    ZerothOrderSGD,
)
from halfwidth.learners.warm_start import collect_rows
from halfwidth.methods import Setting, method
from halfwidth.problems import problem

DIM = 3
WORLD = problem("iid-linear", dim=DIM)
STEP = PowerStep(0.5, 0.6)


def given_rows(n, world=WORLD, seed=0):
    rows = np.empty((n, world.row_size))
    collect_rows(world, np.random.default_rng(seed), world.theta_0, world.state_0.copy(), rows)
    return rows


def linear_curvature(theta, row):
    return row[:-1] @ row[:-1]


def linear_hessian(theta, row):
    return np.outer(row[:-1], row[:-1])


def iterates(learner, rows):
    """All iterates, one call for each row."""
    return np.array([learner.consume(row[None]).theta for row in rows])


def interpreted(world):
    """The same problem through plain Python functions, which costs no compile."""
    return replace(world, gradient=lambda *arguments: world.gradient(*arguments))


def test_online_debiasing_is_the_definition():
    """The slow twin keeps W and X whole."""
    rows, pilot, planned = given_rows(600), 100, 600
    X, y = rows[:, :-1], rows[:, -1]
    inverse = np.log(planned) / planned * np.linalg.inv(X[:pilot].T @ X[:pilot] / pilot)
    W, dim = np.zeros((X.shape[1], 600)), X.shape[1]
    for k in range(pilot, 600):
        z = inverse @ X[k]
        W[:, k] = (np.eye(dim) - W[:, :k] @ X[:k]) @ z / (1.0 + X[k] @ z)
    least = np.linalg.lstsq(X, y, rcond=None)[0]
    noise = np.sum((y - X @ least) ** 2) / (600 - dim)
    result = OnlineDebiasing(WORLD, step=STEP, pilot_rows=pilot, planned_rows=planned).consume(rows).result()
    np.testing.assert_allclose(result.params, least + W @ (y - X @ least), rtol=1e-8)
    np.testing.assert_allclose(result.bse, np.sqrt(noise * np.diag(W @ W.T)), rtol=1e-8)
    assert result.status == "ok"
    early = OnlineDebiasing(WORLD, step=STEP, pilot_rows=pilot, planned_rows=6_000).consume(rows).result()
    assert early.status == "bias-left"


def test_online_debiasing_does_not_depend_on_the_units_of_columns():
    """Gamma rescales the features by the information in each direction; with Gamma = lambda I this would fail."""
    rows, units, options = given_rows(600), np.array([1.0, 30.0, 0.02]), {"pilot_rows": 100, "planned_rows": 600}
    result = OnlineDebiasing(WORLD, step=STEP, **options).consume(rows).result()
    other = OnlineDebiasing(WORLD, step=STEP, **options).consume(rows * np.append(units, 1.0)).result()
    np.testing.assert_allclose(other.params * units, result.params, rtol=1e-9)
    np.testing.assert_allclose(other.bse * units, result.bse, rtol=1e-9)


def test_online_debiasing_says_where_exploration_ends():
    """The third column is seen in the pilot rows and hardly again: its bias is left, and the result says so."""
    rows = given_rows(2_000)
    rows[200:, 2] *= 0.05
    options = {"pilot_rows": 200, "planned_rows": 2_000}
    assert OnlineDebiasing(WORLD, step=STEP, **options).consume(rows).result().status == "bias-left"
    assert OnlineDebiasing(WORLD, step=STEP, **options).consume(given_rows(2_000)).result().status == "ok"


def test_plus_minus_is_the_definition():
    """Capped steps gamma / k after the pilot rows; the last iterate, and the learning rate as its variance."""
    rows, pilot = given_rows(400), 100
    X, theta = rows[:, :-1], np.zeros(rows.shape[1] - 1)
    gamma = 2.0 / np.linalg.eigvalsh(X[:pilot].T @ X[:pilot] / pilot)[0]
    for k, row in enumerate(rows, 1):
        eta = STEP(np.array([k]))[0] if k <= pilot else gamma / (k - pilot)
        x = row[:-1]
        theta = theta - min(eta, 1.0 / (x @ x)) * (x @ theta - row[-1]) * x
    result = PlusMinus(WORLD, step=STEP, pilot_rows=pilot).consume(rows).result()
    np.testing.assert_allclose(result.params, theta, rtol=1e-4)  # gamma is rounded to six digits
    np.testing.assert_allclose(result.bse, np.sqrt(gamma / 300), rtol=1e-5)
    assert result.status == "likelihood-only"


@pytest.mark.parametrize(("copies", "block"), [(40, 1), (7, 9)])
def test_bootstrap_copies_are_those_of_the_definition(copies, block):
    rows, rng = given_rows(300), np.random.default_rng(5).spawn(1)[0]
    average, spread = learner_twins.bootstrap(
        rows, twins.linear_gradient, linear_curvature, STEP(np.arange(1, 301)), rng, copies, block
    )
    settings = {"step": STEP, "seed": 5, "copies": copies, "block": block}
    normal = MultiplierBootstrap(WORLD, **settings).consume(rows).result()
    np.testing.assert_allclose(normal.params, average, rtol=1e-10)
    np.testing.assert_allclose(normal.covariance, 300 * np.cov(spread.T, ddof=1), rtol=1e-8)
    assert normal.interval(level=0.9).critical == pytest.approx(scipy.stats.norm.ppf(0.95))

    cheap = MultiplierBootstrap(WORLD, rule="cheap", **settings).consume(rows).result()
    squares = np.mean((spread - average) ** 2, axis=0)
    np.testing.assert_allclose(cheap.bse, np.sqrt(squares), rtol=1e-8)
    assert cheap.interval(level=0.9).critical == pytest.approx(scipy.stats.t.ppf(0.95, copies))

    percentile = MultiplierBootstrap(WORLD, rule="percentile", **settings).consume(rows).result()
    expected = np.quantile(spread.sum(axis=1), [0.05, 0.95])
    interval = percentile.interval(np.ones(DIM), level=0.9)
    np.testing.assert_allclose([interval.lower, interval.upper], expected, rtol=1e-10)
    assert interval.estimate == pytest.approx(average.sum())


def test_minibatch_copies_are_those_of_the_definition():
    rows, rng = given_rows(303), np.random.default_rng(5).spawn(1)[0]
    average, spread = learner_twins.minibatch_bootstrap(
        rows, twins.linear_gradient, linear_curvature, STEP(np.arange(1, 61)), rng, copies=6, batch=5
    )
    learner = MiniBatchBootstrap(WORLD, step=STEP, seed=5, copies=6, batch=5)
    result = learner.consume(rows).result()
    np.testing.assert_allclose(result.params, average, rtol=1e-10)
    np.testing.assert_allclose(result.covariance, 300 * np.cov(spread.T, ddof=1), rtol=1e-8)
    assert result.n == 300


def test_bootstrap_weights_have_mean_and_variance_one():
    rng = np.random.default_rng(0)
    weights = np.array([learner_twins.weights_0_or_2(rng, 70) for _ in range(2_000)])
    assert weights.mean() == pytest.approx(1.0, abs=0.012)  # four standard errors of 140,000 weights
    np.testing.assert_allclose(np.cov(weights.T), np.eye(70), atol=0.11)


def test_plug_in_is_its_definition():
    rows = given_rows(2_000)
    path = np.vstack([np.zeros(DIM), iterates(CappedSGD(WORLD, step=STEP), rows)])
    naive = PlugIn(WORLD, step=STEP).consume(rows).result()
    expected = learner_twins.plug_in(path[:-1], rows, twins.linear_gradient, linear_hessian)
    np.testing.assert_allclose(naive.covariance, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(naive.params, path[1:].mean(axis=0), rtol=1e-10)

    means = np.cumsum(path[1:], axis=0) / np.arange(1, 2_001)[:, None]
    points = np.vstack([np.zeros(DIM), means[:-1]])
    long_run = PlugIn(WORLD, step=STEP, long_run=True).consume(rows).result()
    expected, df = learner_twins.plug_in_long_run(points, rows, twins.linear_gradient, linear_hessian, 50)
    np.testing.assert_allclose(long_run.covariance, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(long_run.df, df, rtol=1e-8)
    assert ((df > 20.0) & (df < 39.0)).all()
    assert (naive.method, long_run.method) == ("plug-in", "plug-in-longrun")


def test_plug_in_adds_the_ridge_to_the_curvature():
    world = problem("seed-logistic", dim=2, epsilon=0.0, ridge=0.5)
    rows = (np.random.default_rng(0).standard_normal((200, 3)) > 0.0).astype(float)
    learner = PlugIn(interpreted(world)).consume(rows)
    path = np.vstack([np.zeros(2), iterates(CappedSGD(interpreted(world)), rows)])[:-1]

    def hessian(theta, row):
        s = 1.0 / (1.0 + math.exp(-row[:-1] @ theta))
        return s * (1.0 - s) * np.outer(row[:-1], row[:-1]) + 0.5 * np.eye(2)

    expected = learner_twins.plug_in(path, rows, lambda t, r: twins.logistic_gradient(t, r, 0.5), hessian)
    np.testing.assert_allclose(learner.result().covariance, expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("shared", "n", "burn_in"), [((60, 45), 500, 0), ((40,), 301, 0), ((20, 10, 15), 402, 0), ((60, 45), 500, 77)]
)
def test_higrad_is_its_definition(shared, n, burn_in):
    rows = given_rows(n)
    learner = HiGrad(WORLD, step=STEP, shared=shared, burn_in=burn_in).consume(rows)
    mu, standard_errors = learner_twins.higrad(
        rows, twins.linear_gradient, linear_curvature, lambda k: STEP(np.array(k)), shared, burn_in
    )
    np.testing.assert_allclose(learner.threads(), mu, rtol=1e-9)
    result = learner.result()
    np.testing.assert_allclose(result.params, mu.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(result.bse, standard_errors, rtol=1e-8)
    assert result.law.degrees_of_freedom == 2 ** len(shared) - 1


def test_parallel_runs_are_separate_runs_over_every_kth_row():
    rows = given_rows(203)
    skipped = [6, 6, 5, 5]  # of 22 rows of burn-in
    runs = [CappedSGD(WORLD, step=STEP, burn_in=b).consume(rows[r::4]).theta_bar for r, b in enumerate(skipped)]
    learner = ParallelRuns(WORLD, step=STEP, runs=4, burn_in=22).consume(rows)
    np.testing.assert_allclose(learner.averages(), runs, rtol=1e-10)
    result = learner.result()
    np.testing.assert_allclose(result.bse, np.std(runs, axis=0, ddof=1) / 2.0, rtol=1e-9)
    assert result.interval().critical == pytest.approx(scipy.stats.t.ppf(0.975, 3))


def test_the_hull_reaches_from_the_smallest_to_the_largest_run():
    rows = given_rows(300)
    runs = np.array([CappedSGD(WORLD, step=STEP).consume(rows[r::6]).theta_bar for r in range(6)])
    interval = HullOfRuns(WORLD, step=STEP).consume(rows).result().interval()
    np.testing.assert_allclose(interval.lower, runs.min(axis=0), rtol=1e-10)
    np.testing.assert_allclose(interval.upper, runs.max(axis=0), rtol=1e-10)
    np.testing.assert_allclose(interval.estimate, 0.5 * (runs.min(axis=0) + runs.max(axis=0)), rtol=1e-10)


@pytest.mark.parametrize(("runs", "level"), [(6, 0.95), (6, 0.96875), (6, 0.7), (20, 0.95), (9, 0.5)])
def test_the_hulls_rank_keeps_the_level(runs, level):
    rank = hull_rank(runs, level)
    assert 1.0 - 2.0 * scipy.stats.binom.cdf(rank - 1, runs, 0.5) >= level - 1e-9
    assert 1.0 - 2.0 * scipy.stats.binom.cdf(rank, runs, 0.5) < level


def test_a_hull_of_few_runs_says_how_many_it_needs():
    result = HullOfRuns(WORLD).run(100).result()
    with pytest.raises(NotEnoughData, match="at least 8 runs"):
        result.interval(level=0.99)


def test_richardson_romberg_combines_two_trajectories():
    rows = given_rows(400)
    large = iterates(CappedSGD(WORLD, step=PowerStep(0.05, 0.6)), rows)
    small = iterates(CappedSGD(WORLD, step=PowerStep(0.025, 0.6)), rows)
    combined = iterates(RichardsonRomberg(WORLD, step=PowerStep(0.05, 0.6)), rows)
    np.testing.assert_allclose(combined, 2.0 * small - large, rtol=1e-9, atol=1e-12)


def test_trajectory_regression_is_a_regression():
    rows = given_rows(2_000)
    path = np.vstack([np.zeros(DIM), iterates(CappedSGD(WORLD, step=STEP), rows)])[:-1]
    grads = np.array([twins.linear_gradient(theta, row) for theta, row in zip(path, rows, strict=True)])
    design = np.column_stack([np.ones(2_000), path])
    coefficients = np.linalg.lstsq(design, grads, rcond=None)[0]
    residuals = grads - design @ coefficients
    inverse = np.linalg.inv(coefficients[1:].T)
    expected = inverse @ (residuals.T @ residuals / 2_000) @ inverse.T
    result = TrajectoryRegression(WORLD, step=STEP).consume(rows).result()
    np.testing.assert_allclose(result.covariance, expected, rtol=1e-6, atol=1e-9)
    assert result.status == "iid-only"
    assert "independent rows only" in result.summary()


@pytest.mark.parametrize("name", ["iid-linear", "seed-logistic", "performative-mean"])
@pytest.mark.parametrize("eta", [0.5, 1e4])
def test_implicit_steps_solve_their_equation(name, eta):
    """theta_k = theta_{k-1} - eta_k g(theta_k, x_k), also for absurd steps."""
    world, step = interpreted(problem(name, dim=DIM)), PowerStep(eta, 0.6)
    rows = np.random.default_rng(1).standard_normal((50, world.row_size))
    path = np.vstack([np.zeros(DIM), iterates(ImplicitSGD(world, step=step), rows)])
    grad = np.empty(DIM)
    for k, row in enumerate(rows):
        world.gradient(path[k + 1], row, world.params, grad)
        eta_k = float(step(np.array(k + 1)))
        np.testing.assert_allclose(path[k + 1] + eta_k * grad, path[k], atol=1e-7 * (1.0 + eta_k))


def test_zeroth_order_steps_are_those_of_gradients():
    """Central differences of a quadratic are exact; the average over drawn coordinates is the gradient."""
    rows = given_rows(300)
    full = iterates(ZerothOrderSGD(WORLD, step=STEP), rows)
    np.testing.assert_allclose(full, iterates(CappedSGD(WORLD, step=STEP), rows), rtol=1e-8, atol=1e-10)
    start = np.ones(DIM)
    moves = np.mean(
        [
            ZerothOrderSGD(WORLD, step=PowerStep(0.01), probes=1, seed=s, theta_0=start).consume(rows[:1]).theta - start
            for s in range(3_000)
        ],
        axis=0,
    )
    expected = -0.01 * twins.linear_gradient(start, rows[0])
    np.testing.assert_allclose(moves, expected, atol=4.0 * np.abs(expected).max() * math.sqrt(2.0 / 3_000))


@pytest.mark.parametrize("name", ["iid-linear", "seed-logistic", "performative-mean"])
def test_losses_have_the_gradients_of_their_problems(name):
    world = problem(name, dim=DIM)
    theta, h = np.array([0.3, -0.7, 1.1]), 1e-6
    for row in np.random.default_rng(1).standard_normal((5, world.row_size)):
        grad = np.empty(DIM)
        world.gradient(theta, row, world.params, grad)
        differences = [
            (world.loss(theta + h * e, row, world.params) - world.loss(theta - h * e, row, world.params)) / (2.0 * h)
            for e in np.eye(DIM)
        ]
        np.testing.assert_allclose(differences, grad, rtol=1e-6, atol=1e-8)


def test_local_workers_meet_in_their_mean():
    rows = given_rows(120)
    workers, path = np.zeros((3, DIM)), []
    for k, row in enumerate(rows):
        r = k % 3
        eta = min(float(STEP(np.array(k // 3 + 1))), 1.0 / linear_curvature(workers[r], row))
        workers[r] = workers[r] - eta * twins.linear_gradient(workers[r], row)
        path.append(workers.mean(axis=0))
        if (k + 1) % 12 == 0:
            workers[:] = workers.mean(axis=0)
    found = iterates(LocalSGD(WORLD, step=STEP, workers=3, every=4), rows)
    np.testing.assert_allclose(found, path, rtol=1e-10, atol=1e-12)


def test_the_world_sees_the_start_while_rows_are_collected():
    deployed = []

    def sample(rng, theta, state, params, row):
        deployed.append(theta.copy())
        row[0] = 1.0 + rng.standard_normal()

    def gradient(theta, row, params, grad):
        grad[0] = theta[0] - row[0]

    learner = CappedSGD(
        Problem(1, gradient, sample, lambda theta, row, params: 1.0, row_size=1), warm_start=30, theta_0=[5.0]
    ).run(33)
    assert [theta[0] for theta in deployed[:30]] == [5.0] * 30
    assert abs(deployed[30][0] - 1.0) < 1.0
    assert learner.n_iterates == 3


def bare_problem(**more):
    def gradient(theta, row, params, grad):
        grad[0] = theta[0] - row[0]

    return Problem(1, gradient, row_size=1, name="bare", **more)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PlugIn(bare_problem()), "needs the rows' Hessian, and problem 'bare' has none"),
        (lambda: OneStep(bare_problem()), "the one-step centre needs the rows' Hessian, and problem 'bare' has none"),
        (
            lambda: ChunkedNewton(bare_problem()),
            "renewable Newton needs the rows' Hessian, and problem 'bare' has none",
        ),
        (lambda: ImplicitSGD(bare_problem()), "needs the rows' Hessian"),
        (lambda: PlusMinus(bare_problem()), "needs the rows' Hessian"),
        (lambda: OnlineDebiasing(problem("seed-logistic", dim=2)), "online debiasing is for linear regression"),
        (lambda: ZerothOrderSGD(bare_problem()), "needs the loss, and problem 'bare' has none"),
        (lambda: ZerothOrderSGD(WORLD, probes=4), "probes must be at most the dimension 3"),
        (lambda: MultiplierBootstrap(WORLD, copies=1), "copies must be an integer of at least 2"),
        (lambda: MultiplierBootstrap(WORLD, rule="other"), "rule must be 'normal', 'percentile' or 'cheap'"),
        (lambda: MultiplierBootstrap(WORLD, block=0), "block must be"),
        (lambda: HiGrad(WORLD, shared=()), "shared must name at least one segment"),
        (lambda: ParallelRuns(WORLD, runs=1), "runs must be an integer of at least 2"),
        (lambda: LocalSGD(WORLD, every=0), "every must be"),
        (lambda: CappedSGD(WORLD, warm_start=-1), "warm_start must be an integer of at least 0"),
        (lambda: PlugIn(WORLD).run(100).result(critical="other"), "critical must be"),
        (lambda: PlugIn(bare_problem(loss="no function")), "loss must be a function"),
    ],
)
def test_bad_input_is_refused(build, message):
    with pytest.raises(InputError, match=message):
        build()


def test_a_direction_without_curvature_is_named():
    rows = given_rows(100) * np.array([1.0, 0.0, 1.0, 1.0])
    with pytest.raises(NotEnoughData, match="singular"):
        PlugIn(WORLD).consume(rows).result()


def test_copies_that_diverge_raise():
    def gradient(theta, row, params, grad):
        grad[0] = 1.0 if theta[0] == row[0] else np.inf

    world = Problem(1, gradient, row_size=1)
    learner = MultiplierBootstrap(world, step=lambda k: np.zeros(len(k)) + 1.0, copies=4)
    learner.consume(-np.arange(20.0)[:, None])
    with np.errstate(invalid="ignore"), pytest.raises(Diverged, match="bootstrap diverged: its covariance"):
        learner.result()


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_can_be_named_in_a_study(name):
    learner = Setting(learner=name).make_learner(WORLD, [OverlappingBatchMeans(DIM)], seed=0).run(2_000)
    assert learner.name == name
    assert learner.result().n == 2_000


def test_a_settings_burn_in_reaches_methods_with_learners_of_their_own():
    setting = Setting(burn_in=0.05, watched_rows=1_900)
    for name in ("plug-in", "richardson-romberg", "one-step", "renewable-newton"):
        learner = method(name).learn(WORLD, setting, 0).run(2_000)
        assert (learner.burn_in, learner.result().n) == (100, 1_900)
    assert method("plug-in").learn(WORLD, Setting(burn_in=0.05), 0).burn_in == 0


def test_a_normal_critical_value_can_be_asked_for():
    result = ParallelRuns(WORLD, watchers=[OverlappingBatchMeans(DIM)]).run(600).result(critical="normal")
    assert result.interval().critical == pytest.approx(1.959963984540054)
    assert result.method == "parallel-runs"

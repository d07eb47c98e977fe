"""Worlds with feedback and control: the field vanishes at theta*, and what each truth says in special cases."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from halfwidth.errors import InputError
from halfwidth.learners.warm_start import collect_rows
from halfwidth.problems import problem
from halfwidth.problems.control.finite_mdp import (
    FiniteMDP,
    frozen_lake,
    garnet,
    poisson_solution,
    random_walk,
    stationary_law,
)
from halfwidth.problems.control.policy_evaluation import Evaluation
from halfwidth.problems.control.q_learning import solve_q_learning
from halfwidth.problems.mixed_logistic import GRID, _population

WORLDS = {
    "location-scale": {},
    "location-scale/logistic": {"loss": "logistic"},
    "multi-player-game": {},
    "pricing": {},
    "garnet-td": {"noise": 0.3},
    "garnet-td/lambda": {"trace": 0.7},
    "garnet-td/off-policy": {"off_policy": 0.4},
    "random-walk-td": {"trace": 0.5},
    "frozen-lake-td": {},
    "q-learning": {},
    "q-learning/features": {"dim": 3, "seed": 1},
    "actor-critic": {},
    "actor-critic/tabular": {"dim": 8},
    "missing-normal": {},
    "mixed-logistic": {},
    "adaptive-linear": {},
}
ROWS, BATCH = 40_000, 200


def world_of(key):
    return problem(key.partition("/")[0], **WORLDS[key])


def field_batches(world, theta):
    """Batch means of the field at a fixed theta."""
    rows, state = np.empty((ROWS, world.row_size)), np.array(world.state_0)
    collect_rows(world, np.random.default_rng(5), np.array(theta), state, rows[:1_000])
    collect_rows(world, np.random.default_rng(6), np.array(theta), state, rows)
    fields = np.empty((ROWS, world.dim))
    for row, field in zip(rows, fields, strict=True):
        world.gradient(theta, row, world.params, field)
    return fields.reshape(-1, BATCH, world.dim).mean(axis=1)


def distance(batches):
    """The largest |t| of the coordinates' means over 200 batches."""
    return np.abs(batches.mean(axis=0) / (batches.std(axis=0, ddof=1) / np.sqrt(len(batches)))).max()


@pytest.mark.parametrize("key", WORLDS)
def test_the_field_vanishes_at_theta_star_and_nowhere_near(key):
    """Null: |t| < 4.5 in up to 11 coordinates; the negative control is the same check half a unit away."""
    world = world_of(key)
    assert distance(field_batches(world, np.array(world.theta_star))) < 4.5
    assert distance(field_batches(world, world.theta_star + 0.5)) > 4.5


@pytest.mark.parametrize("key", WORLDS)
def test_sigma_is_a_covariance(key):
    sigma = world_of(key).sigma
    np.testing.assert_allclose(sigma, sigma.T, atol=1e-10)
    assert (np.linalg.eigvalsh(sigma) > 0.0).all()


def test_tabular_values_solve_the_bellman_equation():
    mdp = random_walk(5, discount=0.9)
    value = problem("random-walk-td", trace=0.6).theta_star
    within = mdp.transitions[:, 0, 0]
    np.testing.assert_allclose(value, (mdp.transitions * mdp.rewards).sum(axis=(1, 2, 3)) + 0.9 * within @ value)


def test_with_one_coefficient_a_state_the_trace_does_not_move_the_fixed_point():
    for name in ("random-walk-td", "frozen-lake-td"):
        np.testing.assert_allclose(problem(name, trace=0.9).theta_star, problem(name).theta_star)


def test_tabular_td_noise_has_no_memory():
    """With a value for each state the errors are martingale differences: S is diagonal, D var(d | s)."""
    evaluation = Evaluation(random_walk(), np.ones((5, 1)), np.ones((5, 1)), np.eye(5))
    pi, theta = stationary_law(random_walk().chain(np.ones((5, 1)))), evaluation.truth().theta_star
    mdp = evaluation.mdp
    d = mdp.rewards[:, 0] - theta[:, None, None]
    d[:, 0] += mdp.discount * theta
    S = np.diag(pi * (mdp.transitions[:, 0] * d**2).sum(axis=(1, 2)))
    A = pi[:, None] * (np.eye(5) - mdp.discount * mdp.transitions[:, 0, 0])
    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(evaluation.truth().sigma, inverse @ S @ inverse.T, rtol=1e-9)


def test_values_are_optimal_where_q_learning_ends():
    world = problem("q-learning")
    mdp, q = garnet(4, 2, 2, discount=0.6), world.theta_star.reshape(4, 2)
    expected = (mdp.transitions * mdp.rewards).sum(axis=(2, 3)) + 0.6 * mdp.transitions[:, :, 0] @ q.max(axis=1)
    np.testing.assert_allclose(q, expected)


def test_ties_in_the_maximum_are_refused():
    mdp = garnet(3, 1, 2, discount=0.5)
    twice = FiniteMDP(np.repeat(mdp.transitions, 2, axis=1), np.repeat(mdp.rewards, 2, axis=1), 0.5)
    with pytest.raises(InputError, match="two actions tie"):
        solve_q_learning(twice, np.eye(6), noise=0.1)


def perturbed(mdp: FiniteMDP, size: float, seed: int) -> FiniteMDP:
    """Rewards and transitions with relative errors of `size`, as another order of summation makes them."""
    rng = np.random.default_rng(seed)
    p, r = (x * (1.0 + size * rng.uniform(-1.0, 1.0, x.shape)) for x in (mdp.transitions, mdp.rewards))
    return FiniteMDP(p / p.sum(axis=(2, 3), keepdims=True), r, mdp.discount)


@pytest.mark.parametrize("offset", [0.0, 1e6], ids=["values near 1", "values near 1e6"])
@pytest.mark.parametrize("size", [1e-15, 1e-13])
def test_rounding_errors_do_not_hide_a_tie(size, offset):
    """Four actions that do the same, with 30 draws of rounding errors; one that pays 1e-4 more is the control."""
    one = garnet(5, 1, 3, discount=0.9, seed=1)
    tied = FiniteMDP(np.repeat(one.transitions, 4, axis=1), np.repeat(one.rewards + offset, 4, axis=1), 0.9)
    clear = FiniteMDP(tied.transitions, tied.rewards.copy(), 0.9)
    clear.rewards[:, 2] += 1e-4 * (1.0 + offset)
    for seed in range(30):
        with pytest.raises(InputError, match="two actions tie"):
            solve_q_learning(perturbed(tied, size, seed), np.eye(20), noise=0.1)
        found = solve_q_learning(perturbed(clear, size, seed), np.eye(20), noise=0.1).theta_star.reshape(5, 4)
        assert (found.argmax(axis=1) == 2).all()


def test_arms_that_differ_by_rounding_errors_tie():
    best = np.array([0.0, 0.3, 0.1 + 0.2])
    assert best[1] != best[2]
    with pytest.raises(InputError, match="best arms tie"):
        _ = problem("adaptive-linear", temperature=0.0, theta_r=best).truth
    clear = problem("adaptive-linear", temperature=0.0, theta_r=[0.0, 0.3, 0.301]).truth
    assert clear.sigma[2, 2] < clear.sigma[1, 1]


def test_the_lake_is_that_of_gymnasium():
    mdp = frozen_lake()
    np.testing.assert_allclose(mdp.transitions.sum(axis=(2, 3)), 1.0)
    assert mdp.states == 11
    assert (mdp.transitions * mdp.rewards).sum(axis=(2, 3)).max() == pytest.approx(1 / 3)


def test_a_performative_optimum_is_no_worse_than_the_stable_point():
    truth = problem("location-scale", scale=0.5).truth
    K = np.eye(3) - 0.5 * (0.5 * np.eye(3) + 0.5 / 3)
    beta = K @ truth.theta_star

    def risk(theta):
        return np.sum((beta - K @ theta) ** 2) + 0.5 * theta @ theta

    assert risk(truth.optimum) < risk(truth.theta_star)
    for step in 1e-3 * np.eye(3):
        assert risk(truth.optimum + step) > risk(truth.optimum) < risk(truth.optimum - step)


def test_prices_that_know_the_response_are_lower():
    truth = problem("pricing").truth
    assert (truth.optimum < truth.theta_star).all()


def test_the_poisson_equation_is_solved():
    P = garnet(seed=4).chain(garnet(seed=4).uniform())
    pi, f = stationary_law(P), np.arange(6.0)[:, None]
    g = poisson_solution(P, pi, f)
    np.testing.assert_allclose(g - P @ g, f - pi @ f, atol=1e-12)


def test_a_population_without_a_spread_is_refused():
    """The likelihood grows as the spread falls to zero, or where it is absurd; that of another ten has a maximum."""
    for settings in ({"people": 10, "seed": 4}, {"spread": 50.0}, {"spread": 1e300}, {"spread": 1e-8}):
        with pytest.raises(
            InputError, match=r"no maximum of this population's likelihood .* a spread between 0.5 and 5"
        ):
            _ = problem("mixed-logistic", **settings).truth
    assert np.isfinite(problem("mixed-logistic", people=10).truth.theta_star).all()


@pytest.mark.parametrize("seed", [0, 4])
def test_a_maximum_of_the_mixed_likelihood_is_that_of_a_slow_twin(seed):
    """Sums over effects and labels written out, and scipy's simplex from elsewhere."""
    world = problem("mixed-logistic", people=25, seed=seed)
    X, Y = _population(25, 6, 1.0, seed)
    nodes, weights = np.polynomial.hermite_e.hermegauss(GRID)

    def negative_log_likelihood(theta):
        total = 0.0
        for x, y in zip(X, Y, strict=True):
            p = expit(x @ theta[:2] + np.exp(theta[2]) * nodes[:, None])
            total -= np.log(weights @ np.prod(np.where(y == 1.0, p, 1.0 - p), axis=1))
        return total

    found = minimize(negative_log_likelihood, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
    np.testing.assert_allclose(found.x, world.theta_star, atol=1e-4)


@pytest.mark.parametrize("theta", [[-0.3, 0.8, 0.2], [0.5, -1.0, -2.0], [0.0, 2.0, 1.5]])
def test_no_row_of_mixed_logistic_bends_more_than_its_curvature(theta):
    """Against differences of the field; half the bound would not do."""
    world, theta = problem("mixed-logistic", people=25), np.array(theta)
    rows, up, down = np.empty((200, world.row_size)), np.empty(3), np.empty(3)
    collect_rows(world, np.random.default_rng(5), theta, np.array(world.state_0), rows)
    shares = []
    for row in rows:
        columns = []
        for step in 1e-5 * np.eye(3):
            world.gradient(theta + step, row, world.params, up)
            world.gradient(theta - step, row, world.params, down)
            columns.append((up - down) / 2e-5)
        shares.append(np.linalg.norm(np.column_stack(columns), 2) / world.curvature(theta, row, world.params))
    assert 0.3 < max(shares) < 1.0


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("garnet-td", {"discount": 1.0}, "discount must satisfy 0 <= discount < 1"),
        ("garnet-td", {"branching": 7}, "branching must be at most the 6 states"),
        ("garnet-td", {"dim": 7}, "dim must be at most the 6 states"),
        ("garnet-td", {"trace": 0.5, "off_policy": 0.5}, "trace must be 0 off policy"),
        ("random-walk-td", {"trace": 1.5}, "trace must lie between 0 and 1"),
        ("frozen-lake-td", {"dim": 3}, "dim must be 11"),
        ("q-learning", {"dim": 99}, "dim must lie between 1 and the 8 pairs"),
        ("location-scale", {"epsilon": 1.0}, "epsilon must be below 1"),
        ("location-scale", {"loss": "poisson"}, "loss must be 'linear' or 'logistic'"),
        ("multi-player-game", {"own": 1.5}, "is not stable"),
        ("multi-player-game", {"maps": [[1.0]]}, "maps must be finite, of shape"),
        ("pricing", {"rho": 0.0}, "rho must satisfy 0 < rho <= 1"),
    ],
)
def test_bad_settings_are_named(name, settings, message):
    with pytest.raises(InputError, match=message):
        problem(name, **settings)

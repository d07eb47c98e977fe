"""Worlds with exact truth: functions against finite differences, truths against brute force in low dimension."""

import numpy as np
import pytest
from scipy.special import expit, ndtri

from halfwidth.errors import InputError
from halfwidth.learners import LEARNERS
from halfwidth.learners.warm_start import collect_rows
from halfwidth.problems import problem
from halfwidth.problems.strategic import catch_up, sample_strategic, strategic_problem
from halfwidth.problems.strategic_population import Population, synthetic_population
from halfwidth.schedules import PowerStep

WORLDS = ["ar-logistic", "ar-poisson", "swap-game", "strategic-logistic"]


def some_row(world, seed=0):
    rng, theta, row = np.random.default_rng(seed), np.linspace(-0.5, 0.8, world.dim), np.empty(world.row_size)
    state = np.array(world.state_0)
    for _ in range(5):
        world.sample(rng, theta, state, world.params, row)
    return theta, row


def gradient_at(world, theta, row):
    grad = np.empty(world.dim)
    world.gradient(theta, row, world.params, grad)
    return grad


def differences(function, theta, h=1e-6):
    return np.array([(function(theta + h * e) - function(theta - h * e)) / (2 * h) for e in np.eye(theta.size)]).T


@pytest.mark.parametrize("name", WORLDS)
def test_gradient_and_hessian_are_derivatives_of_the_loss(name):
    world = problem(name)
    theta, row = some_row(world)
    by_loss = differences(lambda t: world.loss(t, row, world.params), theta)
    assert np.allclose(gradient_at(world, theta, row), by_loss, atol=1e-7)
    direction = np.empty(world.dim)
    weight, ridge = world.hessian(theta, row, world.params, direction)
    hessian = weight * np.outer(direction, direction) + ridge * np.eye(world.dim)
    assert np.allclose(hessian, differences(lambda t: gradient_at(world, t, row), theta), atol=1e-7)
    assert world.curvature(theta, row, world.params) >= np.linalg.eigvalsh(hessian)[-1] - 1e-12


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_runs_compiled_and_comes_near_its_truth(name):
    world = problem(name)
    learner = LEARNERS["capped"](world, step=PowerStep(1.0, 0.6), seed=0).run(40_000)
    error = learner.theta_bar - world.theta_star
    assert np.sqrt(40_000 * error @ np.linalg.solve(world.sigma, error) / world.dim) < 3.0


def gauss(points=120):
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    return nodes, weights / weights.sum()


def logistic_sigma_by_quadrature(b, phi, psi, lags):
    """Sigma in one dimension: at every lag, the probability of two labels by integrating Plackett's identity."""
    x, w = gauss()
    pair_nodes, pair_weights = np.polynomial.legendre.leggauss(60)
    s = expit(b * x)
    A = w @ (s * (1 - s) * x**2)
    S = A
    for h in range(1, lags + 1):
        first = x[:, None]
        second = phi**h * first + np.sqrt(1 - phi ** (2 * h)) * x[None, :]
        k0, k1 = ndtri(expit(-b * first)), ndtri(expit(-b * second))
        joint = np.zeros(second.shape)
        for node, weight in zip(pair_nodes, pair_weights, strict=True):
            r = 0.5 * psi**h * (node + 1)
            exponent = -(k0**2 - 2 * r * k0 * k1 + k1**2) / (2 * (1 - r**2))
            joint += 0.5 * psi**h * weight * np.exp(exponent) / (2 * np.pi * np.sqrt(1 - r**2))
        S += 2 * np.einsum("i,j,ij->", w, w, joint * first * second)
    return S / A**2


def test_ar_logistic_sigma_is_that_of_brute_force_quadrature():
    world = problem("ar-logistic", dim=1, theta_r=[0.8], phi=0.6, psi=-0.5)
    assert world.sigma[0, 0] == pytest.approx(logistic_sigma_by_quadrature(0.8, 0.6, -0.5, 40), rel=1e-8)


def test_ar_logistic_across_its_direction_is_that_of_brute_force_quadrature():
    """With theta_r = (b, 0) the second feature is independent of the label: its lags carry phi^h."""
    b, phi, psi = 1.2, 0.5, 0.7
    x, w = gauss()
    s = expit(b * x)
    A = S = w @ (s * (1 - s))
    nodes, weights = np.polynomial.legendre.leggauss(60)
    for h in range(1, 50):
        second = phi**h * x[:, None] + np.sqrt(1 - phi ** (2 * h)) * x[None, :]
        k0, k1 = ndtri(expit(-b * x[:, None])), ndtri(expit(-b * second))
        for node, weight in zip(nodes, weights, strict=True):
            r = 0.5 * psi**h * (node + 1)
            density = np.exp(-(k0**2 - 2 * r * k0 * k1 + k1**2) / (2 * (1 - r**2))) / (2 * np.pi * np.sqrt(1 - r**2))
            S += 2 * phi**h * 0.5 * psi**h * weight * np.einsum("i,j,ij->", w, w, density)
    sigma = problem("ar-logistic", dim=2, theta_r=[b, 0.0], phi=phi, psi=psi).sigma
    assert sigma[1, 1] == pytest.approx(S / A**2, rel=1e-8)
    assert abs(sigma[0, 1]) < 1e-12


def test_ar_logistic_without_signal_is_the_mean_of_independent_coins_times_features():
    sigma = problem("ar-logistic", dim=2, theta_r=[0.0, 0.0], phi=0.7, psi=0.0).sigma
    assert np.allclose(sigma, 4.0 * np.eye(2), atol=1e-10)


def test_ar_poisson_sigma_is_that_of_brute_force_quadrature():
    b, phi, psi, spread = 0.4, 0.6, 0.5, 0.7
    x, w = gauss(60)
    nu = np.exp(spread * x - 0.5 * spread**2)
    A = w @ (np.exp(b * x) * x**2)
    S = A + (w @ (nu - 1) ** 2) * (w @ (np.exp(2 * b * x) * x**2))
    for h in range(1, 80):
        x1 = phi**h * x[:, None] + np.sqrt(1 - phi ** (2 * h)) * x[None, :]
        e1 = psi**h * x[:, None] + np.sqrt(1 - psi ** (2 * h)) * x[None, :]
        features = np.einsum("i,j,ij->", w, w, np.exp(b * (x[:, None] + x1)) * x[:, None] * x1)
        noise = np.einsum("i,j,ij->", w, w, (nu[:, None] - 1) * (np.exp(spread * e1 - 0.5 * spread**2) - 1))
        S += 2 * features * noise
    world = problem("ar-poisson", dim=1, theta_r=[b], phi=phi, psi=psi, spread=spread)
    assert world.sigma[0, 0] == pytest.approx(S / A**2, rel=1e-10)


def test_poisson_moments_stay_tame_in_any_dimension():
    lengths = [np.linalg.norm(problem("ar-poisson", dim=dim).theta_star) for dim in (2, 5, 50)]
    assert np.allclose(lengths, 0.5)
    assert np.array_equal(problem("ar-poisson", dim=1).theta_star, [0.0])


@pytest.mark.parametrize("rho", [0.5, 0.9, -0.3])
def test_swap_game_sigma_has_the_eigenvalues_of_its_jacobian(rho):
    sigma = problem("swap-game", rho=rho).sigma
    assert np.allclose(sigma @ [1, 1], np.array([1, 1]) / (1 - rho) ** 2)
    assert np.allclose(sigma @ [1, -1], np.array([1, -1]) / (1 + rho) ** 2)


POPULATION = Population(*synthetic_population(5, 200), (2, 3, 4), np.array([1.0, 2.0, 1.0]), 0.4, 0.5, 0.1, 0.01)


def test_strategic_equilibrium_is_a_root_and_its_jacobian_a_derivative():
    theta = POPULATION.solve().theta_star
    force, jacobian, gradients = POPULATION.mean_field(theta, 0.4)
    assert np.abs(force).max() < 1e-13
    assert np.allclose(gradients.mean(axis=0), force)
    assert np.allclose(jacobian, differences(lambda t: POPULATION.mean_field(t, 0.4)[0], theta), atol=1e-8)


def test_feedback_moves_the_classifier_and_the_static_hessian_is_clearly_wrong():
    world = problem("strategic-logistic")
    still = problem("strategic-logistic", reach=0.0)
    assert (world.theta_star[2:] > 2.0 * still.theta_star[2:]).all()
    population = Population(*synthetic_population(5, 1_000), (2, 3, 4), np.ones(3), 0.4, 0.5, 0.1, 0.01)
    _, jacobian, gradients = population.mean_field(world.theta_star, 0.4)
    u = population.responded(world.theta_star, 0.4)
    s = expit(u @ world.theta_star)
    static = np.linalg.inv((u.T * (s * (1 - s))) @ u / len(u) + 0.01 * np.eye(5))
    believed = static @ (gradients.T @ gradients / len(u)) @ static
    assert np.sqrt(world.sigma.sum() / believed.sum()) > 1.5  # intervals from it are a third too short, and more
    assert np.linalg.eigvals(jacobian).real.min() > 0.05


def world_of(share, agents=300, **settings):
    return strategic_problem(*synthetic_population(2, agents), (1,), reach=2.0, speed=0.3, share=share, **settings)


def deviations_after(world, path, seed=0):
    rng, state, row = np.random.default_rng(seed), np.array(world.state_0), np.empty(3)
    agents = int(world.params[0])
    for theta in path:
        sample_strategic(rng, np.array([0.0, theta]), state, world.params, row)
    for agent in range(agents):
        catch_up(rng, agent, state, world.params)
    return state[1 + agents : 1 + 2 * agents]


def test_when_everybody_moves_at_every_row_deviations_are_the_plain_recursion():
    path = np.sin(np.arange(700) / 30.0)
    expected = 0.0
    for theta in path:
        expected = 0.7 * expected + 0.3 * 2.0 * theta
    assert np.allclose(deviations_after(world_of(1.0), path), expected, rtol=1e-12)


def test_moves_drawn_late_have_the_law_of_moves_drawn_at_once():
    """First two moments of a deviation follow recursions; 1,200 agents lie within four standard errors of both."""
    path, share = np.sin(np.arange(700) / 30.0), 0.05
    mean = square = fourth = cube = 0.0
    for theta in path:
        a, b = 0.7, 0.6 * theta
        moved = (
            a * mean + b,
            a**2 * square + 2 * a * b * mean + b**2,
            a**3 * cube + 3 * a**2 * b * square + 3 * a * b**2 * mean + b**3,
            a**4 * fourth + 4 * a**3 * b * cube + 6 * a**2 * b**2 * square + 4 * a * b**3 * mean + b**4,
        )
        old = (mean, square, cube, fourth)
        mean, square, cube, fourth = ((1 - share) * x + share * y for x, y in zip(old, moved, strict=True))
    seen = np.concatenate([deviations_after(world_of(share), path, seed) for seed in range(4)])
    assert abs(seen.mean() - mean) < 4 * np.sqrt((square - mean**2) / seen.size)
    assert abs((seen**2).mean() - square) < 4 * np.sqrt((fourth - square**2) / seen.size)


def test_a_row_is_an_agent_with_its_columns_moved_and_its_label():
    features, labels = synthetic_population(2, 50)
    world = strategic_problem(features, labels, (1,), reach=2.0, speed=1.0, share=1.0)
    rng, state, row = np.random.default_rng(0), np.array(world.state_0), np.empty(3)
    for _ in range(20):
        sample_strategic(rng, np.array([5.0, 0.25]), state, world.params, row)
        agent = np.flatnonzero(features[:, 0] == row[0])[0]
        assert row[1] == pytest.approx(features[agent, 1] + 0.5)
        assert row[2] == labels[agent]


def test_a_column_that_costs_twice_moves_half_as_far():
    features, labels = synthetic_population(3, 50)
    world = strategic_problem(features, labels, (0, 2), reach=2.0, cost=[1.0, 2.0], speed=1.0, share=1.0)
    rng, state, row = np.random.default_rng(0), np.array(world.state_0), np.empty(4)
    sample_strategic(rng, np.array([0.25, 5.0, 0.25]), state, world.params, row)
    agent = np.flatnonzero(features[:, 1] == row[1])[0]
    np.testing.assert_allclose(row[:3] - features[agent], [0.5, 0.0, 0.25])
    assert world.settings["cost"] == [1.0, 2.0]


def test_the_equilibrium_is_where_retraining_against_the_response_ends():
    """A slow twin of Newton's method: fit the unmoved loss to the moved population, move it again, and so on."""
    features, labels = synthetic_population(3, 200)
    world = strategic_problem(features, labels, (0, 2), reach=0.3, cost=[1.0, 2.0], ridge=0.05)
    theta = np.zeros(3)
    for _ in range(300):
        moved = features + theta * [0.3, 0.0, 0.15]
        for _ in range(20):
            s = expit(moved @ theta)
            hessian = (moved.T * (s * (1 - s))) @ moved / 200 + 0.05 * np.eye(3)
            theta = theta - np.linalg.solve(hessian, moved.T @ (s - labels) / 200 + 0.05 * theta)
    np.testing.assert_allclose(theta, world.theta_star, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": (0, 7)}, "columns must be different columns of the 2"),
        ({"share": 0.0}, "share must satisfy"),
        ({"speed": 1.5}, "speed alpha / lambda must satisfy"),
        ({"reach": np.inf}, "reach lambda must be finite"),
        ({"cost": [1.0, 1.0]}, "cost must be 1 positive numbers"),
        ({"cost": [0.0]}, "cost must be 1 positive numbers"),
        ({"ridge": -1.0}, "ridge must be at least 0"),
        ({"labels": [0.0, 2.0]}, "labels must be 2 numbers"),
        ({"features": [1.0, 2.0]}, "features must be a table"),
    ],
)
def test_bad_populations_are_named(change, message):
    good = {"features": [[0.0, 1.0], [1.0, 0.0]], "labels": [0.0, 1.0], "columns": (1,), "reach": 0.1}
    with pytest.raises(InputError, match=message):
        strategic_problem(**(good | change))


def test_a_population_without_a_stable_point_is_refused_when_its_truth_is_asked_for():
    with pytest.raises(InputError, match="lambda"):
        _ = strategic_problem(np.zeros((4, 2)), np.ones(4), (0, 1), reach=1.0).truth


@pytest.mark.slow
@pytest.mark.parametrize(("name", "eta"), list(zip(WORLDS, (3.0, 0.5, 3.0, 3.0), strict=True)))
def test_averages_of_long_runs_scatter_as_sigma_says(name, eta):
    """Null: n v'Sigma v is the variance of v'theta_bar; band of four standard errors, and 5% for finite n."""
    world, n, runs = problem(name), 100_000, 200
    averages = np.array(
        [LEARNERS["capped"](world, step=PowerStep(eta, 0.67), seed=seed).run(n).theta_bar for seed in range(runs)]
    )
    for v in np.vstack([np.eye(world.dim), np.ones(world.dim)]):
        ratio = n * np.var(averages @ v, ddof=1) / (v @ world.sigma @ v)
        assert abs(ratio - 1.0) < 0.05 + 4 * np.sqrt(2 / runs)
        assert abs(np.mean(averages @ v) - v @ world.theta_star) < 0.6 * np.sqrt(v @ world.sigma @ v / n)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ar-logistic", "ar-poisson"])
def test_offline_fits_scatter_as_sigma_says(name):
    """Null: n e'Sigma^-1 e / dim has mean one for the offline fit, which has the same limit; band of four standard
    errors, and 3% for finite n. Negative control: the covariance that ignores the lags lies outside it."""
    world, n, runs = problem(name), 20_000, 150
    errors = np.array([offline_fit(world, n, seed) - world.theta_star for seed in range(runs)])
    band = 0.03 + 4 * np.sqrt(2 / (runs * world.dim))
    assert abs(mahalanobis(errors, world.sigma) * n - 1.0) < band
    blind = problem(name, psi=0.0)
    assert mahalanobis(errors, blind.sigma) * n - 1.0 > band


def mahalanobis(errors, sigma):
    return np.einsum("ri,ij,rj->r", errors, np.linalg.inv(sigma), errors).mean() / errors.shape[1]


def offline_fit(world, n, seed):
    rows = np.empty((n + 200, world.row_size))
    collect_rows(world, np.random.default_rng(seed), np.zeros(world.dim), np.array(world.state_0), rows)
    X, y, theta = rows[200:, :-1], rows[200:, -1], world.theta_star.copy()
    for _ in range(8):
        mean = expit(X @ theta) if world.name == "ar-logistic" else np.exp(X @ theta)
        weight = mean * (1 - mean) if world.name == "ar-logistic" else mean
        theta -= np.linalg.solve((X.T * weight) @ X, X.T @ (mean - y))
    return theta

"""Problems with exact truth: closed forms, and independent brute force where there is none."""

import numpy as np
import pytest
from scipy.optimize import root
from scipy.special import expit

from halfwidth import Problem
from halfwidth.errors import InputError, UnknownName
from halfwidth.problems import PROBLEMS, Truth, problem, problem_settings

OURS = ("iid-linear", "ar-linear", "seed-linear", "seed-logistic", "performative-mean")


def test_the_linear_truths_are_their_closed_forms():
    theta_r = np.array([0.5, -1.0, 2.0])
    iid = problem("iid-linear", dim=3, noise=2.0, theta_r=theta_r)
    np.testing.assert_allclose(iid.theta_star, theta_r)
    np.testing.assert_allclose(iid.sigma, 4.0 * np.eye(3))
    ar = problem("ar-linear", dim=3, phi=0.5, psi=-0.4)
    np.testing.assert_allclose(ar.theta_star, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(ar.sigma, (1 - 0.2) / (1 + 0.2) * np.eye(3))
    seed = problem("seed-linear", dim=3)
    b = np.array([0.0, 0.5, 1.0])
    np.testing.assert_allclose(seed.theta_star, b)
    np.testing.assert_allclose(seed.sigma, 3.0 * np.linalg.inv(np.eye(3) + 0.25 * np.outer(b, b)), rtol=1e-12)


def test_the_long_run_covariance_of_the_autoregression_is_the_sum_over_lags():
    phi, psi = 0.7, 0.6
    lags = np.arange(-2000, 2001)
    expected = np.sum((phi * psi) ** np.abs(lags))
    np.testing.assert_allclose(problem("ar-linear", dim=2, phi=phi, psi=psi).sigma, expected * np.eye(2))


def test_the_performative_mean_is_its_closed_form():
    mean = problem("performative-mean", dim=2, epsilon=0.5, noise=3.0, rho=0.2)
    np.testing.assert_allclose(mean.theta_star, [2.0, 2.0])
    np.testing.assert_allclose(mean.sigma, 36.0 * np.eye(2))


@pytest.mark.parametrize("name", ["iid-linear", "ar-linear", "seed-linear"])
def test_the_scale_of_the_loss_cancels_in_sigma(name):
    np.testing.assert_array_equal(problem(name, dim=2, scale=2.0).sigma, problem(name, dim=2).sigma)


@pytest.mark.parametrize(("dim", "c"), [(2, 0.8877), (10, 0.8602), (50, 0.6808)])
def test_the_logistic_stream_shrinks_theta_r_by_a_known_factor(dim, c):
    logistic = problem("seed-logistic", dim=dim)
    np.testing.assert_allclose(logistic.theta_star, c * np.linspace(0.0, 1.0, dim), atol=5e-5)


def test_without_ridge_the_logistic_stream_finds_theta_r_and_the_fisher_information():
    theta_r = np.array([0.3, 1.0])
    logistic = problem("seed-logistic", dim=2, ridge=0.0, epsilon=0.0, theta_r=theta_r)
    points, weights = normal_grid(np.eye(2) / 3.0)
    s = expit(points @ theta_r)
    information = np.einsum("k,ki,kj->ij", weights * s * (1 - s), points, points)
    np.testing.assert_allclose(logistic.theta_star, theta_r, rtol=1e-12)
    np.testing.assert_allclose(logistic.sigma, np.linalg.inv(information), rtol=1e-8)


def test_a_logistic_stream_without_signal_is_its_closed_form():
    """theta_r = 0: A = (kappa / 4 + ridge) I and S = kappa / 4 I with kappa = 1 / 3."""
    sigma = problem("seed-logistic", dim=2, theta_r=[0.0, 0.0]).sigma
    np.testing.assert_allclose(sigma, (1 / 12) / (1 / 12 + 0.01) ** 2 * np.eye(2), rtol=1e-12)


def test_the_logistic_truth_is_continuous_where_the_signal_vanishes():
    near = problem("seed-logistic", dim=2, theta_r=[1e-5, 1e-5]).sigma
    np.testing.assert_allclose(near, problem("seed-logistic", dim=2, theta_r=[0.0, 0.0]).sigma, rtol=1e-6, atol=1e-6)


def normal_grid(covariance, half=8.0, points=121):
    """A product trapezoidal rule for N(0, covariance) in the plane."""
    x = np.linspace(-half, half, points)
    weights = np.exp(-0.5 * x**2)
    weights /= weights.sum()
    grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    return grid @ np.linalg.cholesky(covariance).T, np.outer(weights, weights).ravel()


class BruteForceLogistic:
    """The logistic stream in two dimensions by grids and finite differences; shares no formula with the package."""

    def __init__(self, theta_r, epsilon, rho, ridge):
        self.b, self.epsilon, self.rho, self.ridge = np.asarray(theta_r), epsilon, rho, ridge

    def stationary_covariance(self, theta):
        """u_k = sum_i (1 - rho)^i rho (v + epsilon theta w): the sum of the squares of its weights."""
        share = np.sum((self.rho * (1 - self.rho) ** np.arange(2000)) ** 2)
        return share * (np.eye(2) + self.epsilon**2 * np.outer(theta, theta))

    def mean_gradient(self, points, theta):
        """E[gradient | u], the label averaged out."""
        h = expit(points @ theta) - expit(points @ self.b)
        return h[:, None] * points + self.ridge * theta

    def mean_field(self, theta):
        points, weights = normal_grid(self.stationary_covariance(theta))
        return weights @ self.mean_gradient(points, theta)

    def solve(self):
        found = root(self.mean_field, self.b, tol=1e-13)
        assert np.abs(found.fun).max() < 1e-12
        return found.x

    def jacobian(self, theta, step=1e-3):
        """Central differences of fourth order; the law of u moves with theta."""
        columns = []
        for e in np.eye(2) * step:
            f = [self.mean_field(theta + k * e) for k in (-2, -1, 1, 2)]
            columns.append((f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * step))
        return np.column_stack(columns)

    def long_run_covariance(self, theta, lags=60):
        """Label noise, plus the autocovariances of E[gradient | u], each by a grid over (u_0, innovation)."""
        C = self.stationary_covariance(theta)
        points, weights = normal_grid(C, points=61, half=7.0)
        s = expit(points @ self.b)
        total = np.einsum("k,ki,kj->ij", weights * s * (1 - s), points, points)
        mean = weights @ self.mean_gradient(points, theta)
        now = self.mean_gradient(points, theta) - mean
        total += np.einsum("k,ki,kj->ij", weights, now, now)
        for lag in range(1, lags):
            r = (1 - self.rho) ** lag
            later = np.zeros_like(now)  # E[gradient at lag | u_0]
            for noise, weight in zip(*normal_grid((1 - r**2) * C, points=25, half=5.5), strict=True):
                if weight > 1e-12:
                    later += weight * (self.mean_gradient(r * points + noise, theta) - mean)
            gamma = np.einsum("k,ki,kj->ij", weights, now, later)
            total += gamma + gamma.T
        return total


@pytest.mark.parametrize(
    ("theta_r", "epsilon", "rho", "ridge", "lags"),
    [([0.0, 1.0], 0.5, 0.5, 0.01, 21), ([1.0, -0.6], 1.5, 0.6, 0.3, 18)],
)
def test_the_logistic_truth_equals_brute_force_in_the_plane(theta_r, epsilon, rho, ridge, lags):
    brute = BruteForceLogistic(theta_r, epsilon, rho, ridge)
    found = problem("seed-logistic", dim=2, theta_r=theta_r, epsilon=epsilon, rho=rho, ridge=ridge)
    theta = brute.solve()
    np.testing.assert_allclose(found.theta_star, theta, rtol=1e-8, atol=1e-10)
    A, S = brute.jacobian(theta), brute.long_run_covariance(theta, lags)
    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(found.sigma, inverse @ S @ inverse.T, rtol=1e-6, atol=1e-8)


def test_the_static_hessian_alone_would_be_wrong():
    """The negative control of the test above: with the law of u held still, Sigma differs by far more than 1e-6."""
    brute = BruteForceLogistic([1.0, -0.6], 1.5, 0.6, 0.3)
    theta = brute.solve()
    points, weights = normal_grid(brute.stationary_covariance(theta))
    s = expit(points @ theta)
    hessian = np.einsum("k,ki,kj->ij", weights * s * (1 - s), points, points) + 0.3 * np.eye(2)
    assert np.abs(brute.jacobian(theta) - hessian).max() > 0.01


@pytest.mark.parametrize("name", OURS)
def test_every_problem_has_a_truth_of_the_right_shape(name):
    for dim in (1, 4):
        built_in = problem(name, dim=dim)
        assert built_in.theta_star.shape == (dim,)
        assert built_in.sigma.shape == (dim, dim)
        np.testing.assert_allclose(built_in.sigma, built_in.sigma.T, rtol=1e-14)
        assert np.linalg.eigvalsh(built_in.sigma)[0] > 0
        assert built_in.theta_0.tolist() == [0.0] * dim
        assert (built_in.name, built_in.settings["dim"]) == (name, dim)
        with pytest.raises(ValueError, match="read-only"):
            built_in.sigma[0, 0] = 0.0


@pytest.mark.parametrize("name", OURS)
def test_curvature_bounds_how_fast_the_gradient_turns(name):
    built_in = problem(name, dim=3)
    rng = np.random.default_rng(0)
    row, a, b, grad_a, grad_b = (np.empty(size) for size in (built_in.row_size, 3, 3, 3, 3))
    state = built_in.state_0.copy()
    for _ in range(50):
        built_in.sample(rng, np.ones(3), state, built_in.params, row)
        a, b = rng.standard_normal((2, 3))
        built_in.gradient(a, row, built_in.params, grad_a)
        built_in.gradient(b, row, built_in.params, grad_b)
        bound = built_in.curvature(a, row, built_in.params) * np.linalg.norm(a - b)
        assert np.linalg.norm(grad_a - grad_b) <= bound * (1 + 1e-12)


def test_an_unknown_problem_suggests_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'seed-linear'"):
        problem("seed-liner")


def test_an_unknown_setting_lists_the_known_ones():
    with pytest.raises(InputError, match="'iid-linear' has no setting 'epsilon'; it has: dim, noise, scale"):
        problem("iid-linear", epsilon=0.5)


@pytest.mark.parametrize("name", OURS)
def test_settings_come_with_their_defaults(name):
    defaults = problem_settings(name)
    assert defaults["dim"] == problem(name).dim
    assert name in PROBLEMS


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("iid-linear", {"dim": 0}, "dim must be an integer of at least 1"),
        ("iid-linear", {"dim": 2.5}, "dim must be an integer"),
        ("iid-linear", {"noise": 0.0}, "noise must be positive"),
        ("iid-linear", {"scale": -1.0}, "scale must be positive"),
        ("iid-linear", {"dim": 2, "theta_r": [1.0]}, "theta_r must be 2 finite numbers"),
        ("iid-linear", {"dim": 2, "theta_0": [1.0, np.nan]}, "theta_0 must be 2 finite numbers"),
        ("ar-linear", {"phi": 1.0}, "phi must lie strictly between -1 and 1"),
        ("ar-linear", {"psi": float("nan")}, "psi must lie strictly between -1 and 1"),
        ("seed-linear", {"rho": 0.0}, "rho must satisfy 0 < rho <= 1"),
        ("seed-linear", {"rho": 1.5}, "rho must satisfy 0 < rho <= 1"),
        ("seed-linear", {"epsilon": float("inf")}, "epsilon must be finite"),
        ("seed-linear", {"noise": float("nan")}, "noise must be positive"),
        ("seed-logistic", {"ridge": -0.1}, "ridge must be at least 0"),
        ("performative-mean", {"epsilon": 1.0}, "epsilon must be below 1"),
        ("performative-mean", {"rho": 0.0}, "rho must satisfy"),
        ("performative-mean", {"dim": 0}, "dim must be an integer"),
        ("ar-logistic", {"phi": 0.99}, "phi must lie within"),
        ("ar-poisson", {"spread": 0.0}, "spread must be positive"),
        ("swap-game", {"rho": 1.0}, "rho must lie strictly between"),
    ],
)
def test_bad_values_are_refused(name, settings, message):
    with pytest.raises(InputError, match=message):
        problem(name, **settings)


def nothing(*arguments):
    """A function of any role."""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gradient": None}, "gradient must be a function"),
        ({"sample": 3}, "sample must be a function"),
        ({"curvature": "steep"}, "curvature must be a function"),
        ({"dim": -1}, "dim must be an integer"),
        ({"row_size": 0}, "row_size must be an integer"),
        ({"theta_0": [1.0]}, "theta_0 must be 2 finite numbers"),
        ({"params": [np.nan]}, "params must be 1 finite numbers"),
        ({"state_0": [np.inf]}, "state_0 must be 1 finite numbers"),
    ],
)
def test_a_users_problem_is_checked(settings, message):
    with pytest.raises(InputError, match=message):
        Problem(**{"dim": 2, "gradient": nothing, "row_size": 3, **settings})


def test_a_users_problem_may_know_its_truth():
    unknown = Problem(2, nothing, row_size=3)
    with pytest.raises(InputError, match="truth of problem 'custom' is not known; give Problem"):
        unknown.theta_star  # noqa: B018
    known = Problem(2, nothing, row_size=3, solve=lambda: Truth([1.0, 2.0], np.eye(2)))
    assert known.theta_star.tolist() == [1.0, 2.0]

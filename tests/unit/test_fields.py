"""Fields that are not the gradient of a loss: Jacobians in each form, LSTD as the root, errors without symmetry."""

import numpy as np
import pytest

from halfwidth import Auto, Problem
from halfwidth.equation.equation import Equation
from halfwidth.equation.errors import jackknife_errors
from halfwidth.equation.field_errors import FieldDeletions, field_errors, is_field, two_sided
from halfwidth.equation.newton import newton_root
from halfwidth.errors import InputError
from halfwidth.learners.warm_start import collect_rows
from halfwidth.problems import problem
from halfwidth.problems.control.temporal_difference import td_field, td_jacobian
from halfwidth.testing import check_world
from halfwidth.testing.world import stated_derivative

FIELDS = {
    "garnet-td": {},
    "garnet-td/off-policy": {"off_policy": 0.5},
    "random-walk-td": {"trace": 0.6},
    "frozen-lake-td": {},
}


def world_of(key):
    return problem(key.partition("/")[0], **FIELDS[key])


def rows_of(world, n, seed=0):
    rows = np.empty((n, world.row_size))
    collect_rows(world, np.random.default_rng(seed), np.zeros(world.dim), np.array(world.state_0), rows)
    return rows


def lstd(rows, dim):
    """theta = A^-1 b over the same transitions, written from the definition."""
    A, b = np.zeros((dim, dim)), np.zeros(dim)
    for row in rows:
        A += np.outer(row[:dim], row[dim : 2 * dim])
        b += row[:dim] * row[2 * dim]
    return np.linalg.solve(A, b)


@pytest.mark.parametrize("key", FIELDS)
def test_auto_on_given_transitions_is_least_squares_temporal_differences(key):
    world = world_of(key)
    rows = rows_of(world, 9_000)
    result = Auto(world).consume(rows).result()
    assert result.status == "ok"
    assert "the problem's Jacobian" in result.summary()
    np.testing.assert_allclose(result.params, lstd(rows, world.dim), rtol=0.0, atol=1e-8)


def test_the_root_is_that_of_the_transitions_that_were_drawn():
    world = problem("garnet-td")
    result = Auto(world, feedback="none", seed=3).run(5_000).result()
    rng, rows = np.random.default_rng(3), np.empty((5_000, world.row_size))
    collect_rows(world, rng, np.zeros(world.dim), np.array(world.state_0), rows)
    np.testing.assert_allclose(result.params, lstd(rows, world.dim), rtol=0.0, atol=1e-8)


def td_matrix(theta, row, params, out):
    d = len(theta)
    out[:] = np.outer(row[:d], row[d : 2 * d])


def with_matrix(world):
    """The same world in plain Python functions, its Jacobian dense."""
    return Problem(
        world.dim,
        td_field,
        world.sample,
        row_size=world.row_size,
        params=world.params,
        state_0=world.state_0,
        jacobian_matrix=td_matrix,
    )


def test_every_form_of_the_derivative_gives_the_same_interval():
    world = problem("garnet-td")
    rows = rows_of(world, 3_000)
    outer, dense = (Auto(w).consume(rows).result() for w in (world, with_matrix(world)))
    np.testing.assert_allclose(outer.conf_int(), dense.conf_int(), rtol=1e-9)
    outer, dense = (Auto(w, seed=1).run(6_000).result() for w in (world, with_matrix(world)))
    np.testing.assert_allclose(outer.conf_int(), dense.conf_int(), rtol=1e-7)


def test_a_problem_has_one_derivative():
    with pytest.raises(InputError, match="one derivative of its field: give jacobian or jacobian_matrix"):
        Problem(2, td_field, row_size=5, jacobian=td_jacobian, jacobian_matrix=td_matrix)
    assert Problem(2, td_field, row_size=5, jacobian=td_jacobian).derivative == "jacobian"
    assert Problem(2, td_field, row_size=5).derivative is None


@pytest.mark.parametrize("name", ["garnet-td", "q-learning", "actor-critic"])
def test_check_world_holds_a_jacobian_to_differences(name):
    world = problem(name)
    found = {finding.check: finding for finding in check_world(world, rows=2_000).findings}
    assert found["field and derivative"].outcome == "passed"


def swapped(theta, row, params, left, right):
    w, c = td_jacobian(theta, row, params, right, left)
    return w, c


def test_check_world_finds_a_transposed_jacobian():
    world = problem("garnet-td")
    wrong = Problem(
        world.dim, td_field, world.sample, row_size=world.row_size, params=world.params, state_0=world.state_0,
        jacobian=swapped,
    )  # fmt: skip
    found = {finding.check: finding.detail for finding in check_world(wrong, rows=2_000).failures}
    assert "the Jacobian is not the derivative of the field" in found["field and derivative"]


def batches_of(key="garnet-td", K=12):
    world = world_of(key)
    rows = rows_of(world, 60 * K)
    d = world.dim
    A = np.array([part[:, :d].T @ part[:, d : 2 * d] for part in np.split(rows, K)])
    B = np.array([part[:, :d].T @ part[:, 2 * d] for part in np.split(rows, K)])
    return A, B, np.full(K, 60.0)


def test_deleting_a_batch_of_a_field_is_exact():
    A, B, _ = batches_of()
    theta = np.linalg.solve(A.sum(axis=0), B.sum(axis=0))
    deletions = FieldDeletions.of_field(A, B - A @ theta, two_sided(A.sum(axis=0)))
    found = deletions.influences(np.eye(2))
    for b in range(len(A)):
        without = np.linalg.solve(A.sum(axis=0) - A[b], B.sum(axis=0) - B[b])
        np.testing.assert_allclose(found[b], theta - without, rtol=1e-9, atol=1e-12)


def test_errors_of_a_field_are_those_of_a_loss_where_matrices_are_symmetric():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((800, 3)) * [1.0, 50.0, 0.01]
    X[:, 2] *= rng.random(800) < 0.1
    A = np.array([part.T @ part for part in np.split(X, 20)])
    B = A @ [1.0, 0.2, 3.0] + np.array([part.T @ rng.standard_normal(40) for part in np.split(X, 20)])
    equation = Equation(A, B, np.full(20, 40.0))
    residuals = equation.residuals(np.linalg.solve(A.sum(axis=0), B.sum(axis=0)))
    plain, field = jackknife_errors(equation, residuals, A.sum(axis=0)), field_errors(equation, residuals)
    directions = np.vstack([np.eye(3), [1.0, -2.0, 0.5]])
    np.testing.assert_allclose(field.covariance(directions), plain.covariance(directions), rtol=1e-8)
    np.testing.assert_allclose(field.degrees_of_freedom(directions), plain.degrees_of_freedom(directions), rtol=1e-7)
    np.testing.assert_allclose(field.shares(directions), plain.shares(directions), rtol=1e-7)


def test_a_coefficient_that_one_batch_or_no_batch_knows_is_undetermined():
    A, B, rows = batches_of("random-walk-td")
    lone, never = A.copy(), A.copy()
    lone[1:, 4] = lone[1:, :, 4] = 0.0
    never[:, 4] = never[:, :, 4] = 0.0
    for matrices in (lone, never):
        equation = Equation(matrices, B, rows)
        hidden = field_errors(equation, B - B.mean(axis=0)).undetermined(np.eye(5))
        assert hidden.tolist() == [False, False, False, False, True]


def test_differences_tell_a_field_from_a_gradient():
    A, _, _ = batches_of()
    symmetric = 0.5 * (A + A.transpose(0, 2, 1))
    rounding = 1e-4 * np.abs(A).max() * np.random.default_rng(0).standard_normal(A.shape)
    assert is_field(A)
    assert not is_field(symmetric + rounding)


@pytest.mark.parametrize("key", ["garnet-td", "garnet-td/off-policy"])
def test_differences_give_the_interval_of_the_jacobian(key):
    world = world_of(key)
    rows = rows_of(world, 5_000)
    stated, differenced = (Auto(world, gradient_only=only).consume(rows).result() for only in (False, True))
    np.testing.assert_allclose(differenced.conf_int(), stated.conf_int(), rtol=1e-3, atol=1e-4)


def test_newton_finds_the_root_of_a_rotation_from_afar():
    """Not a gradient, and curved: steps of length one from there run away."""

    def field(x):
        return np.array([np.arctan(x[0]) + 3.0 * x[1], np.arctan(x[1]) - 3.0 * x[0]])

    def jacobian(x):
        return np.array([[1.0 / (1.0 + x[0] ** 2), 3.0], [-3.0, 1.0 / (1.0 + x[1] ** 2)]])

    root = newton_root(field, jacobian, np.array([40.0, -7.0]), 1e-20, np.ones(2))
    np.testing.assert_allclose(root, 0.0, atol=1e-8)


def test_the_stated_derivative_of_a_row_is_the_outer_product():
    world = problem("garnet-td")
    row = rows_of(world, 5)[4]
    np.testing.assert_array_equal(stated_derivative(world, np.zeros(2), row), np.outer(row[:2], row[2:4]))

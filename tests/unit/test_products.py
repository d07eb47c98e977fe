"""Sums of products inside compiled code, against the plain product."""

import numpy as np
import pytest

from halfwidth.kernels.compile import kernel
from halfwidth.kernels.products import add_square, add_symmetric, mirrored


@kernel
def add_twice(left, right, total):
    add_symmetric(left, right, total)
    add_symmetric(left, right, total)


@pytest.mark.parametrize("size", [1, 2, 7, 31, 32, 33, 64, 131])
@pytest.mark.parametrize("rows", [0, 1, 5, 128])
def test_adds_the_upper_triangle(size, rows):
    rng = np.random.default_rng(size)
    left = rng.standard_normal((rows, size))
    weights = rng.standard_normal(rows)  # of both signs
    right = weights[:, None] * left
    start = rng.standard_normal((size, size))
    total = np.array(start, order="F")
    add_twice(left, right, total)
    expected = start + 2.0 * (left.T * weights) @ left
    np.testing.assert_allclose(np.triu(total), np.triu(expected), rtol=1e-12, atol=1e-12)


def test_only_the_upper_triangle_is_written():
    left = np.ones((4, 100))
    total = np.zeros((100, 100), order="F")
    add_twice(left, left, total)
    below_panels = np.add.outer(np.arange(100) // 32, -(np.arange(100) // 32)) > 0
    assert not total[below_panels].any()


@kernel
def add_and_take_away(rows, other, total):
    add_square(rows, 1.0, total)
    add_square(other, -1.0, total)


@pytest.mark.parametrize("size", [1, 2, 7, 50])
@pytest.mark.parametrize("rows", [0, 1, 128])
def test_squares_are_added_with_their_sign(size, rows):
    rng = np.random.default_rng(size)
    one, other = rng.standard_normal((rows, size)), rng.standard_normal((3, size))
    start = rng.standard_normal((size, size))
    total, plain = np.array(start, order="F"), np.array(start, order="F")
    add_and_take_away(one, other, total)
    add_and_take_away.python(one, other, plain)
    expected = start + one.T @ one - other.T @ other
    np.testing.assert_allclose(np.triu(total), np.triu(expected), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(plain, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.tril(total, -1), np.tril(start, -1))


def test_plain_python_gives_the_same():
    left = np.random.default_rng(0).standard_normal((10, 3))
    total = np.zeros((3, 3), order="F")
    add_symmetric(left, left, total)
    np.testing.assert_allclose(total, left.T @ left)


def test_mirrored_completes_stacks():
    full = np.arange(18.0).reshape(2, 3, 3)
    full = full + np.swapaxes(full, 1, 2)
    np.testing.assert_array_equal(mirrored(np.triu(full)), full)

"""A response in proportion to the Hessian of each chunk: k against a slow twin, its error, and when it is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from halfwidth.equation import Equation, Sums
from halfwidth.learners.auto.feedback import in_proportion
from halfwidth.learners.auto.proportional import MOST_APART, ShareSums

M, DIM = 16, 3


def chunk_hessian(rng, spread):
    """M rows that stay near one direction: a Hessian sum that is far from its mean."""
    centre = rng.standard_normal(DIM)
    X = centre + spread * rng.standard_normal((M, DIM))
    return X.T @ X


def a_run(seed, response, *, chunks=400, spread=0.3, hidden=False, late=0.0, correlated=0.0):
    """Chunks with g_c = H_c (point - theta*) + J_c (theta_c - theta*) + noise of covariance H_c.

    Theta wanders with the noise, and z is a dither; `late` of the response comes a chunk late.
    """
    rng = np.random.default_rng(seed)
    star, point, base, noise, before = np.full(DIM, 0.5), np.full(DIM, 0.4), np.zeros(DIM), np.zeros(DIM), np.zeros(DIM)
    seen = []
    for _ in range(chunks):
        H = chunk_hessian(rng, spread)
        if hidden:
            H[-1] = H[:, -1] = 0.0
        z = 0.15 * rng.choice([-1.0, 1.0], DIM)
        drawn = np.linalg.cholesky(H + 1e-9 * np.eye(DIM)) @ rng.standard_normal(DIM) * (np.diag(H) > 0.0)
        noise = correlated * noise + np.sqrt(1.0 - correlated**2) * drawn
        theta = base + z
        told = (1.0 - late) * theta + late * before
        g = H @ (point - star) + response(H) @ (told - star) + noise
        seen.append((g, H @ (theta - point), z))
        base, before = 0.9 * base + 0.01 * noise, theta
    return seen


def summed(seen, dim=DIM, calls=(1, 7, 30)):
    """The sums of a run, some chunks at a time."""
    sums, at, turn = ShareSums(dim, 0), 0, 0
    while at < len(seen):
        part = seen[at : at + calls[turn % len(calls)]]
        sums.add(*(np.array(column) for column in zip(*part, strict=True)))
        at, turn = at + len(part), turn + 1
    return sums


def share(seen):
    return summed(seen).proportion(M)


@pytest.mark.parametrize("seed", range(4))
def test_k_its_error_and_its_tests_are_those_of_a_slow_twin(seed):
    seen = a_run(seed, lambda H: -0.5 * H, chunks=90)
    seen[5:9] = [(g, b, 0.0 * z) for g, b, z in seen[5:9]]  # no dither there
    found = share(seen)
    dithered = [(g, b, z) for g, b, z in seen if z.any()]
    k = -sum(z @ g for g, b, z in dithered) / sum(z @ b for g, b, z in dithered)
    left = [(g + k * b, z) for g, b, z in dithered]
    error = np.sqrt(sum((z @ e) ** 2 for e, z in left)) / sum(z @ b for g, b, z in dithered)
    assert found.share == pytest.approx(k, rel=1e-12)
    assert np.sqrt(found.variance) == pytest.approx(error, rel=1e-9)
    late = [z @ (g + k * b) for (_, _, z), (g, b, now) in pairwise(seen) if now.any()]
    assert found.late == pytest.approx(abs(sum(late)) / np.sqrt(np.sum(np.square(late))), rel=1e-9)
    each = np.array([e * z for e, z in left])
    assert found.apart == pytest.approx(
        np.max(np.abs(each.sum(axis=0)) / np.sqrt(np.square(each).sum(axis=0))), rel=1e-9
    )
    omega = np.mean([np.outer(e, e) for e, _ in left], axis=0) / M
    directions = [z / np.linalg.norm(z) for _, z in left]
    V = M * sum(np.outer(z, z) for z in directions)
    C = sum(np.outer(e, z) for (e, _), z in zip(left, directions, strict=True))
    F = np.trace(np.linalg.solve(omega, C) @ np.linalg.solve(V, C.T))
    assert found.excess == pytest.approx((F - DIM**2) / (np.sqrt(2.0) * DIM), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("correlated", [0.0, 0.9])
def test_k_is_near_the_truth_and_its_error_is_not_understated(correlated):
    found = [share(a_run(seed, lambda H: -0.5 * H, correlated=correlated)) for seed in range(100)]
    shares, error = np.array([one.share for one in found]), np.sqrt(np.mean([one.variance for one in found]))
    assert 0.8 * error < shares.std() < 1.2 * error
    assert abs(shares.mean() - 0.5) < 4.0 * error / np.sqrt(100)
    assert sum(one.fits for one in found) >= 96  # each limit is passed by chance, in less than one run of a hundred


def test_a_column_that_no_row_has_shown_changes_nothing():
    found = share(a_run(1, lambda H: -0.5 * H, hidden=True))
    assert found.share == pytest.approx(0.5, abs=4.0 * np.sqrt(found.variance))
    assert found.fits


def test_negative_control_another_response_does_not_fit():
    turn = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.5]])
    found = [share(a_run(seed, lambda H: 0.7 * M * turn, spread=1.0, chunks=1_200)) for seed in range(20)]
    assert sum(not one.fits for one in found) >= 18


def test_negative_control_one_coordinate_that_responds_alone_does_not_fit():
    found = [share(a_run(seed, lambda H: -0.9 * H * [1.0, 0.0, 0.0], chunks=1_200)) for seed in range(20)]
    assert sum(one.apart > MOST_APART for one in found) >= 18


def test_negative_control_a_late_response_does_not_fit():
    found = [share(a_run(seed, lambda H: -0.8 * H, late=0.7, chunks=1_200)) for seed in range(20)]
    assert sum(not one.fits for one in found) >= 18


def test_without_a_response_none_is_detected_and_with_one_it_is():
    seen = [a_run(seed, lambda H: 0.0 * H) for seed in range(100)]
    assert sum(in_proportion(summed(one), np.eye(DIM), M).detected for one in seen) <= 2
    seen = [a_run(seed, lambda H: -0.5 * H) for seed in range(40)]
    assert sum(in_proportion(summed(one), np.eye(DIM), M).detected for one in seen) >= 39


def test_a_session_takes_over_from_the_one_before_once_it_is_sure():
    sums = summed(a_run(0, lambda H: -0.5 * H, chunks=1_500))
    first = sums.proportion(M)
    assert not sums.wanted(M)
    sums.begin(1_000, M)
    assert sums.wanted(M)
    assert sums.proportion(M) == first
    for g, b, z in a_run(1, lambda H: -0.2 * H, chunks=1_500):
        sums.add(g[None], b[None], z[None])
    assert not sums.wanted(M)
    assert sums.proportion(M).share == pytest.approx(0.2, abs=0.25)
    again = ShareSums.from_state(sums.to_state())
    assert again.proportion(M) == sums.proportion(M)
    assert again.before == first


def test_the_equation_of_a_share_is_that_of_every_piece():
    rng = np.random.default_rng(3)
    pieces = [(chunk_hessian(rng, 1.0), *rng.standard_normal((2, DIM))) for _ in range(12)]
    curved = rng.standard_normal((12, DIM))
    sums = Sums(
        np.array([sum(H for H, *_ in pieces[j : j + 3]) for j in range(0, 12, 3)]),
        np.array([sum(b for _, b, _ in pieces[j : j + 3]) for j in range(0, 12, 3)]),
        np.zeros((4, DIM)),
        np.array([sum(H @ x for H, _, x in pieces[j : j + 3]) for j in range(0, 12, 3)]),
        np.array([sum(curved[j : j + 3]) for j in range(0, 12, 3)]),
        np.full(4, 3.0 * M),
        np.zeros(4),
    )
    centre, influences = Equation.of(sums, share=0.4).solve()
    # b_c - H_c c + 0.4 H_c (c - x_c) - 0.4^2 R_c adds up to zero over chunks, and per batch to what that leaves
    each = np.array(
        [b - H @ centre + 0.4 * H @ (centre - x) - 0.16 * R for (H, b, x), R in zip(pieces, curved, strict=True)]
    )
    np.testing.assert_allclose(each.sum(axis=0), 0.0, atol=1e-9)
    whole = 0.6 * sum(H for H, *_ in pieces)
    np.testing.assert_allclose(influences, np.linalg.solve(whole, each.reshape(4, 3, DIM).sum(axis=1).T).T, atol=1e-12)


def test_sessions_are_added_up_and_one_that_disagrees_is_told():
    """k of two sessions is that of all their chunks; the second by itself may be far from it only by chance."""
    first, second = (a_run(seed, lambda H: -0.5 * H, chunks=90) for seed in (1, 2))
    sums = summed(first)
    alone = sums.proportion(M)
    sums.begin(90 * M, M)
    assert sums.proportion(M).share == pytest.approx(alone.share, rel=1e-12)
    sums.add(*(np.array(column) for column in zip(*second, strict=True)))
    k = -sum(z @ g for g, b, z in first + second) / sum(z @ b for g, b, z in first + second)
    left = sum((z @ (g + k * b)) ** 2 for g, b, z in first + second)
    assert not sums.wanted(M)
    found = sums.proportion(M)
    assert found.share == pytest.approx(k, rel=1e-12)
    assert found.variance == pytest.approx(left / sum(z @ b for g, b, z in first + second) ** 2, rel=1e-9)
    assert found.variance < alone.variance
    assert found.fits
    changed = summed(a_run(1, lambda H: -0.5 * H))
    changed.begin(400 * M, M)
    changed.add(*(np.array(column) for column in zip(*a_run(2, lambda H: 0.5 * H), strict=True)))
    assert not changed.proportion(M).fits


@pytest.mark.parametrize("alone", [0.9, 0.0])
def test_a_coordinate_that_responds_by_more_is_doubted_before_the_run_is(alone):
    found = [summed(a_run(seed, lambda H: -alone * H * [1.0, 0.0, 0.0])) for seed in range(40)]
    shares = [sums.proportion(M) for sums in found]
    more = np.array([sums.more(known.share) for sums, known in zip(found, shares, strict=True)])
    assert more[:, 1:].sum() <= 3
    if alone:
        assert more[:, 0].sum() >= max(30, 10 + sum(not known.fits for known in shares))
    else:
        assert more[:, 0].sum() <= 2


def test_more_is_what_matters():
    """A coordinate that responds by a little more is seen, and not doubted."""
    sums = summed(a_run(1, lambda H: -0.5 * H * [1.1, 1.0, 1.0], chunks=20_000))
    k = sums.proportion(M).share
    own = -sums.each[0] / sums.each[1]
    assert own[0] > k
    assert not sums.more(k).any()

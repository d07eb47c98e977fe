"""A response in proportion to the Hessian of each chunk: k against a slow twin, its error, and when it is used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from halfwidth.equation import Equation, Sums
from halfwidth.errors import NotEnoughData
from halfwidth.learners.auto import Auto
from halfwidth.learners.auto.absorb import follow
from halfwidth.learners.auto.feedback import regress
from halfwidth.learners.auto.moments import FeedbackNotes
from halfwidth.learners.auto.proportional import proportion
from halfwidth.problems import problem

M, DIM = 16, 3


def chunk_hessian(rng, spread):
    """M rows that stay near one direction: a Hessian sum that is far from its mean."""
    centre = rng.standard_normal(DIM)
    X = centre + spread * rng.standard_normal((M, DIM))
    return X.T @ X


def a_run(seed, response, *, chunks=400, step=0.1, spread=0.3, truth=0.5, sd=1.0, hidden=False):
    """Chunks c with H_c, theta_c and g_c = H_c (point - theta*) - J_c (theta* - theta_c) + noise of covariance H_c."""
    rng = np.random.default_rng(seed)
    notes, theta, trace = FeedbackNotes(DIM), np.zeros(DIM), np.full(DIM, np.nan)
    star, point, seen = np.full(DIM, truth), np.full(DIM, 0.4), []
    for _ in range(chunks):
        H = chunk_hessian(rng, spread)
        if hidden:
            H[-1] = H[:, -1] = 0.0
        noise = sd * np.linalg.cholesky(H + 1e-9 * np.eye(DIM)) @ rng.standard_normal(DIM) * (np.diag(H) > 0.0)
        J = response(H)
        g = H @ (point - star) + J @ (theta - star) + noise
        page = notes.blank()
        page.gradient[0], page.offset[0], page.dither[0] = g, theta - point, 0.0
        follow(theta, step, trace, page.lag[0])
        page.bend[0], page.pull[0] = H @ (theta - point), H @ point
        page.late[0], page.tilt[0] = H @ page.lag[0], 0.0
        seen.append((H, g, theta.copy(), page.lag[0].copy()))
        notes.note(np.array([step]), point, M * (1.0 + spread**2) * point)
        theta = theta - 2.0 * step / (M * (1.0 + spread**2)) * (g + H @ (theta - point))  # along (H / 2)^-1
    return notes.moments(), seen, point


def mean_hessian(seen):
    return np.mean([H for H, *_ in seen], axis=0) / M


def slow_twin(seen, point, late):
    """v, k and c by least squares over all chunks, each whitened by the root of its Hessian."""
    left, right = [], []
    for H, g, theta, lag in seen:
        root = np.linalg.cholesky(H)
        columns = [H, H @ theta[:, None]] + ([H @ lag[:, None]] if late else [])
        left.append(np.linalg.solve(root, np.hstack(columns)))
        right.append(np.linalg.solve(root, -(g - H @ point)))
    return np.linalg.lstsq(np.vstack(left), np.concatenate(right))[0][DIM:]


@pytest.mark.parametrize("seed", range(5))
def test_k_is_that_of_weighted_least_squares(seed):
    moments, seen, point = a_run(seed, lambda H: -0.5 * H)
    found = proportion(moments, mean_hessian(seen), M)
    plain, both = slow_twin(seen, point, False), slow_twin(seen, point, True)
    raw = 1.0 - (1.0 - found.share) * (1.0 + (2.0 + 2.0 / DIM) / moments.renewals)
    if both[0] * both[1] <= 0.0:
        assert raw == pytest.approx(plain[0], abs=1e-6)
    else:
        assert min(plain[0], both[0]) - 1e-6 <= raw <= max(plain[0], both[0]) + 1e-6


def test_k_is_near_the_truth_and_its_error_is_not_understated():
    runs = (a_run(seed, lambda H: -0.5 * H) for seed in range(200))
    found = [
        one for one in (proportion(moments, mean_hessian(seen), M) for moments, seen, _ in runs) if one is not None
    ]
    assert len(found) >= 190
    shares, error = np.array([one.share for one in found]), np.sqrt(np.mean([one.variance for one in found]))
    assert 0.5 * error < shares.std() < 1.1 * error
    assert abs(shares.mean() - 0.5) < 0.5 * error


@pytest.mark.parametrize("sd", [0.1, 1.0, 10.0])
def test_a_column_that_no_row_has_shown_changes_no_error(sd):
    runs = (a_run(1, lambda H: -0.5 * H, sd=sd, hidden=hidden) for hidden in (True, False))
    without, full = (proportion(moments, mean_hessian(seen), M) for moments, seen, _ in runs)
    assert without.noise == pytest.approx(full.noise, rel=0.35)
    assert without.share == pytest.approx(0.5, abs=4.0 * np.sqrt(without.variance))


def test_no_direction_has_more_degrees_of_freedom_for_being_a_contrast():
    result = Auto(problem("table-linear", epsilon=0.5), seed=3).run(50_000).result()
    alone, nearly = result.degrees_of_freedom(
        np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1e-12, 0.0, 0.0, 0.0, 0.0]])
    )
    assert nearly == pytest.approx(alone, rel=1e-6)
    assert result.df.min() <= result.law.degrees_of_freedom <= result.df.max()
    assert result.slope_df > alone


def test_with_too_few_degrees_of_freedom_there_is_no_interval():
    learner = Auto(problem("table-linear", epsilon=0.5), seed=3).run(50_000)
    seen = learner._steered.response()
    learner._steered.response = lambda: replace(seen, freedom=1.5)
    result = learner.result()
    assert (result.df < 2.0).all()
    assert result.refused.all()


def test_negative_control_another_response_is_not_taken_for_one_in_proportion():
    turn = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.5]])
    runs = [a_run(seed, lambda H: 0.7 * M * turn, spread=1.0, chunks=1_200) for seed in range(40)]
    assert sum(proportion(moments, mean_hessian(seen), M) is None for moments, seen, _ in runs) >= 36


def test_without_a_response_there_is_none():
    runs = (a_run(seed, lambda H: 0.0 * H) for seed in range(40))
    found = [regress(moments, mean_hessian(seen), M, unlike=True) for moments, seen, _ in runs]
    assert sum(response.kept > 0.0 for response in found) <= 2


def test_where_chunks_are_alike_it_is_not_tried():
    result = Auto(problem("performative-mean", dim=3), seed=1).run(50_000).result()
    assert result.feedback.detected
    assert not any("own Hessian" in note for note in result.diagnostics.notes)


def test_the_equation_of_a_share_is_that_of_every_piece():
    rng = np.random.default_rng(3)
    pieces = [(chunk_hessian(rng, 1.0), *rng.standard_normal((2, DIM))) for _ in range(12)]
    sums = Sums(
        np.array([sum(H for H, *_ in pieces[j : j + 3]) for j in range(0, 12, 3)]),
        np.array([sum(b for _, b, _ in pieces[j : j + 3]) for j in range(0, 12, 3)]),
        np.zeros((4, DIM)),
        np.array([sum(H @ x for H, _, x in pieces[j : j + 3]) for j in range(0, 12, 3)]),
        np.full(4, 3.0 * M),
        np.zeros(4),
    )
    centre, influences = Equation.of(sums, share=0.4).solve()
    # b_c - H_c c + 0.4 H_c (c - x_c) adds up to zero over all chunks, and per batch to what the batch leaves
    each = np.array([b - H @ centre + 0.4 * H @ (centre - x) for H, b, x in pieces])
    np.testing.assert_allclose(each.sum(axis=0), 0.0, atol=1e-9)
    whole = 0.6 * sum(H for H, *_ in pieces)
    np.testing.assert_allclose(influences, np.linalg.solve(whole, each.reshape(4, 3, DIM).sum(axis=1).T).T, atol=1e-12)


def test_features_in_spells_with_a_response_are_covered():
    """The stand-in table: a trend, a season, an autoregression and a rare event; responses follow forecasts."""
    world = problem("table-linear", epsilon=0.5)
    ok = covered = 0
    for seed in range(24):
        try:
            result = Auto(world, seed=seed).run(50_000).result()
        except NotEnoughData:  # theta ran away when the event came, and what is left is too little
            continue
        flags = result.diagnostics.coefficient_flags or ((),) * world.dim
        for j in range(world.dim):
            if result.status == "ok" and not flags[j]:
                interval = result.interval(np.eye(world.dim)[j])
                ok += 1
                covered += interval.lower <= world.theta_star[j] <= interval.upper
    assert ok >= 0.5 * 24 * world.dim
    assert covered / ok >= 0.95 - 3.3 * np.sqrt(0.95 * 0.05 / ok)
    assert result.feedback.detected
    assert result.feedback.strength == pytest.approx(0.5, abs=0.15)
    assert any("of each chunk's own Hessian" in note for note in result.diagnostics.notes)
    np.testing.assert_allclose(result._trail().params[-1], result.params)
    assert len(repr(result)) < 5_000

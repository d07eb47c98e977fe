"""Responses that are curved in theta: what the loss's own curvature says of them (`curved_response`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import halfwidth as hw
from halfwidth import Auto
from halfwidth.equation import Equation, Sums
from halfwidth.inference import Diagnostics, NormalLaw, Result
from halfwidth.learners.auto import curved_response, reading
from halfwidth.learners.auto.curved_response import MOST_LOST, MOST_SHIFT, Curved
from halfwidth.learners.auto.feedback import Response
from halfwidth.learners.auto.instrument import Instrument
from halfwidth.learners.auto.result import doubted_throughout
from halfwidth.problems import problem

M = 64
SURE = Instrument(9.0, 9.0, 9.0, 9.0, False)


def sigmoid(eta):
    return 1.0 / (1.0 + np.exp(-eta))


def responding(J, **more):
    """A response that the dither has confirmed."""
    return Response(J, 1.0, 10.0, instrument=SURE, **more)


def sums_of(H, R, rows, T=None):
    """Batches with these H and R, and nothing else."""
    d = H.shape[1]
    empty = np.zeros((len(rows), d))
    return Sums(H, empty, empty if T is None else T, empty, R, np.asarray(rows, dtype=float), np.zeros(len(rows)))


def test_what_theta_leaves_out_of_the_expansions_is_summed_as_defined():
    """Slow twin: R, x'H x and x'(g(l + x) - g(l)) of every chunk, from what was told."""
    rng, learner, beta = np.random.default_rng(3), hw.Auto(dim=2, chunk_rows=M, seed=1), np.array([0.5, -1.0])
    left, along, change, chunks, began = np.zeros(2), 0.0, 0.0, 0, None
    for _ in range(150):
        request = learner.ask()
        engine = learner._steered
        x = rng.standard_normal((M, 2))
        y = rng.random(M) < sigmoid(x @ (beta + 0.5 * request.theta))
        gradients = np.array([x.T @ (sigmoid(x @ point) - y) for point in request.points])
        point, away = request.points[1], request.points[0] - request.points[1]
        p = sigmoid(x @ point)
        H = (x.T * (p * (1.0 - p))) @ x
        if engine.began != began:
            began, left, along, change, chunks = engine.began, np.zeros(2), 0.0, 0.0, 0
        left = left + gradients[0] - gradients[1] - H @ away
        along, change, chunks = along + away @ H @ away, change + away @ (gradients[0] - gradients[1]), chunks + 1
        learner.tell(request, gradients, H)
    assert engine.began == began > 0
    np.testing.assert_allclose(engine.store.sums.R.sum(axis=0), left, rtol=1e-9)
    np.testing.assert_allclose(engine.moving.swept, [along, change, chunks], rtol=1e-9)
    assert abs(left[0]) > 1e-3  # the loss is curved


def test_a_curved_response_of_known_share_is_taken_off_to_second_order():
    """Exact means: labels at the root + k x, rows expanded at the root; the root must come out again."""
    rng = np.random.default_rng(1)
    x, star, k = rng.standard_normal((400, 3)) + np.array([1.0, 0.0, 0.0]), np.array([-1.0, 0.5, -0.3]), 0.6
    p = sigmoid(x @ star)
    H = (x.T * (p * (1.0 - p))) @ x
    moves = np.concatenate([0.2 * np.eye(3), -0.2 * np.eye(3)])
    left = np.array([x.T @ (sigmoid(x @ (star + z)) - p) - H @ z for z in moves])
    gradients = np.array([x.T @ (p - sigmoid(x @ (star + k * z))) for z in moves])
    n = np.full(len(moves), 400.0)
    sums = sums_of(np.tile(H, (len(moves), 1, 1)), left, n, 400.0 * moves)._replace(b=-gradients)
    J = -k * H / 400.0
    change = sum(z @ (H @ z + r) for z, r in zip(moves, left, strict=True))
    swept = np.array([sum(z @ H @ z for z in moves), change, len(moves)])
    curved = Curved.of(swept, 400, sums, responding(J, spread=moves.T @ moves))
    assert curved.bend == pytest.approx(k * k)
    plain, corrected = (np.abs(Equation.of(sums, J, bend=bend).solve()[0]).max() for bend in (0.0, curved.bend))
    assert corrected < 0.05 * plain


def test_a_response_that_is_not_detected_takes_nothing_off():
    H, R, J = np.tile(np.diag([2.0, 1.0]), (3, 1, 1)), np.ones((3, 2)), np.diag([-0.04, -0.02])
    sums, swept = sums_of(H, R, [100.0] * 3), np.array([1.0, 0.7, 3.0])
    unsure = Curved.of(swept, 100, sums, Response(J, 0.9, 9.0))
    assert unsure.bend == 0.0
    assert unsure.lost == pytest.approx(0.3)
    assert Curved.of(swept, 100, sums, responding(J)).bend > 0.0  # negative control


def test_an_insignificant_response_of_many_coefficients_moves_no_root(monkeypatch):
    """An insignificant J of 50 coefficients made k^2 a half: 4 to 6 standard errors of their sum, in each fifth run."""
    world, direction, found = problem("seed-logistic", dim=50), np.ones(50), {}
    learners = [Auto(world, seed=seed).run(125_000) for seed in (5_004, 5_006, 5_000)]
    of = Curved.of
    for own in (True, False):
        if not own:  # negative control: as if it were detected
            monkeypatch.setattr(reading.Curved, "of", lambda *a: of(*a[:3], replace(a[3], instrument=SURE)))
        results = [learner.result().interval(direction=direction) for learner in learners]
        found[own] = [(i.estimate - world.theta_star.sum()) / i.std_error for i in results]
    assert np.abs(found[True]).max() < 2.0
    assert np.max(found[False]) > 4.0


def test_how_far_the_correction_moves_the_root_is_in_standard_errors_of_the_coefficient_it_moves_most():
    H, R = np.tile(100.0 * np.eye(2), (4, 1, 1)), np.tile([1.0, -3.0], (4, 1))
    sums, errors = sums_of(H, R, [100.0] * 4), np.array([0.1, 0.01])
    equation = Equation.of(sums, -0.5 * np.eye(2))
    assert Curved(2.0).shift(equation, R.sum(axis=0), errors) == pytest.approx(2.0 * 12.0 / 200.0 / 0.01)
    assert Curved(2.0).shift(equation, R.sum(axis=0), np.array([0.1, np.nan])) == pytest.approx(2.0 * 4.0 / 200.0 / 0.1)
    assert Curved(0.0).shift(equation, R.sum(axis=0), errors) == 0.0


@pytest.mark.parametrize(
    ("response", "along"), [(Response(np.eye(1), 0.0, 0.0), 1.0), (Response(np.eye(1), 1.0, 9.0, instrument=SURE), 0.0)]
)
def test_without_a_response_or_a_theta_that_moves_nothing_is_taken_off(response, along):
    sums = sums_of(np.ones((2, 1, 1)), np.ones((2, 1)), [10.0, 10.0])
    assert Curved.of(np.array([along, 0.5, 2.0]), 10, sums, response) == Curved()


def test_a_column_that_no_row_has_shown_stays_out_of_it():
    H = np.tile(np.diag([1.0, 0.0]), (2, 1, 1))
    sums = sums_of(H, np.array([[1.0, 0.0]] * 2), [10.0, 10.0])
    found = Curved.of(np.array([1.0, 0.9, 2.0]), 10, sums, responding(np.diag([-0.05, 0.0])))
    assert found.bend == pytest.approx(0.25)
    assert found.lost == pytest.approx(0.1)


def test_the_doubt_is_about_large_corrections_and_lost_or_gained_curvature():
    assert not Curved(1.0, 0.5 * MOST_LOST).doubts(0.5 * MOST_SHIFT)
    assert Curved(1.0, 0.0).doubts(1.1 * MOST_SHIFT)
    assert Curved(1.0, 1.1 * MOST_LOST).doubts(0.0)
    assert Curved(1.0, -1.1 * MOST_LOST).doubts(0.0)


def labels_that_follow(epsilon, runs, n=50_000):
    """Errors of the runs with status ok, in standard errors, and how many have the doubt."""
    world, z, doubted = problem("location-scale", dim=3, loss="logistic", epsilon=epsilon), [], 0
    for seed in range(runs):
        result = hw.Auto(world, seed=40_000 + seed).run(n).result()
        doubted += result.status == "curved-response"
        if result.status == "ok":
            z.append((result.params - world.theta_star) / result.bse)
    return np.array(z).reshape(len(z), 3), doubted


def test_a_response_that_nearly_cancels_a_curved_loss_is_doubted(monkeypatch):
    """Four in five of the labels follow theta: such runs were ok, and 7 standard errors off."""
    z, doubted = labels_that_follow(0.8, 20)
    assert doubted >= 12
    assert len(z) <= 2
    monkeypatch.setattr(reading.Curved, "of", lambda *_: Curved())  # negative control
    z, _ = labels_that_follow(0.8, 20)
    assert len(z) >= 8
    assert np.mean(np.abs(z) > 5.0) > 0.5


def test_the_correction_takes_most_of_the_bias_off(monkeypatch):
    """Three in five follow; without doubts, so that both are over the same runs. 60 runs: a mean z is within 0.26."""
    monkeypatch.setattr(curved_response, "MOST_SHIFT", np.inf)
    z, _ = labels_that_follow(0.6, 60)
    corrected = z.sum(axis=1).mean() / np.sqrt(3.0)
    monkeypatch.setattr(reading.Curved, "of", lambda *_: Curved())  # negative control
    z, _ = labels_that_follow(0.6, 60)
    plain = z.sum(axis=1).mean() / np.sqrt(3.0)
    assert plain < -0.8
    assert abs(corrected) < 0.6 * abs(plain)


def test_a_run_is_not_ok_where_each_of_its_coefficients_is_doubted():
    def result(*flags):
        return Result(np.zeros(2), np.eye(2), 10, NormalLaw(), "auto", Diagnostics(10.0, coefficient_flags=flags))

    doubted = doubted_throughout(result(("rare",), ("rare", "not-settled")))
    assert doubted.status == "rare"
    assert "rare (2), not-settled (1) of 2" in doubted.diagnostics.warnings[0]
    for fine in (result(("rare",), ()), result()):  # negative controls
        assert doubted_throughout(fine) is fine

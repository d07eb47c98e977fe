"""How long the batches behind a steered result are: as short as they can be, and longer where noise lasts."""

import numpy as np
import pytest

from auto_twin import longer_show_more, pairs_of
from halfwidth import Auto, problem
from halfwidth.equation import Equation, Sums
from halfwidth.learners.auto import reading, status
from halfwidth.learners.auto.feedback import Response
from halfwidth.learners.auto.stores import steered_store

ALIKE = Response(np.zeros((2, 2)), 0.0, 0.0)


def batches(psi, count=100, seed=0):
    """Equal batches of a mean in two dimensions, under AR(psi) noise from batch to batch."""
    rng, noise = np.random.default_rng(seed), np.zeros((count, 2))
    for k in range(1, count):
        noise[k] = psi * noise[k - 1] + rng.standard_normal(2)
    rows = np.full(count, 256.0)
    sums = Sums(256.0 * np.tile(np.eye(2), (count, 1, 1)), noise, noise, noise, noise, rows, rows)
    return Equation(sums.H, sums.b, rows), sums


@pytest.mark.parametrize(("psi", "fewest", "most"), [(0.0, 100, 100), (0.3, 25, 50), (0.9, 16, 31)])
def test_batches_merge_while_longer_ones_show_more_noise(psi, fewest, most):
    counts = []
    for seed in range(20):
        equation, sums = batches(psi, seed=seed)
        behind, own = reading.long_enough(equation, sums, 64, ALIKE)
        twin = equation.solve()[1]
        while len(twin) >= 32 and longer_show_more(twin):
            twin = pairs_of(twin)
        np.testing.assert_allclose(behind.solve()[1], twin, atol=1e-12)
        np.testing.assert_allclose(behind.rows, own.n)
        np.testing.assert_allclose(behind.solve()[0], equation.solve()[0], atol=1e-12)
        counts.append(len(twin))
    assert fewest <= np.median(counts) <= most


def test_a_kernel_is_over_at_most_as_many_batches_as_the_doubts_look_at(monkeypatch):
    equation, sums = batches(0.9)
    monkeypatch.setattr(Response, "denied", True)
    assert len(reading.long_enough(equation, sums, 64, ALIKE)[0].rows) == 50


@pytest.mark.parametrize(
    ("dim", "batch_rows", "capacity"), [(2, 256, 128), (128, 512, 128), (129, 512, 64), (600, 512, 32)]
)
def test_how_many_batches_are_kept(dim, batch_rows, capacity):
    assert steered_store(dim, batch_rows).capacity == capacity


def test_twice_as_many_batches_make_narrower_intervals_that_still_cover(monkeypatch):
    """Negative control: merged to 64 and fewer, the same runs have fewer degrees of freedom, and wider intervals."""
    world = problem("performative-mean", dim=2)
    learners = [Auto(world, seed=seed).run(20_000) for seed in range(40)]
    more = [learner.result() for learner in learners]
    monkeypatch.setattr(reading, "long_enough", lambda equation, sums, most, response: (equation.merged(most), sums))
    fewer = [learner.result() for learner in learners]
    assert np.median([len(result.influences) for result in more]) == 70
    assert np.median([len(result.influences) for result in fewer]) == 35
    nu = [np.median([result.law.nu for result in results]) for results in (more, fewer)]
    assert nu[0] > 1.1 * nu[1]
    covered = np.mean([result.interval().covers(world.theta_star) for result in more])
    assert 0.88 <= covered <= 0.99  # 80 intervals: 0.95 +- three standard deviations of 0.024


def test_few_degrees_of_freedom_of_a_kernel_are_short_batches(monkeypatch):
    """Correlated noise over a fifth of the stream is doubted, over 50 of 50,000 rows it is not."""
    found = {}
    for psi in (0.98, 0.9999):
        world = problem("performative-ar", dim=2, epsilon=0.0, psi=psi)
        found[psi] = [Auto(world, seed=seed).run(50_000).result() for seed in range(4)]
    assert all(result.status == "ok" and result.law.nu >= status.FEW_DEGREES for result in found[0.98])
    assert all(result.status != "ok" for result in found[0.9999])

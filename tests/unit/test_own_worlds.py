"""Worlds of one's own: the three ways of docs/worlds.md are one world, and what is wrong with a world is named."""

import re
from pathlib import Path

import numpy as np
import pytest

import halfwidth as hw
from halfwidth.errors import InputError, NotEnoughData, NotIdentified
from halfwidth.problems import Truth
from halfwidth.testing import check_world

PAGE = Path(__file__).parents[2] / "docs" / "worlds.md"


def run_block(number):
    """The names that a Python block of the page ends with."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    names = {}
    exec(blocks[number], names)
    return names


def test_the_three_versions_of_the_page_give_the_same_intervals():
    numba, numpy, python = (run_block(number)["interval"] for number in range(3))
    for other in (numpy, python):
        np.testing.assert_allclose(other.estimate, numba.estimate, rtol=1e-9)
        np.testing.assert_allclose(other.half_width, numba.half_width, rtol=1e-9)
    assert numba.covers([6.0, 6.0]).all()


class Mean:
    """Right in every respect."""

    dim = 2
    theta_0 = None

    def __init__(self):
        self.reset(0)

    def reset(self, seed):
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros(2)

    def step(self, theta):
        self.state = 0.5 * self.state + 0.5 * (1.0 + 0.5 * theta + self.rng.standard_normal(2))
        return self.state

    def gradient(self, theta, row):
        return theta - row

    def loss(self, theta, row):
        return 0.5 * np.sum((theta - row) ** 2)

    def solve(self):
        return Truth([2.0, 2.0], 4.0 * np.eye(2))


class Means(Mean):
    """The same, three at once."""

    replicates = 3

    def reset(self, seed):
        self.rngs = [np.random.default_rng(seed + r) for r in range(3)]
        self.state = np.zeros((3, 2))

    def draw(self, theta, rows):
        drawn = np.empty((3, rows, 2))
        noise = np.stack([rng.standard_normal((rows, 2)) for rng in self.rngs])
        for k in range(rows):
            self.state = 0.5 * self.state + 0.5 * (1.0 + 0.5 * theta + noise[:, k])
            drawn[:, k] = self.state
        return drawn

    def gradient(self, theta, rows):
        return theta[:, None] - rows

    loss = None


@pytest.mark.parametrize("world", [Mean, Means])
def test_a_right_world_passes(world):
    report = check_world(world(), rows=3_000)
    assert report.ok, str(report)
    outcomes = {finding.check: finding.outcome for finding in report.findings}
    assert outcomes["truth"] == outcomes["forgets its start"] == outcomes["determinism"] == "passed"
    assert outcomes["replicates"] == ("passed" if world is Means else "not stated")


class ForgetsToReset(Mean):
    state = np.zeros(2)

    def reset(self, seed):
        self.rng = np.random.default_rng(seed)


class OtherLoss(Mean):
    def loss(self, theta, row):
        return np.sum((theta - row) ** 2)


class WrongTruth(Mean):
    def solve(self):
        return Truth([1.0, 1.0], np.eye(2))


class WrongSign(Mean):
    loss = None

    def gradient(self, theta, row):
        return 2.0 * (row - theta)


class NotFinite(Mean):
    def gradient(self, theta, row):
        return theta - row / 0.0


class Walk(Mean):
    solve = None

    def step(self, theta):
        self.state = self.state + self.rng.standard_normal(2)
        return self.state


class Mixed(Means):
    def draw(self, theta, rows):
        return super().draw(theta + 0.0 * theta + theta.mean(axis=0), rows)


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize(
    ("world", "check"),
    [
        (ForgetsToReset, "determinism"),
        (OtherLoss, "field and loss"),
        (WrongTruth, "truth"),
        (WrongSign, "stable steps"),
        (NotFinite, "shapes"),
        (Walk, "forgets its start"),
        (Mixed, "replicates"),
    ],
)
def test_what_is_wrong_is_named(world, check):
    assert check in [finding.check for finding in check_world(world(), rows=3_000).failures]


def test_a_world_without_reset_or_gradient_is_told_what_it_lacks():
    with pytest.raises(InputError, match=r"reset\(seed\)"):
        check_world(type("World", (), {"dim": 1, "gradient": None, "step": None})())
    with pytest.raises(InputError, match="no gradient, step or draw"):
        check_world(type("World", (), {"dim": 1})())


def test_wrong_shapes_are_named_before_anything_is_learned():
    class Short(Mean):
        def gradient(self, theta, row):
            return theta[:1]

    class Flat(Means):
        def draw(self, theta, rows):
            return np.zeros((3, rows))

    class Wide(Means):
        def gradient(self, theta, rows):
            return rows[..., :1]

    with pytest.raises(InputError, match="gradient must return 2 finite numbers"):
        hw.learn_world(Short(), 1_000)
    with pytest.raises(InputError, match="draw must return rows of shape"):
        hw.learn_replicates(Flat(), 1_000)
    with pytest.raises(InputError, match="gradient must return an array of shape"):
        hw.learn_replicates(Wide(), 1_000)
    with pytest.raises(InputError, match="seeds must be 3 numbers"):
        hw.learn_replicates(Means(), 1_000, seeds=[1])


def test_a_world_says_where_to_start():
    class Far(Mean):
        theta_0 = (50.0, -50.0)

        def step(self, theta):
            self.first = getattr(self, "first", np.array(theta))
            return super().step(theta)

    world = Far()
    hw.learn_world(world, 64)
    np.testing.assert_array_equal(world.first, Far.theta_0)
    np.testing.assert_array_equal(
        hw.learn_replicates(Means(), 64, theta_0=[1.0, 2.0])[0].to_state()["theta_0"], [1.0, 2.0]
    )


def test_a_learner_goes_on_after_the_world_has_failed():
    class Stops(Mean):
        left = 5_000

        def step(self, theta):
            self.left -= 1
            if self.left == 0:
                raise ConnectionError
            return super().step(theta)

    world, learner = Stops(), hw.Auto(dim=2)
    with pytest.raises(ConnectionError):
        hw.learn_world(world, 8_000, learner=learner)
    assert 0 < learner.n_seen < 5_000
    assert hw.learn_world(world, 8_000, learner=learner) is learner
    assert learner.n_seen >= 8_000
    assert learner.result().interval().half_width.max() < 0.2


@pytest.mark.parametrize("slope", [1.0, 0.0])
def test_a_gradient_that_does_not_change_with_theta_is_refused(slope):
    """The row itself, or nothing: rows respond to theta, but at fixed rows there is no derivative."""

    class Flat(Mean):
        def step(self, theta):
            return super().step(theta) - theta

        def gradient(self, theta, row):
            return slope * row

    early = hw.learn_world(Flat(), 512)
    with pytest.raises(NotEnoughData, match="needs at least 3072 rows"):
        early.result()
    for rows in (1_024, 3_200):
        with pytest.raises(NotIdentified, match=r"the mean Hessian is zero.*give the iterates to a watcher"):
            hw.learn_world(Flat(), rows).result()
    assert hw.learn_world(Mean(), 3_200).result().n > 0


def test_what_a_world_lacks_is_named():
    bare = type("Bare", (), {"dim": 1, "gradient": lambda self, theta, row: theta})()
    with pytest.raises(InputError, match=r"world must have dim, step, gradient; .* lacks step"):
        hw.learn_world(bare, 1_000)
    with pytest.raises(InputError, match=r"world must have .*; 'x' lacks dim, replicates, draw, gradient"):
        hw.learn_replicates("x", 1_000)

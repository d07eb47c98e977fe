"""The adapter for Gymnasium: the same numbers as LSTD by hand, ends of episodes, copies, exact truth, broken worlds."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from halfwidth.adapters.gymnasium import PolicyEvaluation, evaluate_policy
from halfwidth.errors import EnvironmentFailed, InputError, NotEnoughData
from halfwidth.problems import problem
from halfwidth.problems.control.finite_mdp import LAKE

GAMMA = 0.9


class Line(gymnasium.Env):
    """A walk on 0 .. 4 that ends beyond either end, is truncated after seven steps, and fails where it is told to."""

    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, fails_at=None, how=None):
        self.fails_at, self.how, self.steps = fails_at, how, 0
        self.log = []

    def observe(self):
        return np.array([self.place, 0.1 * self.place**2])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.left = 2, 7
        return self.observe(), {}

    def step(self, action):
        self.steps += 1
        if self.steps == self.fails_at and self.how == "raises":
            raise ZeroDivisionError("the simulator broke")
        before = self.observe()
        self.place += 1 if self.np_random.random() < 0.6 else -1
        self.left -= 1
        terminated = not 0 <= self.place <= 4
        truncated = self.left == 0 and not terminated
        reward = float(self.place) + self.np_random.normal()
        self.log.append((before, reward, terminated, truncated, self.observe()))
        if self.steps == self.fails_at and self.how == "nan":
            return self.observe(), np.nan, terminated, truncated, {}
        if self.steps == self.fails_at and self.how == "shape":
            return np.zeros(3), reward, terminated, truncated, {}
        return self.observe(), reward, terminated, truncated, {}


def powers(x):
    return np.column_stack([np.ones(len(x)), x])


def nothing(observation):
    return 0


def nothings(observations):
    return np.zeros(len(observations), dtype=int)


def lstd(logs, trace):
    """By the definition, one transition after the other, of each copy."""
    A, b = np.zeros((3, 3)), np.zeros(3)
    for log in logs:
        z = np.zeros(3)
        for before, reward, terminated, truncated, after in log:
            phi, following = (powers(x[None])[0] for x in (before, after))
            z = GAMMA * trace * z + phi
            A += np.outer(z, phi - (0.0 if terminated else GAMMA) * following)
            b += z * reward
            if terminated or truncated:
                z = np.zeros(3)
    return np.linalg.solve(A, b)


@pytest.mark.parametrize("trace", [0.0, 0.7])
def test_values_of_one_environment_are_lstd(trace):
    env = Line()
    values = evaluate_policy(env, nothing, powers, discount=GAMMA, transitions=5_000, trace=trace, seed=3)
    assert values.transitions == len(env.log) == 5_000
    assert values.episodes == sum(ends or cut for _, _, ends, cut, _ in env.log)
    np.testing.assert_allclose(values.result.params, lstd([env.log], trace), rtol=1e-9)


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("trace", [0.0, 0.7])
def test_values_of_copies_are_lstd_whatever_way_they_are_reset(mode, trace):
    env = SyncVectorEnv([Line] * 3, autoreset_mode=mode)
    values = evaluate_policy(env, nothings, powers, discount=GAMMA, transitions=4_000, trace=trace, seed=3)
    logs = [copy.log for copy in env.envs]
    assert values.transitions == sum(len(log) for log in logs)
    np.testing.assert_allclose(values.result.params, lstd(logs, trace), rtol=1e-9)


def test_a_truncation_is_no_end():
    """Negative control: taking it for one gives other values."""
    env = Line()
    values = evaluate_policy(env, nothing, powers, discount=GAMMA, transitions=5_000, seed=3)
    ended = [(before, reward, ends or cut, False, after) for before, reward, ends, cut, after in env.log]
    assert np.abs(values.result.params - lstd([ended], 0.0)).max() > 0.5


def test_runs_that_are_cut_anywhere_are_one_run_and_states_go_on():
    whole = PolicyEvaluation(Line(), nothing, powers, discount=GAMMA, trace=0.5, seed=3).run(5_000)
    parts = PolicyEvaluation(Line(), nothing, powers, discount=GAMMA, trace=0.5, seed=3)
    for rows in (1, 700, 3_000, 1_299):
        parts.run(rows)
    np.testing.assert_allclose(parts.result().result.params, whole.result().result.params, rtol=1e-10)
    again = PolicyEvaluation.from_state(whole.to_state(), Line(), nothing, powers, seed=4)
    np.testing.assert_array_equal(again.result().result.params, whole.result().result.params)
    assert again.run(500).transitions == 5_500


def lake_policy(seed):
    rng = np.random.default_rng(seed)
    return lambda observation: int(rng.integers(4))


def test_frozen_lake_has_its_exact_values():
    """Null: |t| < 4.5 for 11 states; negative control: the values of another discount."""
    states = [k for k, letter in enumerate("".join(LAKE)) if letter in "SF"]
    values = evaluate_policy(
        gymnasium.make("FrozenLake-v1"), lake_policy(1), lambda s: np.eye(16)[s][:, states], discount=0.95,
        transitions=60_000, seed=1,
    )  # fmt: skip
    world = problem("frozen-lake-td")
    found = values.values(states)
    exact = np.sqrt(np.diag(world.sigma) / 60_000)
    np.testing.assert_allclose(values.result.bse, exact, rtol=0.25)
    assert np.abs((found.estimate - world.theta_star) / values.result.bse).max() < 4.5
    other = problem("frozen-lake-td", discount=0.8).theta_star
    assert np.abs((found.estimate - other) / values.result.bse).max() > 4.5


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raises", "ZeroDivisionError: the simulator broke"),
        ("nan", "a reward is not finite: nan"),
        ("shape", "an observation has the shape"),
    ],
)
def test_a_broken_environment_is_named_and_what_was_learned_is_kept(how, words):
    env = Line(3_001, how)
    evaluation = PolicyEvaluation(env, nothing, powers, discount=GAMMA, seed=3)
    with pytest.raises(EnvironmentFailed, match=words) as failure:
        evaluation.run(5_000)
    assert "3,000 transitions learned before are kept" in str(failure.value)
    np.testing.assert_allclose(evaluation.result().result.params, lstd([env.log[:3_000]], 0.0), rtol=1e-9)
    assert evaluation.run(1_000).transitions == 4_000


def test_features_that_are_wrong_are_named():
    env = Line()
    for features, words in ((lambda x: x[:, 0], r"features must return an array of shape \(2049, d\)"),
                            (lambda x: np.full((len(x), 2), np.inf), "a feature is not finite: ")):  # fmt: skip
        with pytest.raises(EnvironmentFailed, match=words):
            PolicyEvaluation(env, nothing, features, discount=GAMMA).run(3_000)


def test_arguments_are_checked():
    with pytest.raises(InputError, match="discount must lie between 0 and 1"):
        PolicyEvaluation(Line(), nothing, powers, discount=1.5)
    with pytest.raises(InputError, match="env must be an environment"):
        PolicyEvaluation("CartPole-v1", nothing, powers, discount=0.9)
    with pytest.raises(NotEnoughData):
        PolicyEvaluation(Line(), nothing, powers, discount=0.9).result()


@pytest.mark.slow
def test_a_million_transitions_take_no_more_memory_than_a_hundred_thousand():
    import tracemalloc

    evaluation = PolicyEvaluation(
        gymnasium.make("CartPole-v1"), lambda o: int(o[2] + o[3] > 0.0), lambda x: powers(x[:, 2:]), discount=GAMMA
    )
    tracemalloc.start()
    evaluation.run(100_000)
    tracemalloc.reset_peak()
    evaluation.run(100_000)
    first = tracemalloc.get_traced_memory()[1]
    evaluation.run(800_000)
    last = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert evaluation.transitions == 1_000_000
    assert last < 1.3 * first + 4e6

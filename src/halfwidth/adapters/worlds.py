"""Stepping through Gymnasium environments, one copy or several, into a block of transitions.

Copies that end an episode are reset in one of three ways, Gymnasium's `AutoresetMode`:

| mode        | after an end                                                                              |
|-------------|-------------------------------------------------------------------------------------------|
| `NEXT_STEP` | the next step of that copy is a reset: its action is not looked at, and it is no transition |
| `SAME_STEP` | the observation is that of the reset; the episode's last one is in the info, `final_obs`   |
| `DISABLED`  | nothing: the copies that ended are reset here                                              |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from halfwidth.adapters.transitions import Block
from halfwidth.errors import EnvironmentFailed, InputError, MissingExtra


def world_of(env: Any, policy: Callable[[Any], Any], seed: int | None) -> World:
    """The environment, in the shape in which it is stepped through."""
    try:
        import gymnasium
        from gymnasium.vector import VectorEnv
    except ImportError:
        raise MissingExtra.named("Gymnasium", "gymnasium") from None
    if isinstance(env, VectorEnv):
        return Copies(env, policy, seed)
    if isinstance(env, gymnasium.Env):
        return OneWorld(env, policy, seed)
    raise InputError.of("env", "be an environment or a vectorised environment of Gymnasium", type(env).__name__)


class World(ABC):
    """An environment under a policy."""

    copies = 1

    def __init__(self, env: Any, policy: Callable[[Any], Any], seed: int | None) -> None:
        self.env, self.policy, self._seed = env, policy, seed
        self.observation: Any = None

    def begin(self) -> Block:
        """Reset every copy, and open a block there."""
        observation = self.env.reset(seed=self._seed)[0]
        self._seed = None
        if isinstance(observation, dict | tuple):
            rule = "have arrays or numbers as observations (wrap it in FlattenObservation)"
            raise InputError.of("env", rule, type(observation).__name__)
        first = np.asarray(observation)
        self.observation = observation
        if first.dtype.kind in "iub" and self.space.dtype.kind == "f":
            first = first.astype(np.float64)  # whole numbers by chance
        return Block(first, self.copies, self.space.shape)

    @property
    def space(self) -> Any:
        """Of the observations of one copy."""
        return self.env.observation_space

    @abstractmethod
    def advance(self, block: Block, steps: int) -> None:
        """So many steps of every copy, written into the block; `block.filled` is right also after an exception."""


class OneWorld(World):
    """A single environment; after the end of an episode it is reset."""

    def advance(self, block: Block, steps: int) -> None:
        # Names are looked up once: with a fast environment such as CartPole every one of them shows in the time.
        step, policy, shape = self.env.step, self.policy, block.shape
        observations, rewards, observation = block.observations, block.rewards[:, 0], self.observation
        for t in range(block.filled, block.filled + steps):
            observation, rewards[t], terminated, truncated, _ = step(policy(observation))
            if terminated or truncated:
                block.terminated[t, 0], block.truncated[t, 0] = terminated, truncated
                if truncated and not terminated:
                    block.lasts[t, 0] = shaped(observation, shape)
                observation = self.env.reset()[0]
            observations[t + 1] = shaped(observation, shape)
            block.filled = t + 1
        self.observation = observation


class Copies(World):
    """A vectorised environment."""

    def __init__(self, env: Any, policy: Callable[[Any], Any], seed: int | None) -> None:
        super().__init__(env, policy, seed)
        self.copies = int(env.num_envs)
        mode = env.metadata.get("autoreset_mode", "NextStep")
        self._mode = str(getattr(mode, "value", mode))
        self._waiting = np.zeros(self.copies, dtype=np.bool_)

    @property
    def space(self) -> Any:
        return self.env.single_observation_space

    def begin(self) -> Block:
        self._waiting[:] = False
        return super().begin()

    def advance(self, block: Block, steps: int) -> None:
        for _ in range(steps):
            self._step(block)

    def _step(self, block: Block) -> None:
        t, observations = block.filled, block.observations
        observation, reward, terminated, truncated, info = self.env.step(self.policy(self.observation))
        shaped(observation, observations.shape[1:])
        if np.shape(reward) != (self.copies,):
            raise EnvironmentFailed(f"rewards have the shape {np.shape(reward)}, not ({self.copies},)")
        block.rewards[t], block.terminated[t], block.truncated[t] = reward, terminated, truncated
        block.skipped[t] = self._waiting
        ended = block.terminated[t] | block.truncated[t]
        cut = np.flatnonzero(block.truncated[t] & ~block.terminated[t])
        if self._mode == "NextStep":
            self._waiting = ended & ~block.skipped[t]
        elif cut.size and self._mode == "SameStep":
            lasts = info["final_obs"]
            for e in cut.tolist():
                block.lasts[t, e] = lasts[e]
        if self._mode == "Disabled" and ended.any():
            for e in cut.tolist():
                block.lasts[t, e] = np.array(observation[e])
            observation = self.env.reset(options={"reset_mask": ended})[0]
        observations[t + 1] = self.observation = observation
        block.filled = t + 1


def shaped(observation: Any, shape: tuple[int, ...]) -> Any:
    """The observation itself, if it has the shape."""
    try:
        if observation.shape == shape:
            return observation
    except AttributeError:
        pass
    if np.shape(observation) != shape:
        raise EnvironmentFailed(f"an observation has the shape {np.shape(observation)}, not {shape}")
    return observation

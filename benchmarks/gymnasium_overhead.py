"""What evaluating a policy adds to CartPole's own time per transition: a ratio of two loops in one process.

    python -m benchmarks.gymnasium_overhead [transitions]

Both loops step the same environment under the same policy, in turns, and each is as fast as in its fastest turn: what
else the machine does then shows little.
"""

import sys
import time

import gymnasium
import numpy as np

from halfwidth.adapters.gymnasium import PolicyEvaluation


def lean(observation):
    return int(observation[2] > 0.0)


def powers(observations):
    x = observations / [2.4, 2.0, 0.2, 2.0]
    return np.column_stack([np.ones(len(x)), x, x**2, x[:, 2] * x[:, 3]])


def seconds_alone(env, transitions):
    """The environment and the policy, and nothing else."""
    start = time.process_time()
    observation, _ = env.reset()
    for _ in range(transitions):
        observation, _, terminated, truncated, _ = env.step(lean(observation))
        if terminated or truncated:
            observation, _ = env.reset()
    return time.process_time() - start


def seconds_with_values(evaluation, transitions):
    """The same, evaluated."""
    start = time.process_time()
    evaluation.run(transitions)
    return time.process_time() - start


def main(transitions=10_000, rounds=30):
    env = gymnasium.make("CartPole-v1")
    evaluation = PolicyEvaluation(gymnasium.make("CartPole-v1"), lean, powers, discount=0.95, seed=1).run(20_000)
    turns = [(seconds_alone(env, transitions), seconds_with_values(evaluation, transitions)) for _ in range(rounds)]
    alone, evaluated = (1e6 * min(seconds) / transitions for seconds in zip(*turns, strict=True))
    print(f"{alone:.1f} us per transition alone; with values and intervals {evaluated / alone:.2f} times that")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))

"""How good is a policy for CartPole? Values with intervals, from transitions of the environment alone.

The policy pushes the cart to the side to which the pole leans. The value of an observation is the discounted number of
steps that the pole will stand; features are powers of the four coordinates. Needs `pip install 'halfwidth[gymnasium]'`.
"""

import gymnasium
import numpy as np

from halfwidth.adapters.gymnasium import PolicyEvaluation


def lean(observation):
    return int(observation[2] > 0.0)


def powers(observations):
    x = observations / [2.4, 2.0, 0.2, 2.0]
    return np.column_stack([np.ones(len(x)), x, x**2, x[:, 2] * x[:, 3]])


evaluation = PolicyEvaluation(gymnasium.make("CartPole-v1"), lean, powers, discount=0.95, seed=1)
evaluation.run(20_000)
values = evaluation.result()
print(values.summary())

upright, falling = [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.15, 1.0]
found = values.values([upright, falling])
for name, value, half in zip(("upright", "falling"), found.estimate, found.half_width, strict=True):
    print(f"{name}: {value:.1f} +- {half:.1f} discounted steps")

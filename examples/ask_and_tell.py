"""A simulator in plain Python drives `Auto`: ask what to deploy, simulate, tell the gradients; stop, and go on.

Two shops set prices. Demand falls with a shop's own price, rises with the other's, and customers need a few rows to get
used to new prices: nothing here is a `Problem`, and nothing is compiled. Each shop follows the gradient of its own
revenue, so that the root is the equilibrium; the prices' effect on demand shows in the data alone.
"""

import random
import tempfile
from pathlib import Path

import numpy as np

import halfwidth as hw
from halfwidth.state.checkpoint import read_checkpoint, write_checkpoint


class Market:
    """Customers who get used to prices by a fifth a row."""

    def __init__(self, seed):
        self.random, self.felt = random.Random(seed), [0.0, 0.0]

    def sell(self, prices):
        """What the next customer buys at each shop."""
        self.felt = [0.8 * felt + 0.2 * price for felt, price in zip(self.felt, prices, strict=True)]
        first, second = self.felt
        noise = [self.random.gauss(0.0, 0.5) for _ in range(2)]
        return [3.0 - first + 0.3 * second + noise[0], 2.0 - second + 0.3 * first + noise[1]]


def gradient(prices, sold):
    """Of minus a shop's revenue, price times demand, where demand falls by one as the price rises by one."""
    return [price - quantity for price, quantity in zip(prices, sold, strict=True)]


def drive(learner, market, rows):
    """Ask, simulate and tell, until so many rows were seen."""
    while learner.n_seen < rows:
        request = learner.ask()
        sales = [market.sell(request.theta.tolist()) for _ in range(request.rows)]
        learner.tell(request, [[gradient(point, sold) for sold in sales] for point in request.points.tolist()])


market, learner = Market(seed=1), hw.Auto(dim=2)
drive(learner, market, 20_000)
with tempfile.TemporaryDirectory() as folder:
    write_checkpoint(Path(folder) / "prices", learner.to_state())
    learner = hw.Auto.from_state(read_checkpoint(Path(folder) / "prices"))  # in another process, say
drive(learner, market, 40_000)

result = learner.result()
print(result.summary())
equilibrium = np.linalg.solve([[2.0, -0.3], [-0.3, 2.0]], [3.0, 2.0])
interval = result.interval()
print(f"equilibrium {np.round(equilibrium, 4)}: {interval.covers(equilibrium)}")
print(f"demand responds to prices: {result.feedback.detected}, within {result.feedback.memory_rows:.0f} rows")

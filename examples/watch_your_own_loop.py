"""Intervals for an optimiser of your own: hand its iterates to a watcher, one by one or in chunks."""

import numpy as np

import halfwidth as hw

rng = np.random.default_rng(0)
truth = np.array([1.0, -2.0, 0.5])
watcher = hw.EqualBatchMeans(dim=3)
theta = np.zeros(3)

for k in range(1, 50_001):
    x = rng.standard_normal(3)
    y = x @ truth + rng.standard_normal()
    theta = theta - 0.2 * k**-0.505 * (x @ theta - y) * x  # any update rule
    if k > 2_000:  # burn-in
        watcher.update(theta)
    if k in (5_000, 50_000):
        interval = watcher.interval(level=0.95)
        print(f"{k:>6,} rows: {np.round(interval.estimate, 3)} +- {np.round(interval.half_width, 3)}")

print(f"truth: {truth}")

# Two workers on streams of their own: pooled, their watchers are those of one longer stream.
workers = [hw.EqualBatchMeans(dim=3) for _ in range(2)]
for worker in workers:
    worker.update_many(truth + 0.1 * rng.standard_normal((10_000, 3)))
print(workers[0].pool(workers[1]).interval())

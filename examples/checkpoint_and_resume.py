"""A fit that is interrupted and resumed ends with the same bits as one that never was."""

import tempfile
from pathlib import Path

import numpy as np

import halfwidth as hw

rng = np.random.default_rng(0)
X = rng.standard_normal((30_000, 3))
y = rng.poisson(np.exp(X @ [0.3, -0.2, 0.1]))

with tempfile.TemporaryDirectory() as folder:
    checkpoint = Path(folder) / "model.hw"

    model = hw.PoissonRegressor()
    model.partial_fit(X[:12_345], y[:12_345])
    model.save(checkpoint)  # one file, checked when it is read; no pickle
    del model  # the process ends here

    resumed = hw.load(checkpoint)
    resumed.partial_fit(X[12_345:], y[12_345:])

whole = hw.PoissonRegressor().fit(X, y)
print(resumed.inference().summary())
print("the same bits:", np.array_equal(resumed.inference().bse, whole.inference().bse))

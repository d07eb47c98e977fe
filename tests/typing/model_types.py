"""What a type checker sees of the models, of `fit` and of studies."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import halfwidth as hw
from halfwidth.models import RegressionResult, StreamModel
from halfwidth.study import Spec

X, y = np.zeros((50, 2)), np.zeros(50)

model = hw.LinearRegression(ridge=0.1)
assert_type(model.fit(X, y), hw.LinearRegression)
assert_type(model.partial_fit(X, y), hw.LinearRegression)
assert_type(model.inference(), RegressionResult)
assert_type(model.coef_, NDArray[np.float64])
assert_type(model.n_seen_, int)
assert_type(hw.LogisticRegression().fit(X, y), hw.LogisticRegression)
assert_type(hw.fit("rows.csv", formula="y ~ x"), StreamModel)
assert_type(hw.load("model.ckpt"), StreamModel)
assert_type(hw.run_study(Spec("iid-linear", replicates=2)), list[dict[str, Any]])

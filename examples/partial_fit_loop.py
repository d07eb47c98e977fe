"""Intervals for an optimiser of your own, `partial_fit` of scikit-learn: tell what was deployed, and what rows said.

`SGDRegressor` keeps its steps; it has no standard errors. For every batch of rows `Auto` is told the coefficients that
were deployed while it came, the gradients of its rows there, and the Hessian. The intervals are for the least-squares
fit of all these rows, which is nearer to the truth than the last step of `partial_fit`. Errors of the labels are
autocorrelated: formulas for independent rows would be too short.
"""

import numpy as np
from sklearn.linear_model import SGDRegressor

import halfwidth as hw

rng = np.random.default_rng(0)
truth, error = np.array([1.0, -1.0, 0.5, 2.0]), 0.0  # three slopes and the intercept
model = SGDRegressor(penalty=None, eta0=0.02, average=False)
learner = hw.Auto(dim=4, feedback="none")  # a file of labels does not respond to the model

for batch in range(800):
    X = rng.standard_normal((64, 3))
    y = X @ truth[:3] + truth[3]
    for i, shock in enumerate(rng.standard_normal(64)):
        error = 0.8 * error + shock
        y[i] += error
    if batch:
        theta = np.append(model.coef_, model.intercept_)
        design = np.column_stack([X, np.ones(64)])
        residuals = design @ theta - y
        learner.tell(theta=theta, gradients=residuals[:, None] * design, hessian=design.T @ design)
    model.partial_fit(X, y)

result = learner.result()
print(result.summary())
interval = result.interval()
print(f"partial_fit ends at {np.round(np.append(model.coef_, model.intercept_), 3)}; truth {truth}")
print(f"covered: {interval.covers(truth)}")

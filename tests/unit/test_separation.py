"""Whether classes are separated: the linear programme against one with all constraints, and what is refused."""

import numpy as np
import pytest
from scipy.optimize import linprog

import halfwidth as hw
from halfwidth.learners.newton.newton_solver import Rows
from halfwidth.models import FitWarning
from halfwidth.models.separating_plane import separating_plane


def constraints(rows):
    """One row for each row and other class, from the definition."""
    classes = np.eye(rows.equations + 1)
    pairs = zip(rows.Z, rows.y.astype(int), strict=True)
    others = [(z, y, other) for z, y in pairs for other in range(rows.equations + 1) if other != y]
    return np.array([np.outer((classes[y] - classes[other])[1:], z).ravel() for z, y, other in others])


def twin(rows):
    """Whether the rows are separated, by the programme with every constraint."""
    A = constraints(rows)
    goal = A.sum(axis=0)
    solved = linprog(-goal, A_ub=-A, b_ub=np.zeros(len(A)), bounds=(-1.0, 1.0), method="highs")
    return goal @ solved.x > 1e-6 * np.abs(goal).sum()


@pytest.mark.parametrize("equations", [1, 2, 3])
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.3])
def test_the_plane_is_that_of_the_whole_programme(equations, noise):
    answers = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        Z = np.column_stack([np.ones(300), rng.standard_normal((300, 2))])
        level = Z[:, 1] + 0.3 * Z[:, 2] + noise * rng.standard_normal(300)
        y = np.digitize(level, np.quantile(level, np.arange(1, equations + 1) / (equations + 1))).astype(float)
        rows = Rows(Z, y, None, None, equations)
        start = rng.standard_normal(3 * equations)
        found = separating_plane(rows, "sides" if equations == 1 else "largest", start)
        assert (found is not None) == twin(rows)
        answers.append(found is not None)
        if found is not None:
            margins = constraints(rows) @ found
            assert margins.min() > -1e-5
            assert margins.max() > 0.1
            if noise == 0.0:
                assert np.mean(margins > 1e-6) > 0.9  # no row stays that another direction moves
    assert any(answers) == (noise < 0.3)
    assert all(answers) == (noise == 0.0)


@pytest.mark.parametrize("n", [3_000, 20_000])
def test_classes_apart_by_little_have_no_interval_and_steep_ones_have(n):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((n, 3))
    level = X[:, 0] + X[:, 1]
    with pytest.warns(FitWarning, match="separated: the likelihood has no maximum along Intercept, x0, x1, x2"):
        hw.LogisticRegression().fit(X, level > 0.0)
    steep = hw.LogisticRegression().partial_fit(X, level + 0.01 * rng.logistic(size=n) > 0.0).inference()
    assert "separated" not in str(steep.coefficient_flags)
    assert steep.params[1] == pytest.approx(100.0, abs=5.0 * steep.bse[1])


def test_one_column_with_a_gap_leaves_no_coefficient_an_interval():
    """A stream so long that no sample of it is whole; a level of one class only leaves the others their intervals."""
    rng = np.random.default_rng(9)
    X = rng.standard_normal((60_000, 2))
    model = hw.LogisticRegression().partial_fit(X, X[:, 0] > 0.0)
    assert model.status_ == "separated"
    level = (np.arange(60_000) % 50 == 0).astype(float)
    y = (rng.random(60_000) < 0.4) | (level > 0.0)
    result = hw.LogisticRegression().partial_fit(np.column_stack([X, level]), y).inference()
    assert result.coefficient_status == ("ok", "ok", "ok", "separated")

"""docs/statsmodels.md: two scripts side by side; what follows the fit is the same text, runs on both, and agrees."""

import ast
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import halfwidth

PAGE = Path(__file__).parents[2] / "docs" / "statsmodels.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
PAIRS = dict(zip(("ols", "logit", "poisson", "quantreg"), zip(BLOCKS[1::2], BLOCKS[2::2], strict=True), strict=True))
EXACT = ("result.params", "effect", "rsquared", "llf", "llnull", "aic", "bic", "nobs", "df_model", "result.predict(")


@pytest.fixture(scope="module")
def names():
    found = {}
    exec(compile(BLOCKS[0], "data", "exec"), found)
    return found


def run(block, names):
    """The values of the expressions of a script, in order, by their text."""
    values = {}
    for node in ast.parse(block).body:
        text = ast.unparse(node)
        if isinstance(node, ast.Expr):
            values[text] = eval(text, names)
        else:
            exec(text, names)
    return values


def numbers(value):
    """The numbers of a value; by name where they have names, because statsmodels puts categories first."""
    if isinstance(value, pd.DataFrame | pd.Series):
        value = value.sort_index()
    return np.asarray(value, dtype=np.float64).ravel()


@pytest.mark.parametrize("name", PAIRS)
def test_both_scripts_run_and_agree(name, names):
    theirs, ours = (run(block, dict(names, smf=smf, hw=halfwidth)) for block in PAIRS[name])
    assert list(theirs) == list(ours)
    assert len(ours) >= 5
    for text, value in theirs.items():
        if text.startswith("str("):
            assert all("kind[T.b]" in found for found in (value, ours[text]))
        elif "pvalue" in text:
            assert (value < 0.05) == (ours[text] < 0.05)
        else:
            exact = name != "quantreg" and any(part in text for part in EXACT)
            tolerance = {"rtol": 1e-6, "atol": 1e-6} if exact else {"rtol": 0.15, "atol": 0.02}
            np.testing.assert_allclose(numbers(ours[text]), numbers(value), err_msg=text, **tolerance)


def test_only_the_fit_differs():
    for pair in PAIRS.values():
        theirs, ours = (
            [ast.unparse(node) for node in ast.parse(block).body if isinstance(node, ast.Expr)] for block in pair
        )
        assert theirs == ours

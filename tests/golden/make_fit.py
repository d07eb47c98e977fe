"""Make fit.json: the offline fits of statsmodels, with HAC standard errors, to the two real data sets.

    python tests/golden/make_fit.py

The lag of the Bartlett kernel is about n/80: 500 hours (three weeks) for Beijing, 4,000 flights (four and a half days)
for flights. The standard errors still grow with the lag on both, so those at half, twice and four times the lag are
stored too.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels
import statsmodels.api as sm
from statsmodels.stats.sandwich_covariance import S_hac_simple

from halfwidth.streams import regression_file
from halfwidth.streams.datasets.frames import features

CASES = {
    "beijing-linear": ("beijing", "log_pm25", "linear", 500),
    "beijing-logistic": ("beijing", "high", "logistic", 500),
    "flights-logistic": ("flights", "late", "logistic", 4000),
}


def hac(influence, lag):
    """Bartlett standard errors of every coordinate by the fast Fourier transform."""
    n = len(influence)
    spectrum = np.abs(np.fft.rfft(influence, 2 ** (2 * n - 1).bit_length(), axis=0)) ** 2
    moments = np.fft.irfft(spectrum, axis=0)[: lag + 1]
    weights = 1.0 - np.arange(lag + 1) / (lag + 1)
    return np.sqrt(2.0 * weights @ moments - moments[0])


def case(data, target, family, lag):
    frame = pd.read_parquet(regression_file(data))
    X = sm.add_constant(frame[features(data)].to_numpy())
    y = frame[target].to_numpy()
    if family == "linear":
        offline = sm.OLS(y, X).fit()
        scores, bread = X * (y - X @ offline.params)[:, None], np.linalg.inv(X.T @ X)
    else:
        model = sm.Logit(y, X)
        offline = model.fit(disp=0, method="newton", maxiter=100)
        scores, bread = model.score_obs(offline.params), -np.linalg.inv(model.hessian(offline.params))
    influence = scores @ bread
    errors = {str(used): hac(influence, used).tolist() for used in (lag // 2, lag, 2 * lag, 4 * lag)}
    if data == "beijing":  # the slow way, where it is quick enough
        slow = np.sqrt(np.diag(bread @ S_hac_simple(scores, nlags=lag) @ bread))
        np.testing.assert_allclose(errors[str(lag)], slow, rtol=1e-8)
    return {
        "data": data,
        "target": target,
        "family": family,
        "n": len(y),
        "lag": lag,
        "names": ["Intercept", *features(data)],
        "params": offline.params.tolist(),
        "iid": offline.bse.tolist(),
        "hac": errors,
    }


if __name__ == "__main__":
    golden = {name: case(*settings) for name, settings in CASES.items()}
    golden["made_with"] = {"statsmodels": statsmodels.__version__, "numpy": np.__version__}
    Path(__file__).with_name("fit.json").write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")

"""Make families.json: statsmodels' fits of every family with a likelihood to one small table, which is stored too.

python tests/golden/make_families.py
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels
import statsmodels.api as sm

ROWS = 300


def table():
    rng = np.random.default_rng(2026)
    x, z = rng.standard_normal(ROWS).round(3), rng.uniform(0.0, 2.0, ROWS).round(3)
    eta = 0.2 + 0.6 * x - 0.3 * z
    utility = np.column_stack([np.zeros(ROWS), eta, -eta]) + rng.gumbel(size=(ROWS, 3))
    return pd.DataFrame(
        {
            "x": x,
            "z": z,
            "linear": (eta + rng.standard_normal(ROWS)).round(3),
            "logistic": (rng.random(ROWS) < 1.0 / (1.0 + np.exp(-eta))).astype(int),
            "multinomial": np.array(["a", "b", "c"])[utility.argmax(axis=1)],
            "poisson": rng.poisson(np.exp(eta)),
            "gamma": np.maximum(rng.gamma(2.0, np.exp(eta) / 2.0), 1e-3).round(4),
            "negative-binomial": rng.poisson(np.exp(eta) * rng.gamma(1.5, 1.0 / 1.5, ROWS)),
        }
    )


def numbers(fit, *names):
    return {name: float(getattr(fit, name)) for name in names}


def glm(frame, family, kind):
    fit = sm.GLM(frame[family], sm.add_constant(frame[["x", "z"]]), family=kind).fit(tol=1e-14, maxiter=300)
    found = numbers(fit, "llf", "llnull", "aic", "deviance", "null_deviance") | {"bic": float(fit.bic_llf)}
    return fit, found | {"params": fit.params.tolist(), "prsquared": float(fit.pseudo_rsquared("mcf"))}


def cases(frame):
    X = sm.add_constant(frame[["x", "z"]])
    ols = sm.OLS(frame["linear"], X).fit()
    linear = numbers(ols, "llf", "aic", "bic", "rsquared", "rsquared_adj") | {"deviance": float(ols.ssr)}
    gamma, gamma_numbers = glm(frame, "gamma", sm.families.Gamma(sm.families.links.Log()))
    model = sm.NegativeBinomial(frame["negative-binomial"], X)
    start = model.fit(disp=0, maxiter=500, gtol=1e-12, warn_convergence=False).params
    joint = model.fit(start_params=start, disp=0, method="newton", tol=1e-14)
    alpha = float(joint.params["alpha"])
    at_alpha = glm(frame, "negative-binomial", sm.families.NegativeBinomial(alpha=alpha))[1]
    classes = sm.MNLogit(pd.Categorical(frame["multinomial"]).codes, X)
    logits = classes.fit(disp=0, method="newton", maxiter=100, tol=1e-14)
    return {
        "linear": linear | {"params": ols.params.tolist(), "null_deviance": float(ols.centered_tss)},
        "logistic": glm(frame, "logistic", sm.families.Binomial())[1],
        "poisson": glm(frame, "poisson", sm.families.Poisson())[1],
        "gamma": gamma_numbers | {"dispersion": float(gamma.scale)},
        "negative-binomial": at_alpha | numbers(joint, "aic", "bic") | {"alpha": alpha},
        "multinomial": numbers(logits, "llf", "llnull", "aic", "bic", "prsquared")
        | {"params": np.asarray(logits.params).T.ravel().tolist()},
    }


if __name__ == "__main__":
    frame = table()
    golden = {"table": frame.to_dict("list"), "cases": cases(frame)}
    golden["made_with"] = {"statsmodels": statsmodels.__version__, "numpy": np.__version__}
    Path(__file__).with_name("families.json").write_text(json.dumps(golden) + "\n", encoding="utf-8")

"""Coverage of `fit` on real features with simulated responses, and on a column that 30 rows tell about.

    python -m benchmarks.fit_real_features [--replicates 400] [--out real_features.jsonl] [--data beijing flights]

The features are those of `halfwidth data beijing` (41,757 hours) and of every eighth of `halfwidth data flights`
(40,919 flights), standardised and in time order, with a column added that is one in six spells of five rows, drawn anew
for every replicate, and zero elsewhere. Responses are linear, logistic and Poisson, with independent noise and with
noise that is AR(0.9) in its latent normal variable, so that the marginal model, and with it the truth, is exact in all
six cases.

Every replicate of a case is a line of the file, so that a run that was interrupted goes on where it stopped; the table
is made of all lines. A coefficient counts as ok if its own status and that of the run are; those that are ok in less
than half of the replicates have no coverage of their own in the table.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import lfilter
from scipy.special import logit, ndtr

from halfwidth import fit
from halfwidth.streams.datasets.frames import features, regression_frame

FAMILIES = ("linear", "logistic", "poisson")
SPELLS, SPELL = 6, 5
SIZE = 0.1
"""Of every slope but that of the rare column, in alternating signs, for a column of variance one."""
EVERY = {"beijing": 1, "flights": 8}


def real_features(name: str) -> tuple[np.ndarray, list[str]]:
    frame = regression_frame(name)
    X = frame[features(name)].to_numpy(float)[:: EVERY[name]]
    return (X - X.mean(axis=0)) / X.std(axis=0), features(name)


def noise(rng: np.random.Generator, n: int, phi: float) -> np.ndarray:
    """Normal, of variance one."""
    fresh = np.sqrt(1.0 - phi**2) * rng.standard_normal(n + 200)
    return np.asarray(lfilter([1.0], [1.0, -phi], fresh)[200:])


def responses(rng: np.random.Generator, family: str, eta: np.ndarray, phi: float) -> np.ndarray:
    e = noise(rng, len(eta), phi)
    if family == "linear":
        return eta + e
    if family == "logistic":
        return (eta + logit(np.clip(ndtr(e), 1e-15, 1.0 - 1e-15)) > 0.0).astype(float)
    return rng.poisson(np.exp(eta + 0.5 * e - 0.125)).astype(float)


def replicate(X: np.ndarray, family: str, phi: float, seed: int) -> dict[str, Any]:
    """Which coefficients were covered, and what was said of them."""
    rng = np.random.default_rng([FAMILIES.index(family), round(10 * phi), seed])
    rare = np.zeros(len(X))
    for at in rng.choice(len(X) // SPELL, SPELLS, replace=False):
        rare[SPELL * at : SPELL * (at + 1)] = 1.0
    truth = np.append(SIZE * (-1.0) ** np.arange(X.shape[1]), 0.0)
    design = np.column_stack([X, rare])
    y = responses(rng, family, design @ truth, phi)
    table = {f"x{j}": column for j, column in enumerate(design.T)}
    result = fit(table | {"y": y}, target="y", family=family).inference()
    covered = np.asarray(result.interval().covers(np.append(0.0, truth)))
    return {
        "run": result.status,
        "status": list(result.coefficient_status),
        "given": np.isfinite(result.bse).tolist(),
        "covered": covered.tolist(),
    }


def summary(lines: list[dict[str, Any]]) -> str:
    """A row of the table."""
    sound = np.array([[line["run"] == "ok" and s == "ok" for s in line["status"]] for line in lines])
    given, covered = (np.array([line[key] for line in lines]) for key in ("given", "covered"))
    others, ok = sound[:, :-1], sound[:, :-1] & covered[:, :-1]
    often = others.mean(axis=0) >= 0.5
    each = ok.sum(axis=0)[often] / others.sum(axis=0)[often]
    rare_given = given[:, -1]
    rare = (covered[:, -1] & rare_given).sum() / rare_given.sum()
    return (
        f"{len(lines)} | {each.min():.3f} to {each.max():.3f} | {ok.sum() / others.sum():.3f} | {others.mean():.3f} | "
        f"{1.0 - sound[:, -1].mean():.3f} | {rare:.3f} | {1.0 - rare_given.mean():.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path("real_features.jsonl"))
    parser.add_argument("--data", nargs="+", default=["beijing", "flights"], choices=list(EVERY))
    options = parser.parse_args()
    lines: dict[tuple[str, str, float], dict[int, dict[str, Any]]] = defaultdict(dict)
    if options.out.exists():
        for text in options.out.read_text().splitlines():
            line = json.loads(text)
            lines[line["data"], line["family"], line["phi"]][line["seed"]] = line
    cases = [(name, family, phi) for name in options.data for phi in (0.0, 0.9) for family in FAMILIES]
    loaded = {name: real_features(name)[0] for name in options.data}
    with options.out.open("a") as file:
        for seed in range(options.replicates):
            for case in cases:
                if seed in lines[case]:
                    continue
                name, family, phi = case
                line = {"data": name, "family": family, "phi": phi, "seed": seed}
                line |= replicate(loaded[name], family, phi, seed)
                lines[case][seed] = line
                file.write(json.dumps(line) + "\n")
                file.flush()
    print("data, response, noise | replicates | each ok | pooled | others ok | rare: doubted | covered | refused")
    for case in cases:
        name, family, phi = case
        chosen = [line for seed, line in sorted(lines[case].items()) if seed < options.replicates]
        print(f"{name}, {family}, {'AR(0.9)' if phi else 'independent'} | {summary(chosen)}")


if __name__ == "__main__":
    main()

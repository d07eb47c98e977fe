"""The agents of the credit example, prepared from the GiveMeSomeCredit table.

The paper removes outliers and draws 9,000 borrowers, and says no more. Here: rows with a missing value go; so do rows
with the codes 96 and 98 in a past-due count (they stand for "not known"); so do rows above the quantile `OUTLIER` in
any feature (a rule in standard deviations would let the worst pass: they make the deviation). Of the rest `agents` are
drawn by the seed, and each feature is standardised over them. The label is 1 for a serious delinquency within two
years.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from halfwidth.errors import InputError
from halfwidth.problems.strategic_credit import FEATURES
from halfwidth.streams.block import need
from halfwidth.streams.datasets.fetch import cache_folder, dataset

LABEL = "SeriousDlqin2yrs"
OUTLIER = 0.995
_PAST_DUE = tuple(name for name in FEATURES if "PastDue" in name or "DaysLate" in name)
_CODES = (96, 98)


def credit_population(path: str | os.PathLike[str] | None = None, *, agents: int = 9_000, seed: int = 0) -> Path:
    """The file of agents in the cache, for `problem("strategic-credit", population=...)`.

    `path` names your own copy of the table (Kaggle's cs-training.csv); without it the table is fetched once.
    """
    pandas = need("pandas")
    table = pandas.read_csv(dataset("credit", path))
    missing = [name for name in (LABEL, *FEATURES) if name not in table.columns]
    if missing:
        raise InputError.of("path", f"be the GiveMeSomeCredit table, with a column {missing[0]!r}", str(path))
    table = table[[LABEL, *FEATURES]].dropna()
    table = table[~table[list(_PAST_DUE)].isin(_CODES).any(axis=1)]
    features = table[list(FEATURES)].to_numpy(np.float64)
    usual = (features <= np.quantile(features, OUTLIER, axis=0)).all(axis=1)
    features, labels = features[usual], table[LABEL].to_numpy(np.float64)[usual]
    if len(features) < agents:
        raise InputError.of("agents", f"be at most {len(features)}, the borrowers left without outliers", agents)
    chosen = np.random.default_rng(seed).choice(len(features), agents, replace=False)
    features, labels = features[chosen], labels[chosen]
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    mark = hashlib.sha256(features.tobytes() + labels.tobytes()).hexdigest()[:12]
    prepared = cache_folder() / f"credit-{agents}-agents-{mark}.npz"
    if not prepared.exists():
        prepared.parent.mkdir(parents=True, exist_ok=True)
        temporary = prepared.with_name(f".{os.getpid()}-{prepared.name}")
        np.savez(temporary, features=features, labels=labels)
        os.replace(temporary, prepared)
    return prepared

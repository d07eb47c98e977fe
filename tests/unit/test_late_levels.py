"""A level that comes late: the same linear fit as if it had come first, GLM ones after two passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import halfwidth
from family_targets import drawn
from halfwidth.errors import InputError
from halfwidth.families import FAMILIES
from halfwidth.learners.newton.renewable import RenewableNewton


def make(rows: int = 40_000, late: int = 25_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=rows), "x": 1e5 * rng.random(rows)})
    frame["kind"] = np.where(
        np.arange(rows) < late, rng.choice(["u", "v"], rows), rng.choice(["u", "v", "w", "z"], rows)
    )
    eta = 1 + frame["a"] + 0.5 * (frame["kind"] == "v") - (frame["kind"] == "w") + 0.3 * (frame["kind"] == "z")
    frame["y"] = eta + 1e-5 * frame["x"] + rng.normal(size=rows)
    frame["late"] = (rng.random(rows) < 1 / (1 + np.exp(-eta))).astype(int)
    frame["count"] = rng.poisson(np.exp(0.3 * eta))
    frame["group"] = np.arange(rows) // 20
    frame["w"] = rng.integers(1, 4, rows)
    return frame


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make()


def _pair(frame: pd.DataFrame, formula: str, **options: Any) -> tuple[Any, Any]:
    """The fit of the rows in order, and with all levels declared in the first rows by a short first block."""
    late = halfwidth.fit(frame, formula=formula, **options)
    known = frame.assign(kind=pd.Categorical(frame["kind"], categories=["u", "v", "w", "z"]))
    first = known.groupby("kind", observed=True).head(1).index
    early = pd.concat([known.loc[first], known.drop(index=first)])
    return late, halfwidth.fit(early.assign(kind=early["kind"].astype(str)), formula=formula, **options)


@pytest.mark.parametrize("options", [{}, {"weight": "w"}, {"group": "group"}])
@pytest.mark.parametrize("formula", ["y ~ a + C(kind, reference='u') + x", "y ~ C(kind, reference='u')*x"])
def test_linear_coefficients_are_those_of_a_file_in_which_the_level_comes_first(
    frame: pd.DataFrame, formula: str, options: dict[str, str]
) -> None:
    late, early = _pair(frame, formula, **options)
    ours, theirs = late.inference(), early.inference()
    assert set(ours.names) == set(theirs.names)
    np.testing.assert_allclose(ours.params[list(theirs.names)], theirs.params, rtol=1e-8, atol=1e-12)
    ratio = ours.bse[list(theirs.names)] / theirs.bse
    assert ratio.between(0.8, 1.25).all()


@pytest.mark.parametrize(("family", "target"), [("logistic", "late"), ("poisson", "count")])
def test_glm_coefficients_after_two_passes(frame: pd.DataFrame, family: str, target: str) -> None:
    formula = f"{target} ~ a + C(kind, reference='u')"
    late, early = _pair(frame, formula, family=family, passes=2)
    theirs = early.inference()
    gap = (late.inference().params[list(theirs.names)] - theirs.params) / theirs.bse
    assert gap.abs().max() < 1e-3
    once, twice = _pair(frame, formula, family=family)[0].inference(), late.inference()
    assert ((once.params - twice.params) / twice.bse).abs().max() < 0.2


def test_an_interrupted_run_with_late_levels_ends_with_the_same_bits(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    frame.assign(y=[str(v) for v in frame["y"][:30_000]] + ["oops"] + [str(v) for v in frame["y"][30_001:]]).to_csv(
        path, index=False
    )
    options: dict[str, Any] = {"formula": "y ~ a + kind", "checkpoint": tmp_path / "c", "resume": True}
    with pytest.raises(InputError, match="row 30001"):
        halfwidth.fit(path, **options)
    halfwidth.fit(path, bad_rows="skip", **options)
    resumed = halfwidth.load(tmp_path / "c")
    whole = halfwidth.fit(path, formula="y ~ a + kind", bad_rows="skip")
    assert resumed.inference().params.equals(whole.inference().params)
    assert resumed.inference().bse.equals(whole.inference().bse)


@pytest.mark.parametrize("loss", [name for name in FAMILIES if name != "multinomial"])
@pytest.mark.parametrize("split", [500, 1024, 40_000])
def test_added_columns_are_zeros_that_were_always_there(loss: str, split: int) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60_000, 4))
    X[:split, 2:] = 0.0
    y = drawn(loss, rng, X @ [0.3, 0.2, -0.2, 0.1])
    wide = RenewableNewton(4, loss).consume(X, y)
    grown = RenewableNewton(2, loss).consume(X[:split, :2], y[:split])
    grown.add_columns([1.0, 1.0])
    grown.consume(X[split:], y[split:])
    assert grown.n_seen == 60_000
    tolerance = 1e-9 if loss == "linear" else 0.02
    np.testing.assert_allclose(grown.fit().params, wide.fit().params, atol=tolerance)


def test_a_narrow_store_is_merged_before_it_is_widened() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30_000, 3))
    y = X.sum(axis=1) + rng.normal(size=30_000)
    learner = RenewableNewton(3, "linear").consume(X, y)
    learner.add_columns(np.ones(150))
    wide = np.hstack([X, rng.normal(size=(30_000, 150))])
    learner.consume(wide, y)
    assert learner.n_seen == 60_000
    assert learner.fit().params[1:4] == pytest.approx([1.0, 1.0, 1.0], abs=0.05)
    with pytest.raises(InputError, match="scales must be positive"):
        learner.add_columns([0.0])


def test_engine_sgd_says_that_it_cannot(frame: pd.DataFrame) -> None:
    with pytest.raises(InputError, match=r"kind\[T.w\].*: first seen after row .*engine 'sgd' cannot add columns"):
        halfwidth.fit(frame, formula="y ~ a + kind", engine="sgd")


def test_levels_that_separate_late_are_doubted() -> None:
    frame = make(20_000, 20_000)
    frame.loc[19_900:, "kind"] = "rare"
    frame.loc[19_900:, "late"] = 1
    model = halfwidth.fit(frame, formula="late ~ a + kind", family="logistic")
    rows = {row["name"]: row for row in model.report()["coefficients"]}
    assert rows["kind[T.rare]"]["status"] != "ok"

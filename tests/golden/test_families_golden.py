"""Every family with a likelihood against statsmodels' stored numbers, to 1e-6; see make_families.py."""

import json
from pathlib import Path

import numpy as np
import pytest

import halfwidth

GOLDEN = json.loads(Path(__file__).with_name("families.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("family", GOLDEN["cases"])
def test_statistics_are_the_stored_ones(family, passes):
    expected = dict(GOLDEN["cases"][family])
    model = halfwidth.fit(GOLDEN["table"], target=family, features=["x", "z"], family=family, passes=passes)
    result = model.inference()
    np.testing.assert_allclose(result.params, expected.pop("params"), rtol=1e-6, atol=1e-7)
    for name in ("dispersion", "alpha"):
        if name in expected:
            assert result.basis.family_facts[name] == pytest.approx(expected.pop(name), rel=1e-6)
    assert len(expected) >= 5
    for name, value in expected.items():
        assert getattr(result, name) == pytest.approx(value, rel=1e-6), name

"""What fuzzing found once must not be found again."""

from __future__ import annotations

import pytest
from campaign import within
from fuzz import CORPUS, TARGETS, seeds


@pytest.mark.parametrize("target", list(TARGETS))
def test_kept_inputs_end_in_our_own_errors(target, tmp_path):
    seeds(target, tmp_path)
    inputs = sorted([*(CORPUS / target).iterdir(), *tmp_path.iterdir()])
    for path in inputs:
        if path.is_file():
            with within(20.0):
                TARGETS[target](path.read_bytes())
    assert inputs

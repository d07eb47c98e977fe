"""Models of 3,000 columns stay within 2 GB, from the first row to the printed table; `auto` of 1,000 within 1 GB."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_MEGABYTES, MOST_OF_AUTO = 2_000, 1_000


@pytest.mark.slow
@pytest.mark.parametrize("family", ["linear", "logistic", "poisson"])
def test_three_thousand_columns_fit_into_two_gigabytes(family):
    command = [sys.executable, "-m", "benchmarks.fit_wide", "--rows", "10000", "--family", family]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = re.search(r"peak ([\d,]+) MB", ran.stdout)
    assert found is not None, ran.stdout
    assert int(found[1].replace(",", "")) < MOST_MEGABYTES


@pytest.mark.slow
def test_auto_of_a_thousand_coefficients_fits_into_a_gigabyte():
    command = [sys.executable, "-m", "benchmarks.auto_width", "1000"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for way in ("consume", "run"):
        found = re.search(rf"{way} .* (\d+)$", ran.stdout, re.MULTILINE)
        assert found is not None, ran.stdout
        assert int(found[1]) < MOST_OF_AUTO

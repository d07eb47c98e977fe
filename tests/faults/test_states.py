"""Changed states with a right checksum: our own error, or exactly the object that the changed fields describe."""

from __future__ import annotations

import warnings
import zlib
from contextlib import suppress

import numpy as np
import pytest
from campaign import HANG_SECONDS, SEED, count, little_memory, within
from mutations import differences, mutants, same
from state_table import table

from halfwidth.errors import HalfwidthError, InputError

ALL = 20_000
NAMES = list(table(None))


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return table(tmp_path_factory.mktemp("states"))


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_state_round_trips(rows, name):
    state = rows[name].make()
    assert same(rows[name].state(rows[name].load(state)), state)


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_state_is_refused_or_is_what_it_says(rows, name):
    row = rows[name]
    state = row.make()
    with suppress(HalfwidthError):
        row.read(row.load(state))  # compiled, cached
    wrong, refused = [], 0
    for place, mutant in mutants(state, count(ALL // len(NAMES)), SEED + zlib.crc32(name.encode())):
        try:
            with within(HANG_SECONDS), little_memory(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    thing = row.load(mutant)
                    if not same(row.state(thing), mutant):
                        wrong.append(f"{place}: the object has another state: {differences(row.state(thing), mutant)}")
                    with np.errstate(all="ignore"):
                        row.read(thing)
                except HalfwidthError:
                    refused += 1
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            wrong.append(f"{place}: {type(error).__name__}: {error}")
    assert not wrong, f"{len(wrong)} of {count(ALL // len(NAMES))}:\n" + "\n".join(wrong[:40])
    assert refused  # the negative control: something was wrong with most of them


@pytest.mark.parametrize("name", NAMES)
def test_a_newer_and_an_older_version_say_so(rows, name):
    state = rows[name].make()
    with pytest.raises(InputError, match="newer release"):
        rows[name].load(state | {"version": state["version"] + 1})
    with pytest.raises(InputError, match="older release"):
        rows[name].load(state | {"version": state["version"] - 1})

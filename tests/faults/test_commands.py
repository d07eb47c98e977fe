"""The command over small damaged files of every format: one line for people and the right exit code, no traceback."""

from __future__ import annotations

import io
import json
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pytest
import typer
from campaign import SEED, Hang, count, within

from halfwidth.cli.app import app

ALL = 20_000
FORMATS = ("csv", "ndjson", "json", "parquet", "arrow")
OPTIONS = (
    ["--target", "y"],
    ["--target", "y", "--feature", "a", "--bad-rows", "skip"],
    ["--formula", "y ~ a + C(k)"],
    ["--target", "n", "--family", "poisson", "--feature", "a"],
    ["--target", "k", "--family", "logistic", "--feature", "a", "--bad-rows", "skip"],
    ["--target", "y", "--feature", "a", "--weight", "w", "--time", "t", "--group", "k"],
    ["--target", "y", "--feature", "a", "--engine", "sgd"],
    ["--target", "y", "--json", "-"],
)


def whole(format):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.standard_normal(40), "k": np.resize(["u", "v"], 40), "n": rng.poisson(3.0, 40)})
    table["y"], table["w"], table["t"] = table["a"] + 1.0, 1.0, np.arange(40)
    out = io.BytesIO()
    if format == "csv":
        table.to_csv(out, index=False)
    elif format == "ndjson":
        table.to_json(out, orient="records", lines=True)
    elif format == "json":
        out.write(json.dumps(table.to_dict("records")).encode())
    elif format == "parquet":
        table.to_parquet(out)
    else:
        table.to_feather(out)
    return out.getvalue()


TOKENS = (b'"', b"\n", b"\r", b",", b"\0", b"\xff", b"nan", b"1e999", b"{", b"[", b"]", b"\xef\xbb\xbf", b"9" * 400)


def damaged(content, rng):
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at, kind = int(rng.integers(len(data) + 1)), int(rng.integers(6))
        if kind == 0 and at < len(data):
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[at:at] = TOKENS[int(rng.integers(len(TOKENS)))]
        elif kind == 2:
            del data[at : at + int(rng.integers(1, 40))]
        elif kind == 3:
            data[at:at] = data[at : at + int(rng.integers(1, 200))]
        elif kind == 4:
            data[at : at + 4] = rng.bytes(4)
        elif rng.integers(4) == 0:
            del data[at:]
        if not data:
            break
    return bytes(data)


def called(arguments):
    """The exit code of the command in this process, and what it wrote to stderr."""
    from halfwidth.cli import main

    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["halfwidth", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            main()
    except SystemExit as ended:
        return ended.code or 0, err.getvalue()
    finally:
        sys.argv = before
    return 0, err.getvalue()


@pytest.fixture(autouse=True)
def built_once(monkeypatch):
    """Typer builds its parser anew for every call, which takes longer than the call."""
    monkeypatch.setattr("halfwidth.cli.app.app", typer.main.get_command(app))


@pytest.mark.parametrize("format", FORMATS)
def test_damaged_files_end_in_a_line_and_the_right_code(format, tmp_path):
    rng = np.random.default_rng(SEED)
    content = whole(format)
    path = tmp_path / f"rows.{format}"
    path.write_bytes(content)
    for options in OPTIONS:  # the negative control: the whole file is learned
        assert called(["fit", str(path), *options])[0] in (0, 1)
    wrong, codes = [], {}
    for number in range(count(ALL // len(FORMATS))):
        path.write_bytes(damaged(content, rng))
        options = OPTIONS[number % len(OPTIONS)]
        try:
            with within(20.0):  # the first call of a kernel compiles it
                code, said = called(["fit", str(path), *options])
        except (Exception, Hang) as error:
            code, said = type(error).__name__, f"{type(error).__name__}: {error}"
        codes[code] = codes.get(code, 0) + 1
        lines = [line for line in said.splitlines() if line.startswith("error")]
        if code not in (0, 1, 2) or "Traceback" in said or (code and not lines):
            wrong.append(f"{options}: {code}: {said[-300:]}")
            (tmp_path / f"wrong-{number}.{format}").write_bytes(path.read_bytes())
    assert not wrong, f"{len(wrong)} of {codes}; the files are in {tmp_path}:\n" + "\n".join(wrong[:20])
    assert codes.get(2)

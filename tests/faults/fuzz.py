"""Coverage-guided fuzzing of what reads files of others: python tests/faults/fuzz.py TARGET [options of libFuzzer].

The targets are functions of bytes that may raise our own errors and nothing else. `make fuzz` gives each ten minutes;
what it finds is kept in `corpus/TARGET` and run by `test_corpus.py`.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from importlib import import_module
from pathlib import Path

KERNELS = ["halfwidth.streams.sources.row_ends", "halfwidth.kernels", "halfwidth.families"]
CORPUS = Path(__file__).parent / "corpus"


def state(data: bytes) -> None:
    """Bytes with a right checksum, as a checkpoint: unpacked, validated and built."""
    from halfwidth.errors import HalfwidthError
    from halfwidth.models.registry import model_from_state
    from halfwidth.state.packing import Unreadable, unpack
    from halfwidth.watchers.kinds import restored

    try:
        found = unpack(memoryview(data))
    except Unreadable:
        return
    for load in (restored, model_from_state):
        try:
            load(found)
        except HalfwidthError:
            continue


def csv(data: bytes) -> None:
    """Bytes as a CSV file with a target."""
    from halfwidth.errors import HalfwidthError
    from halfwidth.streams import open_stream

    with tempfile.NamedTemporaryFile(suffix=".csv") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file.write(data)
        file.flush()
        try:
            for _ in open_stream(file.name, target="y", bad_rows="skip"):
                pass
        except HalfwidthError:
            return


def formula(data: bytes) -> None:
    """Bytes as the text of a formula."""
    from halfwidth.errors import HalfwidthError
    from halfwidth.streams.design.formula_terms import Formula

    try:
        Formula(data.decode("utf-8", "replace"))
    except HalfwidthError:
        return


TARGETS = {"state": state, "csv": csv, "formula": formula}


def seeds(target: str, folder: Path) -> None:
    """Whole inputs to start from."""
    if target == "state":
        from state_table import table

        from halfwidth.state.packing import pack

        rows = table(folder)
        for name in ("watcher-obm", "watcher-fixed", "model-linear"):
            (folder / name).write_bytes(pack(rows[name].make()))
    elif target == "csv":
        (folder / "plain").write_bytes(b"a,b,y\n1,u,2\n3,v,4.5\n,w,1e3\n")
        (folder / "quoted").write_bytes(b'a;"b";y\n"1,5";"x\ny";2\n2;"";3\n')
    else:
        for i, text in enumerate(["y ~ a + C(b) + log(c)", "y ~ (a + b):c - 1", "log(y) ~ poly(a, 2) * bs(b, df=4)"]):
            (folder / str(i)).write_text(text)


def main() -> None:
    import atheris

    target = sys.argv.pop(1)
    # Numba cannot compile what is instrumented: states are built by kernels, so that only their loader is watched, and
    # the kernel that finds the ends of rows is left as it is.
    watched = ("halfwidth.state.checkpoint", "halfwidth.state.schema") if target == "state" else ("halfwidth.streams",)
    with atheris.instrument_imports(include=["halfwidth"], exclude=KERNELS):
        for name in watched:
            import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        seeds(target, Path(folder))
        kept = CORPUS / target
        atheris.Setup([*sys.argv, folder, str(kept), f"-artifact_prefix={kept}/"], TARGETS[target])
        atheris.Fuzz()


if __name__ == "__main__":
    main()

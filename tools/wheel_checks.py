"""What an installation without extras must do; run by `wheel_test.py` with the interpreter of a fresh environment."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import halfwidth as hw
from halfwidth.errors import MissingExtra
from halfwidth.study import Spec
from halfwidth.study.backends import make_backend

OPTIONAL = ("matplotlib", "pyarrow", "pandas", "sklearn", "distributed")
COMMANDS_WITH_EXTRAS = {
    "study iid-linear --steps 2000 --replicates 2 --plot study.png": "plots",
    "reproduce times": "plots",
    "fit rows.csv --target y": "models",
    "demo": "plots",
}


def command(line: str) -> subprocess.CompletedProcess[str]:
    script = str(Path(sys.executable).with_name("halfwidth"))
    return subprocess.run([script, *line.split()], capture_output=True, text=True, check=False)


def check_environment() -> None:
    present = [name for name in OPTIONAL if find_spec(name)]
    assert not present, f"the environment is not bare: {present}"
    assert "site-packages" in hw.__file__, hw.__file__
    assert hw.__version__ == version("halfwidth")
    missing = [name for name in ("py.typed", "__init__.pyi") if not Path(hw.__file__).with_name(name).exists()]
    assert not missing, f"not in the wheel: {missing}"


def check_imports() -> None:
    """Every module imports, or names the extra that it needs; modules inside a package that refuses are not tried."""
    modules = [module.name for module in pkgutil.walk_packages(hw.__path__, "halfwidth.", onerror=lambda name: None)]
    refused = {}
    for name in modules:
        try:
            importlib.import_module(name)
        except MissingExtra as error:
            refused[name] = str(error)
    assert all("pip install 'halfwidth[" in message for message in refused.values()), refused
    print(f"{len(modules) - len(refused)} modules import; these name their extra: {', '.join(refused)}")


def check_study() -> None:
    rows = hw.run_study(Spec("iid-linear", {"dim": 2}, ("obm", "auto"), steps=8_000, replicates=20, seed=1), jobs=1)
    coverage = {row["method"]: row["coverage"] for row in rows}
    assert set(coverage) == {"obm", "auto"}
    assert all(0.6 < share <= 1.0 for share in coverage.values()), coverage
    interval = hw.Auto(hw.problem("swap-game", rho=0.5), seed=1).run(10_000).result().interval()
    print(f"a study runs: {coverage}; {interval}")


def check_dask() -> None:
    said = "nothing"
    try:
        make_backend("dask")
    except MissingExtra as error:
        said = str(error)
    assert "pip install 'halfwidth[dask]'" in said, said


def check_commands() -> None:
    done = command("study iid-linear --steps 2000 --replicates 2 --methods obm --json -")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    for line in ("methods", "problems", "--version"):
        assert command(line).returncode == 0, line
    Path("rows.csv").write_text("x,y\n" + "\n".join(f"{i % 7},{i % 5}" for i in range(200)), encoding="utf-8")
    for line, extra in COMMANDS_WITH_EXTRAS.items():
        done = command(line)
        words = " ".join(done.stderr.split())
        assert done.returncode != 0, line
        assert f"pip install 'halfwidth[{extra}]'" in words, f"{line}: {done.stderr}"
        assert "Traceback" not in words, line
        print(f"halfwidth {line.split()[0]} names its extra: {words}")


if __name__ == "__main__":
    check_environment()
    check_imports()
    check_study()
    check_dask()
    check_commands()

"""Build the wheel and try it without extras in a fresh environment: `make wheel-test`.

The wheel is built from a copy of the sources, so that nothing an earlier build left behind gets into it. What is then
checked inside the fresh environment is in `wheel_checks.py`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src")


def build(folder: Path) -> Path:
    """The wheel of this checkout."""
    copy = folder / "source"
    copy.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / name, copy / name)
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(copy))
    (wheel,) = folder.glob("*.whl")
    return wheel


def fresh_environment(folder: Path, wheel: Path) -> Path:
    """The interpreter of a new environment that holds the wheel and its required dependencies only."""
    venv.create(folder / "fresh", with_pip=True)
    python = folder / "fresh" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pip(str(python), "install", str(wheel))
    return python


def pip(python: str, *arguments: str) -> None:
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        print(f"built {wheel.name}, {wheel.stat().st_size / 1024:,.0f} kB", flush=True)
        python = fresh_environment(folder, wheel)
        # The checks run from a copy, so that nothing of the checkout is on their path.
        checks = shutil.copy(Path(__file__).with_name("wheel_checks.py"), folder)
        subprocess.run([str(python), "-I", "-W", "error", str(checks)], cwd=folder, check=True)


if __name__ == "__main__":
    main()

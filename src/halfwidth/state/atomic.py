"""Files that appear whole or not at all.

A file is written beside its place, flushed to the disk, and renamed; then the folder is flushed. A reader sees the old
content or the new one and never half of either, whenever the power goes. Only regular files are replaced: a symlink
keeps pointing where it did, and a device, a pipe or a folder is refused. What a killed process left beside the place
is removed by the next one that writes there.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from halfwidth.errors import CannotWrite

PREVIOUS = ".previous"
REPLACED = ".replaced"
_numbers = count()
_LONGEST_NAME = 255 - max(len(PREVIOUS), len(REPLACED))
_PROBE = b"\0" * 4096
_REASONS = {
    errno.ENOSPC: "the disk is full; free some of it, or choose another place",
    errno.EDQUOT: "the disk quota is used up; free some of it, or choose another place",
    errno.EFBIG: "the file would be larger than this process may write; raise the limit, or choose another place",
    errno.EROFS: "the disk is read-only; choose another place",
    errno.EACCES: "writing is not permitted there; change the permissions, or choose another place",
    errno.EPERM: "writing is not permitted there; change the permissions, or choose another place",
    errno.ENOENT: "its folder does not exist; make it, or choose another place",
    errno.ENOTDIR: "its folder is a file; choose another place",
    errno.EEXIST: "its folder is a file; choose another place",
    errno.ENAMETOOLONG: "its name is too long; choose a shorter one",
    errno.ELOOP: "its symlinks lead in a circle; choose another place",
}


def real_place(path: str | os.PathLike[str], what: str) -> Path:
    """The regular file, or free place, that a path stands for; symlinks are followed, everything else is refused."""
    try:
        place = Path(os.path.realpath(path))
        if len(os.fsencode(place.name)) > _LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, "name too long")
        mode = os.stat(place).st_mode
    except FileNotFoundError:
        return place
    except (OSError, ValueError) as error:
        raise refusal(path, what, error) from error
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a device, a pipe or a socket"
        raise CannotWrite(f"{what} {str(path)!r} is {kind}, and only regular files are replaced; choose another place")
    return place


def refusal(path: str | os.PathLike[str], what: str, error: OSError | ValueError) -> CannotWrite:
    """The error for a file that could not be written: which, why, and what to do."""
    number = error.errno if isinstance(error, OSError) else None
    reason = _REASONS.get(number or 0, f"{error}; choose another place")
    return CannotWrite(f"{what} {str(path)!r} could not be written: {reason}")


def check_place(path: str | os.PathLike[str], what: str) -> None:
    """Raise now what writing would raise later: a block is written beside the place and removed."""
    place = real_place(path, what)
    clean_leftovers(place)
    temporary = _beside(place)
    try:
        temporary.write_bytes(_PROBE)
        _sync(temporary)
    except OSError as error:
        raise refusal(path, what, error) from error
    finally:
        _forget(temporary)


def replace_file(path: str | os.PathLike[str], content: bytes, what: str, *, keep_previous: bool = False) -> None:
    """Replace a file by this content, atomically; the file before stays as `NAME.previous` if asked."""
    with replacing(path, what, keep_previous=keep_previous) as temporary:
        temporary.write_bytes(content)


@contextmanager
def replacing(path: str | os.PathLike[str], what: str, *, keep_previous: bool = False) -> Iterator[Path]:
    """Where to write a file that takes its place, atomically, when the block has ended well."""
    place = real_place(path, what)
    clean_leftovers(place)
    temporary = _beside(place)
    try:
        yield temporary
        _sync(temporary)
        if keep_previous and place.exists():
            _keep(place, temporary)
        os.replace(temporary, place)
        _sync_folder(place.parent)
    except OSError as error:
        raise refusal(path, what, error) from error
    finally:
        _forget(temporary)


def put_aside(path: str | os.PathLike[str], what: str) -> Path:
    """Rename a file to `NAME.replaced`, whatever is there, and forget its `NAME.previous`; return the new place."""
    place = real_place(path, what)
    aside = place.with_name(place.name + REPLACED)
    try:
        os.replace(place, aside)
        _sync_folder(place.parent)
    except OSError as error:
        raise refusal(path, what, error) from error
    _forget(place.with_name(place.name + PREVIOUS))
    return aside


def write_output(path: str | os.PathLike[str], content: bytes, what: str) -> None:
    """Write what a user asked for: a regular file atomically, a device or a pipe as it is; missing folders are made."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        if _special(path):
            with open(path, "wb") as file:
                file.write(content)
            return
    except OSError as error:
        raise refusal(path, what, error) from error
    replace_file(path, content, what)


def check_output(path: str | os.PathLike[str], what: str) -> None:
    """Raise now what `write_output` would raise later."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        if _special(path):
            return
    except OSError as error:
        raise refusal(path, what, error) from error
    check_place(path, what)


def _special(path: str | os.PathLike[str]) -> bool:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def clean_leftovers(place: Path) -> None:
    """Remove what processes that are gone left beside this place."""
    mark = _mark(place)
    try:
        names = [name for name in os.listdir(place.parent) if name.startswith(mark)]
    except OSError:
        return  # the write itself says what is wrong with the folder
    for name in names:
        owner = name.removeprefix(mark).partition(".")[0]
        if owner.isdigit() and not _alive(int(owner)):
            _forget(place.parent / name)


def _mark(place: Path) -> str:
    """How temporary files for this place begin, on this machine: short, whatever the name of the place is."""
    machine = os.uname().nodename if hasattr(os, "uname") else ""
    digest = hashlib.sha256(os.fsencode(f"{place.name}\0{machine}"))
    return f".halfwidth-{digest.hexdigest()[:12]}-"


def _beside(place: Path) -> Path:
    return place.with_name(f"{_mark(place)}{os.getpid()}.{next(_numbers)}.tmp")


def _alive(process: int) -> bool:
    if process == os.getpid():
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's process, or no number that a process has
        return True
    return True


def _sync(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _keep(place: Path, temporary: Path) -> None:
    """Give the old content a second name before the first one goes to the new content."""
    second, previous = temporary.with_suffix(".old"), place.with_name(place.name + PREVIOUS)
    _forget(second)
    try:
        os.link(place, second)
    except OSError:  # a disk without hard links: for a moment there is only the previous file
        second = place
    os.replace(second, previous)


def _forget(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # folders cannot be opened there; the rename is all one can do
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some disks cannot flush folders
            raise
    finally:
        os.close(handle)

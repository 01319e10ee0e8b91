"""Files that are either whole or absent: written aside, synced, then renamed into place."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path
from typing import Any

from rsi.errors import UserError

_ASIDE = ".aside"


def write_atomic(path: Path, content: bytes | str) -> None:
    """Replace a file in one step; a reader or a crash sees the old content or the new.

    Raises UserError naming the path when the disk refuses; the old file then stays.
    """
    body = content.encode() if isinstance(content, str) else content
    if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
        raise UserError(f"{path}: is no regular file; choose another place")
    aside = path.with_name(f".{path.name}.{os.getpid()}{_ASIDE}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as stream:
            stream.write(body)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def sync_folder(folder: Path) -> None:
    """Make a rename or creation in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def drop_leftovers(folder: Path) -> None:
    """Remove files that a killed process left half-written below a folder."""
    for path in folder.rglob(f".*{_ASIDE}"):
        path.unlink(missing_ok=True)


def cannot_write(path: Path, error: OSError) -> UserError:
    """Put a write error on one line with what to do about it."""
    reason = error.strerror or str(error)
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    advice = (
        "make room, then start the same command again to resume"
        if full
        else "choose a folder that can be written, for a run by runs_dir=PATH"
    )
    return UserError(f"{path}: cannot write: {reason}; {advice}")


def as_json(value: Any) -> str:
    """Spell JSON for people: indented, ending in a newline."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"

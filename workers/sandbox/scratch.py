"""Directories of cells on the host: opaque names, one lock each, swept when their owner died."""

from __future__ import annotations

import fcntl
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rsi.errors import SandboxFailure
from workers.trees import remove_tree

GRACE_SECONDS = 60.0


def cells_root() -> Path:
    """The directory of this user's cells, made when missing; raises SandboxFailure if not ours."""
    root = Path(tempfile.gettempdir()) / f"rsi-cells-{os.getuid()}"
    try:
        root.mkdir(mode=0o711, exist_ok=True)
        owner = root.lstat()
    except OSError as error:
        raise SandboxFailure(f"cannot make {root}: {error.strerror}") from error
    if owner.st_uid != os.getuid() or root.is_symlink():
        raise SandboxFailure(f"{root} belongs to someone else; set TMPDIR to another directory")
    return root


@contextmanager
def scratch() -> Iterator[Path]:
    """A fresh directory with an opaque name, removed afterwards whatever it holds."""
    place = cells_root() / secrets.token_hex(8)
    try:
        place.mkdir(mode=0o711)
        lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise SandboxFailure(f"cannot make a cell's directory: {error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place
    finally:
        os.close(lock)
        remove_tree(place)


def sweep() -> int:
    """Remove directories of cells whose owner died without doing so; gives their number."""
    removed = 0
    for place in cells_root().iterdir():
        try:
            young = time.time() - place.lstat().st_mtime < GRACE_SECONDS
            lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # its owner removed it meanwhile
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        finally:
            os.close(lock)
        if not young:
            remove_tree(place)
            removed += 1
    return removed

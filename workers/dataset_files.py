"""Reads a dataset's files: no links, no devices, bounded sizes, one line for an error."""

from __future__ import annotations

import gzip
import json
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rsi.errors import BenchmarkError

MAX_TEXT_BYTES = 64 * 1024 * 1024
MAX_LINE_CHARS = 16 * 1024 * 1024


def plain_path(root: Path, relative: str) -> Path:
    """The path below the root, after making sure that no part of it is a link."""
    path = root
    for part in relative.split("/"):
        path = path / part
        if path.is_symlink():
            raise BenchmarkError(f"{path}: is a link; a dataset holds only files and folders")
    return path


def read_text(root: Path, relative: str) -> str:
    """Read a small UTF-8 file below the root without following links; raises BenchmarkError."""
    path = plain_path(root, relative)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise BenchmarkError(f"{path}: missing") from None
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be read: {error.strerror}") from None
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise BenchmarkError(f"{path}: not a regular file")
        if status.st_size > MAX_TEXT_BYTES:
            raise BenchmarkError(f"{path}: larger than {MAX_TEXT_BYTES} bytes")
        content = stream.read()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BenchmarkError(f"{path}: not UTF-8 at byte {error.start}") from None


def read_json_lines(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Give the objects of a JSON-lines file, gzipped when its name ends in .gz.

    Raises BenchmarkError naming file and line number.
    """
    opener = gzip.open if str(path).endswith(".gz") else open
    number = 0
    try:
        with opener(path, "rt", encoding="utf-8") as stream:
            while line := stream.readline(MAX_LINE_CHARS):
                number += 1
                if not line.strip():
                    continue
                value = json.loads(line)
                if not isinstance(value, dict):
                    raise BenchmarkError(f"{path}: line {number}: not an object")
                yield value
    except OSError as error:
        reason = error.strerror or str(error)
        raise BenchmarkError(f"{path}: cannot be read: {reason}") from None
    except (EOFError, zlib.error) as error:
        raise BenchmarkError(f"{path}: line {number + 1}: damaged archive: {error}") from None
    except json.JSONDecodeError as error:
        raise BenchmarkError(f"{path}: line {number}: not JSON: {error.msg}") from None
    except UnicodeDecodeError:
        raise BenchmarkError(f"{path}: line {number + 1}: not UTF-8") from None

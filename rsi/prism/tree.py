"""Immutable file trees in memory: programs, suites and workspaces as content, never as paths."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from pydantic import Field, field_serializer, field_validator

from rsi.digest import digest_of, sha256_hex
from rsi.errors import SubmissionError
from rsi.wire import Record

MAX_FILES = 2_000
MAX_BYTES = 32 * 1024 * 1024
MAX_PATH_CHARS = 240
MAX_DEPTH = 24
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class File(Record):
    """One regular file: its bytes and whether it may be executed."""

    content: bytes
    executable: bool = False

    @field_serializer("content", when_used="json")
    def _encode(self, content: bytes) -> str:
        return base64.b64encode(content).decode()

    @field_validator("content", mode="before")
    @classmethod
    def _decode(cls, value: Any, info: Any) -> Any:
        return base64.b64decode(value) if isinstance(value, str) else value


class Tree(Record):
    """A canonical set of files by relative POSIX path.

    Raises SubmissionError (as the cause of a ValidationError never: checked by `check_path`)
    for absolute paths, `..`, control characters, and for more files or bytes than the caps.
    """

    files: dict[str, File] = Field(default_factory=dict)

    @classmethod
    def of(cls, texts: Mapping[str, str | bytes], executable: Iterable[str] = ()) -> Self:
        """Build a tree from texts (UTF-8) by path; `executable` names the paths with the bit."""
        marked = set(executable)
        files = {}
        for path, content in texts.items():
            check_path(path)
            body = content.encode() if isinstance(content, str) else content
            files[path] = File(content=body, executable=path in marked)
        tree = cls(files=files)
        tree.check_size()
        return tree

    @property
    def digest(self) -> str:
        """Hash of the manifest: path, size, sha256 and executable bit of every file."""
        return digest_of(
            [
                [path, len(f.content), sha256_hex(f.content), f.executable]
                for path, f in sorted(self.files.items())
            ]
        )

    def text(self, path: str) -> str:
        """Decode one file as UTF-8 with replacement; raises KeyError when it is missing."""
        return self.files[path].content.decode("utf-8", "replace")

    def with_file(self, path: str, content: bytes | str, executable: bool | None = None) -> Tree:
        """Copy with one file set; keeps the executable bit unless told."""
        check_path(path)
        body = content.encode() if isinstance(content, str) else content
        old = self.files.get(path)
        bit = executable if executable is not None else bool(old and old.executable)
        tree = Tree(files={**self.files, path: File(content=body, executable=bit)})
        tree.check_size()
        return tree

    def without(self, paths: Iterable[str]) -> Tree:
        """Copy without some paths."""
        dropped = set(paths)
        return Tree(files={p: f for p, f in self.files.items() if p not in dropped})

    def under(self, folder: str) -> Tree:
        """The files below a folder, with paths relative to it."""
        start = folder.rstrip("/") + "/"
        return Tree(
            files={p[len(start) :]: f for p, f in self.files.items() if p.startswith(start)}
        )

    def check_size(self) -> None:
        """Raise SubmissionError when the tree holds more than the caps."""
        size = sum(len(f.content) for f in self.files.values())
        if len(self.files) > MAX_FILES or size > MAX_BYTES:
            raise SubmissionError(
                f"tree has {len(self.files)} files and {size} bytes; "
                f"at most {MAX_FILES} files and {MAX_BYTES} bytes are allowed"
            )


def check_path(path: str) -> None:
    """Raise SubmissionError unless a path is relative, plain and inside its root."""
    parts = path.split("/")
    if (
        not path
        or path.startswith("/")
        or "\\" in path
        or _CONTROL.search(path)
        or any(part in ("", ".", "..") for part in parts)
    ):
        raise SubmissionError(f"{path!r}: not a relative path inside the tree")
    if len(path) > MAX_PATH_CHARS or len(parts) > MAX_DEPTH:
        raise SubmissionError(f"{path[:60]!r}...: path longer or deeper than allowed")

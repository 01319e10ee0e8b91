"""Program trees on disk: written, compared, read back and removed without trusting what is there.

Reading walks with file descriptors and O_NOFOLLOW, so a link planted as a directory component
cannot lead it outside. Whatever is neither a plain file nor a directory is refused (`strict`,
a submission that someone hands in) or left out (a work tree that hostile code has used).
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from rsi.errors import SandboxFailure, SubmissionError
from rsi.prism.tree import MAX_BYTES, MAX_DEPTH, MAX_FILES, MAX_PATH_CHARS, File, Tree, check_path

# one time stamp for every file of every cell: a suite cannot tell cells apart by it
MTIME_NS = 1_000_000_000 * 1_000_000_000
MAX_ENTRIES = 20_000
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_log = logging.getLogger(__name__)


def write_tree(tree: Tree, root: Path, owner: int | None = None, writable: bool = True) -> None:
    """Write a tree into an empty directory with one modification time, compiled files apart.

    `owner` is the user and group that get the files (root only); files that are not `writable`
    are so for their owner too. Raises SubmissionError when the
    tree cannot be written as files (a path is both file and folder, or a name is too long), and
    SandboxFailure when the disk fails us.
    """
    folders: dict[str, None] = {}
    for path, file in sorted(tree.files.items()):
        if _compiled(path):
            continue
        try:
            check_path(path)
            _make_folders(root, path, folders)
            _write_file(root / path, file, owner, writable)
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise SubmissionError(f"{path}: is both a file and a folder") from error
        except UnicodeEncodeError as error:
            raise SubmissionError(f"{path!r}: not a UTF-8 name") from error
        except OSError as error:
            if error.errno == 36:  # ENAMETOOLONG
                raise SubmissionError(f"{path[:60]}...: name too long for a file") from error
            raise SandboxFailure(f"cannot write a cell's files: {error}") from error
    for folder in [*reversed(folders), ""]:  # children first: making them touched their parents
        place = root / folder
        if owner is not None:
            os.chown(place, owner, owner)
        os.chmod(place, 0o755)
        os.utime(place, ns=(MTIME_NS, MTIME_NS))


def _make_folders(root: Path, path: str, folders: dict[str, None]) -> None:
    parts = path.split("/")[:-1]
    for count in range(1, len(parts) + 1):
        folder = "/".join(parts[:count])
        if folder not in folders:
            os.mkdir(root / folder, 0o755)
            folders[folder] = None


def _write_file(place: Path, file: File, owner: int | None, writable: bool) -> None:
    mode = (0o755 if file.executable else 0o644) & (0o777 if writable else 0o555)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(place, flags, 0o600)
    with open(handle, "wb", buffering=0) as out:
        rest = memoryview(file.content)
        while rest:
            rest = rest[out.write(rest) :]
        if owner is not None:
            os.fchown(handle, owner, owner)
        os.fchmod(handle, mode)
        os.utime(handle, ns=(MTIME_NS, MTIME_NS))


def reopen(root: Path) -> None:
    """Make a directory that hostile code may have closed readable again for its owner."""
    if stat.S_ISDIR(os.lstat(root).st_mode):  # a link is never followed
        os.chmod(root, 0o755)


def changed_files(tree: Tree, root: Path) -> tuple[str, ...]:
    """Name the files of a tree that are missing, replaced or different below `root`, sorted.

    Files that are new there do not count.
    """
    try:
        top = os.open(root, _DIRECTORY)
    except OSError:  # the directory itself was replaced or closed
        return tuple(sorted(path for path in tree.files if not _compiled(path)))
    try:
        return tuple(
            path
            for path, file in sorted(tree.files.items())
            if not _compiled(path) and not _same(top, path, file.content)
        )
    finally:
        os.close(top)


def _same(top: int, path: str, content: bytes) -> bool:
    *folders, name = path.split("/")
    here = os.dup(top)
    try:
        for folder in folders:
            if not os.lstat(folder, dir_fd=here).st_mode & stat.S_IXUSR:
                return False  # said here, for root could open it all the same
            below = os.open(folder, _DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
        entry = os.lstat(name, dir_fd=here)
        if not stat.S_ISREG(entry.st_mode) or not entry.st_mode & stat.S_IRUSR:
            return False
        return entry.st_size == len(content) and _read(here, name, entry) == content
    except OSError:  # missing, unreadable or a link where a folder was: not the same
        return False
    finally:
        os.close(here)


def read_tree(path: Path, *, strict: bool) -> Tree:
    """Read a directory as a Tree: plain files only, compiled Python files dropped.

    `strict` refuses links, FIFOs, devices, hard links, set-id bits, unreadable files and names
    that a Tree cannot hold; otherwise they are left out. Raises SubmissionError for these and,
    always, for more files, entries or bytes than the caps of rsi.prism.tree.
    """
    try:
        top = os.open(path, _DIRECTORY)
    except OSError as error:
        raise SubmissionError(f"{path}: not a readable directory ({error.strerror})") from error
    files: dict[str, File] = {}
    size = 0
    try:
        for name, file in _walk(top, "", strict, [MAX_ENTRIES]):
            files[name] = file
            size += len(file.content)
            if len(files) > MAX_FILES or size > MAX_BYTES:
                raise SubmissionError(
                    f"{path}: more than {MAX_FILES} files or {MAX_BYTES} bytes; submit less"
                )
    finally:
        os.close(top)
    return Tree(files=dict(sorted(files.items())))


def _walk(here: int, prefix: str, strict: bool, left: list[int]) -> Iterator[tuple[str, File]]:
    """Yield plain files below an open directory; recursion is bounded by MAX_DEPTH."""
    for name in sorted(os.listdir(here)):
        left[0] -= 1
        if left[0] < 0:
            raise SubmissionError(f"more than {MAX_ENTRIES} entries; submit less")
        path = prefix + name
        entry = os.lstat(name, dir_fd=here)
        fault = _fault(path, entry)
        if fault is not None:
            if strict:
                raise SubmissionError(f"{path!r}: {fault}")
            continue
        if _compiled(path):
            _log.warning("%s: compiled Python file dropped", path)
        elif stat.S_ISDIR(entry.st_mode):
            below = os.open(name, _DIRECTORY, dir_fd=here)
            try:
                yield from _walk(below, path + "/", strict, left)
            finally:
                os.close(below)
        elif entry.st_size > MAX_BYTES:
            raise SubmissionError(f"{path!r}: {entry.st_size} bytes; at most {MAX_BYTES}")
        else:
            executable = bool(entry.st_mode & stat.S_IXUSR)
            yield path, File(content=_read(here, name, entry), executable=executable)


def _fault(path: str, entry: os.stat_result) -> str | None:
    """Say why an entry cannot be part of a tree, or None."""
    folder = stat.S_ISDIR(entry.st_mode)
    if not folder and not stat.S_ISREG(entry.st_mode):
        return "a link, FIFO, socket or device; only plain files are allowed"
    if not folder and entry.st_nlink != 1:
        return "has hard links; only plain files are allowed"
    if entry.st_mode & (stat.S_ISUID | stat.S_ISGID) and not folder:
        return "has a set-id bit"
    needed = stat.S_IRUSR | (stat.S_IXUSR if folder else 0)
    if entry.st_mode & needed != needed:
        return "not readable by its owner"
    if len(path) > MAX_PATH_CHARS or path.count("/") >= MAX_DEPTH:
        return "path longer or deeper than allowed"
    try:
        path.encode()
        check_path(path)
    except (UnicodeEncodeError, SubmissionError):
        return "not a plain UTF-8 name"
    return None


def _read(here: int, name: str, entry: os.stat_result) -> bytes:
    handle = os.open(name, _PLAIN, dir_fd=here)
    with open(handle, "rb", buffering=0) as source:
        now = os.fstat(handle)
        if not stat.S_ISREG(now.st_mode) or now.st_ino != entry.st_ino:
            raise SubmissionError(f"{name!r}: replaced while it was read")
        return b"".join(iter(lambda: source.read(1 << 20), b""))[: MAX_BYTES + 1]


def _compiled(path: str) -> bool:
    return path.endswith((".pyc", ".pyo")) or "__pycache__" in path.split("/")


def disk_usage(root: Path, most: int) -> int:
    """Sum the bytes below a directory as stored on disk, 1 KiB an entry; stops above `most`.

    Links are not followed; what vanishes or cannot be read while we look is left out.
    """
    total, folders = 0, [os.fspath(root)]
    while folders and total <= most:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    total += 1_024 + entry.stat(follow_symlinks=False).st_blocks * 512
                    if total > most:
                        break
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:  # raced with the program, or too deep a path: the next look counts again
            continue
    return total


def remove_tree(path: Path) -> None:
    """Remove a directory whatever modes and depth it has; raises SandboxFailure if it stays."""
    try:
        shutil.rmtree(path)
    except (OSError, RecursionError):
        subprocess.run(["chmod", "-R", "u+rwX", "--", path], capture_output=True, check=False)
        done = subprocess.run(["rm", "-rf", "--", path], capture_output=True, check=False)
        if path.exists():
            reason = done.stderr.decode("utf-8", "replace")[:200]
            raise SandboxFailure(f"cannot remove {path}: {reason}") from None

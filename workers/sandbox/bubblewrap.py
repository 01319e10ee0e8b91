"""Cells in bubblewrap: own namespaces, no network, no host files but /usr and the interpreter.

The program is bound at /work, the suite read-only at /submission; /tmp and /dev/shm are bounded
tmpfs; no capabilities, no nested user namespaces; nothing survives the cell. Run by root, cells
belong to an unused user id. Memory and processes are held by RLIMIT_NPROC and by a watch on the
process tree every 20 ms, so a burst between two looks can pass the memory limit for that long.
Not covered: faults of the kernel itself (there is no seccomp filter), CPU time of neighbours,
memory that the kernel holds for a cell (pipes, tmpfs beyond its size), reading of public files
below /usr.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rsi.errors import SandboxFailure, SettingsError, SubmissionError
from rsi.ports import Completed, Execution, Isolation
from workers.sandbox.cell import (
    CELL_UID,
    OUT,
    SUBMISSION,
    WORK,
    Ending,
    Seen,
    cell_environment,
    complete,
    refused,
    supervised,
)
from workers.sandbox.census import Usage, take_census
from workers.sandbox.interpreter import Interpreter, running_interpreter
from workers.sandbox.scratch import scratch
from workers.sandbox.watch import MAX_GIVEN, MIB, Capture, Watch
from workers.trees import disk_usage, write_tree

TOOLS = "/opt/bin"
_NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
    *("--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL", "--clearenv"),
)
_PYTEST = b'#!/bin/sh\nexec python3 -m pytest "$@"\n'
_PASSWD = b"sandbox:x:1000:1000::/tmp:/bin/sh\n"
_REBIND = (
    'while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit 1; shift 2; done; shift; exec "$@"'
)


class BubblewrapSandbox:
    """Runs each execution in a bubblewrap of its own; cheap to make, safe in many threads."""

    isolation: Isolation = "bubblewrap"

    def run(self, execution: Execution) -> Completed:
        """Run one command; raises SandboxFailure when the host cannot tell what happened."""
        owner = CELL_UID if os.getuid() == 0 else None
        with scratch() as place:
            for name in ("work", "submission"):
                (place / name).mkdir(mode=0o755)
            try:
                write_tree(execution.program, place / "work", owner)
                if execution.submission is not None:
                    write_tree(execution.submission, place / "submission", owner, writable=False)
            except SubmissionError as error:
                return refused(error, self.isolation)
            return complete(execution, place / "work", _run(execution, place), self.isolation)


def missing() -> str | None:
    """Say what bubblewrap needs and does not find on this machine, or None."""
    if shutil.which("bwrap") is None:
        return "bwrap is not installed (Debian: apt install bubblewrap)"
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        return "setpriv is not installed (util-linux)"
    return None


@cache
def _options() -> str:
    """The help text of bwrap, to know which options it has."""
    done = subprocess.run(["bwrap", "--help"], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def _run(execution: Execution, place: Path) -> Seen:
    captures = Capture(execution.limits.output_bytes), Capture(execution.limits.output_bytes)
    report = Capture(4_096)
    given = disk_usage(place / "work", MAX_GIVEN)
    with _started(execution, place) as running:
        watch = Watch(
            limits=execution.limits,
            captures=captures,
            feeds=dict(zip(running.pipes, (x.feed for x in (*captures, report)), strict=True)),
            exit_fd=running.pidfd,
            usage=lambda: _usage(running.process.pid),
            kill=lambda: _kill(running.process.pid),
            work=place / "work",
            given_bytes=given,
        )
        killed_by = watch.until_over()
        _, how, rusage = os.wait4(running.process.pid, 0)
        running.process.returncode = os.waitstatus_to_exitcode(how)
    ending = Ending.read(report.text(), running.process.returncode)
    if ending is None and killed_by is None:
        said = captures[1].text().decode("utf-8", "replace").strip()[-300:]
        raise SandboxFailure(f"bwrap ended with {running.process.returncode}: {said}")
    return Seen.of(watch, killed_by, ending, rusage.ru_utime + rusage.ru_stime)


@dataclass
class _Running:
    process: subprocess.Popen[bytes]
    pidfd: int
    pipes: tuple[int, int, int]


@contextmanager
def _started(execution: Execution, place: Path) -> Iterator[_Running]:
    """Start bwrap; on leaving, it is dead and every descriptor is closed."""
    opened: list[int] = []

    def pipe() -> tuple[int, int]:
        opened.extend(os.pipe())
        return opened[-2], opened[-1]

    process = None
    try:
        out, err, report = pipe(), pipe(), pipe()
        texts = _memory_file(_PYTEST), _memory_file(_PASSWD)
        opened.extend(texts)
        command = [
            *_prefix(place),
            *_NAMESPACES,
            *_files(execution, place, texts),
            *_environment(execution),
            *supervised(execution, running_interpreter().executable, str(report[1]), SUBMISSION),
        ]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out[1],
                stderr=err[1],
                pass_fds=(report[1], *texts),
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                cwd="/",
            )
            opened.append(os.pidfd_open(process.pid))
        except OSError as error:
            raise SandboxFailure(f"cannot start bwrap: {error}") from error
        for pair in (out, err, report):
            os.close(pair[1])
            opened.remove(pair[1])
        yield _Running(process, opened[-1], (out[0], err[0], report[0]))
    finally:
        if process is not None and process.returncode is None:
            _kill(process.pid)
            process.kill()
            process.wait()
        for fd in opened:
            os.close(fd)


def _memory_file(content: bytes) -> int:
    fd = os.memfd_create("text")
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _kill(bwrap: int) -> None:
    """Kill the first process of the sandbox, and with it the whole process namespace."""
    for pid in take_children(bwrap):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it has just ended by itself
            continue


def take_children(pid: int) -> list[int]:
    try:
        return [int(x) for x in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _usage(bwrap: int) -> Usage:
    """What the sandbox uses, without its first process's own thread."""
    for pid in take_children(bwrap):
        usage = take_census(pid)
        return Usage(max(0, usage.tasks - 1), usage.memory_bytes, usage.cpu_seconds, usage.pids)
    return Usage()


def _prefix(place: Path) -> list[str]:
    """The command before bwrap's options: drop root, after making closed directories reachable."""
    if os.getuid() != 0:
        return ["bwrap"]
    user = ["setpriv", "--reuid", str(CELL_UID), "--regid", str(CELL_UID), "--clear-groups"]
    moved = _closed_sources(running_interpreter())
    if not moved:
        return [*user, "bwrap"]
    binds: list[str] = []
    for number, source in enumerate(moved):
        target = place / f"m{number}"
        target.mkdir(mode=0o755) if os.path.isdir(source) else target.touch()
        binds += [source, str(target)]
    unshare = ["unshare", "--mount", "--propagation", "private"]
    return [*unshare, "sh", "-c", _REBIND, "sh", *binds, "--", *user, "bwrap"]


@cache
def _closed_sources(interpreter: Interpreter) -> tuple[str, ...]:
    """The sources that another user cannot reach, such as an interpreter below /root."""
    sources = [source for source, _ in interpreter.packages]
    if interpreter.prefix is not None:
        sources.insert(0, interpreter.prefix)
    return tuple(s for s in sources if any(not p.stat().st_mode & 1 for p in Path(s).parents))


def _files(execution: Execution, place: Path, texts: tuple[int, int]) -> list[str]:
    """The file system of a cell."""
    python = running_interpreter()
    moved = _closed_sources(python) if os.getuid() == 0 else ()

    def source(path: str) -> str:
        return str(place / f"m{moved.index(path)}") if path in moved else path

    disk = execution.limits.disk_mib * MIB
    line = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib32", "lib64", "sbin"):
        if os.path.islink(f"/{name}"):
            line += ["--symlink", f"usr/{name}", f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            line += ["--ro-bind", f"/{name}", f"/{name}"]
    line += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
    line += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    if python.prefix is not None:
        line += ["--ro-bind", source(python.prefix), python.prefix]
    for path in python.hidden:
        line += ["--size", "65536", "--tmpfs", path]
    for path, name in python.packages:
        line += ["--ro-bind", source(path), f"{python.site}/{name}"]
    for path in python.hidden:
        line += ["--remount-ro", path]
    for name in ("python3", "python"):
        line += ["--symlink", python.executable, f"{TOOLS}/{name}"]
    line += ["--perms", "0755", "--file", str(texts[0]), f"{TOOLS}/pytest"]
    line += ["--perms", "0644", "--file", str(texts[1]), "/etc/passwd"]
    line += ["--proc", "/proc", "--dev", "/dev", "--size", str(16 * MIB), "--tmpfs", "/dev/shm"]
    line += ["--size", str(disk), "--tmpfs", "/tmp"]
    line += ["--bind", str(place / "work"), WORK]
    if execution.submission is not None:
        line += ["--ro-bind", str(place / "submission"), SUBMISSION]
    if "--disable-userns" in _options():
        line.append("--disable-userns")
    return [*line, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK]


def _environment(execution: Execution) -> list[str]:
    shown = SUBMISSION if execution.submission is not None else None
    variables = cell_environment(execution, program=WORK, submission=shown, out=OUT, tools=TOOLS)
    return [word for name, value in variables.items() for word in ("--setenv", name, value)]


def check() -> None:
    """Raise SettingsError when this machine cannot run cells in bubblewrap."""
    reason = missing()
    if reason is not None:
        raise SettingsError(f"bubblewrap: {reason}")

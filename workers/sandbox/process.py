"""Cells as plain processes: for code that is trusted to be clumsy, not hostile. Weak.

Each cell has a fresh tree, a constant environment, an own session, limits and a supervisor that
adopts and kills everything the cell leaves behind. Not covered: the network; the user's files
and other cells' trees (and, through them, hidden panels); /proc and signals of all processes of
the same user, with `kill -9 -1` and the supervisor itself among them; System V shared memory and
unix sockets; bytes written outside the work tree; paths differ between cells. Memory, processes
and CPU time are held only by the watch every 20 ms.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rsi.errors import SandboxFailure, SubmissionError
from rsi.ports import Completed, Execution, Isolation, KilledBy
from workers.sandbox.cell import Ending, Seen, cell_environment, complete, refused, supervised
from workers.sandbox.census import Usage, take_census
from workers.sandbox.scratch import scratch
from workers.sandbox.watch import MAX_GIVEN, Capture, Watch
from workers.trees import disk_usage, write_tree


class ProcessSandbox:
    """Runs each execution as a process of this user; see the module for what that leaves open."""

    isolation: Isolation = "process"

    def run(self, execution: Execution) -> Completed:
        """Run one command; raises SandboxFailure when the host cannot tell what happened."""
        with scratch() as place:
            for name in ("work", "submission", "out"):
                (place / name).mkdir(mode=0o755)
            try:
                write_tree(execution.program, place / "work")
                if execution.submission is not None:
                    write_tree(execution.submission, place / "submission", writable=False)
            except SubmissionError as error:
                return refused(error, self.isolation)
            return complete(execution, place / "work", _run(execution, place), self.isolation)


def _run(execution: Execution, place: Path) -> Seen:
    captures = Capture(execution.limits.output_bytes), Capture(execution.limits.output_bytes)
    report = Capture(4_096)
    given = disk_usage(place / "work", MAX_GIVEN)
    told, tell = os.pipe()
    with _closing(told), _start(execution, place, tell) as process:
        assert process.stdout is not None and process.stderr is not None
        with _closing(os.pidfd_open(process.pid)) as pidfd:
            watch = Watch(
                limits=execution.limits,
                captures=captures,
                feeds={
                    process.stdout.fileno(): captures[0].feed,
                    process.stderr.fileno(): captures[1].feed,
                    told: report.feed,
                },
                exit_fd=pidfd,
                usage=lambda: _usage(process.pid),
                kill=lambda: _kill(process.pid),
                work=place / "work",
                given_bytes=given,
            )
            killed_by, cpu_seconds = _until_over(watch, process)
    ending = Ending.read(report.text(), process.returncode)
    if ending is None and killed_by is None:
        raise SandboxFailure(f"a cell's supervisor ended with {process.returncode}")
    return Seen.of(watch, killed_by, ending, cpu_seconds)


def _until_over(watch: Watch, process: subprocess.Popen[bytes]) -> tuple[KilledBy | None, float]:
    """Watch a supervisor to its end, whatever happens; gives the broken limit and CPU seconds."""
    try:
        killed_by = watch.until_over()
    except BaseException:
        _kill(process.pid)
        process.kill()
        raise
    finally:
        _, how, rusage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(how)
    return killed_by, rusage.ru_utime + rusage.ru_stime


@contextmanager
def _closing(fd: int) -> Iterator[int]:
    """Close a descriptor at the end."""
    try:
        yield fd
    finally:
        os.close(fd)


def _start(execution: Execution, place: Path, report: int) -> subprocess.Popen[bytes]:
    """Start a supervisor that reports to a descriptor, which is closed here."""
    shown = str(place / "submission") if execution.submission is not None else None
    variables = cell_environment(
        execution,
        program=str(place / "work"),
        submission=shown,
        out=str(place / "out"),
        tools=str(Path(sys.executable).parent),
    )
    variables.setdefault("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    suite, python = str(place / "submission"), os.path.realpath(sys.executable)
    try:
        return subprocess.Popen(
            supervised(execution, python, str(report), suite, held_by="nobody"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(report,),
            env=variables,
            cwd=place / "work",
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxFailure(f"cannot start a cell: {error}") from error
    finally:
        os.close(report)


def _usage(supervisor: int) -> Usage:
    usage = take_census(supervisor)
    return Usage(max(0, usage.tasks - 1), usage.memory_bytes, usage.cpu_seconds, usage.pids)


def _kill(supervisor: int) -> None:
    """Kill all processes below the supervisor, which then buries what they leave and ends."""
    for pid in take_census(supervisor).pids:
        if pid != supervisor:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:  # it has just ended by itself
                continue

"""What all sandboxes share about a cell: its environment, its command and how it ended."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from rsi.errors import SandboxFailure, SubmissionError
from rsi.ports import Completed, Execution, Isolation, KilledBy
from workers.sandbox import supervisor
from workers.sandbox.watch import MIB, Watch
from workers.trees import changed_files, read_tree, reopen

# the reports of a supervisor whose words and exit do not fit: the command got at its pipe
FORGED = "<sandbox report>"
# where strong sandboxes show things: the same in every cell
WORK = "/work"
SUBMISSION = "/submission"
OUT = "/tmp/out"
# a user id that nobody has, for cells that root starts
CELL_UID = 64_100
_SUPERVISOR = Path(supervisor.__file__).read_text(encoding="utf-8")
# a command that fails to start for these reasons met a trouble of the host, not its own
_HOST_TROUBLE = {errno.EAGAIN, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ETXTBSY}


HeldBy = Literal["user", "group", "nobody"]


def cell_environment(
    execution: Execution, *, program: str, submission: str | None, out: str, tools: str
) -> dict[str, str]:
    """All variables of a cell: the same in every cell but for what the execution asks for.

    Compiled Python files are never written, so a source rewritten within a second cannot meet
    stale ones, while those of the standard library are used (a fresh PYTHONPYCACHEPREFIX would
    compile it anew in every cell: 3.5 times the cost).
    """
    variables = {
        "PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TP_PROGRAM_ROOT": program,
        "TP_OUT": out,
    }
    if submission is not None:
        variables["TP_SUBMISSION"] = submission
    return {**variables, **execution.environment}


def supervised(
    execution: Execution, python: str, report: str, submission: str, held_by: HeldBy = "user"
) -> list[str]:
    """The command line that runs an execution below the supervisor, which writes to `report`.

    Processes are held by a limit of the user id in its namespace, by a control group of the
    namespace, or by nobody when there is no namespace.

    Two tasks more than the limit: the supervisor, and one that shows that the limit is broken.
    """
    limits = execution.limits
    argv = list(execution.argv)
    if execution.entry_in_submission:
        argv[0] = f"{submission}/{argv[0]}"
    tasks = {"user": 1, "group": -1}.get(held_by, 0) * (limits.processes + 2)
    numbers = [report, str(tasks), str(limits.disk_mib * MIB)]
    return [python, "-I", "-S", "-c", _SUPERVISOR, *numbers, *argv]


@dataclass(frozen=True)
class Ending:
    """How the supervised command ended; `errno` when it could not be executed.

    `left` counts the processes that it left behind, its supervisor included.
    """

    status: int = 0
    errno: int = 0
    left: int = 0
    forged: bool = False

    @classmethod
    def read(cls, report: bytes, exit_code: int) -> Ending | None:
        """Read a supervisor's report beside its exit code; None when it did not finish it.

        Raises SandboxFailure when the command could not be executed for lack of host resources.
        """
        failed = re.fullmatch(rb"failed (\d{1,5})\n", report)
        if failed is not None and exit_code == 127:
            number = int(failed[1])
            if number in _HOST_TROUBLE:
                raise SandboxFailure(f"the command could not start: {os.strerror(number)}")
            return cls(errno=number)
        if not report.startswith(b"started\n"):
            return None
        ended = re.fullmatch(rb"started\nended (\d{1,5}) (\d{1,7})\n", report)
        if ended is None:
            # only the command itself can end its supervisor, but for a kill from outside
            return None if exit_code in (-9, 137) else cls(forged=True)
        status, left = int(ended[1]), int(ended[2])
        seen = status >> 8 if status & 0x7F == 0 else 128 + (status & 0x7F)
        return cls(status=status, left=left, forged=seen != exit_code)


@dataclass(frozen=True)
class Seen:
    """What the host saw of one execution."""

    killed_by: KilledBy | None
    ending: Ending | None
    stdout: bytes
    stderr: bytes
    wall_seconds: float
    cpu_seconds: float

    @classmethod
    def of(
        cls, watch: Watch, killed_by: KilledBy | None, ending: Ending | None, cpu: float
    ) -> Self:
        """Sum up a watch that is over."""
        stdout, stderr = (capture.text() for capture in watch.captures)
        if killed_by is None and ending is not None and ending.left > watch.limits.processes:
            killed_by = "processes"
        used = max(cpu, watch.cpu_seconds)
        return cls(killed_by, ending, stdout, stderr, watch.wall_seconds, used)


def complete(execution: Execution, work: Path, seen: Seen, isolation: Isolation) -> Completed:
    """Compare and collect the work tree of a cell whose processes are all dead."""
    ending = seen.ending or Ending(status=9)
    killed_by = seen.killed_by
    tree = None
    reopen(work)
    if execution.collect:
        try:
            tree = read_tree(work, strict=False)
        except SubmissionError:  # it holds more than a tree may
            killed_by = killed_by or "disk"
    changed = changed_files(execution.program, work)
    signal = ending.status & 0x7F
    started = ending.errno == 0
    failure = "" if started else f"{execution.argv[0]}: {os.strerror(ending.errno)}\n"
    return Completed(
        exit_code=None if signal or not started or killed_by else ending.status >> 8,
        signal=(signal or None) if started else None,
        killed_by=killed_by,
        started=started,
        stdout=seen.stdout,
        stderr=seen.stderr + failure.encode(),
        wall_seconds=seen.wall_seconds,
        cpu_seconds=seen.cpu_seconds,
        changed=(*changed, FORGED) if ending.forged else changed,
        tree=tree,
        isolation=isolation,
    )


def refused(error: SubmissionError, isolation: Isolation) -> Completed:
    """The result of an execution whose trees cannot exist as files: it never started."""
    return Completed(
        exit_code=None, started=False, stderr=f"{error}\n".encode(), isolation=isolation
    )

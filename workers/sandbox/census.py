"""What all processes below one process use, read from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Usage:
    """Threads, resident bytes and CPU seconds; shared pages are counted once per process."""

    tasks: int = 0
    memory_bytes: int = 0
    cpu_seconds: float = 0.0
    pids: tuple[int, ...] = ()


def take_census(root: int) -> Usage:
    """Sum over a process and all its descendants; what ends meanwhile is left out.

    `cpu_seconds` includes children that were waited for.
    """
    tasks = memory = 0
    ticks = 0
    pids: list[int] = []
    pending = [root]
    while pending:
        pid = pending.pop()
        try:
            threads = os.listdir(f"/proc/{pid}/task")
            for thread in threads:
                pending += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
            fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            resident = int(_read(f"/proc/{pid}/statm").split()[1])
        except (OSError, IndexError):  # it ended while we looked
            continue
        pids.append(pid)
        tasks += len(threads)
        memory += resident * _PAGE
        ticks += sum(int(field) for field in fields[11:15])
    return Usage(tasks, memory, ticks / _TICKS, tuple(pids))


def private_memory(pids: tuple[int, ...]) -> int:
    """Sum the proportional share of anonymous and shared memory of processes, in bytes.

    A process that hides its maps counts with all its resident pages.
    """
    total = 0
    for pid in pids:
        try:
            lines = _read(f"/proc/{pid}/smaps_rollup").split(b"\n")
        except OSError:
            total += _resident(pid)
            continue
        kib = [int(x.split()[1]) for x in lines if x.startswith((b"Pss_Anon:", b"Pss_Shmem:"))]
        total += sum(kib) * 1_024
    return total


def _resident(pid: int) -> int:
    try:
        return int(_read(f"/proc/{pid}/statm").split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(handle, 65_536)
    finally:
        os.close(handle)

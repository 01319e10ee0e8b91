"""What a cell's container may do, who made it, and what it uses: the daemon's half of a cell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rsi.ports import Execution
from workers.sandbox.cell import CELL_UID, OUT, SUBMISSION, WORK, cell_environment, supervised
from workers.sandbox.census import Usage, take_census
from workers.sandbox.watch import MIB

OWNER_LABEL = "rsi.cell.owner"
REPORT = "/report"
# more processors than these make cells no faster and neighbours slower
MOST_CPUS = 2
# the threads that start a container count for a moment in its own control group; the watch and
# the supervisor hold a cell to the exact number
SPARE_TASKS = 32


def container_options(execution: Execution, place: Path, image: str, api: Any) -> dict[str, Any]:
    """The arguments of `create_container`."""
    limits = execution.limits
    binds = [f"{place}/work:{WORK}:rw", f"{place}/report:{REPORT}:rw"]
    if execution.submission is not None:
        binds.append(f"{place}/submission:{SUBMISSION}:ro")
    memory = limits.memory_mib * MIB
    host = api.create_host_config(
        binds=binds,
        network_mode="none",
        ipc_mode="private",
        read_only=True,
        tmpfs={"/tmp": f"rw,exec,nosuid,nodev,size={limits.disk_mib}m,mode=1777"},
        shm_size=16 * MIB,
        mem_limit=memory,
        memswap_limit=memory,
        nano_cpus=min(MOST_CPUS, os.cpu_count() or 1) * 1_000_000_000,
        pids_limit=limits.processes + SPARE_TASKS,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        ulimits=[
            {"name": "nofile", "soft": 256, "hard": 256},
            {"name": "core", "soft": 0, "hard": 0},
        ],
        log_config={"Type": "none"},
        init=False,
    )
    shown = SUBMISSION if execution.submission is not None else None
    user = CELL_UID if os.getuid() == 0 else os.getuid()
    return {
        "image": image,
        # no limit per user: containers share the host's count, their control group has its own
        "entrypoint": supervised(execution, "python3", REPORT, SUBMISSION, held_by="group"),
        "command": [],
        "environment": cell_environment(
            execution, program=WORK, submission=shown, out=OUT, tools="/usr/local/sbin"
        ),
        "working_dir": WORK,
        "hostname": "sandbox",
        "user": f"{user}:{user if user == CELL_UID else os.getgid()}",
        "labels": {OWNER_LABEL: owner_of(os.getpid())},
        "host_config": host,
    }


def owner_of(pid: int) -> str:
    """Who made a container: boot, process namespace, process id and its start time."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = os.stat("/proc/self/ns/pid").st_ino
    try:
        started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        started = "ended"
    return f"{boot}/{namespace}/{pid}/{started}"


class Census:
    """Counts what a container uses where its processes are visible here, else nothing."""

    def __init__(self, container: str, api: Any) -> None:
        self._container = container
        self._api = api
        self._pid: int | None = None

    def take(self) -> Usage:
        """The use of all processes but the supervisor's own thread."""
        if self._pid is None:
            self._pid = self._find()
        if self._pid == 0:
            return Usage()
        seen = take_census(self._pid)
        return Usage(max(0, seen.tasks - 1), seen.memory_bytes, seen.cpu_seconds, seen.pids)

    def _find(self) -> int:
        pid = int(self._api.inspect_container(self._container)["State"]["Pid"])
        try:
            ours = pid > 0 and self._container in Path(f"/proc/{pid}/cgroup").read_text()
        except OSError:
            ours = False
        return pid if ours else 0

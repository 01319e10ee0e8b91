"""Cells in Docker containers: one fresh container each, no network, read-only image.

The work tree is a host directory bound at /work and read only after the container is dead, so
nothing that comes back has to be unpacked; the suite is bound read-only at /submission. The
daemon must see the same file system (no remote DOCKER_HOST). Memory and processes are held by the
container's own control group. CPU seconds are counted only where the container's processes are
visible here; elsewhere the wall deadline alone ends a busy loop. Not covered: faults of the
kernel or of the daemon itself. Images are never pulled.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import threading
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import docker
from docker.errors import DockerException, ImageNotFound, NotFound
from docker.types import Ulimit
from requests.exceptions import RequestException

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
from workers.sandbox.scratch import scratch
from workers.sandbox.watch import DEATH_SECONDS, MIB, Capture, Frames, Watch
from workers.trees import write_tree

BASE_IMAGE = "rsi-base:py311"
OWNER_LABEL = "rsi.cell.owner"
REPORT = "/report"
CLIENT_TIMEOUT_SECONDS = 60
# more processors than these make cells no faster and neighbours slower
MOST_CPUS = 2
KILL_AGAIN_SECONDS = 0.5
_log = logging.getLogger(__name__)


class DockerSandbox:
    """Runs each execution in a container of its own; cheap to make, safe in many threads."""

    isolation: Isolation = "docker"

    def __init__(self, image: str = BASE_IMAGE) -> None:
        self.image = image

    def run(self, execution: Execution) -> Completed:
        """Run one command.

        Raises SandboxFailure when the daemon fails, SettingsError when the image is missing.
        """
        owner = CELL_UID if os.getuid() == 0 else None
        with scratch() as place:
            for name in ("work", "submission"):
                (place / name).mkdir(mode=0o755)
            (place / "report").touch()
            (place / "report").chmod(0o622)
            try:
                write_tree(execution.program, place / "work", owner)
                if execution.submission is not None:
                    write_tree(execution.submission, place / "submission", owner, writable=False)
            except SubmissionError as error:
                return refused(error, self.isolation)
            with _daemon_trouble(self.image):
                seen = _run(execution, place, self.image)
            return complete(execution, place / "work", seen, self.isolation)


@contextlib.contextmanager
def _daemon_trouble(image: str) -> Iterator[None]:
    """Name the two kinds of trouble: an image to build, and a daemon that failed."""
    try:
        yield
    except ImageNotFound as error:
        raise SettingsError(
            f"image {image} is missing; build it: bash .ci/base_image.sh"
        ) from error
    except (DockerException, RequestException, OSError) as error:
        raise SandboxFailure(f"docker: {str(error)[:300]}") from error


@lru_cache(maxsize=1)
def _client(pid: int) -> docker.DockerClient:
    """One client a process: a forked child must not share its parent's connections."""
    return docker.from_env(timeout=CLIENT_TIMEOUT_SECONDS)


def _run(execution: Execution, place: Path, image: str) -> Seen:
    api = _client(os.getpid()).api
    container = api.create_container(**_options(execution, place, image, api))["Id"]
    try:
        return _observe(execution, place, container, api)
    finally:
        try:
            api.remove_container(container, force=True, v=True)
        except (DockerException, RequestException) as error:
            # what was observed stands; the next start removes what is left
            _log.warning("container %s not removed: %s", container[:12], error)


def _observe(execution: Execution, place: Path, container: str, api: Any) -> Seen:
    captures = Capture(execution.limits.output_bytes), Capture(execution.limits.output_bytes)
    socket = api.attach_socket(container, params={"stdout": 1, "stderr": 1, "stream": 1})
    try:
        watch = Watch(
            limits=execution.limits,
            captures=captures,
            feeds={socket.fileno(): Frames(captures).feed},
            exit_fd=None,
            usage=Census(container, api).take,
            kill=Killer(container, api).kill,
            work=place / "work",
        )
        api.start(container)
        killed_by = watch.until_over()
    finally:
        socket.close()
    code = int(api.wait(container, timeout=DEATH_SECONDS)["StatusCode"])
    state = api.inspect_container(container)["State"]
    if state["Running"] or int(state["ExitCode"]) != code:
        raise SandboxFailure("docker: the daemon contradicts itself about a container's end")
    if killed_by is None and state["OOMKilled"]:
        killed_by = "memory"
    ending = Ending.read(_report(place / "report"), code)
    if ending is None and killed_by is None:
        said = captures[1].text().decode("utf-8", "replace").strip()[-300:]
        raise SandboxFailure(f"a container ended with {code} and no report: {said}")
    return Seen.of(watch, killed_by, ending, 0.0)


def _options(execution: Execution, place: Path, image: str, api: Any) -> dict[str, Any]:
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
        pids_limit=limits.processes + 2,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        ulimits=[Ulimit(name="nofile", soft=256, hard=256), Ulimit(name="core", soft=0, hard=0)],
        log_config={"Type": "none"},
        init=False,
    )
    shown = SUBMISSION if execution.submission is not None else None
    user = CELL_UID if os.getuid() == 0 else os.getuid()
    return {
        "image": image,
        "entrypoint": supervised(execution, "python3", REPORT, SUBMISSION),
        "command": [],
        "environment": cell_environment(
            execution, program=WORK, submission=shown, out=OUT, tools="/usr/local/sbin"
        ),
        "working_dir": WORK,
        "hostname": "sandbox",
        "user": f"{user}:{user if user == CELL_UID else os.getgid()}",
        "labels": {OWNER_LABEL: _owner(os.getpid())},
        "host_config": host,
    }


def _report(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, 4_096) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)


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


class Killer:
    """Kills a container from another thread, for the daemon may wait until its output is read."""

    def __init__(self, container: str, api: Any) -> None:
        self._container = container
        self._api = api
        self._thread: threading.Thread | None = None

    def kill(self) -> None:
        """Ask for the kill, again when an earlier request has come to nothing."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._ask, daemon=True)
            self._thread.start()

    def _ask(self) -> None:
        try:
            self._api.kill(self._container)
        except (DockerException, RequestException) as error:
            # it may have ended meanwhile; if not, the watch gives up on it
            _log.debug("kill of container %s: %s", self._container[:12], error)
        time.sleep(KILL_AGAIN_SECONDS)


def _owner(pid: int) -> str:
    """Who made a container: boot, process namespace, process id and its start time."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = os.stat("/proc/self/ns/pid").st_ino
    try:
        started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        started = "ended"
    return f"{boot}/{namespace}/{pid}/{started}"


def reap_orphans() -> int:
    """Remove containers whose maker on this machine is dead; gives their number.

    Raises SandboxFailure when the daemon fails. Those made in another process namespace stay.
    """
    removed = 0
    with _daemon_trouble(BASE_IMAGE):
        api = _client(os.getpid()).api
        for found in api.containers(all=True, filters={"label": OWNER_LABEL}):
            owner = str(found["Labels"][OWNER_LABEL])
            boot, namespace, pid, _ = (*owner.split("/"), "", "", "", "")[:4]
            here = _owner(os.getpid()).split("/")
            elsewhere = boot == here[0] and namespace != here[1]
            if elsewhere or (pid.isdigit() and _owner(int(pid)) == owner):
                continue
            try:
                api.remove_container(found["Id"], force=True, v=True)
                removed += 1
            except NotFound:  # someone else was faster
                continue
    return removed


def check(image: str = BASE_IMAGE) -> None:
    """Raise SettingsError when no daemon answers or the image is missing."""
    started = time.monotonic()
    try:
        with _daemon_trouble(image):
            _client(os.getpid()).api.inspect_image(image)
    except SandboxFailure as error:
        where = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
        waited = time.monotonic() - started
        raise SettingsError(
            f"no Docker daemon answers at {where} ({waited:.0f} s): {error}"
        ) from error

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
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
from docker.errors import DockerException, ImageNotFound, NotFound
from requests.exceptions import RequestException

from rsi.errors import SandboxFailure, SettingsError, SubmissionError
from rsi.ports import Completed, Execution, Isolation
from workers.sandbox.cell import CELL_UID, Ending, Seen, complete, refused
from workers.sandbox.container import OWNER_LABEL, Census, container_options, owner_of
from workers.sandbox.scratch import scratch
from workers.sandbox.watch import DEATH_SECONDS, MAX_GIVEN, Capture, Frames, Watch
from workers.trees import disk_usage, write_tree

BASE_IMAGE = "rsi-base:py311"
DEFAULT_HOST = "unix:///var/run/docker.sock"
CLIENT_TIMEOUT_SECONDS = 60
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


@contextlib.contextmanager
def _connected() -> Iterator[Any]:
    """A connection of our own: neither threads nor forked children share it."""
    host = os.environ.get("DOCKER_HOST", DEFAULT_HOST)
    if host.startswith("unix://"):  # docker-py leaks the socket that cannot connect
        with socket.socket(socket.AF_UNIX) as knock:
            knock.connect(host.removeprefix("unix://"))
    client = docker.from_env(timeout=CLIENT_TIMEOUT_SECONDS)
    try:
        yield client.api
    finally:
        client.close()


@contextlib.contextmanager
def _attached(container: str, api: Any) -> Iterator[int]:
    """The descriptor of a container's output stream, to be opened before the start."""
    stream = api.attach_socket(container, params={"stdout": 1, "stderr": 1, "stream": 1})
    # closing the stream alone leaves docker-py's response and its socket open
    response, connection = stream._response, stream._sock
    try:
        yield stream.fileno()
    finally:
        response.close()
        connection.close()


def _run(execution: Execution, place: Path, image: str) -> Seen:
    with _connected() as api:
        container = api.create_container(**container_options(execution, place, image, api))["Id"]
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
    given = disk_usage(place / "work", MAX_GIVEN)
    killer = Killer(container, api)
    with _attached(container, api) as stream:
        watch = Watch(
            limits=execution.limits,
            captures=captures,
            feeds={stream: Frames(captures).feed},
            exit_fd=None,
            usage=Census(container, api).take,
            kill=killer.kill,
            work=place / "work",
            given_bytes=given,
        )
        api.start(container)
        killed_by = watch.until_over()
    killer.join()
    code = int(api.wait(container, timeout=DEATH_SECONDS)["StatusCode"])
    state = api.inspect_container(container)["State"]
    if state["Running"] or int(state["ExitCode"]) != code:
        raise SandboxFailure("docker: the daemon contradicts itself about a container's end")
    if state["OOMKilled"]:  # the kernel's kill came before any of ours
        killed_by = "memory"
    ending = Ending.read(_report(place / "report"), code)
    if ending is None and killed_by is None:
        said = captures[1].text().decode("utf-8", "replace").strip()[-300:]
        raise SandboxFailure(f"a container ended with {code} and no report: {said}")
    return Seen.of(watch, killed_by, ending, 0.0)


def _report(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, 4_096) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)


class Killer:
    """Kills a container from another thread, for the daemon may wait until its output is read."""

    def __init__(self, container: str, api: Any) -> None:
        self._container = container
        self._api = api
        self._ended = threading.Event()
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
        self._ended.wait(KILL_AGAIN_SECONDS)

    def join(self) -> None:
        """End the thread, once the container is over."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()


def reap_orphans() -> int:
    """Remove containers whose maker on this machine is dead; gives their number.

    Raises SandboxFailure when the daemon fails. Those made in another process namespace stay.
    """
    removed = 0
    with _daemon_trouble(BASE_IMAGE), _connected() as api:
        for found in api.containers(all=True, filters={"label": OWNER_LABEL}):
            owner = str(found["Labels"][OWNER_LABEL])
            boot, namespace, pid, _ = (*owner.split("/"), "", "", "", "")[:4]
            here = owner_of(os.getpid()).split("/")
            elsewhere = boot == here[0] and namespace != here[1]
            if elsewhere or (pid.isdigit() and owner_of(int(pid)) == owner):
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
        with _daemon_trouble(image), _connected() as api:
            api.inspect_image(image)
    except SandboxFailure as error:
        where = os.environ.get("DOCKER_HOST", DEFAULT_HOST)
        waited = time.monotonic() - started
        raise SettingsError(
            f"no Docker daemon answers at {where} ({waited:.0f} s): {error}"
        ) from error

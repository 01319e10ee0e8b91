"""Choose a sandbox by trying it: a backend counts as working when a probe cell says so."""

from __future__ import annotations

from typing import Literal

from rsi.errors import SandboxFailure, SettingsError
from rsi.ports import Completed, Execution, Isolation, Sandbox
from rsi.prism.task import Limits
from rsi.prism.tree import Tree
from workers.sandbox import bubblewrap
from workers.sandbox.bubblewrap import BubblewrapSandbox
from workers.sandbox.interpreter import compile_packages
from workers.sandbox.process import ProcessSandbox
from workers.sandbox.scratch import sweep

SandboxName = Literal["auto", "bubblewrap", "docker", "process"]
_ORDER: tuple[Isolation, ...] = ("bubblewrap", "docker", "process")
_NO_NETWORK = """\
import socket, sys
try:
    socket.create_connection(("192.0.2.1", 9), timeout=0.5)
except OSError as error:
    sys.exit(0 if error.errno == 101 else 1)
sys.exit(1)
"""
_PROBE_LIMITS = Limits(wall_seconds=60.0, cpu_seconds=60.0)


def open_sandbox(name: Isolation) -> Sandbox:
    """Make a sandbox by name without trying it, as a worker process does after the choice.

    Raises SettingsError when what it needs is plainly missing.
    """
    if name == "bubblewrap":
        bubblewrap.check()
        return BubblewrapSandbox()
    if name == "docker":
        # imported late: docker-py costs 0.2 s that other backends need not pay
        from workers.sandbox.docker import DockerSandbox

        return DockerSandbox()
    return ProcessSandbox()


def choose_sandbox(name: SandboxName, *, trusted: bool) -> tuple[Sandbox, str]:
    """Open the named sandbox, or with `auto` the first that works, with a one-line reason.

    `trusted` says that only this product's own model and tasks will run: without it, `auto` does
    not fall back to the weak `process`. What dead runs left behind is removed on the way.
    Raises SettingsError when nothing fits.
    """
    sweep()
    if name != "auto":
        return _working(name), f"sandbox={name}: asked for"
    faults: list[str] = []
    for candidate in _ORDER:
        if candidate == "process" and not trusted:
            raise SettingsError(
                "code of a language model needs bubblewrap or docker; or say sandbox=process "
                f"to run it without isolation ({'; '.join(faults)})"
            )
        try:
            sandbox = _working(candidate)
        except SettingsError as error:
            faults.append(str(error))
            continue
        rest = f" ({'; '.join(faults)})" if faults else ""
        return sandbox, f"sandbox={candidate}: the first that works{rest}"
    raise SettingsError(f"no sandbox works: {'; '.join(faults)}")


def _working(name: Isolation) -> Sandbox:
    """Open a sandbox and probe it; raises SettingsError naming what is missing."""
    try:
        sandbox = open_sandbox(name)
        if name == "docker":
            from workers.sandbox import docker

            docker.check()
            docker.reap_orphans()
        else:
            compile_packages()
        fault = probe(sandbox)
    except SandboxFailure as error:
        fault = str(error)
    if fault is not None:
        raise SettingsError(f"sandbox={name}: {fault}")
    return sandbox


def probe(sandbox: Sandbox) -> str | None:
    """Run an accepting, a rejecting and, on strong sandboxes, a network cell; say what is wrong."""

    def run(script: str) -> Completed:
        argv = ("python3", "-c", script)
        return sandbox.run(
            Execution(program=Tree.of({"probe.txt": "probe"}), argv=argv, limits=_PROBE_LIMITS)
        )

    accepting = run("import sys, pytest; sys.exit(0 if sys.version_info >= (3, 11) else 9)")
    if accepting.exit_code == 9:
        return "python3 in the sandbox is older than 3.11"
    if accepting.exit_code != 0:
        said = accepting.stderr.decode("utf-8", "replace").strip().split("\n")[-1][:200]
        return f"python3 with pytest does not run in it: {said or accepting.killed_by}"
    if run("raise SystemExit(3)").exit_code != 3:
        return "a rejecting cell was not seen as one"
    if sandbox.isolation != "process" and run(_NO_NETWORK).exit_code != 0:
        return "a cell can reach the network"
    return None

"""Which sandbox is taken, and what is said when none fits."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rsi.errors import SandboxFailure, SettingsError
from rsi.ports import Completed, Execution, Isolation
from tests.workers.sandboxes import opened
from workers.sandbox import choose_sandbox, open_sandbox
from workers.sandbox import docker as docker_sandbox
from workers.sandbox.choice import probe
from workers.sandbox.container import OWNER_LABEL, owner_of
from workers.sandbox.docker import DockerSandbox


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine without bwrap and without a Docker daemon; its tools are open to every user."""
    tmp_path = Path(tempfile.mkdtemp(dir="/tmp"))
    tmp_path.chmod(0o755)
    for tool in ("sh", "python3"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    yield tmp_path
    shutil.rmtree(tmp_path)


def test_code_of_a_model_never_falls_back_to_plain_processes(bare: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        choose_sandbox("auto", trusted=False)
    said = str(caught.value)
    assert "needs bubblewrap or docker; or say sandbox=process" in said
    assert "bwrap is not installed" in said
    assert f"no Docker daemon answers at unix://{bare}/none.sock" in said
    assert "\n" not in said


def test_trusted_code_falls_back_and_the_reason_says_why(bare: Path) -> None:
    sandbox, reason = choose_sandbox("auto", trusted=True)
    assert sandbox.isolation == "process"
    assert reason.startswith("sandbox=process: the first that works (")
    assert "bwrap" in reason and "Docker daemon" in reason and "\n" not in reason


def test_a_named_sandbox_that_does_not_work_is_an_error_that_names_what_is_missing(
    bare: Path,
) -> None:
    with pytest.raises(SettingsError, match="bwrap is not installed"):
        choose_sandbox("bubblewrap", trusted=True)
    with pytest.raises(SettingsError, match="bwrap is not installed"):
        open_sandbox("bubblewrap")
    with pytest.raises(SettingsError, match="no Docker daemon answers"):
        choose_sandbox("docker", trusted=True)


def test_plain_processes_are_taken_when_the_user_says_so() -> None:
    sandbox, reason = choose_sandbox("process", trusted=False)
    assert (sandbox.isolation, reason) == ("process", "sandbox=process: asked for")


def test_a_bwrap_that_cannot_make_namespaces_is_refused(bare: Path) -> None:
    fake = bare / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    for tool in ("setpriv", "unshare", "mount"):
        (bare / tool).symlink_to(f"/usr/bin/{tool}")
    with pytest.raises(SettingsError, match="No permissions to create new namespace"):
        choose_sandbox("bubblewrap", trusted=True)


@pytest.mark.bubblewrap
def test_bubblewrap_comes_first() -> None:
    opened("bubblewrap")
    sandbox, reason = choose_sandbox("auto", trusted=False)
    assert (sandbox.isolation, reason) == (
        "bubblewrap",
        "sandbox=bubblewrap: the first that works",
    )


class Says:
    """A sandbox whose cells end as told, one after another."""

    def __init__(self, isolation: Isolation, *exits: int | None) -> None:
        self.isolation: Isolation = isolation
        self._exits = list(exits)

    def run(self, execution: Execution) -> Completed:
        return Completed(
            exit_code=self._exits.pop(0), stderr=b"first\nlast line\n", isolation=self.isolation
        )


@pytest.mark.parametrize(
    ("sandbox", "fault"),
    [
        (Says("docker", 0, 3, 0), None),
        (Says("process", 0, 3), None),
        (Says("docker", 9), "older than 3.11"),
        (Says("docker", 1), "does not run in it: last line"),
        (Says("docker", None), "does not run in it"),
        (Says("docker", 0, 0), "rejecting"),
        (Says("process", 0, 1), "rejecting"),
        (Says("docker", 0, 3, 1), "network"),
        (Says("bubblewrap", 0, 3, None), "network"),
    ],
)
def test_a_probe_wants_an_accepting_a_rejecting_and_a_cut_off_cell(
    sandbox: Says, fault: str | None
) -> None:
    found = probe(sandbox)
    assert (found is None) if fault is None else (found is not None and fault in found)


@pytest.mark.docker
def test_a_missing_image_says_how_to_build_it() -> None:
    opened("docker")
    with pytest.raises(SettingsError, match=r"bash \.ci/base_image\.sh"):
        DockerSandbox("rsi-none:none").run(Execution(program={}, argv=("true",)))
    with pytest.raises(SettingsError, match="rsi-none:none is missing"):
        docker_sandbox.check("rsi-none:none")


@pytest.mark.docker
def test_containers_of_dead_makers_are_removed_and_others_stay() -> None:
    opened("docker")
    client = docker_sandbox.docker.from_env()
    api = client.api
    boot, namespace, pid, started = owner_of(os.getpid()).split("/")
    owners = {
        "dead": f"{boot}/{namespace}/{2**22 + 1}/7",
        "reused": f"{boot}/{namespace}/{pid}/7",
        "earlier boot": f"x/{namespace}/{pid}/{started}",
        "unreadable": "garbage",
        "alive": f"{boot}/{namespace}/{pid}/{started}",
        "elsewhere": f"{boot}/1/{pid}/7",
    }
    made = {}
    try:
        for name, owner in owners.items():
            labels = {OWNER_LABEL: owner}
            made[name] = api.create_container("rsi-base:py311", ["true"], labels=labels)["Id"]
        assert docker_sandbox.reap_orphans() >= 4
        left = {c["Id"] for c in api.containers(all=True)}
        assert {name for name, made_id in made.items() if made_id in left} == {"alive", "elsewhere"}
    finally:
        for made_id in made.values():
            if made_id in {c["Id"] for c in api.containers(all=True)}:
                api.remove_container(made_id, force=True)
        client.close()


def test_a_daemon_that_is_gone_is_no_verdict(bare: Path) -> None:
    with pytest.raises(SandboxFailure, match="docker"):
        DockerSandbox().run(Execution(program={}, argv=("true",)))

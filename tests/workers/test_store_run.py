"""The run directory: one holder, unchanging inputs, whole files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from filelock import FileLock

import workers.store as store_module
from rsi.errors import RunConflict, SettingsError, UserError
from rsi.strategy import Strategy
from rsi.trajectory import Step, Trajectory
from workers.files import write_atomic
from workers.run_ids import new_run_id
from workers.store import RunStore, differences, load_trajectories

INPUTS: dict[str, Any] = {
    "settings": {"seed": 7, "budget": {"rollouts": 10, "usd": None}, "note": "ä: 'yes' 2026-01-01"},
    "strategy": {"maxRounds": 1},
    "splits": {"train": "ab" * 32},
}


def changed(**settings: Any) -> dict[str, Any]:
    return {**INPUTS, "settings": {**INPUTS["settings"], **settings}}


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_equal_inputs_resume_with_everything_recorded(tmp_path: Path) -> None:
    with RunStore.create_or_resume(tmp_path, "run", INPUTS) as store:
        assert not store.resumed
        assert store.folder == tmp_path / "run" and store.run_id == "run"
        store.append("candidate", "c", {"x": 1})
    assert yaml.safe_load((tmp_path / "run/settings.yaml").read_text()) == INPUTS
    with RunStore.create_or_resume(tmp_path, "run", json.loads(json.dumps(INPUTS))) as store:
        assert store.resumed
        assert store.get("candidate", "c") == {"x": 1}
        assert store.inputs == INPUTS
        assert [e.key for e in store.events("candidate")] == ["c"]
        assert store.once("candidate", "c", lambda: {"x": 2}) == {"x": 1}


def test_inputs_may_hold_tuples_and_still_resume(tmp_path: Path) -> None:
    RunStore.create_or_resume(tmp_path, "run", {"lessons": ("a", "b")}).close()
    with RunStore.create_or_resume(tmp_path, "run", {"lessons": ["a", "b"]}) as store:
        assert store.inputs == {"lessons": ["a", "b"]}


def test_changed_inputs_are_refused_with_every_difference_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    RunStore.create_or_resume(tmp_path, "run", INPUTS).close()
    before = listing(tmp_path)
    other = changed(seed=8, budget={"rollouts": 20}, extra=True)
    with pytest.raises(RunConflict) as caught:
        RunStore.create_or_resume(tmp_path, "run", other)
    text = str(caught.value)
    assert "\n" not in text
    assert "settings.seed: 7 → 8" in text
    assert "settings.budget.rollouts: 10 → 20" in text
    assert "settings.budget.usd: null → (absent)" in text
    assert "settings.extra: (absent) → true" in text
    assert "strategy" not in text.split("inputs: ")[1].split("; use")[0]
    assert listing(tmp_path) == before
    # the lease was not kept
    RunStore.create_or_resume(tmp_path, "run", INPUTS).close()


def test_many_differences_are_counted_not_all_shown(tmp_path: Path) -> None:
    RunStore.create_or_resume(tmp_path, "run", {f"k{n}": 0 for n in range(20)}).close()
    with pytest.raises(RunConflict, match="k11: 0 → 1; and 8 more; use"):
        RunStore.create_or_resume(tmp_path, "run", {f"k{n}": 1 for n in range(20)})


def test_differences_tell_types_and_list_elements_apart() -> None:
    assert list(differences({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 2]})) == []
    assert list(differences({"a": 1}, {"a": True})) == ["a: 1 → true"]
    assert list(differences({"b": [1, 2]}, {"b": [2, 1]})) == ["b: [1, 2] → [2, 1]"]
    (long,) = differences({"t": "x" * 500}, {"t": ""})
    assert len(long) < 120


def test_a_second_start_in_this_process_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    with (
        RunStore.create_or_resume(tmp_path, "run", INPUTS),
        pytest.raises(RunConflict, match=f"in use by process {os.getpid()} on "),
    ):
        RunStore.create_or_resume(tmp_path, "run", INPUTS)
    RunStore.create_or_resume(tmp_path, "run", INPUTS).close()


HOLD = """
import json, sys
from pathlib import Path
from workers.store import RunStore
store = RunStore.create_or_resume(Path(sys.argv[1]), "run", json.loads(sys.argv[2]))
print("held", flush=True)
sys.stdin.read()
"""


def test_another_process_holds_the_run_until_it_dies_however_it_dies(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), json.dumps(INPUTS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        before = listing(tmp_path)
        with pytest.raises(RunConflict, match=f"in use by process {holder.pid} on "):
            RunStore.create_or_resume(tmp_path, "run", INPUTS)
        assert listing(tmp_path) == before
        holder.kill()
    RunStore.create_or_resume(tmp_path, "run", INPUTS).close()


def test_a_folder_that_is_no_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/thesis.tex").write_text("precious")
    with pytest.raises(RunConflict, match=r"thesis\.tex but no settings\.yaml"):
        RunStore.create_or_resume(tmp_path, "run", INPUTS)
    assert listing(tmp_path) == {"run/thesis.tex": b"precious"}


def test_a_start_killed_before_its_settings_were_written_starts_afresh(tmp_path: Path) -> None:
    RunStore.create_or_resume(tmp_path, "run", INPUTS).close()
    (tmp_path / "run/settings.yaml").unlink()
    (tmp_path / "run/events.jsonl").unlink()
    (tmp_path / "run/.settings.yaml.1.aside").write_text("half")
    with RunStore.create_or_resume(tmp_path, "run", changed(seed=9)) as store:
        assert not store.resumed
    assert not (tmp_path / "run/.settings.yaml.1.aside").exists()


@pytest.mark.parametrize("run_id", ["", "..", "a/b", ".hidden", "-x", "a" * 97, "a\n", "a b"])
def test_a_run_id_that_is_no_plain_folder_name_is_refused(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(SettingsError, match="run_id="):
        RunStore.create_or_resume(tmp_path / "runs", run_id, INPUTS)
    assert not (tmp_path / "runs").exists()


def test_new_run_ids_tell_the_start_and_are_valid(tmp_path: Path) -> None:
    run_id = new_run_id(datetime(2026, 11, 30, 16, 15, 2))
    assert re.fullmatch(r"20261130-161502-[a-z]+-[a-z]+", run_id)
    RunStore.create_or_resume(tmp_path, run_id, INPUTS).close()
    assert len({new_run_id(datetime(2026, 1, 1)) for _ in range(50)}) > 10


def test_a_damaged_journal_refuses_the_run_and_frees_it(tmp_path: Path) -> None:
    RunStore.create_or_resume(tmp_path, "run", INPUTS).close()
    (tmp_path / "run/events.jsonl").write_bytes(b"junk\n")
    with pytest.raises(RunConflict, match="line 1 is damaged"):
        RunStore.create_or_resume(tmp_path, "run", INPUTS)
    (tmp_path / "run/events.jsonl").unlink()
    RunStore.create_or_resume(tmp_path, "run", INPUTS).close()


def test_inputs_written_while_the_lease_was_awaited_are_checked_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = store_module._take_lease

    def late(folder: Path) -> FileLock:
        lease = take(folder)
        (folder / "settings.yaml").write_text("seed: 1\n")
        return lease

    monkeypatch.setattr(store_module, "_take_lease", late)
    with pytest.raises(RunConflict, match="seed: 1 → 2"):
        RunStore.create_or_resume(tmp_path, "run", {"seed": 2})
    monkeypatch.undo()
    RunStore.create_or_resume(tmp_path, "run", {"seed": 1}).close()


def test_trajectories_come_back_as_they_were(tmp_path: Path) -> None:
    kept = (
        Trajectory(agent="a0", steps=(Step(said="é\n"),), stop_reason="submitted"),
        Trajectory(agent="a1", stop_reason="cap", stopped_by="input_tokens"),
    )
    with RunStore.create_or_resume(tmp_path, "run", INPUTS) as store:
        store.save_trajectories("r1", kept)
        assert store.load_trajectories("r1") == kept
        assert store.load_trajectories("r2") == ()
    assert load_trajectories(tmp_path / "run", "r1") == kept
    assert (tmp_path / "run/trajectories/r1.json.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_strategies_and_json_files_are_named_and_readable(tmp_path: Path) -> None:
    strategy = Strategy(max_rounds=2)
    with RunStore.create_or_resume(tmp_path, "run", INPUTS) as store:
        path = store.save_strategy(strategy)
        store.write_json("summary.json", {"rar": 0.5})
    assert path == tmp_path / f"run/strategies/{strategy.strategy_id}.json"
    assert Strategy.model_validate_json(path.read_text()) == strategy
    assert json.loads((tmp_path / "run/summary.json").read_text()) == {"rar": 0.5}


def test_projections_are_the_same_however_often_they_are_rebuilt(tmp_path: Path) -> None:
    with RunStore.create_or_resume(tmp_path, "run", INPUTS) as store:
        store.append("candidate", "c0", {"parentIds": [], "strategyId": "s0"})
        store.append("candidate", "c1", {"parentIds": ["c0"], "strategyId": "s1"})
        store.append("rollout", "r0", {"strategyId": "s0", "taskId": "t"})
        store.append("comparison", "g1/c1", {"candidateId": "c1", "rar": 0.5, "taskIds": ["t"]})
        store.append("decision", "g1/c1", {"candidateId": "c1", "promoted": True, "paired": {}})
        store.append("decision", "g1/c9", {"candidateId": "c9", "promoted": True})
        store.append("winner", "w", {"candidateId": "c1"})
        store.write_projections()
        first = listing(tmp_path)
        store.write_projections()
    assert listing(tmp_path) == first
    lineage = json.loads((tmp_path / "run/lineage.json").read_text())
    assert list(lineage["candidates"]) == ["c0", "c1"]
    assert lineage["candidates"]["c1"] == {
        "candidateId": "c1",
        "parentIds": ["c0"],
        "strategyId": "s1",
        "comparisons": [{"rar": 0.5}],
        "decisions": [{"promoted": True}],
    }
    assert lineage["winner"] == {"candidateId": "c1"}
    rows = json.loads((tmp_path / "run/outcomes/s0.json").read_text())
    assert rows == [{"strategyId": "s0", "taskId": "t"}]


def test_a_file_is_old_or_new_when_the_disk_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep/summary.json"
    write_atomic(path, "old")

    def refuse(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(UserError, match=re.escape(f"{path}: cannot write: No space left")):
        write_atomic(path, "new")
    assert listing(tmp_path) == {"deep/summary.json": b"old"}
    monkeypatch.undo()
    write_atomic(path, b"new")
    assert listing(tmp_path) == {"deep/summary.json": b"new"}


def test_a_file_reaches_the_disk_before_it_takes_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def told_fsync(handle: int) -> None:
        steps.append("sync")
        fsync(handle)

    def told_replace(source: Path, target: Path) -> None:
        steps.append("rename")
        replace(source, target)

    monkeypatch.setattr("os.fsync", told_fsync)
    monkeypatch.setattr("os.replace", told_replace)
    write_atomic(tmp_path / "x", "y")
    assert steps == ["sync", "rename", "sync"]

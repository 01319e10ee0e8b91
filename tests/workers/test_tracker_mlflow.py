"""MLflow shows what the journal says, as often as it is told, and is never waited for."""

from __future__ import annotations

import json
import logging
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evolution.candidate import Candidate, seed_candidate
from evolution.edits import Edit
from rsi.errors import InfrastructureError
from rsi.records import Rollout
from rsi.strategy import Strategy
from tests.workers.rollouts import request, rollout
from workers.quiet import quiet
from workers.store import RunStore
from workers.tracker import MlflowTracker, rebuild
from workers.tracking import Projection

SEED = Strategy()
CHILD = Strategy(max_rounds=2, lessons=("look twice",))
INPUTS: dict[str, Any] = {
    "play": {"seed": 7, "benchmark": {"splitDigests": {"train": "ab" * 32, "test": "cd" * 32}}},
    "note": "é",
}
SCORES = {"rar": {"value": 0.75, "interval": {"low": 0.6, "high": 0.9}}}
Runs = dict[str, Any]


def record(store: RunStore, upto: int = 99) -> None:
    """Record a small training, or its first events."""
    child = Candidate(
        candidate_id="g1-c1",
        strategy=CHILD,
        parent_ids=("seed",),
        generation=1,
        proposer="reflector",
        diagnosis="One round is too few.",
        edits=(Edit.model_validate({"field": "maxRounds", "from": 1, "to": 2, "why": "more"}),),
        lesson="Look twice.",
    )
    answered: Rollout = rollout(request(1).updated(strategy=CHILD), tokens=300)
    compared = {"candidateId": "g1-c1", "generation": 1, "repetition": "0", "rar": 0.5}
    decided = {"candidateId": "g1-c1", "generation": 1, "promoted": True, "reason": "better"}
    events: list[tuple[str, str, dict[str, Any]]] = [
        ("run_started", "run", {"inputs": store.inputs}),
        ("candidate", "seed", seed_candidate(SEED).event()),
        ("candidate", "g1-c1", child.event()),
        ("dispatched", answered.rollout_id, {"repetition": "0"}),
        ("rollout", answered.rollout_id, answered.updated(trajectories=()).to_json()),
        ("comparison", "g1/g1-c1", {**compared, "taskIds": ["t1"], "pValue": None}),
        ("decision", "g1/g1-c1", {**decided, "pValue": 0.01, "alpha": 0.02}),
        ("lesson", "g1-c1", {"regression": {"fixed": ["t1"]}}),
        ("generation", "g1", {"number": 1, "rar": 0.5, "bestId": "g1-c1", "promotedIds": ["x"]}),
        ("selection", "selection", {"finalists": [{"candidateId": "g1-c1", "rar": 0.6}]}),
        ("winner", "winner", {"candidateId": "g1-c1", "strategyId": CHILD.strategy_id}),
        (
            "release",
            "test",
            {
                "winner": {"scores": SCORES},
                "seed": {"scores": {"rar": {"value": 0.5}}},
                "gain": {"rar": {"value": 0.25, "pValue": 0.03}},
            },
        ),
        ("frozen", "d" * 64, {"digest": "d" * 64, "frozen": {"schema": 1}}),
        ("run_finished", "run", {"winnerId": "g1-c1"}),
    ]
    for kind, key, told in events[:upto]:
        store.append(kind, key, told)


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with tables and no experiment: making one takes seconds."""
    quiet()
    from mlflow import MlflowClient

    path = tmp_path_factory.mktemp("made") / "mlflow.db"
    client = MlflowClient(f"sqlite:///{path}")
    client._tracking_client.store.engine.dispose()
    return path


@pytest.fixture(autouse=True)
def database(tmp_path: Path, empty_database: Path) -> None:
    quiet()
    shutil.copy(empty_database, tmp_path / "mlflow.db")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with RunStore.create_or_resume(tmp_path, "run", INPUTS) as opened:
        yield opened


def uri_of(folder: Path) -> str:
    return f"sqlite:///{folder}/mlflow.db"


def shown(uri: str) -> Runs:
    """All runs of the experiment by candidate id, `training` for the parent; history by key."""
    from mlflow import MlflowClient

    client = MlflowClient(uri, uri)
    experiment = client.get_experiment_by_name("trial")
    assert experiment is not None
    found: Runs = {}
    for run in client.search_runs([experiment.experiment_id]):
        name = run.data.tags.get("rsi.candidate_id", "training")
        assert name not in found, "a run is written once"
        run_id = run.info.run_id
        found[name] = {
            "tags": run.data.tags,
            "params": run.data.params,
            "status": run.info.status,
            "run_id": run_id,
            "name": run.info.run_name,
            "start": run.info.start_time,
            "end": run.info.end_time,
            "artifacts": sorted(a.path for a in client.list_artifacts(run_id)),
            "uri": run.info.artifact_uri,
            "datasets": sorted(d.dataset.name for d in run.inputs.dataset_inputs),
            "metrics": {
                key: [
                    (m.value, m.step, m.timestamp) for m in client.get_metric_history(run_id, key)
                ]
                for key in run.data.metrics
            },
        }
    aliases = [{k: str(v) for k, v in m.aliases.items()} for m in client.search_registered_models()]
    found["registry"] = aliases
    for part in (client._tracking_client, client._get_registry_client()):
        part.store.engine.dispose()
    return found


def artifact(run: Any, name: str) -> str:
    return (Path(run["uri"].removeprefix("file://")) / name).read_text()


def track(store: RunStore, uri: str) -> bool:
    tracker = MlflowTracker(uri, "trial")
    tracker.start(store)
    return tracker.stop(timeout_s=60)


def test_a_training_is_a_parent_with_a_child_for_each_candidate(
    store: RunStore, tmp_path: Path
) -> None:
    tracker = MlflowTracker(uri_of(tmp_path), "trial")
    tracker.start(store)
    record(store)
    assert tracker.flush(timeout_s=60)
    assert tracker.stop(timeout_s=60)
    runs = shown(uri_of(tmp_path))
    assert set(runs) == {"training", "seed", "g1-c1", "registry"}
    parent, child, seed = runs["training"], runs["g1-c1"], runs["seed"]
    times = {(e.kind, e.key): round(e.time * 1000) for e in store.events()}

    assert parent["name"] == "run" and parent["status"] == "FINISHED"
    assert parent["start"] == times["run_started", "run"]
    assert parent["end"] == times["run_finished", "run"]
    assert parent["tags"]["rsi.kind"] == "training"
    assert parent["tags"]["rsi.winner"] == "g1-c1" and parent["tags"]["rsi.frozen"] == "d" * 64
    assert parent["params"]["play.seed"] == "7" and parent["params"]["note"] == "é"
    assert parent["datasets"] == ["test", "train"]
    at = times["generation", "g1"]
    assert parent["metrics"]["rar"] == [(0.5, 1, at)]
    assert parent["metrics"]["spent_rollouts"] == [(1, 1, at)]
    assert parent["metrics"]["spent_tokens"] == [(300, 1, at)]
    assert parent["metrics"]["promotions"] == [(1, 1, at)]
    assert "best_id" not in parent["metrics"]
    at = times["release", "test"]
    assert parent["metrics"]["test.winner.rar"] == [(0.75, 0, at)]
    assert parent["metrics"]["test.winner.rar_low"] == [(0.6, 0, at)]
    assert parent["metrics"]["test.seed.rar"] == [(0.5, 0, at)]
    assert parent["metrics"]["test.gain.rar.value"] == [(0.25, 0, at)]
    assert parent["metrics"]["test.gain.rar.p_value"] == [(0.03, 0, at)]
    assert json.loads(artifact(parent, "frozen_strategy.json")) == {"schema": 1}
    assert json.loads(artifact(parent, "lineage.json"))["winner"]["candidateId"] == "g1-c1"
    assert runs["registry"] == [{"frozen": "1"}]

    assert child["tags"]["mlflow.parentRunId"] == seed["tags"]["mlflow.parentRunId"]
    assert child["tags"]["mlflow.parentRunId"] == parent["run_id"]
    assert child["tags"]["rsi.run_key"] == parent["tags"]["rsi.run_key"]
    wanted = {
        "rsi.kind": "candidate",
        "rsi.strategy_id": CHILD.strategy_id,
        "rsi.parent_ids": "seed",
        "rsi.proposer": "reflector",
        "rsi.generation": "1",
        "rsi.decision": "promoted",
        "rsi.decision_reason": "better",
        "rsi.winner": "true",
    }
    assert child["tags"].items() >= wanted.items()
    assert seed["tags"]["rsi.decision"] == "none" and "rsi.winner" not in seed["tags"]
    assert child["status"] == seed["status"] == "FINISHED"
    assert child["start"] == times["candidate", "g1-c1"] and child["name"] == "g1/g1-c1"
    assert child["end"] == times["decision", "g1/g1-c1"]
    assert child["params"]["maxRounds"] == "2" and child["params"]["lessons"] == '["look twice"]'
    assert child["metrics"]["rar"] == [(0.5, 1, times["comparison", "g1/g1-c1"])]
    assert child["metrics"]["jsf"] == [(1.0, 1, times["comparison", "g1/g1-c1"])]
    assert child["metrics"]["decision_p_value"] == [(0.01, 1, times["decision", "g1/g1-c1"])]
    assert child["metrics"]["selection_rar"][0][0] == 0.6
    assert child["metrics"]["test.rar"][0][0] == 0.75 and seed["metrics"]["test.rar"][0][0] == 0.5
    assert child["artifacts"] == [
        "diagnosis.md",
        "diff.json",
        "outcomes.json",
        "regression.json",
        "strategy.json",
    ]
    assert Strategy.model_validate_json(artifact(child, "strategy.json")) == CHILD
    assert json.loads(artifact(child, "diff.json")) == {
        "seed": {
            "maxRounds": {"from": 1, "to": 2},
            "lessons": {"from": [], "to": ["look twice"]},
        }
    }
    diagnosis = artifact(child, "diagnosis.md")
    assert "One round is too few." in diagnosis and "- `maxRounds`: 1 → 2. more" in diagnosis
    assert "Lesson: Look twice." in diagnosis
    table = json.loads(artifact(child, "outcomes.json"))
    (row,) = [dict(zip(table["columns"], line, strict=True)) for line in table["data"]]
    assert (row["task_id"], row["repetition"], row["f"], row["s"]) == ("t1", "0", 1, 1)
    assert row["cells"] == "b:REJECT g:ACCEPT" and row["tokens"] == 300
    assert "outcomes.json" not in seed["artifacts"]


def test_writing_it_all_again_changes_nothing(store: RunStore, tmp_path: Path) -> None:
    record(store)
    uri = uri_of(tmp_path)
    assert track(store, uri)
    first = shown(uri)
    assert track(store, uri)
    rebuild(store.events(), uri, "trial", "run")
    assert shown(uri) == first


def test_a_rebuild_elsewhere_shows_the_same(store: RunStore, tmp_path: Path) -> None:
    record(store)
    assert track(store, uri_of(tmp_path))
    # where there is no database yet
    rebuild(store.events(), uri_of(tmp_path / "other"), "trial", "run")

    def comparable(runs: Runs) -> Any:
        moving = ("run_id", "uri")
        return {
            name: {
                key: {t: v for t, v in value.items() if t != "mlflow.parentRunId"}
                if key == "tags"
                else value
                for key, value in run.items()
                if key not in moving
            }
            for name, run in runs.items()
            if name != "registry"
        }

    assert comparable(shown(uri_of(tmp_path / "other"))) == comparable(shown(uri_of(tmp_path)))
    assert (tmp_path / "other/mlartifacts").is_dir()


def test_an_interrupted_training_is_killed_and_finishes_when_resumed(
    store: RunStore, tmp_path: Path
) -> None:
    record(store, upto=6)
    assert track(store, uri_of(tmp_path))
    runs = shown(uri_of(tmp_path))
    assert {runs[n]["status"] for n in ("training", "seed", "g1-c1")} == {"KILLED"}
    resumed = MlflowTracker(uri_of(tmp_path), "trial")
    resumed.start(store)
    assert resumed.flush(60)
    assert shown(uri_of(tmp_path))["training"]["status"] == "RUNNING"
    for event in ("run_finished",):
        store.append(event, "run", {})
    assert resumed.stop(60)
    runs = shown(uri_of(tmp_path))
    assert {runs[n]["status"] for n in ("training", "seed", "g1-c1")} == {"FINISHED"}


def test_two_trainings_share_an_experiment_without_mixing(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with RunStore.create_or_resume(tmp_path, name, {}) as store:
            store.append("run_started", name, {"inputs": {}})
            store.append("candidate", "seed", seed_candidate(SEED).event())
            time.sleep(0.002)
            assert track(store, uri_of(tmp_path))
    from mlflow import MlflowClient

    client = MlflowClient(uri_of(tmp_path), uri_of(tmp_path))
    experiment = client.get_experiment_by_name("trial")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    assert len(runs) == 4
    assert len({r.data.tags["rsi.run_key"] for r in runs}) == 2
    client._tracking_client.store.engine.dispose()


def test_a_dead_server_costs_one_warning_and_no_time(
    store: RunStore, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        uri = f"http://user:secret@127.0.0.1:{unused.getsockname()[1]}"
        tracker = MlflowTracker(uri, "trial")
        start = time.monotonic()
        tracker.start(store)
        record(store)
        assert time.monotonic() - start < 2, "recording does not wait"
        assert not tracker.flush(timeout_s=30)
        assert not tracker.stop(timeout_s=30)
        assert time.monotonic() - start < 20
    warnings = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "127.0.0.1" in warnings[0] and "rebuild run=run" in warnings[0]
    assert "secret" not in warnings[0] and "\n" not in warnings[0]
    assert len(store.events()) == 14


def test_a_server_that_hangs_is_left_behind_when_time_is_up(
    store: RunStore, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        tracker = MlflowTracker(f"http://127.0.0.1:{silent.getsockname()[1]}", "trial")
        tracker.start(store)
        record(store)
        start = time.monotonic()
        assert not tracker.flush(timeout_s=0.5)
        assert not tracker.stop(timeout_s=0.5)
        assert time.monotonic() - start < 4
    assert len(caplog.records) == 1 and "too slow" in caplog.text
    for thread in threading.enumerate():
        if thread.name == "mlflow":
            thread.join(60)


def test_what_a_server_missed_is_written_when_it_is_back(
    store: RunStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # a folder that is a file: the database cannot be opened until it goes away
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    uri = f"sqlite:///{blocked}/mlflow.db"
    tracker = MlflowTracker(uri, "trial")
    tracker.start(store)
    record(store)
    assert not tracker.flush(timeout_s=30)
    blocked.unlink()
    blocked.mkdir()
    shutil.copy(tmp_path / "mlflow.db", blocked)
    assert tracker.stop(timeout_s=60)
    assert shown(uri)["training"]["status"] == "FINISHED"
    assert len(caplog.records) == 1


def test_a_rebuild_that_fails_is_one_line(store: RunStore, tmp_path: Path) -> None:
    record(store)
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="does not take events") as caught:
        rebuild(store.events(), f"sqlite:///{tmp_path}/file/mlflow.db", "trial", "run")
    assert "\n" not in str(caught.value)


def test_the_thread_ends_with_the_journal(tmp_path: Path) -> None:
    with RunStore.create_or_resume(tmp_path, "run", INPUTS) as store:
        tracker = MlflowTracker(uri_of(tmp_path), "trial")
        tracker.start(store)
        record(store, upto=2)
    assert tracker._thread is not None
    tracker._thread.join(60)
    assert not tracker._thread.is_alive()
    assert shown(uri_of(tmp_path))["training"]["status"] == "KILLED"


def test_a_tracker_that_was_never_started_has_nothing_to_do(tmp_path: Path) -> None:
    tracker = MlflowTracker(uri_of(tmp_path), "trial")
    assert tracker.flush() and tracker.stop()


def test_spend_counts_failed_attempts_once(store: RunStore) -> None:
    failed = rollout(request(1), tokens=70, failure="down").updated(trajectories=()).to_json()
    good = rollout(request(2), tokens=300, usd=0.5).updated(trajectories=()).to_json()
    projection = Projection("run")
    for kind, key, told in (
        ("attempt", "r1", {"failure": "down", "charged": {"tokens": 70, "usd": 0.25}}),
        ("rollout", "r1", failed),
        ("rollout", "r2", good),
        ("generation", "g1", {"number": 4, "stopped": True, "low": {"rar": 0.5}, "names": ["x"]}),
    ):
        projection.feed(store.append(kind, key, told))
    points = {p.key: (p.value, p.step) for p in projection.sheets[""].points}
    assert points == {
        "number": (4, 4),
        "low.rar": (0.5, 4),
        "promotions": (0, 4),
        "spent_rollouts": (2, 4),
        "spent_failed_attempts": (1, 4),
        "spent_tokens": (370, 4),
        "spent_usd": (0.75, 4),
    }


def test_events_without_the_expected_keys_are_passed_over(store: RunStore) -> None:
    projection = Projection("run")
    kinds = "run_started proposal candidate dispatched attempt comparison decision lesson"
    for kind in f"{kinds} generation selection winner release frozen unheard run_finished".split():
        projection.feed(store.append(kind, "k", {}))
    assert projection.finished and set(projection.sheets) == {"", "k"}

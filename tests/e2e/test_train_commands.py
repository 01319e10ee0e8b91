"""The straight line as a user types it: train, resume after kill -9, export, evaluate, report."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from workers.journal import read_events

SMALL = (
    "+budget=smoke",
    "cluster=threads",
    "budget.wall_seconds=null",
    "evolution.generations=1",
    "evolution.children=2",
    "evolution.tasks_per_generation=3",
    "evolution.promotion_tasks=2",
    "evolution.trace_tasks=1",
    "evolution.selection_tasks=2",
    "evolution.test_tasks=2",
)


def command(module: str, *argv: str) -> list[str]:
    return [sys.executable, "-m", module, *argv]


def run(module: str, *argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        command(module, *argv), cwd=cwd, env=env, capture_output=True, text=True, timeout=250
    )


def rollouts(folder: Path) -> dict[str, dict[str, object]]:
    """What was judged, by rollout id; a rollout that was played twice would be here twice."""
    found = [e for e in read_events(folder / "events.jsonl") if e.kind == "rollout"]
    assert len({e.key for e in found}) == len(found), "a finished rollout was repeated"
    return {
        e.key: {
            "states": [
                (c["implementationId"], c["verdict"]["state"]) for c in e.data["outcome"]["cells"]
            ],
            "suite": e.data["outcome"]["suiteDigest"],
        }
        for e in found
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of one small finished run."""
    home = tmp_path_factory.mktemp("home")
    done = run("rsi.train", *SMALL, "runs_dir=kept here", "run_id=whole", cwd=home)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "jsf" in done.stdout and "next:" in done.stdout
    assert [p.name for p in home.iterdir()] == ["kept here"], "written outside runs_dir"
    return home / "kept here" / "whole"


def test_a_run_leaves_everything_that_was_promised(finished):
    names = {p.name for p in finished.iterdir()}
    assert {
        "settings.yaml",
        "events.jsonl",
        "strategies",
        "trajectories",
        "lineage.json",
        "frozen_strategy.json",
        "summary.json",
    } <= names
    frozen = json.loads((finished / "frozen_strategy.json").read_text())
    assert frozen["strategy"]["maxRounds"] >= 0 and frozen["lineage"]
    summary = json.loads((finished / "summary.json").read_text())
    assert summary["rollouts"] == len(rollouts(finished))
    assert summary["test"]["tasks"] == 2
    assert summary["winnerStrategyId"] == frozen["strategyId"]
    kinds = {e.kind for e in read_events(finished / "events.jsonl")}
    assert {"run_started", "candidate", "comparison", "decision", "generation", "winner"} <= kinds


def test_mlflow_holds_parent_and_child_runs(finished):
    import sqlite3

    with sqlite3.connect(finished.parent / "mlflow.db") as db:
        tags = db.execute("select key, value from tags").fetchall()
        names = {row[0] for row in db.execute("select key from metrics")}
    parents = [value for key, value in tags if key == "mlflow.parentRunId"]
    candidates = len([e for e in read_events(finished / "events.jsonl") if e.kind == "candidate"])
    assert len(parents) == candidates and len(set(parents)) == 1
    assert any("rar" in name for name in names)


def test_a_frozen_file_is_verified_and_an_altered_one_is_named(finished, tmp_path):
    whole = run("rsi.export", "verify", str(finished / "frozen_strategy.json"), cwd=tmp_path)
    assert whole.returncode == 0 and "whole" in whole.stdout
    document = json.loads((finished / "frozen_strategy.json").read_text())
    document["caps"]["modelCalls"] += 1
    (tmp_path / "altered.json").write_text(json.dumps(document))
    altered = run("rsi.export", "verify", "altered.json", cwd=tmp_path)
    assert altered.returncode == 1 and "caps" in altered.stdout + altered.stderr
    evaluated = run("rsi.evaluate", "strategy=altered.json", cwd=tmp_path)
    assert evaluated.returncode == 2 and "altered or damaged: caps" in evaluated.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["altered.json"]


def test_a_frozen_strategy_is_evaluated_on_a_split(finished, tmp_path):
    done = run(
        "rsi.evaluate",
        f"strategy={finished}/frozen_strategy.json",
        "split=test",
        "tasks=2",
        "cluster=threads",
        "tracking=none",
        "run_id=check",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "runs" / "check" / "summary.json").read_text())
    assert summary["rollouts"] == summary["tasks"] == 2
    assert set(summary["scores"]) >= {"rar", "jsf", "var", "irr", "h", "jsf_strict"}


def test_other_caps_are_refused_until_allowed(finished, tmp_path):
    argv = (f"strategy={finished}/frozen_strategy.json", "caps.model_calls=7")
    refused = run("rsi.evaluate", *argv, cwd=tmp_path)
    assert refused.returncode == 2 and "caps.modelCalls" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_report_tells_lineage_and_test_figures(finished, tmp_path):
    done = run("rsi.report", "run=whole", f"runs_dir={finished.parent}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "seed" in done.stdout and "winner" in done.stdout and "jsf gain" in done.stdout
    summary = json.loads((finished / "report" / "summary.json").read_text())
    assert summary["finished"] and summary["rollouts"] == len(rollouts(finished))


def test_repeating_a_finished_command_plays_nothing(finished):
    before = (finished / "events.jsonl").read_bytes()
    home = finished.parent.parent
    again = run("rsi.train", *SMALL, "runs_dir=kept here", "run_id=whole", cwd=home)
    assert again.returncode == 0, again.stderr
    assert (finished / "events.jsonl").read_bytes() == before


def test_changed_inputs_are_refused_with_the_differences(finished):
    home = finished.parent.parent
    argv = (*SMALL, "runs_dir=kept here", "run_id=whole", "seed=7", "strategy.agentSteps=9")
    refused = run("rsi.train", *argv, cwd=home)
    assert refused.returncode == 2
    assert "agentSteps: 10 → 9" in refused.stderr and "seed: 42 → 7" in refused.stderr


def killed_after(events: int, argv: list[str], folder: Path, home: Path) -> None:
    """Start the command and kill -9 its process group once the journal has some rollouts."""
    driver = subprocess.Popen(
        argv,
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    journal = folder / "events.jsonl"
    while time.monotonic() < deadline and driver.poll() is None:
        if journal.exists() and journal.read_bytes().count(b'"kind":"rollout"') >= events:
            break
        time.sleep(0.05)
    assert driver.poll() is None, "the run ended before it could be killed"
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


@pytest.mark.slow
def test_a_run_killed_twice_ends_like_the_one_that_was_not(finished, tmp_path):
    argv = command("rsi.train", *SMALL, "runs_dir=runs", "run_id=killed", "tracking=none")
    folder = tmp_path / "runs" / "killed"
    done_before: dict[str, dict[str, object]] = {}
    for events in (2, 5):
        killed_after(events, argv, folder, tmp_path)
        now = rollouts(folder)
        assert done_before.items() <= now.items()
        done_before = now
    last = run(*argv[2:], cwd=tmp_path)
    assert last.returncode == 0, last.stderr
    assert rollouts(folder) == rollouts(finished)
    winners = [json.loads((f / "summary.json").read_text())["winnerId"] for f in (folder, finished)]
    assert winners[0] == winners[1]


def busy_workers(driver: int) -> list[psutil.Process]:
    """The Ray workers of a driver that are playing a rollout."""
    found = []
    for process in psutil.Process(driver).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "".join(process.cmdline()).startswith("ray::play_rollout"):
                found.append(process)
    return found


@pytest.mark.ray
@pytest.mark.slow
def test_on_ray_a_killed_worker_costs_a_retry_and_a_killed_driver_a_restart(finished, tmp_path):
    small = [a for a in SMALL if a != "cluster=threads"]
    argv = command("rsi.train", *small, "run_id=ray", "tracking=none")
    folder = tmp_path / "runs" / "ray"
    driver = subprocess.Popen(
        argv,
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    killed = 0
    deadline = time.monotonic() + 200
    while driver.poll() is None and time.monotonic() < deadline:
        played = len(rollouts(folder)) if (folder / "events.jsonl").exists() else 0
        workers = busy_workers(driver.pid)
        if killed < 2 and played >= 2 * killed and workers:
            workers[0].kill()
            killed += 1
        if killed == 2 and played >= 6:
            break
        time.sleep(0.2)
    assert killed == 2 and driver.poll() is None
    driver.kill()
    driver.wait()
    last = run(*argv[2:], cwd=tmp_path)
    assert last.returncode == 0, last.stderr
    assert rollouts(folder) == rollouts(finished)
    attempts = [e for e in read_events(folder / "events.jsonl") if e.kind == "attempt"]
    assert any("worker lost" in e.data["failure"] for e in attempts)


def test_ctrl_c_prints_the_command_that_resumes(tmp_path):
    argv = command("rsi.train", *SMALL, "run_id=stopped", "tracking=none")
    driver = subprocess.Popen(
        argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    journal = tmp_path / "runs" / "stopped" / "events.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        journal.exists() and b'"kind":"rollout"' in journal.read_bytes()
    ):
        time.sleep(0.05)
    driver.send_signal(signal.SIGINT)
    started = time.monotonic()
    out, err = driver.communicate(timeout=60)
    assert time.monotonic() - started < 20
    assert driver.returncode == 130
    assert "Traceback" not in err
    said = next(line for line in out.splitlines() if line.startswith("resume with: "))
    assert "run_id=stopped" in said and "+budget=smoke" in said

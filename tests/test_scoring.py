"""Figures quoted to people: counts, intervals and paired differences over rollouts."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from rsi.budget import Spend
from rsi.closing import gain_line, print_closing, print_scores
from rsi.prism.outcome import Outcome
from rsi.prism.task import Task
from rsi.records import Rollout
from rsi.scoring import difference, figures, requests_for
from rsi.strategy import Strategy
from tests.builders import outcome, task


def rollout(task_id: str, judged: Outcome | None, **changes: object) -> Rollout:
    values = {
        "rollout_id": task_id,
        "strategy_id": "s",
        "task_id": task_id,
        "family": task_id,
        "source": "made",
        "scope": "full",
        "outcome": judged,
        "isolation": "process",
        "spend": Spend(rollouts=1, input_tokens=10, usd=0.5),
    }
    return Rollout.model_validate({**values, **changes})


def test_requests_are_told_apart_by_name_and_repetition():
    tasks: list[Task] = [task("a"), task("b")]
    requests = requests_for(Strategy(), tasks, "test", 2, "full")
    assert [(r.task_id, r.repetition) for r in requests] == [
        ("a", "test-1"),
        ("b", "test-1"),
        ("a", "test-2"),
        ("b", "test-2"),
    ]
    assert {r.scope for r in requests} == {"full"}
    assert len({r.rollout_id for r in requests}) == 4


def test_figures_count_what_failed_and_what_was_spent():
    found = figures(
        [
            rollout("a", outcome("a", valid="AAAA", invalid="RRRRR")),
            rollout("b", outcome("b", b="ACCEPT"), label="missed input"),
            rollout("c", None, failure="endpoint lost"),
        ]
    )
    assert found["scores"]["rar"]["value"] == 0.5
    assert (found["scores"]["rar"]["used"], found["scores"]["rar"]["total"]) == (2, 3)
    assert found["labels"] == {"missed input": 1}
    assert (found["rollouts"], found["infrastructureFailures"]) == (3, 1)
    assert (found["spend"]["inputTokens"], found["spend"]["usd"]) == (30, 1.5)
    assert found["isolation"] == ["process"]


def test_differences_are_paired_and_leave_out_what_one_side_lost():
    before = [rollout(t, outcome(t, b="ACCEPT")) for t in "abc"]
    after = [rollout("a", outcome("a")), rollout("b", outcome("b")), rollout("c", None)]
    found = difference(before, after, "rar")
    assert (found["value"], found["tasks"], found["gains"], found["losses"]) == (1.0, 2, 2, 0)
    assert difference(before, [rollout("z", outcome("z"))], "rar") == {"name": "rar", "tasks": 0}


def test_a_gain_is_told_with_interval_and_counts():
    before = [rollout(t, outcome(t, b="ACCEPT")) for t in "abcdef"]
    after = [rollout(t, outcome(t)) for t in "abcdef"]
    line = gain_line("rar", difference(before, after, "rar"))
    assert line.startswith("rar gain +100.0 points [+61.0, +100.0] on 6 paired tasks")
    assert "6 gained, 0 lost, exact p = 0.031" in line
    assert "no task" in gain_line("jsf", {"tasks": 0})


@pytest.fixture
def summary() -> dict[str, object]:
    side = figures([rollout("a", outcome("a"))])
    return {
        "runId": "r1",
        "winnerId": "g1-c1",
        "winnerStrategyId": "a",
        "seedStrategyId": "b",
        "rollouts": 3,
        "wallSeconds": 2.0,
        "rolloutsPerMinute": 90.0,
        "frozen": "runs/r1/frozen_strategy.json",
        "tracking": "sqlite:///runs/mlflow.db",
        "test": {"split": "test", "tasks": 1, "seed": side, "winner": side, "gain": {}},
    }


def printed(summary: dict[str, object], runs_dir: str) -> str:
    from pathlib import Path

    out = io.StringIO()
    print_closing(Console(file=out, width=200), summary, Path(runs_dir))
    return out.getvalue()


def test_the_closing_names_isolation_figures_and_next_commands(summary):
    text = printed(summary, "runs")
    assert "isolation: process" in text and "100.0 % [20.7, 100.0] (1/1)" in text
    assert f"{sys.executable} -m rsi.report run=r1\n" in text
    assert "-m mlflow ui --backend-store-uri sqlite:///runs/mlflow.db" in text
    assert "runs_dir=else" in printed(summary, "else")


def test_a_winner_that_is_the_seed_is_said_to_be(summary):
    assert "the winner is the seed" not in printed(summary, "runs")
    summary["seedStrategyId"] = "a"
    assert "the winner is the seed: no child was shown to be better" in printed(summary, "runs")


def test_a_run_that_was_not_tested_says_why(summary):
    summary["test"] = {"split": "test", "tasks": 0, "stoppedBy": "wall_seconds"}
    assert "not tested: the budget ended (wall_seconds)" in printed(summary, "runs")


def test_lost_rollouts_are_told_below_the_table():
    out = io.StringIO()
    side = figures([rollout("a", None, failure="x"), rollout("b", outcome("b"))])
    print_scores(Console(file=out, width=200), "test", {"winner": side})
    assert "winner: 1 rollouts without a score" in out.getvalue()

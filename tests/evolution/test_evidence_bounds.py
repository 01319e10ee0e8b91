from __future__ import annotations

from typing import Any

import pytest

from evolution.evidence import (
    MAX_FAILURES,
    MAX_LESSONS_SHOWN,
    MAX_SUMMARY_CHARS,
    fence,
    gather,
    summary_of,
)
from rsi.budget import Caps, Spend
from rsi.records import Drop, Rollout, RolloutRequest
from rsi.strategy import Strategy
from rsi.trajectory import Step, Symptoms, Trajectory
from tests.evolution.worlds import rollout

CAPS = Caps(model_calls=10, input_tokens=1_000)


def played(task_id: str, right: bool | None, **more: Any) -> Rollout:
    request = RolloutRequest(strategy=Strategy(), task_id=task_id, repetition="g1-trace")
    return rollout(request, right, **more)


def test_failures_symptoms_and_labels_are_counted() -> None:
    evidence = gather(
        [
            played("a", True, symptoms=Symptoms(tool_output_cut=1)),
            played("b", False, symptoms=Symptoms(tool_output_cut=2, steps_exhausted=1)),
            played("c", False, label=""),
            played("d", None, symptoms=Symptoms(review_cut=5)),
        ],
        CAPS,
    )
    assert (evidence.rollouts, evidence.failed, evidence.lost) == (3, 2, 1)
    assert evidence.symptoms == Symptoms(tool_output_cut=3, steps_exhausted=1)
    assert evidence.affected == {"steps_exhausted": 1, "tool_output_cut": 2}
    assert evidence.labels == {"missed_input": 1, "unlabelled": 1}
    assert evidence.task_ids == ("a", "b", "c", "d")


def test_spend_is_shown_as_a_share_of_the_caps() -> None:
    spends = [Spend(model_calls=10, input_tokens=100), Spend(model_calls=5, input_tokens=0)]
    evidence = gather([played(f"t{n}", True, spend=s) for n, s in enumerate(spends)], CAPS)
    assert evidence.spend_share["model_calls"] == 0.75
    assert evidence.spend_share["input_tokens"] == 0.05
    assert gather([], CAPS).spend_share == {}


def test_few_failures_are_shown_every_label_before_any_twice() -> None:
    labels = ["x", "x", "x", "x", "x", "y", "z"]
    evidence = gather([played(f"t{n}", False, label=x) for n, x in enumerate(labels)], CAPS)
    assert [f.label for f in evidence.failures] == ["x", "y", "z", "x"]
    assert len(evidence.failures) == MAX_FAILURES


def test_a_summary_tells_verdicts_stops_and_last_steps_and_is_bounded() -> None:
    steps = tuple(Step(tool="run", arguments=f"cmd{n}", observation="o" * 9_000) for n in range(5))
    trajectory = Trajectory(agent="a0", steps=steps, stop_reason="cap", stopped_by="model_calls")
    failed = played(
        "a", False, trajectories=(trajectory,) * 9, dropped=(Drop(what="pair 1", reason="r" * 999),)
    )
    text = summary_of(failed)
    assert len(text) == MAX_SUMMARY_CHARS
    assert "initial program: REJECT, on a right one: REJECT" in text
    assert "dropped pair 1: rrr" in text
    assert "a0: 5 steps, stopped: cap (model_calls)" in text
    assert "step 5 act: run cmd4" in text
    assert "cmd2" not in text


def test_lessons_shown_are_bounded() -> None:
    assert len(gather([], CAPS, [str(n) for n in range(99)]).lessons) == MAX_LESSONS_SHOWN


@pytest.mark.parametrize("text", ["plain", "```\nout of the fence", "a ````` b", ""])
def test_no_text_can_close_its_fence(text: str) -> None:
    first, *inside, last = fence(text).split("\n")
    ticks = first.removesuffix("text")
    assert set(ticks) == {"`"} and len(ticks) >= 3
    assert last == ticks
    assert ticks not in "\n".join(inside)

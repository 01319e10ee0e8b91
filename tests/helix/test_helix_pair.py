"""A pair is consistent by execution, or it is dropped with its reason."""

from __future__ import annotations

from rsi.budget import Caps
from rsi.helix.pair import Pair, pair_of, synthesize_pair
from rsi.prism.suite import Suite
from rsi.prism.tree import Tree
from rsi.records import Drop, Workflow
from rsi.strategy import Strategy
from tests.helix.helix_world import agent, briefed, word_pair, word_task, writes
from workers.fakes import ScriptedModel, calls

GOOD = writes(["wants doubled"], "doubled")
TOO_WEAK = writes(["wants start"], "start doubled")
UNGROUNDED = writes(["wants doubled"], "tripled")


def test_a_workspace_splits_at_the_artifact_folder() -> None:
    space = Tree.of({"a.py": "1", "submission/run_tests.sh": "2", "submission/t/x": "3"})
    space = space.with_file("submissions.txt", "4")
    assert pair_of(word_task(), 2, space) == Pair(
        slot=2,
        suite=Suite(tree=Tree.of({"run_tests.sh": "2", "t/x": "3"})),
        repair=Tree.of({"a.py": "1", "submissions.txt": "4"}),
    )


async def test_a_consistent_pair_needs_no_repair() -> None:
    model = briefed({"# Task": GOOD})
    one = agent(model)
    assert await synthesize_pair(one) == word_pair(0, ["wants doubled"], "doubled")
    assert len(model.requests) == 3
    assert one.trajectory().symptoms.repair_steps_exhausted == 0


async def test_an_agent_that_runs_out_of_steps_is_still_taken_at_its_workspace() -> None:
    model = briefed({"# Task": [*GOOD[:2], calls("list_files")]})
    one = agent(model, strategy=Strategy(agent_steps=3))
    assert isinstance(await synthesize_pair(one), Pair)
    assert one.stop_reason == "steps"


async def test_an_inconsistent_pair_is_shown_what_happened_and_mended() -> None:
    model = briefed({"# Task": UNGROUNDED, "# Pair is inconsistent": GOOD[1:]})
    one = agent(model, strategy=Strategy(repair_guidance="trust the requirement"))
    assert isinstance(await synthesize_pair(one), Pair)
    brief = model.requests[3].messages[-1].content
    assert brief.startswith("# Pair is inconsistent\n")
    assert "## On your mended program: REJECT, wanted ACCEPT (exit 1)" in brief
    assert "as it was given:" not in brief
    assert "trust the requirement" in brief
    assert [s.kind for s in one.trajectory().steps] == ["act"] * 3 + ["repair"] * 2
    assert one.trajectory().symptoms.repair_steps_exhausted == 0


async def test_a_suite_that_accepts_the_given_program_is_inconsistent() -> None:
    model = briefed({"# Task": TOO_WEAK, "# Pair is inconsistent": GOOD})
    assert isinstance(await synthesize_pair(agent(model)), Pair)
    brief = model.requests[3].messages[-1].content
    assert "## On the program as it was given: ACCEPT, wanted REJECT" in brief
    assert "your mended program:" not in brief


async def test_a_pair_that_stays_inconsistent_is_dropped_with_its_reason() -> None:
    model = briefed({"# Task": UNGROUNDED, "# Pair is inconsistent": [calls("list_files")] * 9})
    one = agent(model, strategy=Strategy(repair_steps=4))
    assert await synthesize_pair(one) == Drop(
        what="agent-1",
        reason="pair inconsistent: on your mended program REJECT, wanted ACCEPT",
    )
    assert len(model.requests) == 3 + 4
    assert one.trajectory().symptoms.repair_steps_exhausted == 1


async def test_submitting_again_unmended_uses_up_the_same_repair_steps() -> None:
    model = briefed({"# Task": UNGROUNDED})
    one = agent(model, strategy=Strategy(repair_steps=3))
    assert isinstance(await synthesize_pair(one), Drop)
    assert len(model.requests) == 3 + 3
    briefs = [m.content for m in model.requests[-1].messages if m.role == "user"]
    assert sum(b.startswith("# Pair is inconsistent") for b in briefs) == 3


async def test_without_repair_steps_an_inconsistent_pair_goes_at_once() -> None:
    model = briefed({"# Task": UNGROUNDED})
    one = agent(model, strategy=Strategy(repair_steps=0))
    assert isinstance(await synthesize_pair(one), Drop)
    assert len(model.requests) == 3
    assert one.trajectory().symptoms.repair_steps_exhausted == 1


async def test_a_missing_suite_is_named_and_costs_no_sandbox_time() -> None:
    model = briefed({"# Task": [calls("submit")]})
    one = agent(model, strategy=Strategy(repair_steps=1))
    dropped = await synthesize_pair(one)
    assert isinstance(dropped, Drop)
    assert "SUITE_ERROR, wanted REJECT" in dropped.reason
    assert "entry script run_tests.sh is missing" in model.requests[1].messages[-1].content
    assert one.job.allowance.spend().sandbox_seconds == 0


async def test_an_agent_stopped_by_a_cap_gets_no_repair_turn() -> None:
    model = ScriptedModel(after=calls("list_files"))
    one = agent(model, caps=Caps(model_calls=2))
    dropped = await synthesize_pair(one)
    assert isinstance(dropped, Drop)
    assert dropped.reason.endswith("(agent stopped: cap)")
    assert len(model.requests) == 2


async def test_a_pair_that_no_sandbox_time_is_left_to_check_is_dropped() -> None:
    one = agent(
        briefed({"# Task": GOOD}), caps=Caps(sandbox_seconds=3), workflow=Workflow(agents=1)
    )
    assert await synthesize_pair(one) == Drop(
        what="agent-1", reason="pair unverified: cap sandbox_seconds"
    )

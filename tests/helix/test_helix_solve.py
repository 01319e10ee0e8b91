"""From a task to one submission, whatever goes wrong on the way."""

from __future__ import annotations

import pytest

from rsi.budget import Caps, Spend
from rsi.errors import ModelRefused, ModelUnavailable, SandboxFailure
from rsi.helix.solve import solve
from rsi.prism.suite import Suite
from rsi.prism.tree import Tree
from rsi.records import Drop, Solution, Workflow
from rsi.strategy import Strategy
from tests.helix.helix_world import (
    WordSandbox,
    briefed,
    review,
    word_suite,
    word_task,
    writes,
)
from workers.fakes import InstantSandbox, ScriptedModel, calls

FAIR = writes(["wants doubled"], "doubled")
NEAT = writes(["wants doubled", "bans start"], "doubled neat")
STRICT = writes(["wants doubled", "wants fast"], "doubled fast")
UNGROUNDED = writes(["wants doubled"], "tripled")


async def solved(
    *models: ScriptedModel,
    caps: Caps | None = None,
    strategy: Strategy | None = None,
    sandbox: InstantSandbox | None = None,
    **workflow: object,
) -> Solution:
    return await solve(
        word_task(),
        strategy or Strategy(),
        caps or Caps(),
        models,
        sandbox or InstantSandbox(WordSandbox()),
        Workflow.model_validate({"agents": len(models), **workflow}),
        7,
    )


def three(*replies: list[object], **also: list[object]) -> list[ScriptedModel]:
    return [briefed({"# Task": items, **also}) for items in replies]  # type: ignore[dict-item]


async def test_agreeing_agents_give_one_merged_verified_suite() -> None:
    found = await solved(*three(FAIR, NEAT, FAIR))
    assert found.fallback == ""
    assert sorted(found.suite.tree.files) == [
        "run_tests.sh",
        "suite_1/run_tests.sh",
        "suite_2/run_tests.sh",
    ]
    assert found.verdicts_kk == (("ACCEPT",) * 3,) * 3
    assert found.dropped == (Drop(what="suite_3", reason="same files as suite_1"),)
    assert [(t.agent, t.stop_reason) for t in found.trajectories] == [
        ("agent-1", "submitted"),
        ("agent-2", "submitted"),
        ("agent-3", "submitted"),
    ]


async def test_spend_is_the_sum_over_all_owners() -> None:
    sandbox = InstantSandbox(WordSandbox())
    models = three(FAIR, STRICT, **{"# Review": [review("unclear")]})
    found = await solved(*models, sandbox=sandbox)
    assert found.spend.model_calls == sum(len(m.requests) for m in models) == 7
    assert found.spend.input_tokens == sum(t.spend.input_tokens for t in found.trajectories)
    assert found.spend.sandbox_seconds == pytest.approx(0.01 * len(sandbox.executions))
    assert found.spend.wall_seconds > 0
    assert found.spend.rollouts == 0
    assert found.trajectories[-1].agent == "reviewer"
    assert found.trajectories[-1].spend.model_calls == 1


async def test_models_serve_slots_in_turn() -> None:
    first, second = ScriptedModel(), ScriptedModel()
    await solved(first, second, agents=3, strategy=Strategy(repair_steps=0))
    names = [m.requests[i].messages[0].content.split(".")[0] for m, i in ((first, 0), (second, 0))]
    assert names == ["You are agent-1", "You are agent-2"]
    assert (len(first.requests), len(second.requests)) == (2, 1)


async def test_a_dropped_pair_keeps_its_reason_and_the_others_go_on() -> None:
    found = await solved(*three(UNGROUNDED, FAIR), strategy=Strategy(repair_steps=1))
    assert found.suite == word_suite("wants doubled")
    assert found.fallback == ""
    assert [d.what for d in found.dropped] == ["agent-1"]
    assert found.symptoms.repair_steps_exhausted == 1
    assert found.verdicts_kk == (("ACCEPT",),)


async def test_a_disagreement_is_mended_by_revision_before_the_merge() -> None:
    fair = [
        calls("write_file", path="submission/run_tests.sh", content="#!/bin/sh\nwants doubled\n"),
        calls("submit"),
    ]
    strict = briefed({"# Task": STRICT, "# Revise": fair})
    judge = briefed({"# Task": NEAT, "# Review": [review("suite")]})
    found = await solved(strict, judge)
    assert found.verdicts_kk == (("ACCEPT",) * 2,) * 2
    assert found.fallback == ""
    assert found.suite.tree.text("suite_1/run_tests.sh") == "#!/bin/sh\nwants doubled\n"
    assert found.dropped == ()


async def test_an_over_strict_suite_is_outvoted() -> None:
    found = await solved(*three(STRICT, FAIR, NEAT), strategy=Strategy(max_rounds=0))
    assert [(d.what, d.reason) for d in found.dropped] == [
        ("pair of agent-1", "its suite rejects 2 of 2 peers' repairs")
    ]
    assert found.verdicts_kk[0] == ("ACCEPT", "REJECT", "REJECT")
    assert "wants fast" not in "".join(found.suite.tree.text(p) for p in found.suite.tree.files)


async def test_without_cross_validation_the_largest_agreement_is_merged() -> None:
    found = await solved(*three(STRICT, FAIR), cross_validation=False)
    assert found.suite == word_suite("wants doubled")
    assert [(d.what, d.reason) for d in found.dropped] == [
        ("suite of agent-1", "peers disagree about it")
    ]


async def test_if_nothing_survives_the_best_single_pair_is_submitted() -> None:
    left = writes(["wants doubled", "wants left"], "doubled left")
    right = writes(["wants doubled", "wants right"], "doubled right")
    found = await solved(*three(left, right), strategy=Strategy(max_rounds=0))
    assert found.fallback == "best single pair"
    assert found.suite == word_suite("wants doubled", "wants left")
    assert len(found.dropped) == 2


async def test_a_suite_found_flaky_is_passed_over_for_the_single_pair() -> None:
    flaky = writes(["wants doubled", "flips"], "doubled")
    found = await solved(*three(flaky), verify_runs=5)
    assert found.fallback == "best single pair"
    assert [d.what for d in found.dropped] == ["suite_1"]


async def test_no_pair_at_all_is_an_explicit_empty_submission() -> None:
    found = await solved(*three(UNGROUNDED, UNGROUNDED), strategy=Strategy(repair_steps=0))
    assert found.suite == Suite(tree=Tree(), entry="run_tests.sh")
    assert found.suite.empty
    assert found.fallback == "empty submission"
    assert [d.what for d in found.dropped] == ["agent-1", "agent-2"]
    assert found.verdicts_kk == ()


async def test_a_cap_in_the_merge_leaves_the_single_pair_and_the_reason() -> None:
    found = await solved(*three(FAIR), caps=Caps(sandbox_seconds=11.03))
    assert found.fallback == "best single pair"
    assert found.suite == word_suite("wants doubled")
    assert found.dropped == (Drop(what="merge", reason="cap sandbox_seconds"),)


async def test_an_agent_stopped_by_a_cap_says_so_and_a_finished_pair_counts() -> None:
    found = await solved(*three([*FAIR[:2]]), caps=Caps(model_calls=2))
    assert (found.trajectories[0].stop_reason, found.trajectories[0].stopped_by) == (
        "cap",
        "model_calls",
    )
    assert found.suite == word_suite("wants doubled")


async def test_one_model_out_of_reach_leaves_the_others_working() -> None:
    found = await solved(ScriptedModel(after=ModelUnavailable("503")), *three(FAIR))
    assert [t.stop_reason for t in found.trajectories] == ["model_failure", "submitted"]
    assert found.suite == word_suite("wants doubled")


async def test_all_models_out_of_reach_show_as_such() -> None:
    found = await solved(*[ScriptedModel(after=ModelUnavailable("503"))] * 2)
    assert {t.stop_reason for t in found.trajectories} == {"model_failure"}
    assert found.suite.empty
    assert found.spend.updated(wall_seconds=0) == Spend(model_calls=2)


async def test_a_refusal_for_good_stops_the_rollout() -> None:
    with pytest.raises(ModelRefused, match="wrong key"):
        await solved(ScriptedModel(after=ModelRefused("wrong key")), *three(FAIR))


async def test_a_broken_sandbox_is_no_bad_suite() -> None:
    with pytest.raises(SandboxFailure, match="no cgroup"):
        await solved(*three(FAIR), sandbox=InstantSandbox(lambda _: SandboxFailure("no cgroup")))


async def test_the_same_seed_gives_the_same_solution() -> None:
    runs = [
        await solved(*three(STRICT, FAIR, NEAT, **{"# Review": [review("suite")] * 3}))
        for _ in range(2)
    ]
    first, second = (r.updated(spend=Spend()) for r in runs)
    assert first.suite == second.suite
    assert first.dropped == second.dropped
    assert [t.steps for t in first.trajectories] == [t.steps for t in second.trajectories]

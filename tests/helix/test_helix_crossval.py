"""Peers' suites on peers' repairs: who is at fault, who revises, who is dropped."""

from __future__ import annotations

import json

import pytest

from rsi.budget import Caps
from rsi.helix.agent import Agent
from rsi.helix.crossval import (
    Peers,
    changes,
    cross_validate,
    disagreements,
    outvoted,
    shown,
    verdict_table,
)
from rsi.helix.job import Job
from rsi.helix.pair import Pair
from rsi.helix.review import Reviewer, answer_in
from rsi.prism.tree import Tree
from rsi.records import Workflow
from rsi.strategy import Strategy
from tests.builders import verdict
from tests.helix.helix_world import briefed, job, review, word_pair, word_suite, word_task
from workers.fakes import InstantSandbox, Scripted, ScriptedModel, Tripwire, calls, says

FAIR = (["wants doubled"], "doubled")
OTHER = (["wants doubled"], "doubled neat")
STRICT = (["wants doubled", "wants fast"], "doubled fast")


def meet(
    pairs: list[tuple[list[str], str]], models: list[ScriptedModel], **changes: object
) -> tuple[Job, tuple[Agent, ...], list[Pair], Reviewer]:
    """Agents whose workspaces hold the pairs given."""
    one = job(models, **{"workflow": Workflow(agents=len(pairs)), **changes})  # type: ignore[arg-type]
    agents = tuple(Agent(one, slot) for slot in range(len(pairs)))
    made = [word_pair(slot, suite, words) for slot, (suite, words) in enumerate(pairs)]
    for agent, pair in zip(agents, made, strict=True):
        below = {f"submission/{p}": f for p, f in pair.suite.tree.files.items()}
        agent.workspace = Tree(files={**pair.repair.files, **below})
    return one, agents, made, Reviewer(one)


def table_of(*rows: str) -> list[list[object]]:
    short = {"A": verdict("ACCEPT"), "R": verdict("REJECT"), "T": verdict("TIMEOUT"), ".": None}
    return [[short[c] for c in row] for row in rows]


def rewrites(*lines: str) -> list[Scripted]:
    script = "\n".join(["#!/bin/sh", *lines, ""])
    return [calls("write_file", path="submission/run_tests.sh", content=script), calls("submit")]


async def test_peers_that_agree_cost_no_review() -> None:
    models = [ScriptedModel(), ScriptedModel()]
    peers = await cross_validate(*meet([FAIR, OTHER], models))
    assert [[v.state if v else "" for v in row] for row in peers.table] == [["ACCEPT"] * 2] * 2
    assert (peers.suites, peers.repairs, peers.dropped) == ([0, 1], [0, 1], [])
    assert models[0].requests == models[1].requests == []


async def test_a_suite_at_fault_is_revised_by_its_owner() -> None:
    owner = briefed({"# Revise": rewrites("wants doubled")})
    judge = briefed({"# Review": [review("suite")]})
    one, agents, pairs, reviewer = meet([STRICT, FAIR], [owner, judge])
    peers = await cross_validate(one, agents, pairs, reviewer)
    assert peers.pairs[0].suite == word_suite("wants doubled")
    assert (peers.suites, peers.repairs, peers.dropped) == ([0, 1], [0, 1], [])
    assert len(judge.requests) == 1
    brief = owner.requests[0].messages[-1].content
    assert brief.startswith("# Revise\n")
    for line in ("## Fault in the suite", "- Input: f(2)", "- Expected: 4", "- Sentence: doubled"):
        assert line in brief
    assert [s.kind for s in agents[0].trajectory().steps] == ["revise", "revise"]
    assert reviewer.trajectory().symptoms.rounds_exhausted == 0


async def test_a_repair_at_fault_is_revised_by_its_owner() -> None:
    other = (["wants doubled"], "doubled old")
    picky = (["wants doubled", "bans old"], "doubled")
    both = {
        "# Revise": [calls("write_file", path="solution.py", content="doubled\n")],
        "# Review": [review("repair")],
    }
    peers = await cross_validate(*meet([other, picky], [briefed(both), ScriptedModel()]))
    assert peers.pairs[0].repair.text("solution.py") == "doubled\n"
    assert peers.dropped == []


async def test_the_reviewer_is_blind() -> None:
    owner = briefed({})
    judge = briefed({"# Review": [review("unclear")]})
    given = word_task(instruction="f returns twice x.")
    await cross_validate(*meet([STRICT, FAIR], [owner, judge], about=given))
    request = judge.requests[0]
    assert request.tools == ()
    assert [m.role for m in request.messages] == ["system", "user"]
    text = request.messages[1].content
    for wanted in ("# Review\n", "f returns twice x.", "wants fast", "== solution.py\ndoubled\n"):
        assert wanted in text
    assert "## Output of the suite on the repair: REJECT" in text
    assert "agent-" not in text
    assert "agent-" not in request.messages[0].content


@pytest.mark.parametrize(("slots", "asked"), [((0, 1), 2), ((1, 2), 0), ((2, 1), 0), ((0, 2), 1)])
async def test_the_model_of_the_next_uninvolved_slot_reviews(
    slots: tuple[int, int], asked: int
) -> None:
    pairs = [FAIR, FAIR, FAIR]
    pairs[slots[0]] = (["wants doubled", "bans odd"], "doubled")
    pairs[slots[1]] = (["wants doubled"], "doubled odd")
    models = [briefed({"# Review": [review("unclear")]}) for _ in range(3)]
    await cross_validate(*meet(pairs, models))
    assert [len(m.requests) for m in models] == [int(slot == asked) for slot in range(3)]


@pytest.mark.parametrize(
    "answer",
    [
        review("unclear"),
        review("both"),
        review("repair", sentence=""),
        review("suite", input=""),
        review("repair", expected=" "),
        says("the suite is wrong"),
        says('```json\n["suite"]\n```'),
        says(""),
    ],
)
async def test_an_unsupported_finding_changes_nothing(answer: object) -> None:
    owner = ScriptedModel()
    judge = ScriptedModel([answer])  # type: ignore[list-item]
    one, agents, pairs, reviewer = meet([STRICT, FAIR], [owner, judge])
    peers = await cross_validate(one, agents, pairs, reviewer)
    assert owner.requests == []
    assert peers.pairs == pairs


async def test_a_suite_that_no_sentence_supports_may_be_faulted_without_one() -> None:
    owner = briefed({"# Revise": rewrites("wants doubled")})
    judge = briefed({"# Review": [review("suite", sentence="")]})
    peers = await cross_validate(*meet([STRICT, FAIR], [owner, judge]))
    assert peers.pairs[0].suite == word_suite("wants doubled")
    assert "- Sentence: (none says so)" in owner.requests[0].messages[-1].content


async def test_a_review_is_bounded_and_one_cut_off_is_unclear() -> None:
    cut_off = review("suite").updated(finish_reason="length")
    owner, judge = ScriptedModel(), ScriptedModel([cut_off])
    strategy = Strategy(review_max_output_tokens=64)
    one, agents, pairs, reviewer = meet([STRICT, FAIR], [owner, judge], strategy=strategy)
    await cross_validate(one, agents, pairs, reviewer)
    assert judge.requests[0].max_output_tokens == 64
    assert owner.requests == []
    assert reviewer.trajectory().symptoms.review_cut == 1
    assert reviewer.trajectory().symptoms.malformed_replies == 0


async def test_a_long_artefact_is_cut_to_the_context_and_the_requirement_is_not() -> None:
    long = (["wants doubled", "wants fast", *["# padding"] * 900], "doubled fast")
    judge = ScriptedModel([review("unclear")])
    given = word_task(instruction="Keep me. " + "r" * 900)
    one, agents, pairs, reviewer = meet(
        [long, FAIR], [ScriptedModel(), judge], strategy=Strategy(context_tokens=1_500), about=given
    )
    await cross_validate(one, agents, pairs, reviewer)
    assert judge.count_tokens(judge.requests[0]) <= 1_500
    assert "Keep me. " + "r" * 900 in judge.requests[0].messages[1].content
    assert "characters left out ...]" in judge.requests[0].messages[1].content
    assert reviewer.trajectory().symptoms.context_elided == 1


async def test_an_inconsistent_revision_leaves_the_old_pair() -> None:
    owner = briefed({"# Revise": rewrites("wants start")})
    judge = briefed({"# Review": [review("suite")]})
    one, agents, pairs, reviewer = meet([STRICT, FAIR], [owner, judge])
    before = agents[0].workspace
    peers = await cross_validate(one, agents, pairs, reviewer)
    assert peers.pairs == pairs
    assert agents[0].workspace == before


async def test_a_revision_is_bounded_by_the_repair_steps() -> None:
    owner = ScriptedModel(after=calls("list_files"))
    judge = briefed({"# Review": [review("suite")]})
    one, agents, pairs, reviewer = meet(
        [STRICT, FAIR], [owner, judge], strategy=Strategy(repair_steps=2)
    )
    await cross_validate(one, agents, pairs, reviewer)
    assert len(owner.requests) == 2
    assert agents[0].trajectory().symptoms.repair_steps_exhausted == 1


async def test_rounds_are_bounded_and_their_end_is_noticed() -> None:
    layers = [f"wants fast{n}" for n in range(5)]
    pairs = [(["wants doubled", *layers], "doubled fast0 fast1 fast2 fast3 fast4"), FAIR]
    briefs = [item for n in (4, 3, 2) for item in rewrites("wants doubled", *layers[:n])]
    for most in (1, 2, 3):
        owner = briefed({"# Revise": briefs})
        judge = briefed({"# Review": [review("suite")] * 9})
        one, agents, made, reviewer = meet(
            pairs, [owner, judge], strategy=Strategy(max_rounds=most)
        )
        await cross_validate(one, agents, made, reviewer)
        assert len(judge.requests) == most
        assert reviewer.trajectory().symptoms.rounds_exhausted == 1


async def test_no_rounds_means_verdicts_without_reviews() -> None:
    models = [ScriptedModel(), ScriptedModel()]
    one, agents, pairs, reviewer = meet([STRICT, FAIR], models, strategy=Strategy(max_rounds=0))
    peers = await cross_validate(one, agents, pairs, reviewer)
    assert models[0].requests == models[1].requests == []
    assert peers.suites == [1]
    assert reviewer.trajectory().symptoms.rounds_exhausted == 1


async def test_without_cross_validation_nothing_is_reviewed_or_dropped() -> None:
    models = [ScriptedModel(), ScriptedModel()]
    one, agents, pairs, reviewer = meet(
        [STRICT, FAIR], models, workflow=Workflow(agents=2, cross_validation=False)
    )
    peers = await cross_validate(one, agents, pairs, reviewer)
    assert (peers.suites, peers.repairs, peers.dropped) == ([0, 1], [0, 1], [])
    assert models[0].requests == models[1].requests == []
    assert reviewer.trajectory().symptoms.rounds_exhausted == 0


async def test_the_same_disagreement_is_never_reviewed_twice() -> None:
    wire = Tripwire()

    class Once(ScriptedModel):
        async def complete(self, request):  # type: ignore[no-untyped-def]
            brief = request.messages[-1].content
            if brief.startswith("# Review"):
                wire.pay(brief)
            return await super().complete(request)

    touch = [calls("write_file", path="notes.txt", content="x"), calls("submit")]
    answers = {"# Review": [review("suite")] * 9, "# Revise": touch}
    models = [Once(after=briefed(answers).after) for _ in range(3)]
    sandbox = InstantSandbox(job([]).sandbox.decide, tripwire=wire)  # type: ignore[attr-defined]
    one, agents, pairs, reviewer = meet(
        [STRICT, FAIR, OTHER], models, strategy=Strategy(max_rounds=4), sandbox=sandbox
    )
    await cross_validate(one, agents, pairs, reviewer)
    assert sum("# Review" in paid for paid in wire.paid) >= 2


async def test_a_cap_leaves_cells_unrun_and_raises_nothing() -> None:
    models = [ScriptedModel(), ScriptedModel()]
    one, agents, pairs, reviewer = meet([STRICT, FAIR], models, caps=Caps(sandbox_seconds=2))
    peers = await cross_validate(one, agents, pairs, reviewer)
    assert peers.table == [[None, None], [None, None]]
    assert peers.suites == [0, 1]


async def test_a_reviewer_at_its_cap_is_unclear_and_recorded() -> None:
    models = [ScriptedModel(), ScriptedModel()]
    one, agents, pairs, reviewer = meet([STRICT, FAIR], models, caps=Caps(input_tokens=1_000))
    one.allowance.meter.charge("others", {"input_tokens": 990})
    await cross_validate(one, agents, pairs, reviewer)
    seen = reviewer.trajectory()
    assert (seen.stop_reason, seen.stopped_by) == ("cap", "input_tokens")
    assert [s.kind for s in seen.steps] == ["review"]


async def test_verdicts_are_suite_by_repair() -> None:
    one, _, pairs, _ = meet([STRICT, FAIR], [ScriptedModel(), ScriptedModel()])
    table = await verdict_table(one, pairs)
    assert [[v.state if v else "" for v in row] for row in table] == [
        ["ACCEPT", "REJECT"],
        ["ACCEPT", "ACCEPT"],
    ]
    assert disagreements(table) == [(0, 1)]


def test_a_disagreement_is_any_cell_off_the_diagonal_that_ran_and_did_not_accept() -> None:
    assert disagreements(table_of("RA.", "TAR", "AAA")) == [(1, 0), (1, 2)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "suites", "repairs"),
    [
        (("AAA", "AAA", "AAA"), [0, 1, 2], [0, 1, 2]),
        (("ARR", "AAA", "AAA"), [1, 2], [1, 2]),  # suite 0 rejects both peers
        (("ARA", "AAA", "AAA"), [0, 1, 2], [0, 1, 2]),  # one of two is no majority
        (("ARA", "AAA", "ARA"), [0, 1, 2], [0, 2]),  # both others reject repair 1
        (("ATA", "AAA", "ATA"), [0, 1, 2], [0, 2]),
        (("ARA", "AAA", "AAA"), [0, 1, 2], [0, 1, 2]),
        (("ARAA", "AAAA", "ARAA", "AAAA"), [0, 1, 2, 3], [0, 1, 2, 3]),  # two of four are no most
        (("ARAA", "AAAA", "ARAA", "ARAA"), [0, 1, 2, 3], [0, 2, 3]),
        (("A.A", "AAA", "A.A"), [0, 1, 2], [0, 1, 2]),  # unrun cells are no votes
        (("AR", "AA"), [1], [1]),
        (("AR", "RA"), [], []),
        (("A",), [0], [0]),
        (("ARRA", "AAAA", "AAAA", "AAAA"), [1, 2, 3], [1, 2, 3]),
    ],
)
def test_the_majority_of_peers_decides(
    rows: tuple[str, ...], suites: list[int], repairs: list[int]
) -> None:
    everyone = list(range(len(rows)))
    pairs = [word_pair(slot, ["wants x"], "x") for slot in everyone]
    left = outvoted(Peers(pairs, table_of(*rows), everyone, everyone))  # type: ignore[arg-type]
    assert (left.suites, left.repairs) == (suites, repairs)
    lost = 2 * len(rows) - len(suites) - len(repairs)
    pairs_lost = len(rows) - len(suites)
    assert len(left.dropped) == lost - pairs_lost


def test_drops_name_the_owner_and_the_count() -> None:
    pairs = [word_pair(slot, ["wants x"], "x") for slot in (0, 2, 4)]
    peers = Peers(pairs, table_of("AAA", "RAR", "AAA"), [0, 1, 2], [0, 1, 2])  # type: ignore[arg-type]
    assert [(d.what, d.reason) for d in outvoted(peers).dropped] == [
        ("pair of agent-3", "its suite rejects 2 of 2 peers' repairs")
    ]


def test_artefacts_are_shown_by_file_and_repairs_by_what_they_change() -> None:
    given = Tree.of({"a.py": "1", "b.py": "2"})
    repair = Tree.of({"a.py": "1", "b.py": "3", "c.py": "4"})
    assert shown(changes(given, repair)) == "== b.py\n3\n== c.py\n4"
    assert shown(Tree()) == "(no files)"


def test_an_answer_is_the_first_object_and_is_bounded() -> None:
    body = {"at_fault": "suite", "input": [1, 2], "expected": "x" * 5_000, "sentence": None}
    found = answer_in(f"I think {{so}}:\n```json\n{json.dumps(body)}\n``` or {{}}")
    assert found is not None
    assert found["input"] == "[1, 2]"
    assert len(found["expected"]) == 600
    assert found["sentence"] == ""
    assert answer_in('{"at_fault": "repair"} tail') == {"at_fault": "repair"}
    for hostile in ("", "none", "[1]", "{" * 50_000, '{"a": ' + "[" * 50_000, "```json\n[1]\n```"):
        assert answer_in(hostile) is None

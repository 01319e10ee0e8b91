"""Inputs on which agreed repairs differ: the requirement settles them, a test remembers."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from rsi.budget import Caps
from rsi.errors import LimitReached
from rsi.helix.calls import ProgramCall
from rsi.helix.challenge import (
    Added,
    Difference,
    Outcome,
    challenge,
    differences,
    outcomes_in,
)
from rsi.helix.merge import Part
from rsi.helix.review import Reviewer
from rsi.ports import Completed, Execution, ModelReply
from rsi.prism.tree import Tree
from rsi.records import Workflow
from rsi.strategy import Strategy
from tests.builders import task
from tests.helix.helix_world import job, word_suite
from workers.fakes import InstantSandbox, ScriptedModel, says


def really(execution: Execution) -> Completed:
    """Run our own scripts on our own harmless programs, in a folder of their own."""
    with tempfile.TemporaryDirectory() as name:
        for folder, tree in (("program", execution.program), ("suite", execution.submission)):
            for path, file in (tree or Tree()).files.items():
                target = Path(name, folder, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.content)
                target.chmod(0o755)
        suite = f"{name}/suite"
        argv = (f"{suite}/{execution.argv[0]}",) if execution.entry_in_submission else ()
        done = subprocess.run(
            argv or execution.argv,
            cwd=f"{name}/program",
            env={**os.environ, "TP_SUBMISSION": suite, "TP_PROGRAM_ROOT": f"{name}/program"},
            capture_output=True,
            timeout=60,
            check=False,
        )
    return Completed(
        exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr, isolation="process"
    )


ABS = Tree.of({"solution.py": "def f(x):\n    return abs(x) * 2\n"})
PLAIN = Tree.of({"solution.py": "def f(x):\n    return x * 2\n"})
SUITE = Part("suite_1", word_suite().updated(tree=Tree.of({"test_f.py": "assert f(2) == 4\n"})))
TWO = Workflow(agents=2)


def rules(letter: str, sentence: str = "doubled") -> ModelReply:
    return says(f'```json\n{{"expected": "{letter}", "input": "", "sentence": "{sentence}"}}\n```')


async def challenged(
    model: ScriptedModel, *repairs: Tree, **changes: object
) -> tuple[Added, Reviewer, InstantSandbox]:
    sandbox = InstantSandbox(really)
    values = {"about": task(), "workflow": TWO, "sandbox": sandbox, **changes}
    one = job([model], **values)  # type: ignore[arg-type]
    reviewer = Reviewer(one)
    named = {f"repair {n}": repair for n, repair in enumerate(repairs)}
    return await challenge(one, named, [SUITE], reviewer), reviewer, sandbox


async def test_an_upheld_difference_becomes_a_test_and_drops_the_wrong_repair() -> None:
    model = ScriptedModel([rules("B")])
    added, reviewer, _ = await challenged(model, ABS, PLAIN)
    assert added.repairs == [PLAIN]
    (part,) = added.parts
    assert (part.name, part.must_reject) == ("challenge", False)
    assert part.suite.fault() is None
    (case,) = json.loads(part.suite.tree.text("cases.json"))
    value = int(case["value"])
    assert value < 0
    assert case["call"] == f"f({value // 2})"
    (dropped,) = added.dropped
    assert dropped.what == "repair 0"
    assert dropped.reason == f"f({value // 2}): {value} is required"
    assert reviewer.trajectory().symptoms.challenge_differences == 1
    assert [s.kind for s in reviewer.trajectory().steps] == ["challenge"]


async def test_the_question_shows_call_and_results_and_no_programs() -> None:
    model = ScriptedModel([rules("unclear")])
    await challenged(model, ABS, PLAIN)
    text = model.requests[0].messages[1].content
    assert text.startswith("# Challenge\n")
    assert "f returns its argument doubled." in text
    assert "A:\n\n```\n" in text
    assert "B:\n\n```\n-" in text
    assert '"expected": "A | B | unclear"' in text
    assert "abs(" not in text


@pytest.mark.parametrize(
    "reply", [rules("unclear"), rules("C"), rules("B", ""), says("B"), rules("")]
)
async def test_what_the_requirement_leaves_open_changes_nothing(reply: ModelReply) -> None:
    added, reviewer, _ = await challenged(ScriptedModel([reply]), ABS, PLAIN)
    assert added == Added(repairs=[ABS, PLAIN])
    assert reviewer.trajectory().symptoms.challenge_differences == 1


async def test_the_right_result_may_be_named_by_its_text() -> None:
    def by_text(request: object) -> ModelReply:
        text = request.messages[1].content  # type: ignore[attr-defined]
        return rules(text.split("B:\n\n```\n")[1].split("\n")[0])

    added, _, _ = await challenged(ScriptedModel([by_text]), ABS, PLAIN)
    assert added.repairs == [PLAIN]


async def test_the_added_test_tells_right_from_wrong() -> None:
    added, _, _ = await challenged(ScriptedModel([rules("B")]), ABS, PLAIN)
    one = job([ScriptedModel()], sandbox=InstantSandbox(really), about=task())
    suite = added.parts[0].suite
    assert (await one.judge("x", suite, PLAIN)).accepts
    assert (await one.judge("x", suite, ABS)).rejects_strictly


@pytest.mark.parametrize(
    "changes",
    [
        {"workflow": Workflow(agents=2, challenge=False)},
        {"strategy": Strategy(challenge_inputs=0)},
    ],
)
async def test_a_challenge_that_is_switched_off_runs_nothing(changes: dict[str, object]) -> None:
    added, _, sandbox = await challenged(ScriptedModel(), ABS, PLAIN, **changes)
    assert added == Added(repairs=[ABS, PLAIN])
    assert sandbox.executions == []


async def test_one_repair_has_nobody_to_differ_from() -> None:
    _, _, sandbox = await challenged(ScriptedModel(), ABS)
    assert sandbox.executions == []


async def test_programs_in_other_languages_are_skipped_with_a_reason() -> None:
    added, _, sandbox = await challenged(
        ScriptedModel(), ABS, PLAIN, about=task().updated(language="go")
    )
    assert sandbox.executions == []
    assert [(d.what, d.reason) for d in added.dropped] == [
        ("challenge", "programs in go cannot be called directly")
    ]


async def test_each_program_is_driven_once_with_at_most_the_strategys_inputs() -> None:
    _, _, sandbox = await challenged(
        ScriptedModel(after=rules("unclear")), ABS, PLAIN, strategy=Strategy(challenge_inputs=5)
    )
    assert [e.program for e in sandbox.executions] == [ABS, PLAIN]
    assert len(json.loads(sandbox.executions[0].submission.text("calls.json"))) == 5  # type: ignore[union-attr]


async def test_a_cap_is_raised_to_the_workflow() -> None:
    with pytest.raises(LimitReached, match="sandbox_seconds"):
        await challenged(ScriptedModel(), ABS, PLAIN, caps=Caps(sandbox_seconds=1))


async def test_a_ruling_against_all_that_still_stand_is_ignored() -> None:
    odd = Tree.of({"solution.py": "def f(x):\n    return x * 2 if x != 1 else 9\n"})
    half = Tree.of({"solution.py": "def f(x):\n    return abs(x) * 2 if x != 1 else 9\n"})
    model = ScriptedModel(after=rules("A"))
    added, _, _ = await challenged(model, odd, half, PLAIN, strategy=Strategy(challenge_inputs=40))
    assert len(added.repairs) >= 1
    for case in json.loads(added.parts[0].suite.tree.text("cases.json")):
        assert case["function"] == "f"


CALLS = [ProgramCall("m", "f", repr(((n,), {}))) for n in range(9)]


def value(text: str) -> Outcome:
    return Outcome(value=text)


def test_programs_differ_where_a_test_could_tell() -> None:
    tables = [
        {0: value("1"), 1: value("1"), 2: value("[1, 2]"), 3: Outcome(raises="E"), 4: value("1")},
        {0: value("1"), 1: value("2"), 2: value("[1,2]"), 3: Outcome(raises="E"), 4: value("1.0")},
    ]
    assert differences(CALLS, tables) == [
        Difference(CALLS[1], (value("1"), value("2")), (frozenset({0}), frozenset({1})))
    ]


def test_each_way_of_parting_is_one_difference_and_a_call_not_seen_is_none() -> None:
    tables = [
        {n: value("0") for n in range(9)},
        {n: value("1" if n < 4 else "0") for n in range(9)},
        {n: value(str(n % 2)) for n in range(8)},
    ]
    found = differences(CALLS, tables)
    assert [d.call for d in found] == [CALLS[0], CALLS[1], CALLS[5]]
    assert [len(d.outcomes) for d in found] == [2, 2, 2]


def test_an_exception_differs_from_a_value_and_by_its_name() -> None:
    assert not Outcome(raises="E").same(value("1"))
    assert not value("1").same(Outcome(raises="E"))
    assert not Outcome(raises="E").same(Outcome(raises="F"))
    assert Outcome(raises="E").same(Outcome(raises="E"))
    assert Outcome(raises="E").shown == "raises E"


def test_few_differences_are_put_to_the_reviewer() -> None:
    names = [ProgramCall("m", f"f{n}", "((), {})") for n in range(9)]
    tables = [dict.fromkeys(range(9), value("0")), dict.fromkeys(range(9), value("1"))]
    assert [d.call.function for d in differences(names, tables)] == ["f0", "f1", "f2", "f3"]


def test_only_exact_lines_are_read_from_a_program_that_lies() -> None:
    lines = [
        b'{"call": 0, "value": "[1, 2]"}',
        b'{"call": 0, "value": "9"}',
        b'{"call": true, "value": "1"}',
        b'{"call": "1", "value": "1"}',
        b'{"call": 1, "value": "__import__(\'os\')"}',
        b'{"call": 2, "value": "' + b"1" * 401 + b'"}',
        b'{"call": 3, "raises": "Key Error"}',
        b'{"call": 4, "raises": "KeyError"}',
        b'{"call": 5, "opaque": "object"}',
        b"[" * 9_999,
        b"\xff noise",
        b"[1]",
        b'{"call": 6, "value": 7}',
    ]
    assert outcomes_in(b"\n".join(lines)) == {0: value("[1, 2]"), 4: Outcome(raises="KeyError")}

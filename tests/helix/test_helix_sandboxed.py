"""The whole workflow on a real program in a real sandbox, with scripted agents."""

from __future__ import annotations

from rsi.budget import Caps
from rsi.helix.solve import solve
from rsi.prism.cell import run_cell
from rsi.prism.tree import Tree
from rsi.records import Drop, Workflow
from rsi.strategy import Strategy
from tests.builders import task
from tests.helix.helix_world import briefed
from tests.helix.test_helix_challenge import rules
from workers.fakes import ScriptedModel, calls
from workers.sandbox.process import ProcessSandbox

ENTRY = '#!/bin/sh\nexec python3 "$TP_SUBMISSION/t.py"\n'
TEST = """\
import os, sys
sys.path.insert(0, os.environ["TP_PROGRAM_ROOT"])
from solution import f
assert f(2) == 4
"""
LOOK = 'cd "$TP_PROGRAM_ROOT" && ls && sh "$TP_SUBMISSION/run_tests.sh"; echo rc=$?; touch made.txt'


def agent_with(body: str) -> ScriptedModel:
    work = [
        calls("write_file", path="submission/run_tests.sh", content=ENTRY),
        calls("write_file", path="submission/t.py", content=TEST),
        calls("run", command=LOOK),
        calls("write_file", path="solution.py", content=f"def f(x):\n    return {body}\n"),
        calls("run", command="submission/run_tests.sh && echo passed"),
        calls("submit"),
    ]
    return briefed({"# Task": work, "# Challenge": [rules("B")]})


async def test_scripted_agents_end_in_a_merged_suite_that_remembers_the_challenge() -> None:
    sandbox = ProcessSandbox()
    given = task()
    found = await solve(
        given,
        Strategy(),
        Caps(),
        [agent_with("abs(x) * 2"), agent_with("x * 2")],
        sandbox,
        Workflow(agents=2),
        1,
    )
    before, after = (found.trajectories[0].steps[n].observation for n in (2, 4))
    assert before.startswith("exit status 0\nstdout:\nsolution.py\nsubmission\nrc=1\nstderr:")
    assert after == "exit status 0\nstdout:\npassed"
    assert found.fallback == ""
    assert found.verdicts_kk == (("ACCEPT", "ACCEPT"), ("ACCEPT", "ACCEPT"))
    assert found.dropped[0].what == "repair of agent-1"
    assert found.dropped[1] == Drop(what="suite_2", reason="same files as suite_1")
    assert found.spend.sandbox_seconds > 0

    def verdict(body: str) -> str:
        program = Tree.of({"solution.py": f"def f(x):\n    return {body}\n"})
        return str(run_cell(sandbox, found.suite, program, given.limits).state)

    assert verdict("x + x") == "ACCEPT"
    assert verdict("abs(x) * 2") == "REJECT"
    assert verdict("x") == "REJECT"
    assert str(run_cell(sandbox, found.suite, given.program, given.limits).state) == "REJECT"

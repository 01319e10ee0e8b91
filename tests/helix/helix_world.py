"""A tiny world for TestHelix: programs are sets of words, suites want words, nothing is run.

A suite's script has lines `wants WORD` (the program must hold it), `bans WORD`, `flips` (its
verdict changes from run to run) and `run FOLDER ENTRY` (as in a merged suite).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from rsi.budget import Caps
from rsi.helix.agent import Agent
from rsi.helix.allowance import Allowance
from rsi.helix.job import Job
from rsi.helix.pair import Pair
from rsi.ports import Completed, Execution, LanguageModel, ModelReply, ModelRequest, Sandbox
from rsi.prism.suite import Suite
from rsi.prism.task import Task
from rsi.prism.tree import Tree
from rsi.records import Workflow
from rsi.strategy import Strategy
from tests.builders import task
from workers.fakes import InstantSandbox, Scripted, ScriptedModel, calls, says

PLAIN = Strategy()


def word_task(**changes: object) -> Task:
    """A task whose given program holds the word `start`."""
    return task().updated(**{"program": Tree.of({"solution.py": "start\n"}), **changes})


class WordSandbox:
    """Decides cells by words; a command `cmd` that ends in `!N` exits with N."""

    def __init__(self) -> None:
        self.flips = 0

    def __call__(self, execution: Execution) -> int | Completed:
        if execution.submission is None:
            last = execution.argv[-1]
            return int(last.rpartition("!")[2]) if "!" in last else 0
        return self.judge(execution.submission, execution.argv[0], execution.program)

    def judge(self, suite: Tree, entry: str, program: Tree) -> int:
        words = program.text("solution.py").split()
        for line in suite.text(entry).splitlines():
            verb, _, rest = line.partition(" ")
            self.flips += verb == "flips"
            folder, _, inner = rest.partition(" ")
            if (
                (verb == "wants" and rest not in words)
                or (verb == "bans" and rest in words)
                or (verb == "flips" and self.flips % 2 == 0)
                or (verb == "run" and self.judge(suite.under(folder), inner, program))
            ):
                return 1
        return 0


def word_suite(*lines: str) -> Suite:
    """A suite of script lines in the language above."""
    script = "\n".join(["#!/bin/sh", *lines, ""])
    return Suite(tree=Tree.of({"run_tests.sh": script}, executable=["run_tests.sh"]))


def word_pair(slot: int, suite: Sequence[str], words: str) -> Pair:
    """A pair of a word suite and a repair that holds some words."""
    return Pair(slot, word_suite(*suite), Tree.of({"solution.py": words + "\n"}))


def writes(suite: Sequence[str], words: str) -> list[Scripted]:
    """The replies of an agent that writes a suite and a repair and submits."""
    script = "\n".join(["#!/bin/sh", *suite, ""])
    return [
        calls("write_file", path="submission/run_tests.sh", content=script),
        calls("write_file", path="solution.py", content=words + "\n"),
        calls("submit"),
    ]


def review(at_fault: str, **fields: str) -> ModelReply:
    """A reviewer's reply with a counterexample."""
    answer = {"at_fault": at_fault, "input": "f(2)", "expected": "4", "sentence": "doubled"}
    return says(f"```json\n{json.dumps({**answer, **fields})}\n```")


def by_brief(replies: dict[str, Sequence[Scripted]]) -> Callable[[ModelRequest], ModelReply]:
    """Answer by the first line of the last brief, each brief with its own list of replies."""
    left = {brief: iter(items) for brief, items in replies.items()}

    def answer(request: ModelRequest) -> ModelReply:
        briefs = [m.content.split("\n")[0] for m in request.messages if m.role == "user"]
        known = [brief for brief in briefs if brief.startswith("# ")]
        scripted = next(left.get(known[-1], iter(())), calls("submit"))
        assert isinstance(scripted, ModelReply)
        return scripted

    return answer


def briefed(replies: dict[str, Sequence[Scripted]], **changes: object) -> ScriptedModel:
    """A model that answers by brief."""
    return ScriptedModel(after=by_brief(replies), **changes)  # type: ignore[arg-type]


def job(
    models: Sequence[LanguageModel],
    *,
    strategy: Strategy = PLAIN,
    caps: Caps | None = None,
    workflow: Workflow | None = None,
    sandbox: Sandbox | None = None,
    about: Task | None = None,
) -> Job:
    """A job in the word world."""
    return Job(
        task=about or word_task(),
        strategy=strategy,
        workflow=workflow or Workflow(agents=max(len(models), 1)),
        models=models,
        sandbox=sandbox or InstantSandbox(WordSandbox()),
        allowance=Allowance(caps or Caps()),
        seed=7,
    )


def agent(model: LanguageModel, **changes: object) -> Agent:
    """One agent in slot 0 of a job of its own."""
    return Agent(job([model], **changes), 0)  # type: ignore[arg-type]

"""Differential challenge: inputs on which agreed repairs differ, settled by the requirement."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from rsi.digest import seed_of
from rsi.helix.calls import ProgramCall, calls_to_try, documents, public_functions
from rsi.helix.job import Job, together
from rsi.helix.merge import Part
from rsi.helix.review import Reviewer
from rsi.helix.wording import clean, render
from rsi.ports import Execution
from rsi.prism.suite import Suite
from rsi.prism.tree import Tree
from rsi.records import Drop

OWNER = "challenge"
MAX_DIFFERENCES = 4
_LETTERS = "ABCDEFGHI"
_MAX_RESULT_CHARS = 400
_DRIVE = 'exec python3 "$TP_SUBMISSION/drive.py" "$TP_SUBMISSION/calls.json"'
_ENTRY = '#!/bin/sh\nexec python3 "$TP_SUBMISSION/check.py"\n'


@dataclass(frozen=True)
class Outcome:
    """What one call did: a literal value, or the name of the exception it raised."""

    value: str | None = None
    raises: str | None = None

    @property
    def shown(self) -> str:
        return f"raises {self.raises}" if self.value is None else self.value

    def same(self, other: Outcome) -> bool:
        """Equal as a test could tell: literals by value, exceptions by name."""
        if self.value is None or other.value is None:
            return self == other
        return bool(ast.literal_eval(self.value) == ast.literal_eval(other.value))


@dataclass(frozen=True)
class Difference:
    """A call and its distinct outcomes; `groups[n]` are the repairs that gave `outcomes[n]`."""

    call: ProgramCall
    outcomes: tuple[Outcome, ...]
    groups: tuple[frozenset[int], ...]


@dataclass
class Added:
    """Tests that upheld challenges add, the repairs that still stand, and the dropped."""

    parts: list[Part] = field(default_factory=list)
    repairs: list[Tree] = field(default_factory=list)
    dropped: list[Drop] = field(default_factory=list)


async def challenge(
    job: Job, named: dict[str, Tree], parts: Sequence[Part], reviewer: Reviewer
) -> Added:
    """Try inputs on the repairs that all suites accept; each difference goes to the reviewer.

    `named` holds the repairs by the names under which they are dropped.
    An upheld one becomes a test and drops the repairs that it contradicts. Raises LimitReached
    and SandboxFailure.
    """
    names, repairs = list(named), list(named.values())
    added = Added(repairs=repairs)
    if not (job.workflow.challenge and job.strategy.challenge_inputs and len(repairs) > 1):
        return added
    if job.task.language != "python":
        reason = f"programs in {job.task.language} cannot be called directly"
        added.dropped.append(Drop(what="challenge", reason=reason))
        return added
    calls = _calls(job, repairs, parts)
    tables = await together(_drive(job, repair, calls) for repair in repairs) if calls else []
    standing = frozenset(range(len(repairs)))
    cases: list[dict[str, str]] = []
    found = differences(calls, tables)
    reviewer.count("challenge_differences", len(found))
    for difference in found:
        chosen = await _settled(job, difference, reviewer)
        if chosen is None or not standing & difference.groups[chosen]:
            continue
        cases.append(_case(difference.call, difference.outcomes[chosen]))
        for k in sorted(standing - difference.groups[chosen]):
            reason = f"{difference.call.shown}: {difference.outcomes[chosen].shown} is required"
            added.dropped.append(Drop(what=names[k], reason=reason[:300]))
        standing &= difference.groups[chosen]
    added.repairs = [repairs[k] for k in sorted(standing)]
    if cases:
        added.parts.append(Part("challenge", _suite(cases, job.task.entry), must_reject=False))
    return added


def differences(
    calls: Sequence[ProgramCall], tables: Sequence[dict[int, Outcome]]
) -> list[Difference]:
    """Calls on which the programs differ: one for each way in which they part, a few in all."""
    found: dict[tuple[str, frozenset[frozenset[int]]], Difference] = {}
    for index, call in enumerate(calls):
        if not all(index in table for table in tables):
            continue
        outcomes: list[Outcome] = []
        groups: list[set[int]] = []
        for k, table in enumerate(tables):
            place = next((n for n, o in enumerate(outcomes) if o.same(table[index])), None)
            if place is None:
                outcomes.append(table[index])
                groups.append({k})
            else:
                groups[place].add(k)
        if len(outcomes) > 1:
            sets = tuple(frozenset(group) for group in groups)
            key = (call.function, frozenset(sets))
            found.setdefault(key, Difference(call, tuple(outcomes), sets))
    return list(found.values())[:MAX_DIFFERENCES]


def outcomes_in(output: bytes) -> dict[int, Outcome]:
    """Read the driver's lines; whatever is not exactly one is skipped, since programs may lie."""
    found: dict[int, Outcome] = {}
    for line in clean(output).splitlines():
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(given, dict) or type(given.get("call")) is not int:
            continue
        value, raises = given.get("value"), given.get("raises")
        if isinstance(value, str) and _literal(value):
            found.setdefault(given["call"], Outcome(value=value))
        elif isinstance(raises, str) and raises.isidentifier() and len(raises) <= 80:
            found.setdefault(given["call"], Outcome(raises=raises))
    return found


def _calls(job: Job, repairs: Sequence[Tree], parts: Sequence[Part]) -> list[ProgramCall]:
    return calls_to_try(
        public_functions(repairs),
        [part.suite.tree for part in parts],
        [job.task.instruction, *documents(job.task.program)],
        job.strategy.challenge_inputs,
        seed_of(job.seed, OWNER),
    )


async def _drive(job: Job, program: Tree, calls: Sequence[ProgramCall]) -> dict[int, Outcome]:
    listed = [{"module": c.module, "function": c.function, "arguments": c.arguments} for c in calls]
    execution = Execution(
        program=program,
        submission=Tree.of({"drive.py": _script("drive.py"), "calls.json": json.dumps(listed)}),
        argv=("sh", "-c", _DRIVE),
        limits=job.task.limits,
    )
    return outcomes_in((await job.run(OWNER, execution)).stdout)


async def _settled(job: Job, difference: Difference, reviewer: Reviewer) -> int | None:
    """Index of the outcome that the requirement demands; None when it leaves it open."""
    results = [
        {"letter": letter, "text": outcome.shown}
        for letter, outcome in zip(_LETTERS, difference.outcomes, strict=False)
    ]

    def prompt(_most: int) -> str:
        return render(
            "challenge",
            instruction=job.task.instruction,
            call=difference.call.shown,
            results=results,
        )

    answer = await reviewer.ask("challenge", min(difference.groups[0]), prompt)
    if answer is None or not answer.get("sentence"):
        return None
    wanted = answer.get("expected", "")
    for place, result in enumerate(results):
        if wanted in (result["letter"], result["text"]):
            return place
    return None


def _case(call: ProgramCall, outcome: Outcome) -> dict[str, str]:
    wanted = {"value": outcome.value} if outcome.value is not None else {"raises": outcome.raises}
    return {
        "module": call.module,
        "function": call.function,
        "arguments": call.arguments,
        "call": call.shown,
        **{key: str(text) for key, text in wanted.items()},
    }


def _suite(cases: list[dict[str, str]], entry: str) -> Suite:
    texts = {
        entry: _ENTRY,
        "check.py": _script("check.py"),
        "cases.json": json.dumps(cases, indent=1),
    }
    return Suite(tree=Tree.of(texts, executable=[entry]), entry=entry)


def _script(name: str) -> str:
    return (files("rsi.helix") / "sandboxed" / name).read_text(encoding="utf-8")


def _literal(text: str) -> bool:
    if len(text) > _MAX_RESULT_CHARS:
        return False
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
        return False
    return True

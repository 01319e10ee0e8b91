"""Turn families into tasks with panels, and derive the evidence that their labels rest on.

`python -m rsi.prism.corpus.engine` runs every program on every check and writes the evidence.
"""

from __future__ import annotations

import inspect
import platform
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rsi.digest import digest_of, seed_of
from rsi.errors import BenchmarkError
from rsi.prism.corpus import verifier_prelude
from rsi.prism.corpus.candidates import (
    Candidate,
    Origin,
    examine,
    mutation_check,
    valid_programs,
    value_check,
    wrong_programs,
)
from rsi.prism.corpus.examples import (
    ExampleChooser,
    Exposure,
    Shown,
    block,
    document,
    example,
    style_for,
)
from rsi.prism.corpus.family import Facets, Family
from rsi.prism.corpus.labels import REBUILD, write_labels
from rsi.prism.corpus.running import Arguments, Result, call, program
from rsi.prism.corpus.selection import Chosen, PanelChooser, common_checks
from rsi.prism.corpus.siblings import SEED, Calls, combinations
from rsi.prism.outcome import Kind
from rsi.prism.panel import Check, Implementation, Panel
from rsi.prism.task import Task
from rsi.prism.tree import Tree

SIBLINGS = 12
RUNS = 3
PLACEMENTS = {"none": 0.12, "middle": 0.43, "open": 0.45}
UNCHANGED = "The function leaves its arguments unchanged."


@dataclass(frozen=True)
class Sibling:
    """One facet combination of a family with the reference's results on the pool of calls."""

    family: Family
    position: int
    number: int
    facets: Facets
    calls: Calls
    want: tuple[Result, ...]

    @property
    def task_id(self) -> str:
        return f"kata-{self.family.name}-{self.number:02}"

    @property
    def entry_point(self) -> str:
        return self.family.entry_point(self.facets)

    def checks(self) -> tuple[Check, ...]:
        """One check a checked call, then checks that arguments stay as they were."""
        name = self.entry_point
        checks = []
        for i, arguments in enumerate(self.calls.checked):
            checks.append(
                Check(check_id=value_check(i), code=_check(name, arguments, self.want[i]))
            )
        for i in self.calls.mutations:
            given = repr(self.calls.checked[i])
            code = (
                f"_given = {given}\ntry:\n    {name}(*_given)\nexcept Exception:\n    pass\n"
                f"assert _eq(_given, {given})"
            )
            checks.append(Check(check_id=mutation_check(i), code=code))
        return tuple(checks)

    def lines(self) -> tuple[str, list[str]]:
        """The style, and every call of the pool written as an example in it."""
        pairs = list(zip(self.calls.pool, self.want, strict=True))
        plain = [repr((arguments, result.value)) for arguments, result in pairs]
        style = style_for(self.position, plain)
        return style, [example(style, self.entry_point, *pair) for pair in pairs]

    def texts(self, shown: Shown) -> tuple[str, str]:
        """The instruction and docs/examples.md with the examples that are shown."""
        style, lines = self.lines()
        name = self.entry_point
        contract = [self.family.instruction(self.facets).strip()]
        if self.calls.mutations:
            contract.append(UNCHANGED)
        contract.append(f"The module is `solution.py`; the function is `{name}`.")
        contract.append("Examples (more are in `docs/examples.md`):")
        contract.append(block(style, name, [lines[i] for i in shown.instruction]))
        return "\n\n".join(contract) + "\n", document(
            style, name, [lines[i] for i in shown.document]
        )


def _check(name: str, arguments: Arguments, want: Result) -> str:
    given = ", ".join(map(repr, arguments))
    if want.error:
        return f"assert _raises({want.error}, {', '.join([name, given]).rstrip(', ')})"
    return f"assert _eq({name}({given}), {want.value!r})"


def prelude(entry_point: str) -> str:
    """The text that makes a check's names known: comparisons and the function under test."""
    text = inspect.getsource(verifier_prelude).replace("from __future__ import annotations\n\n", "")
    return f"{text}\n\nfrom solution import {entry_point}\n"


def label_family(family: Family, position: int) -> list[dict[str, Any]]:
    """Choose, run and label all siblings of a family.

    Raises BenchmarkError when valid programs disagree or a run does not repeat.
    """
    calls = Calls(family)
    chosen = combinations(family, SIBLINGS)
    good = [valid_programs(family, facets, calls) for facets in chosen]
    labels = []
    for number, (facets, programs) in enumerate(zip(chosen, good, strict=True), 1):
        sibling = Sibling(family, position, number, facets, calls, programs[0].results)
        common = {
            str(j): common_checks(programs[0], other[0], calls)
            for j, other in enumerate(good, 1)
            if j != number
        }
        wrong = wrong_programs(family, facets, calls, sibling.want)
        panel = PanelChooser(calls, common, sibling.task_id).choose(programs, wrong)
        if panel is None:
            raise BenchmarkError(f"{sibling.task_id}: too few different wrong programs ({facets})")
        labels.append(_label(sibling, panel, wrong))
    return labels


def _label(sibling: Sibling, chosen: Chosen, wrong: Sequence[Candidate]) -> dict[str, Any]:
    rng = random.Random(seed_of(SEED, sibling.task_id, "examples"))
    exposure = Exposure(
        checked=len(sibling.calls.checked),
        initial=chosen.initial.failed,
        invalid=tuple(c.failed for c in chosen.invalid),
        deciding=tuple(c.failed for c in wrong if c.origin.base == "algorithm"),
    )
    placement = rng.choices(list(PLACEMENTS), list(PLACEMENTS.values()))[0]
    shown = ExampleChooser(sibling.lines()[1], exposure, rng).choose(placement)
    members = {"b": chosen.initial, "g": chosen.reference}
    members |= {f"v{i}": c for i, c in enumerate(chosen.valid, 1)}
    members |= {f"i{i}": c for i, c in enumerate(chosen.invalid, 1)}
    _, examples = sibling.texts(shown)
    return {
        "task_id": sibling.task_id,
        "facets": dict(sibling.facets),
        "checks_digest": _checks_digest(sibling.checks()),
        "instruction_examples": list(shown.instruction),
        "document_examples": list(shown.document),
        "implementations": [
            {
                "implementation_id": member_id,
                "origin": member.origin.to_json(),
                "program_digest": _tree(member.source, examples).digest,
                "failed_checks": _repeated(sibling, member),
            }
            for member_id, member in members.items()
        ],
    }


def _repeated(sibling: Sibling, member: Candidate) -> list[str]:
    failed = member.failed_checks(sibling.calls)
    for _ in range(RUNS - 1):
        again = examine(sibling.family, sibling.facets, member.origin, sibling.calls, sibling.want)
        if again is None or again.behaviour != member.behaviour:
            raise BenchmarkError(f"{sibling.task_id}: {member.origin} does not repeat its results")
    return sorted(failed)


def _tree(source: str, examples: str) -> Tree:
    return Tree.of({"solution.py": source, "docs/examples.md": examples})


def _checks_digest(checks: Sequence[Check]) -> str:
    return digest_of([[check.check_id, check.code] for check in checks])


def build_labels(families: Sequence[Family]) -> dict[str, Any]:
    """Derive the evidence of all families by running every program RUNS times on every check."""
    tasks = [label for i, family in enumerate(families) for label in label_family(family, i)]
    return {"format": 1, "python": platform.python_version(), "runs": RUNS, "tasks": tasks}


def assemble(family: Family, position: int, labels: Sequence[Any]) -> list[tuple[Task, Panel]]:
    """Build a family's tasks and panels from its generator and the evidence, in label order.

    Only references are run. Raises BenchmarkError when a digest does not fit the evidence.
    """
    calls = Calls(family)
    pairs = []
    for label in labels:
        facets = label["facets"]
        function = program(family.algorithms[0](facets), family.entry_point(facets))
        want = tuple(call(function, arguments) for arguments in calls.pool)
        number = int(label["task_id"].rpartition("-")[2])
        pairs.append(_assembled(Sibling(family, position, number, facets, calls, want), label))
    return pairs


def _assembled(sibling: Sibling, label: Any) -> tuple[Task, Panel]:
    shown = Shown(tuple(label["instruction_examples"]), tuple(label["document_examples"]))
    instruction, examples = sibling.texts(shown)
    checks = sibling.checks()
    if _checks_digest(checks) != label["checks_digest"]:
        raise BenchmarkError(f"{sibling.task_id}: checks do not fit the evidence; {REBUILD}")
    members = tuple(_member(sibling, entry, examples) for entry in label["implementations"])
    task = Task(
        task_id=sibling.task_id,
        source="kata",
        family=sibling.family.name,
        split=sibling.family.split,
        instruction=instruction,
        program=next(m.program for m in members if m.kind == "initial"),
    )
    panel = Panel(
        task_id=sibling.task_id,
        implementations=members,
        prelude=prelude(sibling.entry_point),
        checks=checks,
    )
    return task, panel


_KINDS: dict[str, Kind] = {"b": "initial", "g": "reference", "v": "valid", "i": "invalid"}


def _member(sibling: Sibling, entry: Any, examples: str) -> Implementation:
    origin = Origin.from_json(entry["origin"])
    tree = _tree(origin.source(sibling.family, sibling.facets), examples)
    member_id = entry["implementation_id"]
    if tree.digest != entry["program_digest"]:
        raise BenchmarkError(
            f"{sibling.task_id}: program {member_id} does not fit the evidence; {REBUILD}"
        )
    return Implementation(
        implementation_id=member_id,
        kind=_KINDS[member_id[0]],
        program=tree,
        failed_checks=tuple(entry["failed_checks"]),
        origin=str(origin),
    )


if __name__ == "__main__":
    from rsi.prism.corpus import load_families

    evidence = build_labels(load_families())
    sys.stdout.write(f"{len(evidence['tasks'])} tasks labelled in {write_labels(evidence).name}\n")

"""Turn families into tasks with panels, and derive the evidence that their labels rest on.

`python -m rsi.prism.corpus.engine` runs every program on every check and writes the evidence.
"""

from __future__ import annotations

import platform
import random
import sys
from collections.abc import Sequence
from itertools import combinations as combinations_of
from typing import Any

from rsi.digest import digest_of, seed_of
from rsi.errors import BenchmarkError
from rsi.prism.corpus.candidates import (
    Candidate,
    Origin,
    examine,
    valid_programs,
    wrong_programs,
)
from rsi.prism.corpus.examples import ExampleChooser, Exposure, Shown
from rsi.prism.corpus.family import Family
from rsi.prism.corpus.labels import REBUILD, write_labels
from rsi.prism.corpus.running import call, program
from rsi.prism.corpus.selection import Chosen, PanelChooser, common_checks, confusable
from rsi.prism.corpus.siblings import SEED, Calls, Sibling, combinations, prelude
from rsi.prism.outcome import Kind
from rsi.prism.panel import Check, Implementation, Panel
from rsi.prism.task import Task
from rsi.prism.tree import Tree

SIBLINGS = 12
SPARE = 3
FEWEST = 11
RUNS = 3
PLACEMENTS = {"none": 0.12, "middle": 0.43, "open": 0.45}


def label_family(family: Family, position: int) -> list[dict[str, Any]]:
    """Choose, run and label the siblings of a family.

    A sibling on which a suite for another could be right gives way to a spare combination.
    Raises BenchmarkError when valid programs disagree, a run does not repeat, or too few are left.
    """
    calls = Calls(family)
    offers = list(combinations(family, SIBLINGS + SPARE))
    known: dict[str, tuple[Candidate, ...]] = {}
    while len(offers) >= FEWEST:
        chosen = offers[:SIBLINGS]
        for facets in chosen:
            if str(facets) not in known:
                known[str(facets)] = valid_programs(family, facets, calls)
        good = [known[str(facets)] for facets in chosen]
        siblings = [
            Sibling(family, position, number, facets, calls, programs[0].results)
            for number, (facets, programs) in enumerate(zip(chosen, good, strict=True), 1)
        ]
        panels = _panels(siblings, good)
        unfit = _confused(siblings, panels)
        if unfit is None:
            return [_label(*pair) for pair in zip(siblings, panels, strict=True)]
        offers.pop(unfit)
    raise BenchmarkError(f"kata family {family.name}: fewer than {FEWEST} siblings stay apart")


def _panels(
    siblings: Sequence[Sibling], good: Sequence[tuple[Candidate, ...]]
) -> list[tuple[Chosen, tuple[Candidate, ...]]]:
    panels = []
    for sibling, programs in zip(siblings, good, strict=True):
        common = {s.task_id: common_checks(sibling, s) for s in siblings if s is not sibling}
        wrong = wrong_programs(sibling.family, sibling.facets, sibling.calls, sibling.want)
        panel = PanelChooser(sibling.calls, common, sibling.task_id).choose(programs, wrong)
        if panel is None:
            raise BenchmarkError(
                f"{sibling.task_id}: too few different wrong programs ({sibling.facets})"
            )
        panels.append((panel, wrong))
    return panels


def _confused(
    siblings: Sequence[Sibling], panels: Sequence[tuple[Chosen, tuple[Candidate, ...]]]
) -> int | None:
    calls = siblings[0].calls
    failed = [
        [member.failed_checks(calls) for member in (*chosen.invalid, chosen.initial)]
        for chosen, _ in panels
    ]
    for one, other in combinations_of(range(len(siblings)), 2):
        if confusable(failed[one], failed[other], common_checks(siblings[one], siblings[other])):
            return other
    return None


def _label(sibling: Sibling, panel: tuple[Chosen, tuple[Candidate, ...]]) -> dict[str, Any]:
    chosen, wrong = panel
    rng = random.Random(seed_of(SEED, sibling.task_id, "examples"))
    exposure = Exposure(
        checked=len(sibling.calls.checked),
        initial=chosen.initial.failed,
        invalid=tuple(c.failed for c in chosen.invalid),
        deciding=tuple(c.failed for c in wrong if c.origin.base == "algorithm"),
        errors=frozenset(i for i, result in enumerate(sibling.want) if result.error),
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

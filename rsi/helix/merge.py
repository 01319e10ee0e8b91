"""Merging compatible suites into one submission, and verifying it in fresh environments."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from rsi.errors import SubmissionError
from rsi.helix.crossval import Peers, Table
from rsi.helix.job import Job
from rsi.prism.outcome import Verdict
from rsi.prism.suite import Suite
from rsi.prism.tree import File, Tree, check_path
from rsi.records import Drop

OWNER = "merge"
_TWIN_TAIL = b"\n# end of file\n"


@dataclass(frozen=True)
class Part:
    """One sub-suite of a merged suite; a challenge alone need not reject b."""

    name: str
    suite: Suite
    must_reject: bool = True


def compatible(peers: Peers) -> tuple[list[int], list[int]]:
    """Suites and repairs that agree without exception, as many as can be.

    Among equal numbers the group with more repairs wins: a check that one peer contradicts
    costs more than it catches. Then the lowest slots win.
    """
    best: tuple[tuple[int, int], list[int], list[int]] = ((0, 0), [], [])
    for size in range(len(peers.repairs), 0, -1):
        for repairs in combinations(peers.repairs, size):
            suites = [i for i in peers.suites if _accepts_all(peers.table, i, repairs)]
            score = (len(suites) + size, size)
            if suites and score > best[0]:
                best = (score, suites, list(repairs))
    return best[1], best[2]


async def merge(
    job: Job, parts: list[Part], repairs: list[Tree]
) -> tuple[Suite | None, list[Drop]]:
    """Combine the parts and verify the whole; parts that spoil it are dropped with the reason.

    Gives None when nothing verified is left. Raises LimitReached and SandboxFailure.
    """
    parts, dropped = _distinct(parts)
    while any(part.must_reject for part in parts):
        trouble = await _trouble_of_all(job, parts, repairs)
        if not trouble:
            return combined(parts, job.task.entry), dropped
        spoiled = [(p, await fault_of(job, p.suite, repairs, p.must_reject)) for p in parts]
        offenders = [(part, why) for part, why in spoiled if why]
        # each is sound alone but not together: the last is given up
        offenders = offenders or [(parts[-1], f"merged suite {trouble}")]
        dropped += [Drop(what=part.name, reason=why) for part, why in offenders]
        gone = {part.name for part, _ in offenders}
        parts = [part for part in parts if part.name not in gone]
    return None, dropped


async def fault_of(job: Job, suite: Suite, repairs: list[Tree], must_reject: bool = True) -> str:
    """Say what is wrong with a suite, or nothing when it holds in every fresh run.

    It must reject b and its twin, which differs in nothing that a test may see, and accept
    every repair, in each of the workflow's verification runs.
    """
    given = job.task.program
    for run in range(1, job.workflow.verify_runs + 1):
        programs = [(given, f"the given program in run {run}")] if must_reject else []
        programs += [(tree, f"repair {n} in run {run}") for n, tree in enumerate(repairs, 1)]
        for tree, name in programs:
            verdict = await job.judge(OWNER, suite, tree, repetition=run)
            if not _as_wanted(verdict, rejects=tree is given):
                return f"gave {verdict.state} on {name}"
    twin = twin_of(given)
    if must_reject and twin != given:
        verdict = await job.judge(OWNER, suite, twin, repetition=1)
        if not verdict.rejects:
            return f"gave {verdict.state} on a twin of the given program"
    return ""


def combined(parts: list[Part], entry: str) -> Suite:
    """One suite of several, each in a folder of its own, run by one entry script.

    Raises SubmissionError when the whole is larger or deeper than a submission may be.
    """
    if len(parts) == 1:
        return parts[0].suite
    files: dict[str, File] = {}
    for part in parts:
        for path, file in part.suite.tree.files.items():
            check_path(f"{part.name}/{path}")
            files[f"{part.name}/{path}"] = file
    script = _entry_script([(part.name, part.suite.entry) for part in parts])
    files[entry] = File(content=script.encode(), executable=True)
    tree = Tree(files=files)
    tree.check_size()
    return Suite(tree=tree, entry=entry)


def twin_of(program: Tree) -> Tree:
    """The program with a comment appended to every Python file: the same behaviour, other bytes."""
    return Tree(
        files={
            path: file.updated(content=file.content + _TWIN_TAIL) if path.endswith(".py") else file
            for path, file in program.files.items()
        }
    )


def best_single(peers: Peers, spoiled: frozenset[int]) -> int:
    """Index of the pair whose suite accepts most peers' repairs; one not known bad comes first."""

    def worth(i: int) -> tuple[bool, int, int]:
        accepted = sum(v is not None and v.accepts for v in peers.table[i])
        return i not in spoiled, accepted, -i

    return max(range(len(peers.pairs)), key=worth)


async def _trouble_of_all(job: Job, parts: list[Part], repairs: list[Tree]) -> str:
    try:
        whole = combined(parts, job.task.entry)
    except SubmissionError as error:
        return f"cannot be built: {error}"
    return await fault_of(job, whole, repairs)


def _entry_script(entries: list[tuple[str, str]]) -> str:
    runs = "\n".join(f"run {name} {entry}" for name, entry in entries)
    return f"""#!/bin/sh
# Runs each suite from its own folder; the first that fails fails the whole.
root="$TP_SUBMISSION"
scratch="${{TP_OUT:-/tmp}}"
run() {{
  mkdir -p "$scratch/$1"
  TP_SUBMISSION="$root/$1" TP_OUT="$scratch/$1" "$root/$1/$2" || exit 1
}}
{runs}
"""


def _distinct(parts: list[Part]) -> tuple[list[Part], list[Drop]]:
    kept: dict[str, Part] = {}
    dropped = []
    for part in parts:
        twin = kept.setdefault(part.suite.digest, part)
        if twin is not part:
            dropped.append(Drop(what=part.name, reason=f"same files as {twin.name}"))
    return list(kept.values()), dropped


def _accepts_all(table: Table, i: int, repairs: tuple[int, ...]) -> bool:
    return all((verdict := table[i][j]) is not None and verdict.accepts for j in repairs)


def _as_wanted(verdict: Verdict, rejects: bool) -> bool:
    return verdict.rejects if rejects else verdict.accepts

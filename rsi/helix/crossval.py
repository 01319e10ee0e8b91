"""Peer cross-validation: every suite on every repair, reviews of disagreements, revisions."""

from __future__ import annotations

from dataclasses import dataclass, field

from rsi.errors import LimitReached
from rsi.helix.agent import Agent
from rsi.helix.job import Job, together
from rsi.helix.pair import Pair, inconsistencies, pair_of
from rsi.helix.review import Reviewer
from rsi.helix.wording import clean, cut, render
from rsi.prism.outcome import Verdict
from rsi.prism.tree import Tree
from rsi.records import Drop

OWNER = "cross-validation"
# verdicts_KK[i][j] = suite i on repair j; None when a cap left the cell unrun
Table = list[list[Verdict | None]]


@dataclass(frozen=True)
class Complaint:
    """A reviewer's finding against one artefact, with its counterexample."""

    at_fault: str
    input: str
    expected: str
    sentence: str
    output: str


@dataclass
class Peers:
    """Pairs after the rounds, their table, and the indices of suites and repairs still in."""

    pairs: list[Pair]
    table: Table
    suites: list[int]
    repairs: list[int]
    dropped: list[Drop] = field(default_factory=list)


async def cross_validate(
    job: Job, agents: tuple[Agent, ...], pairs: list[Pair], reviewer: Reviewer
) -> Peers:
    """Run the rounds and drop what most peers contradict; without the switch, the table only.

    A disagreement is reviewed once: the same suite on the same repair is never paid for again.
    """
    everyone = list(range(len(pairs)))
    if not job.workflow.cross_validation:
        return Peers(pairs, await verdict_table(job, pairs), everyone, everyone)
    pairs = list(pairs)
    reviewed: set[tuple[str, str]] = set()
    for _ in range(job.strategy.max_rounds):
        table = await verdict_table(job, pairs)
        fresh = [(i, j) for i, j in disagreements(table) if _key(pairs, i, j) not in reviewed]
        if not fresh:
            break
        reviewed |= {_key(pairs, i, j) for i, j in fresh}
        revised = await _round(job, agents, pairs, table, fresh, reviewer)
        if revised == pairs:
            break
        pairs = revised
    else:
        table = await verdict_table(job, pairs)
        reviewer.count("rounds_exhausted", int(bool(disagreements(table))))
    return outvoted(Peers(pairs, await verdict_table(job, pairs), everyone, everyone))


async def verdict_table(job: Job, pairs: list[Pair]) -> Table:
    """Every suite on every repair; what was run before is not run again."""

    async def cell(i: int, j: int) -> Verdict | None:
        try:
            return await job.judge(OWNER, pairs[i].suite, pairs[j].repair)
        except LimitReached:
            return None

    size = len(pairs)
    flat = await together(cell(i, j) for i in range(size) for j in range(size))
    return [flat[i * size : (i + 1) * size] for i in range(size)]


def disagreements(table: Table) -> list[tuple[int, int]]:
    """Cells off the diagonal whose suite was run and did not accept."""
    return [
        (i, j)
        for i, row in enumerate(table)
        for j, verdict in enumerate(row)
        if i != j and verdict is not None and not verdict.accepts
    ]


def outvoted(peers: Peers) -> Peers:
    """Drop pairs whose suite rejects most peers' repairs, then repairs most suites reject."""
    against = set(disagreements(peers.table))
    everyone, dropped = peers.suites, list(peers.dropped)
    kept = []
    for i in everyone:
        rejected = sum((i, j) in against for j in everyone)
        if 2 * rejected > len(everyone) - 1:
            reason = f"its suite rejects {rejected} of {len(everyone) - 1} peers' repairs"
            dropped.append(Drop(what=f"pair of agent-{peers.pairs[i].slot + 1}", reason=reason))
        else:
            kept.append(i)
    repairs = []
    for j in kept:
        rejecting = sum((i, j) in against for i in kept)
        if 2 * rejecting > len(kept):
            reason = f"{rejecting} of {len(kept)} suites reject it"
            dropped.append(Drop(what=f"repair of agent-{peers.pairs[j].slot + 1}", reason=reason))
        else:
            repairs.append(j)
    return Peers(peers.pairs, peers.table, kept, repairs, dropped)


async def _round(
    job: Job,
    agents: tuple[Agent, ...],
    pairs: list[Pair],
    table: Table,
    fresh: list[tuple[int, int]],
    reviewer: Reviewer,
) -> list[Pair]:
    """Review disagreements, let the owners at fault revise; gives the pairs as they are then."""
    found = await together(_review(job, pairs, table, i, j, reviewer) for i, j in fresh)
    charges: dict[int, list[Complaint]] = {}
    for (i, j), complaint in zip(fresh, found, strict=True):
        if complaint is not None:
            charges.setdefault(i if complaint.at_fault == "suite" else j, []).append(complaint)
    revised = await together(
        _revise(agents[pairs[k].slot], pairs[k], charges[k]) for k in sorted(charges)
    )
    changed = dict(zip(sorted(charges), revised, strict=True))
    return [changed.get(k, pair) for k, pair in enumerate(pairs)]


async def _review(
    job: Job, pairs: list[Pair], table: Table, i: int, j: int, reviewer: Reviewer
) -> Complaint | None:
    """Ask the model of the next slot who is at fault; None when it is unclear or unsupported."""
    verdict = table[i][j]
    assert verdict is not None
    suite, repair = shown(pairs[i].suite.tree), shown(changes(job.task.program, pairs[j].repair))
    output, _ = cut(verdict.output, job.strategy.tool_output_chars)

    def prompt(most: int) -> str:
        return render(
            "review",
            instruction=job.task.instruction,
            suite=cut(suite, most)[0],
            repair=cut(repair, most)[0],
            output=output,
            state=verdict.state,
        )

    slot = _neutral_slot(pairs[i].slot, pairs[j].slot, job.workflow.agents)
    answer = await reviewer.ask("review", slot, prompt)
    if answer is None or answer.get("at_fault") not in ("suite", "repair"):
        return None
    parts = {name: answer.get(name, "") for name in ("input", "expected", "sentence")}
    if not parts["input"] or not parts["expected"]:
        return None
    # a suite that demands what no sentence says has none to cite; a fault of a repair must have
    if answer["at_fault"] == "repair" and not parts["sentence"]:
        return None
    return Complaint(at_fault=answer["at_fault"], output=output, **parts)


async def _revise(agent: Agent, pair: Pair, complaints: list[Complaint]) -> Pair:
    """Give the owner one turn; a pair that is no longer consistent leaves the old one in place."""
    job, before = agent.job, agent.workspace
    opening = render("revise", complaints=complaints, guidance=job.strategy.repair_guidance)
    await agent.run("revise", opening, job.strategy.repair_steps)
    if agent.stop_reason == "steps":
        agent.count("repair_steps_exhausted")
    revised = pair_of(job.task, agent.slot, agent.workspace)
    try:
        if not await inconsistencies(job, agent.name, revised):
            return revised
    except LimitReached:
        pass  # an unverified revision is no better than an inconsistent one
    agent.workspace = before
    return pair


def shown(tree: Tree) -> str:
    """The files of a tree as one text, each under its path."""
    parts = [f"== {path}\n{clean(file.content)}" for path, file in sorted(tree.files.items())]
    return "\n".join(parts) or "(no files)"


def changes(given: Tree, repair: Tree) -> Tree:
    """The files of a repair that the given program does not hold like that."""
    return repair.without(
        path for path, file in repair.files.items() if given.files.get(path) == file
    )


def _neutral_slot(suite_slot: int, repair_slot: int, agents: int) -> int:
    """The slot after the suite's, past the repair's owner when there is a third agent."""
    slot = (suite_slot + 1) % agents
    return (slot + 1) % agents if slot == repair_slot and agents > 2 else slot


def _key(pairs: list[Pair], i: int, j: int) -> tuple[str, str]:
    return pairs[i].suite.digest, pairs[j].repair.digest

"""TestHelix on one task: synthesis, cross-validation, challenge, merge; always one submission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rsi.budget import Caps
from rsi.errors import LimitReached
from rsi.helix.agent import Agent
from rsi.helix.allowance import Allowance
from rsi.helix.challenge import challenge
from rsi.helix.crossval import Peers, Table, cross_validate
from rsi.helix.job import Job
from rsi.helix.merge import Part, best_single, compatible, merge
from rsi.helix.pair import Pair
from rsi.helix.review import Reviewer
from rsi.helix.synthesis import synthesize
from rsi.ports import LanguageModel, Sandbox
from rsi.prism.suite import Suite
from rsi.prism.task import Task
from rsi.prism.tree import Tree
from rsi.records import Drop, Solution, Workflow
from rsi.strategy import Strategy
from rsi.trajectory import Symptoms

SINGLE = "best single pair"
EMPTY = "empty submission"


@dataclass
class Result:
    """What the stages after synthesis came to; `fallback` is empty for a verified suite."""

    suite: Suite
    fallback: str
    table: Table = field(default_factory=list)
    dropped: list[Drop] = field(default_factory=list)


async def solve(
    task: Task,
    strategy: Strategy,
    caps: Caps,
    models: Sequence[LanguageModel],
    sandbox: Sandbox,
    workflow: Workflow,
    seed: int,
) -> Solution:
    """Write one suite for a task within the caps; what fails ends in a recorded fallback.

    Raises ModelRefused, and SandboxFailure when a cell could not be observed: neither says
    anything about the strategy, so neither may be scored. Models that were out of reach show as
    the stop reasons of their agents.
    """
    job = Job(task, strategy, workflow, models, sandbox, Allowance(caps), seed)
    reviewer = Reviewer(job)
    agents, pairs, dropped = await synthesize(job)
    if pairs:
        result = await _settle(job, agents, pairs, reviewer)
    else:
        result = Result(Suite(tree=Tree(), entry=task.entry), EMPTY)
    trajectories = [*(agent.trajectory() for agent in agents), reviewer.trajectory()]
    symptoms = sum((t.symptoms for t in trajectories), Symptoms())
    return Solution(
        suite=result.suite,
        trajectories=tuple(trajectories if reviewer.asked else trajectories[:-1]),
        verdicts_kk=tuple(
            tuple(str(verdict.state) if verdict else "" for verdict in row) for row in result.table
        ),
        dropped=(*dropped, *result.dropped),
        spend=job.allowance.spend(),
        symptoms=symptoms,
        fallback=result.fallback,
    )


async def _settle(
    job: Job, agents: tuple[Agent, ...], pairs: list[Pair], reviewer: Reviewer
) -> Result:
    """From consistent pairs to one suite; a cap on the way leaves the best single pair."""
    peers = await cross_validate(job, agents, pairs, reviewer)
    dropped = list(peers.dropped)
    suites, chosen = compatible(peers)
    dropped += _left_out(peers, suites, chosen)
    suite: Suite | None = None
    parts = [Part(f"suite_{n}", peers.pairs[i].suite) for n, i in enumerate(suites, 1)]
    spoiled: set[str] = set()
    try:
        named = {
            f"repair of agent-{peers.pairs[j].slot + 1}": peers.pairs[j].repair for j in chosen
        }
        added = await challenge(job, named, parts, reviewer)
        dropped += added.dropped
        suite, unfit = await merge(job, [*parts, *added.parts], added.repairs)
        dropped += unfit
        spoiled = {drop.what for drop in unfit}
    except LimitReached as reached:
        dropped.append(Drop(what="merge", reason=f"cap {reached.limit}"))
    if suite is not None:
        return Result(suite, "", peers.table, dropped)
    bad = frozenset(i for part, i in zip(parts, suites, strict=True) if part.name in spoiled)
    best = best_single(peers, bad)
    return Result(peers.pairs[best].suite, SINGLE, peers.table, dropped)


def _left_out(peers: Peers, suites: list[int], repairs: list[int]) -> list[Drop]:
    """Account for suites and repairs that stayed in the vote but not in the agreement."""
    return [
        Drop(what=f"{what} of agent-{peers.pairs[k].slot + 1}", reason="peers disagree about it")
        for what, before, after in (
            ("suite", peers.suites, suites),
            ("repair", peers.repairs, repairs),
        )
        for k in before
        if k not in after
    ]

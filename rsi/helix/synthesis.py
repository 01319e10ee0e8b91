"""Heterogeneous synthesis: K isolated agents, each with its own pair or the reason it has none."""

from __future__ import annotations

from collections.abc import Sequence

from rsi.helix.agent import Agent
from rsi.helix.job import Job, together
from rsi.helix.pair import Pair, synthesize_pair
from rsi.records import Drop


async def synthesize(job: Job) -> tuple[tuple[Agent, ...], list[Pair], list[Drop]]:
    """Run the K agents of the workflow at once; gives agents, `pairs_K` and the dropped.

    Agents share the caps and nothing else. Raises ModelRefused and SandboxFailure.
    """
    agents = tuple(Agent(job, slot) for slot in range(job.workflow.agents))
    results = await together(synthesize_pair(agent) for agent in agents)
    pairs, dropped = split(results)
    return agents, pairs, dropped


def split(results: Sequence[Pair | Drop]) -> tuple[list[Pair], list[Drop]]:
    """Part the pairs from the dropped."""
    pairs = [item for item in results if isinstance(item, Pair)]
    return pairs, [item for item in results if isinstance(item, Drop)]

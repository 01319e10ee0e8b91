"""A pair: a suite and the repair that grounds it, consistent by execution and not by claim."""

from __future__ import annotations

from dataclasses import dataclass

from rsi.errors import LimitReached
from rsi.helix.agent import Agent, opening_of
from rsi.helix.job import Job
from rsi.helix.wording import cut, render
from rsi.prism.outcome import State, Verdict
from rsi.prism.suite import Suite
from rsi.prism.task import Task
from rsi.prism.tree import Tree
from rsi.records import Drop

# after these an agent can do no more
_SPENT = frozenset({"cap", "model_failure", "infrastructure", "no_tool_call"})


@dataclass(frozen=True)
class Pair:
    """Suite T_k and repair P_k of the agent in one slot."""

    slot: int
    suite: Suite
    repair: Tree


@dataclass(frozen=True)
class Finding:
    """One verdict that makes a pair inconsistent, in the words of the prompt."""

    program: str
    wanted: str
    state: str
    detail: str
    output: str


def pair_of(task: Task, slot: int, workspace: Tree) -> Pair:
    """Split a workspace: what lies below the artifact folder is the suite, the rest the repair."""
    start = task.artifact_dir + "/"
    return Pair(
        slot=slot,
        suite=Suite(tree=workspace.under(task.artifact_dir), entry=task.entry),
        repair=workspace.without(path for path in workspace.files if path.startswith(start)),
    )


async def inconsistencies(job: Job, owner: str, pair: Pair) -> list[Finding]:
    """Run the suite on b and on its repair; empty when it rejects the one and accepts the other.

    Raises LimitReached and SandboxFailure.
    """
    given = await job.judge(owner, pair.suite, job.task.program)
    mended = await job.judge(owner, pair.suite, pair.repair)
    findings = []
    if not given.rejects:
        findings.append(_finding(job, "the program as it was given", State.REJECT, given))
    if not mended.accepts:
        findings.append(_finding(job, "your mended program", State.ACCEPT, mended))
    return findings


async def synthesize_pair(agent: Agent) -> Pair | Drop:
    """Let an agent write its pair, then make it mend the pair until it is consistent."""
    await agent.run("act", opening_of(agent.job), agent.job.strategy.agent_steps)
    return await ground(agent)


async def ground(agent: Agent) -> Pair | Drop:
    """Check an agent's pair by execution; an inconsistent one gets the repair steps, then goes."""
    job, left = agent.job, agent.job.strategy.repair_steps
    try:
        while True:
            pair = pair_of(job.task, agent.slot, agent.workspace)
            findings = await inconsistencies(job, agent.name, pair)
            if not findings:
                return pair
            if left <= 0:
                agent.count("repair_steps_exhausted")
            if left <= 0 or agent.stop_reason in _SPENT:
                return Drop(what=agent.name, reason=_reason(agent, findings))
            opening = render(
                "inconsistent", findings=findings, guidance=job.strategy.repair_guidance
            )
            left -= await agent.run("repair", opening, left)
    except LimitReached as reached:
        return Drop(what=agent.name, reason=f"pair unverified: cap {reached.limit}")


def _finding(job: Job, program: str, wanted: State, verdict: Verdict) -> Finding:
    return Finding(
        program=program,
        wanted=wanted,
        state=verdict.state,
        detail=verdict.detail,
        output=cut(verdict.output, job.strategy.tool_output_chars)[0],
    )


def _reason(agent: Agent, findings: list[Finding]) -> str:
    what = "; ".join(f"on {f.program} {f.state}, wanted {f.wanted}" for f in findings)
    spent = f" (agent stopped: {agent.stop_reason})" if agent.stop_reason in _SPENT else ""
    return f"pair inconsistent: {what}{spent}"

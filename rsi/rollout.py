"""One strategy on one task, judged: the unit that a cluster ships."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rsi.budget import Caps
from rsi.digest import seed_of
from rsi.helix.label import label_of
from rsi.helix.solve import solve
from rsi.ports import LanguageModel, Sandbox
from rsi.prism.judge import judge
from rsi.prism.outcome import Outcome, State
from rsi.prism.panel import Panel
from rsi.prism.task import Task
from rsi.records import Rollout, RolloutRequest, Solution, Workflow


async def run_rollout(
    request: RolloutRequest,
    task: Task,
    panel: Panel,
    models: Sequence[LanguageModel],
    sandbox: Sandbox,
    caps: Caps,
    workflow: Workflow,
    run_seed: int = 0,
) -> Rollout:
    """Let TestHelix write a suite under the caps, then judge it on the panel in scope.

    When the world fails while judging the rollout has a `failure` and no outcome, never a
    zero. Raises InfrastructureError when it fails before (what was spent is then unknown), and
    ModelRefused when the endpoint refuses for good.
    """
    seed = seed_of(run_seed, task.task_id, request.repetition)
    solution = await solve(task, request.strategy, caps, models, sandbox, workflow, seed)
    failure = _world_failure(solution)
    outcome = None
    if not failure:
        scoped = panel.signal() if request.scope == "signal" else panel
        outcome = await asyncio.to_thread(judge, solution.suite, task, scoped, sandbox)
        failure = _judge_failure(outcome)
    return _rollout(request, task, sandbox, solution, outcome, failure)


def _world_failure(solution: Solution) -> str:
    """A suite that is missing because no agent could reach its model is nobody's zero."""
    stopped = [
        t for t in solution.trajectories if t.stop_reason in ("model_failure", "infrastructure")
    ]
    if solution.suite.empty and stopped and len(stopped) == len(solution.trajectories):
        return stopped[0].stopped_by or "every agent lost its model endpoint"
    return ""


def _judge_failure(outcome: Outcome) -> str:
    lost = [c for c in outcome.cells if c.verdict.state is State.INFRA]
    return f"{len(lost)} cells not judged: {lost[0].verdict.detail}" if lost else ""


def _rollout(
    request: RolloutRequest,
    task: Task,
    sandbox: Sandbox,
    found: Solution,
    outcome: Outcome | None,
    failure: str,
) -> Rollout:
    return Rollout(
        rollout_id=request.rollout_id,
        strategy_id=request.strategy.strategy_id,
        task_id=task.task_id,
        family=task.family,
        source=task.source,
        scope=request.scope,
        outcome=outcome,
        failure=failure,
        label="" if failure else label_of(outcome, found),
        fallback=found.fallback,
        dropped=found.dropped,
        spend=found.spend.updated(rollouts=1),
        symptoms=found.symptoms,
        isolation=sandbox.isolation,
        trajectories=found.trajectories,
    )

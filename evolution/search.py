"""What a search is given and where it stands: inputs, state between phases, one way to play."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal, NamedTuple

from evolution.archive import Archive
from evolution.candidate import Candidate, seed_candidate
from evolution.lessons import Lesson
from evolution.plan import EvolutionPlan
from evolution.ports import Evaluator, Ledger
from evolution.promotion import Rule, decide
from evolution.reflector import Reflector, SymptomReflector
from evolution.sampling import Listed, split_folds
from evolution.statistics import Outcomes
from rsi.budget import Caps
from rsi.digest import seed_of
from rsi.errors import InfrastructureError, SettingsError
from rsi.records import Rollout, RolloutRequest
from rsi.strategy import Strategy
from rsi.wire import Record


class Progress(Record):
    """One line for whoever watches: what just happened, in which generation of how many."""

    stage: Literal["trace", "propose", "screen", "promote", "select", "stopped", "winner"]
    generation: int
    generations: int
    message: str


def _unwatched(_progress: Progress) -> None:
    return None


@dataclass(frozen=True)
class World:
    """What a search needs from outside; `caps` only put the spend of rollouts in proportion."""

    evaluator: Evaluator
    ledger: Ledger
    reflector: Reflector = field(default_factory=SymptomReflector)
    caps: Caps = field(default_factory=Caps)
    on_progress: Callable[[Progress], None] = _unwatched
    rule: Rule = decide


@dataclass(frozen=True)
class Search:
    """The fixed inputs of a run: plan, world, seed, and the tasks in their folds."""

    plan: EvolutionPlan
    world: World
    rng_seed: int
    trace: tuple[Listed, ...]
    compared: tuple[Listed, ...]
    selection: tuple[Listed, ...]

    def rng(self, *parts: object) -> Random:
        """A generator of its own for every purpose, so no phase disturbs another."""
        return Random(seed_of(self.rng_seed, *parts))

    def families(self) -> dict[str, str]:
        """The family of every compared task."""
        return dict(self.compared)

    def tell(self, stage: str, generation: int, message: str) -> None:
        """Report progress."""
        self.world.on_progress(
            Progress.model_validate(
                {
                    "stage": stage,
                    "generation": generation,
                    "generations": self.plan.generations,
                    "message": message,
                }
            )
        )


@dataclass(frozen=True)
class State:
    """Where the search stands; every phase returns a new one."""

    archive: Archive
    incumbent: Candidate
    alpha_left: float
    lessons: tuple[Lesson, ...] = ()
    promoted: tuple[str, ...] = ()

    def with_candidate(self, candidate: Candidate) -> State:
        return replace(self, archive=self.archive.with_candidate(candidate))


def prepare(
    plan: EvolutionPlan, tasks: Mapping[str, Sequence[Listed]], world: World, rng_seed: int
) -> Search:
    """Check the splits and part them; raises SettingsError when they cannot carry the plan."""
    train, selection = tuple(tasks.get("train", ())), tuple(tasks.get("selection", ()))
    ids = [task_id for task_id, _ in (*train, *selection)]
    if len(set(ids)) != len(ids):
        raise SettingsError("tasks: a task is listed twice in the train and selection splits")
    if plan.generations and len(train) < 2:
        raise SettingsError(f"tasks: the train split has {len(train)} tasks, evolution needs 2")
    trace, compared = split_folds(train, rng_seed)
    return Search(plan, world, rng_seed, trace, compared, selection)


def start(plan: EvolutionPlan, strategy: Strategy) -> State:
    """The state before the first generation: the seed alone, and incumbent."""
    seed = seed_candidate(strategy)
    return State(Archive((seed,)), seed, plan.alpha)


class Player(NamedTuple):
    """A candidate on the field; `repetition` makes its rollouts fresh."""

    candidate: Candidate
    repetition: str


Played = dict[str, dict[str, Rollout]]  # candidate_id -> task_id -> rollout


def play(world: World, players: Sequence[Player], tasks: Sequence[Listed], where: str) -> Played:
    """Play every player on the same tasks in one parallel call.

    Raises LimitReached from the evaluator, and InfrastructureError when not one rollout has an
    outcome: then something is wrong with the world, and nothing can be learned.
    """
    requests = [
        (p, RolloutRequest(strategy=p.candidate.strategy, task_id=t, repetition=p.repetition))
        for t, _ in tasks
        for p in players
    ]
    rollouts = world.evaluator.evaluate([request for _, request in requests])
    if all(rollout.rar is None for rollout in rollouts):
        first = next((r.failure for r in rollouts if r.failure), "an incomplete judgement")
        raise InfrastructureError(
            f"{where}: all {len(rollouts)} rollouts failed ({first[:200]}); "
            "mend the sandbox, model or cluster, then resume the run"
        )
    played: Played = {}
    for (player, request), rollout in zip(requests, rollouts, strict=True):
        if rollout.rollout_id != request.rollout_id:
            raise ValueError(f"{where}: the evaluator answered out of order")
        played.setdefault(player.candidate.candidate_id, {})[request.task_id] = rollout
    return played


def outcomes_of(rollouts: Mapping[str, Rollout]) -> Outcomes:
    """RAR outcomes by task: 1, 0, or None where the world failed."""
    return {task_id: rollout.rar for task_id, rollout in rollouts.items()}

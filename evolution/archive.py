"""All candidates of a run with what was observed of them: immutable, updates give a new one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pydantic import Field

from evolution.candidate import Candidate
from rsi.wire import Record

# tasks after which a paired difference is believed by half: 20 % of outcomes flip between
# identical rollouts (variance 0.2 a task) and candidates differ by 10 points (0.2 / 0.1² = 20)
PRIOR_TASKS = 20

Stage = Literal["screening", "promotion"]


class Observation(Record):
    """One paired comparison of a candidate with the incumbent of that moment.

    `baseline_gain` is what the incumbent was then believed to be better than the seed by;
    `tasks` counts pairs that both finished.
    """

    generation: int = Field(ge=1)
    stage: Stage
    baseline_id: str
    baseline_gain: float
    tasks: int = Field(ge=0)
    gains: int = Field(ge=0)
    losses: int = Field(ge=0)


@dataclass(frozen=True)
class Archive:
    """Candidates in order of creation, and observations as (candidate id, observation)."""

    candidates: tuple[Candidate, ...] = ()
    observations: tuple[tuple[str, Observation], ...] = ()

    def with_candidate(self, candidate: Candidate) -> Archive:
        """Add a candidate; raises ValueError when its id is taken or a parent is unknown."""
        known = {c.candidate_id for c in self.candidates}
        if candidate.candidate_id in known or not known.issuperset(candidate.parent_ids):
            raise ValueError(f"{candidate.candidate_id}: id taken or parent unknown")
        return replace(self, candidates=(*self.candidates, candidate))

    def with_observation(self, candidate_id: str, observation: Observation) -> Archive:
        """Add what was seen of a candidate; raises KeyError when there is no such candidate."""
        self.get(candidate_id)
        return replace(self, observations=(*self.observations, (candidate_id, observation)))

    def get(self, candidate_id: str) -> Candidate:
        """Find a candidate; raises KeyError."""
        for candidate in self.candidates:
            if candidate.candidate_id == candidate_id:
                return candidate
        raise KeyError(candidate_id)

    def observed(self, candidate_id: str) -> tuple[Observation, ...]:
        """What was seen of one candidate, in order."""
        return tuple(o for c, o in self.observations if c == candidate_id)

    def gain(self, candidate_id: str) -> float:
        """Estimated gain in RAR over the seed, its paired differences shrunken towards none.

        0 for a candidate that was never compared, such as the seed at first.
        """
        seen = self.observed(candidate_id)
        tasks = sum(o.tasks for o in seen)
        if not tasks:
            return 0.0
        baseline = sum(o.tasks * o.baseline_gain for o in seen) / tasks
        return baseline + sum(o.gains - o.losses for o in seen) / (tasks + PRIOR_TASKS)

    def ranked(self) -> tuple[Candidate, ...]:
        """The seed and every screened candidate but canaries, best first, earlier before later."""
        screened = {c for c, o in self.observations if o.tasks}
        pool = [
            c
            for c in self.candidates
            if not c.is_canary and (not c.parent_ids or c.candidate_id in screened)
        ]
        return tuple(sorted(pool, key=lambda c: -self.gain(c.candidate_id)))

    def lineage(self, candidate_id: str) -> tuple[str, ...]:
        """A candidate's id and those of all its ancestors, nearest first, each once."""
        found = [candidate_id]
        for known in found:
            found += [p for p in self.get(known).parent_ids if p not in found]
        return tuple(found)

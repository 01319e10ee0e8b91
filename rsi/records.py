"""Rollout requests and rollouts: the frozen data that Ray ships and the journal keeps."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rsi.budget import Spend
from rsi.digest import digest_of
from rsi.ports import Isolation
from rsi.prism.outcome import Outcome
from rsi.prism.suite import Suite
from rsi.strategy import Strategy
from rsi.trajectory import Symptoms, Trajectory
from rsi.wire import Record

Scope = Literal["signal", "full"]


class Workflow(Record):
    """TestHelix configuration that evolution may not touch: K, switches, verification runs."""

    agents: int = Field(3, ge=1, le=9)
    cross_validation: bool = True
    challenge: bool = True
    verify_runs: int = Field(2, ge=1, le=5)


class Drop(Record):
    """Something the workflow threw away, and why."""

    what: str
    reason: str


class Solution(Record):
    """What TestHelix submits for one task, and how it got there.

    `verdicts_kk[i][j]` is the state name of suite i on repair j in the last round.
    """

    suite: Suite
    trajectories: tuple[Trajectory, ...] = ()
    verdicts_kk: tuple[tuple[str, ...], ...] = ()
    dropped: tuple[Drop, ...] = ()
    spend: Spend = Spend()
    symptoms: Symptoms = Symptoms()
    fallback: str = ""


class RolloutRequest(Record):
    """One strategy on one task; equal requests are the same rollout and are paid once.

    `repetition` tells fresh rollouts of the same pair apart; `scope` is the panel judged on:
    `signal` = {b, g}, `full` = the whole panel.
    """

    strategy: Strategy
    task_id: str
    repetition: str
    scope: Scope = "signal"

    @property
    def rollout_id(self) -> str:
        key = [self.strategy.strategy_id, self.task_id, self.repetition, self.scope]
        return digest_of(key)[:32]


class Rollout(Record):
    """One strategy on one task, judged.

    `label` is the failure taxonomy's name or empty when the rollout succeeded; `failure` is set
    when the world failed and there is no outcome. Trajectories travel apart from the journal.
    """

    rollout_id: str
    strategy_id: str
    task_id: str
    family: str
    source: str
    scope: Scope
    outcome: Outcome | None
    failure: str = ""
    label: str = ""
    fallback: str = ""
    dropped: tuple[Drop, ...] = ()
    spend: Spend = Spend()
    symptoms: Symptoms = Symptoms()
    isolation: Isolation
    trajectories: tuple[Trajectory, ...] = Field(default=(), repr=False)

    @property
    def rar(self) -> int | None:
        """F of the outcome, None without a score."""
        return self.outcome.f if self.outcome and self.outcome.complete else None

    @property
    def jsf(self) -> int | None:
        """S of the outcome, None without a score."""
        return self.outcome.s if self.outcome and self.outcome.complete else None

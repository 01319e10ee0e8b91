"""Rollout requests, rollouts and plays for the tests of this folder; importable by Ray workers."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from rsi.budget import Spend
from rsi.errors import ModelRefused, SandboxFailure
from rsi.records import Rollout, RolloutRequest
from rsi.strategy import Strategy
from rsi.trajectory import Step, Trajectory
from tests.builders import outcome


def request(n: int, repetition: str = "0", **strategy: int) -> RolloutRequest:
    """A request on task t<n>."""
    return RolloutRequest(
        strategy=Strategy.model_validate(strategy), task_id=f"t{n}", repetition=repetition
    )


def rollout(
    asked: RolloutRequest, tokens: int = 100, usd: float = 0.0, failure: str = ""
) -> Rollout:
    """A successful rollout that spent some tokens, or a failed one."""
    return Rollout(
        rollout_id=asked.rollout_id,
        strategy_id=asked.strategy.strategy_id,
        task_id=asked.task_id,
        family="f",
        source="made",
        scope=asked.scope,
        outcome=None if failure else outcome(asked.task_id),
        failure=failure,
        spend=Spend(rollouts=1, input_tokens=tokens - 1, output_tokens=1, usd=usd),
        isolation="process",
        trajectories=(
            Trajectory(agent="a", steps=(Step(said=asked.task_id),), stop_reason="submitted"),
        ),
    )


def play_by_name(folder: Path, asked: RolloutRequest) -> Rollout:
    """Do what the repetition says; leave one mark per execution in `folder`."""
    with (folder / asked.task_id).open("a") as marks:
        marks.write(f"{os.getpid()}\n")
    executions = len((folder / asked.task_id).read_text().split())
    match asked.repetition:
        case "die-once" if executions == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "sandbox":
            raise SandboxFailure("no namespace")
        case "refused":
            raise ModelRefused("wrong key")
        case "bug":
            raise ValueError("a bug")
        case "slow":
            time.sleep(120)
        case "short":
            time.sleep(0.3)
    return rollout(asked)

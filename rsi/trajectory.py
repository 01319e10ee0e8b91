"""What an agent did: steps, stop reason, and the symptoms evolution learns from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rsi.budget import Spend
from rsi.wire import Record

StopReason = Literal["submitted", "steps", "cap", "no_tool_call", "model_failure", "infrastructure"]


class Step(Record):
    """One model reply and what came of it; texts are already bounded by the strategy."""

    kind: Literal["act", "repair", "review", "revise", "challenge"] = "act"
    said: str = ""
    tool: str = ""
    arguments: str = ""
    observation: str = ""
    finish_reason: str = ""
    spend: Spend = Spend()


class Symptoms(Record):
    """How often a strategy field was the thing that got in the way (counts)."""

    steps_exhausted: int = Field(0, ge=0)
    repair_steps_exhausted: int = Field(0, ge=0)
    context_elided: int = Field(0, ge=0)
    tool_output_cut: int = Field(0, ge=0)
    review_cut: int = Field(0, ge=0)
    rounds_exhausted: int = Field(0, ge=0)
    challenge_differences: int = Field(0, ge=0)
    malformed_replies: int = Field(0, ge=0)

    def __add__(self, other: Symptoms) -> Symptoms:
        return Symptoms(
            **{name: getattr(self, name) + getattr(other, name) for name in type(self).model_fields}
        )


class Trajectory(Record):
    """The steps of one agent in one role, why it stopped, and what it spent."""

    agent: str
    steps: tuple[Step, ...] = ()
    stop_reason: StopReason
    stopped_by: str = ""
    symptoms: Symptoms = Symptoms()
    spend: Spend = Spend()

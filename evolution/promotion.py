"""Promotion: the one place that says a child is better than the incumbent.

Pure and replaceable: a rule is a function (parent outcomes, child outcomes, alpha) -> Decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

from pydantic import Field, model_validator

from evolution.statistics import Outcomes, Paired, pair, paired_interval, sign_test
from rsi.prism.metrics import Interval
from rsi.wire import Record


class Decision(Record):
    """Promoted or declined, with reason, compared tasks and the error level it was held to."""

    promoted: bool
    reason: str
    paired: Paired | None = None
    p_value: float = Field(1.0, ge=0, le=1)
    alpha: float = Field(0.0, ge=0, le=1)
    interval: Interval | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.promoted and (self.paired is None or self.p_value > self.alpha):
            raise ValueError("only a compared child with p <= alpha is promoted")
        return self


def decide(
    parent: Outcomes, child: Outcomes, alpha: float, families: Mapping[str, str] | None = None
) -> Decision:
    """Test a child against the incumbent: exact, one-sided, on discordant pairs.

    Outcomes are fresh, one per task and side, the same tasks on both. A promotion must also
    stand when every outcome lost to infrastructure had gone against the child.
    """
    paired = pair(parent, child)
    p_value = sign_test(len(paired.gains), len(paired.losses))
    if not paired.task_ids:
        promoted, reason = False, "no task has an outcome on both sides"
    elif p_value > alpha:
        promoted, reason = False, f"not shown to be better: p {p_value:.4f} > alpha {alpha:.4f}"
    elif paired.worst <= 0:
        promoted, reason = False, f"{len(paired.missing)} lost outcomes could reverse it"
    else:
        promoted, reason = True, f"better: p {p_value:.4f} <= alpha {alpha:.4f}"
    return Decision(
        promoted=promoted,
        reason=reason,
        paired=paired,
        p_value=p_value,
        alpha=alpha,
        interval=paired_interval(paired, families or {}),
    )


def declined(reason: str) -> Decision:
    """Decline a child that was not put to the test."""
    return Decision(promoted=False, reason=reason)


Rule = Callable[[Outcomes, Outcomes, float, Mapping[str, str]], Decision]

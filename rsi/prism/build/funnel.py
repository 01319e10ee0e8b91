"""What every construction stage reports: who stayed, who was dropped, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rsi.wire import Record


class Dropped(Record):
    """One item a stage dropped: `reason` is a class to count by, `detail` the particular case."""

    task_id: str
    reason: str
    detail: str = ""


class Stage(Record):
    """One row of the funnel table; kept + dropped = entered."""

    name: str
    kept: int
    drops: tuple[Dropped, ...] = ()

    @property
    def entered(self) -> int:
        return self.kept + len(self.drops)

    @property
    def reasons(self) -> dict[str, int]:
        """How many were dropped for each reason, the most frequent first."""
        return dict(Counter(drop.reason for drop in self.drops).most_common())


def funnel_of(stages: Sequence[Stage]) -> dict[str, Any]:
    """The JSON form of a funnel: counts by stage and reason, then every drop by task."""
    return {
        "stages": [
            {
                "name": stage.name,
                "entered": stage.entered,
                "kept": stage.kept,
                "dropped": stage.reasons,
            }
            for stage in stages
        ],
        "drops": [
            {"stage": stage.name, **drop.model_dump(mode="json")}
            for stage in stages
            for drop in stage.drops
        ],
    }

"""The plan of a search: its sizes, its error level, and the rollouts they need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from evolution.sampling import fold_sizes
from rsi.wire import Record

ProposerName = Literal["reflector", "symptoms", "crossover", "random"]


class EvolutionPlan(Record):
    """Sizes of the search; counts are tasks unless said otherwise, 0 means the whole split.

    A generation re-rolls the incumbent and one parent beside `children` new candidates on
    `tasks_per_generation` tasks; its best child then meets the incumbent again on
    `promotion_tasks` fresh rollouts a side. `alpha` is the run's chance to promote a candidate
    that is no better, shared over generations. `finalists` counts the seed. `parents_from` is
    the k of the top-k that parents are drawn from. `canaries` adds one clone of the incumbent
    to one generation, to show how an equal candidate fares.
    """

    generations: int = Field(6, ge=0, le=1_000)
    children: int = Field(8, ge=1, le=64)
    tasks_per_generation: int = Field(40, ge=1, le=10_000)
    promotion_tasks: int = Field(80, ge=1, le=10_000)
    trace_tasks: int = Field(10, ge=1, le=1_000)
    alpha: float = Field(0.05, gt=0, le=0.5)
    finalists: int = Field(3, ge=2, le=4)
    selection_tasks: int = Field(0, ge=0, le=100_000)
    test_tasks: int = Field(0, ge=0, le=100_000)
    test_repetitions: int = Field(1, ge=1, le=20)
    parents_from: int = Field(4, ge=1, le=64)
    canaries: int = Field(1, ge=0, le=1)
    proposers: tuple[ProposerName, ...] = Field(
        ("reflector", "crossover", "random"), min_length=1, max_length=4
    )

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len(set(self.proposers)) != len(self.proposers):
            raise ValueError("proposers: each is named once")
        return self

    def breakdown(self, split_sizes: Mapping[str, int]) -> dict[str, int]:
        """Rollouts by purpose, at most: trace, screening, promotion, selection, test.

        `split_sizes` maps a split's name to its number of tasks; smaller splits cost less.
        """
        trace, compared = fold_sizes(split_sizes.get("train", 0))
        screened = min(self.tasks_per_generation, compared)
        players = self.generations * (self.children + 2) + min(self.canaries, self.generations)
        return {
            "trace": self.generations * min(self.trace_tasks, trace),
            "screening": players * screened,
            "promotion": self.generations * 2 * min(self.promotion_tasks, compared),
            "selection": self.finalists * _part(self.selection_tasks, split_sizes, "selection"),
            "test": 2 * self.test_repetitions * _part(self.test_tasks, split_sizes, "test"),
        }

    def planned_rollouts(self, split_sizes: Mapping[str, int]) -> int:
        """Rollouts that the whole run needs at most: the sum of `breakdown`."""
        return sum(self.breakdown(split_sizes).values())


def _part(wanted: int, split_sizes: Mapping[str, int], split: str) -> int:
    size = split_sizes.get(split, 0)
    return min(wanted, size) if wanted else size

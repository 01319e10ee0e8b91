"""A candidate: a strategy with where it came from."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from evolution.edits import Edit
from rsi.strategy import Strategy
from rsi.wire import Record

SEED_ID = "seed"
CANARY = "canary"


class Candidate(Record):
    """A strategy with its provenance; `parent_ids` are candidate ids, the seed has none.

    `proposer` is `seed`, `canary` or the name of what proposed it.
    """

    candidate_id: str = Field(min_length=1, max_length=64)
    strategy: Strategy
    parent_ids: tuple[str, ...] = Field((), max_length=2)
    generation: int = Field(0, ge=0)
    proposer: str
    diagnosis: str = ""
    edits: tuple[Edit, ...] = ()
    lesson: str = ""

    @property
    def strategy_id(self) -> str:
        return self.strategy.strategy_id

    @property
    def is_canary(self) -> bool:
        """True for a clone of the incumbent that only calibrates the search."""
        return self.proposer == CANARY

    def event(self) -> dict[str, Any]:
        """The data of its `candidate` event: the record and its strategy id."""
        return {**self.to_json(), "strategyId": self.strategy_id}


def seed_candidate(strategy: Strategy) -> Candidate:
    """Wrap the strategy that evolution starts from."""
    return Candidate(candidate_id=SEED_ID, strategy=strategy, proposer="seed")

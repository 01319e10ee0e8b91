"""Who may have children: drawn from all screened candidates, not only from promoted ones."""

from __future__ import annotations

from random import Random

from evolution.archive import Archive
from evolution.candidate import Candidate


def choose_parent(archive: Archive, top_k: int, rng: Random) -> Candidate:
    """Draw one of the top k by shrunken paired difference, all alike."""
    return rng.choice(archive.ranked()[:top_k])


def choose_mate(archive: Archive, parent: Candidate, top_k: int, rng: Random) -> Candidate | None:
    """Draw another strategy of the top k for a crossover; None when there is no other."""
    pool = [c for c in archive.ranked() if c.strategy_id != parent.strategy_id][:top_k]
    return rng.choice(pool) if pool else None

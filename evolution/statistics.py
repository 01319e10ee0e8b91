"""Paired comparison of two strategies on the same tasks: counts, exact test, interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
from pydantic import Field
from scipy.stats import binomtest

from rsi.prism.metrics import Interval, cluster_bootstrap
from rsi.wire import Record

Outcomes = Mapping[str, int | None]  # task_id -> 1, 0, or None when the world failed


class Paired(Record):
    """Two sides on the same tasks; `gains` are tasks the child alone solved, `losses` the reverse.

    `missing` lacks an outcome on a side. `worst` and `best` are the differences in RAR if every
    missing outcome had gone against, or for, the child; `difference` is over complete pairs.
    """

    task_ids: tuple[str, ...]
    missing: tuple[str, ...]
    gains: tuple[str, ...]
    losses: tuple[str, ...]
    difference: float = Field(ge=-1, le=1)
    worst: float = Field(ge=-1, le=1)
    best: float = Field(ge=-1, le=1)


def pair(parent: Outcomes, child: Outcomes) -> Paired:
    """Pair outcomes by task; raises ValueError unless both sides name the same tasks."""
    if not parent or set(parent) != set(child):
        raise ValueError("both sides of a comparison play the same tasks, one or more")
    done, missing, gains, losses = [], [], [], []
    worst = best = 0
    for task_id in sorted(parent):
        before, after = parent[task_id], child[task_id]
        worst += (0 if after is None else after) - (1 if before is None else before)
        best += (1 if after is None else after) - (0 if before is None else before)
        if before is None or after is None:
            missing.append(task_id)
            continue
        done.append(task_id)
        if after > before:
            gains.append(task_id)
        elif after < before:
            losses.append(task_id)
    return Paired(
        task_ids=tuple(done),
        missing=tuple(missing),
        gains=tuple(gains),
        losses=tuple(losses),
        difference=(len(gains) - len(losses)) / len(done) if done else 0.0,
        worst=worst / len(parent),
        best=best / len(parent),
    )


def sign_test(gains: int, losses: int) -> float:
    """Exact one-sided p-value of discordant pairs (McNemar): that many gains from fair coins."""
    if gains + losses == 0:
        return 1.0
    return float(binomtest(gains, gains + losses, 0.5, alternative="greater").pvalue)


def paired_interval(paired: Paired, families: Mapping[str, str]) -> Interval | None:
    """95 % interval of the difference by resampling families, then tasks within; seeded.

    None without a complete pair. A task that `families` does not name is a family of its own.
    """
    if not paired.task_ids:
        return None
    gains, losses = set(paired.gains), set(paired.losses)
    clusters: dict[str, list[int]] = {}
    for task_id in paired.task_ids:
        value = (task_id in gains) - (task_id in losses)
        clusters.setdefault(families.get(task_id, task_id), []).append(value)
    rows = [np.array(values, dtype=float)[:, None] for values in clusters.values()]
    return cluster_bootstrap(rows, lambda stacked: float(stacked.mean()))


def standard_error(differences: Sequence[float]) -> float:
    """Standard error of a mean of paired differences; 0 for fewer than two."""
    if len(differences) < 2:
        return 0.0
    return float(np.std(differences, ddof=1)) / sqrt(len(differences))

"""TestPrism scores with their intervals: pure functions over outcomes.

RAR = mean F, JSF = mean S, VAR and IRR average A and R over tasks with an observation,
H is the harmonic mean of the aggregates (TestPrism, page 2; H recomputed in every replicate).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from pydantic import Field
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from rsi.errors import UserError
from rsi.prism.outcome import Outcome, State
from rsi.wire import Record

REPLICATES = 2_000
DEGENERATE = 1e-12


class Interval(Record):
    """A confidence interval in the unit of its estimate and how it was made."""

    low: float
    high: float
    method: str
    confidence: float = 0.95


class Score(Record):
    """One figure that is never shown without its interval; `used` of `total` tasks went in."""

    name: str
    value: float | None
    interval: Interval | None
    used: int = Field(ge=0)
    total: int = Field(ge=0)

    def __str__(self) -> str:
        if self.value is None or self.interval is None:
            return f"n/a ({self.used}/{self.total})"
        low, high = 100 * self.interval.low, 100 * self.interval.high
        return f"{100 * self.value:.1f} % [{low:.1f}, {high:.1f}] ({self.used}/{self.total})"


class Difference(Record):
    """A paired difference B - A over tasks that both judged; gains are A wrong, B right."""

    name: str
    value: float
    interval: Interval
    gains: int
    losses: int
    p_value: float = Field(ge=0, le=1)
    tasks: int = Field(ge=1)


def wilson(successes: int, total: int, confidence: float = 0.95) -> Interval:
    """Wilson score interval of a proportion; 85 of 300 gives [0.235, 0.337]."""
    low, high = proportion_confint(successes, total, alpha=1 - confidence, method="wilson")
    return Interval(low=float(low), high=float(high), method="wilson", confidence=confidence)


def mcnemar_exact(gains: int, losses: int) -> float:
    """Two-sided exact p-value of discordant pairs; 1 when there are none."""
    return float(binomtest(gains, gains + losses, 0.5).pvalue) if gains + losses else 1.0


def harmonic(var: float, irr: float) -> float:
    """H = 2·VAR·IRR / (VAR + IRR), 0 when both are 0."""
    return 2 * var * irr / (var + irr) if var + irr else 0.0


def cluster_bootstrap(
    clusters: Sequence[np.ndarray],
    statistic: Callable[[np.ndarray], float],
    seed: int = 0,
    confidence: float = 0.95,
    floor: float = 0.0,
) -> Interval:
    """Percentile interval by resampling whole clusters, then rows within them.

    Each cluster is an array of rows (tasks) by columns (observables); `statistic` maps the
    stacked rows to one number, NaN when a replicate cannot give one; `floor` is the least that
    it can be (-1 for a difference).
    """
    rng = np.random.default_rng(seed)
    sizes = np.array([len(rows) for rows in clusters])
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    stacked = np.concatenate(clusters)
    values = np.empty(REPLICATES)
    for i in range(REPLICATES):
        chosen = rng.integers(len(sizes), size=len(sizes))
        spans = np.repeat(sizes[chosen], sizes[chosen])
        within = (rng.random(len(spans)) * spans).astype(int)
        values[i] = statistic(stacked[np.repeat(starts[chosen], sizes[chosen]) + within])
    tail = 100 * (1 - confidence) / 2
    low, high = (float(end) for end in np.nanpercentile(values, [tail, 100 - tail]))
    if high - low < DEGENERATE:
        return _without_spread(float(statistic(stacked)), len(sizes), confidence, floor)
    return Interval(low=low, high=high, method="cluster bootstrap", confidence=confidence)


def _without_spread(value: float, clusters: int, confidence: float, floor: float) -> Interval:
    """What clusters that all agree still leave open: Wilson's interval for none of `clusters`.

    Resampling equal values gives a width of zero, which would claim certainty.
    """
    open_share = wilson(0, clusters, confidence).high
    return Interval(
        low=max(value - open_share, floor),
        high=min(value + open_share, 1.0),
        method="wilson over clusters",
        confidence=confidence,
    )


def score(outcomes: Sequence[Outcome]) -> dict[str, Score]:
    """Score outcomes: rar, var, irr, h, jsf and the strict twins, each with its interval.

    Incomplete outcomes (INFRA) are left out and show in `used` of `total`. Proportions of
    independent tasks run once take Wilson's interval, all else the cluster bootstrap.
    """
    done = [o for o in outcomes if o.complete]
    clusters = _clusters(done)
    independent = len(clusters) == len(done)
    scores = {}
    for name, column in (("rar", 0), ("jsf", 1), ("rar_strict", 4), ("jsf_strict", 5)):
        scores[name] = _proportion(name, done, len(outcomes), clusters, column, independent)
    for name, column in (("var", 2), ("irr", 3)):
        scores[name] = _mean(name, clusters, len(outcomes), partial(_nanmean, column=column))
    scores["h"] = _mean("h", clusters, len(outcomes), _h)
    return scores


def compare(before: Sequence[Outcome], after: Sequence[Outcome], name: str = "rar") -> Difference:
    """Pair two sets of outcomes by task and give the difference after - before.

    Raises UserError when the two sets are not about the same tasks.
    """
    pick = {"rar": lambda o: o.f, "jsf": lambda o: o.s}[name]
    if sorted(o.task_id for o in before) != sorted(o.task_id for o in after):
        raise UserError(
            "cannot compare scores of different task sets; judge both on the same tasks"
        )
    a, b = _by_task(before), _by_task(after)
    shared = [t for t in sorted(a) if all(o.complete for o in (*a[t], *b[t]))]
    if not shared:
        raise UserError("cannot compare: no task has complete outcomes on both sides")
    delta = {t: _average(pick, b[t]) - _average(pick, a[t]) for t in shared}
    families: dict[str, list[float]] = {}
    for t in shared:
        families.setdefault(a[t][0].family, []).append(delta[t])
    rows = [np.array(values)[:, None] for values in families.values()]
    gains = sum(d > 0 for d in delta.values())
    losses = sum(d < 0 for d in delta.values())
    return Difference(
        name=name,
        value=float(np.mean(list(delta.values()))),
        interval=cluster_bootstrap(rows, lambda stacked: float(stacked.mean()), floor=-1.0),
        gains=gains,
        losses=losses,
        p_value=mcnemar_exact(gains, losses),
        tasks=len(shared),
    )


def states(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Count cells by state over all outcomes."""
    counts = dict.fromkeys((s.value for s in State), 0)
    for outcome in outcomes:
        for cell in outcome.cells:
            counts[cell.verdict.state.value] += 1
    return counts


def _observables(outcome: Outcome) -> list[float]:
    a, r = outcome.a, outcome.r
    return [
        outcome.f,
        outcome.s,
        np.nan if a is None else a,
        np.nan if r is None else r,
        outcome.f_strict,
        outcome.s_strict,
    ]


def _clusters(outcomes: Sequence[Outcome]) -> list[np.ndarray]:
    families: dict[str, list[list[float]]] = {}
    for outcome in outcomes:
        families.setdefault(outcome.family, []).append(_observables(outcome))
    return [np.array(rows, dtype=float) for rows in families.values()]


def _proportion(
    name: str,
    done: Sequence[Outcome],
    total: int,
    clusters: Sequence[np.ndarray],
    column: int,
    independent: bool,
) -> Score:
    if independent and done:
        hits = int(sum(rows[0, column] for rows in clusters))
        return Score(
            name=name,
            value=hits / len(done),
            interval=wilson(hits, len(done)),
            used=len(done),
            total=total,
        )
    return _mean(name, clusters, total, partial(_nanmean, column=column))


def _mean(
    name: str,
    clusters: Sequence[np.ndarray],
    total: int,
    statistic: Callable[[np.ndarray], float],
) -> Score:
    rows = np.concatenate(clusters) if clusters else np.empty((0, 6))
    value = statistic(rows)
    column = {"var": 2, "irr": 3, "h": 2}.get(name, 0)
    used = int((~np.isnan(rows[:, column])).sum())
    if np.isnan(value):
        return Score(name=name, value=None, interval=None, used=used, total=total)
    interval = cluster_bootstrap(clusters, statistic)
    return Score(name=name, value=value, interval=interval, used=used, total=total)


def _nanmean(rows: np.ndarray, column: int) -> float:
    values = rows[:, column][~np.isnan(rows[:, column])]
    return float(values.mean()) if len(values) else float("nan")


def _h(rows: np.ndarray) -> float:
    var, irr = _nanmean(rows, 2), _nanmean(rows, 3)
    return float("nan") if np.isnan(var) or np.isnan(irr) else harmonic(var, irr)


def _by_task(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    grouped: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        grouped.setdefault(outcome.task_id, []).append(outcome)
    return grouped


def _average(pick: Callable[[Outcome], float], outcomes: Sequence[Outcome]) -> float:
    return float(np.mean([pick(o) for o in outcomes]))

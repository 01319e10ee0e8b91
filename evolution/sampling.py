"""Which tasks are played when: seeded orders, families in proportion, trace tasks kept apart."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from rsi.digest import seed_of

FOLDS = 5
Listed = tuple[str, str]  # (task_id, family)


def balanced_order(tasks: Sequence[Listed], *seed_parts: object) -> tuple[Listed, ...]:
    """Shuffle tasks so that every prefix holds each family close to its overall share.

    Independent of the order of `tasks`; equal for equal seed parts in every process.
    """
    rng = Random(seed_of("order", *seed_parts))
    families: dict[str, list[str]] = {}
    for task_id, family in sorted(tasks):
        families.setdefault(family, []).append(task_id)
    placed: list[tuple[float, str, str]] = []
    for family in sorted(families):
        members = families[family]
        rng.shuffle(members)
        offset = rng.random()
        placed += [((k + offset) / len(members), t, family) for k, t in enumerate(members)]
    return tuple((task_id, family) for _, task_id, family in sorted(placed))


def split_folds(
    tasks: Sequence[Listed], *seed_parts: object
) -> tuple[tuple[Listed, ...], tuple[Listed, ...]]:
    """Part the training tasks into (trace tasks, compared tasks): one fold of five, and the rest.

    What a reflector reads never serves to judge what it wrote.
    """
    order = balanced_order(tasks, "folds", *seed_parts)
    return order[::FOLDS], tuple(t for n, t in enumerate(order) if n % FOLDS)


def fold_sizes(total: int) -> tuple[int, int]:
    """The sizes (trace, compared) that `split_folds` gives for a number of tasks."""
    trace = -(-total // FOLDS)
    return trace, total - trace


def screening_tasks(order: Sequence[Listed], count: int) -> tuple[Listed, ...]:
    """The head of a generation's order: at most `count` tasks."""
    return tuple(order[:count])


def promotion_tasks(order: Sequence[Listed], screened: int, count: int) -> tuple[Listed, ...]:
    """At most `count` tasks after the screened ones, then from the head again."""
    return tuple((*order[screened:], *order[:screened])[:count])

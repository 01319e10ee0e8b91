"""Choose the panel of one sibling: four valid, five invalid and the initial state."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rsi.digest import seed_of
from rsi.prism.corpus.candidates import Candidate
from rsi.prism.corpus.siblings import SEED, Calls, Sibling, mutation_check, value_check

VALID = 4
INVALID = 5
INITIAL_FAILS = (0.03, 0.55)
TWO_FAULTS_SHARE = 0.3


@dataclass(frozen=True)
class Chosen:
    """The members of one panel before they become records."""

    reference: Candidate
    valid: tuple[Candidate, ...]
    invalid: tuple[Candidate, ...]
    initial: Candidate


class PanelChooser:
    """Choose so that a suite right here is wrong on each sibling.

    `common` maps a sibling to the checks on which both references agree. A wrong program that
    fails none of those cannot be rejected by any suite which the sibling's reference passes.
    """

    def __init__(self, calls: Calls, common: Mapping[str, frozenset[str]], label: str) -> None:
        self.calls = calls
        self.common = common
        self.rng = random.Random(seed_of(SEED, label, "panel"))

    def choose(self, good: tuple[Candidate, ...], wrong: tuple[Candidate, ...]) -> Chosen | None:
        """Give a panel, or None when there are too few programs that differ."""
        others = list(good[1:])
        self.rng.shuffle(others)
        pool = list(wrong)
        self.rng.shuffle(pool)
        initial = self._initial(pool)
        if initial is None:
            return None
        invalid = self._invalid(pool, initial)
        if len(invalid) < INVALID or len(others) < VALID:
            return None
        self.rng.shuffle(invalid)
        return Chosen(good[0], tuple(others[:VALID]), tuple(invalid), initial)

    def separates(self, candidate: Candidate) -> frozenset[str]:
        """The siblings whose common checks this wrong program passes."""
        failed = candidate.failed_checks(self.calls)
        return frozenset(name for name, checks in self.common.items() if not failed & checks)

    def _initial(self, pool: list[Candidate]) -> Candidate | None:
        low, high = INITIAL_FAILS
        size = len(self.calls.pool)
        fit = [c for c in pool if low <= len(c.failed) / size <= high]
        fit = fit or [c for c in pool if 0 < len(c.failed) < size]
        double = [c for c in fit if c.origin.base == "slip" and c.origin.misread]
        double = [c for c in double if self._has_two_faults(c, pool)]
        single = [c for c in fit if not (c.origin.base == "slip" and c.origin.misread)]
        if double and (not single or self.rng.random() < TWO_FAULTS_SHARE):
            return double[0]
        return single[0] if single else None

    @staticmethod
    def _has_two_faults(candidate: Candidate, pool: list[Candidate]) -> bool:
        halves = [c for c in pool if c.origin.base == "algorithm" or not c.origin.misread]
        return all(c.behaviour != candidate.behaviour for c in halves)

    def _invalid(self, pool: list[Candidate], initial: Candidate) -> list[Candidate]:
        misreads = [c for c in pool if c.origin.base == "algorithm"]
        slips = [c for c in pool if c.origin.base == "slip" and not c.origin.misread]
        chosen: list[Candidate] = []
        open_siblings = set(self.common) - self.separates(initial)
        while misreads and open_siblings and len(chosen) < INVALID - 1:
            best = max(misreads, key=lambda c: len(self.separates(c) & open_siblings))
            if not self._add(chosen, [best], initial, strict=True):
                misreads.remove(best)
                continue
            open_siblings -= self.separates(best)
            misreads.remove(best)
        self._add(chosen, slips, initial, strict=True)
        rest = [c for c in pool if c.origin.base == "algorithm" or not c.origin.misread]
        for strict in (True, False):
            for candidate in rest:
                if len(chosen) < INVALID:
                    self._add(chosen, [candidate], initial, strict=strict)
        return chosen

    def _add(
        self, chosen: list[Candidate], offers: Iterable[Candidate], initial: Candidate, strict: bool
    ) -> bool:
        """Add the first offer unlike all members: in behaviour, and in failed checks if strict."""
        members = [*chosen, initial]
        for offer in offers:
            new = all(offer.source != m.source and offer.behaviour != m.behaviour for m in members)
            failed = offer.failed_checks(self.calls)
            if strict:
                new = new and all(failed != m.failed_checks(self.calls) for m in members)
            if new:
                chosen.append(offer)
                return True
        return False


def common_checks(one: Sibling, other: Sibling) -> frozenset[str]:
    """The checks of one sibling that the other's reference, renamed, passes, and conversely."""
    same = {
        value_check(i)
        for i in range(len(one.calls.checked))
        if other.want[i].agrees(one.want[i]) and one.want[i].agrees(other.want[i])
    }
    return frozenset(same | {mutation_check(i) for i in one.calls.mutations})


def confusable(
    wrong: Iterable[frozenset[str]], wrong_there: Iterable[frozenset[str]], common: frozenset[str]
) -> bool:
    """Tell whether some suite is right on both siblings, given what their wrong programs fail.

    All of `common` is the strongest suite that both references accept: it decides alone.
    """
    return all(failed & common for failed in (*wrong, *wrong_there))

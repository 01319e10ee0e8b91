"""Try edits on the suite and keep what passes; the program that the coder runs in the sandbox.

Arguments: program file, level, seed, tries, kinds to try first. Level 1 tries single edits
of expressions, level 2 edits of statements as well, higher levels combine edits. With `probe`
as the level it prints the results of the calls on standard input, and how many of the passing
repairs agree on each.
"""

from __future__ import annotations

import collections
import importlib
import itertools
import json
import os
import random
import signal
import sys
import time
from typing import Any

from workers.builtin_coder.search_expressions import Edit, Source
from workers.builtin_coder.search_statements import statement_edits

STATE = ".repair/passing.json"
# the best combinations so far, for the batches that go on from them
NEAR = ".repair/near.json"
KEPT, HELPING, BEAM = 300, 40, 8
# kinds that fit a single example too easily, tried last
LATE = ("Guard", "Prepare", "Delete")
HOPELESS = 10**6
ENOUGH = 6
# tries bound a batch, so that it ends the same on a busy machine; seconds only end what loops
MOST_SECONDS = 5.0
LOOP_TRIES = 20


class Search:
    def __init__(self, source: Source, test: Any, tries: int) -> None:
        self.source, self.test = source, test
        self.left = tries
        self.end = time.process_time() + MOST_SECONDS
        self.module = source.path[:-3].replace("/", ".")
        self.imported = [
            name
            for name, value in vars(test).items()
            if getattr(value, "__module__", "") == self.module
        ]
        self.passing: list[tuple[bytes, list[Edit]]] = []
        self.near: list[tuple[int, int, int, int, list[Edit]]] = []
        self.seen: set[bytes] = set()
        self.costs: dict[Edit, int] = {}
        self.most = HOPELESS

    def late(self) -> bool:
        return self.left <= 0 or time.process_time() > self.end

    def load(self, text: bytes) -> dict[str, Any]:
        """Run the program and let the tests see its names instead of the given program's."""
        names: dict[str, Any] = {"__name__": self.module}
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            exec(compile(text, self.source.path, "exec"), names)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        vars(self.test).update({name: names[name] for name in self.imported})
        return names

    def wrong(self, text: bytes) -> int:
        try:
            self.load(text)
            found = self.test.failures(self.most)
        except BaseException:
            return HOPELESS
        if any(x.endswith("got TimeoutError") for x in found):
            self.left -= LOOP_TRIES
            return HOPELESS
        return len(found)

    def cost(self, edits: list[Edit]) -> int:
        return len(edits) + sum(self.costs[e] // 100 for e in edits)

    def attempt(self, edits: list[Edit]) -> None:
        spans = sorted(e[:2] for e in edits)
        if any(p[1] > q[0] or p == q for p, q in itertools.pairwise(spans)):
            return
        text = self.source.apply(edits)
        if text in self.seen:
            return
        self.seen.add(text)
        self.left -= 1
        count = self.wrong(text)
        if not count:
            self.passing.append((text, edits))
        elif count <= self.most:
            self.near.append((count, len(edits), self.cost(edits), len(self.near), edits))

    def single(self) -> None:
        for edit in self.ordered():
            if self.late() or len(self.passing) >= ENOUGH:
                break
            self.attempt([edit])

    def keep(self) -> None:
        rows = [
            [n[0], [[a, b, new.decode()] for a, b, new in n[4]]] for n in sorted(self.near)[:KEPT]
        ]
        with open(NEAR, "w") as f:
            json.dump(rows, f)

    def recall(self) -> bool:
        """Take over the best that an earlier batch found."""
        if not os.path.exists(NEAR):
            return False
        with open(NEAR) as f:
            for count, rows in json.load(f):
                edits = [(a, b, text.encode()) for a, b, text in rows]
                if all(e in self.costs for e in edits):
                    self.near.append((count, len(edits), self.cost(edits), len(self.near), edits))
        return True

    def combined(self) -> None:
        """Add edits to the best so far: first those that help alone, then any."""
        ranked = sorted(self.near)
        helping = [n[4][0] for n in ranked if len(n[4]) == 1 and n[0] < self.most][:HELPING]
        for pool in (helping, self.ordered()):
            for first in sorted(self.near)[:BEAM]:
                for edit in pool:
                    if self.late() or len(self.passing) >= ENOUGH:
                        return
                    self.attempt([*first[4], edit])

    def ordered(self) -> list[Edit]:
        return sorted(self.costs, key=lambda e: self.costs[e])


def search(s: Search, level: int, seed: int, kinds: list[str]) -> None:
    found = list(s.source.expression_edits())
    if level > 1:
        found += statement_edits(s.source, literals(s.test), errors(s.test))
    random.Random(seed).shuffle(found)
    for kind, edit in found:
        rank = kinds.index(kind) if kind in kinds else len(kinds)
        s.costs.setdefault(edit, rank + 100 * (kind in LATE))
    start = s.wrong(s.source.text)
    s.most = start
    if start and not (level > 2 and s.recall()):
        s.single()
    if start and not s.passing and level > 2:
        s.combined()
    report(s, start)


def literals(test: Any) -> list[str]:
    shown = collections.Counter(repr(case[1]) for case in test.CASES if not case[2])
    short = [text for text, _ in shown.most_common(6) if len(text) < 9]
    return list(dict.fromkeys([*short, "None", "0", "[]", "''"]))


def errors(test: Any) -> list[str]:
    return sorted({case[2] for case in test.CASES if case[2]})


def report(s: Search, start: int) -> None:
    if not s.passing:
        best = min(s.near)[0] if s.near else start
        print("NO REPAIR tried:", len(s.seen), "failing:", start, "best:", min(best, start))
        return
    least = min(s.cost(edits) for _, edits in s.passing)
    kept = [p for p in s.passing if s.cost(p[1]) == least]
    text, edits = kept[0]
    with open(s.source.path, "wb") as f:
        f.write(text)
    with open(STATE, "w") as f:
        f.write(json.dumps([t.decode() for t, _ in kept]))
    for a, b, new in edits:
        print("EDIT", repr(s.source.text[a:b].decode())[:90], "->", repr(new.decode())[:90])
    print("REPAIRED", s.source.path, "passing:", len(kept), "tried:", len(s.seen))


def probe(s: Search) -> None:
    """Print what each call gives, and keep the repair that most others behave like."""
    texts = [s.source.text]
    if os.path.exists(STATE):
        with open(STATE) as f:
            texts = [t.encode() for t in json.load(f)]
    calls = sys.stdin.read().splitlines()
    rows = []
    for text in texts:
        names = s.load(text)
        rows.append([result(s.test, call, names) for call in calls])
    votes = collections.Counter(map(tuple, rows))
    best = max(range(len(rows)), key=lambda i: votes[tuple(rows[i])])
    with open(s.source.path, "wb") as f:
        f.write(texts[best])
    for i, call in enumerate(calls):
        agreeing = sum(row[i] == rows[best][i] for row in rows)
        print(call, "=>", rows[best][i], "#", agreeing, "of", len(rows))


def result(test: Any, call: str, names: dict[str, Any]) -> str:
    value, error = test.outcome(lambda: eval(call, names))
    return error or repr(value)


def main(path: str, level: str, seed: str = "0", tries: str = "500", kinds: str = "") -> None:
    sys.path[:0] = ["submission", "."]
    os.environ["TP_PROGRAM_ROOT"] = "."
    test: Any = importlib.import_module("test_requirement")
    test.LIMIT = 0.15
    signal.signal(signal.SIGALRM, test.late)
    s = Search(Source(path), test, int(tries))
    if level == "probe":
        probe(s)
    else:
        search(s, int(level), int(seed), kinds.split(","))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Try edits on the suite and keep what passes; the program that the coder runs in the sandbox.

Arguments: program file, seed, tries, kinds to try first. A run goes on where the one before it
ended. Once repairs pass, it prints the results of the calls on standard input, and how many of
the repairs agree on each.
"""

from __future__ import annotations

import collections
import marshal
import os
import random
import shutil
import sys
import time
import zlib
from typing import Any

from workers.builtin_coder.search_donors import donor_edits
from workers.builtin_coder.search_expressions import Edit
from workers.builtin_coder.search_statements import statement_edits
from workers.builtin_coder.search_trial import Late, Program, Trial

FOLDER = ".repair"
STATE = FOLDER + "/state"
# kinds that fit a single example too easily, tried last
LATE = ("Guard", "Prepare", "Delete")
# kinds with many edits, tried when nothing else is left
WIDE = ("Compared", "Replace", "Decide", "Join", "Copy", "Class")
# programs kept to go on from, alternatives that are enough, and tries spent on them
KEPT, ENOUGH, EXTRA = 40, 6, 150
# edits tried on one program before another may be more promising
BLOCK = 16
# tries bound a run, so that it ends the same on a busy machine; a loop costs many
LOOP_TRIES = 40
# far beyond what the tries take
MOST_SECONDS = 6.0


class Start:
    """A program to edit: its text, how many cases fail, edits so far and tried."""

    def __init__(self, text: bytes, wrong: int, cost: int, at: int = 0) -> None:
        self.text, self.wrong, self.cost, self.at = text, wrong, cost, at
        self.program: Program | None = None
        self.edits: list[tuple[int, Edit]] = []

    def row(self) -> tuple[bytes, int, int, int]:
        return self.text, self.wrong, self.cost, self.at


def codes_of(test: Any) -> list[Any]:
    """The code of each call of the suite."""
    return [case[0].__code__ for case in test.CASES]


class Search:
    def __init__(self, trial: Trial, text: bytes, seed: int, kinds: list[str]) -> None:
        self.trial, self.seed, self.kinds = trial, seed, kinds
        self.tried = self.extra = 0
        self.left = 0
        self.passing: list[tuple[bytes, int]] = []
        self.root = Start(text, 0, 0)
        self.starts = [self.root]
        self.known = {text}
        shown = "".join(repr([c.co_consts for c in codes_of(trial.test)]))
        self.characters = "".join(sorted({c for c in shown if c.isprintable() and c not in "'\""}))

    def open(self, start: Start) -> Program:
        """Work out what is needed to edit a program; not before it is its turn."""
        if start.program is None:
            start.program = program = Program(start.text, self.trial)
            start.wrong = len(program.wrong)
            found = list(program.source.expression_edits())
            found += statement_edits(program.source, *self.words())
            found += donor_edits(program.source, self.characters)
            random.Random(self.seed).shuffle(found)
            ranks: dict[Edit, int] = {}
            for kind, edit in found:
                rank = self.kinds.index(kind) if kind in self.kinds else len(self.kinds)
                ranks.setdefault(edit, rank + 100 * (kind in LATE) + 150 * (kind in WIDE))
            start.edits = sorted(((r, e) for e, r in ranks.items()), key=lambda x: x[0])
        return start.program

    def words(self) -> tuple[list[str], list[str]]:
        """Results and errors that the suite expects, to be used in edits."""
        cases = self.trial.test.CASES
        shown = collections.Counter(repr(case[1]) for case in cases if not case[2])
        short = [text for text, _ in shown.most_common(6) if len(text) < 9]
        values = list(dict.fromkeys([*short, "None", "0", "[]", "''"]))
        return values, sorted({case[2] for case in cases if case[2]})

    def promise(self, start: Start) -> float:
        """Less is better: few failing cases, few edits, and not many edits tried in vain."""
        return start.wrong / self.root.wrong + start.at / 400 + start.cost / 20

    def go_on(self, tries: int) -> None:
        self.left = tries
        end = time.process_time() + MOST_SECONDS
        while self.starts and time.process_time() < end:
            if self.passing:
                if len(self.passing) >= ENOUGH or self.extra >= EXTRA:
                    break
            elif self.left <= 0:
                break
            self.step(self.starts[0])

    def step(self, start: Start) -> None:
        """Try the next edit of a program; what it betters is a new program to go on from."""
        program = self.open(start)
        if start.at >= len(start.edits):
            self.starts.remove(start)
            self.starts.sort(key=self.promise)
            return
        rank, edit = start.edits[start.at]
        start.at += 1
        failing, passing = program.touched(edit)
        if failing:
            self.attempt(start, program, (rank, edit), failing, passing)
        if start.at % BLOCK == 0 and not self.passing:
            self.starts.sort(key=self.promise)

    def attempt(
        self, start: Start, program: Program, ranked: Any, failing: list[int], passing: list[int]
    ) -> None:
        rank, edit = ranked
        self.tried += 1
        self.left -= 1
        self.extra += bool(self.passing)
        try:
            count = program.judge(edit, failing, passing)
        except Late:
            self.left -= LOOP_TRIES
            self.extra += LOOP_TRIES * bool(self.passing)
            return
        if count is None:
            return
        text, cost = program.source.apply([edit]), start.cost + 1 + rank // 100
        if text in self.known:
            return
        self.known.add(text)
        if not count:
            self.passing.append((text, cost))
        elif not self.passing:
            self.starts.append(Start(text, count, cost))
            self.starts.sort(key=self.promise)
            del self.starts[KEPT:]

    def keep(self, mark: int) -> None:
        rows = [start.row() for start in self.starts]
        with open(STATE, "wb") as f:
            marshal.dump((mark, self.tried, self.root.wrong, rows, list(self.known)), f)

    def recall(self, mark: int) -> None:
        """Go on where an earlier run on the same program and suite ended."""
        if not os.path.exists(STATE):
            return
        with open(STATE, "rb") as f:
            found, tried, wrong, rows, known = marshal.load(f)
        if found == mark:
            self.tried, self.root.wrong, self.known = tried, wrong, set(known)
            self.starts = [Start(*row) for row in rows]


def report(s: Search, path: str) -> None:
    """Write the repair that most others behave like, and say what each call gives."""
    least = min(cost for _, cost in s.passing)
    texts = [text for text, cost in s.passing if cost == least]
    calls = sys.stdin.read().splitlines()
    rows = []
    for text in texts:
        names = s.trial.load([compile(text, path, "exec")])
        rows.append([result(s.trial, call, names) for call in calls])
    votes = collections.Counter(map(tuple, rows))
    best = max(range(len(rows)), key=lambda i: votes[tuple(rows[i])])
    with open(path, "wb") as f:
        f.write(texts[best])
    print("REPAIRED", path, "passing:", len(texts), "tried:", s.tried)
    for i, call in enumerate(calls):
        agreeing = sum(row[i] == rows[best][i] for row in rows)
        print(call, "=>", rows[best][i], "#", agreeing, "of", len(rows))


def result(trial: Trial, call: str, names: dict[str, Any]) -> str:
    try:
        trial.arm(0.1)
        return repr(eval(call, names))
    except Late:
        return "TimeoutError"
    except Exception as e:
        return type(e).__name__
    finally:
        trial.arm(0)


def main(path: str, seed: str, tries: str, kinds: str = "") -> None:
    sys.path[:0] = ["submission", "."]
    os.environ["TP_PROGRAM_ROOT"] = "."
    test: Any = __import__("test_requirement")
    with open(path, "rb") as f:
        text = f.read()
    with open(test.__file__, "rb") as f:
        mark = zlib.crc32(text + f.read() + (seed + kinds).encode())
    s = Search(Trial(test, path), text, int(seed), kinds.split(","))
    s.recall(mark)
    start = s.root.wrong or len(s.open(s.root).wrong)
    if start:
        s.go_on(int(tries))
    if s.passing:
        report(s, path)
    else:
        best = min([start, *(x.wrong for x in s.starts)])
        print("NO REPAIR tried:", s.tried, "failing:", start, "best:", best, "open:", len(s.starts))
    if s.passing or not s.starts or not start:
        shutil.rmtree(FOLDER)
    else:
        s.keep(mark)


if __name__ == "__main__":
    main(*sys.argv[1:])

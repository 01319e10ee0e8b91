"""Programs tried on the cases of the suite; part of the search program that runs in the sandbox."""

from __future__ import annotations

import ast
import signal
import sys
from typing import Any

from workers.builtin_coder.search_expressions import Edit, Source

# processor time after which one try counts as a loop; a usual one takes a hundredth of it
LOOP_S = 0.01


class Late(BaseException):
    """A try ran for too long; nothing in a program that catches exceptions stops it."""


class Trial:
    """Runs programs in the place of the module that the suite imports."""

    def __init__(self, test: Any, path: str) -> None:
        self.test, self.path = test, path
        self.module = path[:-3].replace("/", ".")
        self.imported = [
            name
            for name, value in vars(test).items()
            if getattr(value, "__module__", "") == self.module
        ]
        self.armed = False
        signal.signal(signal.SIGVTALRM, self.ring)

    def ring(self, *_: Any) -> None:
        if self.armed:
            self.armed = False
            raise Late

    def arm(self, seconds: float) -> None:
        """Set the one timer of a try by the processor time that this process uses."""
        self.armed = seconds > 0
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)

    def load(self, codes: list[Any]) -> dict[str, Any]:
        """Run a program and let the tests see its names instead of the given program's."""
        names: dict[str, Any] = {"__name__": self.module}
        for code in codes:
            exec(code, names)
        vars(self.test).update({name: names[name] for name in self.imported})
        return names

    def right(self, case: Any) -> bool:
        call, expected, error, _ = case
        try:
            value = call()
        except Exception as e:
            return bool(type(e).__name__ == error)
        return not error and bool(self.test.same(value, expected))


class Program:
    """A program to start from: what fails, and which cases reach which lines."""

    def __init__(self, text: bytes, trial: Trial) -> None:
        self.source, self.trial = Source(text), trial
        self.wrong: list[int] = []
        self.loops: set[int] = set()
        self.reached: list[set[int]] = []
        self.parts = []
        for n in self.source.tree.body:
            first = min([n, *getattr(n, "decorator_list", [])], key=lambda x: x.lineno)
            self.parts.append((self.source.starts[first.lineno - 1], self.source.span(n)[1]))
        self.plain = b"__future__" not in text and b";" not in text
        self.codes = [self.compiled(text[a:b]) for a, b in self.parts] if self.plain else []
        self.whole = self.compiled(text)
        self.observe()
        self.lines = self.statements()

    def compiled(self, text: bytes) -> Any:
        return compile(text, self.trial.path, "exec", dont_inherit=True)

    def observe(self) -> None:
        """Run every case once, noting the lines that it reaches."""
        trial, lines = self.trial, set()

        def note(frame: Any, event: str, _: Any) -> Any:
            if frame.f_code.co_filename != trial.path:
                return None
            lines.add(frame.f_lineno)
            return note

        trial.load([self.whole])
        for i, case in enumerate(trial.test.CASES):
            lines = set()
            try:
                trial.arm(LOOP_S * 4)
                sys.settrace(note)
                good = trial.right(case)
            except Late:
                good = False
                self.loops.add(i)
            finally:
                sys.settrace(None)
                trial.arm(0)
            self.reached.append(lines)
            if not good:
                self.wrong.append(i)
        self.wrong.sort(key=lambda i: i in self.loops)

    def statements(self) -> dict[int, tuple[int, int]]:
        """The lines of the innermost statement at each line inside a function."""
        lines: dict[int, tuple[int, int]] = {}
        for f in ast.walk(self.source.tree):
            if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for part in f.body:
                    for n in ast.walk(part):
                        if isinstance(n, ast.stmt):
                            own = (n.lineno, n.end_lineno or n.lineno)
                            lines.update(dict.fromkeys(range(own[0], own[1] + 1), own))
        return lines

    def touched(self, edit: Edit) -> tuple[list[int], list[int]]:
        """Failing and passing cases that an edit can change: those that reach its statement."""
        first = self.source.text.count(b"\n", 0, edit[0]) + 1
        last = first + self.source.text.count(b"\n", edit[0], edit[1])
        ranges = [self.lines.get(line) for line in range(first, last + 1)]
        every = range(len(self.reached))
        if None in ranges:
            hit = set(every)
        else:
            near = {n for r in ranges if r for n in range(r[0], r[1] + 1)}
            hit = {i for i in every if not near.isdisjoint(self.reached[i])}
        failing = set(self.wrong)
        return [i for i in self.wrong if i in hit], [i for i in every if i in hit - failing]

    def edited(self, edit: Edit) -> list[Any]:
        """Code of the program with an edit; only the part that it changes is compiled."""
        for k, (a, b) in enumerate(self.parts if self.plain else []):
            if a <= edit[0] and edit[1] <= b:
                text = self.source.text
                part = text[a : edit[0]] + edit[2] + text[edit[1] : b]
                return [*self.codes[:k], self.compiled(part), *self.codes[k + 1 :]]
        return [self.compiled(self.source.apply([edit]))]

    def judge(self, edit: Edit, failing: list[int], passing: list[int]) -> int | None:
        """How many cases fail after an edit; None unless fewer do. Raises Late for a loop."""
        trial, cases, mended, broken = self.trial, self.trial.test.CASES, 0, 0
        try:
            codes = self.edited(edit)
            trial.arm(LOOP_S)
            trial.load(codes)
            for i in failing:
                if i in self.loops and not mended and i != failing[0]:
                    break
                mended += trial.right(cases[i])
            for i in passing if mended else ():
                broken += not trial.right(cases[i])
                if broken >= mended:
                    return None
        except Late:
            raise
        except BaseException:
            return None
        finally:
            trial.arm(0)
        return len(self.wrong) - mended + broken if mended else None

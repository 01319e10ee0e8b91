"""The coder at work in its workspace: which tool calls come next, from what it can see."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workers.builtin_coder.boundaries import boundary_calls
from workers.builtin_coder.check import Check
from workers.builtin_coder.conversation import Conversation, head_lines, is_cut
from workers.builtin_coder.examples import read_examples
from workers.builtin_coder.flavour import Flavour
from workers.builtin_coder.notation import called_names, equal_values, is_value, normal
from workers.builtin_coder.prose import untouched_arguments
from workers.builtin_coder.scripts import SEARCH_PATH, change_rows, search_text
from workers.builtin_coder.suite_text import (
    ENTRY_TEXT,
    TEST_FILE,
    read_suite,
    row_of,
    write_suite,
)

Action = tuple[str, dict[str, Any]]
SUITE_PATH = f"submission/{TEST_FILE}"
ENTRY_PATH = "submission/run_tests.sh"
RUN_SUITE = f"sh {ENTRY_PATH}"
# one order of sets and dicts, so that a search goes the same way again
_SEARCH = f"PYTHONHASHSEED=0 python3 -BWignore {SEARCH_PATH}"
MOST_PARTS = 5
# edits tried by one search, the next one going on from there: few at first, more after many
FIRST_TRIES, LATER_TRIES, FIRST_SEARCHES = 35, 150, 9
_ORDERS = {
    "operators": "Compare,Constant,BinOp,Test,BoolOp,UnaryOp,Subscript,AugAssign,Call",
    "calls": "Call,Subscript,BoolOp,Test,Compare,Guard,Constant,Name",
    "shuffled": "",
}


@dataclass(frozen=True)
class Author:
    """One step of writing, repairing and revising; a function of the conversation and the seed."""

    seen: Conversation
    flavour: Flavour
    seed: int
    room: int

    def act(self) -> list[Action]:
        """Choose the next tool calls; the last resort is to submit what there is."""
        if not self.written:
            return self._read_next() or self._first_suite()
        if self.seen.kind == "Revise" and self.seen.turns[-1].stage < self.seen.stage:
            return self._revise()
        return self._mend()

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Program files that the brief or a listing names."""
        named = re.findall(r"^- `([^`\n]+)`\s*$", self.seen.requirement, re.MULTILINE)
        paths = [p for p in (*named, *self.seen.listed) if not p.startswith("submission/")]
        return tuple(dict.fromkeys(paths))

    @cached_property
    def programs(self) -> tuple[str, ...]:
        paths = [p for p in self.files if p.endswith(".py")]
        return tuple(p for p in paths if not re.search(r"(^|/)(test_|conftest|setup\.py)", p))

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Checks of the suite as last written, else those that the visible text states."""
        for text in self._suite_texts:
            if found := read_suite(text):
                return found
        return self._stated

    @cached_property
    def _stated(self) -> tuple[Check, ...]:
        examples = read_examples(self.seen.evidence, self.seen.definitions)
        return (*examples, *untouched_arguments(self.seen.requirement, examples))

    @cached_property
    def _suite_texts(self) -> list[str]:
        """Visible texts of the suite, newest first."""
        texts = []
        for turn in reversed(self.seen.turns):
            if turn.path == SUITE_PATH and turn.tool in ("write_file", "read_file"):
                texts.append(str(turn.arguments.get("content", "")) or turn.result)
        return texts

    @property
    def written(self) -> bool:
        return any(t.tool == "write_file" and t.path == SUITE_PATH for t in self.seen.turns)

    @cached_property
    def target(self) -> str:
        """The program file to mend: the one that defines what most checks call."""
        paths = [
            self.seen.definitions[name]
            for check in self.checks
            for name in called_names(check.call)
            if name in self.seen.definitions
        ]
        if paths:
            return max(dict.fromkeys(paths), key=paths.count)
        return self.programs[0] if self.programs else "solution.py"

    def _read_next(self) -> list[Action]:
        if not self.files and not any(t.tool == "list_files" for t in self.seen.turns):
            return [("list_files", {})]
        documents = [p for p in self.files if p.endswith((".md", ".txt", ".rst"))]
        wanted = [*self.programs[:3], *documents[:2]]
        for path in wanted:
            if not self.seen.reads(path):
                return [("read_file", {"path": path})]
        return self._read_part(documents[:2], self.flavour.parts)

    def _read_part(self, documents: list[str], most: int) -> list[Action]:
        """Ask for the next unseen lines of a document whose text came back cut."""
        for path in documents:
            whole, *_ = self.seen.reads(path) or [""]
            taken = self.seen.parts(path)
            if not is_cut(whole) or len(taken) >= most:
                continue
            if taken:
                first, last, shown = taken[-1]
                if not is_cut(shown) and shown.count("\n") < (last - first) // 2:
                    continue
                start, size = last + 1, last - first + 1
            else:
                start = max(head_lines(whole), 1)
                size = max(whole.count("\n") * 9 // 10 - 2, 12)
            return [("run", {"command": f"sed -n '{start},{start + size - 1}p' {path}"})]
        return []

    def _first_suite(self) -> list[Action]:
        """Without a single example there is nothing to test by."""
        if not self.checks:
            return [("submit", {})]
        return self._with_search(self._write(self.checks), self.checks)

    def _write(self, checks: tuple[Check, ...]) -> list[Action]:
        modules = {name: _dotted(path) for name, path in self.seen.definitions.items()}
        content = write_suite(checks, modules, _dotted(self.target), self.room - 400)
        actions: list[Action] = [("write_file", {"path": SUITE_PATH, "content": content})]
        if not any(turn.path == ENTRY_PATH for turn in self.seen.turns):
            actions.append(("write_file", {"path": ENTRY_PATH, "content": ENTRY_TEXT}))
        return actions

    def _mend(self) -> list[Action]:
        """Search until the suite passes, then add derived checks and hand in."""
        newest = self.seen.turns[-1]
        if newest.tool == "write_file":
            return self._search()
        if newest.command.startswith("python3 -c"):
            return self._search()
        if newest.command.startswith("sed -n"):
            return self._take_over(newest.result)
        if "\nREPAIRED " in newest.result:
            return [*self._extend(newest.result), *self._hand_in()]
        if re.search(r"NO REPAIR tried: \d+ failing: 0 ", newest.result):
            return self._look_further()
        if newest.command.startswith(RUN_SUITE) and "exit status 0" in newest.result:
            return [("submit", {})]
        if " open: 0" in newest.result or (newest.tool == "submit" and self._exhausted):
            return [("submit", {})]
        return self._search()

    @property
    def _exhausted(self) -> bool:
        """Whether the last search had nothing left to try."""
        results = [t.result for t in self.seen.turns if SEARCH_PATH in t.command]
        return bool(results) and " open: 0" in results[-1]

    @property
    def _sent(self) -> bool:
        """Whether the search program lies in the workspace; it goes with its last result."""
        last = ""
        for turn in self.seen.turns:
            if turn.tool == "write_file" and turn.path == SEARCH_PATH:
                last = "sent"
            elif SEARCH_PATH in turn.command and last:
                last = turn.result
        gone = r"REPAIRED|failing: 0 | open: 0|can't open file|No such file"
        return bool(last) and not re.search(gone, last)

    def _with_search(self, first: list[Action], checks: tuple[Check, ...]) -> list[Action]:
        """Search in the same reply, when it has room for both."""
        both = [*first, *self._search(checks)]
        return both if sum(len(str(given)) + 60 for _, given in both) < self.room else first

    def _search(self, checks: tuple[Check, ...] = ()) -> list[Action]:
        """Send the search program where it is missing and run it with inputs for derived checks."""
        actions: list[Action] = []
        if not self._sent or self.seen.kind == "Revise":
            actions.append(("write_file", {"path": SEARCH_PATH, "content": search_text()}))
        order = _ORDERS[self.flavour.order]
        earlier = sum(SEARCH_PATH in turn.command for turn in self.seen.turns)
        tries = FIRST_TRIES if earlier < FIRST_SEARCHES else LATER_TRIES
        words = [_SEARCH, self.target, self.seed_of_order, tries, order]
        command = " ".join(map(str, words)).strip()
        calls = boundary_calls(
            checks or self.checks,
            self.flavour.boundaries,
            self.flavour.wide,
            self.seed_of_order,
        )
        lines = "\n".join(calls)
        return [*actions, ("run", {"command": f"{command} <<'END'\n{lines}\nEND"})]

    @property
    def seed_of_order(self) -> int:
        """One number for all searches of a conversation: the first search's, else the seed's."""
        for turn in self.seen.turns:
            if found := re.search(rf"{re.escape(SEARCH_PATH)} \S+ (\d+) ", turn.command):
                return int(found.group(1))
        return self.seed % 997

    def _look_further(self) -> list[Action]:
        """The suite accepts the program as given: look for examples that were cut off."""
        documents = [p for p in self.files if p.endswith((".md", ".txt", ".rst"))]
        return self._read_part(documents[:2], MOST_PARTS) or [("submit", {})]

    def _take_over(self, part: str) -> list[Action]:
        """Add the examples of a part that was read after the suite was written."""
        known = {check.key for text in self._suite_texts for check in read_suite(text)}
        names = {name for check in self.checks for name in called_names(check.call)}
        read = read_examples(part, self.seen.definitions or names)
        fresh = [check for check in read if check.key not in known]
        return (
            self._with_search([self._change([], fresh)], (*self.checks, *fresh))
            if fresh
            else self._look_further()
        )

    def _extend(self, result: str) -> list[Action]:
        """Add the results on which enough different repairs agree."""
        derived = []
        for line in result.splitlines():
            match = re.match(r"^(.+?) => (.+) # (\d+) of (\d+)$", line)
            if not match or not is_value(match.group(2)):
                continue
            agreeing, repairs = int(match.group(3)), int(match.group(4))
            if agreeing == repairs and agreeing >= self.flavour.agreement:
                derived.append(Check(match.group(1), match.group(2), stated=False))
        return [self._change([], derived)] if derived else []

    def _change(self, dropped: list[str], added: list[Check]) -> Action:
        rows = [row_of(check) for check in added]
        return "run", {"command": change_rows(SUITE_PATH, dropped, rows)}

    def _hand_in(self) -> list[Action]:
        """Submit, after a look at what the suite says where that is the habit."""
        if self.flavour.rerun:
            return [("run", {"command": RUN_SUITE})]
        return [("submit", {})]

    def _revise(self) -> list[Action]:
        """Drop the checks that reviews refute, take over what they support, search again."""
        stated = {check.key: check for check in self._stated}
        dropped: list[str] = []
        added: list[Check] = []
        for fault, call, expected in complaints(self.seen.brief):
            own = stated.get(((), normal(call)))
            if fault == "suite" and (own is None or not equal_values(own.wanted, expected)):
                dropped.append(normal(call))
            elif fault == "repair" and is_value(expected) and called_names(call):
                supported = own is None or equal_values(own.expected, expected)
                added.extend([Check(call, expected)] if supported else [])
        if not dropped and not added:
            return [("submit", {})]
        calls = [*dropped, *(normal(check.call) for check in added)]
        change = self._change(calls, added)
        if not added:
            return [change, ("submit", {})]
        return self._with_search([change], (*self.checks, *added))


def complaints(brief: str) -> list[tuple[str, str, str]]:
    """Read the findings of a revision brief: what is at fault, the input, the expected result."""
    found = []
    for section in re.split(r"^## Fault in the ", brief, flags=re.MULTILINE)[1:]:
        call = re.search(r"^- Input: (.*)$", section, re.MULTILINE)
        expected = re.search(r"^- Expected: (.*)$", section, re.MULTILINE)
        if call and expected:
            found.append((section.split("\n", 1)[0].strip(), call.group(1), expected.group(1)))
    return found


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

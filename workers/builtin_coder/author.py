"""The coder at work in its workspace: which tool calls come next, from what it can see."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workers.builtin_coder.boundaries import boundary_calls
from workers.builtin_coder.check import Check
from workers.builtin_coder.conversation import Conversation, Turn, is_cut
from workers.builtin_coder.examples import read_examples
from workers.builtin_coder.flavour import Flavour
from workers.builtin_coder.notation import called_names, equal_values, is_value, normal
from workers.builtin_coder.scripts import SEARCH_PATH, search_text
from workers.builtin_coder.suite_text import ENTRY_TEXT, TEST_FILE, read_suite, write_suite

Action = tuple[str, dict[str, Any]]
SUITE_PATH = f"submission/{TEST_FILE}"
ENTRY_PATH = "submission/run_tests.sh"
RUN_SUITE = f"sh {ENTRY_PATH}"
MAX_SEARCHES = 5
# CPU seconds of the search batches in order; later ones go further
BATCH_SECONDS = (0.3, 0.5, 0.7, 0.8, 0.8, 1.0)
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
        if self._lost:
            return [("read_file", {"path": SUITE_PATH})]
        if self.seen.kind == "Revise" and not self._wrote_since(self.seen.stage):
            return self._write(self._revised()) + self._search_actions(0)
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
        return read_examples(self.seen.evidence, self.seen.definitions)

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

    @property
    def _lost(self) -> bool:
        """The suite was written but its text is no longer visible, and it was not read again."""
        if any(read_suite(text) for text in self._suite_texts):
            return False
        last = self.seen.turns[-1]
        return not (last.tool == "read_file" and last.path == SUITE_PATH)

    def _wrote_since(self, stage: int) -> bool:
        return any(t.path == SUITE_PATH and t.stage >= stage for t in self.seen.turns)

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
            whole, *parts = self.seen.reads(path) or [""]
            if not is_cut(whole) or len(parts) >= most:
                continue
            head = re.split(r"\n\[", whole, maxsplit=1)[0].count("\n")
            size = max(whole.count("\n") - 2, 4)
            start = max(head, 1) + size * len(parts)
            if parts and len(parts[-1].splitlines()) < min(size, 3):
                continue
            return [("run", {"command": f"sed -n '{start},{start + size - 1}p' {path}"})]
        return []

    def _first_suite(self) -> list[Action]:
        """Without a single example there is nothing to test by."""
        return self._write(self.checks) if self.checks else [("submit", {})]

    def _write(self, checks: tuple[Check, ...]) -> list[Action]:
        modules = {name: _dotted(path) for name, path in self.seen.definitions.items()}
        content = write_suite(checks, modules, _dotted(self.target), self.room - 400)
        actions: list[Action] = [("write_file", {"path": SUITE_PATH, "content": content})]
        if not any(turn.path == ENTRY_PATH for turn in self.seen.turns):
            actions.append(("write_file", {"path": ENTRY_PATH, "content": ENTRY_TEXT}))
        return actions

    @cached_property
    def _searches(self) -> list[Turn]:
        return [
            t
            for t in self.seen.turns
            if t.tool == "run" and SEARCH_PATH in t.command and " probe" not in t.command
        ]

    @cached_property
    def _last_run(self) -> Turn | None:
        runs = [t for t in self.seen.turns if t.tool == "run" and "sed -n" not in t.command]
        return runs[-1] if runs else None

    def _mend(self) -> list[Action]:
        """Search until the suite passes, then add derived checks, then hand in."""
        last = self._last_run
        fresh = self.seen.turns[-1].path in (SUITE_PATH, ENTRY_PATH)
        if last is None or (fresh and not self._finished):
            return self._search_actions(len(self._searches))
        if "NO REPAIR" in last.result and re.search(r"failing: 0 ", last.result):
            return self._look_further()
        if "REPAIRED" in last.result:
            return self._probe() or self._hand_in()
        if " probe" in last.command:
            return self._extend(last.result) if not self._finished else self._hand_in()
        if last.command.startswith(RUN_SUITE) and "exit status 0" in last.result:
            return [("submit", {})]
        if len(self._searches) >= MAX_SEARCHES + 2 * (self.seen.stage - 1):
            return [("submit", {})]
        return self._search_actions(len(self._searches))

    @property
    def _finished(self) -> bool:
        """The suite was extended after the last probe."""
        probes = [i for i, t in enumerate(self.seen.turns) if " probe" in t.command]
        writes = [i for i, t in enumerate(self.seen.turns) if t.path == SUITE_PATH]
        return bool(probes and writes and writes[-1] > probes[-1])

    def _search_actions(self, batch: int) -> list[Action]:
        level = min(batch + 1, 4)
        actions: list[Action] = []
        if batch in (0, 1) or "can't open file" in (
            self._last_run.result if self._last_run else ""
        ):
            text = search_text(statements=batch > 0)
            actions.append(("write_file", {"path": SEARCH_PATH, "content": text}))
        seconds = BATCH_SECONDS[min(batch, len(BATCH_SECONDS) - 1)]
        order = _ORDERS[self.flavour.order]
        command = (
            f"python3 -BWignore {SEARCH_PATH} {self.target} {level} {self.seed % 997} {seconds}"
        )
        return [*actions, ("run", {"command": f"{command} {order}".strip()})]

    def _look_further(self) -> list[Action]:
        """The suite accepts the program as given: look for examples that were cut off."""
        documents = [p for p in self.files if p.endswith((".md", ".txt", ".rst"))][:2]
        fresh = [c for c in self._stated if c.key not in {k.key for k in self.checks}]
        if fresh:
            return self._write((*self.checks, *fresh)) + self._search_actions(0)
        return self._read_part(documents, 4) or [("submit", {})]

    def _probe(self) -> list[Action]:
        calls = boundary_calls(self.checks, self.flavour.boundaries, self.flavour.wide, self.seed)
        if not calls or any(not c.stated for c in self.checks):
            return []
        lines = "\n".join(calls)
        command = f"python3 -BWignore {SEARCH_PATH} {self.target} probe <<'END'\n{lines}\nEND"
        return [("run", {"command": f"{command}\nrm -rf .repair"})]

    def _extend(self, result: str) -> list[Action]:
        derived = []
        for line in result.splitlines():
            match = re.match(r"^(.+?) => (.+) # (\d+) of (\d+)$", line)
            if not match or not is_value(match.group(2)):
                continue
            agreeing, repairs = int(match.group(3)), int(match.group(4))
            if agreeing == repairs and agreeing >= self.flavour.agreement:
                derived.append(Check(match.group(1), match.group(2), stated=False))
        return self._write((*self.checks, *derived)) if derived else self._hand_in()

    def _hand_in(self) -> list[Action]:
        ran = self.seen.turns[-1].command.startswith(RUN_SUITE)
        if self.flavour.rerun and not ran:
            return [("run", {"command": f"{RUN_SUITE}; s=$?; rm -rf .repair; exit $s"})]
        return [("submit", {})]

    def _revised(self) -> tuple[Check, ...]:
        """Checks after the complaints: wrong ones go, the reviewer's supported ones come in."""
        checks = list(self.checks)
        stated = {check.key: check for check in self._stated}
        for fault, call, expected in complaints(self.seen.brief):
            key = ((), normal(call))
            own = stated.get(key)
            if fault == "suite":
                kept = own is not None
                checks = [c for c in checks if c.key != key or (kept and own and c.agrees(own))]
            elif is_value(expected) and called_names(call):
                supported = own is None or equal_values(own.expected, expected)
                if supported and all(c.key != key for c in checks):
                    checks.append(Check(call, expected))
        return tuple(checks)


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

"""The embedded corpus: what a reader may rely on in every kata task and its hidden panel."""

from __future__ import annotations

import ast
import random
import re
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, permutations
from typing import Any

import pytest

from rsi.prism.corpus import load_families, load_kata
from rsi.prism.corpus.labels import read_labels
from rsi.prism.panel import Implementation, Panel
from rsi.prism.task import SPLITS, Task

Pair = tuple[Task, Panel]
IDS = ["b", "g", "v1", "v2", "v3", "v4", "i1", "i2", "i3", "i4", "i5"]


@pytest.fixture(scope="module")
def kata() -> list[Pair]:
    return load_kata()


@pytest.fixture(scope="module")
def evidence() -> dict[str, Any]:
    return {label["task_id"]: label for label in read_labels()["tasks"]}


@cache
def families() -> dict[str, list[Pair]]:
    found: dict[str, list[Pair]] = {}
    for task, panel in load_kata():
        found.setdefault(task.family, []).append((task, panel))
    return found


def entry_point(task: Task) -> str:
    found = re.search(r"The module is `solution.py`; the function is `(\w+)`\.", task.instruction)
    assert found is not None
    return found[1]


def member(panel: Panel, member_id: str) -> Implementation:
    return next(i for i in panel.implementations if i.implementation_id == member_id)


def wrong(panel: Panel) -> dict[str, frozenset[str]]:
    kept = [i for i in panel.implementations if i.kind in ("initial", "invalid")]
    return {i.implementation_id: frozenset(i.failed_checks) for i in kept}


def solution(implementation: Implementation) -> types.ModuleType:
    module = types.ModuleType("solution")
    exec(implementation.program.text("solution.py"), module.__dict__)
    return module


def failures(panel: Panel, module: types.ModuleType) -> list[str]:
    """Run a panel's checks the way a verifier does: prelude first, then each check."""
    before = sys.modules.get("solution")
    sys.modules["solution"] = module
    try:
        names: dict[str, Any] = {}
        exec(panel.prelude, names)
    finally:
        del sys.modules["solution"]
        if before is not None:
            sys.modules["solution"] = before
    failed = []
    for check_id, code in _compiled(panel):
        try:
            exec(code, names)
        except Exception:
            failed.append(check_id)
    return failed


_CODE: dict[str, list[tuple[str, types.CodeType]]] = {}


def _compiled(panel: Panel) -> list[tuple[str, types.CodeType]]:
    if panel.task_id not in _CODE:
        checks = panel.checks
        _CODE[panel.task_id] = [(c.check_id, compile(c.code, c.check_id, "exec")) for c in checks]
    return _CODE[panel.task_id]


def examples_in(text: str) -> Iterator[tuple[str, str, bool]]:
    """Read (call, value or error name, whether it is an error) in any of the notations."""
    lines = text.splitlines()
    for line, after, third in zip(lines, [*lines[1:], ""], [*lines[2:], "", ""], strict=False):
        cell = re.fullmatch(r"(?:\| |- )`(.+?\))` (?:\| |-> )?(raises )?`(.+)`(?: \|)?", line)
        if line.startswith(">>> ") and "import" not in line:
            if after.startswith("Traceback"):
                yield line[4:], lines[lines.index(third) + 1].split(":")[0], True
            else:
                yield line[4:], after.removeprefix("raises "), after.startswith("raises ")
        elif line.startswith("assert "):
            test = ast.parse(line).body[0].test  # type: ignore[attr-defined]
            yield ast.unparse(test.left), ast.unparse(test.comparators[0]), False
        elif " raises " in line and line.startswith("# "):
            call, _, error = line[2:].rpartition(" raises ")
            yield call, error, True
        elif cell:
            yield cell[1], cell[3], bool(cell[2])


def holds(example: tuple[str, str, bool], name: str, function: Callable[..., Any]) -> bool:
    call, expected, is_error = example
    try:
        value = eval(call, {name: function})
    except Exception as error:
        return is_error and type(error).__name__ == expected
    return not is_error and bool(value == ast.literal_eval(expected))


def document(task: Task) -> str:
    return task.program.text("docs/examples.md")


def shown_examples(task: Task) -> tuple[list[tuple[str, str, bool]], list[tuple[str, str, bool]]]:
    start = task.instruction.index("Examples (more are in `docs/examples.md`):")
    return list(examples_in(task.instruction[start:])), list(examples_in(document(task)))


def test_sixteen_families_give_at_least_176_tasks(kata: list[Pair]) -> None:
    counts = Counter(task.family for task, _ in kata)
    assert len(counts) >= 16
    assert len(kata) >= 176
    assert min(counts.values()) >= 11


def test_each_family_lies_in_one_split_and_train_has_half(kata: list[Pair]) -> None:
    splits = {(task.family, task.split) for task, _ in kata}
    assert len(splits) == len({family for family, _ in splits})
    by_split = Counter(split for _, split in splits)
    assert [by_split[split] for split in SPLITS] == [8, 2, 2, 4]


def test_a_task_says_what_it_is_and_shows_two_files(kata: list[Pair]) -> None:
    for task, panel in kata:
        assert task.source == "kata"
        assert re.fullmatch(rf"kata-{task.family}-\d\d", task.task_id)
        assert sorted(task.program.files) == ["docs/examples.md", "solution.py"]
        assert panel.task_id == task.task_id
        assert f"def {entry_point(task)}(" in task.program.text("solution.py")
    assert len({task.task_id for task, _ in kata}) == len(kata)


def test_a_panel_holds_b_g_four_valid_and_five_invalid(kata: list[Pair]) -> None:
    kinds = ["initial", "reference"] + ["valid"] * 4 + ["invalid"] * 5
    for task, panel in kata:
        assert [i.implementation_id for i in panel.implementations] == IDS
        assert [i.kind for i in panel.implementations] == kinds
        assert member(panel, "b").program == task.program
        texts = {i.program.text("solution.py") for i in panel.implementations}
        assert len(texts) == len(IDS)
        assert {i.program.text("docs/examples.md") for i in panel.implementations} == {
            document(task)
        }


def test_running_every_program_on_every_check_gives_the_shipped_labels(kata: list[Pair]) -> None:
    for _, panel in kata:
        for implementation in panel.implementations:
            failed = failures(panel, solution(implementation))
            assert sorted(failed) == sorted(implementation.failed_checks), implementation.origin


def test_valid_programs_pass_all_and_wrong_ones_fail_in_different_ways(kata: list[Pair]) -> None:
    alike = 0
    for _, panel in kata:
        for i in panel.implementations:
            assert bool(i.failed_checks) == (i.kind in ("initial", "invalid"))
        assert len(member(panel, "b").failed_checks) < len(panel.checks)
        alike += len(set(wrong(panel).values())) < 6
    assert alike <= len(kata) // 20


def test_a_quarter_of_the_initial_states_have_two_faults(kata: list[Pair]) -> None:
    origins = [member(panel, "b").origin for _, panel in kata]
    double = sum(o.startswith("slip") and " read as " in o for o in origins)
    assert 0.15 <= double / len(kata) <= 0.35
    assert sum(o.startswith("algorithm") for o in origins) >= len(kata) // 5


def test_siblings_differ_in_two_facets_or_more(evidence: dict[str, Any]) -> None:
    for pairs in families().values():
        facets = [evidence[task.task_id]["facets"] for task, _ in pairs]
        for one, other in combinations(facets, 2):
            assert sum(one[key] != other[key] for key in one) >= 2


def test_the_contract_asks_for_untouched_arguments_exactly_where_that_is_checked(
    kata: list[Pair],
) -> None:
    for task, panel in kata:
        checked = any(check.check_id.startswith("m") for check in panel.checks)
        asked = "The function leaves its arguments unchanged." in task.instruction
        assert asked == checked, task.task_id


def test_every_shown_example_is_true_of_the_reference(kata: list[Pair]) -> None:
    for task, panel in kata:
        name = entry_point(task)
        function = getattr(solution(member(panel, "g")), name)
        instruction, doc = shown_examples(task)
        assert len(instruction) in (2, 3)
        assert 20 <= len(doc) <= 60
        assert document(task).count(f"{name}(") == len(doc)
        for example in instruction + doc:
            assert holds(example, name, function), (task.task_id, example)


def test_examples_come_in_all_notations_and_many_sizes(kata: list[Pair]) -> None:
    texts = [document(task) for task, _ in kata]
    for sign in (">>> ", "\nassert ", "\n| `", "\n- `", "Traceback", "raises `", "\nraises "):
        assert any(sign in text for text in texts), sign
    sizes = sorted(map(len, texts))
    assert sizes[0] >= 700 and sizes[-1] <= 7_400
    assert sizes[len(sizes) // 10] < 1_900 and sizes[-len(sizes) // 10] > 4_500


def test_examples_reject_most_initial_states_and_often_only_in_the_middle(
    kata: list[Pair],
) -> None:
    told = only_middle = 0
    for task, panel in kata:
        name = entry_point(task)
        function = getattr(solution(member(panel, "b")), name)
        instruction, doc = shown_examples(task)
        positions = [i for i, e in enumerate(doc) if not holds(e, name, function)]
        early = [e for e in instruction if not holds(e, name, function)]
        told += bool(positions or early)
        if positions and not early:
            text = document(task)
            places = [text.index(f"{name}{doc[i][0][len(name) :]}"[:60]) for i in positions]
            only_middle += all(0.2 < place / len(text) < 0.8 for place in places)
    assert 0.80 <= told / len(kata) <= 0.92
    assert 0.33 <= only_middle / len(kata) <= 0.50


def test_examples_alone_catch_most_but_not_all_invalid_programs(kata: list[Pair]) -> None:
    caught = everything = 0
    for task, panel in kata:
        name = entry_point(task)
        instruction, doc = shown_examples(task)
        hits = 0
        for member_id in IDS[6:]:
            function = getattr(solution(member(panel, member_id)), name)
            hits += not all(holds(e, name, function) for e in instruction + doc)
        caught += hits
        everything += hits == 5
    assert 0.55 <= caught / (5 * len(kata)) <= 0.9
    assert everything <= len(kata) // 4


def minimal_suite(panel: Panel, rng: random.Random) -> set[str]:
    """Drop checks in random order while every wrong program is still rejected."""
    suite = {check.check_id for check in panel.checks}
    for check_id in rng.sample(sorted(suite), len(suite)):
        if all(failed & (suite - {check_id}) for failed in wrong(panel).values()):
            suite.discard(check_id)
    return suite


def test_no_suite_right_on_a_task_is_right_on_a_sibling_after_renaming() -> None:
    rng = random.Random(7)
    for pairs in families().values():
        for (task, panel), (there, panel_there) in permutations(pairs, 2):
            module = solution(member(panel_there, "g"))
            setattr(module, entry_point(task), getattr(module, entry_point(there)))
            refused = set(failures(panel, module))
            assert refused, "the sibling's reference fails this task's checks"
            common = {check.check_id for check in panel.checks} - refused
            here = all(failed & common for failed in wrong(panel).values())
            elsewhere = all(failed & common for failed in wrong(panel_there).values())
            assert not (here and elsewhere), (task.task_id, there.task_id)
            suite = minimal_suite(panel, rng)
            right = suite <= common and all(
                failed & suite for failed in wrong(panel_there).values()
            )
            assert not right, (task.task_id, there.task_id)


def edges(source: str) -> Counter[tuple[str, str]]:
    nodes = ast.walk(ast.parse(source))
    return Counter(
        (type(node).__name__, type(child).__name__)
        for node in nodes
        for child in ast.iter_child_nodes(node)
    )


def test_valid_programs_differ_in_structure(kata: list[Pair]) -> None:
    for task, panel in kata:
        shapes = [edges(member(panel, v).program.text("solution.py")) for v in IDS[2:6]]
        distances = [
            1 - (one & other).total() / (one | other).total()
            for one, other in combinations(shapes, 2)
        ]
        assert sum(distances) / len(distances) > 0.35, task.task_id


def test_the_contract_names_neither_panel_nor_facets_by_key(kata: list[Pair]) -> None:
    for task, panel in kata:
        visible = task.instruction + document(task) + task.program.text("solution.py")
        assert "read as" not in visible and "slip" not in visible.lower()
        assert panel.checks and not any(c.code in visible for c in panel.checks)


def test_every_slip_is_wrong_on_some_sibling() -> None:
    from rsi.prism.corpus.candidates import Origin, examine
    from rsi.prism.corpus.running import observe
    from rsi.prism.corpus.siblings import Calls
    from rsi.prism.corpus.siblings import combinations as facets_of

    for family in load_families():
        calls = Calls(family)
        harmless = set(range(len(family.slips)))
        for facets in facets_of(family, 12):
            want = observe(family.algorithms[0](facets), family.entry_point(facets), calls.pool)
            for index in sorted(harmless):
                found = examine(family, facets, Origin("slip", index), calls, want)
                if found is not None and found.failed_checks(calls):
                    harmless.discard(index)
        assert not harmless, (family.name, harmless)

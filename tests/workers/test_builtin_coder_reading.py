from __future__ import annotations

import ast
import inspect

import pytest

from workers.builtin_coder import notation
from workers.builtin_coder.boundaries import boundary_calls
from workers.builtin_coder.check import Check
from workers.builtin_coder.examples import read_examples
from workers.builtin_coder.flavour import FLAVOURS, choose_flavour, heed


def read(text: str, *known: str) -> list[tuple[str, str]]:
    return [(check.call, check.wanted) for check in read_examples(text, known)]


@pytest.mark.parametrize(
    ("text", "call", "wanted"),
    [
        (">>> f(1, 'a')\n[2]\n", "f(1, 'a')", "[2]"),
        (">>> f(1) == 2\n", "f(1)", "2"),
        (">>> print(f(3))\nthree\n", "str(f(3))", "'three'"),
        (
            ">>> f(0)\nTraceback (most recent call last):\n  ...\nValueError: no\n",
            "f(0)",
            "ValueError",
        ),
        ("assert f([1, 2]) == [2, 1]", "f([1, 2])", "[2, 1]"),
        ("    assert f(2) == 4, 'text'", "f(2)", "4"),
        ("assert f(2) is None", "f(2)", "None"),
        ("assert not f('')", "bool(f(''))", "False"),
        ("assert f('x')  # why", "bool(f('x'))", "True"),
        ("assert f(1) => [2]", "f(1)", "[2]"),
        ("| `f(1)` | `2` |", "f(1)", "2"),
        ("| `f(1)` | raises `KeyError` |", "f(1)", "KeyError"),
        ("- `f(1)` -> `2`", "f(1)", "2"),
        ("`f(1)` → `(1, 2)`.", "f(1)", "(1, 2)"),
        ("f(1) ➞ -2.5", "f(1)", "-2.5"),
        ("`f(1)` returns `2` because of it.", "f(1)", "2"),
        ("f(1) returns 2.", "f(1)", "2"),
        ("`f(1)` should be equal to `{'a': 1}`", "f(1)", "{'a': 1}"),
        ("`f(-1)` raises a `ValueError`.", "f(-1)", "ValueError"),
        ("f(1)  # => 'b, c'", "f(1)", "'b, c'"),
        ("f(1) = True", "f(1)", "True"),
        ("so f(1) is 3, and f(2)", "f(1)", "3"),
        ("`f(')')` gives `1`", "f(')')", "1"),
        ("`f(set())` is `set()`", "f(set())", "set()"),
    ],
)
def test_each_way_to_write_an_example_is_read(text: str, call: str, wanted: str) -> None:
    assert read(text, "f")[0] == (call, wanted)


@pytest.mark.parametrize(
    "text",
    [
        "f(1) is fast",
        "`f(n)` returns `2`",
        "f(1) returns [1, ...]",
        "call f(1) and then 2",
        ">>> f(1)\n",
        "`f(1)` -> `x`",
        "f(1) == 1.2.3",
        "`f((1)` -> `2`",
        "`g(1)` -> `2`",
        "`print(1)` -> `2`",
        "`f(__import__('os').system('x'))` -> `eval('1')`",
    ],
)
def test_what_is_not_an_example_is_left_alone(text: str) -> None:
    assert read(text, "f") == []


def test_a_session_keeps_the_set_up_that_its_calls_need() -> None:
    text = ">>> s = Stack()\n>>> s.push(1)\n>>> s.pop()\n1\n>>> size(Stack())\n0\n"
    first, second = read_examples(text, ["Stack", "size"])
    assert (first.setup, first.call, first.expected) == (
        ("s = Stack()", "s.push(1)"),
        "s.pop()",
        "1",
    )
    assert (second.setup, second.call, second.expected) == ((), "size(Stack())", "0")


def test_tables_and_sentences_that_name_values_are_read_for_the_only_function() -> None:
    table = (
        "| n | unit | result |\n|---|---|---|\n| 1 | `'a'` | `'1a'` |\n| 2 | 'b' | ValueError |\n"
    )
    assert read(table, "f") == [("f(1, 'a')", "'1a'"), ("f(2, 'b')", "ValueError")]
    assert read(table, "f", "g") == []
    named = 'For s = "ab", n = 2, the result should be ("b", True)'
    assert read(named, "f") == [('f(s="ab", n=2)', '("b", True)')]
    assert read("Input: [1, 2], 3\nOutput: 6", "f") == [("f([1, 2], 3)", "6")]
    assert read("Input: `4` Output: `5`", "f") == [("f(4)", "5")]


def test_without_known_names_every_program_like_call_counts() -> None:
    assert read("`f(1)` -> `2` and `len([1])` -> `1`") == [("f(1)", "2")]


def test_examples_that_contradict_each_other_are_dropped_together() -> None:
    assert read("f(1) -> 2\nf( 1 ) -> 3\nf(2) -> 4\nf(2) -> 4.0", "f") == [("f(2)", "4")]


def test_lines_beside_an_elision_may_be_cut_and_do_not_count() -> None:
    cut = "f(1) -> 2\nf(2) -> 3\n[... 400 characters left out ...]\n f(3) -> 44\nf(4) -> 5"
    assert read(cut, "f") == [("f(1)", "2"), ("f(4)", "5")]
    assert read("f(1) -> 2\n[earlier output left out]\nf(2) -> 3\nf(3) -> 4", "f") == [
        ("f(3)", "4")
    ]


def test_reading_never_runs_what_it_reads() -> None:
    tree = ast.parse(inspect.getsource(notation))
    called = {
        n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and hasattr(n.func, "id")
    }
    assert not called & {"eval", "exec", "compile", "__import__"}
    assert not notation.is_value("().__class__")
    assert not notation.is_value("f()")
    assert not notation.is_application("f(lambda: 1)")
    assert not notation.is_application("f(1).__class__()")
    assert not notation.is_value("1" * (notation.MAX_EXPRESSION_CHARS + 1))
    assert notation.is_value("{'a': (1, -2.5), 'b': {3}, 'c': frozenset({1})}")


def test_boundary_calls_stay_inside_the_shown_range_unless_they_may_leave_it() -> None:
    checks = [Check("f(2, 'ab')", "0"), Check("f(9, 'b')", "0"), Check("f(5)", raises="KeyError")]
    tame = boundary_calls(checks, 100, wide=False, seed=1)
    first = {ast.literal_eval(call[1:])[0] for call in tame}
    assert {2, 3, 8, 9} <= first and min(first) >= 2 and max(first) <= 9
    assert "f(2, 'b')" in tame and "f(2, 'ba')" in tame
    assert not {"f(2, 'ab')", "f(9, 'b')"} & set(tame)
    wide = boundary_calls(checks, 100, wide=True, seed=1)
    assert {"f(0, 'ab')", "f(1, 'ab')", "f(10, 'b')", "f(2, '')"} <= set(wide)
    assert not any("'AB'" in call or "' ab'" in call for call in wide)
    assert len(boundary_calls(checks, 3, wide=True, seed=1)) == 3
    assert boundary_calls(checks, 9, True, 1) == boundary_calls(checks, 9, True, 1)
    assert boundary_calls(checks, 9, True, 1) != boundary_calls(checks, 9, True, 2)


def test_boundary_calls_vary_lists_by_length_order_and_neighbours() -> None:
    calls = boundary_calls([Check("f([3, 1, 2])", "0")], 100, wide=True, seed=1)
    assert {"f([])", "f([3])", "f([1, 2])", "f([2, 1, 3])", "f([3, 1, 2, 3])"} <= set(calls)


def test_three_agents_have_three_ways_to_work() -> None:
    styles = ("You are careful: x.", "You are bold: x.", "You are thorough: x.")
    chosen = [choose_flavour("", f"You are agent-{n}. {s}") for n, s in enumerate(styles, 1)]
    assert [flavour.name for flavour in chosen] == ["careful", "bold", "thorough"]
    assert choose_flavour("builtin-bold", "You are agent-1. You are careful.").name == "bold"
    assert choose_flavour("", "You are agent-7.") == choose_flavour("", "You are agent-7.")


def test_guidance_changes_habits() -> None:
    bold = FLAVOURS["bold"]
    assert heed(bold, "Read long files in parts.").parts == 4
    assert heed(bold, "Add boundary tests.").boundaries == bold.boundaries + 6
    strict = heed(bold, "Leave out unsupported values.")
    assert (strict.boundaries, strict.agreement, strict.wide) == (3, 3, False)
    assert heed(bold, "Run it again before you submit").rerun
    assert heed(bold, "Be nice.") == bold

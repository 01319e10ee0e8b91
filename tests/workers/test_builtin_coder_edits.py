from __future__ import annotations

from pathlib import Path

from workers.builtin_coder.scripts import change_rows, search_text, statements_text
from workers.builtin_coder.search_expressions import Source
from workers.builtin_coder.search_statements import statement_edits


def edited(tmp_path: Path, text: str, statements: bool = False) -> set[str]:
    path = tmp_path / "p.py"
    path.write_text(text)
    source = Source(str(path))
    found = list(source.expression_edits())
    if statements:
        found += statement_edits(source, ["0"], ["KeyError"])
    return {source.apply([edit]).decode() for _, edit in found}


def test_expressions_change_one_place_and_leave_the_rest_as_it_was(tmp_path: Path) -> None:
    results = edited(tmp_path, "# é kept\nx = a <  b + 1  # kept\n")
    assert {
        "# é kept\nx = (a <= b + 1)  # kept\n",
        "# é kept\nx = a <  (b - 1)  # kept\n",
        "# é kept\nx = a <  b + 2  # kept\n",
        "# é kept\nx = a <  b + 0  # kept\n",
        "# é kept\nx = (a + 1) <  b + 1  # kept\n",
    } <= results
    assert all(r.startswith("# é kept\nx = ") and r.endswith("  # kept\n") for r in results)


def test_calls_slices_and_conditions_have_their_variants(tmp_path: Path) -> None:
    text = "if p and not q:\n    y = sorted(f(u, v), key=k)[1:n]\n"
    bodies = edited(tmp_path, text)
    for part in (
        "if (p or not q)",
        "if p:",
        "if p and q:",
        "if (not (p and (not q)))",
        "list(f(u, v), key=k)",
        "f(v, u)",
        "sorted(f(u, v))[",
        "reverse=True",
        "[:n]",
        "[1:]",
        "[1:n:-1]",
        "[0:n]",
    ):
        assert any(part in body for body in bodies), part


def test_statements_have_theirs(tmp_path: Path) -> None:
    text = (
        "def f(a, b):\n    t = a\n    t += b\n    for x in a:\n        t = x\n"
        "        break\n    return t\n"
    )
    bodies = edited(tmp_path, text, statements=True)
    for part in (
        "    if not a: return 0\n    t = a",
        "    if not a: raise KeyError\n    t = a",
        "    a = sorted(a)\n    t = a",
        "    t = b\n    t += b",
        "    t = b\n    for",
        "        continue\n",
        "        t = x\n    break\n",
        "        pass\n        break",
        "        raise KeyError\n        break",
        "    return (t)[::-1]",
        "    return abs(t)",
        "    t += b\n    t = a\n",
    ):
        assert any(part in body for body in bodies), part
    assert not any("ValueError" in body for body in bodies)


def test_overlapping_names_are_replaced_from_the_end(tmp_path: Path) -> None:
    path = tmp_path / "p.py"
    path.write_text("x = 1\ny = 2\n")
    assert Source(str(path)).apply([(4, 5, b"100"), (10, 11, b"7")]) == b"x = 100\ny = 7\n"


def test_the_search_is_sent_short_and_whole(tmp_path: Path) -> None:
    for text in (search_text(), statements_text()):
        compile(text, "sent", "exec")
        assert "from __future__" not in text and "workers." not in text
        assert '"""' not in text
    assert len(search_text()) < 12_000
    assert len(statements_text()) < 6_000


def test_rows_are_changed_without_sending_the_suite_again() -> None:
    command = change_rows("s.py", ["f(1)"], ["    (lambda: f(2), 3, '', 'stated'),"])
    assert command.startswith("python3 -c '") and " s.py <<'END'\n" in command
    assert command.endswith("\n-f(1)\n+    (lambda: f(2), 3, '', 'stated'),\nEND")

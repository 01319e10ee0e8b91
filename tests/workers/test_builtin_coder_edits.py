from __future__ import annotations

from workers.builtin_coder.scripts import change_rows, program_text, search_text
from workers.builtin_coder.search_donors import donor_edits
from workers.builtin_coder.search_expressions import Source
from workers.builtin_coder.search_statements import statement_edits


def edited(text: str, statements: bool = False) -> set[str]:
    source = Source(text.encode())
    found = list(source.expression_edits())
    if statements:
        found += statement_edits(source, ["0"], ["KeyError"])
    return {source.apply([edit]).decode() for _, edit in found}


def test_expressions_change_one_place_and_leave_the_rest_as_it_was() -> None:
    results = edited("# é kept\nx = a <  b + 1  # kept\n")
    assert {
        "# é kept\nx = (a <= b + 1)  # kept\n",
        "# é kept\nx = a <  (b - 1)  # kept\n",
        "# é kept\nx = a <  b + 2  # kept\n",
        "# é kept\nx = a <  b + 0  # kept\n",
        "# é kept\nx = (a + 1) <  b + 1  # kept\n",
    } <= results
    assert all(r.startswith("# é kept\nx = ") and r.endswith("  # kept\n") for r in results)


def test_calls_slices_and_conditions_have_their_variants() -> None:
    text = "if p and not q:\n    y = sorted(f(u, v), key=k)[1:n]\n"
    bodies = edited(text)
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


def test_statements_have_theirs() -> None:
    text = (
        "def f(a, b):\n    t = a\n    t += b\n    for x in a:\n        t = x\n"
        "        break\n    return t\n"
    )
    bodies = edited(text, statements=True)
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


def test_code_from_elsewhere_in_the_program_is_put_in() -> None:
    text = "def f(a, b):\n    if a < 1:\n        b = g(a)\n"
    text += "    if b:\n        a += h(b)\n    return a\n"
    source = Source(text.encode())
    bodies = {source.apply([edit]).decode() for _, edit in donor_edits(source, "")}
    for part in (
        "if True:\n        b",
        "if False:\n        a",
        "if (a < 1 and b):",
        "if (b or not a < 1):",
        "b = h(b)",
        "a += h(1)",
        "if (a == 1):",
        "if (a != 1):",
        "    b = g(a)\n    return a",
    ):
        assert any(part in body for body in bodies), part


def test_character_classes_take_one_more_character_one_or_all() -> None:
    text = "a = r'[^a-z]+'\nb = '[ ab]'\nc = '['\n"
    source = Source(text.encode())
    bodies = {source.apply([edit]).decode() for _, edit in donor_edits(source, ".-")}
    assert bodies == {
        "a = r'[^.a-z]+'\nb = '[ ab]'\nc = '['\n",
        "a = r'[^a-z]+'\nb = '[. ab]'\nc = '['\n",
        "a = r'[^.a-z]+'\nb = '[. ab]'\nc = '['\n",
        "a = r'[^\\-a-z]+'\nb = '[ ab]'\nc = '['\n",
        "a = r'[^a-z]+'\nb = '[\\- ab]'\nc = '['\n",
        "a = r'[^\\-a-z]+'\nb = '[\\- ab]'\nc = '['\n",
    }


def test_edits_replace_their_own_place() -> None:
    source = Source(b"x = 1\ny = 2\n")
    assert source.apply([(4, 5, b"100"), (10, 11, b"7")]) == b"x = 100\ny = 7\n"


def test_the_search_is_sent_short_and_whole() -> None:
    text = program_text()
    compile(text, "sent", "exec")
    assert "from __future__" not in text and "workers." not in text and '"""' not in text
    compile(search_text(), "sent", "exec")
    assert len(search_text()) < 11_000 < len(text)


def test_rows_are_changed_without_sending_the_suite_again() -> None:
    command = change_rows("s.py", ["f(1)"], ["    (lambda: f(2), 3, '', 'stated'),"])
    assert command.startswith("python3 -c '") and " s.py <<'END'\n" in command
    assert command.endswith("\n-f(1)\n+    (lambda: f(2), 3, '', 'stated'),\nEND")

"""Field splitting: cut one line of a table file into its fields."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rsi.prism.corpus.blocks import Clauses, Holes, contract, facets_of, program
from rsi.prism.corpus.family import Facets, Family, altered

_BROKEN = "When a quoted field is never closed or has further text after its closing quote"

CLAUSES: Clauses = {
    "separator": {
        "comma": "Fields are separated by `,`; a `;` is ordinary text.",
        "semicolon": "Fields are separated by `;`; a `,` is ordinary text.",
    },
    "blanks": {
        "trimmed": "Blanks around a field are removed, also those outside its quotes; blanks "
        "inside quotes stay.",
        "kept": "Blanks belong to the field: a quoted field has no blank before its opening or "
        "after its closing quote.",
    },
    "inner": {
        "doubled": 'Inside quotes `""` stands for one quote; a backslash is ordinary text.',
        "backslash": "Inside quotes a backslash makes the next character (a quote, a backslash, "
        "any other) stand for itself and is removed.",
    },
    "malformed": {
        "value-error": f"{_BROKEN}, raise `ValueError`.",
        "none": f"{_BROKEN}, return `None`.",
        "whole": f"{_BROKEN}, return the whole line, unchanged, as the only field.",
    },
    "vacant": {
        "text": "An unquoted field without any character left is the empty string.",
        "none": "An unquoted field without any character left is `None`; a quoted empty field is "
        "the empty string.",
    },
    "empty": {
        "no-field": 'The empty line `""` has no field: the result is `[]`.',
        "one-field": 'The empty line `""` has one field, an unquoted one without any character.',
    },
}

# fmt: off
HOLES: Holes = {
    "sep": ("separator", {"comma": ",", "semicolon": ";"}),
    "fail": ("malformed", {"value-error": 'raise ValueError(f"malformed line: {line!r}")',
        "none": "return None", "whole": "return [line]"}),
    "empty": ("empty", {"no-field": 'if line == "":\n    return []', "one-field": ""}),
    "trim": ("blanks", {"trimmed": '.strip(" ")', "kept": ""}),
    "trim_left": ("blanks", {"trimmed": '.lstrip(" ")', "kept": ""}),
    "gap": ("blanks", {"trimmed": " *", "kept": ""}),
    "vacant": ("vacant", {"text": "", "none": " or None"}),
    "after_blank": ("blanks", {"trimmed": 'elif state == "closed" and char == " ":\n    pass',
        "kept": ""}),
    "fresh": ("blanks", {"trimmed": '"".join(text).strip(" ") == ""', "kept": "not text"}),
    "inside": ("inner", {"doubled": "if line[i : i + 2] == '\"\"':\n"
        "    text.append('\"')\n    i += 1\nelif char == '\"':\n"
        '    state = "closed"\nelse:\n    text.append(char)',
        "backslash": 'if char == "\\\\":\n    text.append(line[i + 1 : i + 2])\n'
        "    i += 1\nelif char == '\"':\n    state = \"closed\"\nelse:\n    text.append(char)"}),
    "body": ("inner", {"doubled": '(?:[^"]|"")*', "backslash": r'(?:[^"\\]|\\.)*'}),
    "unescape": ("inner", {"doubled": "re.sub('\"\"', '\"', body)",
        "backslash": r're.sub(r"\\(.)", r"\1", body)'}),
    "open_count": ("inner", {"doubled": "piece.count('\"') % 2 == 1",
        "backslash": "re.sub(r\"\\\\.\", \"\", piece).count('\"') == 1"}),
    "read_quoted": ("inner", {
        "doubled": "end = rest.find('\"')\nif end < 0:\n    raise Broken(rest)\n"
        "if rest.startswith('\"\"', end):\n    text, rest = quoted(rest[end + 2 :])\n"
        "    return whole[:end] + '\"' + text, rest\n" "return whole[:end], rest[end + 1 :]",
        "backslash": "head, rest = rest[:1], rest[1:]\n"
        'if not head or head == "\\\\" and not rest:\n    raise Broken(whole)\n'
        "if head == '\"':\n    return \"\", rest\nif head == \"\\\\\":\n"
        "    head, rest = rest[0], rest[1:]\ntext, rest = quoted(rest)\n"
        "return head + text, rest"}),
    "next_char": ("inner", {"doubled": "if char == '\"':\n    if self.peek() != '\"':\n"
        '        return "".join(text)\n    self.take()',
        "backslash": "if char == '\"':\n    return \"\".join(text)\n"
        'if char == "\\\\":\n    char = self.take()'}),
    "skip_blanks": ("blanks", {"trimmed": 'while self.peek() == " ":\n    self.take()', "kept": ""
    }),
}
# fmt: on

STATES = '''
def <<entry>>(line):
    """Cut one line into fields, one character at a time."""
    <<empty>>
    fields, text = [], []
    state, i = "start", 0
    while i < len(line):
        char = line[i]
        if state == "quoted":
            <<inside>>
        elif char == "<<sep>>":
            fields.append("".join(text) if state == "closed" else "".join(text)<<trim>><<vacant>>)
            text, state = [], "start"
        <<after_blank>>
        elif state == "closed":
            <<fail>>
        elif char == '"' and state == "start" and <<fresh>>:
            text, state = [], "quoted"
        else:
            text.append(char)
        i += 1
    if state == "quoted":
        <<fail>>
    fields.append("".join(text) if state == "closed" else "".join(text)<<trim>><<vacant>>)
    return fields
'''

MATCHES = r"""
import re

QUOTED = re.compile(r'<<gap>>"(<<body>>)"<<gap>>(<<sep>>|\Z)', re.DOTALL)
UNQUOTED = re.compile(r'<<gap>>(?!<<gap>>")([^<<sep>>]*)(<<sep>>|\Z)')


def <<entry>>(line):
    <<empty>>
    fields, position, more = [], 0, True
    while more:
        match = QUOTED.match(line, position)
        if match:
            body = match.group(1)
            fields.append(<<unescape>>)
        else:
            match = UNQUOTED.match(line, position)
            if match is None:
                <<fail>>
            fields.append(match.group(1)<<trim>><<vacant>>)
        position, more = match.end(), match.group(2) != ""
    return fields
"""

REJOIN = r"""
import re


def unquote(piece):
    found = re.fullmatch(r'"(<<body>>)"', piece<<trim>>, re.DOTALL)
    if found is None:
        raise SyntaxError(piece)
    body = found.group(1)
    return <<unescape>>


def merge(pieces):
    pieces = iter(pieces)
    for piece in pieces:
        if not piece<<trim_left>>.startswith('"'):
            yield piece<<trim>><<vacant>>
            continue
        while <<open_count>>:
            following = next(pieces, None)
            if following is None:
                raise SyntaxError(piece)
            piece = piece + "<<sep>>" + following
        yield unquote(piece)


def <<entry>>(line):
    <<empty>>
    try:
        return list(merge(line.split("<<sep>>")))
    except SyntaxError:
        pass
    <<fail>>
"""

RECURSE = """
class Broken(Exception):
    pass


def quoted(rest):
    whole = rest
    <<read_quoted>>


def fields_of(rest):
    if rest<<trim_left>>[:1] == '"':
        field, rest = quoted(rest<<trim_left>>[1:])
        rest = rest<<trim_left>>
        if rest == "":
            return [field]
        if rest[0] != "<<sep>>":
            raise Broken(rest)
        return [field] + fields_of(rest[1:])
    field, separator, rest = rest.partition("<<sep>>")
    field = field<<trim>><<vacant>>
    return [field] + fields_of(rest) if separator else [field]


def <<entry>>(line):
    <<empty>>
    try:
        return fields_of(line)
    except Broken:
        <<fail>>
"""

READER = """
class Reader:
    def __init__(self, line):
        self.left = list(reversed(line))

    def peek(self):
        return self.left[-1] if self.left else ""

    def take(self):
        if not self.left:
            raise EOFError
        return self.left.pop()

    def quoted(self):
        text = []
        while True:
            char = self.take()
            <<next_char>>
            text.append(char)

    def field(self):
        <<skip_blanks>>
        if self.peek() == '"':
            self.take()
            text = self.quoted()
            <<skip_blanks>>
            return text
        text = ""
        while self.peek() not in ("", "<<sep>>"):
            text += self.take()
        return text<<trim>><<vacant>>


def <<entry>>(line):
    <<empty>>
    reader = Reader(line)
    broken = False
    try:
        fields = [reader.field()]
        while reader.peek() == "<<sep>>":
            reader.take()
            fields.append(reader.field())
    except EOFError:
        broken = True
    if broken or reader.left:
        <<fail>>
    return fields
"""


def _entry(facets: Facets) -> str:
    return "split_line" if facets["blanks"] == "kept" else "split_fields"


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    forms = ["a,b,c", "a", ",", "a,", ",a", "a,,b", "a, b ,c", " a , b", " ", "a,   ,b", '"a,b",c']
    forms += ['"a" , "b"', 'a,"b"', '"",a', '"","",', ' "a,b" ', '" a ",b', '"a', 'a,"b,c', '"']
    forms += ['"a"b,c', 'a"b,c', 'a"b"c,d', '"a""b",c', '"""a"', '""""', '"a"",b', '"a\\"b",c']
    forms += ['"a\\\\",b', '"a\\nb",c', "a\\,b", '"a\\', '"a\\",b', '"a,b,c,d"', 'a,"b,c",d,"e"']
    forms += ['"a,""b"",c",d', '"a", "b,c" ,d', '"",""', 'x,"y""z"', '"p\\,q",r', "1,22,333"]
    lines = forms + [form.replace(",", ";") for form in forms[1::2] + forms[::4] if "," in form]
    lines += ["", "a;b,c", "a,b;c", '"a;b",c;d', '"a,b";c,d', "one two,three;four five"]
    drawn = ["".join(rng.choices('ab ,;"', k=rng.randint(2, 6))) for _ in range(6)]
    return [(line,) for line in [*lines, *drawn]]


_source = partial(program, holes=HOLES, entry_point=_entry)
_states, _matches, _rejoin = _source(STATES), _source(MATCHES), _source(REJOIN)
_recurse, _reader = _source(RECURSE), _source(READER)

FAMILY = Family(
    name="fields",
    split="train",
    entry_point=_entry,
    facets=facets_of(CLAUSES),
    instruction=contract(
        "Write `<<entry>>(line)` in `solution.py`. It cuts one line (at most 200 characters, "
        'no line break) into the list of its fields. A field that begins with a quote (`"`) is '
        "quoted: it runs to its closing quote, these two are not part of it, and separators "
        "inside are ordinary text. In a field that begins otherwise a quote is ordinary text.",
        CLAUSES,
        _entry,
    ),
    algorithms=(_states, _matches, _rejoin, _recurse, _reader),
    slips=(
        altered(_states, 'if state == "quoted":\n        r', 'if state == "open":\n        r'),
        altered(_states, "while i < len(line):", "while i < len(line) - 1:"),
        altered(_matches, 'match.group(2) != ""', "match.end() < len(line)"),
        altered(_rejoin, "        while ", "        if "),
        altered(_recurse, 'if rest[0] != "', 'if rest[0] == "'),
        altered(_reader, "if broken or reader.left:", "if broken:"),
    ),
    inputs=_inputs,
)

"""Programs of the kata family wrapping, alike in behaviour for the same facets."""

from __future__ import annotations

from rsi.prism.corpus.family import Facets, template


def entry_point(facets: Facets) -> str:
    return {"left": "wrap", "right": "flush_right", "center": "centered"}[facets["align"]]


def _holes(facets: Facets) -> dict[str, str]:
    hard = facets["newline"] == "hard"
    mark = {"left": "", "right": ">", "center": "^"}[facets["align"]]
    return {
        "name": entry_point(facets),
        "paragraphs": 'text.split("\\n")' if hard else "[text]",
        "hard": str(hard),
        "pad": {
            "left": "line",
            "right": "line.rjust(width)",
            "center": '" " * ((width - len(line)) // 2) + line + '
            '" " * ((width - len(line) + 1) // 2)',
        }[facets["align"]],
        "shaped": f'f"{{row:{mark}{{width}}}}"' if mark else "row",
        "too_long": {
            "cut": "pieces = [word[i : i + width] for i in range(0, len(word), width)]",
            "keep": "pieces = [word]",
            "error": 'raise ValueError(f"{word!r} is wider than {width}")',
        }[facets["long"]],
        "cut_now": {
            "cut": "room = width",
            "keep": "room = len(word)",
            "error": 'raise ValueError("word too wide")',
        }[facets["long"]],
        "refuse": str(facets["long"] == "error"),
        "result": "lines" if facets["result"] == "lines" else '"\\n".join(lines)',
    }


GREEDY = template(
    """
def <<name>>(text, width):
    if width < 1:
        raise ValueError("width must be positive")
    if not text.strip():
        return <<nothing>>
    lines = []
    for paragraph in <<paragraphs>>:
        line = ""
        started = False
        for word in paragraph.split():
            pieces = [word]
            if len(word) > width:
                <<too_long>>
            for number, piece in enumerate(pieces):
                if not started:
                    line, started = piece, True
                elif number == 0 and len(word) <= width and len(line) + 1 + len(piece) <= width:
                    line += " " + piece
                else:
                    lines.append(line)
                    line = piece
        lines.append(line)
    lines = [<<pad>> for line in lines]
    return <<result>>
""",
    lambda facets: {**_holes(facets), "nothing": _nothing(facets)},
)


def _nothing(facets: Facets) -> str:
    return "[]" if facets["result"] == "lines" else '""'


COUNTER = template(
    """
def _rows(words, width):
    row, used = [], 0
    for word in words:
        whole = len(word) <= width
        if row and (not whole or used + len(word) >= width):
            yield " ".join(row)
            row, used = [], 0
        while len(word) > width:
            <<cut_now>>
            head, word = word[:room], word[room:]
            if not word:
                word = head
                break
            yield head
        used += len(word) + bool(row)
        row.append(word)
    yield " ".join(row)


def <<name>>(text, width):
    if width <= 0:
        raise ValueError(width)
    lines = []
    if text.split():
        for part in <<paragraphs>>:
            for row in _rows(part.split(), width):
                lines.append(<<shaped>>)
    return <<result>>
""",
    _holes,
)

SEARCH = template(
    """
import re


def <<name>>(text, width):
    if not width >= 1:
        raise ValueError("no room")
    words = re.findall(r"\\S+", text)
    if <<refuse>> and any(len(word) > width for word in words):
        raise ValueError("a word does not fit")
    lines = []
    blocks = re.split(r"\\n", text) if <<hard>> else [" ".join(words)]
    for block in blocks if words else ():
        rest = " ".join(re.findall(r"\\S+", block))
        first = True
        while rest or first:
            first = False
            line, rest = _split(rest, width)
            lines.append(<<pad>>)
    return <<result>>


def _split(rest, width):
    if len(rest) <= width:
        return rest, ""
    gap = rest.rfind(" ", 0, width + 1)
    if gap < 0:
        end = rest.find(" ")
        end = len(rest) if end < 0 else end
        stop = min(end, width) if <<cutting>> else end
        return rest[:stop], rest[stop:].lstrip(" ")
    start = rest.rfind(" ", 0, gap + 1) + 1
    return rest[:gap], rest[start:]
""",
    lambda facets: {**_holes(facets), "cutting": str(facets["long"] == "cut")},
)

RECURSIVE = template(
    """
def _lay(words, width):
    if not words:
        return []
    first, *others = words
    if len(first) > width:
        <<first_long>>
    taken, length = 1, len(first)
    while taken < len(words) and length + 1 + len(words[taken]) <= width:
        length += 1 + len(words[taken])
        taken += 1
    return [" ".join(words[:taken])] + _lay(words[taken:], width)


def <<name>>(text, width):
    if width < 1:
        raise ValueError("width")
    everything = [part.split() for part in <<paragraphs>>]
    lines = []
    if any(everything):
        for words in everything:
            lines.extend(_lay(words, width) or [""])
    lines = list(map(lambda line: <<pad>>, lines))
    return <<result>>
""",
    lambda facets: {
        **_holes(facets),
        "first_long": {
            "cut": "return [first[:width]] + _lay([first[width:], *others], width)",
            "keep": "return [first] + _lay(others, width)",
            "error": "raise ValueError(first)",
        }[facets["long"]],
    },
)

STREAM = template(
    """
class _Page:
    def __init__(self, width):
        self.width = width
        self.done = []
        self.line = None

    def flush(self):
        line = "" if self.line is None else self.line
        self.done.append(line)
        self.line = None

    def put(self, word):
        too_long = len(word) > self.width
        if self.line is not None and (too_long or len(f"{self.line} {word}") > self.width):
            self.flush()
        if too_long:
            width = self.width
            <<too_long>>
            self.done.extend(pieces[:-1])
            word = pieces[-1]
        self.line = word if self.line is None else f"{self.line} {word}"


def <<name>>(text, width):
    if width < 1:
        raise ValueError("too narrow")
    page, seen, word = _Page(width), False, ""
    for sign in text + " ":
        if not sign.isspace():
            word += sign
            continue
        if word:
            page.put(word)
            seen, word = True, ""
        if sign == "\\n" and <<hard>>:
            page.flush()
    page.flush()
    lines = [<<pad>> for line in page.done] if seen else []
    return <<result>>
""",
    _holes,
)

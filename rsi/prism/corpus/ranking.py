"""Kata family: turn scores into a ranked table."""

from __future__ import annotations

import random
from typing import Any

from rsi.prism.corpus.family import Facets, Family, altered, template

_NUMBERING = {
    "competition": "Players with equal scores share a place, and the places they take up are "
    "skipped after them (1, 1, 3).",
    "dense": "Players with equal scores share a place, and the next lower player takes the very "
    "next number (1, 1, 2).",
    "ordinal": "Every player has a place of their own, counted in listed order (1, 2, 3), "
    "even among equal scores.",
}
_MISSING = {
    "last": "A score of `None` means the player has not played: listed after all others, with "
    "place `{mark}`.",
    "omit": "A score of `None` means the player has not played and does not appear.",
    "zero": "A score of `None` counts as the score 0.",
}


def _name(facets: Facets) -> str:
    return "leaderboard" if facets["shape"] == "rows" else "standings"


def _instruction(facets: Facets) -> str:
    rows = facets["shape"] == "rows"
    shape = (
        "Each entry of the result is a list `[place, player]`."
        if rows
        else 'Each entry of the result is a text such as `"3. Kim"`: place, dot, space, player.'
    )
    best = "highest" if facets["best"] == "high" else "lowest"
    ties = (
        "in alphabetical order of their names"
        if facets["ties"] == "name"
        else "in the order in which they came in"
    )
    missing = _MISSING[facets["missing"]].format(mark="None" if rows else "-")
    return (
        f"Write `{_name(facets)}(scores)` for a list of `[player, score]` lists; scores are "
        f"integers or `None`, names do not repeat. It returns a list with one entry a player, "
        f"best first.\n\n- The {best} score is the best.\n- {_NUMBERING[facets['numbering']]}\n"
        f"- Players with equal scores are listed {ties}; so are players with no score.\n"
        f"- {missing}\n- {shape}\n- No players: an empty list."
    )


def _holes(facets: Facets) -> dict[str, str]:
    rows = facets["shape"] == "rows"
    missing, numbering = facets["missing"], facets["numbering"]
    return {
        "name": _name(facets),
        "sign": "-" if facets["best"] == "high" else "",
        "reverse": str(facets["best"] == "high"),
        "better": ">" if facets["best"] == "high" else "<",
        "top": "max" if facets["best"] == "high" else "min",
        "tie": "player" if facets["ties"] == "name" else "position",
        "tie_index": "0" if facets["ties"] == "name" else "2",
        "filled": "0 if score is None else score" if missing == "zero" else "score",
        "late": "late" if missing == "last" else "[]",
        "row": "[place, player]" if rows else 'f"{place}. {player}"',
        "none_row": "[None, player]" if rows else 'f"-. {player}"',
        "place": {
            "competition": "1 + sum(s <<better>> score for s in values)",
            "dense": "1 + len({s for s in values if s <<better>> score})",
            "ordinal": "number",
        }[numbering].replace("<<better>>", ">" if facets["best"] == "high" else "<"),
        "advance": {
            "competition": "place = number",
            "dense": "place += 1",
            "ordinal": "place = number",
        }[numbering],
        "shared": "False" if numbering == "ordinal" else "score == previous",
        "step": {"competition": "len(tied)", "dense": "1", "ordinal": "len(tied)"}[numbering],
        "own": "offset" if numbering == "ordinal" else "0",
        "pre": "sorted(tied)" if facets["ties"] == "name" else "tied",
        "arrange": "sorted(scores)" if facets["ties"] == "name" else "scores",
        "lift": "1" if numbering == "ordinal" else "0",
        "bump": {
            "competition": "rival <<better>> score",
            "dense": "rival <<better>> score and rival not in met",
            "ordinal": "(rival <<better>> score) or (rival == score and other < index)",
        }[numbering].replace("<<better>>", ">" if facets["best"] == "high" else "<"),
    }


_WALK = template(
    """
def <<name>>(scores):
    entries, late = [], []
    for position, (player, score) in enumerate(scores):
        score = <<filled>>
        if score is None:
            late.append((<<tie>>, player))
        else:
            entries.append((<<sign>>score, <<tie>>, player))
    entries.sort()
    late.sort()
    table = []
    place, previous = 0, None
    for number, (score, _, player) in enumerate(entries, 1):
        if not (<<shared>>):
            <<advance>>
        previous = score
        table.append(<<row>>)
    for _, player in <<late>>:
        table.append(<<none_row>>)
    return table
""",
    _holes,
)

_COUNT = template(
    """
def <<name>>(scores):
    known = [
        [player, <<filled>>, position] for position, (player, score) in enumerate(scores)
    ]
    late = sorted((k for k in known if k[1] is None), key=lambda k: k[<<tie_index>>])
    known = sorted((k for k in known if k[1] is not None), key=lambda k: k[<<tie_index>>])
    known.sort(key=lambda k: k[1], reverse=<<reverse>>)
    values = [k[1] for k in known]

    def place_of(number, score):
        return <<place>>

    return [
        (lambda place: <<row>>)(place_of(number, score))
        for number, (player, score, _) in enumerate(known, 1)
    ] + [<<none_row>> for player, *_ in <<late>>]
""",
    _holes,
)

_BUCKETS = template(
    """
from collections import defaultdict


def <<name>>(scores):
    buckets = defaultdict(list)
    for player, score in scores:
        buckets[<<filled>>].append(player)
    late = buckets.pop(None, [])
    place = 1
    table = []
    for score in sorted(buckets, reverse=<<reverse>>):
        tied = buckets[score]
        first = place
        for offset, player in enumerate(<<pre>>):
            place = first + <<own>>
            table.append(<<row>>)
        place = first + <<step>>
    tied = <<late>>
    table.extend(<<none_row>> for player in <<pre>>)
    return table
""",
    _holes,
)

_PICK = template(
    """
class Board:
    def __init__(self, scores):
        self.waiting = {}
        self.late = []
        for player, score in <<arrange>>:
            score = <<filled>>
            if score is None:
                self.late.append(player)
            else:
                self.waiting[player] = score

    def take(self):
        while self.waiting:
            score = <<top>>(self.waiting.values())
            tied = [p for p, s in self.waiting.items() if s == score]
            for player in tied:
                del self.waiting[player]
            yield tied

    def rows(self):
        place = 1
        for tied in self.take():
            base = place
            for offset, player in enumerate(tied):
                place = base + offset * <<lift>>
                yield <<row>>
            place = base + <<step>>
        late = self.late
        for player in <<late>>:
            yield <<none_row>>


def <<name>>(scores):
    return list(Board(scores).rows())
""",
    _holes,
)

_DUELS = template(
    """
def <<name>>(scores):
    line = <<arrange>>
    line = [(player, <<filled>>) for player, score in line]
    slots = [None] * len(line)
    late = []
    count = 0
    for index, (player, score) in enumerate(line):
        if score is None:
            late += [<<none_row>>]
            continue
        place, slot, met = 1, 0, set()
        for other, (_, rival) in enumerate(line):
            if rival is None or other == index:
                continue
            if <<bump>>:
                place += 1
                met.add(rival)
            if rival <<better>> score or (rival == score and other < index):
                slot += 1
        slots[slot] = <<row>>
        count += 1
    return slots[:count] + <<late>>
""",
    _holes,
)

_NAMES = ("Ada", "Bo", "Cyd", "Dov", "Eli", "Fay", "Gus", "Hal", "Ida", "Jo")


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    fixed: list[list[list[Any]]] = [
        [],
        [["Ada", 5]],
        [["Ada", None]],
        [["Bo", 3], ["Ada", 3]],
        [["Ada", 1], ["Bo", 2]],
        [["Bo", 2], ["Ada", 1]],
        [["Bo", 4], ["Ada", 4], ["Cyd", 1]],
        [["Cyd", 1], ["Bo", 4], ["Ada", 4]],
        [["Cyd", 9], ["Bo", 4], ["Ada", 4], ["Dov", 1]],
        [["Cyd", 9], ["Ada", 9], ["Bo", 9], ["Dov", 1], ["Eli", 1], ["Fay", 0]],
        [["Ada", None], ["Bo", 2]],
        [["Bo", None], ["Ada", None]],
        [["Bo", 0], ["Ada", None], ["Cyd", 2]],
        [["Bo", -3], ["Ada", None], ["Cyd", 2]],
        [["Bo", -3], ["Ada", 0], ["Cyd", -3]],
        [["Ada", 7], ["Bo", 7], ["Cyd", 7]],
        [["Cyd", 7], ["Bo", 7], ["Ada", 7]],
    ]
    calls: list[tuple[Any, ...]] = [(scores,) for scores in fixed]
    for _ in range(30):
        players = rng.sample(_NAMES, rng.randint(2, 7))
        if rng.random() < 0.5:
            players.sort()
        gaps = 0.25 if rng.random() < 0.4 else 0.0
        calls.append(([[p, None if rng.random() < gaps else rng.randint(-1, 6)] for p in players],))
    return calls


FAMILY = Family(
    name="ranking",
    split="test",
    entry_point=_name,
    facets={
        "numbering": ("competition", "dense", "ordinal"),
        "best": ("high", "low"),
        "missing": ("last", "omit", "zero"),
        "ties": ("name", "input"),
        "shape": ("rows", "texts"),
    },
    instruction=_instruction,
    algorithms=(_WALK, _COUNT, _BUCKETS, _PICK, _DUELS),
    slips=(
        altered(_WALK, "enumerate(entries, 1)", "enumerate(entries)"),
        altered(_COUNT, "if k[1] is not None", "if k[1]"),
        altered(_BUCKETS, "sorted(tied)", "sorted(tied, reverse=True)"),
        altered(_PICK, "place = base + 1", "place = base + len(tied) // 2 + 1"),
        altered(_COUNT, "1 + sum(s > score", "1 + sum(s >= score"),
        altered(_WALK, "    late.sort()\n", "    late.sort(reverse=True)\n"),
        altered(
            _COUNT,
            "    known = [\n",
            "    scores.sort(key=lambda pair: pair[0])\n    known = [\n",
        ),
        altered(_DUELS, "other == index:", "other == index or rival == 0:"),
    ),
    inputs=_inputs,
)

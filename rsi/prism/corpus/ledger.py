"""Kata family: book movements of goods onto a stock list."""

from __future__ import annotations

import random
from typing import Any

from rsi.prism.corpus.family import Facets, Family, altered
from rsi.prism.corpus.ledger_programs import CLASSES, DIRECT, FOLD, PER_MOVE, TABLE, entry_point

_SHORT = {
    "error": "Taking out more than there is raises `ValueError`.",
    "clamp": "Taking out more than there is leaves 0.",
    "skip": "A movement that takes out more than there is is left out altogether.",
}


def _instruction(facets: Facets) -> str:
    unknown = (
        "Taking out an item that is not in stock at that moment raises `KeyError`."
        if facets["unknown"] == "error"
        else "An item that is not known when it is taken out counts as one with amount 0, and is "
        "in stock with what is left from then on (unless the movement is left out)."
    )
    negative = (
        "A movement with an amount below zero raises `ValueError`"
        if facets["negative"] == "error"
        else "A movement with an amount below zero is left out"
    )
    zero = (
        "Items with amount 0 stay in the result"
        if facets["zero"] == "keep"
        else "Items with amount 0 do not appear in the result (they are still known items during "
        "the bookings)"
    )
    result = (
        "a dict from item to amount"
        if facets["result"] == "dict"
        else "a list of `[item, amount]` lists in alphabetical order of the items"
    )
    return (
        f"Write `{entry_point(facets)}(stock, moves)`. `stock` is a dict from item to "
        f"amount; `moves` is "
        f'a list of `[kind, item, amount]` lists, booked in order: `"in"` adds the amount, '
        f'`"out"` takes it out, `"set"` makes it the amount in stock. `"in"` and `"set"` may name '
        f"new items. The result is the new stock: {result}.\n\n"
        f"- A kind other than these raises `ValueError`.\n- {negative}; this is looked at after "
        f"the kind and before the item.\n- {unknown}\n- {_SHORT[facets['short']]}\n"
        f"- {zero}, those that had 0 from the start included."
    )


_ITEMS = ("bolt", "cord", "lamp", "nail", "saw")


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = [
        ({}, []),
        ({"nail": 4}, []),
        ({"nail": 0}, []),
        ({"saw": 1, "cord": 0}, [["in", "saw", 2]]),
        ({"nail": 4}, [["out", "nail", 3]]),
        ({"nail": 4}, [["out", "nail", 4]]),
        ({"nail": 4}, [["out", "nail", 5]]),
        ({"nail": 4}, [["out", "nail", 9], ["out", "nail", 2]]),
        ({"nail": 4}, [["in", "bolt", 2]]),
        ({"nail": 4}, [["in", "bolt", 0]]),
        ({}, [["out", "bolt", 2]]),
        ({}, [["out", "bolt", 0]]),
        ({"nail": 1}, [["out", "bolt", 2], ["in", "bolt", 3]]),
        ({"nail": 1}, [["set", "nail", 7]]),
        ({"nail": 1}, [["set", "bolt", 7]]),
        ({"nail": 1}, [["set", "nail", 0]]),
        ({"nail": 1}, [["in", "nail", -1]]),
        ({"nail": 3}, [["out", "nail", -1], ["out", "nail", 1]]),
        ({"nail": 3}, [["set", "nail", -1], ["in", "nail", 2]]),
        ({"nail": 3}, [["out", "lamp", -1]]),
        ({"nail": 3}, [["lose", "nail", 1]]),
        ({"nail": 3}, [["lose", "nail", -1]]),
        ({"nail": 3}, [["in", "saw", 2], ["", "nail", 1]]),
        ({"nail": 2}, [["out", "nail", 2], ["out", "nail", 1]]),
        ({"nail": 2}, [["out", "nail", 2], ["in", "nail", 1]]),
        ({"saw": 2, "bolt": 5}, [["in", "lamp", 1], ["out", "bolt", 5]]),
        ({"saw": 2, "bolt": 5}, [["out", "saw", 1], ["out", "saw", 1], ["set", "bolt", 9]]),
    ]
    for _ in range(24):
        stock = {item: rng.randint(0, 9) for item in rng.sample(_ITEMS, rng.randint(1, 4))}
        moves = []
        for _ in range(rng.randint(1, 5)):
            kind = rng.choice(("in", "out", "out", "set"))
            item = rng.choice(_ITEMS if rng.random() < 0.25 else tuple(stock))
            moves.append([kind, item, -1 if rng.random() < 0.05 else rng.randint(0, 6)])
        calls.append((stock, moves))
    return calls


FAMILY = Family(
    name="ledger",
    split="train",
    entry_point=entry_point,
    facets={
        "short": ("error", "clamp", "skip"),
        "unknown": ("error", "zero"),
        "negative": ("error", "skip"),
        "zero": ("keep", "drop"),
        "result": ("dict", "rows"),
    },
    instruction=_instruction,
    algorithms=(DIRECT, TABLE, CLASSES, FOLD, PER_MOVE),
    slips=(
        altered(DIRECT, "    stock = dict(stock)\n", ""),
        altered(DIRECT, "if amount > have:", "if amount >= have:"),
        altered(TABLE, "(have or 0) + amount", "(have or amount) + amount"),
        altered(TABLE, "have - amount if have >= amount", "have - amount if have"),
        altered(
            CLASSES,
            "self.amounts.setdefault(item, 0)",
            "self.amounts[item] = self.amounts.get(item) or 1",
        ),
        altered(CLASSES, "self.amounts.update(stock)", "self.amounts = stock"),
        altered(
            FOLD, 'case ["set", item, amount]:', 'case ["set", item, amount] if item in stock:'
        ),
        altered(
            PER_MOVE, "while number < len(moves):", "while number < len(moves) - (len(moves) > 2):"
        ),
        altered(
            PER_MOVE,
            "        else:\n            amounts[at] = amount",
            "        elif amount:\n            amounts[at] = amount",
        ),
    ),
    inputs=_inputs,
)

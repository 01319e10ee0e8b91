"""Kata family: book movements of goods onto a stock list."""

from __future__ import annotations

import random
from typing import Any

from rsi.prism.corpus.family import Facets, Family, altered, template

_SHORT = {
    "error": "Taking out more than there is raises `ValueError`.",
    "clamp": "Taking out more than there is leaves 0.",
    "skip": "A movement that takes out more than there is is left out altogether.",
}


def _name(facets: Facets) -> str:
    return "book" if facets["result"] == "dict" else "stock_list"


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
        f"Write `{_name(facets)}(stock, moves)`. `stock` is a dict from item to amount; `moves` is "
        f'a list of `[kind, item, amount]` lists, booked in order: `"in"` adds the amount, '
        f'`"out"` takes it out, `"set"` makes it the amount in stock. `"in"` and `"set"` may name '
        f"new items. The result is the new stock: {result}.\n\n"
        f"- A kind other than these raises `ValueError`.\n- {negative}; this is looked at after "
        f"the kind and before the item.\n- {unknown}\n- {_SHORT[facets['short']]}\n"
        f"- {zero}, those that had 0 from the start included."
    )


def _holes(facets: Facets) -> dict[str, str]:
    drop = facets["zero"] == "drop"
    rows = facets["result"] == "rows"
    kept = " if amount != 0" if drop else ""
    return {
        "name": _name(facets),
        "negative": 'raise ValueError("negative amount")'
        if facets["negative"] == "error"
        else "continue",
        "negative_fault": "ValueError" if facets["negative"] == "error" else "None",
        "unknown": str(facets["unknown"] == "error"),
        "short": {
            "error": 'raise ValueError("not enough in stock")',
            "clamp": "amount = have",
            "skip": "continue",
        }[facets["short"]],
        "short_value": {
            "error": '_fail(ValueError("short"))',
            "clamp": "0",
            "skip": "have",
        }[facets["short"]],
        "skips": str(facets["short"] == "skip"),
        "clamps": str(facets["short"] == "clamp"),
        "quiet": str(facets["negative"] == "skip"),
        "lenient": str(facets["unknown"] == "zero"),
        "result": f"[[item, amount] for item, amount in sorted(stock.items()){kept}]"
        if rows
        else f"{{item: amount for item, amount in stock.items(){kept}}}",
        "kept": "amount" if drop else "True",
        "finish": "sorted(map(list, pairs))" if rows else "dict(pairs)",
    }


_DIRECT = template(
    """
def <<name>>(stock, moves):
    stock = dict(stock)
    for kind, item, amount in moves:
        if kind not in ("in", "out", "set"):
            raise ValueError(f"unknown kind {kind!r}")
        if amount < 0:
            <<negative>>
        if kind == "in":
            stock[item] = stock.get(item, 0) + amount
        elif kind == "set":
            stock[item] = amount
        else:
            if item not in stock and <<unknown>>:
                raise KeyError(item)
            have = stock.get(item, 0)
            if amount > have:
                <<short>>
            stock[item] = have - amount
    return <<result>>
""",
    _holes,
)

_TABLE = template(
    """
def _fail(error):
    raise error


def _take(have, amount):
    return have - amount if have >= amount else <<short_value>>


KINDS = {
    "in": lambda have, amount: (have or 0) + amount,
    "out": lambda have, amount: _take(have or 0, amount),
    "set": lambda have, amount: amount,
}


def <<name>>(stock, moves):
    stock = {**stock}
    for move in moves:
        if move[0] not in KINDS:
            _fail(ValueError(move[0]))
        if min(move[2], 0):
            <<negative>>
        kind, item, amount = move
        known = item in stock
        if kind == "out" and not known and <<unknown>>:
            _fail(KeyError(item))
        if <<skips>> and kind == "out" and stock.get(item, 0) < amount:
            continue
        stock[item] = KINDS[kind](stock.get(item), amount)
    return <<result>>
""",
    _holes,
)

_CLASSES = template(
    """
class Shelf:
    def __init__(self, stock):
        self.amounts = {}
        self.amounts.update(stock)

    def do_in(self, item, amount):
        self.amounts.setdefault(item, 0)
        self.amounts[item] += amount

    def do_set(self, item, amount):
        self.amounts[item] = amount

    def do_out(self, item, amount):
        try:
            left = self.amounts[item] - amount
        except KeyError:
            if <<unknown>>:
                raise
            left = -amount
        if left < 0 and <<skips>>:
            return
        if left < 0 and not <<clamps>>:
            raise ValueError(f"only {left + amount} of {item}")
        self.amounts[item] = max(left, 0)

    def apply(self, kind, item, amount):
        action = {"in": self.do_in, "out": self.do_out, "set": self.do_set}.get(kind)
        if action is None:
            raise ValueError(kind)
        if amount >= 0:
            action(item, amount)
        elif not <<quiet>>:
            raise ValueError(amount)

    def pairs(self):
        for item, amount in self.amounts.items():
            if <<kept>>:
                yield item, amount


def <<name>>(stock, moves):
    shelf = Shelf(stock)
    for move in moves:
        shelf.apply(*move)
    pairs = shelf.pairs()
    return <<finish>>
""",
    _holes,
)

_FOLD = template(
    """
from functools import reduce
from types import MappingProxyType


def _after(stock, move):
    match move:
        case ["in" | "out" | "set", _, amount] if amount < 0:
            fault = <<negative_fault>>
            if fault is not None:
                raise fault(amount)
            return stock
        case ["in", item, amount]:
            change = {item: amount + stock.get(item, 0)}
        case ["set", item, amount]:
            change = {item: amount}
        case ["out", item, amount] if stock.get(item, 0) >= amount:
            change = {item: (stock.get(item, 0) if <<lenient>> else stock[item]) - amount}
        case ["out", item, _]:
            if not (<<lenient>> or item in stock):
                raise KeyError(item)
            if <<skips>>:
                return stock
            if not <<clamps>>:
                raise ValueError(item)
            change = {item: 0}
        case _:
            raise ValueError(move)
    return MappingProxyType({**stock, **change})


def <<name>>(stock, moves):
    stock = reduce(_after, moves, stock)
    return <<result>>
""",
    _holes,
)

_PER_MOVE = template(
    """
def _check(kind, amount):
    if kind == "in" or kind == "out" or kind == "set":
        return amount >= 0
    raise ValueError("kind")


def <<name>>(stock, moves):
    items = list(stock)
    amounts = [stock[item] for item in items]
    number = 0
    while number < len(moves):
        kind, item, amount = moves[number]
        number += 1
        if not _check(kind, amount):
            <<negative>>
        at = items.index(item) if item in items else -1
        if at < 0:
            if kind == "out":
                if <<unknown>>:
                    raise KeyError(f"no {item}")
                have = 0
                if amount > have:
                    <<short>>
            items.append(item)
            amounts.append(0)
        have = amounts[at]
        if kind == "out":
            if have < amount:
                <<short>>
            amounts[at] -= amount
        elif kind == "in":
            amounts[at] += amount
        else:
            amounts[at] = amount
    stock = dict(zip(items, amounts))
    return <<result>>
""",
    _holes,
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
    entry_point=_name,
    facets={
        "short": ("error", "clamp", "skip"),
        "unknown": ("error", "zero"),
        "negative": ("error", "skip"),
        "zero": ("keep", "drop"),
        "result": ("dict", "rows"),
    },
    instruction=_instruction,
    algorithms=(_DIRECT, _TABLE, _CLASSES, _FOLD, _PER_MOVE),
    slips=(
        altered(_DIRECT, "    stock = dict(stock)\n", ""),
        altered(_DIRECT, "if amount > have:", "if amount >= have:"),
        altered(_TABLE, "(have or 0) + amount", "(have or amount) + amount"),
        altered(_TABLE, "have - amount if have >= amount", "have - amount if have"),
        altered(
            _CLASSES,
            "self.amounts.setdefault(item, 0)",
            "self.amounts[item] = self.amounts.get(item) or 1",
        ),
        altered(_CLASSES, "self.amounts.update(stock)", "self.amounts = stock"),
        altered(
            _FOLD, 'case ["set", item, amount]:', 'case ["set", item, amount] if item in stock:'
        ),
        altered(
            _PER_MOVE, "while number < len(moves):", "while number < len(moves) - (len(moves) > 2):"
        ),
        altered(
            _PER_MOVE,
            "        else:\n            amounts[at] = amount",
            "        elif amount:\n            amounts[at] = amount",
        ),
    ),
    inputs=_inputs,
)

"""Programs of the kata family ledger, alike in behaviour for the same facets."""

from __future__ import annotations

from rsi.prism.corpus.family import Facets, template


def entry_point(facets: Facets) -> str:
    return "book" if facets["result"] == "dict" else "stock_list"


def _holes(facets: Facets) -> dict[str, str]:
    drop = facets["zero"] == "drop"
    rows = facets["result"] == "rows"
    kept = " if amount != 0" if drop else ""
    return {
        "name": entry_point(facets),
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


DIRECT = template(
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

TABLE = template(
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

CLASSES = template(
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

FOLD = template(
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

PER_MOVE = template(
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

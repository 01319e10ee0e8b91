"""Rota: give each day to a person who can work on it, as evenly as possible."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rsi.prism.corpus.blocks import Clauses, Holes, contract, facets_of, program
from rsi.prism.corpus.family import Facets, Family, altered

CLAUSES: Clauses = {
    "tie": {
        "listed": "Among people with equally few days the one who stands first in `people` works.",
        "alphabetical": "Among people with equally few days the alphabetically first works.",
        "rested": "Among people with equally few days the one whose last day is longest ago works "
        "(who has not worked yet comes first of all); if several have not worked yet, the one who "
        "stands first in `people`.",
    },
    "nobody": {
        "dash": 'A day on which nobody can work is given to `"-"`.',
        "skipped": "A day on which nobody can work does not appear in the result.",
        "value-error": "A day on which nobody can work raises `ValueError`.",
    },
    "rest": {
        "free": "A person may work on neighbouring days.",
        "break": "Nobody works on two days that directly follow each other in `days`.",
    },
    "result": {
        "pairs": "The result is a list of `[day, name]` lists in the order of `days`.",
        "by-name": "The result is a dictionary from each name in `people` (also those without a "
        'day) to the list of their days; `"-"` is a key only when it has days.',
    },
    "unknown": {
        "ignored": "Names in `absent` that are not in `people` are ignored.",
        "key-error": "A name in `absent` that is not in `people` raises `KeyError`.",
    },
}

# fmt: off
HOLES: Holes = {
    "check": ("unknown", {"ignored": "",
        "key-error": "for name in absent:\n    if name not in people:\n"
        "        raise KeyError(name)"}),
    "check_sets": ("unknown", {"ignored": "",
        "key-error": "strangers = set(absent) - set(people)\nif strangers:\n"
        "    raise KeyError(min(strangers))"}),
    "rank": ("tie", {"listed": "(len(worked[name]), people.index(name))",
        "alphabetical": "(len(worked[name]), name)",
        "rested": "(len(worked[name]), worked[name][-1:], people.index(name))"}),
    "rested": ("rest", {"free": "", "break": " and name != previous"}),
    "nobody": ("nobody", {"dash": 'chosen = "-"', "skipped": "previous = None\ncontinue",
        "value-error": 'raise ValueError(f"nobody can work on {day}")'}),
    "record": ("result", {"pairs": "rota.append([day, chosen])",
        "by-name": "rota.setdefault(chosen, []).append(day)"}),
    "new": ("result", {"pairs": "[]", "by-name": "{name: [] for name in people}"}),
    "heap_first": ("tie", {"listed": "[(0, place, name) for place, name in enumerate(people)]",
        "alphabetical": "[(0, name, place) for place, name in enumerate(people)]",
        "rested": "[(0, -1, place, name) for place, name in enumerate(people)]"}),
    "heap_parts": ("tie", {"listed": "count, place, name", "alphabetical": "count, name, place",
        "rested": "count, last, place, name"}),
    "heap_again": ("tie", {"listed": "(count + 1, place, name)",
        "alphabetical": "(count + 1, name, place)", "rested": "(count + 1, number, place, name)"}),
    "heap_none": ("nobody", {"dash": 'name = "-"\ngiven.append((day, name))',
        "skipped": "name = None", "value-error": 'raise ValueError("no free person on " + day)'}),
    "heap_rested": ("rest", {"free": "", "break": " or name == yesterday"}),
    "presented": ("result", {"pairs": "return [list(pair) for pair in given]",
        "by-name": "rota = {name: [] for name in people}\nfor day, name in given:\n"
        "    rota.setdefault(name, []).append(day)\nreturn rota"}),
    "queue": ("tie", {"listed": "list(people)", "alphabetical": "sorted(people)",
        "rested": "list(people)"}),
    "better": ("tie", {"listed": "counts[i] < counts[best]",
        "alphabetical": "counts[i] < counts[best]",
        "rested": "(counts[i], last[i]) < (counts[best], last[best])"}),
    "loop_rested": ("rest", {"free": "",
        "break": "if number and last[i] == number - 1:\n    continue"}),
    "loop_none": ("nobody", {"dash": 'names.append("-")', "skipped": "names.append(None)",
        "value-error": 'raise ValueError("rota has a gap at " + days[number])'}),
    "loop_result": ("result", {
        "pairs": "return [[day, name] for day, name in zip(days, names) if name]",
        "by-name": "rota = {}\nfor name in people:\n"
        "    rota[name] = [day for day, taken in zip(days, names) if taken == name]\n"
        'if "-" in names:\n'
        '    rota["-"] = [day for day, taken in zip(days, names) if taken == "-"]\n' "return rota"
    }),
    "recursive_key": ("tie", {"listed": "names.count(name)", "alphabetical": "names.count(name)",
        "rested": "(names.count(name), since(name, names))"}),
    "tired": ("rest", {"free": "[]", "break": "done[-1:]"}),
    "recursive_none": ("nobody", {"dash": '["-"]', "skipped": "[None]",
        "value-error": "[gap(days[len(done)])]"}),
    "class_key": ("tie", {"listed": "(self.count, self.place)",
        "alphabetical": "(self.count, self.name)", "rested": "(self.count, self.last, self.place)"
    }),
    "class_rested": ("rest", {"free": "", "break": " and self.last != number - 1"}),
    "class_none": ("nobody", {"dash": 'free = [Person("-", 0, [])]', "skipped": "continue",
        "value-error": 'raise ValueError(day + ": nobody is free")'}),
}
# fmt: on

GREEDY = '''
def <<entry>>(people, days, absent):
    """Give each day to the free person with the fewest days so far."""
    <<check>>
    worked = {name: [] for name in people}
    rota = <<new>>
    previous = None
    for number, day in enumerate(days):
        free = [
            name for name in people
            if day not in absent.get(name, [])<<rested>>
        ]
        if free:
            chosen = min(free, key=lambda name: <<rank>>)
            worked[chosen].append(number)
        else:
            <<nobody>>
        <<record>>
        previous = chosen
    return rota
'''

HEAP = """
import heapq


def <<entry>>(people, days, absent):
    <<check_sets>>
    heap = <<heap_first>>
    heapq.heapify(heap)
    given, yesterday = [], None
    for number, day in enumerate(days):
        put_back = []
        while heap:
            entry = heapq.heappop(heap)
            <<heap_parts>> = entry
            if day in absent.get(name, ())<<heap_rested>>:
                put_back.append(entry)
                continue
            put_back.append(<<heap_again>>)
            given.append((day, name))
            break
        else:
            <<heap_none>>
        yesterday = name
        for entry in put_back:
            heapq.heappush(heap, entry)
    <<presented>>
"""

LOOPS = """
def <<entry>>(people, days, absent):
    <<check>>
    queue = <<queue>>
    counts = [0] * len(queue)
    last = [-1] * len(queue)
    names = []
    for number in range(len(days)):
        best = None
        for i in range(len(queue)):
            <<loop_rested>>
            if queue[i] in absent and days[number] in absent[queue[i]]:
                continue
            if best is None or <<better>>:
                best = i
        if best is None:
            <<loop_none>>
        else:
            names.append(queue[best])
            counts[best] += 1
            last[best] = number
    <<loop_result>>
"""

RECURSE = '''
def since(name, names):
    """Place of the last day of a person, -1 before the first one."""
    return max((place for place, other in enumerate(names) if other == name), default=-1)


def gap(day):
    raise ValueError(f"a gap on {day}")


def names_for(queue, days, absent, done):
    """Extend the names of the first days by one name a day."""
    if len(done) == len(days):
        return done
    away = {name for name, missed in absent.items() if days[len(done)] in missed}
    away.update(<<tired>>)
    names = done
    free = sorted(set(queue) - away, key=queue.index)
    free.sort(key=lambda name: <<recursive_key>>)
    return names_for(queue, days, absent, done + (free[:1] or <<recursive_none>>))


def <<entry>>(people, days, absent):
    <<check_sets>>
    names = names_for(<<queue>>, days, absent, [])
    given = [pair for pair in zip(days, names) if pair[1] is not None]
    <<presented>>
'''

PERSONS = """
class Person:
    def __init__(self, name, place, missed):
        self.name, self.place, self.missed = name, place, set(missed)
        self.count = 0
        self.last = -2

    def __lt__(self, other):
        mine, theirs = self.key(), other.key()
        return mine < theirs

    def key(self):
        return <<class_key>>

    def can_work(self, number, day):
        return day not in self.missed<<class_rested>>

    def work(self, number):
        self.count += 1
        self.last = number
        return self.name


def <<entry>>(people, days, absent):
    <<check>>
    staff = [Person(name, i, absent.get(name, [])) for i, name in enumerate(people)]
    given = []
    for number, day in enumerate(days):
        free = [person for person in staff if person.can_work(number, day)]
        if not free:
            <<class_none>>
        given.append((day, min(free).work(number)))
    <<presented>>
"""


def _entry(facets: Facets) -> str:
    return "build_rota" if facets["result"] == "pairs" else "days_by_person"


def _inputs(rng: random.Random) -> list[tuple[Any, ...]]:
    week = ["mon", "tue", "wed", "thu", "fri", "sat"]
    calls: list[tuple[Any, ...]] = [
        ([], [], {}), (["bo"], [], {}), ([], ["mon"], {}), (["bo"], ["mon"], {}),
        (["bo"], ["mon", "tue"], {}), (["bo"], ["mon", "tue"], {"bo": ["tue"]}),
        (["bo"], ["mon"], {"bo": ["mon"]}), (["bo", "al"], week, {}), (["b", "cy", "al"], week, {}),
        (["bo", "al"], week[:2], {"zed": ["mon"]}), (["bo"], [], {"zed": []}),
        (["bo", "al"], week[:3], {"bo": ["mon", "tue"], "al": ["tue"]}),
        (["bo", "al"], week, {"bo": week[:3]}), (["al", "bo"], week[:4], {"bo": ["tue", "wed"]}),
        (["cy", "al", "bo"], week, {"cy": ["mon"], "al": ["mon", "thu"]}),
        (["al", "bo", "cy"], week, {"al": ["mon", "tue"], "bo": ["mon"]}),
        (["bo", "al"], week[:2], {"bo": [], "al": ["fri"]}), (["di", "al"], ["sun", "mon"], {}),
        (["al", "bo", "cy"], week, {"al": week, "bo": ["mon"], "cy": ["wed"]}),
    ]  # fmt: skip
    for _ in range(26):
        people = rng.sample(["al", "bo", "cy", "di"], rng.randint(2, 4))
        days = week[: rng.randint(3, 6)]
        absent = {name: rng.sample(days, rng.randint(0, 2)) for name in people[: rng.randint(1, 3)]}
        calls.append((people, days, absent))
    return calls


_source = partial(program, holes=HOLES, entry_point=_entry)
_greedy, _heap, _loops = _source(GREEDY), _source(HEAP), _source(LOOPS)
_recurse, _persons = _source(RECURSE), _source(PERSONS)

FAMILY = Family(
    name="rota",
    split="test",
    entry_point=_entry,
    facets=facets_of(CLAUSES),
    instruction=contract(
        "Write `<<entry>>(people, days, absent)` in `solution.py`. It goes through the list `days` "
        "in order and gives each day to one person of the list `people` who can work then: of "
        "those, one with the fewest days so far. `absent` is a dictionary from names to lists of "
        "days on which that person cannot work. Names and days are strings without repetition. "
        "There are at most 100 days.",
        CLAUSES,
        _entry,
    ),
    algorithms=(_greedy, _heap, _loops, _recurse, _persons),
    slips=(
        altered(
            _greedy, "worked = {name: [] for name in people}", "worked = dict.fromkeys(people, [])"
        ),
        altered(
            _greedy, "if day not in absent.get(name, [])", "if day not in absent.get(name, [])[:1]"
        ),
        altered(_heap, "put_back.append(entry)\n                continue", "continue"),
        altered(_loops, "counts[best] += 1", "counts[i] += 1"),
        altered(_loops, "in range(len(days)):", "in range(len(days) - 1):"),
        altered(_persons, "return mine < theirs", "return mine > theirs"),
        altered(_persons, "absent.get(name, [])", "absent[name]"),
    ),
    inputs=_inputs,
)

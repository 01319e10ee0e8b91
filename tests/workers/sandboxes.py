"""The sandboxes that work on this machine, and short ways to run cells in them."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import pytest

from rsi.errors import SettingsError
from rsi.ports import Completed, Execution, Isolation, Sandbox
from rsi.prism.task import Limits
from rsi.prism.tree import Tree
from workers.sandbox import choose_sandbox

STRONG = [
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    pytest.param("docker", marks=pytest.mark.docker),
]
ALL = [*STRONG, "process"]
PROGRAM = Tree.of({"solution.py": "def f(x):\n    return 2 * x\n"})
# long enough for a busy machine; tests of limits set their own
PATIENT = Limits(wall_seconds=60.0, cpu_seconds=60.0)


@cache
def _try(name: str) -> Sandbox | str:
    try:
        return choose_sandbox(cast(Isolation, name), trusted=True)[0]
    except SettingsError as error:
        return str(error)


def opened(name: str) -> Sandbox:
    """The sandbox of that name; skips the test when it does not work here."""
    found = _try(name)
    if isinstance(found, str):
        pytest.skip(found)
    return found


def run(name: str, script: str, *, program: Tree = PROGRAM, **options: Any) -> Completed:
    """Run one script as the entry of a suite; `more` adds files to the suite."""
    more = options.pop("more", {})
    text = script if script.startswith("#!") else "#!/bin/sh\n" + script
    execution = Execution(
        program=program,
        submission=Tree.of({"run_tests.sh": text, **more}, ["run_tests.sh"]),
        argv=("run_tests.sh",),
        entry_in_submission=True,
        limits=options.pop("limits", PATIENT),
        **options,
    )
    return opened(name).run(execution)


def python(code: str) -> str:
    """An entry script in Python."""
    return "#!/usr/bin/env python3\n" + code

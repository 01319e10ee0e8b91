"""The Python that cells run on: the running interpreter without what is installed beside it.

A cell sees the standard library, pytest and coverage with what these need, and nothing else: not
this project (its corpus holds hidden panels) and no other installed package or pytest plugin.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from compileall import compile_dir
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement

from rsi.errors import SettingsError

PROVIDED = ("pytest", "coverage")
_QUERY = "import json, site, sys; print(json.dumps([sys.prefix, site.getsitepackages()]))"


@dataclass(frozen=True)
class Interpreter:
    """Where the interpreter is, and how a sandbox shows it.

    `prefix` is to be bound at the same path (None when it is part of /usr); `hidden` are
    directories to be covered by empty ones; `packages` are (source, name) to be bound below
    `site`, which is one of `hidden`.
    """

    executable: str
    prefix: str | None
    site: str
    hidden: tuple[str, ...]
    packages: tuple[tuple[str, str], ...]


@cache
def running_interpreter() -> Interpreter:
    """Describe the interpreter that runs us; raises SettingsError when cells cannot use it."""
    executable = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    asked = subprocess.run(
        [executable, "-I", "-c", _QUERY], capture_output=True, text=True, check=False
    )
    if asked.returncode != 0:
        raise SettingsError(f"{executable} does not run by itself: {asked.stderr[-200:].strip()}")
    prefix, sites = json.loads(asked.stdout)
    shown = ["/usr"] if _inside(prefix, ["/usr"]) else ["/usr", prefix]
    existing = [site for site in sites if os.path.isdir(site) and _inside(site, shown)]
    if not existing:
        raise SettingsError(f"{executable} has no site-packages below {prefix}; use another Python")
    project = str(Path(__file__).resolve().parents[2])
    mine = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), project]
    hidden = {os.path.realpath(p) for p in mine if os.path.isdir(p)} - set(existing)
    return Interpreter(
        executable=executable,
        prefix=None if len(shown) == 1 else prefix,
        site=existing[0],
        hidden=(*existing, *sorted(p for p in hidden if _inside(p, shown))),
        packages=provided_packages(),
    )


def compile_packages() -> None:
    """Compile the provided packages where they lie, unless they are or may not be written.

    Uncompiled, every cell that imports pytest would compile it: 3.5 times the cost.
    """
    for path, _ in provided_packages():
        first = Path(path) / "__init__.py"
        if first.is_file() and not Path(cache_from_source(str(first))).exists():
            compile_dir(path, quiet=2)


def _inside(path: str, roots: list[str]) -> bool:
    return any(Path(path).is_relative_to(root) for root in roots)


def provided_packages() -> tuple[tuple[str, str], ...]:
    """List (path, name) of what pytest and coverage install, with all they require.

    Raises SettingsError when pytest is not installed.
    """
    found: dict[str, str] = {}
    pending, seen = list(PROVIDED), set[str]()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if name == "pytest":
                raise SettingsError("pytest is not installed; pip install pytest") from None
            continue
        for line in distribution.requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                pending.append(needed.name)
        for file in distribution.files or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__", "bin") and not top.endswith(".pth"):
                found[top] = str(distribution.locate_file(top))
    return tuple((path, name) for name, path in sorted(found.items()))

"""The house's three ideas, kept true by reading every import.

LAYERS: imports point up the list only. OWNERS: a heavy library has one home. HIDDEN: what an
agent or the search can reach may not see the panel, also not through a third module.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("rsi", "evolution", "workers")

# a module belongs to the first layer whose prefix fits; it may import its own layer and earlier
LAYERS: tuple[tuple[str, ...], ...] = (
    (
        "rsi.errors",
        "rsi.digest",
        "rsi.wire",
        "rsi.budget",
        "rsi.strategy",
        "rsi.trajectory",
        "rsi.ports",
        "rsi.prism.tree",
        "rsi.prism.task",
        "rsi.prism.suite",
        "rsi.prism.outcome",
        "rsi.records",
    ),
    ("rsi.prism.cell", "rsi.prism.metrics"),
    ("rsi.prism.panel",),
    ("rsi.prism.judge", "rsi.prism.build", "rsi.prism.corpus"),
    ("rsi.helix",),
    ("rsi.rollout",),
    ("evolution",),
    ("rsi.cli",),
    ("workers",),
    ("rsi",),
)
OWNERS = {
    "ray": ("workers.pool",),
    "docker": ("workers.sandbox.docker",),
    "litellm": ("workers.llm", "workers.builtin_coder"),
    "mlflow": ("workers.tracker",),
    "hydra": ("rsi.compose",),
    "omegaconf": ("rsi.compose",),
    "subprocess": ("workers",),
}
HIDDEN = {
    "rsi.helix": ("rsi.prism.panel", "rsi.prism.judge", "rsi.prism.corpus", "workers"),
    "evolution": ("rsi.prism.panel", "rsi.prism.judge", "rsi.prism.corpus", "workers"),
    "workers.builtin_coder": ("rsi.prism", "rsi.helix", "rsi.strategy"),
}


def modules(root: Path) -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """Every module a file imports, also inside functions; `from a import b` may mean a.b."""
    names = set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*up, base] if base else up)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                names.add(inner if inner in known else base)
    return names


def within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def layer_of(name: str) -> int:
    fitting = [
        (len(prefix), -number)
        for number, layer in enumerate(LAYERS)
        for prefix in layer
        if within(name, prefix)
    ]
    return -max(fitting)[1]


def reached(name: str, graph: dict[str, set[str]]) -> dict[str, str]:
    """Every module of ours that importing `name` loads, with the importer that leads to it."""
    via: dict[str, str] = {}
    todo = [name]
    while todo:
        at = todo.pop()
        for target in graph.get(at, ()):
            if target not in via:
                via[target] = at
                todo.append(target)
    return via


def violations(root: Path) -> list[str]:
    known = modules(root)
    graph = {name: imports(name, path, known) for name, path in known.items()}
    found = []
    for name, targets in graph.items():
        for target in sorted(targets):
            if target in known and layer_of(target) > layer_of(name):
                found.append(f"{name} imports {target}, which lies below it")
            owners = OWNERS.get(target.partition(".")[0])
            if owners and not any(within(name, owner) for owner in owners):
                found.append(f"{name} imports {target}, which belongs to {' and '.join(owners)}")
        for area, hidden in HIDDEN.items():
            if within(name, area):
                for target, via in reached(name, graph).items():
                    if any(within(target, h) for h in hidden) and not within(target, area):
                        found.append(f"{name} reaches hidden {target} through {via}")
    return found


def test_imports_keep_the_layers_the_owners_and_the_hidden_panel():
    assert violations(ROOT) == []


def test_every_module_is_read():
    assert {"rsi.prism.judge", "evolution.ports", "workers.play"} <= set(modules(ROOT))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package)
    return tmp_path


@pytest.mark.parametrize(
    ("where", "line", "complaint"),
    [
        (
            "rsi/digest.py",
            "from rsi.prism.judge import judge",
            "rsi.digest imports rsi.prism.judge",
        ),
        ("evolution/ports.py", "import workers.play", "evolution.ports imports workers.play"),
        ("rsi/prism/judge.py", "import ray", "rsi.prism.judge imports ray, which belongs"),
        ("workers/play.py", "import mlflow.tracking", "workers.play imports mlflow.tracking"),
        ("rsi/rollout.py", "import docker", "rsi.rollout imports docker"),
        ("rsi/cli.py", "from litellm import completion", "rsi.cli imports litellm"),
        ("workers/play.py", "from hydra import compose", "workers.play imports hydra"),
        ("rsi/prism/cell.py", "import subprocess", "rsi.prism.cell imports subprocess"),
        (
            "evolution/ports.py",
            "def f():\n    from rsi.prism.panel import Panel",
            "evolution.ports reaches hidden rsi.prism.panel",
        ),
        (
            "rsi/helix/solve.py",
            "from rsi.prism import judge",
            "rsi.helix.solve reaches hidden rsi.prism.judge",
        ),
    ],
)
def test_a_planted_violation_is_found(copy, where, line, complaint):
    path = copy / where
    path.write_text(path.read_text() + "\n" + line + "\n")
    assert any(complaint in v for v in violations(copy)), violations(copy)


def test_a_violation_through_a_third_module_is_found(copy):
    (copy / "rsi/records.py").write_text(
        (copy / "rsi/records.py").read_text() + "\nfrom rsi.prism.panel import Panel\n"
    )
    found = violations(copy)
    assert any(
        "evolution.ports reaches hidden rsi.prism.panel through rsi.records" in v for v in found
    )
    assert any("rsi.helix" in v and "through rsi.records" in v for v in found)

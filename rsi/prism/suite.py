"""A suite: the files an agent submits, with one executable entry script."""

from __future__ import annotations

from rsi.prism.tree import Tree
from rsi.wire import Record


class Suite(Record):
    """Tests, fixtures and the entry script `entry`, a path inside `tree`."""

    tree: Tree
    entry: str = "run_tests.sh"

    @property
    def digest(self) -> str:
        return self.tree.digest

    @property
    def empty(self) -> bool:
        return not self.tree.files

    def fault(self) -> str | None:
        """Say why the entry script cannot be started, or None when it can."""
        script = self.tree.files.get(self.entry)
        if script is None:
            return f"entry script {self.entry} is missing"
        if not script.executable:
            return f"entry script {self.entry} is not executable"
        if not script.content.startswith(b"#!"):
            return f"entry script {self.entry} has no #! line"
        first = script.content.split(b"\n", 1)[0]
        if first.endswith(b"\r"):
            return f"entry script {self.entry} has a #! line that ends in CR"
        return None

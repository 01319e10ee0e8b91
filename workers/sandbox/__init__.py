"""Sandboxes for hostile code and the choice between them."""

from __future__ import annotations

from workers.sandbox.choice import SandboxName, choose_sandbox, open_sandbox

__all__ = ["SandboxName", "choose_sandbox", "open_sandbox"]

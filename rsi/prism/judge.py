"""The judge: one suite on every implementation of a hidden panel, each in a fresh cell."""

from __future__ import annotations

import random

from rsi.ports import Sandbox
from rsi.prism.cell import run_cell
from rsi.prism.outcome import CellResult, Outcome
from rsi.prism.panel import Implementation, Panel
from rsi.prism.suite import Suite
from rsi.prism.task import Task


def judge(
    suite: Suite, task: Task, panel: Panel, sandbox: Sandbox, order: random.Random | None = None
) -> Outcome:
    """Run a suite on a panel and give its outcome; cells run in a random order.

    A suite learns nothing from the order: it comes from `order`, by default the system's
    entropy. Cells that the world failed stay INFRA and make the outcome incomplete.
    """
    shuffled = list(panel.implementations)
    (order or random.SystemRandom()).shuffle(shuffled)
    verdicts = {
        item.implementation_id: run_cell(sandbox, suite, item.program, task.limits)
        for item in shuffled
    }

    def result(item: Implementation) -> CellResult:
        return CellResult(
            implementation_id=item.implementation_id,
            kind=item.kind,
            verdict=verdicts[item.implementation_id],
        )

    return Outcome(
        task_id=task.task_id,
        family=task.family,
        source=task.source,
        suite_digest=suite.digest,
        cells=tuple(result(item) for item in panel.implementations),
    )

"""Where nothing may be skipped (RSI_NO_SKIPS=1), a skipped test is a failed test."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

SHARED_REASON = "the shared data folder is not beside the checkout"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real tasks, beside the checkout or named by RSI_SHARED."""
    beside = Path(__file__).resolve().parent.parent.parent / "shared"
    folder = Path(os.environ.get("RSI_SHARED", beside))
    if not (folder / "data").is_dir():
        pytest.skip(SHARED_REASON)
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("RSI_NO_SKIPS") and not hasattr(report, "wasxfail"):
        why = str(report.longrepr)
        if SHARED_REASON not in why:
            report.outcome = "failed"
            report.longrepr = f"skipped where nothing may be skipped: {why}"
    return report

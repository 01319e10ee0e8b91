"""Comparisons that the verifier's checks use; the source text is part of every kata panel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def _eq(got: Any, want: Any) -> bool:
    """Compare values: booleans and containers by type too, floats within 1e-9."""
    if isinstance(got, bool) or isinstance(want, bool):
        return got is want
    if isinstance(got, int | float) and isinstance(want, int | float):
        if isinstance(got, float) or isinstance(want, float):
            return math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9)
        return got == want
    if type(got) is not type(want):
        return False
    if isinstance(want, list | tuple):
        return len(got) == len(want) and all(map(_eq, got, want))
    if isinstance(want, dict):
        return bool(got.keys() == want.keys()) and all(_eq(got[key], want[key]) for key in want)
    return bool(got == want)


def _raises(error: type[Exception], function: Callable[..., Any], *arguments: Any) -> bool:
    """Tell whether a call raises that error; any other error is a wrong answer."""
    try:
        function(*arguments)
    except error:
        return True
    except Exception:  # whatever else the program raises is simply not the error asked for
        return False
    return False

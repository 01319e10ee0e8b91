"""Manners shared by every command: one line for an error, the right exit code, no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from rsi.errors import RsiError

INTERRUPTED = 130


def run_command(main: Callable[[], int]) -> NoReturn:
    """Run a command and exit: 2 for the user's mistakes, 130 for Ctrl-C, 1 for other failures.

    Bugs of ours still raise, so that they are seen.
    """
    try:
        code = main()
    except RsiError as error:
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        code = error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = INTERRUPTED
    except BrokenPipeError:
        # the reader of our output went away (`| head`): nothing is wrong with the run
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.stdout.flush()
    sys.exit(code)


def one_line(text: str) -> str:
    """Fold any text to one line."""
    return " ".join(text.split())

"""One check: a call of the program and what it has to give."""

from __future__ import annotations

from dataclasses import dataclass

from workers.builtin_coder.notation import equal_values, normal


@dataclass(frozen=True)
class Check:
    """After `setup`, `call` gives `expected` or raises `raises`.

    All three are Python source text that was parsed and never run; `stated` is False for a
    check whose expected value comes from a repaired program; `quote` is where it was read.
    """

    call: str
    expected: str = ""
    raises: str = ""
    setup: tuple[str, ...] = ()
    stated: bool = True
    quote: str = ""

    @property
    def key(self) -> tuple[tuple[str, ...], str]:
        return tuple(normal(line) for line in self.setup), normal(self.call)

    @property
    def wanted(self) -> str:
        """The expected value, or the name of the expected error."""
        return self.raises or self.expected

    def agrees(self, other: Check) -> bool:
        """Tell whether two checks of the same call expect the same."""
        if self.raises or other.raises:
            return self.raises == other.raises
        return equal_values(self.expected, other.expected)

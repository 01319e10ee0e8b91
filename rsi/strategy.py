"""The strategy: the only thing evolution may change, and the one table of its bounds.

The six numeric fields up to `reviewMaxOutputTokens` are named by the TestHelix paper, which
gives no numbers; the bounds here are ours. `challengeInputs` and the texts are extensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError

from rsi.digest import digest_of
from rsi.errors import StrategyError
from rsi.wire import Record, explain

# field -> (lower, upper): inclusive bounds of the numeric fields
BOUNDS: dict[str, tuple[int, int]] = {
    "max_rounds": (0, 4),
    "agent_steps": (3, 40),
    "repair_steps": (0, 20),
    "context_tokens": (1_000, 32_000),
    "tool_output_chars": (200, 20_000),
    "review_max_output_tokens": (64, 4_096),
    "challenge_inputs": (0, 200),
}
# field -> longest text in characters
TEXT_BOUNDS: dict[str, int] = {
    "synthesis_guidance": 1_200,
    "repair_guidance": 1_200,
    "review_guidance": 1_200,
}
MAX_LESSONS = 12
MAX_LESSON_CHARS = 300


def _number(name: str, default: int) -> Any:
    lower, upper = BOUNDS[name]
    return Field(default, ge=lower, le=upper, strict=True)


def _text(name: str) -> Any:
    return Field("", max_length=TEXT_BOUNDS[name])


class Strategy(Record):
    """How TestHelix works on a task; every field is bounded, none can touch a cap.

    Steps and rounds are counts, `context_tokens` bounds what one model call is sent,
    `tool_output_chars` each tool result, `review_max_output_tokens` one review,
    `challenge_inputs` the inputs tried per differential challenge.
    """

    max_rounds: int = _number("max_rounds", 1)
    agent_steps: int = _number("agent_steps", 10)
    repair_steps: int = _number("repair_steps", 3)
    context_tokens: int = _number("context_tokens", 6_000)
    tool_output_chars: int = _number("tool_output_chars", 2_000)
    review_max_output_tokens: int = _number("review_max_output_tokens", 512)
    challenge_inputs: int = _number("challenge_inputs", 20)
    synthesis_guidance: str = _text("synthesis_guidance")
    repair_guidance: str = _text("repair_guidance")
    review_guidance: str = _text("review_guidance")
    lessons: tuple[str, ...] = Field((), max_length=MAX_LESSONS)

    @property
    def strategy_id(self) -> str:
        return digest_of(self.to_json())

    def model_post_init(self, _context: Any, /) -> None:
        for lesson in self.lessons:
            if not 0 < len(lesson) <= MAX_LESSON_CHARS:
                raise ValueError(f"lessons: each has 1 to {MAX_LESSON_CHARS} characters")


def parse_strategy(values: Mapping[str, Any], where: str) -> Strategy:
    """Validate field values (either spelling); raises StrategyError naming field and range."""
    try:
        return Strategy.model_validate(values)
    except ValidationError as error:
        raise StrategyError(f"{where}: {explain(error, Strategy)}") from None

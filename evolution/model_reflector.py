"""The reflector that asks a language model; what comes back is hostile until validated."""

from __future__ import annotations

import asyncio
import json
import logging
from random import Random
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import ValidationError

from evolution.candidate import Candidate
from evolution.edits import Proposal, apply_edits
from evolution.evidence import Evidence, fence
from rsi.digest import sha256_hex
from rsi.errors import ModelUnavailable, StrategyError
from rsi.ports import LanguageModel, Message, ModelReply, ModelRequest
from rsi.strategy import BOUNDS, MAX_LESSON_CHARS, MAX_LESSONS, TEXT_BOUNDS
from rsi.wire import explain

log = logging.getLogger(__name__)

RETRIES = 2
MAX_REPLY_CHARS = 30_000
MAX_OUTPUT_TOKENS = 2_048
PROMPTS = ("diagnose_system", "diagnose_evidence", "diagnose_again")

_environment = Environment(
    loader=PackageLoader("evolution", "prompts"),
    undefined=StrictUndefined,
    autoescape=False,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=False,
)
_environment.filters["fence"] = fence


def prompt_digests() -> dict[str, str]:
    """The digest of every prompt file of the reflector, by name."""
    loader = _environment.loader
    assert loader is not None
    return {
        f"evolution/{name}": sha256_hex(loader.get_source(_environment, f"{name}.md.j2")[0])
        for name in PROMPTS
    }


class ModelReflector:
    """Asks for one JSON object that fits the `Proposal` schema, at most 1 + RETRIES times.

    A reply that is truncated, malformed or out of bounds is shown its error and never adopted;
    when none will do, or the model does not answer, the reflector declines.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model = model

    def propose(
        self, evidence: Evidence, parent: Candidate, index: int, rng: Random
    ) -> Proposal | None:
        """Diagnose; raises LimitReached when the budget has no room, ModelRefused for good."""
        messages = opening(evidence, parent, index)
        seed = rng.randrange(2**31)
        for attempt in range(1 + RETRIES):
            request = ModelRequest(
                messages=messages, max_output_tokens=MAX_OUTPUT_TOKENS, seed=seed + attempt
            )
            try:
                reply = asyncio.run(self._complete(request))
            except ModelUnavailable as error:
                log.warning("reflector: the model is not available, no proposal: %s", error)
                return None
            try:
                proposal = parse_proposal(reply)
                apply_edits(parent.strategy, proposal, evidence.task_ids)
                return proposal
            except StrategyError as error:
                messages = (*messages, *_again(reply, str(error)))
        log.warning("reflector: no valid proposal in %d replies, declined", 1 + RETRIES)
        return None

    async def _complete(self, request: ModelRequest) -> ModelReply:
        return await self.model.complete(request)


def opening(evidence: Evidence, parent: Candidate, index: int) -> tuple[Message, ...]:
    """The conversation's first two messages: the task with its bounds, and the evidence."""
    system = _render(
        "diagnose_system",
        bounds=BOUNDS,
        text_bounds=TEXT_BOUNDS,
        max_lessons=MAX_LESSONS,
        max_lesson_chars=MAX_LESSON_CHARS,
        schema=json.dumps(Proposal.model_json_schema(by_alias=True), sort_keys=True),
    )
    user = _render(
        "diagnose_evidence",
        strategy=json.dumps(parent.strategy.to_json(), indent=1, ensure_ascii=False),
        evidence=evidence,
        symptoms={n: c for n, c in evidence.symptoms.model_dump().items() if c},
        index=index,
    )
    return Message(role="system", content=system), Message(role="user", content=user)


def parse_proposal(reply: ModelReply) -> Proposal:
    """Read the one JSON object of a reply; raises StrategyError with one line."""
    if reply.finish_reason == "length":
        raise StrategyError("the reply was cut off; answer with a shorter JSON object")
    text = reply.text
    if len(text) > MAX_REPLY_CHARS:
        raise StrategyError(f"the reply is longer than {MAX_REPLY_CHARS} characters")
    start, end = text.find("{"), text.rfind("}")
    try:
        value: Any = json.loads(text[start : end + 1] if 0 <= start < end else text)
        return Proposal.model_validate(value)
    except ValidationError as error:
        raise StrategyError(f"proposal: {explain(error, Proposal)}"[:1_000]) from None
    except (ValueError, RecursionError) as error:
        raise StrategyError(f"the reply is not one JSON object: {error}"[:300]) from None


def _again(reply: ModelReply, error: str) -> tuple[Message, Message]:
    said = reply.text[:MAX_REPLY_CHARS] or "(nothing)"
    asked = _render("diagnose_again", error=error)
    return Message(role="assistant", content=said), Message(role="user", content=asked)


def _render(name: str, **values: Any) -> str:
    return _environment.get_template(f"{name}.md.j2").render(**values)

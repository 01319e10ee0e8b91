"""Blind reviews: one question to a model that sees the requirement and the artefacts, no names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from rsi.digest import seed_of
from rsi.errors import LimitReached, ModelUnavailable
from rsi.helix.job import Job
from rsi.helix.wording import STYLES, clean, cut, render
from rsi.ports import LanguageModel, Message, ModelReply, ModelRequest
from rsi.trajectory import Step, StopReason, Symptoms, Trajectory

NAME = "reviewer"
FIELD_CHARS = 600
_CHARS_A_TOKEN = 4
_LEAST_CHARS = 200


@dataclass
class Reviewer:
    """All reviews of one rollout; each is a conversation of its own."""

    job: Job
    _steps: list[Step] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)
    _stop: tuple[StopReason, str] = ("submitted", "")

    async def ask(
        self, kind: Literal["review", "challenge"], slot: int, prompt: Callable[[int], str]
    ) -> dict[str, str] | None:
        """Put one question to the model of a slot; None when it gave no usable answer.

        `prompt` renders the question with each artefact cut to some characters: the longest
        that fits the context is sent. Raises ModelRefused.
        """
        index = len(self._steps)
        self._steps.append(Step(kind=kind, observation="no answer"))
        model = self.job.model(slot)
        request, tokens = self._fit(model, slot, prompt)
        try:
            reply = await self.job.allowance.complete(NAME, model, request, tokens)
        except LimitReached as reached:
            self._stop = ("cap", reached.limit)
            return None
        except ModelUnavailable as error:
            self._stop = ("model_failure", clean(str(error))[:200])
            return None
        answer = self._read(reply)
        self._steps[index] = Step(
            kind=kind,
            said=cut(clean(reply.text), self.job.strategy.tool_output_chars)[0],
            observation="answered" if answer else "no usable answer",
            finish_reason=clean(reply.finish_reason)[:40],
            spend=reply.spend,
        )
        return answer

    def count(self, symptom: str, times: int = 1) -> None:
        """Note a symptom of the stage that asks."""
        self._counts[symptom] += times

    @property
    def asked(self) -> bool:
        return bool(self._steps)

    def trajectory(self) -> Trajectory:
        """All reviews so far, in the order they were asked."""
        return Trajectory(
            agent=NAME,
            steps=tuple(self._steps),
            stop_reason=self._stop[0],
            stopped_by=self._stop[1],
            symptoms=Symptoms(**self._counts),
            spend=self.job.allowance.spend(NAME),
        )

    def _read(self, reply: ModelReply) -> dict[str, str] | None:
        if reply.finish_reason == "length":
            self._counts["review_cut"] += 1
            return None
        answer = answer_in(reply.text)
        self._counts["malformed_replies"] += answer is None
        return answer

    def _fit(
        self, model: LanguageModel, slot: int, prompt: Callable[[int], str]
    ) -> tuple[ModelRequest, int]:
        strategy = self.job.strategy
        most = strategy.context_tokens * _CHARS_A_TOKEN
        while True:
            request = self._request(slot, prompt(most))
            tokens = model.count_tokens(request)
            if tokens <= strategy.context_tokens or most <= _LEAST_CHARS:
                return request, tokens
            if most == strategy.context_tokens * _CHARS_A_TOKEN:
                self._counts["context_elided"] += 1
            most //= 2

    def _request(self, slot: int, text: str) -> ModelRequest:
        strategy, caps = self.job.strategy, self.job.allowance.caps
        system = render(
            "review_system",
            name=NAME,
            style=STYLES[slot % len(STYLES)],
            guidance=strategy.review_guidance,
        )
        return ModelRequest(
            messages=(
                Message(role="system", content=system),
                Message(role="user", content=text),
            ),
            max_output_tokens=min(strategy.review_max_output_tokens, caps.output_tokens),
            seed=seed_of(self.job.seed, NAME, slot, text),
        )


def answer_in(text: str) -> dict[str, str] | None:
    """The first JSON object of a reply as cleaned, bounded texts; None when there is none."""
    start = text.find("{", max(text.find("```json"), 0))
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text[start:])
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return {clean(str(key))[:40]: _text(item) for key, item in value.items()}


def _text(value: Any) -> str:
    if value is None:
        return ""
    shown = value if isinstance(value, str) else json.dumps(value)
    return clean(shown).strip()[:FIELD_CHARS]

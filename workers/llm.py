"""Any language model through LiteLLM, with one deadline, our own retries and honest accounting."""

from __future__ import annotations

import asyncio
import json
import os
import re
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from rsi.budget import Spend
from rsi.errors import ModelRefused, ModelUnavailable
from rsi.ports import Message, ModelReply, ModelRequest, ToolCall
from rsi.wire import Record
from workers.builtin_coder import estimate_tokens
from workers.llm_errors import classify

BUILTIN_PREFIX = "builtin/"
# a token of text in any tokenizer holds at least this many characters on average, so that
# counting by it is an upper bound for ordinary prose and code
_CHARS_PER_TOKEN = 3
_TOKENS_PER_MESSAGE = 6
# first pause between tries, doubled each time, and the longest pause that is waited for
BACKOFF_S = 0.5
MAX_PAUSE_S = 60.0


class ModelProfile(Record):
    """How to reach one model and what it costs.

    `model` is a LiteLLM name, `api_key_env` the NAME of an environment variable,
    `timeout_seconds` the deadline of one try, `max_retries` further tries after the first;
    `variant` names the embedded coder's habits and is sent to no other model.
    """

    name: str = Field(min_length=1, max_length=80)
    model: str = Field(min_length=1, max_length=200)
    api_base: str = ""
    api_key_env: str = ""
    tool_protocol: Literal["native", "text"] = "native"
    temperature: float | None = Field(None, ge=0, le=2)
    input_usd_per_million: float = Field(0.0, ge=0)
    output_usd_per_million: float = Field(0.0, ge=0)
    timeout_seconds: float = Field(120.0, gt=0, le=3_600)
    max_retries: int = Field(3, ge=0, le=10)
    variant: str = ""

    @field_validator("api_key_env")
    @classmethod
    def _name_of_a_variable(cls, value: str) -> str:
        if value and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", value):
            # never echoed: people put the key itself here
            raise PydanticCustomError("name", "is the NAME of an environment variable, no key")
        return value

    @field_validator("api_base")
    @classmethod
    def _without_secret(cls, value: str) -> str:
        if "@" in value.partition("://")[2].partition("/")[0]:
            raise PydanticCustomError("secret", "may not hold a user or password; use api_key_env")
        return value

    @property
    def builtin(self) -> bool:
        return self.model.startswith(BUILTIN_PREFIX)


def load_litellm() -> Any:
    """Import LiteLLM once (seconds and 200 MB), offline price map, embedded coder registered."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    from workers.builtin_coder.provider import register

    litellm.suppress_debug_info = True
    litellm.disable_hf_tokenizer_download = True
    register()
    return litellm


@dataclass(frozen=True)
class LiteLLMModel:
    """A chat model by its profile; safe to share between tasks of one event loop.

    `complete` raises ModelRefused when another try cannot help and ModelUnavailable after
    `max_retries` further tries, or at once when the endpoint asks for a longer pause.
    """

    profile: ModelProfile

    @property
    def native_tools(self) -> bool:
        return self.profile.tool_protocol == "native"

    def count_tokens(self, request: ModelRequest) -> int:
        """Bound the input tokens of a request from above, without network or tokenizer."""
        messages = [_wire(message) for message in request.messages]
        if self.profile.builtin:
            return estimate_tokens(messages, request.tools)
        size = len(json.dumps(request.tools)) if request.tools else 0
        size += sum(len(json.dumps(message, ensure_ascii=False)) for message in messages)
        return -(-size // _CHARS_PER_TOKEN) + _TOKENS_PER_MESSAGE * len(messages)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Ask once, and again after a pause while the failure is one that may pass."""
        failure = ModelUnavailable()
        for attempt in range(1 + self.profile.max_retries):
            if attempt:
                await asyncio.sleep(_pause(failure, attempt))
            try:
                return self._read(request, await self._ask(request))
            except ModelUnavailable as error:
                failure = error
                if (error.retry_after_s or 0) > MAX_PAUSE_S:
                    break
        raise failure

    async def _ask(self, request: ModelRequest) -> Any:
        litellm = load_litellm()
        from openai import OpenAIError  # the root of what LiteLLM raises

        profile = self.profile
        try:
            async with asyncio.timeout(profile.timeout_seconds):
                return await litellm.acompletion(**_options(profile, request))
        except TimeoutError:
            raise ModelUnavailable(
                f"{_place(profile)}: no answer within {profile.timeout_seconds:g} s"
            ) from None
        except OpenAIError as error:
            # a fault of the embedded coder is ours, not an endpoint that may recover
            if profile.builtin and getattr(error, "status_code", 0) != 404:
                raise RuntimeError(f"the embedded coder failed: {error}") from error
            raise classify(error, _place(profile), profile.api_key_env) from None

    def _read(self, request: ModelRequest, response: Any) -> ModelReply:
        """Turn a response into a reply; what is missing stays empty."""
        choices = getattr(response, "choices", None) or []
        message = choices[0].message if choices else None
        text = self._redacted((message.content if message else None) or "")
        calls = tuple(
            ToolCall(
                call_id=call.id or f"call_{index}",
                name=call.function.name or "",
                arguments=self._redacted(call.function.arguments or ""),
            )
            for index, call in enumerate((message.tool_calls if message else None) or ())
        )
        used_in, used_out, estimated = self._usage(request, response, text, calls)
        profile = self.profile
        usd = used_in * profile.input_usd_per_million + used_out * profile.output_usd_per_million
        return ModelReply(
            text=text,
            tool_calls=calls,
            finish_reason=(choices[0].finish_reason if choices else None) or "empty",
            spend=Spend(
                model_calls=1, input_tokens=used_in, output_tokens=used_out, usd=usd / 1_000_000
            ),
            usage_estimated=estimated,
        )

    def _redacted(self, text: str) -> str:
        """Take our own key out of what an endpoint says: replies are recorded."""
        key = os.environ.get(self.profile.api_key_env or "OPENAI_API_KEY", "")
        return text.replace(key, "[key]") if len(key) >= 8 else text

    def _usage(
        self, request: ModelRequest, response: Any, text: str, calls: tuple[ToolCall, ...]
    ) -> tuple[int, int, bool]:
        """Input and output tokens as reported, else estimated by LiteLLM's tokenizer."""
        usage = getattr(response, "usage", None)
        used_in = int(getattr(usage, "prompt_tokens", 0) or 0)
        used_out = int(getattr(usage, "completion_tokens", 0) or 0)
        if used_in + used_out > 0:
            return used_in, used_out, False
        count = load_litellm().token_counter
        said = text + "".join(call.name + call.arguments for call in calls)
        model = self.profile.model
        used_in = count(model=model, messages=[_wire(m) for m in request.messages])
        return used_in, count(model=model, text=said) if said else 0, True


def check_profile(profile: ModelProfile) -> None:
    """Ask for one short reply before a run starts; must not be called inside an event loop.

    Raises ModelRefused for a wrong key, name or request and for a named but unset key variable,
    ModelUnavailable when the endpoint does not answer.
    """
    if profile.api_key_env and not os.environ.get(profile.api_key_env):
        raise ModelRefused(
            f"{_place(profile)}: the environment variable {profile.api_key_env} is not set; "
            "set it to the endpoint's key"
        )
    if profile.builtin:
        if profile.model != f"{BUILTIN_PREFIX}coder":
            raise ModelRefused(f"model {profile.model}: the embedded model is builtin/coder")
        return
    if not (profile.api_base or profile.api_key_env):
        needed = load_litellm().validate_environment(model=profile.model)["missing_keys"]
        if needed:
            raise ModelRefused(
                f"{_place(profile)}: no key; set the environment variable {' or '.join(needed)}, "
                "or name an endpoint by model.api_base"
            )
    request = ModelRequest(
        messages=(Message(role="user", content="Answer with: ready"),), max_output_tokens=16
    )
    asking = LiteLLMModel(profile.updated(max_retries=min(profile.max_retries, 1)))
    asyncio.run(asking.complete(request))


def _options(profile: ModelProfile, request: ModelRequest) -> dict[str, Any]:
    options: dict[str, Any] = {
        "model": profile.model,
        "messages": [_wire(message) for message in request.messages],
        "max_tokens": request.max_output_tokens,
        "seed": request.seed,
        "timeout": profile.timeout_seconds,
        "num_retries": 0,
        "max_retries": 0,
    }
    if request.tools:
        options["tools"] = list(request.tools)
    if profile.temperature is not None:
        options["temperature"] = profile.temperature
    if profile.builtin:
        return {**options, "variant": profile.variant}
    if profile.api_base:
        options["api_base"] = profile.api_base
    # an endpoint without keys still wants the header; LiteLLM's own look-up would send a real one
    key = os.environ.get(profile.api_key_env, "") if profile.api_key_env else ""
    if profile.api_key_env or profile.api_base:
        options["api_key"] = key or "none"
    return options


def _wire(message: Message) -> dict[str, Any]:
    """Spell a message in OpenAI's form."""
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _pause(failure: ModelUnavailable, attempt: int) -> float:
    """Seconds to wait: what the endpoint asked for, else doubling."""
    if failure.retry_after_s is not None:
        return failure.retry_after_s
    return float(min(BACKOFF_S * 2 ** (attempt - 1), MAX_PAUSE_S))


def _place(profile: ModelProfile) -> str:
    """Name model and endpoint for a message."""
    at = profile.api_base or ("this process" if profile.builtin else "the provider's own endpoint")
    return f"model {profile.model} at {at}"

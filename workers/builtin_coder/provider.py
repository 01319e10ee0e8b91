"""The embedded coder as a LiteLLM custom provider: `builtin/coder`."""

from __future__ import annotations

from typing import Any

import litellm
from litellm.types.utils import ChatCompletionMessageToolCall, Choices, Function, Message, Usage

from workers.builtin_coder.reply import estimate_tokens, reply

PROVIDER = "builtin"


class EmbeddedCoder(litellm.CustomLLM):  # type: ignore[misc,unused-ignore]
    """Answers through LiteLLM like any endpoint; raises NotFoundError for an unknown model."""

    def completion(self, *_: Any, **call: Any) -> Any:
        return self._respond(call)

    async def acompletion(self, *_: Any, **call: Any) -> Any:
        return self._respond(call)

    def _respond(self, call: dict[str, Any]) -> Any:
        if call["model"] != "coder":
            raise litellm.NotFoundError(
                message=f"no model {call['model']}", model=call["model"], llm_provider=PROVIDER
            )
        options = call["optional_params"]
        answer = reply(
            call["messages"],
            options.get("tools") or (),
            int(options.get("seed") or 0),
            int(options.get("max_tokens") or 1_024),
            str(options.get("variant") or ""),
        )
        calls = [
            ChatCompletionMessageToolCall(
                id=f"call_{len(call['messages'])}_{index}",
                type="function",
                function=Function(name=name, arguments=arguments),
            )
            for index, (name, arguments) in enumerate(answer.calls)
        ]
        message = Message(role="assistant", content=answer.text, tool_calls=calls or None)
        used = estimate_tokens(call["messages"], options.get("tools") or ())
        response = call["model_response"]
        response.model = f"{PROVIDER}/{call['model']}"
        response.choices = [Choices(index=0, finish_reason=answer.finish_reason, message=message)]
        response.usage = Usage(
            prompt_tokens=used,
            completion_tokens=answer.tokens,
            total_tokens=used + answer.tokens,
        )
        return response


def register() -> None:
    """Make `builtin/coder` known to LiteLLM in this process; calling it again changes nothing."""
    known = list(litellm.custom_provider_map)
    if not any(entry["provider"] == PROVIDER for entry in known):
        known.append({"provider": PROVIDER, "custom_handler": EmbeddedCoder()})
        litellm.custom_provider_map = known

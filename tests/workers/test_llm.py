from __future__ import annotations

import asyncio
import importlib.util
import pickle
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rsi.errors import ModelRefused, ModelUnavailable
from rsi.ports import Message, ModelRequest, ToolCall
from workers import llm
from workers.llm import LiteLLMModel, ModelProfile, check_profile, load_litellm


def _fake() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "fake_openai", Path(__file__).parents[1] / "fake_openai.py"
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["fake_openai"] = module
    spec.loader.exec_module(module)
    return module


fake = _fake()
# LiteLLM and its clients warn about their own internals
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SECRET = "sk-very-secret-0123456789"


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    load_litellm()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm, "BACKOFF_S", 0.01)
    monkeypatch.setenv("FAKE_KEY", SECRET)


def model(url: str, **changes: Any) -> LiteLLMModel:
    given = {"name": "m", "model": "openai/fake", "api_base": url, "api_key_env": "FAKE_KEY"}
    return LiteLLMModel(ModelProfile(**{**given, "max_retries": 1, **changes}))


def ask(text: str = "hi", **changes: Any) -> ModelRequest:
    return ModelRequest(messages=(Message(role="user", content=text),), **changes)


async def test_a_reply_carries_text_tokens_and_dollars() -> None:
    async with fake.serving(fake.says()) as server:
        priced = model(server.url, input_usd_per_million=2.0, output_usd_per_million=10.0)
        reply = await priced.complete(ask(max_output_tokens=77, seed=5))
    assert (reply.text, reply.finish_reason, reply.usage_estimated) == ("hello", "stop", False)
    assert (reply.spend.model_calls, reply.spend.input_tokens, reply.spend.output_tokens) == (
        1,
        11,
        5,
    )
    assert reply.spend.usd == pytest.approx((11 * 2 + 5 * 10) / 1e6)
    assert server.bodies[0]["max_tokens"] == 77
    assert server.bodies[0]["seed"] == 5
    assert "variant" not in server.bodies[0]
    assert "temperature" not in server.bodies[0]
    assert server.keys == [f"Bearer {SECRET}"]


async def test_the_conversation_goes_out_in_openai_form() -> None:
    call = ToolCall(call_id="c1", name="run", arguments='{"command": "ls"}')
    request = ModelRequest(
        messages=(
            Message(role="system", content="s"),
            Message(role="assistant", tool_calls=(call,)),
            Message(role="tool", content="out", tool_call_id="c1"),
        ),
        tools=({"type": "function", "function": {"name": "run", "parameters": {}}},),
    )
    async with fake.serving(fake.says()) as server:
        await model(server.url, temperature=0.5).complete(request)
    sent = server.bodies[0]
    assert sent["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"command": "ls"}'
    assert sent["messages"][2]["tool_call_id"] == "c1"
    assert sent["tools"][0]["function"]["name"] == "run"
    assert sent["temperature"] == 0.5


async def test_cut_tool_arguments_pass_through_as_text() -> None:
    call = {
        "id": "c9",
        "type": "function",
        "function": {"name": "run", "arguments": '{"command": "ls -l'},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    async with fake.serving(fake.says(message=message, finish_reason="length")) as server:
        reply = await model(server.url).complete(ask())
    assert reply.finish_reason == "length"
    assert reply.text == ""
    assert [(c.call_id, c.name, c.arguments) for c in reply.tool_calls] == [
        ("c9", "run", '{"command": "ls -l')
    ]


async def test_too_many_requests_wait_as_long_as_asked() -> None:
    busy = fake.status(429, headers={"Retry-After": "0.4"})
    async with fake.serving(busy, fake.says()) as server:
        reply = await model(server.url).complete(ask())
    assert reply.text == "hello"
    assert server.hits == 2
    assert server.times[1] - server.times[0] >= 0.39


async def test_a_long_requested_pause_is_reported_instead_of_slept() -> None:
    busy = fake.status(429, headers={"Retry-After": "61"})
    async with fake.serving(busy) as server:
        with pytest.raises(ModelUnavailable) as caught:
            await model(server.url, max_retries=5).complete(ask())
    assert server.hits == 1
    assert caught.value.retry_after_s == 61.0


@pytest.mark.parametrize("code", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_server_trouble_is_retried_as_often_as_the_profile_says(code: int) -> None:
    async with fake.serving(fake.status(code)) as server:
        with pytest.raises(ModelUnavailable, match=r"openai/fake at http"):
            await model(server.url, max_retries=2).complete(ask())
    assert server.hits == 3


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (400, "options"),
        (401, "FAKE_KEY"),
        (402, "credit"),
        (403, "FAKE_KEY"),
        (404, "no such model"),
        (413, "too large"),
        (422, "options"),
    ],
)
async def test_refusals_are_final_and_never_echo_the_key(code: int, word: str) -> None:
    async with fake.serving(fake.status(code, f"bad key {SECRET[:12]}***")) as server:
        with pytest.raises(ModelRefused) as caught:
            await model(server.url, max_retries=3).complete(ask())
    line = str(caught.value)
    assert server.hits == 1
    assert word in line and "openai/fake" in line and server.url in line
    assert "\n" not in line and SECRET[:8] not in line
    assert caught.value.__cause__ is None


async def test_a_context_that_is_too_long_names_the_strategy_field() -> None:
    text = "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens"
    async with fake.serving(fake.status(400, text)) as server:
        with pytest.raises(ModelRefused, match="contextTokens"):
            await model(server.url).complete(ask())


@pytest.mark.parametrize("text", ['{"id": "x", "choi', "<html>gateway</html>"])
async def test_an_answer_that_is_not_json_is_the_endpoints_failure(text: str) -> None:
    async with fake.serving(fake.raw(text)) as server:
        with pytest.raises(ModelUnavailable):
            await model(server.url).complete(ask())
    assert server.hits == 2


async def test_a_cut_connection_is_tried_again() -> None:
    async with fake.serving(fake.cuts, fake.says()) as server:
        assert (await model(server.url).complete(ask())).text == "hello"
    assert server.hits == 2


@pytest.mark.parametrize("slow", ["hang", "drip"])
async def test_the_deadline_holds_even_for_an_answer_that_drips(slow: str) -> None:
    behaviour = fake.hangs if slow == "hang" else fake.drips(0.05)
    begun = asyncio.get_running_loop().time()
    async with fake.serving(behaviour) as server:
        with pytest.raises(ModelUnavailable):
            await model(server.url, timeout_seconds=0.5, max_retries=0).complete(ask())
    assert asyncio.get_running_loop().time() - begun < 3
    assert server.hits == 1


async def test_a_dead_endpoint_is_said_to_be_dead() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
    with pytest.raises(ModelUnavailable, match="does not answer") as caught:
        await model(url).complete(ask())
    assert url in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("changes", [{"choices": []}, {"message": {"role": "assistant"}}])
async def test_an_empty_answer_is_data(changes: dict[str, Any]) -> None:
    async with fake.serving(fake.says(**changes)) as server:
        reply = await model(server.url).complete(ask())
    assert (reply.text, reply.tool_calls) == ("", ())
    assert reply.spend.input_tokens == 11
    assert server.hits == 1
    if "choices" in changes:
        assert reply.finish_reason == "empty"


async def test_missing_usage_is_estimated_and_flagged() -> None:
    async with fake.serving(fake.says(usage=None)) as server:
        priced = model(server.url, output_usd_per_million=1.0)
        reply = await priced.complete(ask("count these words please " * 20))
    assert reply.usage_estimated
    assert 80 <= reply.spend.input_tokens <= 130
    assert reply.spend.output_tokens >= 1
    assert reply.spend.usd > 0


async def test_the_bound_for_input_tokens_is_above_what_a_tokenizer_counts() -> None:
    text = "def clamp(value, low, high):\n    return min(max(value, low), high)\n" * 30
    request = ask(text, tools=({"type": "function", "function": {"name": "run"}},))
    bound = model("http://127.0.0.1:1/v1").count_tokens(request)
    real = load_litellm().token_counter(
        model="openai/fake", messages=[{"role": "user", "content": text}]
    )
    assert real <= bound <= 4 * real
    assert bound > model("http://127.0.0.1:1/v1").count_tokens(ask(text))


def test_the_preflight_names_the_key_variable_that_is_not_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("FAKE_KEY")
    with pytest.raises(ModelRefused, match="FAKE_KEY is not set"):
        check_profile(model("http://127.0.0.1:1/v1").profile)


def test_the_preflight_knows_the_embedded_model_and_no_other() -> None:
    check_profile(ModelProfile(name="b", model="builtin/coder"))
    with pytest.raises(ModelRefused, match="builtin/coder"):
        check_profile(ModelProfile(name="b", model="builtin/poet"))


async def test_the_preflight_asks_the_endpoint_once() -> None:
    async with fake.serving(fake.says()) as server:
        await asyncio.to_thread(check_profile, model(server.url).profile)
        assert server.hits == 1
    async with fake.serving(fake.status(401)) as server:
        with pytest.raises(ModelRefused):
            await asyncio.to_thread(check_profile, model(server.url).profile)


async def test_the_embedded_coder_answers_through_litellm() -> None:
    embedded = LiteLLMModel(ModelProfile(name="b", model="builtin/coder", variant="careful"))
    request = ModelRequest(
        messages=(Message(role="user", content="# Task\n\n- `solution.py`\n"),),
        tools=({"type": "function", "function": {"name": "read_file"}},),
        seed=3,
    )
    reply = await embedded.complete(request)
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [
        ("read_file", '{"path": "solution.py"}')
    ]
    assert reply.finish_reason == "tool_calls"
    assert reply.spend.input_tokens == embedded.count_tokens(request)
    assert reply.spend.usd == 0 and not reply.usage_estimated
    assert await embedded.complete(request) == reply


def test_only_a_profile_of_the_native_protocol_offers_tools() -> None:
    assert model("http://127.0.0.1:1/v1").native_tools
    assert not model("http://127.0.0.1:1/v1", tool_protocol="text").native_tools


async def test_a_fault_of_the_embedded_coder_is_not_taken_for_a_dead_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from workers.builtin_coder import provider

    def fails(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(provider, "reply", fails)
    with pytest.raises(RuntimeError, match="a bug"):
        await LiteLLMModel(ModelProfile(name="b", model="builtin/coder")).complete(ask())


def test_the_pause_between_tries_starts_small_doubles_and_has_a_ceiling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(llm, "BACKOFF_S", 0.5)
    pauses = [llm._pause(ModelUnavailable("away"), attempt) for attempt in range(1, 10)]
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert llm._pause(ModelUnavailable("busy", 3.0), 5) == 3.0, "what was asked for goes first"

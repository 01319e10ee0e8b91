"""A small OpenAI-compatible server on 127.0.0.1 whose every answer a test chooses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Behaviour = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class FakeOpenAI:
    """Answers requests by `script`, one behaviour a request, the last one for ever after."""

    script: list[Behaviour] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        self.keys.append(request.headers.get("Authorization", ""))
        self.times.append(asyncio.get_running_loop().time())
        return await self.script[min(len(self.bodies), len(self.script)) - 1](request)

    @property
    def hits(self) -> int:
        return len(self.bodies)


@asynccontextmanager
async def serving(*script: Behaviour) -> AsyncIterator[FakeOpenAI]:
    """Serve on a free port until the block ends."""
    fake = FakeOpenAI(list(script))
    app = web.Application()
    app.router.add_post("/v1/chat/completions", fake.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield fake
    finally:
        await runner.cleanup()


def completion(**changes: Any) -> dict[str, Any]:
    """A whole chat completion; `message`, `finish_reason`, `usage`, `choices` may be changed."""
    message = changes.pop("message", {"role": "assistant", "content": "hello"})
    finish = changes.pop("finish_reason", "stop")
    body = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "fake",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
    }
    body.update(changes)
    return {key: value for key, value in body.items() if value is not None}


def says(**changes: Any) -> Behaviour:
    async def behave(_: web.Request) -> web.StreamResponse:
        return web.json_response(completion(**changes))

    return behave


def status(code: int, text: str = "no", headers: dict[str, str] | None = None) -> Behaviour:
    async def behave(_: web.Request) -> web.StreamResponse:
        body = {"error": {"message": text, "type": "x", "code": str(code)}}
        return web.json_response(body, status=code, headers=headers)

    return behave


def raw(text: str) -> Behaviour:
    async def behave(_: web.Request) -> web.StreamResponse:
        return web.Response(text=text, content_type="application/json")

    return behave


def drips(seconds: float) -> Behaviour:
    """Send one byte at a time, so that no single read ever times out."""

    async def behave(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for byte in json.dumps(completion()).encode():
            await response.write(bytes([byte]))
            await asyncio.sleep(seconds)
        return response

    return behave


async def hangs(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(30)
    return web.Response(text="")


async def cuts(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response(text="")

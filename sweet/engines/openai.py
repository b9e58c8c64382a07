"""Any OpenAI-compatible server, by base URL, model and key."""

from __future__ import annotations

import asyncio
import base64
import random
import re
import ssl
import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

import httpx

from sweet.engines.generation import check_sampling
from sweet.engines.sse import DONE, Reply, error_message, events, parse_json
from sweet.errors import ConfigError, PolicyError
from sweet.types import Completion, Message, OnText, Sampling

RETRIED_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
CONNECT_TIMEOUT_S = 10.0
LONGEST_BACKOFF_S = 8.0
SHOWN_CHARS = 500
# Left out once the server says it doesn't know them; none changes what is asked of the model.
OPTIONAL_FIELDS = ("stream_options", "seed")


class _Retry(Exception):
    """The server can't answer now; it may later."""

    def __init__(self, error: PolicyError, after_s: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.after_s = after_s


class _Adjusted(Exception):
    """The request was changed to what the server takes; ask again."""


class EndpointEngine:
    """An engine that asks the server at `base_url`, for instance http://127.0.0.1:8000/v1.

    A call that failed before any text came is tried again; after that it fails, so that nobody
    reads a text twice. `adapter` is the name under which the server offers a LoRA adapter (of a
    folder, its last part). The seed is passed on; whether it is heeded is up to the server.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str = "",
        timeout_s: float = 120,
        retries: int = 3,
        *,
        total_timeout_s: float | None = None,
        backoff_s: float = 0.5,
    ) -> None:
        """Nothing is asked before the first request.

        Args:
            base_url: What comes before /chat/completions; most servers' ends in /v1.
            model: The model's name there.
            api_key: Sent as a bearer token; empty sends none.
            timeout_s: The longest silence of the server, before and amid its answer.
            retries: How often a call is tried again.
            total_timeout_s: The longest a call may take, retries included; five silences unless
                given.
            backoff_s: The first pause before a retry; it doubles each time.

        Raises: ConfigError for a URL or a key that can't be one.
        """
        self.model = model
        self.base_url = _clean_url(base_url)
        self._key = _clean_key(api_key)
        self._timeout_s = timeout_s
        self._total_timeout_s = total_timeout_s or 5 * timeout_s
        self._retries = retries
        self._backoff_s = backoff_s
        self._unknown_fields: set[str] = set()
        self._max_tokens_field = "max_tokens"

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        adapter: str | None = None,
        on_text: OnText | None = None,
    ) -> Completion:
        """The model's next message."""
        check_sampling(sampling)
        if any(m.role == "reference" for m in messages):
            raise PolicyError(
                "A message of role 'reference' was to be sent to a server, which knows no such "
                "role: the prompt must say it in words."
            )
        model = Path(adapter).name if adapter else self.model
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._total_timeout_s):
                reply = await self._with_retries(model, messages, sampling, on_text)
        except TimeoutError as e:
            raise PolicyError(
                f"{self.base_url} did not finish its answer within {self._total_timeout_s:g} s. "
                "Try again, ask for fewer tokens, or set a longer timeout_s."
            ) from e
        finish: Literal["stop", "length"] = "length" if reply.finish_reason == "length" else "stop"
        return Completion(reply.text, reply.usage, (time.perf_counter() - started) * 1000, finish)

    async def _with_retries(
        self, model: str, messages: Sequence[Message], sampling: Sampling, on_text: OnText | None
    ) -> Reply:
        attempt = 0
        while True:
            body = self._body(model, messages, sampling)
            try:
                return await self._ask(body, on_text)
            except _Retry as e:
                if attempt >= self._retries:
                    times = f" (tried {attempt + 1} times)" if attempt else ""
                    raise PolicyError(f"{e.error}{times}") from e.__cause__
                await self._pause(attempt, e)
                attempt += 1
            except _Adjusted:
                continue

    async def _pause(self, attempt: int, failed: _Retry) -> None:
        backoff_s = min(LONGEST_BACKOFF_S, self._backoff_s * 2**attempt)
        # Spread out, so that all don't come back at once.
        wait_s = backoff_s * random.uniform(0.5, 1)
        if failed.after_s is not None:
            wait_s = max(failed.after_s, wait_s)
        if wait_s > self._total_timeout_s:
            raise PolicyError(f"{failed.error} It asks to wait for {wait_s:.0f} s.")
        await asyncio.sleep(wait_s)

    def _body(self, model: str, messages: Sequence[Message], sampling: Sampling) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": m.role, "content": _content(m)} for m in messages],
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            self._max_tokens_field: sampling.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if sampling.seed is not None:
            body["seed"] = sampling.seed
        if stop := [s for s in sampling.stop if s]:
            body["stop"] = stop
        return {k: v for k, v in body.items() if k not in self._unknown_fields}

    async def _ask(self, body: dict[str, Any], on_text: OnText | None) -> Reply:
        """One try. Raises: PolicyError, or _Retry where another try makes sense."""
        reply = Reply()
        try:
            async with (
                self._client() as client,
                client.stream("POST", f"{self.base_url}/chat/completions", json=body) as response,
            ):
                if response.status_code != httpx.codes.OK:
                    await response.aread()
                    raise await self._refusal(client, response, body)
                await self._read(client, response, reply, on_text)
        except httpx.ReadTimeout as e:
            raise PolicyError(self._too_slow(reply)) from e
        except httpx.HTTPError as e:
            if not reply.whole:
                raise self._lost(reply, e) from e
        return self._checked(reply, body)

    def _client(self) -> httpx.AsyncClient:
        # One a call: a client belongs to an event loop, and callers come from several.
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        timeout = httpx.Timeout(self._timeout_s, connect=min(CONNECT_TIMEOUT_S, self._timeout_s))
        return httpx.AsyncClient(headers=headers, timeout=timeout, verify=_tls())

    async def _read(
        self,
        client: httpx.AsyncClient,
        response: httpx.Response,
        reply: Reply,
        on_text: OnText | None,
    ) -> None:
        kind = response.headers.get("content-type", "text/event-stream")
        if "event-stream" in kind:
            async for data in events(response.aiter_bytes()):
                if data.strip() == DONE:
                    reply.done = True
                    return
                self._take(data, reply, on_text)
            return
        await response.aread()
        if "json" not in kind:
            raise await self._no_api(client, f"answered with {_what(response)}")
        self._take(response.text, reply, on_text)
        reply.done = True

    def _take(self, data: str, reply: Reply, on_text: OnText | None) -> None:
        body = parse_json(data)
        if body is None:
            raise PolicyError(f"{self.base_url} sent what is no JSON object: {self._shown(data)!r}")
        if body.get("error"):
            raise PolicyError(f"{self.base_url} failed: {self._shown(error_message(body))}")
        piece = reply.add(body)
        if piece and on_text:
            on_text(piece)

    def _checked(self, reply: Reply, body: dict[str, Any]) -> Reply:
        if not reply.whole:
            raise self._lost(reply, None)
        if reply.finish_reason == "content_filter":
            raise PolicyError(
                f"{self.base_url} withheld the answer: its content filter stopped it."
            )
        if not reply.text.strip():
            reasoned = reply.reasoned and reply.finish_reason == "length"
            why = (
                f" It spent all of its {body[self._max_tokens_field]} tokens on reasoning: allow "
                "more with max_tokens."
                if reasoned
                else " Try again."
            )
            raise PolicyError(f"{self.base_url} sent an empty reply.{why}")
        return reply

    def _too_slow(self, reply: Reply) -> str:
        when = f"after {len(reply.text)} characters of its answer" if reply.text else "yet"
        return (
            f"{self.base_url} is too slow: it sent nothing for {self._timeout_s:g} s ({when}). "
            "Try again, or set a longer timeout_s."
        )

    def _lost(self, reply: Reply, error: httpx.HTTPError | None) -> Exception:
        why = self._shown(f"{type(error).__name__}: {error}") if error else "the stream just ended"
        if reply.text:
            return PolicyError(
                f"{self.base_url} dropped the connection in the middle of its answer, after "
                f"{len(reply.text)} characters ({why}). Try again."
            )
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            said = (
                f"Nothing answers at {self.base_url} ({why}). Is the server running, and is the "
                "base URL right?"
            )
        else:
            said = f"{self.base_url} closed the connection before it answered ({why})."
        return _Retry(PolicyError(said))

    async def _refusal(
        self, client: httpx.AsyncClient, response: httpx.Response, body: dict[str, Any]
    ) -> Exception:
        """What to raise for a status other than 200."""
        status, parsed = response.status_code, parse_json(response.text)
        said = self._shown(error_message(parsed) if parsed else _what(response))
        if status in RETRIED_STATUSES or status > 500:
            busy = PolicyError(f"{self.base_url} can't answer now ({status}): {said}")
            quota = parsed is not None and "insufficient_quota" in response.text
            return busy if quota else _Retry(busy, _retry_after_s(response))
        if status in (401, 403):
            key = "did not accept the key" if self._key else "wants an API key, and none is set"
            return PolicyError(f"{self.base_url} {key} ({status}): {said}. Check api_key.")
        if status in (404, 405):
            return await self._not_found(client, body["model"], f"{status}: {said}")
        if response.is_redirect:
            to = self._shown(response.headers.get("location", ""))
            return PolicyError(
                f"{self.base_url} has moved to {to} ({status}). Set base_url to that."
            )
        if self._adjust(said, body):
            return _Adjusted()
        hint = " Shorten the dialogue or lower max_tokens." if "context" in said.lower() else ""
        return PolicyError(f"{self.base_url} refused the request ({status}): {said}{hint}")

    def _adjust(self, said: str, body: dict[str, Any]) -> bool:
        """Whether the next try will leave out or rename a field that the server doesn't know."""
        if "max_completion_tokens" in said and "max_tokens" in body:
            self._max_tokens_field = "max_completion_tokens"
            return True
        unknown = {f for f in OPTIONAL_FIELDS if f in body and re.search(rf"\b{f}\b", said)}
        self._unknown_fields |= unknown
        return bool(unknown)

    async def _not_found(self, client: httpx.AsyncClient, model: str, said: str) -> PolicyError:
        offered = await _models(client, self.base_url)
        if offered is None:
            return await self._no_api(client, f"has no chat completions ({said})")
        names = ", ".join(offered[:20]) or "none"
        return PolicyError(
            f"{self.base_url} has no model {model!r} ({said}). It offers: {self._shown(names)}."
        )

    async def _no_api(self, client: httpx.AsyncClient, what: str) -> PolicyError:
        versioned = f"{self.base_url}/v1"
        if await _models(client, versioned) is not None:
            hint = f"The base URL should be {versioned}."
        else:
            hint = "Check the base URL; most servers' ends in /v1."
        return PolicyError(f"{self.base_url} {self._shown(what)}. {hint}")

    def _shown(self, text: str) -> str:
        """Others' words, fit for a message: short, on one line, without the key."""
        line = " ".join(text.split())
        if self._key:
            line = line.replace(self._key, "***")
        return line if len(line) <= SHOWN_CHARS else line[:SHOWN_CHARS] + "…"


async def _models(client: httpx.AsyncClient, base_url: str) -> list[str] | None:
    """The names of the models offered at `base_url`, or None where that is no such server."""
    try:
        response = await client.get(f"{base_url}/models")
    except httpx.HTTPError:
        return None
    body = parse_json(response.text) if response.is_success else None
    data = body.get("data") if body else None
    if not isinstance(data, list):
        return None
    return [str(m.get("id")) for m in data if isinstance(m, dict)]


@cache
def _tls() -> ssl.SSLContext:
    """Reading the certificates takes as long as a short call: once will do."""
    return httpx.create_ssl_context()


def _what(response: httpx.Response) -> str:
    kind = response.headers.get("content-type", "")
    if "html" in kind or response.text.lstrip()[:1] == "<":
        return "a web page"
    return f"{response.text[:SHOWN_CHARS]!r}" if response.text.strip() else "an empty body"


def _retry_after_s(response: httpx.Response) -> float | None:
    value = response.headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _clean_url(base_url: str) -> str:
    url = base_url.strip().rstrip("/").removesuffix("/chat/completions")
    try:
        parsed = httpx.URL(url)
        valid = parsed.scheme in ("http", "https") and bool(parsed.host)
    except httpx.InvalidURL:
        valid = False
    if not valid:
        raise ConfigError(
            f"base_url is {base_url!r}; it must be an http:// or https:// address such as "
            "http://127.0.0.1:8000/v1."
        )
    if parsed.userinfo or parsed.query:
        raise ConfigError("base_url must hold no user name, password or query; use api_key.")
    return url


def _clean_key(api_key: str) -> str:
    key = api_key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError("api_key holds characters that no key has; copy it again.")
    return key


def _content(message: Message) -> str | list[dict[str, Any]]:
    """The message's text; with pictures, a list of both as servers of vision models take it."""
    if not message.images:
        return message.content
    urls = (f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in message.images)
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"type": "text", "text": message.content}, *pictures]

"""What an OpenAI-compatible server streams, as text and figures."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from sweet.errors import PolicyError
from sweet.types import Usage

DONE = "[DONE]"


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The data of each server-sent event; comments and other fields are left out.

    Lines end at line feeds alone: JSON text may hold U+2028 and its like, which str.splitlines
    would cut at.
    """
    rest, data = b"", list[str]()
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            text = line.rstrip(b"\r").decode("utf-8", "replace")
            if text.startswith("data:"):
                data.append(text[5:].removeprefix(" "))
            elif not text and data:
                yield "\n".join(data)
                data = []
    if rest.startswith(b"data:"):
        data.append(rest[5:].decode("utf-8", "replace").strip())
    if data:
        yield "\n".join(data)


def parse_json(text: str) -> dict[str, Any] | None:
    """The JSON object in `text`, or None."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def error_message(body: dict[str, Any]) -> str:
    """What the server says went wrong, in whichever of the usual places it says so."""
    error = body.get("error", body)
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or ""
    return error if isinstance(error, str) else json.dumps(error)


class Reply:
    """A reply being put together from chunks, or from a whole body."""

    def __init__(self) -> None:
        self.text = ""
        self.reasoned = False
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self.done = False

    @property
    def whole(self) -> bool:
        """Whether the server said that it had finished."""
        return self.done or self.finish_reason is not None

    def add(self, body: dict[str, Any]) -> str:
        """Take a chunk; its new text. Raises: PolicyError when it holds something else."""
        self._count(body.get("usage"))
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        choice = choice if isinstance(choice, dict) else {}
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        said = choice.get("delta") or choice.get("message")
        said = said if isinstance(said, dict) else {}
        self.reasoned |= bool(said.get("reasoning_content") or said.get("reasoning"))
        piece = said.get("content") or ""
        if not isinstance(piece, str):
            raise PolicyError(f"The server sent content that is no text: {str(piece)[:100]}")
        self.text += piece
        return piece

    def _count(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if isinstance(prompt, int) and isinstance(completion, int):
            self.usage = Usage(prompt, completion)

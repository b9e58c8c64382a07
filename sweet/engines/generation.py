"""A generation on its way: the caller's request, and the row it becomes in a running batch."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Hashable, Sequence
from os.path import commonprefix
from typing import Literal

from sweet.errors import PolicyError
from sweet.types import Completion, Message, Sampling, Usage

REPLACEMENT = "\ufffd"  # what a tokenizer writes for a character whose bytes are not all there


class OutOfMemory(PolicyError):
    """The batch did not fit; fewer rows may."""


def check_sampling(sampling: Sampling) -> None:
    """Nothing, if the settings can be used. Raises: PolicyError naming the wrong one."""
    if not sampling.temperature >= 0:
        raise PolicyError(f"temperature is {sampling.temperature}; it must be 0 or more.")
    if not 0 < sampling.top_p <= 1:
        raise PolicyError(f"top_p is {sampling.top_p}; it must be above 0 and at most 1.")
    if sampling.max_tokens < 1:
        raise PolicyError(f"max_tokens is {sampling.max_tokens}; it must be 1 or more.")


class Request:
    """A call waiting for its completion. Made in the caller's event loop, answered from any thread.

    The inbox gets new text while it is decoded, and last a Completion or a PolicyError.
    """

    def __init__(
        self, messages: Sequence[Message], sampling: Sampling, adapter: str | None, streams: bool
    ) -> None:
        self.messages = tuple(messages)
        self.sampling = sampling
        self.adapter = adapter
        self.streams = streams
        self.cancelled = False
        self.started = time.perf_counter()
        self.inbox: asyncio.Queue[str | Completion | PolicyError] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    def send(self, item: str | Completion | PolicyError) -> None:
        """Put `item` into the inbox, unless nobody waits any more."""
        if self.cancelled:
            return
        try:
            self._loop.call_soon_threadsafe(self.inbox.put_nowait, item)
        except RuntimeError:  # the caller's event loop is closed
            self.cancelled = True


class Text:
    """The text of a growing list of tokens: cut at a stop string, passed on as it becomes sure."""

    def __init__(self, decode: Callable[[list[int]], str], stop: Sequence[str]) -> None:
        self._decode = decode
        self._stop = [s for s in stop if s]
        self._sent = 0
        self.text = ""

    def update(self, ids: list[int], *, last: bool = False) -> bool:
        """Take the tokens so far. True when a stop string ended the text."""
        before, self.text = self.text, self._decode(ids)
        cuts = [at for s in self._stop if (at := self.text.find(s)) >= 0]
        if cuts:
            self.text = self.text[: min(cuts)]
        self._sure = len(self.text) if last or cuts else self._sure_chars(before)
        return bool(cuts)

    def news(self) -> str:
        """The sure text that was not asked for yet."""
        piece = self.text[self._sent : self._sure]
        self._sent += len(piece)
        return piece

    def _sure_chars(self, before: str) -> int:
        """Without a half-decoded character, what may become a stop string, and the last token.

        Some tokens read otherwise once the next one is there: of the embedded model that draws, a
        section's beginning becomes its name.
        """
        sure = commonprefix([before, self.text.rstrip(REPLACEMENT)])
        held = (
            n
            for s in self._stop
            for n in range(min(len(s) - 1, len(sure)), 0, -1)
            if sure.endswith(s[:n])
        )
        return len(sure) - max(held, default=0)


class Row:
    """One request inside a batch: its tokens, its own dice, its text."""

    def __init__(
        self,
        request: Request,
        prompt_ids: list[int],
        limit: int,
        end_ids: frozenset[int],
        decode: Callable[[list[int]], str],
        adapter: Hashable = None,
    ) -> None:
        self.request = request
        self.adapter = adapter
        self.prompt_ids = prompt_ids
        self.out_ids: list[int] = []
        self.finished = False
        # A row's dice are its own, so its text does not depend on who else is in the batch.
        self.uniform = random.Random(request.sampling.seed).random
        self._limit = limit
        self._end_ids = end_ids
        self._text = Text(decode, request.sampling.stop)
        self._decodes_each_token = request.streams or bool(request.sampling.stop)

    @property
    def ids(self) -> list[int]:
        """Every token so far; what a row that left the batch starts again from."""
        return self.prompt_ids + self.out_ids

    @property
    def gone(self) -> bool:
        """Whether it has nothing more to do in a batch."""
        return self.finished or self.request.cancelled

    def push(self, token: int) -> None:
        """Take the next token; send new text, and the completion when it is the last."""
        self.out_ids.append(token)
        ended = token in self._end_ids
        full = len(self.out_ids) >= self._limit
        stopped = False
        if self._decodes_each_token or ended or full:
            shown = self.out_ids[:-1] if ended else self.out_ids
            stopped = self._text.update(shown, last=ended or full)
        if self.request.streams and (piece := self._text.news()):
            self.request.send(piece)
        if ended or full or stopped:
            self._finish("stop" if ended or stopped else "length")

    def fail(self, error: PolicyError) -> None:
        """End without a completion."""
        self.finished = True
        self.request.send(error)

    def _finish(self, reason: Literal["stop", "length"]) -> None:
        self.finished = True
        usage = Usage(len(self.prompt_ids), len(self.out_ids))
        elapsed_ms = (time.perf_counter() - self.request.started) * 1000
        self.request.send(Completion(self._text.text, usage, elapsed_ms, reason))

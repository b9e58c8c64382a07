"""Collaborators that are no person: a model that knows the hidden information, and a script.

A model that plays the person tends to give its reference away. A reply that does is redrawn; when
every draw leaks, the leaking sentences are dropped; when nothing is left, the turn has failed.
Nothing is ever put in a reply's place.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace

from sweet.drawn import talk
from sweet.errors import SimulatorError, SweetError, TaskDataError, boundary
from sweet.parsing import page_in, spoken
from sweet.prompts import simulator_backend, simulator_frontend
from sweet.seeds import derived_seed
from sweet.tasks import mini_talk, page_talk
from sweet.types import (
    Action,
    DrawsPages,
    Engine,
    HiddenInfo,
    Message,
    Observation,
    Rendering,
    Sampling,
    TaskKind,
)

MAX_REPLY_CHARS = 400  # arXiv:2503.15478, section 3
MAX_PAGE_REPLY_CHARS = 1000  # the same, for web pages
LEAK_TOKENS = 10
REDRAWS = 3
_REDRAW_TEMPERATURE = 0.7  # a greedy model would say the same again

_TOKEN = re.compile(r"[^\W\d]\w*|\d+(?:\.\d+)?|[^\w\s]")
_DEF = re.compile(r"\bdef\s+\w+\s*\(")
_CODE_BLOCK = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_DEF_BLOCK = re.compile(
    r"^[ \t]*(?:async[ \t]+)?def\s+\w+\s*\(.*(?:\n(?:[ \t]+.*)?)*", re.MULTILINE
)
_MARKUP = re.compile(
    r"</?[a-z][^<>\n]{0,500}>|```|~~~|\b(?:bg|text|border|from|to|via)-[a-z]+-\d{2,3}\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


class _Speaker:
    """A model that is asked again where what it said may not be shown."""

    def __init__(
        self, model: str, engine: Engine, sampling: Sampling, redraws: int = REDRAWS
    ) -> None:
        self.name = f"llm:{model}"
        self._engine = engine
        self._sampling = sampling
        self._redraws = redraws

    async def _said(
        self,
        messages: tuple[Message, ...],
        at: tuple[int, int],
        limit: int,
        unfit: Callable[[str], bool],
        cleaned: Callable[[str], str],
    ) -> str:
        """What the model says, cut to `limit`; what is left of it where every draw is `unfit`.

        `at` is the episode's seed and the turn. Raises: SimulatorError.
        """
        draws = []
        for attempt in range(self._redraws + 1):
            draw = await self._draw(messages, derived_seed(at[0], "reply", at[1], attempt), attempt)
            reply = shortened(draw, limit)
            if reply and not unfit(reply):
                return reply
            draws.append(draw)
        for draw in draws:
            if kept := shortened(cleaned(draw), limit):
                return kept
        raise SimulatorError(
            f"{self.name} said nothing that may be shown in {len(draws)} tries (empty, or quoting "
            "the reference). Retry the turn, or choose another simulator model."
        )

    async def _draw(self, messages: tuple[Message, ...], seed: int, attempt: int) -> str:
        sampling = replace(self._sampling, seed=seed)
        if attempt:
            temperature = max(sampling.temperature, _REDRAW_TEMPERATURE)
            sampling = replace(sampling, temperature=temperature)
        try:
            with boundary(SimulatorError, f"{self.name} could not answer"):
                completion = await self._engine.complete(messages, sampling)
        except SimulatorError:
            raise
        except SweetError as e:  # an engine speaks of itself as a policy's
            raise SimulatorError(f"{self.name} could not answer: {e}") from e
        return spoken(completion.text)


class LLMSimulator(_Speaker):
    """A model in the collaborator's seat, with the hidden information in its prompt."""

    async def reply(
        self, observation: Observation, action: Action, hidden: HiddenInfo, *, seed: int
    ) -> str:
        """What the simulated person says to `action`, at most 400 characters, without the code.

        Raises: SimulatorError where the model fails, says nothing, or only quotes the reference.
        """
        if observation.kind is not TaskKind.BACKEND:
            raise SimulatorError(f"{self.name} has no prompt for {observation.kind.value} tasks.")
        return await self._said(
            simulator_backend.messages(observation, action, hidden),
            (seed, len(observation.exchanges)),
            MAX_REPLY_CHARS,
            lambda said: leaks(said, hidden.reference),
            lambda said: without_leaks(said, hidden.reference),
        )


class VisionSimulator(_Speaker):
    """A model that sees two pictures, the wanted page's and the agent's, and no dialogue."""

    def __init__(
        self,
        model: str,
        engine: Engine,
        sampling: Sampling,
        renderer: DrawsPages,
        redraws: int = REDRAWS,
    ) -> None:
        super().__init__(model, engine, sampling, redraws)
        self._renderer = renderer

    async def reply(
        self, observation: Observation, action: Action, hidden: HiddenInfo, *, seed: int
    ) -> str:
        """What the simulated person says to the page in `action`: 1,000 characters, no HTML.

        Raises: SimulatorError where a page can't be drawn, the model fails or says nothing usable.
        """
        wanted, shown = _pages(hidden, action)
        pages = [wanted, shown] if shown is not None else [wanted]
        drawn = await _drawn(self._renderer, *pages)
        pictures = [page.png for page in drawn]
        messages = simulator_frontend.messages(
            pictures[0], pictures[1] if shown is not None else None, MAX_PAGE_REPLY_CHARS
        )
        at = (seed, len(observation.exchanges))
        return await self._said(messages, at, MAX_PAGE_REPLY_CHARS, has_markup, without_markup)


class ScriptedCollaborator:
    """Answers questions on ColBench-Mini tasks from the reference's named constants."""

    name = "scripted"

    async def reply(
        self, observation: Observation, action: Action, hidden: HiddenInfo, *, seed: int
    ) -> str:
        """What the script says to `action`.

        Raises: SimulatorError where the reference is none of ColBench-Mini's.
        """
        drawn = derived_seed(seed, "reply", len(observation.exchanges))
        try:
            return mini_talk.reply_to(action.message, hidden, observation.exchanges, drawn)
        except TaskDataError as e:
            raise SimulatorError(f"The scripted collaborator could not answer: {e}") from e


class ScriptedDesigner:
    """Says in what the agent's page differs from the wanted one; it sees pages, no dialogue.

    Pages that are written as ColBench-Mini's are compared by what they are made of, all others by
    how they are drawn.
    """

    name = "scripted"

    def __init__(self, renderer: DrawsPages, *, unheard: bool = False) -> None:
        """`unheard` takes the phrasings that training never hears."""
        self._renderer = renderer
        self._unheard = unheard

    async def reply(
        self, observation: Observation, action: Action, hidden: HiddenInfo, *, seed: int
    ) -> str:
        """What the script says to the page in `action`, at most 1,000 characters.

        Raises: SimulatorError where the reference is no page, or one of the two can't be drawn.
        """
        wanted, shown = _pages(hidden, action)
        drawn = derived_seed(seed, "reply", len(observation.exchanges))
        said = await asyncio.to_thread(  # a huge page takes seconds to read
            page_talk.reply_to, wanted, shown, drawn, unheard=self._unheard
        )
        if said is None and shown is not None:
            target, page = await _drawn(self._renderer, wanted, shown)
            said = await asyncio.to_thread(
                talk.reply_to, target, page, drawn, unheard=self._unheard
            )
        return shortened(said or "", MAX_PAGE_REPLY_CHARS)


def _pages(hidden: HiddenInfo, action: Action) -> tuple[str, str | None]:
    """The wanted page and the agent's, None where its message has none."""
    wanted, shown = page_in(hidden.reference), page_in(action.raw)
    if wanted.html is None:
        raise SimulatorError(f"The collaborator has no page to want. {wanted.why}")
    return wanted.html, shown.html


async def _drawn(renderer: DrawsPages, *pages: str) -> list[Rendering]:
    try:
        drawing = (asyncio.to_thread(renderer.render, page) for page in pages)
        return list(await asyncio.gather(*drawing))
    except SweetError as e:
        raise SimulatorError(f"The collaborator could not see the pages: {e}") from e


def has_markup(reply: str) -> bool:
    """Whether `reply` has tags, a fence, or names of Tailwind's classes in it."""
    return _MARKUP.search(reply) is not None


def without_markup(reply: str) -> str:
    """`reply` without its code blocks and the sentences that have markup in them."""
    sentences = (s.strip() for s in _SENTENCE.split(_CODE_BLOCK.sub("\n", reply)))
    return " ".join(s for s in sentences if s and not has_markup(s))


def leaks(reply: str, reference: str) -> bool:
    """Whether `reply` gives the reference code away: a `def`, a fence, ten tokens in a row."""
    if "```" in reply or "~~~" in reply or _DEF.search(reply):
        return True
    return not _runs(reply).isdisjoint(_runs(reference))


def without_leaks(reply: str, reference: str) -> str:
    """`reply` without its code blocks and leaking sentences; "" where nothing clean is left."""
    prose = _DEF_BLOCK.sub("\n", _CODE_BLOCK.sub("\n", reply))
    sentences = [s.strip() for s in _SENTENCE.split(prose)]
    kept = " ".join(s for s in sentences if s and not leaks(s, reference))
    return "" if leaks(kept, reference) else kept


def shortened(reply: str, limit: int = MAX_REPLY_CHARS) -> str:
    """`reply` cut to `limit` characters: after a sentence where one ends, else after a word."""
    if len(reply) <= limit:
        return reply
    head = reply[: limit + 1]
    ends = [m.start() for m in re.finditer(r"(?<=[.!?])\s", head)]
    if not ends:
        ends = [m.start() for m in re.finditer(r"\s", head)]
    return head[: ends[-1]].rstrip() if ends else reply[:limit]


def _runs(text: str) -> set[tuple[str, ...]]:
    """Every run of `LEAK_TOKENS` tokens in `text`, without regard to case and white space."""
    tokens = [t.lower() for t in _TOKEN.findall(text)]
    return {tuple(tokens[i : i + LEAK_TOKENS]) for i in range(len(tokens) - LEAK_TOKENS + 1)}

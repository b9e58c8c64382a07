"""The figures of the model that draws, as its card gives them: played, drawn and counted.

The parts are the real ones: the engine, the scripted designer, the browser, the evaluator.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from evaluators.frontend import FrontendEvaluator, open_clip_model
from evaluators.render import Renderer
from evaluators.visual import similarity
from sweet.engines import EMBEDDED_PAGES_DIR
from sweet.engines.local import LocalEngine
from sweet.parsing import page_in
from sweet.policy import EnginePolicy
from sweet.settings import EMBEDDED_WEIGHTS, ModelSettings, load_settings
from sweet.simulator import ScriptedDesigner
from sweet.tasks.mini_drawing import draw_page
from sweet.tasks.mini_frontend import description, generate, split_of
from sweet.tasks.mini_page_reader import parse_page
from sweet.tasks.mini_pages import PageSpec
from sweet.tasks.mini_topics import Topic, topics
from sweet.tasks.page_differences import Difference, What, changed, differences
from sweet.tasks.page_talk import say_difference
from sweet.types import DrawsPages, Engine, Episode, Message, StopReason, TaskKind, TaskRow
from trainer.pretraining.measure import SEED, play, share
from trainer.pretraining.page_demonstrations import mutated, said_with
from trainer.pretraining.page_edits import follow

PAGES = EMBEDDED_WEIGHTS[TaskKind.FRONTEND]


@dataclass(frozen=True, slots=True)
class Asked:
    """A page that is shown, the one difference that a person states, and its topic."""

    topic: Topic
    target: PageSpec
    shown: PageSpec
    difference: Difference
    said: str


def measure_pages(model: Path | None = None, n: int = 500) -> dict:
    """Every figure of the model card, each with its n; takes minutes."""
    return asyncio.run(_measure(model or EMBEDDED_PAGES_DIR, n))


async def _measure(model: Path, n: int) -> dict:
    settings = load_settings()
    engine, renderer = LocalEngine(model), Renderer()
    evaluator = FrontendEvaluator(renderer, lambda: open_clip_model(settings.clip))
    policy = EnginePolicy(PAGES, engine, ModelSettings(model=PAGES).sampling, "plain")
    figures: dict = {"evaluator": evaluator.name}
    try:
        for split in ("test", "families"):
            rows = list(generate(split, n, SEED))
            episodes = await play(policy, evaluator, rows, SEED, ScriptedDesigner(renderer))
            figures[split] = played(rows, episodes)
            figures[f"{split}, visual similarity by turn"] = await asyncio.to_thread(
                similarity_by_turn, renderer, rows, episodes
            )
        for name, unheard in (("heard", False), ("unheard", True)):
            asked = stated(n, unheard=unheard)
            figures[f"one stated difference in {name} words"] = share(await obeyed(engine, asked))
    finally:
        evaluator.close()
        renderer.close()
        engine.close()
    return figures


def played(rows: Sequence[TaskRow], episodes: Sequence[Episode]) -> dict:
    """Valid pages, what is left to change by turn, and what the base leaves to learn."""
    rewards = [e.reward.value for e in episodes if e.reward is not None]
    messages = [turn.action.raw for e in episodes for turn in e.turns]
    left = [differences_left(row, e) for row, e in zip(rows, episodes, strict=True)]
    ends = [counts[-1] for counts in left if counts and counts[-1] is not None]
    return {
        "messages with a complete page": share(
            [page_in(text).html is not None for text in messages]
        ),
        "messages with a page of its own kind": share(
            [_spec(text) is not None for text in messages]
        ),
        "reward": round(fmean(rewards), 4) if rewards else None,
        "unscored": len(episodes) - len(rewards),
        "mean_turns": round(fmean(len(e.turns) for e in episodes), 2),
        "answered": share([e.stop_reason is StopReason.ANSWERED for e in episodes]),
        "all right at the end": share([count == 0 for count in ends]),
        "differences left by turn": by_turn(left),
    }


def differences_left(row: TaskRow, episode: Episode) -> list[int | None]:
    """In how much each turn's page differs from the wanted one; None for a turn without a page."""
    assert row.hidden is not None
    target = parse_page(row.hidden.reference)
    assert target is not None
    pages = [_spec(turn.action.raw) for turn in episode.turns]
    return [None if page is None else len(differences(target, page)) for page in pages]


def by_turn(values: Sequence[Sequence[float | None]]) -> list[float | None]:
    """The mean at each turn of the longest episode; one that is over stays as it ended.

    None for a turn of which nothing is known.
    """
    means: list[float | None] = []
    for turn in range(max(map(len, values), default=0)):
        there = [some[min(turn, len(some) - 1)] for some in values if some]
        known = [value for value in there if value is not None]
        means.append(round(fmean(known), 3) if known else None)
    return means


def similarity_by_turn(
    renderer: DrawsPages, rows: Sequence[TaskRow], episodes: Sequence[Episode]
) -> list[float | None]:
    """The mean visual similarity of each turn's page; a turn without a page has 0."""
    values: list[list[float | None]] = []
    for row, episode in zip(rows, episodes, strict=True):
        assert row.hidden is not None
        wanted = renderer.render(row.hidden.reference)
        pages = [page_in(turn.action.raw).html for turn in episode.turns]
        values.append([similarity(wanted, renderer.render(p)).overall if p else 0.0 for p in pages])
    return by_turn(values)


def stated(n: int, *, unheard: bool) -> list[Asked]:
    """`n` pages of the validation split with some differences, of which one is stated."""
    rng = random.Random(f"{SEED}/{unheard}")
    found: list[Asked] = []
    while len(found) < n:
        topic = rng.choice(topics())
        target = shown = draw_page(topic, rng)
        for _ in range(rng.randint(1, 6)):
            shown = mutated(shown, topic, rng)
        left = differences(target, shown)
        if left and split_of(target) == "validation":
            some = left[0] if left[0].what is not What.DETAIL else rng.choice(left)
            said = say_difference(some, rng, unheard=unheard)
            found.append(Asked(topic, target, shown, some, said))
    return found


async def obeyed(engine: Engine, asked: Sequence[Asked]) -> list[bool]:
    """Whether the next page has each stated difference fixed, and nothing else changed."""
    rng = random.Random(SEED)

    async def answer(one: Asked) -> bool:
        messages = [
            Message("user", description(one.topic, one.target, rng)),
            Message("assistant", said_with(one.shown, 1)),
            Message("user", one.said),
        ]
        sampling = replace(ModelSettings(model=PAGES).sampling, seed=SEED)
        done = await engine.complete(messages, sampling)
        return did(one, _spec(done.text))

    return await asyncio.gather(*map(answer, asked))


def did(asked: Asked, page: PageSpec | None) -> bool:
    """Whether a page is the shown one with that difference fixed, as far as the words told it."""
    if page is None:
        return False
    shown, difference = asked.shown, asked.difference
    if page == changed(shown, difference):
        return True
    guessed = follow(shown, difference, asked.said, asked.topic, random.Random(0))
    if not guessed.is_guess or page.names != guessed.page.names:
        return page == guessed.page
    if difference.what is What.MISSING:  # what the new part looks like was not told
        rest = tuple(s for s in page.sections if s.name != difference.section)
        return replace(page, sections=rest) == shown
    texts = page.section(difference.section).items(difference.detail)  # nor the new texts
    wanted = guessed.page.section(difference.section).items(difference.detail)
    given = shown.having(difference.section, difference.detail, texts)
    return len(texts) == len(wanted) and page == given


def _spec(text: str) -> PageSpec | None:
    """The page in a message, where it is one of ColBench-Mini's kind."""
    html = page_in(text).html
    return parse_page(html) if html else None

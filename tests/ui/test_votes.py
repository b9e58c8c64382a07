"""From a blind vote to the version that learned from it, in a real browser with the real agent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from sweet.engines import EMBEDDED_DIR
from sweet.rollout import Rollout, assignments
from sweet.services import PERSON, Services
from sweet.settings import Settings
from sweet.store import Choice, EpisodeStore
from sweet.types import Action, Episode, StopReason, TaskKind
from tests.ui.designing import page as web_page
from tests.ui.studio import Studio, Visitor, training
from tests.ui.test_train import PATIENCE_MS, SMALL, go_train, state

pytestmark = [
    pytest.mark.timeout(1800),  # of seconds where nothing else runs
    pytest.mark.skipif(
        not (EMBEDDED_DIR / "model.safetensors").is_file(),
        reason=f"the embedded model is not there ({EMBEDDED_DIR}); `python -m trainer pretrain`",
    ),
]
Two = tuple[str, str]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def to_compare(data: Path) -> list[Two]:
    """Two sessions each of some tasks, the one with fewer turns first; of a web page at the end."""
    with Services(Settings(data=data)) as services:
        asyncio.run(play(services))
        found = sorted((o.episode for o in services.store.iter_episodes()), key=task_of)
        ids = [shortest_and_longest(list(some)) for _, some in groupby(found, key=task_of)]
        row = services.task_rows("mini-frontend/train")[0]
        services.store.add_tasks([row])
        drawn = [draw(services.store, row.task.id, color) for color in ("red", "green")]
    return [*(two for two in ids if two), (drawn[0], drawn[1])]


async def play(services: Services) -> None:
    rows = services.task_rows("mini-backend/train")[:4]
    evaluator = services.evaluator(TaskKind.BACKEND)
    seats = (services.policy("embedded"), services.simulator_for, evaluator)
    rollout = Rollout(services.store, *seats, services.settings.max_turns)
    async for outcome in rollout.run(assignments(rows, 4 * len(rows), 5), concurrency=16):
        assert outcome.error is None


def task_of(episode: Episode) -> str:
    return episode.task_id


def shortest_and_longest(episodes: list[Episode]) -> Two | None:
    by_length = sorted(episodes, key=lambda e: len(e.turns))
    short, long = by_length[0], by_length[-1]
    return (short.id, long.id) if len(short.turns) < len(long.turns) else None


def draw(store: EpisodeStore, task_id: str, color: str) -> str:
    """A session that ended with a page in that colour."""
    episode = store.start_episode(task_id, f"painter-{color}", PERSON, 7)
    html = web_page(color, "Welcome")
    store.append_action(episode.id, 0, Action(html, html, True, html))
    store.finish(episode.id, StopReason.ANSWERED, html)
    return episode.id


@pytest.fixture(scope="module")
def studio(data: Path, to_compare: list[Two]) -> Iterator[Studio]:
    with training(data) as studio:
        yield studio


def vote(visitor: Visitor, store: EpisodeStore, better: str, worse: str) -> None:
    """Set the two side by side, and vote by a key, blind, for the better one."""
    page, ballot = visitor.page, visitor.page.locator("#ballot")
    visitor.go(f"/compare?one={better}&other={worse}")
    expect(ballot).to_contain_text("Which side is better?")
    expect(page).to_have_url(re.compile(r"comparison=\w+"))
    comparison = store.comparison(page.url.split("comparison=")[1].split("&")[0])
    assert "painter" not in page.locator("#stage").inner_html()
    page.keyboard.press("1" if comparison.left == better else "2")
    expect(ballot).to_contain_text("Your vote")
    expect(ballot).to_contain_text("It was blind")
    expect(page.locator("#revealed")).to_contain_text(comparison.left_policy)


def test_blind_votes_on_functions_and_pages_show_on_the_leaderboard_and_train_a_version(
    studio: Studio, browser: Browser, to_compare: list[Two]
) -> None:
    visitor = Visitor(browser, studio.address)
    page = visitor.page
    visitor.go("/leaderboard")
    expect(page.locator("#board-votes")).to_contain_text("No vote yet")
    assert len(to_compare) >= 3
    with EpisodeStore.open(studio.data / "sweet.db") as store:
        for better, worse in to_compare:
            vote(visitor, store, better, worse)
        votes = list(store.iter_votes())
    assert len(votes) == len(to_compare)
    assert {v.choice for v in votes} <= {Choice.LEFT, Choice.RIGHT}
    visitor.go("/leaderboard")
    expect(page.locator("#board-votes")).to_contain_text(f"{len(votes)} votes")

    functions = len(votes) - 1
    go_train(visitor)
    expect(page.locator("#preview")).to_contain_text(f"votes {functions}")
    page.get_by_role("spinbutton", name="Fresh episodes").fill("0")
    expect(page.locator("#preview")).not_to_contain_text("Fresh, played first400")
    page.get_by_role("button", name="Expert settings").click()
    for label, value in SMALL.items():
        page.get_by_label(re.compile(f"^{label}")).fill(str(value))
    visitor.button("Retrain").click()
    expect(state(visitor)).to_have_text("✓ done", timeout=PATIENCE_MS)
    expect(page.locator("#round")).to_contain_text("v0001")
    (pairs,) = (studio.data / "rounds" / "r0001").glob("*-pairs.json")
    assert f'"vote": {functions}' in pairs.read_text()
    visitor.leave()

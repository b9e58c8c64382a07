"""The measures of the model that draws, and that the shipped one reaches what its card says."""

import asyncio
import random
from contextlib import closing

import pytest

from evaluators.render import Renderer
from sweet.engines import EMBEDDED_PAGES_DIR
from sweet.engines.local import LocalEngine
from sweet.policy import EnginePolicy
from sweet.settings import ModelSettings
from sweet.simulator import ScriptedDesigner
from sweet.tasks.mini_frontend import generate
from sweet.tasks.page_differences import What, changed, differences
from sweet.types import Episode, Message, Sampling, StopReason
from trainer.pretraining.measure import play
from trainer.pretraining.page_demonstrations import said_with
from trainer.pretraining.page_edits import follow
from trainer.pretraining.page_measure import (
    PAGES,
    by_turn,
    did,
    obeyed,
    played,
    stated,
)

ASKED = [*stated(60, unheard=False), *stated(20, unheard=True)]


def test_a_page_that_follows_the_words_and_changes_nothing_else_passes():
    for asked in ASKED:
        page = follow(asked.shown, asked.difference, asked.said, asked.topic, random.Random(1)).page
        assert did(asked, page), asked
        assert did(asked, changed(asked.shown, asked.difference))


def test_the_page_as_it_was_and_one_with_more_changed_do_not_pass():
    for asked in ASKED:
        assert not did(asked, asked.shown)
        assert not did(asked, None)
        right = changed(asked.shown, asked.difference)
        background = "yellow" if right.background != "yellow" else "pink"
        if asked.difference.section != "page":
            assert not did(asked, right.having("page", "color", background))


def test_every_sort_of_difference_is_stated():
    assert {asked.difference.what for asked in stated(150, unheard=False)} == set(What)
    assert all(asked.difference in differences(asked.target, asked.shown) for asked in ASKED)


def test_an_episode_that_is_over_stays_as_it_ended():
    assert by_turn([[4, 2], [6, None, 0], []]) == [5.0, 2.0, 1.0]
    assert by_turn([[None]]) == [None]


def test_a_page_that_was_left_when_the_turns_were_used_up_was_no_answer():
    rows = list(generate("test", 2, seed=5))
    ends = (StopReason.ANSWERED, StopReason.TURN_LIMIT)
    episodes = [
        Episode(row.task.id, row.task.id, PAGES, "scripted", 1, artifact="<p>", stop_reason=end)
        for row, end in zip(rows, ends, strict=True)
    ]
    assert played(rows, episodes)["answered"]["share"] == 0.5


@pytest.fixture(scope="module")
def engine():
    with closing(LocalEngine(EMBEDDED_PAGES_DIR)) as engine:
        yield engine


def test_the_shipped_folder_is_small_and_has_a_card():
    sizes = [f.stat().st_size for f in EMBEDDED_PAGES_DIR.parent.rglob("*") if f.is_file()]
    assert sum(sizes) <= 40e6  # with the weights for functions
    card = (EMBEDDED_PAGES_DIR / "README.md").read_text()
    for part in ("## How it was made", "## Figures", "## Limits"):
        assert part in card


def test_one_stated_difference_is_fixed_and_the_rest_stays(engine):
    right = asyncio.run(obeyed(engine, stated(60, unheard=False)))
    assert sum(right) / len(right) >= 0.8


def test_pages_are_whole_come_nearer_and_leave_room_to_learn(engine):
    rows = list(generate("test", 60, seed=5))
    policy = EnginePolicy(PAGES, engine, ModelSettings(model=PAGES).sampling, "plain")
    with closing(Renderer()) as renderer:
        episodes = asyncio.run(play(policy, None, rows, 5, ScriptedDesigner(renderer)))
    figures = played(rows, episodes)
    assert figures["messages with a complete page"]["share"] >= 0.9  # its card: 99.0 %
    left = figures["differences left by turn"]
    assert left[-1] < left[0]
    assert figures["all right at the end"]["share"] < 0.8


@pytest.mark.parametrize(
    "said",
    ["make the header dark blue", "header: dark blue", "Dark blue header please!!",
     "the page header should be dark blue, not white"],
)  # fmt: skip
def test_a_sloppy_person_is_understood(engine, said):
    asked = next(a for a in ASKED if "header" in a.shown.names)
    messages = [
        Message("user", "a page with a header"),
        Message("assistant", said_with(asked.shown, 1)),
        Message("user", said),
    ]
    done = asyncio.run(engine.complete(messages, Sampling(temperature=0)))
    assert done.text.startswith("Draft 2: header color dark blue")

"""A model that plays the collaborator by two pictures, behind a real server."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest

from sweet.engines import open_engine
from sweet.errors import RenderError, SimulatorError
from sweet.settings import ModelSettings
from sweet.simulator import MAX_PAGE_REPLY_CHARS, VisionSimulator, has_markup
from sweet.types import Action, Collaborator, HiddenInfo, Observation, Sampling, TaskKind, TaskRow
from tests.contracts import CollaboratorContract
from tests.fakes import FakeEngine, FakeRenderer
from tests.sweet.engines.server import says, serving
from tests.sweet.test_designer import ROW

WANTED = "<html><body>wanted</body></html>"
SHOWN = "<html><body>shown</body></html>"
ASKED = Observation(TaskKind.FRONTEND, "A page about ducks.")


def reply(engine, message: str = SHOWN, renderer: FakeRenderer | None = None) -> str:
    collaborator = VisionSimulator("eyes", engine, Sampling(), renderer or FakeRenderer())
    action = Action(message, message, is_final=False)
    return asyncio.run(collaborator.reply(ASKED, action, HiddenInfo(WANTED), seed=3))


class TestVisionSimulator(CollaboratorContract):
    row: TaskRow = ROW
    question = Action(SHOWN, SHOWN, is_final=False)

    def make(self) -> Collaborator:
        engine = FakeEngine(lambda *_: "The header should be blue.")
        return VisionSimulator("eyes", engine, Sampling(), FakeRenderer())


def test_a_server_gets_both_pictures_and_neither_the_dialogue_nor_any_html() -> None:
    with serving(says("Make the header ", "blue.")) as server:
        model = ModelSettings(model="eyes", base_url=server.base_url)
        assert reply(open_engine(model)) == "Make the header blue."
        (_, _, body) = server.asked[0]
    parts = body["messages"][-1]["content"]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    pictures = [base64.b64decode(url.partition("base64,")[2]) for url in urls]
    assert [b"wanted" in pictures[0], b"shown" in pictures[1]] == [True, True]
    text = json.dumps([part for part in parts if part["type"] == "text"]) + json.dumps(
        body["messages"][0]
    )
    assert "<body>" not in text and "ducks" not in text


def test_a_message_without_a_page_is_told_so_with_the_wanted_picture_alone() -> None:
    engine = FakeEngine(["I see no page yet."])
    assert reply(engine, "What colour would you like?") == "I see no page yet."
    assert len(engine.calls[0][0][-1].images) == 1


@pytest.mark.parametrize(
    "quoted",
    ['Use <header class="x">.', "```html\nx\n```", "Try bg-blue-500 there.", "Close it: </div>"],
)
def test_markup_is_drawn_again_and_then_left_out(quoted: str) -> None:
    assert has_markup(quoted)
    assert reply(FakeEngine([quoted, "The header should be blue."])) == "The header should be blue."
    kept = reply(FakeEngine(lambda *_: f"The header should be blue. {quoted}"))
    assert kept == "The header should be blue."
    with pytest.raises(SimulatorError, match="nothing that may be shown"):
        reply(FakeEngine(lambda *_: quoted))


@pytest.mark.parametrize("said", ["It costs < 5 and > 3 euros.", "Use a 2-column text.", "x-ray"])
def test_plain_words_are_no_markup(said: str) -> None:
    assert not has_markup(said)


def test_a_long_reply_is_cut_to_what_a_person_may_say() -> None:
    cut = reply(FakeEngine(["The header should be blue. " * 100]))
    assert MAX_PAGE_REPLY_CHARS - 40 < len(cut) <= MAX_PAGE_REPLY_CHARS and cut.endswith(".")


def test_a_page_that_cannot_be_drawn_fails_the_turn_and_no_model_is_asked() -> None:
    engine = FakeEngine([])
    with pytest.raises(SimulatorError, match="could not see the pages: too slow"):
        reply(engine, renderer=FakeRenderer(RenderError("too slow")))
    assert engine.calls == []


def test_a_reference_that_is_no_page_fails_clearly() -> None:
    collaborator = VisionSimulator("eyes", FakeEngine([]), Sampling(), FakeRenderer())
    with pytest.raises(SimulatorError, match="no page to want"):
        action = Action(SHOWN, SHOWN, is_final=False)
        asyncio.run(collaborator.reply(ASKED, action, HiddenInfo("def f(): ..."), seed=1))

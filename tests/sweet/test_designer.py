"""The scripted collaborator of web pages, and what models are told that design or look at them."""

from __future__ import annotations

import asyncio
import random

import pytest

from sweet.errors import RenderError, SimulatorError
from sweet.policy import EnginePolicy
from sweet.prompts import agent_backend, agent_frontend, simulator_frontend
from sweet.simulator import MAX_PAGE_REPLY_CHARS, ScriptedDesigner
from sweet.tasks import mini_frontend, page_phrases
from sweet.tasks.mini_drawing import draw_page
from sweet.tasks.mini_page_reader import parse_page
from sweet.tasks.mini_pages import render
from sweet.tasks.mini_topics import topics
from sweet.tasks.page_differences import changed, differences
from sweet.types import (
    ANSWER_MARK,
    Action,
    Box,
    Collaborator,
    Exchange,
    HiddenInfo,
    Message,
    Observation,
    Rendering,
    Sampling,
    TaskKind,
)
from tests.contracts import CollaboratorContract
from tests.fakes import FakeEngine, FakeRenderer, hidden_of, task_row

ROW = next(mini_frontend.generate("test", 1, 1))
WANTED = hidden_of(ROW).reference
FIRST = Observation(TaskKind.FRONTEND, ROW.task.description)
LATER = Observation(TaskKind.FRONTEND, ROW.task.description, (Exchange("<html>", "Hm."),), 9)


def reply(message: str, observation: Observation = FIRST, seed: int = 7, **kwargs) -> str:
    action = Action(message, message, is_final=False)
    designer = ScriptedDesigner(FakeRenderer(), **kwargs)
    return asyncio.run(designer.reply(observation, action, HiddenInfo(WANTED), seed=seed))


class TestScriptedDesigner(CollaboratorContract):
    row = ROW
    question = Action("<html><p>Hi</p></html>", "<html><p>Hi</p></html>", is_final=False)

    def make(self) -> Collaborator:
        return ScriptedDesigner(FakeRenderer())


def test_the_wanted_page_is_right_also_in_a_fence_and_with_words_around_it() -> None:
    for message in (WANTED, f"```html\n{WANTED}\n```", f"Here you are:\n{WANTED}\nRight?"):
        assert reply(message).rstrip(".") in {p.rstrip(".") for p in page_phrases.RIGHT.heard}


@pytest.mark.parametrize("message", ["Which colour?", "", WANTED[:80], "<p>Hi</p>"])
def test_a_message_without_a_page_is_told_so(message: str) -> None:
    assert reply(message) in page_phrases.NO_PAGE.heard


def test_it_sees_the_page_and_not_the_dialogue() -> None:
    said = Observation(TaskKind.FRONTEND, "x", (Exchange("What?", "Blue, red, all."),), 9)
    assert reply(WANTED, said, seed=3) == reply(WANTED, LATER, seed=3)


def test_following_what_is_said_leads_to_the_wanted_page() -> None:
    target = parse_page(WANTED)
    page = draw_page(topics()[0], random.Random(1))
    assert target is not None
    for _ in range(60):
        found = differences(target, page)
        if not found:
            break
        assert reply(render(page)) not in page_phrases.RIGHT.heard
        page = changed(page, found[0])
    assert reply(render(page)) in page_phrases.RIGHT.heard


def test_unheard_phrasings_are_other_ones() -> None:
    heard = {reply("?", seed=seed) for seed in range(30)}
    unheard = {reply("?", seed=seed, unheard=True) for seed in range(30)}
    assert heard.isdisjoint(unheard)


def test_a_reply_is_never_longer_than_a_person_s_may_be() -> None:
    page = WANTED.replace("</body>", "".join(f"<h2>{'word ' * 50}</h2>" for _ in range(50)))
    assert 0 < len(reply(page + "</body></html>")) <= MAX_PAGE_REPLY_CHARS


def test_a_reference_that_is_no_page_fails_clearly() -> None:
    with pytest.raises(SimulatorError, match="no page to want"):
        hidden, action = hidden_of(task_row()), Action("x", "x", is_final=False)
        asyncio.run(ScriptedDesigner(FakeRenderer()).reply(FIRST, action, hidden, seed=1))


class Drawing(FakeRenderer):
    """Draws a page as its colour alone."""

    def render(self, html: str, *, width: int = 1280) -> Rendering:
        self.asked.append((html, width))
        color = "#ef4444" if "red" in html else "#3b82f6"
        body = Box("body", "", 0, 0, width, 700, "#000000", color, 16, False, "left")
        return Rendering(html.encode(), width, 700, (body,))


def test_pages_that_are_not_written_as_mini_pages_are_compared_as_they_are_drawn() -> None:
    action = Action("<html>red</html>", "<html>red</html>", is_final=False)
    wanted, drawing = HiddenInfo("<html>blue</html>"), Drawing()
    said = asyncio.run(ScriptedDesigner(drawing).reply(FIRST, action, wanted, seed=1))
    assert "background" in said and "blue" in said
    assert {html for html, _ in drawing.asked} == {"<html>red</html>", "<html>blue</html>"}
    failing = FakeRenderer(RenderError("no Chromium"))
    with pytest.raises(SimulatorError, match="could not see the pages: no Chromium"):
        asyncio.run(ScriptedDesigner(failing).reply(FIRST, action, wanted, seed=1))


def test_mini_pages_are_compared_without_being_drawn() -> None:
    page = draw_page(topics()[1], random.Random(5))
    action = Action(render(page), render(page), is_final=False)
    failing = FakeRenderer(RenderError("no Chromium"))
    assert asyncio.run(ScriptedDesigner(failing).reply(FIRST, action, HiddenInfo(WANTED), seed=1))


# Prompts


def test_the_designing_agent_is_told_how_to_answer_and_when() -> None:
    system, *dialogue = agent_frontend.instructed(LATER)
    assert ANSWER_MARK in system.content and "10 messages" in system.content
    assert "tailwindcss@2.2.19" in system.content and "{" not in system.content
    assert tuple(dialogue) == agent_frontend.plain(LATER) == agent_backend.plain(LATER)
    last = Observation(TaskKind.FRONTEND, "x {turns}", LATER.exchanges, 1)
    assert "last message" in agent_frontend.instructed(last)[-1].content


@pytest.mark.parametrize("style", ["instructed", "plain"])
def test_a_policy_designs_pages(style) -> None:
    engine = FakeEngine([WANTED])
    action = asyncio.run(EnginePolicy("p", engine, Sampling(), style).act(FIRST, seed=1))
    assert action.message == WANTED and not action.is_final
    assert FIRST.description in engine.prompts[0]


def test_the_vision_collaborator_gets_both_pictures_and_neither_dialogue_nor_html() -> None:
    system, user = simulator_frontend.messages(b"wanted", b"shown", 1000)
    assert user.images == (b"wanted", b"shown") and system.images == ()
    assert "1000 characters" in system.content
    assert ROW.task.description not in system.content + user.content
    (_, alone) = simulator_frontend.messages(b"wanted", None, 1000)
    assert alone.images == (b"wanted",) and "none yet" in alone.content


def test_a_message_has_no_pictures_unless_they_are_given() -> None:
    assert Message("user", "Hello").images == ()

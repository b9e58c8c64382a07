"""What the pages show of an episode that makes a web page, from the log."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluators.render.answers import missing_assets
from sweet.drawn.gallery import Gallery
from sweet.engines import EMBEDDED_WEIGHTS
from sweet.errors import RenderError
from sweet.services import PERSON, Services
from sweet.settings import Settings
from sweet.types import Episode, HiddenInfo, StopReason, Task, TaskKind, TaskRow
from tests.fakes import FakeEngine, FakeRenderer, task_row
from tests.ui.designing import VERSIONS, page
from ui import choose, compare_choose, designs, find, play
from ui.session import LogView, Seat
from ui.wire import SKIP

pytestmark = pytest.mark.skipif(bool(missing_assets()), reason="make setup fetches the assets")
WANTED = page("pink", "Wanted")
ROW = TaskRow(
    Task("page-1", TaskKind.FRONTEND, "A page about ducks.", "test", "colbench-frontend"),
    HiddenInfo(WANTED),
)


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    with Services(Settings(data=tmp_path)) as opened:
        opened.store.add_tasks([ROW, task_row()])
        opened.gallery = Gallery(tmp_path / "pages", FakeRenderer)
        yield opened


def spoken(services: Services, seat: Seat) -> play.Shown:
    async def collect() -> play.Shown:
        return [shown async for shown in play.speak(services, seat)][-1]

    return asyncio.run(collect())


def begun(services: Services, monkeypatch: pytest.MonkeyPatch, *texts: str) -> play.Shown:
    """A person's episode after the first text; the others follow."""
    engine = FakeEngine(texts)
    monkeypatch.setattr("sweet.services.open_engine", lambda model: engine)
    first = play.start(services, "page-1", PERSON, "embedded")
    assert "The page that is wanted" in first.design and "<iframe" not in first.design
    assert first.says["value"] == "" and "differs" in first.says["placeholder"]
    return spoken(services, first.seat)


def logged(services: Services, shown: play.Shown) -> Episode:
    return services.store.episode(str(shown.seat.episode_id))


def test_a_design_appears_as_soon_as_it_is_complete(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = begun(services, monkeypatch, VERSIONS[0], VERSIONS[1])
    assert shown.design.count("<iframe") == 1 and "bg-red-800" in shown.design
    assert not shown.aside["visible"] and shown.reference == ""
    sent = play.send(services, shown.seat, "Green, please.")
    assert sent.design.count("<iframe") == 1
    shown = spoken(services, sent.seat)
    assert shown.design.count("<iframe") == 2
    said = re.findall(r'<div class="body">(.*?)</div>', shown.transcript, re.DOTALL)
    assert "bg-" not in "".join(said) and "Show version 2" in said[-1]


def test_half_a_design_leaves_the_last_one_where_it_is(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = begun(services, monkeypatch, VERSIONS[0], VERSIONS[1][:90])
    shown = spoken(services, play.send(services, shown.seat, "Green.").seat)
    assert shown.design.count("<iframe") == 1 and "cut off" in shown.design


def test_the_wanted_page_is_shown_as_a_picture_and_never_as_code(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = begun(services, monkeypatch, VERSIONS[0])
    everything = "".join(str(part) for part in shown)
    assert "bg-pink-800" not in everything and "Wanted" not in everything
    assert services.gallery.keep(WANTED) in shown.design
    assert services.gallery.keep(WANTED) not in designs.panel(
        services, logged(services, shown), key="x", wanted=False
    )


def test_addresses_name_neither_the_episode_nor_the_policy(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = begun(services, monkeypatch, VERSIONS[0])
    panel = designs.panel(services, logged(services, shown), key="left", wanted=False)
    assert str(shown.seat.episode_id) not in panel and "embedded" not in panel


def test_each_version_has_its_similarity_and_unknown_ones_say_why(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = begun(services, monkeypatch, WANTED, "What else?")
    shown = spoken(services, play.send(services, shown.seat, "Nothing.").seat)
    table = play.measure(services, shown.seat).figures
    assert table.count("<tr>") == 3 and "1.00" in table
    assert "n/a" in table and "no &lt;html&gt; document" in table
    services.gallery = Gallery(services.settings.data / "x", lambda: FakeRenderer(RenderError("!")))
    assert play.measure(services, shown.seat).figures == ""
    assert play.measure(services, Seat()) == play.Shown()


def test_the_replay_has_each_turn_as_it_was_drawn(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = begun(services, monkeypatch, f"Look:\n{VERSIONS[0]}", f"I WANT TO ANSWER:\n{WANTED}")
    shown = spoken(services, play.send(services, shown.seat, "Pink.").seat)
    assert logged(services, shown).stop_reason is StopReason.ANSWERED
    view = LogView(episode_id=shown.seat.episode_id)
    replay = find._shown(services, view).replay
    for html in (VERSIONS[0], WANTED):
        assert f"./pages/{services.gallery.keep(html)}-1280.png" in replay
    assert "Look:" in replay and "<iframe" not in replay
    hidden = find.reveal(services, view, True)
    assert services.gallery.keep(WANTED) in hidden and "<iframe" not in hidden
    assert find.reveal(services, view, False) == ""


def test_functions_have_no_design(services: Services) -> None:
    shown = play.start(services, "task-1", PERSON, "embedded")
    assert (shown.design, shown.figures) == ("", "")
    assert play.measure(services, shown.seat).figures == ""
    assert designs.drawn_turns(services, logged(services, shown)) == {}


def test_an_own_page_has_nothing_to_be_compared_with(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = FakeEngine([VERSIONS[0]])
    monkeypatch.setattr("sweet.services.open_engine", lambda model: engine)
    first = play.start_own(services, "frontend", "A page about ducks.", "embedded")
    assert first.design == ""
    shown = spoken(services, first.seat)
    assert shown.design.count("<iframe") == 1 and "wanted" not in shown.design
    assert play.measure(services, shown.seat).figures == ""


def test_sets_of_pages_are_made_when_they_are_chosen(services: Services) -> None:
    assert "mini-frontend/families" in choose.first_choice(services).task_set["choices"]
    chosen = choose.choose_set(services, "mini-frontend/families", "", "embedded", None)
    assert "mini-frontend/families" in chosen.card
    assert [name for _, name in chosen.collaborator["choices"]] == [PERSON, "scripted"]


def test_who_was_chosen_to_collaborate_stays_where_they_can(services: Services) -> None:
    for chosen, kept in (("scripted", True), (PERSON, True), ("llm:gone", False), (None, False)):
        seat = choose.choose_task(services, "page-1", "embedded", chosen).collaborator
        assert [name for _, name in seat["choices"]] == [PERSON, "scripted"]
        assert ("value" not in seat) if kept else (seat["value"] == PERSON)


def test_a_page_is_given_to_a_version_that_draws_and_keeps_the_one_that_was_chosen_if_it_can(
    services: Services, tmp_path: Path
) -> None:
    trained = tmp_path / "trained"
    trained.mkdir()
    (trained / "adapter_config.json").write_text("{}")
    writes, draws = (
        services.registry.register(trained, base).id for base in EMBEDDED_WEIGHTS.values()
    )
    services.registry.promote(draws)
    services.registry.promote(writes)
    assert choose.first_choice(services).policy["value"] == writes
    assert choose.choose_task(services, "page-1", writes, None).policy["value"] == draws
    assert choose.choose_task(services, "page-1", "embedded", None).policy is SKIP
    assert compare_choose.choose_task(services, "page-1", writes, None).first["value"] == draws
    kept = choose.choose_policy(services, "page-1", writes)
    assert kept.policy is SKIP and "It was not trained to make web pages" in kept.card
    begun = play.start(services, "page-1", PERSON, None)
    assert services.store.episode(str(begun.seat.episode_id)).policy_id == draws


def test_the_embedded_model_is_said_not_to_manage_colbench_pages(services: Services) -> None:
    assert "will not manage" in choose.choose_task(services, "page-1", "embedded", None).card
    assert "can&#x27;t be had" in choose.choose_task(services, "page-1", "v9999", None).card

"""What the handlers of the Collaborate page do to the log, and what they show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import pytest

from sweet.errors import PolicyError, StoreError, TaskDataError
from sweet.services import PERSON, Services
from sweet.settings import load_settings
from sweet.types import Action, Episode, Feedback, StopReason, Task, TaskKind, TaskRow
from tests.fakes import FakeEngine, HangingEngine, task_row
from ui import play
from ui.opinions import latest_feedback
from ui.session import Seat

ANSWER = "I WANT TO ANSWER:\ndef f(x):\n    return x + 5"


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    monkeypatch.setenv("SWEET_DATA", str(tmp_path))
    with Services(load_settings()) as opened:
        opened.store.add_tasks([task_row()])
        yield opened


def says(monkeypatch: pytest.MonkeyPatch, *texts: str | Exception) -> FakeEngine:
    engine = FakeEngine(texts)
    monkeypatch.setattr("sweet.services.open_engine", lambda model: engine)
    return engine


def spoken(services: Services, seat: Seat) -> list[play.Shown]:
    async def collect() -> list[play.Shown]:
        return [shown async for shown in play.speak(services, seat)]

    return asyncio.run(collect())


def begun(services: Services) -> Seat:
    return play.start(services, "task-1", PERSON, "embedded").seat


def logged(services: Services, seat: Seat) -> Episode:
    return services.store.episode(str(seat.episode_id))


def event(**data: object) -> gr.EventData:
    return gr.EventData(None, data)


def test_a_person_plays_to_the_end(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, "How much?", ANSWER)
    seat = begun(services)
    shown = spoken(services, seat)[-1]
    assert "How much?" in shown.transcript
    shown = play.send(services, shown.seat, "  Five. ")
    assert shown.seat.due
    shown = spoken(services, shown.seat)[-1]
    episode = logged(services, seat)
    assert episode.turns[0].reply == "Five."
    assert episode.stop_reason is StopReason.ANSWERED
    assert episode.reward is not None
    assert "✓ success" in shown.result


def test_what_is_spoken_is_shown_before_it_is_logged(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = HangingEngine()

    async def whisper(messages, sampling, *, adapter=None, on_text=None):
        on_text("Half a ")
        on_text("sentence")
        return await HangingEngine.complete(engine, messages, sampling)

    engine.complete = whisper  # type: ignore[method-assign]
    monkeypatch.setattr("sweet.services.open_engine", lambda model: engine)

    async def watch() -> play.Shown:
        seat = await asyncio.to_thread(begun, services)
        stream = play.speak(services, seat)
        async for shown in stream:
            if "Half a sentence" in shown.live:
                await stream.aclose()
                return shown
        raise AssertionError("nothing was streamed")

    assert "Half a sentence" in asyncio.run(watch()).live
    assert engine.cancelled, "a closed stream stops the model"


def test_nobody_speaks_unless_it_is_due(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = says(monkeypatch, "How much?")
    seat = begun(services)
    assert spoken(services, Seat(seat.episode_id)) == [play.Shown()]
    assert spoken(services, Seat()) == [play.Shown()]
    assert engine.calls == []


def test_a_reply_out_of_turn_changes_nothing(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(monkeypatch, "How much?")
    seat = begun(services)
    assert play.send(services, seat, "Five.") == play.Shown()
    spoken(services, seat)
    assert play.send(services, seat, "   ") == play.Shown()
    assert logged(services, seat).turns[0].reply is None


def test_a_failed_turn_says_why_and_can_be_retried(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(monkeypatch, PolicyError("The key is wrong <b>."), "How much?")
    seat = begun(services)
    failed = spoken(services, seat)[-1]
    assert "The key is wrong &lt;b&gt;." in failed.result
    assert failed.again["visible"]
    assert failed.again["value"] == "Retry the turn"
    again = asyncio.run(play.again(services, failed.seat))
    assert "How much?" in spoken(services, again.seat)[-1].transcript


def test_a_model_that_can_not_be_had_is_said_and_nothing_is_lost(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(model: object) -> None:
        raise PolicyError("There is no embedded model here.")

    monkeypatch.setattr("sweet.services.open_engine", missing)
    seat = begun(services)
    shown = spoken(services, seat)[-1]
    assert "There is no embedded model here." in shown.live
    assert shown.again["visible"]
    assert logged(services, seat).stop_reason is None


def test_where_another_browser_was_faster_its_turn_is_shown(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faster(messages: object, sampling: object) -> str:
        other = Action("I was faster.", "I was faster.", False)
        services.store.append_action(str(seat.episode_id), 0, other)
        return "I was slower."

    monkeypatch.setattr("sweet.services.open_engine", lambda model: FakeEngine(faster))
    seat = begun(services)
    shown = spoken(services, seat)[-1]
    assert "I was faster." in shown.transcript
    assert shown.live == ""


def test_retrying_a_turn_makes_a_fork_and_keeps_the_old(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(monkeypatch, "How much?", "How many?")
    seat = begun(services)
    spoken(services, seat)
    forked = play.act(services, Seat(seat.episode_id), event(action="retry", turn="0"))
    assert "How many?" in spoken(services, forked.seat)[-1].transcript
    old = logged(services, seat)
    assert old.stop_reason is StopReason.REPLACED
    assert old.turns[0].action.message == "How much?"


@pytest.mark.parametrize("who", ["agent", "collaborator"])
def test_an_edit_goes_on_from_there(
    services: Services, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    says(monkeypatch, "How much?", "And then?", "Next?")
    seat = begun(services)
    spoken(services, seat)
    spoken(services, play.send(services, seat, "Five.").seat)
    edit = event(action="edit", turn="0", who=who, text="Better.")
    forked = play.act(services, Seat(seat.episode_id), edit)
    episode = logged(services, forked.seat)
    first = episode.turns[0]
    said = first.action.message if who == "agent" else first.reply
    assert said == "Better."
    assert len(episode.turns) == 1
    assert (first.reply is None) == (who == "agent")


def test_an_empty_edit_is_refused(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, "How much?")
    seat = begun(services)
    spoken(services, seat)
    with pytest.raises(TaskDataError, match="empty"):
        play.act(services, seat, event(action="edit", turn="0", who="agent", text="  "))


@pytest.mark.parametrize("turn", ["1", "-1", "", "x", "0; drop", None, "9" * 30])
def test_a_turn_that_is_not_there_is_refused(
    services: Services, monkeypatch: pytest.MonkeyPatch, turn: str | None
) -> None:
    says(monkeypatch, "How much?")
    seat = begun(services)
    spoken(services, seat)
    with pytest.raises(TaskDataError, match="no turn"):
        play.act(services, seat, event(action="like", turn=turn))


@pytest.mark.parametrize("data", [None, [], "like", 3, {}, {"action": "rm -rf"}, {"action": None}])
def test_whatever_a_browser_sends_is_harmless(services: Services, data: object) -> None:
    seat = begun(services)
    assert play.act(services, seat, gr.EventData(None, data)) == play.Shown()


def test_a_like_pressed_twice_is_taken_back(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(monkeypatch, "How much?")
    seat = begun(services)
    spoken(services, seat)
    shown = play.act(services, seat, event(action="like", turn="0"))
    assert 'data-key="like-0" aria-pressed="true"' in shown.transcript
    shown = play.act(services, seat, event(action="like", turn="0"))
    assert 'data-key="like-0" aria-pressed="false"' in shown.transcript


def test_tags_and_a_comment_keep_the_rating(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(monkeypatch, "How much?")
    seat = begun(services)
    spoken(services, seat)
    play.act(services, seat, event(action="dislike", turn="0"))
    note = event(action="note", turn="0", tags=["unclear", "no such"], own="a, b ,", comment="Hm.")
    play.act(services, seat, note)
    said = latest_feedback(services.store.feedback(str(seat.episode_id)))[0]
    assert said == Feedback(str(seat.episode_id), 0, -1.0, ("unclear", "a", "b"), "Hm.")


def test_an_own_task_has_no_tests_and_is_rated(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(monkeypatch, ANSWER)
    seat = play.start_own(services, "backend", "Add five. def f(x)", "embedded").seat
    shown = spoken(services, seat)[-1]
    assert "your word counts" in shown.result
    assert "Tests" not in shown.result
    shown = play.act(services, seat, event(action="rate", rating="good", comment="Fine."))
    assert "✓ rated good" in shown.result


def test_an_own_task_needs_a_description(services: Services) -> None:
    with pytest.raises(TaskDataError, match="no description"):
        play.start_own(services, "backend", "  ", "embedded")


def test_ending_and_going_on(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, "How much?", "And?")
    seat = begun(services)
    spoken(services, seat)
    shown = asyncio.run(play.finish(services, seat))
    assert "□ stopped" in shown.result
    assert shown.again["value"] == "Go on with it"
    shown = asyncio.run(play.again(services, seat))
    assert logged(services, seat).stop_reason is None


def test_a_reload_takes_the_episode_up(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, "How much?")
    seat = begun(services)
    spoken(services, seat)
    request = gr.Request()
    request.query_params = {"episode": seat.episode_id}
    shown = play.open_page(services, request)
    assert "How much?" in shown.transcript
    assert shown.composer["visible"]
    request.query_params = {"episode": "no-such"}
    assert play.open_page(services, request).setup["visible"]


def test_the_simulator_plays_by_itself(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    services.ensure_mini_tasks()
    task = services.store.random_task("mini-backend", "test", 1)
    says(monkeypatch, "What is the rate?", ANSWER)
    seat = play.start(services, task.id, "scripted", "embedded").seat
    shown = spoken(services, seat)[-1]
    episode = logged(services, seat)
    assert episode.turns[0].reply
    assert episode.stop_reason is StopReason.ANSWERED
    assert not shown.composer["visible"]
    assert shown.reference == ""


def test_only_who_can_play_a_task_is_asked_to(services: Services) -> None:
    with pytest.raises(Exception, match="can't play"):
        play.start(services, "task-1", "scripted", "embedded")
    assert services.store.search().count == 0


def test_a_handler_without_an_episode_says_so(services: Services) -> None:
    with pytest.raises(TaskDataError, match="No episode is open"):
        play.send(services, Seat(), "Five.")
    with pytest.raises(StoreError):
        play.send(services, Seat("no-such"), "Five.")


def test_hidden_details_are_in_plain_words(services: Services) -> None:
    services.ensure_mini_tasks()
    task = services.store.random_task("mini-backend", "test", 1)
    details = play.hidden_details(services.store.task_row(task.id))
    assert any(":" in line for line in details)
    assert play.hidden_details(task_row()) == []
    own = TaskRow(Task("o", TaskKind.BACKEND, "d", "own", "own"), None)
    assert play.hidden_details(own) == []

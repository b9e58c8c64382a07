"""What the handlers of the Compare page do to the log, and what they show to whom."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import pytest

from sweet.errors import ConfigError, PolicyError, StoreError, TaskDataError
from sweet.policy import EnginePolicy
from sweet.services import PERSON, Services
from sweet.settings import EMBEDDED_WEIGHTS, Settings
from sweet.store import Choice
from sweet.types import ANSWER_MARK, Episode, PolicyVersion, Sampling, StopReason, TaskKind
from tests.fakes import FakeEngine, HangingEngine, task_row
from ui import compare_begin, compare_play
from ui.compare_live import Duels
from ui.compare_shown import STUDIO, Shown, shown, voter_of
from ui.session import CompareView

RIGHT = f"{ANSWER_MARK}\ndef f(x):\n    return x + 5"
WRONG = f"{ANSWER_MARK}\ndef f(x):\n    return x"


class Studio(Services):
    """Services whose versions say what they are told to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Settings(data=folder))
        self.engines: dict[str, object] = {}

    def versions(self, **says: object) -> None:
        self.engines |= {
            name: said if hasattr(said, "complete") else FakeEngine(said)  # type: ignore[arg-type]
            for name, said in says.items()
        }

    def policies(self) -> list[PolicyVersion]:
        return [PolicyVersion(name, name) for name in self.engines]

    def policy(self, policy_id: str) -> EnginePolicy:
        if policy_id not in self.engines:
            return super().policy(policy_id)
        return EnginePolicy(policy_id, self.engines[policy_id], Sampling(), "plain")  # type: ignore[arg-type]


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with Studio(tmp_path) as studio:
        studio.store.add_tasks([task_row()])
        yield studio


@pytest.fixture
def duels(studio: Studio) -> Duels:
    return Duels(studio)


def browser(name: str = "a") -> gr.Request:
    return gr.Request(
        session_hash="one-load", cookies={"studio-voter": (name * 32)[:32]}, query_params={}
    )


def run(duels: Duels, view: CompareView, who: gr.Request | None = None) -> list[Shown]:
    async def collect() -> list[Shown]:
        return [page async for page in compare_play.speak(duels, view, who or browser())]

    return asyncio.run(collect())


def begin(
    duels: Duels,
    seat: str = PERSON,
    versions: tuple[str, str] = ("v0001", "v0002"),
    is_blind: bool = True,
) -> CompareView:
    page = compare_begin.start(duels, "task-1", seat, *versions, is_blind, browser())
    assert page.view.due
    return page.view


def sides(studio: Studio, view: CompareView) -> list[Episode]:
    comparison = studio.store.comparison(str(view.comparison_id))
    return [studio.store.episode(comparison.left), studio.store.episode(comparison.right)]


def by_name(studio: Studio, view: CompareView) -> dict[str, Episode]:
    return {episode.policy_id: episode for episode in sides(studio, view)}


def vote(
    duels: Duels, view: CompareView, choice: str, who: gr.Request | None = None, reason: str = ""
) -> Shown:
    event = gr.EventData(None, {"action": "vote", "choice": choice})
    return compare_play.act(duels, view, reason, event, who or browser())


def whole(page: Shown) -> str:
    """All markup of a page."""
    return "".join(part for part in page if isinstance(part, str))


def played(studio: Studio, duels: Duels) -> CompareView:
    """A comparison in which v0001 was right and v0002 wrong, both over."""
    studio.versions(v0001=[RIGHT], v0002=[WRONG])
    view = begin(duels)
    run(duels, view)
    return view


def test_one_message_goes_to_both_and_both_go_on(studio: Studio, duels: Duels) -> None:
    studio.versions(v0001=["How much?", RIGHT], v0002=["How many?", WRONG])
    view = begin(duels)
    page = run(duels, view)[-1]
    assert "How much?" in page.turns
    assert "How many?" in page.turns
    assert page.send["interactive"]
    page = compare_play.send(duels, view, "  Five. ", browser())
    assert page.turns.count("Five.") == 1  # one bubble for both
    page = run(duels, page.view)[-1]
    first, second = sides(studio, view)
    assert [e.turns[0].reply for e in (first, second)] == ["Five.", "Five."]
    assert (first.seed, first.task_id, first.collaborator) == (
        second.seed,
        second.task_id,
        second.collaborator,
    )
    assert {e.reward.value for e in (first, second) if e.reward} == {1.0, 0.0}
    assert "≠ differs" in page.result
    assert page.ballot.count("data-press") == 5


def test_a_side_that_is_done_gets_no_more_messages(studio: Studio, duels: Duels) -> None:
    studio.versions(v0001=[RIGHT], v0002=["How many?", WRONG])
    view = begin(duels)
    page = run(duels, view)[-1]
    assert "gave its answer" in page.live
    assert page.ballot == ""
    compare_play.send(duels, view, "Five.", browser())
    run(duels, CompareView(view.comparison_id, True))
    found = by_name(studio, view)
    assert [len(found[name].turns) for name in ("v0001", "v0002")] == [1, 2]
    assert found["v0001"].turns[0].reply is None


def test_nothing_names_a_side_before_the_vote(studio: Studio, duels: Duels) -> None:
    view = played(studio, duels)
    page = shown(duels, studio.store.comparison(str(view.comparison_id)), browser())
    text = whole(page)
    for episode in sides(studio, view):
        assert episode.policy_id not in text
        assert episode.id not in text
    for word in ("reward", "advantage", "tokens"):
        assert word not in text
    assert "def f(x)" in text


def test_a_vote_reveals_names_rewards_and_advantages_and_turns_the_buttons_off(
    studio: Studio, duels: Duels
) -> None:
    view = played(studio, duels)
    scored = by_name(studio, view)["v0001"]
    studio.store.add_advantages(scored.id, "round 7", {0: 0.25})
    page = vote(duels, view, "tie", reason="both read well")
    text = whole(page)
    for word in ("v0001", "v0002", "1.00", "0.00", "+0.25", "round 7", "no critic has read it"):
        assert word in text
    assert "both read well" in page.ballot
    assert page.ballot.count(" disabled") == 5
    cast = studio.store.votes(str(view.comparison_id))
    assert [(v.choice, v.reason, v.was_blind) for v in cast] == [
        (Choice.TIE, "both read well", True)
    ]


def test_who_has_not_voted_still_sees_no_names(studio: Studio, duels: Duels) -> None:
    view = played(studio, duels)
    vote(duels, view, "left", browser("a"))
    comparison = studio.store.comparison(str(view.comparison_id))
    assert "v0001" in whole(shown(duels, comparison, browser("a")))
    assert "v0001" not in whole(shown(duels, comparison, browser("b")))


def test_a_second_vote_of_a_browser_is_refused(studio: Studio, duels: Duels) -> None:
    view = played(studio, duels)
    vote(duels, view, "left")
    vote(duels, view, "left")
    with pytest.raises(StoreError, match="A vote is not changed"):
        vote(duels, view, "right")
    assert len(studio.store.votes(str(view.comparison_id))) == 1


@pytest.mark.parametrize("choice", ["", "failed", "LEFT", "None", "<b>"])
def test_a_vote_that_is_none_is_refused(studio: Studio, duels: Duels, choice: str) -> None:
    view = played(studio, duels)
    with pytest.raises(ConfigError, match="must be one of"):
        vote(duels, view, choice)
    assert studio.store.votes(str(view.comparison_id)) == []


def test_a_side_that_says_its_name_ends_the_blindness(studio: Studio, duels: Duels) -> None:
    studio.versions(v0001=["Hello, I am v0001. How much?"], v0002=["How many?"])
    view = begin(duels)
    page = run(duels, view)[-1]
    assert "said its own name" in page.head
    assert "v0002" in page.turns
    assert asyncio.run(compare_play.finish(duels, view, browser())).ballot
    page = vote(duels, view, "left")
    assert "It was not blind" in page.ballot
    assert [v.side_named for v in studio.store.votes(str(view.comparison_id))] == [True]


def test_a_failing_side_is_recorded_and_not_voted_on(studio: Studio, duels: Duels) -> None:
    studio.versions(v0001=["How much?"], v0002=[PolicyError("HTTP 503 from the model")])
    view = begin(duels)
    page = run(duels, view)[-1]
    assert "failed" in page.ballot
    assert "HTTP 503" in page.ballot
    assert "data-press" not in page.ballot
    assert not page.composer["visible"]
    assert "v0002" in page.revealed
    cast = studio.store.votes(str(view.comparison_id))
    assert [(v.choice, v.voter) for v in cast] == [(Choice.FAILED, STUDIO)]
    with pytest.raises(StoreError, match="not voted on"):
        vote(duels, view, "left")
    shown(duels, studio.store.comparison(str(view.comparison_id)), browser("b"))
    assert len(studio.store.votes(str(view.comparison_id))) == 1


def test_a_failed_side_that_was_taken_up_again_is_voted_on(studio: Studio, duels: Duels) -> None:
    studio.versions(v0001=[RIGHT], v0002=[PolicyError("HTTP 503"), WRONG])
    view = begin(duels)
    run(duels, view)
    failed = by_name(studio, view)["v0002"]
    studio.store.reopen(failed.id)
    page = run(duels, CompareView(view.comparison_id, True))[-1]
    assert page.ballot.count("data-press") == 5
    assert "v0002" not in whole(page)
    assert "Your vote: B is better" in vote(duels, view, "right").ballot


def test_a_version_that_is_gone_is_a_failed_side(studio: Studio, duels: Duels) -> None:
    studio.versions(v0001=["How much?"], v0002=["How many?"])
    view = begin(duels)
    del studio.engines["v0002"]
    page = run(duels, view)[-1]
    assert "There is no policy" in page.ballot
    assert by_name(studio, view)["v0002"].stop_reason is StopReason.FAILED


def test_both_are_stopped_and_go_on(studio: Studio, duels: Duels) -> None:
    hanging = HangingEngine()
    studio.versions(v0001=hanging, v0002=["How many?"])
    view = begin(duels)

    async def stopped() -> Shown:
        pages = compare_play.speak(duels, view, browser())
        await anext(pages)
        await hanging.asked.wait()
        page = await compare_play.stop(duels, view, browser())
        await pages.aclose()
        return page

    page = asyncio.run(stopped())
    assert hanging.cancelled
    assert page.again["value"] == "Let them go on"
    studio.versions(v0001=["How much?"])
    page = compare_play.again(duels, view, browser())
    page = run(duels, page.view)[-1]
    assert {len(e.turns) for e in sides(studio, view)} == {1}
    assert page.send["interactive"]


def test_a_page_that_is_closed_ends_nothing(studio: Studio, duels: Duels) -> None:
    studio.versions(v0001=["How much?"], v0002=["How many?"])
    view = begin(duels)

    async def closed() -> None:
        pages = compare_play.speak(duels, view, browser())
        await anext(pages)
        await pages.aclose()
        duel = duels.joined(str(view.comparison_id), [])
        await duel.task

    asyncio.run(closed())
    assert [len(e.turns) for e in sides(studio, view)] == [1, 1]


def test_two_browsers_see_one_duel(studio: Studio, duels: Duels) -> None:
    studio.versions(v0001=["How much?"], v0002=["How many?"])
    view = begin(duels)

    async def both() -> None:
        async def look(who: str) -> None:
            async for _ in compare_play.speak(duels, view, browser(who)):
                pass

        await asyncio.gather(look("a"), look("b"))

    asyncio.run(both())
    calls = [len(engine.calls) for engine in studio.engines.values()]  # type: ignore[attr-defined]
    assert calls == [1, 1]


def test_simulators_play_with_both_to_the_end(studio: Studio, duels: Duels) -> None:
    from sweet.tasks import mini_backend

    row = next(iter(mini_backend.generate("train", 1, 7)))
    assert row.hidden
    studio.store.add_tasks([row])
    answer = f"{ANSWER_MARK}\n{row.hidden.reference}"
    studio.versions(v0001=["What is the rate?", answer], v0002=[answer])
    page = compare_begin.start(duels, row.task.id, "scripted", "v0001", "v0002", True, browser())
    assert not page.composer["visible"]
    assert not page.aside["visible"]
    page = run(duels, page.view)[-1]
    found = [e.stop_reason for e in sides(studio, page.view)]
    assert found == [StopReason.ANSWERED, StopReason.ANSWERED]
    assert row.hidden.reference not in page.reference
    assert "No test differs" in page.result


def test_two_sessions_are_one_comparison_whoever_opens_them(studio: Studio, duels: Duels) -> None:
    one, other = sides(studio, played(studio, duels))
    first = compare_begin.start_sessions(duels, one.id, other.id, True, browser("a"))
    second = compare_begin.start_sessions(duels, other.id, one.id, True, browser("b"))
    assert first.view == second.view
    assert one.policy_id not in whole(first)
    vote(duels, first.view, "both_bad", browser("a"))
    assert len(studio.store.votes(first.view.comparison_id)) == 1


@pytest.mark.parametrize("is_blind", [True, False])
def test_names_are_shown_from_the_start_where_that_was_wished(
    studio: Studio, duels: Duels, is_blind: bool
) -> None:
    studio.versions(v0001=["How much?"], v0002=["How many?"])
    page = run(duels, begin(duels, is_blind=is_blind))[-1]
    assert ("v0001" in page.turns) is not is_blind


def test_what_can_not_begin_says_why_and_logs_nothing(studio: Studio, duels: Duels) -> None:
    studio.versions(v0001=["How much?"], v0002=["How many?"])
    with pytest.raises(ConfigError, match="two different versions"):
        begin(duels, versions=("v0001", "v0001"))
    with pytest.raises(PolicyError, match="There is no policy"):
        begin(duels, versions=("v0001", "v0099"))
    with pytest.raises(ConfigError, match="can't play"):
        begin(duels, seat="llm:none")
    with pytest.raises(TaskDataError, match="No task"):
        compare_begin.start(duels, None, PERSON, "v0001", "v0002", True, browser())
    assert studio.store.search().count == 0


def test_versions_for_another_kind_of_tasks_are_refused(
    studio: Studio, duels: Duels, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio.versions(v0001=["How much?"], v0002=["How many?"])
    monkeypatch.setattr(
        studio, "policies", lambda: [PolicyVersion("v0002", EMBEDDED_WEIGHTS[TaskKind.FRONTEND])]
    )
    with pytest.raises(ConfigError, match="'v0002' was not trained to make functions"):
        begin(duels)
    assert studio.store.search().count == 0


def test_sessions_that_do_not_fit_are_refused(studio: Studio, duels: Duels) -> None:
    one, other = sides(studio, played(studio, duels))
    studio.store.add_tasks([task_row("task-2")])
    running = studio.store.start_episode("task-1", "v0001", PERSON, 1)
    far = studio.store.start_episode("task-2", "v0001", PERSON, 1)
    studio.store.finish(far.id, StopReason.STOPPED)
    for ids, why in (
        ((one.id, running.id), "still in progress"),
        ((one.id, far.id), "different tasks"),
        ((one.id, one.id), "with itself"),
        ((one.id, "nosuch"), "no episode"),
        ((one.id, None), "Choose two sessions"),
    ):
        with pytest.raises((ConfigError, StoreError), match=why):
            compare_begin.start_sessions(duels, ids[0], ids[1], True, browser())
    assert other.stop_reason is StopReason.ANSWERED


def test_the_next_comparison_has_the_same_versions_and_another_seed(
    studio: Studio, duels: Duels
) -> None:
    view = played(studio, duels)
    vote(duels, view, "skip")
    studio.versions(v0001=[RIGHT], v0002=[WRONG])
    for renew in (compare_begin.repeat, compare_begin.following):
        page = renew(duels, view, browser())
        assert page.view.comparison_id != view.comparison_id
        assert by_name(studio, page.view).keys() == {"v0001", "v0002"}
        assert sides(studio, page.view)[0].seed != sides(studio, view)[0].seed


def test_an_empty_message_is_not_sent(studio: Studio, duels: Duels) -> None:
    studio.versions(v0001=["How much?"], v0002=["How many?"])
    view = begin(duels)
    run(duels, view)
    assert compare_play.send(duels, view, "  \n", browser()) == Shown()
    assert [e.turns[0].reply for e in sides(studio, view)] == [None, None]


def test_a_browser_without_a_cookie_has_the_name_of_its_page() -> None:
    assert voter_of(browser("a")) == "browser " + "a" * 32
    for cookies in ({}, {"studio-voter": "judge:x"}, {"studio-voter": "<b>" * 9}):
        request = gr.Request(session_hash="h", cookies=cookies)
        assert voter_of(request) == "session h"

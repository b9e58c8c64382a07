"""Records → HTML: turns, results, the log, batches, links."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import parse_qsl

import pytest

from sweet.store import Batch, BatchState, EpisodePage
from sweet.types import (
    Action,
    Episode,
    EpisodeFilter,
    EpisodeSummary,
    Evaluation,
    Feedback,
    HiddenInfo,
    Reward,
    Speaker,
    StopReason,
    Task,
    TaskKind,
    TestResult,
    Turn,
    Usage,
    Verdict,
)
from ui import tables
from ui.conversation import reference_card, speaking, task_card, transcript
from ui.replay import replay
from ui.results import evaluation, result
from ui.session import PAGE_ROWS, LogView, log_view_of

BAD = "<img src=x onerror=window.hit=1>"
TASK = Task("t-1", TaskKind.BACKEND, f"Add {BAD}", "test", "mini-backend")
TURNS = (
    Turn(
        0, Action(f"How much? {BAD}", f"How much? {BAD}", False, None, Usage(9, 1234), 1500.0), BAD
    ),
    Turn(1, Action("raw", "Here.", True, "def f(x):\n    return x + 5")),
)
EPISODE = Episode("e1", "t-1", "embedded", "person", 7, turns=TURNS)
SUMMARY = EpisodeSummary(
    "e1", "t-1", "mini-backend/test", BAD, BAD, BAD, 2, None, None, None, BAD, None,
    "2026-01-02T03:04:05Z", (BAD,),
)  # fmt: skip


def evaluation_of(*verdicts: Verdict) -> Evaluation:
    rows = tuple(TestResult(f"f({BAD})", "1", BAD, v, 1.0, BAD) for v in verdicts)
    return Evaluation(Reward(0.0, {"tests_passed": 0.5}, "backend"), Verdict.WRONG, rows, "full")


def test_nothing_that_was_said_becomes_markup() -> None:
    said = {0: Feedback("e1", 0, 1.0, (BAD,), BAD)}
    ended = replace(
        EPISODE, stop_reason=StopReason.FAILED, error=BAD, evaluation=evaluation_of(Verdict.CRASH)
    )
    shown = [
        task_card(TASK),
        transcript(EPISODE, said, tools=True),
        speaking(EPISODE, Speaker.AGENT, BAD),
        reference_card(HiddenInfo(BAD, (BAD,)), [BAD]),
        result(ended, Feedback("e1", None, 1.0, (), BAD), rate=True),
        result(ended, Feedback("e1", None, 1.0, (), BAD)),
        replay(EPISODE, TASK, {0: said[0]}, address=f"episode={BAD}", line=[BAD], forks=[BAD]),
        tables.log(EpisodePage(1, (SUMMARY,)), LogView(EpisodeFilter(text=BAD))),
        tables.batch_episodes([SUMMARY], 1),
        tables.batch_list([batch(settings={"tasks": BAD, "policy_id": BAD}, error=BAD)]),
        tables.batch(batch(settings={"tasks": BAD, "policy_id": BAD}, error=BAD), NOW),
    ]
    assert [text for text in shown if "<img" in text] == []


def test_a_turn_shows_tokens_and_time_and_na_where_unknown() -> None:
    shown = transcript(EPISODE)
    assert "1,234 tokens · 1.5 s" in shown
    assert "tokens n/a · n/a" in shown


def test_tools_are_there_only_where_something_can_be_done() -> None:
    assert 'data-action="retry"' in transcript(EPISODE, tools=True)
    assert "data-action" not in transcript(EPISODE).replace('data-action="copy"', "")


def test_only_a_person_can_edit_the_reply() -> None:
    simulated = replace(EPISODE, collaborator="scripted")
    assert 'data-who="collaborator"' in transcript(EPISODE, tools=True)
    assert 'data-who="collaborator"' not in transcript(simulated, tools=True)


def test_the_answer_is_highlighted_code() -> None:
    assert '<span class="k">def</span>' in transcript(EPISODE)


def test_a_time_out_has_its_own_colour_and_word() -> None:
    shown = evaluation(evaluation_of(Verdict.PASS, Verdict.WRONG, Verdict.TIMEOUT))
    assert 'class="pill timeout">◷ time-out' in shown
    assert 'class="pill pass">✓ pass' in shown
    assert 'class="pill wrong">✗ wrong' in shown


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_a_word(verdict: Verdict) -> None:
    assert 'class="pill' in evaluation(evaluation_of(verdict))


def test_a_failed_scoring_is_no_fault_of_the_answer() -> None:
    shown = evaluation(Evaluation(None, Verdict.INFRA, error="The sandbox died."))
    assert "Scoring failed" in shown
    assert "no fault of the answer" in shown


def test_an_episode_without_a_reward_says_na() -> None:
    assert "reward n/a" in result(replace(EPISODE, stop_reason=StopReason.STOPPED))
    assert result(EPISODE) == ""


def test_a_replay_opens_at_a_turn_that_is_there() -> None:
    assert 'data-turn="2"' in replay(EPISODE, TASK, {}, turn=99)


def test_an_empty_log_says_what_to_do() -> None:
    assert "Play an episode" in tables.log(EpisodePage(0, ()), LogView())
    searched = LogView(EpisodeFilter(text="nothing"))
    assert "clear the search" in tables.log(EpisodePage(0, ()), searched)


def test_the_log_says_its_count_and_has_pages() -> None:
    page = EpisodePage(PAGE_ROWS + 1, (SUMMARY,) * PAGE_ROWS)
    shown = tables.log(page, LogView())
    assert f"<strong>{PAGE_ROWS + 1}</strong> episodes" in shown
    assert "Page 1 of 2" in shown


def test_a_sorted_column_says_so() -> None:
    shown = tables.log(EpisodePage(1, (SUMMARY,)), LogView(sort="turns asc"))
    assert 'aria-sort="ascending"' in shown
    assert 'data-sort="turns desc"' in shown


def test_a_link_brings_the_same_view_back() -> None:
    wanted = EpisodeFilter(text='"two words" & more', outcome="fail", since="2026-01-01")
    view = LogView(wanted, "turns asc", 3, "e1", 4)
    assert log_view_of(dict(parse_qsl(view.query))) == view


@pytest.mark.parametrize("bad", ["-1", "x", "", "9" * 30, "1e3", "²", "<b>"])
def test_a_wrong_link_gives_the_first_page(bad: str) -> None:
    view = log_view_of({"page": bad, "turn": bad, "sort": bad, "outcome": bad or "x"})
    assert view == LogView()


NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def batch(**changes: object) -> Batch:
    plain = Batch(
        "b1", "rollout", {"tasks": "mini-backend/test", "policy_id": "embedded"}, 40,
        BatchState.RUNNING, 12, 10, 3, 2, "2026-01-01T00:00:00+00:00", None, None, 1,
    )  # fmt: skip
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_a_batch_shows_count_elapsed_and_remaining() -> None:
    shown = tables.batch(batch(), NOW)
    assert "10/40" in shown
    assert "<dd>1 min 00 s</dd>" in shown
    assert "<dd>3 min 00 s</dd>" in shown
    assert "<dd>3 of 8</dd>" in shown


def test_a_batch_that_has_finished_nothing_does_not_guess() -> None:
    shown = tables.batch(batch(finished=0, errors=0, succeeded=0), NOW)
    assert shown.count("<dd>n/a</dd>") == 3


def test_a_batch_of_web_pages_has_a_mean_and_the_pages_as_they_came_out() -> None:
    shown = tables.batch(batch(mean_reward=0.831), NOW, of_pages=True)
    assert "<dt>Mean reward</dt><dd>0.83</dd>" in shown
    assert "All as wanted" in shown and "Succeeded" not in shown
    page = "a" * 64
    drawn = tables.batch_episodes([SUMMARY], 1, {SUMMARY.id: page})
    assert f"{page}-1280.png" in drawn and "Tests passed" not in drawn
    assert "n/a" in tables.batch_episodes([SUMMARY], 1, {SUMMARY.id: ""})

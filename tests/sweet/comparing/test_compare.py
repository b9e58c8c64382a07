"""Two policies over a task set, with the real log, script and sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sweet.comparing.compare import ComparePlan, judge_comparison, judge_of, judge_pairs, play_both
from sweet.comparing.leaderboard import leaderboard
from sweet.errors import ConfigError, PolicyError, TaskDataError
from sweet.policy import EnginePolicy
from sweet.services import Services
from sweet.settings import Settings
from sweet.store import BatchState, Choice, Voter
from sweet.types import ANSWER_MARK, EpisodeFilter, Sampling
from tests.fakes import FakeEngine
from tests.rows import RIGHT, ROWS


def answer_right(messages, sampling) -> str:
    return f"{ANSWER_MARK}\n{RIGHT[messages[0].content]}"


def answer_wrong(messages, sampling) -> str:
    code = RIGHT[messages[0].content]
    return f"{ANSWER_MARK}\n{code.split(':', 1)[0]}: return None"


def only_first_right(messages, sampling) -> str:
    is_first = messages[0].content == ROWS[0].task.description
    return (answer_right if is_first else answer_wrong)(messages, sampling)


class Studio(Services):
    """Services whose policies say what they are told to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Settings(data=folder))
        self.says: dict[str, Callable] = {"right": answer_right, "wrong": answer_wrong}
        self.engines: dict[str, FakeEngine] = {}
        self.judging = FakeEngine(lambda *_: "BETTER: TIE")

    def policy(self, policy_id: str) -> EnginePolicy:
        if policy_id not in self.says:
            return super().policy(policy_id)
        engine = self.engines.setdefault(policy_id, FakeEngine(self.says[policy_id]))
        return EnginePolicy(policy_id, engine, Sampling(), "plain")

    def judge(self):
        return "small", self.judging, Sampling(temperature=0)


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    studio = Studio(tmp_path / "data")
    with studio:
        yield studio


def run(studio: Studio, plan: ComparePlan, **more):
    return asyncio.run(play_both(studio, plan, **more))


def calls(studio: Studio) -> int:
    return sum(len(engine.calls) for engine in studio.engines.values())


def test_two_policies_play_the_same_tasks_with_the_same_seeds(studio, file_set) -> None:
    studio.says["mixed"] = only_first_right
    done = run(studio, ComparePlan(file_set, "right", "mixed", 3))
    assert (done.met.wins, done.met.ties, done.met.losses, done.missing) == (2, 1, 0, 0)
    assert (done.difference.value, done.difference.n) == (pytest.approx(2 / 3), 3)
    assert done.tests_passed.value is not None
    assert done.tests_passed.value > 0
    assert [pair.description for pair in done.differ] == [r.task.description for r in ROWS[1:]]
    for pair in done.comparable:
        sides = [studio.store.episode(side.id) for side in (pair.first, pair.second)]
        assert {(e.seed, e.collaborator, e.task_id) for e in sides} == {
            (pair.seed, "scripted", pair.task_id)
        }
    assert {batch.kind for batch in studio.store.batches()} == {"compare"}
    value = done.as_json()
    assert value["differ"][0]["first"]["reward"] == 1.0
    assert value["win_rate"]["n"] == 3


def test_turned_round_it_is_the_opposite_and_nothing_is_played_again(studio, file_set) -> None:
    one = run(studio, ComparePlan(file_set, "right", "wrong", 3))
    asked = calls(studio)
    other = run(studio, ComparePlan(file_set, "wrong", "right", 3))
    assert (one.met.wins, other.met.losses) == (3, 3)
    assert other.difference.value == -1.0
    assert (one.played, other.played, calls(studio)) == (6, 0, asked)


def test_more_tasks_or_another_seed_play_only_what_is_new(studio, file_set) -> None:
    run(studio, ComparePlan(file_set, "right", "wrong", 2))
    assert run(studio, ComparePlan(file_set, "right", "wrong", 3)).played == 2
    assert run(studio, ComparePlan(file_set, "right", "wrong", 2, seed=1)).played == 4


def test_one_that_was_stopped_goes_on_where_it_was(studio, file_set) -> None:
    stop = asyncio.Event()
    plan = ComparePlan(file_set, "right", "wrong", 3, concurrency=2)
    half = run(studio, plan, stop=stop, on_outcome=lambda *_: stop.set())
    assert half.missing > 0
    states = [(b.state, b.started == b.finished) for b in studio.store.batches()]
    assert {state for state, _ in states} <= {BatchState.DONE, BatchState.STOPPED}
    assert all(over for _, over in states)
    there = len(studio.store.scored())
    whole = run(studio, plan)
    assert (whole.met.n, whole.missing, whole.played) == (3, 0, 6 - there)


def test_an_episode_that_fails_is_counted_apart_and_tried_again(studio, file_set) -> None:
    def fails(messages, sampling):
        if messages[0].content == ROWS[2].task.description:
            return PolicyError("HTTP 503")
        return answer_right(messages, sampling)

    studio.says["frail"] = fails
    seen = []
    plan = ComparePlan(file_set, "frail", "right", 3)
    done = run(studio, plan, on_outcome=lambda policy, outcome: seen.append(policy))
    assert (done.met.n, done.met.ties, done.missing) == (2, 2, 1)
    assert sorted(seen) == ["frail"] * 3 + ["right"] * 3
    assert run(studio, plan).played == 1


def test_what_cannot_be_compared_is_told_before_anything_is_played(studio, file_set) -> None:
    for plan, error, told in (
        (ComparePlan(file_set, "right", "right", 3), ConfigError, "itself"),
        (ComparePlan(file_set, "right", "v0042", 3), PolicyError, "v0042"),
        (ComparePlan(file_set, "right", "wrong", 0), ConfigError, "at least 1"),
        (ComparePlan("nothing/here", "right", "wrong", 3), TaskDataError, "nothing/here"),
        (ComparePlan(file_set, "right", "wrong", 3, "llm:gpt"), ConfigError, "llm:gpt"),
    ):
        with pytest.raises(error, match=told):
            run(studio, plan)
    assert studio.store.search().count == 0
    assert studio.store.batches() == []


def test_the_judge_votes_on_each_pair_once(studio, file_set) -> None:
    done = run(studio, ComparePlan(file_set, "right", "wrong", 3))

    def prefer_right(messages, sampling):
        shown = messages[-1].content.rsplit("\nFIRST\n", 1)[-1]
        first, second = shown.split("\nSECOND\n")
        return "BETTER: FIRST" if len(first) > len(second) else "BETTER: SECOND"

    studio.judging = FakeEngine(prefer_right)
    assert asyncio.run(judge_pairs(studio, done.comparable, 2)) == 3
    asked = len(studio.judging.calls)
    assert asyncio.run(judge_pairs(studio, done.comparable, 2)) == 3
    assert len(studio.judging.calls) == asked == 6
    votes = list(studio.store.iter_votes())
    assert {(vote.voter, vote.by) for vote in votes} == {("judge:small", Voter.JUDGE)}
    assert {studio.store.episode(v.winner or "").policy_id for v in votes} == {"right"}
    board = leaderboard(studio.store)
    assert (board.people.votes, board.judge.votes) == (0, 3)


def test_a_judge_without_a_verdict_casts_no_vote(studio, file_set) -> None:
    done = run(studio, ComparePlan(file_set, "right", "wrong", 1))
    studio.judging = FakeEngine(lambda *_: "Hard to say.")
    assert asyncio.run(judge_pairs(studio, done.comparable, 2)) == 0
    assert list(studio.store.iter_votes()) == []


def test_the_judge_says_of_a_person_s_comparison_what_it_thinks(studio, file_set) -> None:
    run(studio, ComparePlan(file_set, "right", "wrong", 1))
    ids = [row.id for row in studio.store.search(EpisodeFilter()).rows]
    made = studio.store.start_comparison(*ids)
    studio.store.vote(made.id, Choice.TIE, "ann")
    found = asyncio.run(judge_comparison(studio, judge_of(studio), made.id))
    assert found.choice is Choice.TIE
    assert leaderboard(studio.store).agreed.value == 1.0


def test_without_a_judge_it_is_told_how_to_have_one(tmp_path: Path) -> None:
    with (
        Services(Settings(data=tmp_path)) as services,
        pytest.raises(ConfigError, match="SWEET_JUDGE__MODEL"),
    ):
        judge_of(services)

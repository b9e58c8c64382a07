import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store import Choice, EpisodeStore, Voter
from sweet.types import EpisodeFilter, StopReason
from tests.sweet.store.samples import TASK, finished, talked, task_row


def by(store, policy: str, value: float = 1.0, task_id: str = TASK.id):
    """A finished episode of a policy."""
    episode = store.start_episode(task_id, policy, "scripted", 7)
    return store.finish(episode.id, StopReason.ANSWERED, f"# {policy} {value}")


def compared(store, **more):
    return store.start_comparison(by(store, "v1").id, by(store, "v2").id, **more)


def test_a_comparison_keeps_the_side_that_was_drawn(store):
    one, other = by(store, "v1"), by(store, "v2")
    made = [store.start_comparison(one.id, other.id) for _ in range(64)]
    sides = Counter(comparison.left_policy for comparison in made)
    assert set(sides) == {"v1", "v2"}
    for comparison in made[:4]:
        assert store.comparison(comparison.id) == comparison
        assert {comparison.left, comparison.right} == {one.id, other.id}
    assert [c.id for c in store.comparisons_of(one.id)] == [c.id for c in made]


def test_the_same_request_gives_the_same_sides(store):
    one, other = by(store, "v1").id, by(store, "v2").id
    made = store.start_comparison(one, other, key="click")
    assert all(store.start_comparison(other, one, key="click") == made for _ in range(16))
    with pytest.raises(StoreError, match="other episodes already"):
        store.start_comparison(one, by(store, "v3").id, key="click")


def test_what_cannot_be_compared_is_told(store):
    store.add_tasks([task_row(2)])
    one, elsewhere = by(store, "v1").id, by(store, "v2", task_id="task-2").id
    with pytest.raises(StoreError, match="itself"):
        store.start_comparison(one, one)
    with pytest.raises(StoreError, match="different tasks"):
        store.start_comparison(one, elsewhere)
    with pytest.raises(StoreError, match="no episode 'none'"):
        store.start_comparison(one, "none")
    with pytest.raises(StoreError, match="no comparison 'none'"):
        store.comparison("none")


@pytest.mark.parametrize("choice", [c for c in Choice if c is not Choice.FAILED])
def test_a_vote_is_kept_with_all_that_belongs_to_it(store, path, choice):
    comparison = compared(store)
    vote = store.vote(comparison.id, choice, "ann", reason="it asked less 🤷", side_named=True)
    with EpisodeStore.open(path) as other:
        assert other.votes(comparison.id) == [vote]
    assert (vote.comparison, vote.choice, vote.voter) == (comparison, choice, "ann")
    assert (vote.by, vote.reason, vote.was_blind) == (Voter.PERSON, "it asked less 🤷", False)
    winners = {Choice.LEFT: comparison.left, Choice.RIGHT: comparison.right}
    assert vote.winner == winners.get(choice)


def test_a_vote_that_was_seen_is_not_blind(store):
    blind, open_ = compared(store), compared(store, is_blind=False)
    assert store.vote(blind.id, Choice.TIE, "ann").was_blind
    assert not store.vote(open_.id, Choice.TIE, "ann").was_blind


def test_a_click_sent_twice_is_one_vote(store):
    comparison = compared(store)
    first = store.vote(comparison.id, Choice.LEFT, "ann", key="k")
    assert store.vote(comparison.id, Choice.LEFT, "ann", key="k") == first
    assert store.vote(comparison.id, Choice.LEFT, "ann") == first
    with pytest.raises(StoreError, match=r"another choice.*not changed"):
        store.vote(comparison.id, Choice.RIGHT, "ann")
    with pytest.raises(StoreError, match="another comparison_id"):
        store.vote(compared(store).id, Choice.LEFT, "ann", key="k")
    assert store.votes(comparison.id) == [first]


def test_person_and_judge_vote_on_one_comparison(store):
    comparison = compared(store)
    store.vote(comparison.id, Choice.LEFT, "ann")
    store.vote(comparison.id, Choice.RIGHT, "judge:small", by=Voter.JUDGE)
    assert [(v.voter, v.by) for v in store.votes(comparison.id)] == [
        ("ann", Voter.PERSON),
        ("judge:small", Voter.JUDGE),
    ]


def test_a_failed_side_is_recorded_and_not_voted_on(store):
    failed = talked(store, "five")
    store.finish(failed.id, StopReason.FAILED, error="HTTP 503")
    comparison = store.start_comparison(failed.id, by(store, "v2").id)
    with pytest.raises(StoreError, match=r"failed.*not voted on"):
        store.vote(comparison.id, Choice.LEFT, "ann")
    assert store.vote(comparison.id, Choice.FAILED, "ann", reason="HTTP 503").winner is None
    with pytest.raises(StoreError, match="No side"):
        store.vote(compared(store).id, Choice.FAILED, "ann")


def test_a_failure_is_recorded_though_the_other_side_is_in_progress(store):
    failed, other = talked(store, "five"), talked(store, "six")
    store.finish(failed.id, StopReason.FAILED, error="HTTP 503")
    comparison = store.start_comparison(failed.id, other.id)
    with pytest.raises(StoreError, match=r"failed.*not voted on"):
        store.vote(comparison.id, Choice.TIE, "ann")
    assert store.vote(comparison.id, Choice.FAILED, "studio").choice is Choice.FAILED


def test_a_side_in_progress_is_skipped_or_waited_for(store):
    comparison = store.start_comparison(talked(store, "five").id, by(store, "v2").id)
    with pytest.raises(StoreError, match="not over"):
        store.vote(comparison.id, Choice.TIE, "ann")
    assert store.vote(comparison.id, Choice.SKIP, "ann").choice is Choice.SKIP


def test_wrong_votes_are_told_and_nothing_is_saved(store):
    comparison = compared(store)
    with pytest.raises(StoreError, match=r"'A'.*left, right, tie"):
        store.vote(comparison.id, "A", "ann")
    with pytest.raises(StoreError, match="needs a voter"):
        store.vote(comparison.id, Choice.TIE, " ")
    with pytest.raises(StoreError, match="no comparison"):
        store.vote("none", Choice.TIE, "ann")
    assert store.votes(comparison.id) == []


def test_votes_and_comparisons_are_never_changed(store, path):
    store.vote(compared(store).id, Choice.LEFT, "ann")
    with Database(sqlite3.connect(path)) as db:
        for sql in (
            "UPDATE votes SET choice = 'right'",
            "DELETE FROM votes",
            "UPDATE comparisons SET left_id = right_id",
            "DELETE FROM comparisons",
            "DELETE FROM preferences WHERE 1",
        ):
            if "preferences" in sql:
                db.execute("INSERT INTO preferences (id, content, created_at) VALUES (1, 2, 3)")
            with pytest.raises(sqlite3.IntegrityError, match="only appended"):
                db.execute(sql)


def test_a_filter_lets_votes_through_by_either_side(store):
    store.add_tasks([task_row(2, split="train")])
    first = store.vote(compared(store).id, Choice.LEFT, "ann")
    sides = [by(store, policy, task_id="task-2").id for policy in ("v2", "v3")]
    second = store.vote(store.start_comparison(*sides).id, Choice.TIE, "bob")
    assert list(store.iter_votes()) == [first, second]
    assert list(store.iter_votes(EpisodeFilter(policy_id="v2"))) == [first, second]
    assert list(store.iter_votes(EpisodeFilter(policy_id="v1"))) == [first]
    assert list(store.iter_votes(EpisodeFilter(task_set="mini-backend/train"))) == [second]
    assert second.comparison.task_set == "mini-backend/train"
    assert list(store.iter_votes(EpisodeFilter(policy_id="v9"))) == []


def test_votes_are_read_in_pages_without_loss(store, monkeypatch):
    monkeypatch.setattr("sweet.store.comparisons.PAGE", 3)
    comparison = compared(store)
    for number in range(7):
        store.vote(comparison.id, Choice.LEFT, f"voter-{number}")
    assert [vote.voter for vote in store.iter_votes()] == [f"voter-{n}" for n in range(7)]


def test_twenty_vote_at_once_and_nothing_is_lost_or_crossed(store):
    comparisons = [compared(store) for _ in range(5)]
    wanted = {
        (c.id, f"voter-{v}"): list(Choice)[(v + at) % 4]
        for at, c in enumerate(comparisons)
        for v in range(20)
    }

    def cast(item) -> None:
        (comparison_id, voter), choice = item
        for _ in range(2):  # a click sent twice
            store.vote(comparison_id, choice, voter, key=f"{comparison_id}/{voter}")

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(cast, wanted.items()))
    found = {(v.comparison.id, v.voter): v.choice for v in store.iter_votes()}
    assert found == wanted
    assert sum(1 for _ in store.iter_votes()) == 100


def test_a_vote_of_another_log_is_added_once(store, tmp_path):
    comparison = compared(store)
    vote = store.vote(comparison.id, Choice.RIGHT, "ann", reason="shorter")
    with EpisodeStore.open(tmp_path / "other.db") as other:
        with pytest.raises(StoreError, match="no episode"):
            other.add_vote(vote)
        for whole in store.iter_episodes():
            other.add_episode(whole)
        assert [other.add_vote(vote), other.add_vote(vote)] == [True, False]
        assert list(other.iter_votes()) == [vote]
    assert not store.add_vote(vote)


def test_votes_count_where_the_reward_says_nothing(store):
    worse, better = finished(store, "five", value=0.0), finished(store, "six")
    comparison = store.start_comparison(worse.id, better.id)
    vote = store.vote(comparison.id, Choice.LEFT, "ann")
    assert vote.winner == comparison.left

from concurrent.futures import ThreadPoolExecutor

import pytest

from sweet.errors import StoreError
from sweet.store import ForkKind
from sweet.types import StopReason
from tests.sweet.store.samples import answers, asks, finished, started, talked


def test_rewriting_a_reply_makes_a_fork_and_leaves_the_old_episode_as_it_was(store):
    old = talked(store, "five", "six", "seven")
    new = store.fork(old.id, 1, reply="sixty")
    assert [turn.reply for turn in new.turns] == ["five", "sixty"]
    assert [turn.action for turn in new.turns] == [turn.action for turn in old.turns[:2]]
    assert (new.parent_id, new.forked_at, new.stop_reason) == (old.id, 1, None)
    kept = store.episode(old.id)
    assert kept.turns == old.turns
    assert kept.stop_reason is StopReason.REPLACED


def test_a_retry_gives_the_turn_back_to_the_agent_with_another_seed(store):
    old = talked(store, "five", "six")
    new = store.fork(old.id, 1)
    assert [turn.reply for turn in new.turns] == ["five"]
    other = store.fork(old.id, 1)
    assert len({old.seed, new.seed, other.seed}) == 3
    assert store.fork(old.id, 1, seed=99).seed == 99


def test_rewriting_the_agent_s_message_awaits_its_reply(store):
    old = talked(store, "five", "six")
    new = store.fork(old.id, 1, action=asks("And the discount?"))
    assert new.turns[1].action == asks("And the discount?")
    assert new.turns[1].reply is None
    assert store.append_reply(new.id, 1, "none").reply == "none"


def test_a_failed_first_turn_can_be_retried_in_a_fork(store):
    episode = started(store)
    store.finish(episode.id, StopReason.FAILED, error="no model")
    new = store.fork(episode.id, 0)
    assert (new.turns, new.stop_reason, new.error) == ((), None, None)


def test_a_finished_episode_keeps_its_evaluation_when_it_is_replaced(store):
    old = finished(store, "five")
    new = store.fork(old.id, 0, reply="six")
    kept = store.episode(old.id)
    assert (kept.reward, kept.artifact) == (old.reward, old.artifact)
    assert (new.reward, new.artifact, new.evaluation) == (None, None, None)


def test_the_same_request_twice_makes_one_fork(store):
    old = talked(store, "five")
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: store.fork(old.id, 0, reply="6", key="click"), range(8)))
    assert len({episode.id for episode in made}) == 1
    assert store.children(old.id) == [made[0].id]
    with pytest.raises(StoreError, match="key of its own"):
        store.fork(made[0].id, 0, reply="7", key="click")


def test_lineage_leads_from_the_first_episode_to_this_one(store):
    first = talked(store, "five")
    second = store.fork(first.id, 0, reply="six")
    third = store.fork(second.id, 0, reply="seven")
    aside = store.fork(first.id, 0)
    assert store.lineage(third.id) == [first.id, second.id, third.id]
    assert store.lineage(first.id) == [first.id]
    assert store.children(first.id) == [second.id, aside.id]


def test_forks_can_be_read_as_rejected_and_chosen(store):
    old = talked(store, "five", "six")
    replied = store.fork(old.id, 1, reply="sixty")
    edited = store.fork(replied.id, 0, action=asks("Better?"))
    retried = store.fork(edited.id, 0)
    one, two, three = store.iter_forks()
    assert (one.kind, one.rejected, one.chosen) == (ForkKind.REPLY, "six", "sixty")
    assert (one.parent_id, one.child_id, one.turn_index) == (old.id, replied.id, 1)
    assert (two.kind, two.rejected, two.chosen) == (
        ForkKind.ACTION,
        asks("Question 0?"),
        asks("Better?"),
    )
    assert (three.kind, three.chosen) == (ForkKind.RETRY, None)
    store.append_action(retried.id, 0, answers())
    assert [*store.iter_forks()][2].chosen == answers()


@pytest.mark.parametrize(
    ("at_turn", "change", "message"),
    [
        (-1, {}, "turns 0 to 9"),
        (10, {}, "turns 0 to 9"),
        (2, {}, "no turn 1"),
        (1, {"reply": "x"}, "no turn 1"),
        (0, {"reply": "x", "action": asks()}, "not both"),
    ],
)
def test_a_fork_that_makes_no_sense_is_refused_and_nothing_is_replaced(
    store, at_turn, change, message
):
    episode = talked(store, "five")
    with pytest.raises(StoreError, match=message):
        store.fork(episode.id, at_turn, **change)
    assert store.episode(episode.id) == episode


def test_an_unanswered_message_has_no_reply_to_rewrite(store):
    episode = started(store)
    store.append_action(episode.id, 0, asks())
    with pytest.raises(StoreError, match="no reply to rewrite"):
        store.fork(episode.id, 0, reply="x")
    with pytest.raises(StoreError, match=r"turn 0 has\s+no reply"):
        store.fork(episode.id, 1)


def test_a_replaced_episode_takes_no_more_turns(store):
    episode = talked(store, "five")
    store.fork(episode.id, 0)
    with pytest.raises(StoreError, match=r"replaced.*fork"):
        store.append_action(episode.id, 1, asks())

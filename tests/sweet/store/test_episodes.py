import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sweet.errors import StoreError
from sweet.store import EpisodeStore
from sweet.types import Action, Evaluation, Reward, StopReason, Usage, Verdict
from tests.sweet.store.samples import (
    TASK,
    answers,
    asks,
    evaluation,
    finished,
    started,
    talked,
)


def test_an_episode_comes_back_as_it_went_in_also_after_reopening(path, store):
    episode = finished(store, "five", "no idea 🤷")
    first, second, last = episode.turns
    assert (first.reply, second.reply, last.reply) == ("five", "no idea 🤷", None)
    assert first.action == Action("Question 0?", "Question 0?", False, None, Usage(10, 5), 1.5)
    assert last.action == answers()
    assert episode.artifact == answers().artifact
    assert episode.evaluation == evaluation(1.0, 1.0)
    assert episode.stop_reason is StopReason.ANSWERED
    store.close()
    with EpisodeStore.open(path) as again:
        assert again.episode(episode.id) == episode


def test_an_episode_in_progress_has_no_reward_and_no_end(store):
    episode = talked(store, "five")
    assert (episode.reward, episode.stop_reason, episode.evaluation) == (None, None, None)


def test_the_same_turn_twice_is_acknowledged_and_written_once(store):
    episode = started(store)
    for _ in range(3):
        turn = store.append_action(episode.id, 0, asks())
        assert turn.action == asks()
    for _ in range(3):
        assert store.append_reply(episode.id, 0, "five").reply == "five"
    assert len(store.episode(episode.id).turns) == 1


def test_another_text_for_a_turn_is_refused_and_the_first_stays(store):
    episode = talked(store, "five")
    with pytest.raises(StoreError, match=r"another message of the agent.*fork"):
        store.append_action(episode.id, 0, asks("Something else?"))
    with pytest.raises(StoreError, match=r"another reply.*fork"):
        store.append_reply(episode.id, 0, "six")
    assert store.episode(episode.id) == episode


def test_a_request_sent_twice_does_not_answer_the_next_turn_too(store):
    episode = started(store)
    store.append_action(episode.id, 0, asks())
    store.append_reply(episode.id, 0, "yes", key="click-1")
    store.append_action(episode.id, 1, asks("Really?"))
    assert store.append_reply(episode.id, 1, "yes", key="click-1").index == 0
    assert store.episode(episode.id).turns[1].reply is None


@pytest.mark.parametrize("index", [-1, 1, 5])
def test_a_turn_out_of_order_is_refused_with_the_one_that_comes_next(store, index):
    episode = started(store)
    with pytest.raises(StoreError, match="turn 0 does"):
        store.append_action(episode.id, index, asks())
    assert store.episode(episode.id).turns == ()


def test_the_agent_cannot_speak_twice_nor_after_its_answer_nor_beyond_the_last_turn(store):
    waiting = started(store)
    store.append_action(waiting.id, 0, asks())
    with pytest.raises(StoreError, match="not replied to yet"):
        store.append_action(waiting.id, 1, asks())
    done = started(store)
    store.append_action(done.id, 0, answers())
    with pytest.raises(StoreError, match="final answer"):
        store.append_action(done.id, 1, asks())
    with pytest.raises(StoreError, match=r"final answer.*no\s+reply"):
        store.append_reply(done.id, 0, "thanks")
    short = talked(store, "five", max_turns=1)
    with pytest.raises(StoreError, match="had its 1 turns"):
        store.append_action(short.id, 1, asks())


def test_nothing_is_added_to_an_episode_that_is_over(store):
    episode = finished(store)
    with pytest.raises(StoreError, match=r"over \(answered\)"):
        store.append_action(episode.id, 1, asks())
    with pytest.raises(StoreError, match="over already"):
        store.finish(episode.id, StopReason.STOPPED)
    again = store.finish(episode.id, StopReason.ANSWERED, episode.artifact)
    assert again == episode


def test_a_failed_episode_is_reopened_and_its_failure_stays_on_record(store):
    episode = talked(store, "five")
    failed = store.finish(episode.id, StopReason.FAILED, error="HTTP 503")
    assert (failed.stop_reason, failed.error) == (StopReason.FAILED, "HTTP 503")
    assert store.reopen(episode.id) == episode
    store.append_action(episode.id, 1, answers())
    (failure,) = store.failures(episode.id)
    assert (failure.turns, failure.error) == (1, "HTTP 503")
    assert store.reopen(episode.id).stop_reason is None
    assert store.finish(episode.id, StopReason.ANSWERED, "x").error is None


def test_an_answered_episode_is_not_reopened(store):
    with pytest.raises(StoreError, match=r"answered.*fork"):
        store.reopen(finished(store).id)


def test_the_newest_evaluation_counts_and_a_failed_scoring_has_no_reward(store):
    episode = finished(store, value=0.0)
    broken = Evaluation(None, Verdict.INFRA, error="the sandbox died")
    assert store.add_evaluation(episode.id, broken).reward is None
    assert store.add_evaluation(episode.id, evaluation()).reward == evaluation().reward


@pytest.mark.parametrize("value", [1.01, -0.1, float("nan"), float("inf")])
def test_a_reward_outside_0_to_1_is_refused(store, value):
    episode = talked(store)
    with pytest.raises(StoreError, match="from 0 to 1"):
        store.add_evaluation(episode.id, Evaluation(Reward(value, {}, "x"), Verdict.PASS))
    assert store.episode(episode.id).evaluation is None


def test_advantages_are_read_with_the_turns_and_the_newest_counts(store):
    episode = talked(store, "a", "b")
    store.add_advantages(episode.id, "critic-1", {0: 0.5, 1: -0.25})
    turns = store.add_advantages(episode.id, "critic-2", {0: 0.75}).turns
    assert [turn.advantage for turn in turns] == [0.75, -0.25]
    with pytest.raises(StoreError, match="no turn 7"):
        store.add_advantages(episode.id, "critic-2", {7: 0.1})


def test_starting_with_the_same_id_again_gives_the_episode_that_is_there(store):
    episode = started(store, episode_id="mine")
    assert started(store, episode_id="mine") == episode
    with pytest.raises(StoreError, match="another collaborator"):
        started(store, "scripted", episode_id="mine")
    with pytest.raises(StoreError, match="empty"):
        started(store, episode_id=" ")


def test_unknown_ids_are_named(store):
    verbs = {
        "episode 'nope'": lambda: store.episode("nope"),
        "episode ''": lambda: store.append_action("", 0, asks()),
        "task 'nope'": lambda: store.start_episode("nope", "embedded", "person", 1),
        "batch 'nope'": lambda: started(store, batch_id="nope"),
        "policy 'nope'": lambda: store.policy("nope"),
        "no turn 3": lambda: store.append_reply(talked(store, "a").id, 3, "x"),
    }
    for message, verb in verbs.items():
        with pytest.raises(StoreError, match=message):
            verb()


def test_text_is_kept_verbatim_whatever_is_in_it(store):
    texts = [
        "",
        " \n\t",
        "NUL \0 inside",
        "'; DROP TABLE turns; --",
        "🤖 עברית 漢字",
        "x" * 300_000,
    ]
    episode = talked(store, *texts)
    assert [turn.reply for turn in episode.turns] == texts
    broken = talked(store, "half a pair: \ud83d")
    assert broken.turns[0].reply == "half a pair: �"


def test_a_number_beyond_64_bits_is_refused(store):
    with pytest.raises(StoreError, match="64 bits"):
        store.start_episode(TASK.id, "embedded", "person", 2**63)


def test_what_was_said_cannot_be_changed_in_the_file_by_accident(store):
    episode = finished(store, "five")
    statements = [
        "UPDATE turns SET raw = 'x' WHERE turn_index = 1",
        "UPDATE turns SET reply = 'x' WHERE turn_index = 0",
        "DELETE FROM turns",
        "DELETE FROM episodes",
        "UPDATE evaluations SET reward = 0",
    ]
    for statement in statements:
        with pytest.raises(StoreError, match="does not take this"):
            store._write(lambda db, sql=statement: db.execute(sql), durable=False)
    assert store.episode(episode.id) == episode


def test_many_threads_write_and_read_at_once_and_nothing_is_lost_or_crossed(store):
    def play(number: int) -> str:
        episode = started(store, "scripted")
        for index in range(8):
            store.append_action(episode.id, index, asks(f"{number} asks {index}"))
            store.append_reply(episode.id, index, f"{number} says {index}")
            store.search()
        return episode.id

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(play, range(16)))
    for number, episode_id in enumerate(ids):
        turns = store.episode(episode_id).turns
        assert [turn.reply for turn in turns] == [f"{number} says {i}" for i in range(8)]
        assert [turn.action.raw for turn in turns] == [f"{number} asks {i}" for i in range(8)]


def test_two_people_replying_at_once_one_is_told(store):
    episode = started(store)
    store.append_action(episode.id, 0, asks())
    barrier, told = threading.Barrier(2), []

    def reply(text: str) -> None:
        barrier.wait()
        try:
            store.append_reply(episode.id, 0, text)
        except StoreError as e:
            told.append((text, str(e)))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(reply, ["yes", "no"]))
    ((refused, message),) = told
    assert {refused, store.episode(episode.id).turns[0].reply} == {"yes", "no"}
    assert "another reply" in message


def test_a_closed_store_says_so(path):
    store = EpisodeStore.open(path)
    store.close()
    store.close()
    for verb in (store.search, lambda: store.start_batch("x", {}, 1)):
        with pytest.raises(StoreError, match="closed"):
            verb()


@pytest.mark.parametrize("name", ["a b", "50%?mode=memory#x", "ключ 🔑", "~x"])
def test_any_folder_name_will_do(tmp_path, name):
    path = tmp_path / name / "sweet.db"
    with EpisodeStore.open(path) as store:
        batch_id = store.start_batch("rollout", {}, 1)
    assert path.exists()
    with EpisodeStore.open(path) as again:
        assert again.batch(batch_id).total == 1

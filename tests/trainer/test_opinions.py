"""What people preferred, as they leave it in a real log."""

from __future__ import annotations

import pytest

from sweet.store import EpisodeStore
from sweet.types import (
    ANSWER_MARK,
    Action,
    Episode,
    EpisodeFilter,
    Evaluation,
    Feedback,
    HiddenInfo,
    PairLevel,
    PairSource,
    Reward,
    StopReason,
    Task,
    TaskKind,
    TaskRow,
    Verdict,
)
from trainer.opinions import (
    grade,
    graded,
    is_accepted,
    turn_pair,
    turn_pairs,
    with_accepted,
)
from trainer.pairs import episode_pairs, source_of

OWN = TaskRow(Task("own-1", TaskKind.BACKEND, "Make fee(x).", "own", "own"), None)
MINI = TaskRow(
    Task("mini-1", TaskKind.BACKEND, "Make fee(x).", "train", "mini"), HiddenInfo("def fee(x): 1")
)


@pytest.fixture
def store(tmp_path):
    with EpisodeStore.open(tmp_path / "sweet.db") as opened:
        opened.add_tasks([OWN, MINI])
        yield opened


def asks(text: str) -> Action:
    return Action(text, text, False)


def answer(code: str = "def fee(x): return 5") -> Action:
    return Action(f"{ANSWER_MARK}\n{code}", "", True, code)


def talked(store: EpisodeStore, *said: str, row: TaskRow = OWN, seed: int = 0) -> Episode:
    """An episode in progress: what the agent asked, each with the reply "five"."""
    episode = store.start_episode(row.task.id, "embedded", "person", seed)
    return go_on(store, episode, *said)


def go_on(store: EpisodeStore, episode: Episode, *said: str) -> Episode:
    for index, text in enumerate(said, start=len(episode.turns)):
        store.append_action(episode.id, index, asks(text))
        store.append_reply(episode.id, index, "five")
    return store.episode(episode.id)


def end(store: EpisodeStore, episode: Episode, code: str = "def fee(x): return 5") -> Episode:
    index = len(store.episode(episode.id).turns)
    store.append_action(episode.id, index, answer(code))
    return store.finish(episode.id, StopReason.ANSWERED, code)


def rate(store: EpisodeStore, episode: Episode, rating: float | None, turn: int | None = None):
    store.add_feedback(Feedback(episode.id, turn, rating))


def logged(store: EpisodeStore, *episodes: Episode):
    """All of the log, or the episodes given, as collecting finds them."""
    wanted = [e.id for e in episodes]
    every = [*store.iter_episodes(EpisodeFilter())]
    return [one for one in every if not wanted or one.episode.id in wanted]


def preferred(store: EpisodeStore) -> list[tuple[str, str]]:
    """(chosen, rejected) messages of all pairs of turns."""
    pairs = turn_pairs(logged(store), store.iter_forks())
    return [(p.chosen[0].action.raw, p.rejected[0].action.raw) for p in pairs]


@pytest.mark.parametrize(("rating", "value"), [(1, 1.0), (0, 0.5), (-1, 0.0), (None, None)])
def test_the_grade_of_a_finished_episode_is_its_outcome(store, rating, value):
    episode = end(store, talked(store, "How much?"))
    rate(store, episode, rating)
    (one,) = logged(store)
    assert grade(one) == value
    assert is_accepted(one) is (rating == 1)


def test_the_newest_grade_counts_and_a_comment_alone_changes_nothing(store):
    episode = end(store, talked(store))
    for feedback in (
        Feedback(episode.id, None, 1.0),
        Feedback(episode.id, None, -1.0),
        Feedback(episode.id, None, None, comment="why"),
        Feedback(episode.id, 0, 1.0),  # a like of a turn is no grade of the result
    ):
        store.add_feedback(feedback)
    (one,) = logged(store)
    assert grade(one) == 0.0 and not is_accepted(one)


def test_what_tests_scored_and_what_did_not_come_to_its_end_has_no_grade(store):
    tested = end(store, talked(store, row=MINI))
    store.add_evaluation(tested.id, Evaluation(Reward(0.0, {}, "backend-fixed"), Verdict.WRONG))
    stopped = store.finish(talked(store, "How much?").id, StopReason.STOPPED)
    open_ = talked(store, "How much?")
    for episode in (tested, stopped, open_):
        rate(store, episode, 1.0)
    assert [grade(one) for one in logged(store)] == [None, None, None]


def test_a_grade_stands_in_where_scoring_itself_failed(store):
    episode = end(store, talked(store, row=MINI))
    failed = Evaluation(None, Verdict.INFRA, error="no sandbox")
    store.add_evaluation(episode.id, failed)
    rate(store, episode, 1.0)
    (one,) = logged(store)
    assert grade(one) == 1.0
    assert not is_accepted(one), "the task has a reference of its own"


def test_an_accepted_artifact_is_hidden_information_and_a_left_one_is_not(store):
    first = end(store, talked(store), "def fee(x): return 4")
    rate(store, first, 1.0)
    (one,) = logged(store)
    assert is_accepted(one)
    assert with_accepted(OWN, one.episode).hidden == HiddenInfo("def fee(x): return 4")
    store.fork(first.id, 0)
    assert not is_accepted(logged(store, first)[0]), "the person went back on it"
    assert grade(logged(store, first)[0]) == 1.0


def test_an_empty_answer_is_never_accepted(store):
    episode = end(store, talked(store), "  ")
    rate(store, episode, 1.0)
    assert not is_accepted(logged(store)[0])


def test_grades_make_pairs_of_their_own_and_never_with_what_tests_gave(store):
    good, partly, bad, passed, failed = (
        end(store, talked(store, row=MINI, seed=seed)) for seed in range(5)
    )
    for episode, rating in ((good, 1.0), (partly, 0.0), (bad, -1.0), (failed, 1.0)):
        rate(store, episode, rating)
    for episode, reward in ((passed, 1.0), (failed, 0.0)):
        scored = Evaluation(Reward(reward, {}, "backend-fixed"), Verdict.PASS)
        store.add_evaluation(episode.id, scored)
    judged = [
        one.episode if (value := grade(one)) is None else graded(one.episode, value)
        for one in logged(store)
    ]
    pairs = episode_pairs(judged, {MINI.task.id: MINI})
    ids = {(pair.source, *pair.episode_ids) for pair in pairs}
    human = [(good, partly), (good, bad), (partly, bad)]
    assert ids == {
        (PairSource.OUTCOME, passed.id, failed.id),
        *((PairSource.HUMAN, one.id, other.id) for one, other in human),
    }
    assert {source_of(e) for e in judged} == {PairSource.OUTCOME, PairSource.HUMAN}
    assert store.episode(good.id).reward is None, "the log is as it was"


def test_a_retried_message_is_worse_than_the_one_the_person_went_on_with(store):
    old = talked(store, "Which?", "Hm?")
    new = go_on(store, store.fork(old.id, 1), "How much?")
    (pair,) = turn_pairs(logged(store), store.iter_forks())
    assert (pair.level, pair.source) == (PairLevel.TURN, PairSource.HUMAN)
    assert (pair.chosen[0].action.raw, pair.rejected[0].action.raw) == ("How much?", "Hm?")
    assert (pair.chosen[0].index, pair.episode_ids) == (1, (new.id, old.id))
    assert [e.agent for e in pair.observation.exchanges] == ["Which?"]
    assert pair.observation.turns_left == old.max_turns - 1
    again = turn_pair(OWN, store.episode(new.id), store.episode(old.id), 1)
    assert (again.observation, again.episode_ids) == (pair.observation, pair.episode_ids)


def test_an_edited_message_is_better_than_what_the_agent_had_said(store):
    old = talked(store, "Hm?")
    new = store.fork(old.id, 0, action=asks("How much?"))
    assert preferred(store) == [], "nobody went on yet"
    store.append_reply(new.id, 0, "five")
    assert preferred(store) == [("How much?", "Hm?")]


def test_a_rewritten_reply_a_failed_turn_and_an_awaited_one_say_nothing(store):
    store.fork(talked(store, "Which?").id, 0, reply="six")
    failed = store.start_episode(OWN.task.id, "embedded", "person", 1)
    store.finish(failed.id, StopReason.FAILED, error="no model")
    go_on(store, store.fork(failed.id, 0), "How much?")
    store.fork(talked(store, "What?").id, 0)
    assert preferred(store) == []


def test_of_several_retries_the_one_gone_on_with_beats_each_that_was_left(store):
    first = talked(store, "A?")
    second = go_on(store, store.fork(first.id, 0), "B?")
    go_on(store, store.fork(second.id, 0), "C?")
    assert preferred(store) == [("C?", "A?"), ("C?", "B?")]


def test_a_message_that_comes_back_is_what_became_of_it_last(store):
    first = talked(store, "A?")
    second = go_on(store, store.fork(first.id, 0), "B?")
    go_on(store, store.fork(second.id, 0), "A?")
    assert preferred(store) == [("A?", "B?")]
    same = talked(store, "Z?", seed=9)
    go_on(store, store.fork(same.id, 0), "Z?")
    assert preferred(store) == [("A?", "B?")]


def test_a_later_fork_of_an_earlier_turn_keeps_what_was_preferred(store):
    first = talked(store, "A?", "X?")
    second = go_on(store, store.fork(first.id, 1), "Y?")
    go_on(store, store.fork(second.id, 0), "B?")
    assert preferred(store) == [("Y?", "X?"), ("B?", "A?")]


@pytest.mark.parametrize(("rating", "pairs"), [(1.0, 1), (0.0, 1), (-1.0, 0), (None, 1)])
def test_a_retried_answer_is_better_unless_it_failed_too(store, rating, pairs):
    old = end(store, talked(store, "How much?"), "def fee(x): return 4")
    new = end(store, store.fork(old.id, 1))
    rate(store, new, rating)
    assert len(preferred(store)) == pairs


def test_different_people_s_forks_of_one_task_are_not_compared(store):
    for old, new, seed in (("A?", "B?", 0), ("C?", "D?", 1)):
        go_on(store, store.fork(talked(store, old, row=MINI, seed=seed).id, 0), new)
    assert preferred(store) == [("B?", "A?"), ("D?", "C?")]


def test_a_liked_message_is_better_than_a_disliked_one_after_the_same_observation(store):
    liked, disliked, elsewhere = (
        talked(store, text, "Next?", row=MINI, seed=i) for i, text in enumerate(("A?", "B?", "C?"))
    )
    for episode, rating, turn in ((liked, 1, 0), (disliked, -1, 0), (elsewhere, -1, 1)):
        rate(store, episode, rating, turn)
    assert preferred(store) == [("A?", "B?")]
    rate(store, disliked, 0.0, 0)  # taken back
    assert preferred(store) == []


def test_what_people_disagree_on_is_in_no_pair(store):
    one, two, other = (
        talked(store, text, row=MINI, seed=i) for i, text in enumerate(("A?", "A?", "B?"))
    )
    rate(store, one, 1, 0)
    rate(store, other, -1, 0)
    assert preferred(store) == [("A?", "B?")]
    rate(store, two, -1, 0)
    assert preferred(store) == []


def test_likes_count_more_than_a_retry_and_opposite_retries_cancel(store):
    old = talked(store, "A?")
    new = go_on(store, store.fork(old.id, 0), "B?")
    assert preferred(store) == [("B?", "A?")]
    other = talked(store, "B?", seed=7)
    go_on(store, store.fork(other.id, 0), "A?")
    assert preferred(store) == []
    rate(store, old, 1, 0)
    rate(store, new, -1, 0)
    assert preferred(store) == [("A?", "B?")]


def test_thoughts_are_no_part_of_what_is_compared(store):
    old = talked(store, "<think>a</think>Which?")
    go_on(store, store.fork(old.id, 0), "<think>b</think>Which?")
    silent = talked(store, "<think>nothing to say</think>", seed=4)
    go_on(store, store.fork(silent.id, 0), "How much?")
    assert preferred(store) == []


def test_both_sides_have_to_be_among_the_episodes_given(store):
    old = talked(store, "A?")
    new = go_on(store, store.fork(old.id, 0), "B?")
    for side in (old, new):
        assert turn_pairs(logged(store, side), store.iter_forks()) == []

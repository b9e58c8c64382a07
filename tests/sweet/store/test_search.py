import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweet.errors import StoreError
from sweet.store import clock
from sweet.types import EpisodeFilter as Filter
from sweet.types import Evaluation, Feedback, StopReason, Verdict
from tests.sweet.store.samples import asks, finished, started, talked, task_row


def found(store, **wanted) -> list[str]:
    page = store.search(Filter(**wanted), sort="created_at asc")
    assert page.count == len(page.rows)
    return [row.id for row in page.rows]


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("", True),
        ("   ", True),
        ("dollars", True),
        ("DOLLARS", True),
        ("doll", True),  # the beginning of a word
        ("naive", True),  # said as naïve
        ("question dollars", True),  # one said by the agent, one in the reply
        ("dollars shipping", True),  # one in the task
        ('"five dollars"', True),
        ('"dollars five"', False),
        ("dollars unicorn", False),
        ('"', True),
        ('five "', True),
        ("dollars AND", False),  # no operator: the word "and" is not there
        ("NEAR(five dollars)", False),
        ("raw: dollars", False),
        ("five*", True),
        ("fee(kg)", True),
        ("🤷", True),
        ("🦄", False),
        ("->", True),
        ("%", False),
        ("_", False),
        ("重量", True),
        ("量", True),
        ("'; DROP TABLE turns; --", False),
        ("\0", True),
        ("\ud800", False),
    ],
)
def test_search_takes_whatever_a_person_types(store, text, hit):
    episode = talked(store, "five dollars 🤷 naïve 每公斤重量 a -> b")
    assert found(store, text=text) == ([episode.id] if hit else [])


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(max_size=60))
def test_no_search_text_is_an_error(store, text):
    assert store.search(Filter(text=text)).count == 0
    assert store.tasks(text="unfindable " + text) == []


def test_a_very_long_search_text_is_no_error(store):
    talked(store, "five")
    assert found(store, text="x" * 100_000) == []
    assert found(store, text="🦄" * 100_000) == []
    assert found(store, text="five " * 5000) != []


def test_replies_are_found_as_soon_as_they_are_acknowledged(store):
    episode = talked(store)
    store.append_action(episode.id, 0, asks("Which zebra?"))
    assert found(store, text="zebra") == [episode.id]
    assert found(store, text="quagga") == []
    store.append_reply(episode.id, 0, "the quagga")
    assert found(store, text="zebra quagga") == [episode.id]


def test_outcomes_are_told_apart(store):
    success, fail = finished(store, value=1.0), finished(store, value=0.0)
    running = talked(store, "five")
    stopped = talked(store)
    store.finish(stopped.id, StopReason.STOPPED)
    failed = talked(store)
    store.finish(failed.id, StopReason.FAILED, error="HTTP 503")
    unscored = talked(store)
    store.finish(unscored.id, StopReason.ANSWERED, "x")
    store.add_evaluation(unscored.id, Evaluation(None, Verdict.INFRA, error="sandbox died"))
    assert found(store, outcome="success") == [success.id]
    assert found(store, outcome="fail") == [fail.id]
    assert found(store, outcome="in_progress") == [running.id]
    assert found(store, outcome="unscored") == [stopped.id]
    assert found(store, outcome="error") == [failed.id, unscored.id]


def test_feedback_filters_go_by_the_newest_rating(store):
    liked, disliked, changed, none = (talked(store, "a", "b") for _ in range(4))
    store.add_feedback(Feedback(liked.id, 1, 1.0))
    store.add_feedback(Feedback(disliked.id, None, -1.0))
    store.add_feedback(Feedback(changed.id, 0, 1.0))
    store.add_feedback(Feedback(changed.id, 0, -1.0))
    store.add_feedback(Feedback(changed.id, 0, comment="changed my mind"))
    assert found(store, feedback="liked") == [liked.id]
    assert found(store, feedback="disliked") == [disliked.id, changed.id]
    assert found(store, feedback="any") == [liked.id, disliked.id, changed.id]
    assert found(store, feedback="none") == [none.id]


def test_filters_by_set_policy_collaborator_task_and_all_together(store):
    store.add_tasks([task_row(2, split="train"), task_row(3, source="own", split="own")])
    person = started(store)
    first = store.start_episode("task-2", "v0001", "llm:gpt", 1)
    second = store.start_episode("task-3", "v0001", "llm:llama", 1)
    assert found(store, task_set="mini-backend") == [person.id, first.id]
    assert found(store, task_set="mini-backend/train") == [first.id]
    assert found(store, task_set="own") == [second.id]
    assert found(store, policy_id="v0001") == [first.id, second.id]
    assert found(store, collaborator="llm") == [first.id, second.id]
    assert found(store, collaborator="llm:gpt") == [first.id]
    assert found(store, collaborator="per") == []
    assert found(store, task_id="task-3") == [second.id]
    assert found(store, policy_id="v0001", collaborator="llm", task_set="own", text="fee") == [
        second.id
    ]
    values = store.filter_values()
    assert values.policies == ("embedded", "v0001")
    assert values.collaborators == ("llm:gpt", "llm:llama", "person")
    assert values.task_sets == ("mini-backend/test", "mini-backend/train", "own")
    assert values.evaluators == ()  # nothing is scored yet
    finished(store, value=0.0)
    assert store.filter_values().evaluators == ("backend-fixed",)


def test_dates_are_inclusive(store, monkeypatch):
    ids = []
    for day in ("2026-03-04", "2026-03-05", "2026-03-06"):
        monkeypatch.setattr("sweet.store.moves.now_iso", lambda day=day: f"{day}T23:59:59.999Z")
        ids.append(started(store).id)
    assert found(store, since="2026-03-05") == ids[1:]
    assert found(store, until="2026-03-05") == ids[:2]
    assert found(store, since="2026-03-05", until="2026-03-05") == ids[1:2]
    assert found(store, until="2026-03-05T23:59:59.999Z") == ids[:2]
    assert found(store, since="2026-03-06T01:00:00+02:00") == ids[1:]
    assert found(store, since="0001-01-01", until="9999-12-31") == ids
    for wrong in ("yesterday", "05.03.2026", "2026-13-01", "0001-01-01T00:00:00+14:00"):
        with pytest.raises(StoreError, match=r"no date or time.*2026-03-05"):
            store.search(Filter(since=wrong))


def test_a_wrong_choice_names_what_is_accepted(store):
    with pytest.raises(StoreError, match=r"outcome is 'won'.*success, fail"):
        store.search(Filter(outcome="won"))  # type: ignore[arg-type]
    with pytest.raises(StoreError, match=r"feedback is 'x'.*liked"):
        store.search(Filter(feedback="x"))  # type: ignore[arg-type]
    for sort in ("seq; DROP TABLE turns", "reward sideways", "nope desc"):
        with pytest.raises(StoreError, match=r"Cannot sort by.*created_at"):
            store.search(sort=sort)


def test_rows_are_sorted_and_paged_and_nothing_comes_last(store):
    plain = talked(store, "a")
    best, worst = finished(store, "a", "b"), finished(store, value=0.0)
    order = [row.id for row in store.search(sort="reward desc").rows]
    assert order == [best.id, worst.id, plain.id]
    assert [r.id for r in store.search(sort="reward asc").rows] == [worst.id, best.id, plain.id]
    assert [r.turns for r in store.search(sort="turns").rows] == [1, 1, 3]
    page = store.search(sort="created_at desc", limit=1, offset=1)
    assert (page.count, [row.id for row in page.rows]) == (3, [best.id])
    assert store.search(limit=0).count == 3
    assert store.search(offset=99).rows == ()


def test_a_summary_has_all_that_a_line_of_the_log_shows(store):
    episode = finished(store, "five", value=0.0)
    store.add_feedback(Feedback(episode.id, 0, 1.0, ("clear", "short")))
    store.add_feedback(Feedback(episode.id, 1, -0.5, ("clear",)))
    (row,) = store.search().rows
    assert (row.task_set, row.turns, row.reward, row.tests_passed) == (
        "mini-backend/test",
        2,
        0.0,
        0.0,
    )
    assert (row.rating, sorted(row.tags)) == (0.25, ["clear", "short"])
    store.add_feedback(Feedback(episode.id, None, -1.0))
    assert store.search().rows[0].rating == -1.0  # the whole episode's grade goes first


def test_feedback_is_checked_kept_in_order_and_written_once_a_request(store):
    episode = talked(store, "five")
    said = Feedback(episode.id, 0, 1.0, ("clear",), "well asked")
    for _ in range(3):
        store.add_feedback(said, key="click-1")
    store.add_feedback(Feedback(episode.id, None, comment="good"))
    assert store.feedback(episode.id) == [said, Feedback(episode.id, None, None, (), "good")]
    with pytest.raises(StoreError, match="key of its own"):
        store.add_feedback(Feedback(episode.id, 0, -1.0), key="click-1")
    for rating in (1.5, -2, float("nan")):
        with pytest.raises(StoreError, match=r"-1 .dislike. to 1"):
            store.add_feedback(Feedback(episode.id, 0, rating))
    with pytest.raises(StoreError, match="no turn 4"):
        store.add_feedback(Feedback(episode.id, 4, 1.0))
    with pytest.raises(StoreError, match="episode 'x'"):
        store.add_feedback(Feedback("x", None, 1.0))
    assert len(store.feedback(episode.id)) == 2


def test_streaming_gives_every_episode_once_while_others_are_written(store):
    ids = [talked(store, "a", collaborator="scripted").id for _ in range(230)]
    seen = []
    for number, whole in enumerate(store.iter_episodes(Filter(collaborator="scripted"))):
        seen.append(whole.episode.id)
        if number == 50:
            finished(store, "b")
    assert seen == ids
    assert whole.row.task.id == whole.episode.task_id
    assert whole.row.hidden is not None


def test_a_clock_that_jumps_back_confuses_nothing(store, monkeypatch):
    def set_clock(text: str) -> None:
        moment = clock.datetime.fromisoformat(text)
        monkeypatch.setattr(clock, "now", lambda: moment)

    set_clock("2026-03-05T12:00:00+00:00")
    episode = talked(store, "one")
    set_clock("2020-01-01T00:00:00+00:00")
    store.append_action(episode.id, 1, asks("Two?"))
    store.append_reply(episode.id, 1, "two")
    store.add_evaluation(episode.id, Evaluation(None, Verdict.INFRA, error="first"))
    set_clock("2038-01-19T03:14:08+00:00")
    store.add_evaluation(episode.id, Evaluation(None, Verdict.INFRA, error="second"))
    set_clock("2001-01-01T00:00:00+00:00")
    store.add_feedback(Feedback(episode.id, None, 1.0))
    store.add_feedback(Feedback(episode.id, None, -1.0))
    later = talked(store, "x")
    kept = store.episode(episode.id)
    assert [turn.reply for turn in kept.turns] == ["one", "two"]
    assert kept.evaluation is not None
    assert kept.evaluation.error == "second"
    assert found(store, feedback="disliked") == [episode.id]
    assert [w.episode.id for w in store.iter_episodes()] == [episode.id, later.id]

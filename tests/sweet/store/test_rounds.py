import sqlite3

import pytest
from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store import EpisodeStore, RoundState, ScheduleRow
from tests.sweet.store.writing import PROCESSES, start_round


def begun(store, round_id="r1"):
    return store.start_round(round_id, "sweet", "embedded", {"seed": 0})


def test_a_round_goes_from_its_start_to_a_version(store):
    round = begun(store)
    assert (round.state, round.stage, round.settings) == (RoundState.RUNNING, "start", {"seed": 0})
    at = store.round_at("r1", "critic", 3, 8)
    assert (at.stage, at.done, at.total) == ("critic", 3, 8)
    done = store.end_round("r1", version_id="v0001", is_promoted=False, figures={"gain": 0.1})
    assert (done.state, done.version_id, done.is_promoted) == (RoundState.DONE, "v0001", False)
    assert done.figures == {"gain": 0.1}
    with pytest.raises(StoreError, match="r1 is done"):
        store.resume_round("r1")


def test_a_failed_round_says_why_and_can_be_resumed(store):
    begun(store)
    assert store.fail_round("r1", "no pair").state is RoundState.FAILED
    assert store.round("r1").error == "no pair"
    again = store.resume_round("r1")
    assert (again.state, again.error) == (RoundState.RUNNING, None)


def test_a_stopped_round_is_lost_until_it_is_resumed(store):
    begun(store)
    assert store.stop_round("r1").state is RoundState.LOST
    assert "Resume it" in store.round("r1").error
    assert store.resume_round("r1").state is RoundState.RUNNING


def test_a_round_whose_process_is_gone_is_lost(store, path):
    mine, theirs = PROCESSES.Pipe()
    process = PROCESSES.Process(target=start_round, args=(path, theirs))
    process.start()
    round_id = mine.recv()
    process.join()
    assert store.round(round_id).state is RoundState.LOST


def test_metrics_are_appended_and_read_from_where_one_was(store):
    begun(store)
    store.add_metrics("r1", "critic", 1, {"loss": 0.7, "margin": 0.0})
    first = store.metrics("r1")
    store.add_metrics("r1", "critic", 2, {"loss": 0.6})
    assert [(m.step, m.name, m.value) for m in first] == [(1, "loss", 0.7), (1, "margin", 0.0)]
    assert [m.value for m in store.metrics("r1", first[-1].seq)] == [0.6]


def test_an_update_that_is_done_again_adds_nothing(store):
    begun(store)
    for value in (0.7, 0.9):
        store.add_metrics("r1", "critic", 1, {"loss": value})
    assert [m.value for m in store.metrics("r1")] == [0.7]


def test_metrics_are_never_changed(store, path):
    begun(store)
    store.add_metrics("r1", "critic", 1, {"loss": 0.7})
    with Database(sqlite3.connect(path)) as db:
        for sql in ("UPDATE round_metrics SET value = 0", "DELETE FROM round_metrics"):
            with pytest.raises(sqlite3.IntegrityError, match="only appended"):
                db.execute(sql)


def test_what_is_no_number_and_what_is_no_round_is_refused(store):
    begun(store)
    with pytest.raises(StoreError, match="loss of critic, step 1"):
        store.add_metrics("r1", "critic", 1, {"loss": float("nan")})
    with pytest.raises(StoreError, match="no round 'r2'"):
        store.add_metrics("r2", "critic", 1, {"loss": 1.0})
    with pytest.raises(StoreError):
        begun(store)
    assert store.metrics("r1") == []


def test_progress_is_seen_by_another_process_and_the_newest_round_comes_first(store, path):
    begun(store)
    begun(store, "r2")
    store.round_at("r2", "policy", 1, 2)
    with EpisodeStore.open(path) as other:
        assert [(r.id, r.stage) for r in other.rounds()] == [("r2", "policy"), ("r1", "start")]


def test_the_speed_of_a_stage_is_measured_from_its_first_count(store):
    begun(store)
    store.round_at("r1", "collect", 0, 0)
    start = store.round_at("r1", "collect", 40, 100)  # 40 were there before it went on
    later = store.round_at("r1", "collect", 50, 100)
    assert (later.counted_from, later.counted_at) == (40, start.counted_at)
    assert later.stage_at == start.stage_at and later.done == 50
    other = store.round_at("r1", "critic", 1, 8)
    assert (other.counted_from, other.stage_at) == (1, other.counted_at)


def test_a_stage_that_is_to_be_kept_is_named_until_the_round_is_given_up(store):
    begun(store)
    store.round_at("r1", "critic", 1, 8)
    assert store.keep_round("r1").keep_stage == "critic"
    assert store.round_at("r1", "policy", 1, 8).keep_stage == "critic"
    assert store.stop_round("r1").keep_stage is None


def test_a_process_that_took_a_dead_round_s_number_is_another(store):
    assert begun(store).state is RoundState.RUNNING
    store._set_round("r1", "process_born = process_born - 60")
    assert store.round("r1").state is RoundState.LOST
    assert store.resume_round("r1").state is RoundState.RUNNING


def test_the_schedule_is_off_until_it_is_set_and_stays_as_set(store, path):
    assert store.schedule() == ScheduleRow()
    row = ScheduleRow(5, 1.5, {"algorithm": "rft"}, "2026", "2027", None, "r1", "no pair")
    store.set_schedule(row)
    store.set_schedule(row)
    with EpisodeStore.open(path) as other:
        assert other.schedule() == row

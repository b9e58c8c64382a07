"""Rounds that start by themselves: in the log, seen by one app, started as real processes."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from sweet.errors import ConfigError
from sweet.services import Services
from sweet.store import RoundState
from tests.trainer.studio import (
    log_episode,
    log_episodes,
    quick,
    settings,
    tiny_model,
    train_rows,
)
from trainer.__main__ import main
from trainer.jobs import Jobs
from trainer.schedule import Schedule
from trainer.settings import RoundSettings

pytestmark = pytest.mark.timeout(1800)  # a busy machine takes minutes to load PyTorch
SHORT = quick(algorithm="rft", policy_epochs=1)
PAST = "2020-01-01T00:00:00.000Z"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def services(tmp_path, model):
    with Services(settings(tmp_path / "data", model)) as services:
        yield services
        if running := Jobs(services).running():
            Jobs(services).abort(running.id)


@pytest.fixture
def schedule(services) -> Schedule:
    return Schedule(Jobs(services))


class Starts(Jobs):
    """Jobs that note what was to start, as a round that is over at once."""

    def __init__(self, services: Services, error: Exception | None = None) -> None:
        super().__init__(services)
        self.started: list[RoundSettings] = []
        self.error = error

    def start(self, settings: RoundSettings) -> str:
        if self.error:
            raise self.error
        self.started.append(settings)
        id = f"r{len(self.started):04d}"
        self.services.store.start_round(id, settings.algorithm, "p", settings.as_dict())
        self.services.store.fail_round(id, "no pair")
        return id


def is_due(services: Services) -> None:
    """The hours are over, many times."""
    services.store.set_schedule(replace(services.store.schedule(), next_at=PAST))


def until_over(jobs: Jobs) -> None:
    end = time.monotonic() + 900
    while jobs.running():
        assert time.monotonic() < end, jobs.log_tail("r0001")
        time.sleep(0.1)


def test_the_schedule_is_off_by_default_and_starts_nothing(services, schedule):
    log_episodes(services)
    state = schedule.state()
    assert not state.is_on and (state.next_at, state.last_at, state.waiting_for) == (None, None, "")
    assert state.new_episodes == 4
    assert schedule.check() is None


def test_enough_new_episodes_start_a_round_and_are_not_counted_again(services, schedule):
    schedule.set(every_episodes=4, settings=SHORT)
    assert schedule.state().waiting_for == "4 more episodes"
    log_episodes(services, (1.0, None))
    assert schedule.state().waiting_for == "2 more episodes"  # without a reward it does not count
    assert schedule.check() is None
    log_episodes(services, (1.0, 0.0))
    id = schedule.check()
    assert id == "r0001"
    state = schedule.state()
    assert state.waiting_for == "round r0001 to end" and state.new_episodes == 0
    assert schedule.check() is None
    until_over(schedule.jobs)
    done = services.store.round(id)
    assert done.state is RoundState.DONE, schedule.jobs.log_tail(id)
    state = schedule.state()
    assert state.last_round == done and state.last_error == "" and state.last_at
    assert state.waiting_for == "4 more episodes"


def test_hours_that_passed_unseen_do_not_pile_up(services):
    jobs = Starts(services)
    schedule = Schedule(jobs)
    log_episodes(services)
    begun = schedule.set(every_hours=2)
    assert begun.is_on and str(begun.next_at) > PAST and schedule.check() is None
    is_due(services)
    assert schedule.check() == "r0001" and schedule.check() is None
    assert str(schedule.state().next_at) > str(begun.next_at)


def test_a_failed_round_shows_its_reason_and_waits_for_the_next_time(services):
    jobs = Starts(services)
    schedule = Schedule(jobs)
    log_episodes(services)
    schedule.set(every_episodes=2, every_hours=1)
    assert schedule.check() == "r0001"
    assert [schedule.check() for _ in range(3)] == [None] * 3
    assert schedule.state().last_error == "no pair"
    log_episode(services, train_rows()[0], 7, 1.0)
    log_episode(services, train_rows()[0], 8, 0.0)
    assert schedule.check() == "r0002"
    assert [one.seed for one in jobs.started] == [0, 1]  # other fresh tasks each time


def test_a_round_that_could_not_begin_is_said_and_not_tried_at_once_again(services):
    schedule = Schedule(Starts(services, ConfigError("trackio is not installed")))
    schedule.set(every_hours=1)
    is_due(services)
    assert schedule.check() is None
    state = schedule.state()
    assert state.last_error == "trackio is not installed" and state.last_round is None
    assert state.last_at and str(state.next_at) > PAST


def test_it_waits_while_a_round_runs_and_what_that_played_is_not_new(services):
    jobs = Starts(services)
    schedule = Schedule(jobs)
    schedule.set(every_episodes=1, every_hours=1)
    is_due(services)
    services.store.start_round("r0001", "sweet", "p", {})
    assert schedule.check() is None
    batch = services.store.start_batch("round r0001", {}, 1)
    row = train_rows()[0]
    services.store.add_tasks([row])
    id = log_episode(services, row, 0, 1.0)
    assert schedule.state().new_episodes == 1
    services.store._write(
        lambda db: db.execute("UPDATE episodes SET batch_id = ? WHERE id = ?", [batch, id]),
        durable=False,
    )
    assert schedule.state().new_episodes == 0 and jobs.started == []
    services.store.fail_round("r0001", "over")


def test_a_schedule_survives_and_its_settings_are_kept(services, schedule):
    schedule.set(every_episodes=9, settings=RoundSettings(algorithm="rft"))
    with Services(services.settings) as again:
        state = Schedule(Jobs(again)).set(every_hours=3)
        assert (state.every_episodes, state.every_hours) == (0, 3)
        assert again.store.schedule().settings == {"algorithm": "rft"}
        assert not Schedule(Jobs(again)).set().is_on


@pytest.mark.parametrize("wrong", [{"every_episodes": -1}, {"every_hours": float("nan")}])
def test_what_is_no_schedule_is_refused(schedule, wrong):
    with pytest.raises(ConfigError, match="must be"):
        schedule.set(**wrong)
    assert not schedule.state().is_on


def test_one_app_at_a_time_sees_to_it(services):
    jobs = Starts(services)
    schedule = Schedule(jobs)
    schedule.set(every_hours=1)
    is_due(services)
    folder = services.settings.data / "rounds"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "schedule.lock"), schedule.watching(0.01):
        time.sleep(0.3)
        assert jobs.started == []
    with schedule.watching(0.01):
        end = time.monotonic() + 60
        while not jobs.started and time.monotonic() < end:
            time.sleep(0.01)
    assert len(jobs.started) == 1
    FileLock(folder / "schedule.lock", timeout=0).acquire().lock.release()  # given back


def test_the_command_shows_and_sets_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SWEET_DATA", str(tmp_path))
    assert main(["schedule"]) == 0
    assert "The schedule is off." in capsys.readouterr().out
    assert main(["schedule", "--every-episodes", "50", "--every-hours", "12"]) == 0
    said = capsys.readouterr().out
    assert "every 50 new episodes or every 12 hours" in said and "50 more episodes" in said
    assert main(["schedule", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["every_episodes"] == 50
    assert main(["schedule", "--off", "--every-hours", "1"]) == 2
    assert main(["schedule", "--every-hours", "-1"]) == 2
    assert "leave the other options out" in capsys.readouterr().err
    assert main(["schedule", "--off"]) == 0
    assert "off" in capsys.readouterr().out

"""Rounds in processes of their own: real processes on a tiny model."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sweet.errors import ConfigError, StoreError, SweetError, TrainingError
from sweet.services import Services
from sweet.store import RoundState
from tests.trainer.studio import log_episodes, quick, settings, tiny_model
from trainer.jobs import Jobs
from trainer.settings import RoundSettings

pytestmark = pytest.mark.timeout(1800)  # a busy machine takes minutes to load PyTorch
ROOT = Path(__file__).parents[2]
LONG = {"critic_epochs": 5000}  # hours, were it not ended


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def jobs(tmp_path, model):
    with Services(settings(tmp_path / "data", model)) as services:
        jobs = Jobs(services)
        yield jobs
        if running := jobs.running():
            jobs.abort(running.id)


def until(true: Callable[[], object], jobs: Jobs, seconds: float = 900) -> None:
    """Wait for something; what the round said is the message where it never comes."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, jobs.log_tail("r0001")
        time.sleep(0.1)


def at(jobs: Jobs, id: str, stage: str, done: int = 1) -> Callable[[], bool]:
    def reached() -> bool:
        one = jobs.services.store.round(id)
        assert one.state is RoundState.RUNNING, jobs.log_tail(id)
        return one.stage == stage and one.done >= done

    return reached


def ended(jobs: Jobs) -> Callable[[], bool]:
    return lambda: jobs.running() is None


def test_a_round_of_its_own_process_goes_to_its_end_and_tells_how_far_it_is(jobs):
    log_episodes(jobs.services)
    id = jobs.start(quick())
    begun = jobs.running()
    assert begun and begun.id == id == "r0001" and begun.process_id != os.getpid()
    process = psutil.Process(begun.process_id)
    until(lambda: process.environ().get("MALLOC_MMAP_MAX_") == "0", jobs)  # it begins anew for it
    with pytest.raises(TrainingError, match="Another round is running: r0001"):
        jobs.start(quick())
    until(ended(jobs), jobs)
    done = jobs.services.store.round(id)
    assert (done.state, done.version_id) == (RoundState.DONE, "v0001"), jobs.log_tail(id)
    assert done.figures and done.figures["ended_early"] == []
    stages = jobs.progress(id)
    assert [s.name for s in stages] == list(quick().kind.stages)
    assert {s.state for s in stages} == {"done"} and all(s.seconds is not None for s in stages)
    assert stages[0].result and stages[0].result["chosen"] == 4
    said = jobs.log_tail(id)
    assert "critic 1 of 2: loss" in said and "not promoted: +0.0%" in said
    assert jobs.log_tail(id, 1) == said.splitlines()[-1]
    with pytest.raises(TrainingError, match="r0001 is done"):
        jobs.resume(id)
    with pytest.raises(TrainingError, match="is done, so it can't be aborted"):
        jobs.abort(id)


def test_an_aborted_round_leaves_no_process_and_goes_on_where_it_was(jobs):
    log_episodes(jobs.services)
    id = jobs.start(quick(**LONG))
    until(at(jobs, id, "critic", 3), jobs)
    (running,) = [s for s in jobs.progress(id) if s.state == "running"]
    assert running.name == "critic" and running.total == 5000
    assert running.seconds is not None and running.remaining_s and running.remaining_s > 0
    process = psutil.Process(jobs.services.store.round(id).process_id)
    family = [process, *process.children(recursive=True)]
    jobs.abort(id)
    assert [p for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE] == []
    assert jobs.running() is None
    stopped = jobs.services.store.round(id)
    assert stopped.state is RoundState.LOST and "Resume it" in str(stopped.error)
    assert [s.state for s in jobs.progress(id)][:4] == ["done", "done", "stopped", "waiting"]
    assert [v.id for v in jobs.services.policies() if v.adapter_path] == []
    before = stopped.done
    jobs.resume(id)
    until(at(jobs, id, "critic", before + 2), jobs)
    jobs.abort(id)


def test_a_round_that_is_kept_ends_its_stage_and_registers_a_version(jobs):
    log_episodes(jobs.services)
    before = jobs.services.default_policy()
    id = jobs.start(quick(**LONG))
    until(at(jobs, id, "critic", 3), jobs)
    jobs.keep(id)
    until(ended(jobs), jobs)
    done = jobs.services.store.round(id)
    assert (done.state, done.version_id) == (RoundState.DONE, "v0001"), jobs.log_tail(id)
    assert done.figures and done.figures["ended_early"] == ["critic"]
    assert {s.name: s.ended_early for s in jobs.progress(id) if s.ended_early} == {"critic": True}
    note = jobs.services.registry.manifest("v0001").version.note
    assert note.startswith(f"sweet from {before} (critic ended early, as asked); ")
    with pytest.raises(TrainingError, match="is done, so it can't be cut short"):
        jobs.keep(id)


def test_fresh_episodes_are_kept_as_far_as_they_were_played(jobs):
    log_episodes(jobs.services)
    id = jobs.start(quick(fresh_tasks=400, concurrency=2))
    until(at(jobs, id, "collect", 1), jobs)
    jobs.keep(id)
    until(ended(jobs), jobs)
    done = jobs.services.store.round(id)
    assert done.state is RoundState.DONE, jobs.log_tail(id)
    collected = jobs.progress(id)[0]
    assert collected.ended_early and collected.result
    assert 1 <= collected.result["fresh"] < 800 and collected.result["chosen"] >= 4


def test_a_round_killed_in_its_process_is_seen_as_broken_off(jobs):
    log_episodes(jobs.services)
    id = jobs.start(quick(**LONG))
    until(at(jobs, id, "critic"), jobs)
    os.kill(jobs.services.store.round(id).process_id, signal.SIGKILL)
    until(ended(jobs), jobs)
    assert jobs.services.store.round(id).state is RoundState.LOST


def test_another_process_with_the_round_s_number_is_not_taken_for_it(jobs):
    store = jobs.services.store
    store.start_round("r0001", "sweet", "embedded", {})
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        store._set_round("r0001", "process_id = ?, process_born = 1", stranger.pid)
        assert store.round("r0001").state is RoundState.LOST
        assert jobs.running() is None
        with pytest.raises(TrainingError, match="is lost, so it can't be aborted"):
            jobs.abort("r0001")
        assert stranger.poll() is None
        stranger.communicate(b"\n")


def test_a_round_of_another_machine_runs_as_long_as_it_holds_the_lock(jobs):
    store = jobs.services.store
    store.start_round("r0001", "sweet", "embedded", {})
    store._set_round("r0001", "host = 'elsewhere'")
    assert store.round("r0001").state is RoundState.RUNNING
    with pytest.raises(TrainingError, match="runs on elsewhere"):
        jobs.abort("r0001")
    assert jobs.running() is None
    assert store.round("r0001").state is RoundState.LOST


def test_what_can_t_begin_is_said_at_once_and_leaves_no_round(jobs, monkeypatch):
    with pytest.raises(SweetError, match="nobody"):
        jobs.start(quick(policy="nobody"))
    with pytest.raises(ConfigError, match=r"trackio is not installed\. Install it with"):
        jobs.start(quick(report_to="trackio"))
    with pytest.raises(ConfigError, match="no round 'r0009'"):
        jobs.resume("r0009")
    with pytest.raises(ConfigError, match=r"no round '\.\./\.\./x'"):
        jobs.resume("../../x")
    assert jobs.rounds() == [] and jobs.running() is None
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(TrainingError, match="r0001 could not be started"):
        jobs.start(quick())
    monkeypatch.undo()
    assert jobs.running() is None
    assert jobs.services.store.round("r0001").state is RoundState.FAILED


def test_a_round_with_nothing_to_learn_from_fails_with_the_reason(jobs):
    id = jobs.start(quick())
    until(ended(jobs), jobs)
    failed = jobs.services.store.round(id)
    assert failed.state is RoundState.FAILED and "Too few episodes" in str(failed.error)
    assert "Too few episodes" in jobs.log_tail(id)
    assert jobs.preview(quick()).problem == failed.error
    with pytest.raises(StoreError, match="no round"):
        jobs.progress("r0002")
    assert jobs.log_tail("r0002") == ""


def test_the_preview_is_what_the_round_then_collects(jobs):
    log_episodes(jobs.services, (1.0, 0.0, None))
    found = jobs.preview(quick())
    assert (found.episodes, found.tasks, found.pairs, found.problem) == (4, 2, 2, "")
    assert found.by_source == {"mini-backend/train": 4}
    assert found.by_collaborator == {"scripted": 4}
    assert found.by_policy == {jobs.services.default_policy(): 4}
    assert found.pairs_by_source == {"outcome": 2} and found.turn_pairs == 0
    assert (found.outcome.value, found.outcome.n) == (0.5, 4)
    assert found.left_out == {"no reward": 2}
    assert jobs.preview(quick(algorithm="rft")).pairs == 0
    assert jobs.preview(quick(fresh_tasks=3, use_log=False)).fresh == 6
    held = jobs.preview(quick(fresh_tasks=3, fresh_set="mini-backend/test"))
    assert "is for measuring" in held.problem
    assert "not installed" in jobs.preview(quick(report_to="wandb")).problem


def test_the_command_does_the_same_in_a_shell(jobs, monkeypatch):
    folder = jobs.services.settings.data.rename(jobs.services.settings.data.with_name("it's"))
    monkeypatch.setenv("SWEET_DATA", str(folder))
    monkeypatch.setenv("SWEET_AGENT__MODEL", "a model")
    monkeypatch.setenv("SWEET_AGENT__API_KEY", "secret")
    jobs.services.settings.data = folder
    chosen = RoundSettings(algorithm="rft", use_log=False, fresh_tasks=3, since="2026-01-02")
    line = jobs.command(chosen)
    assert "secret" not in line and "--policy" not in line
    words = shlex.split(line)
    assert words[:2] == ["SWEET_AGENT__MODEL=a model", f"SWEET_DATA={folder}"]
    options = ["--algorithm=rft", "--no-use-log", "--since=2026-01-02", "--fresh-tasks=3"]
    assert words[3:] == ["-m", "trainer", "round", *options]
    negative = jobs.command(RoundSettings(seed=-3))
    shown = subprocess.run(
        f"{negative} --json --help", shell=True, cwd=ROOT, capture_output=True, text=True
    )
    assert shown.returncode == 0 and "usage: python -m trainer round" in shown.stdout

"""Ranking and comparing that are asked to end early give what they reached, and say how much."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sweet.services import Services
from sweet.store import RoundState
from sweet.types import Episode, Evaluation, HiddenInfo, Task, TaskKind
from tests.trainer.studio import log_episodes, quick, settings, tiny_model
from tests.trainer.test_people import result
from trainer.jobs import Jobs, can_keep
from trainer.round import run_round
from trainer.workbench import Workbench


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def services(tmp_path, model):
    with Services(settings(tmp_path / "data", model)) as opened:
        log_episodes(opened)
        yield opened


def asked(monkeypatch: pytest.MonkeyPatch, stage: str, done: int) -> None:
    """Somebody presses Stop and keep when so much of a stage is done."""
    real = Workbench.at

    def at(bench: Workbench, now: str, reached: int, total: int) -> bool:
        is_to_end = real(bench, now, reached, total)
        if now != stage or reached < done:
            return is_to_end
        assert can_keep(bench.services.store.round(bench.id))
        bench.services.store.keep_round(bench.id)
        return real(bench, now, reached, total)

    monkeypatch.setattr(Workbench, "at", at)


def test_ranking_that_ends_early_keeps_the_episodes_it_ranked(services, monkeypatch):
    asked(monkeypatch, "rank", 2)
    done = run_round(services, quick(policy_least=4))
    ranked = result(services, "rank")
    assert (ranked["ranked"], ranked["planned"], ranked["ended_early"]) == (2, 4, True)
    assert len(ranked["episodes"]) == 2 and ranked["with_advantages"] == 2
    logged = [one.episode for one in services.store.iter_episodes()]
    assert sum(all(turn.advantage is not None for turn in e.turns) for e in logged) == 2
    assert done.state is RoundState.DONE
    assert done.figures and done.figures["ended_early"] == ["rank"]
    note = services.registry.manifest("v0001").version.note
    assert "(rank ended early, as asked)" in note
    learned = result(services, "policy")["by_source"]["critic"]
    assert learned == ranked["pairs"] > 0


def test_where_the_parent_s_episodes_end_early_the_child_plays_the_same(services, monkeypatch):
    asked(monkeypatch, "evaluate " + services.default_policy(), 2)
    how = {"policy_epochs": 1, "validation_n": 40, "concurrency": 1}
    done = run_round(services, quick(algorithm="rft", **how))
    found = result(services, "evaluate")
    sides = [found[side]["n"] + found[side]["unscored"] for side in ("parent", "child")]
    assert 2 <= sides[0] == sides[1] < 40
    assert (found["planned"], found["ended_early"]) == (40, True)
    assert done.figures and done.figures["ended_early"] == ["evaluate"]
    why = result(services, "register")["why"]
    assert f"on {found['compared']} tasks of 40 (ended early, as asked)" in why
    stage = Jobs(services).progress(done.id)[-2]
    assert stage.name == "evaluate" and stage.ended_early


def test_where_the_child_s_end_early_both_have_figures_of_the_same_tasks(services, monkeypatch):
    asked(monkeypatch, "evaluate child", 3)
    how = {"policy_epochs": 1, "validation_n": 40, "concurrency": 1}
    run_round(services, quick(algorithm="rft", **how))
    found = result(services, "evaluate")
    assert found["parent"]["n"] == found["child"]["n"] == found["compared"]
    assert 3 <= found["compared"] < 40 and found["ended_early"] is True


def test_an_episode_that_was_being_scored_as_its_stage_was_ended_counts_for_neither(
    services, monkeypatch
):
    scored = services.evaluator(TaskKind.BACKEND)
    begun: list[Episode] = []

    async def asked_meanwhile(task: Task, hidden: HiddenInfo, episode: Episode) -> Evaluation:
        if episode.policy_id == "child":
            begun.append(episode)
        if len(begun) == 3:
            services.store.keep_round(services.store.rounds(1)[0].id)
            await asyncio.sleep(60)
        return await scored(task, hidden, episode)

    monkeypatch.setattr(services, "evaluator", lambda _: asked_meanwhile)
    run_round(services, quick(algorithm="rft", policy_epochs=1, validation_n=10, concurrency=1))
    found = result(services, "evaluate")
    assert len(begun) == 3 and found["compared"] == 2
    for side in ("parent", "child"):
        assert (found[side]["n"], found[side]["unscored"]) == (2, 0)


def test_an_undisturbed_comparison_did_not_end_early(services):
    run_round(services, quick(algorithm="rft", policy_epochs=1))
    found = result(services, "evaluate")
    assert found["planned"] == found["compared"] == 2 and "ended_early" not in found
    assert "ended early" not in result(services, "register")["why"]

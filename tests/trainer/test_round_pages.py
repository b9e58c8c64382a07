"""A round on web pages: from logged designs to a new version that draws, and for nothing else."""

from __future__ import annotations

import asyncio
import random

import pytest

from sweet.engines import EMBEDDED_DIRS
from sweet.errors import ConfigError, PolicyError, TrainingError
from sweet.registry import plays
from sweet.services import Services
from sweet.settings import EMBEDDED_MODEL, EMBEDDED_WEIGHTS, ModelSettings, Settings
from sweet.store import EpisodeStore
from sweet.tasks import mini_frontend
from sweet.tasks.mini_drawing import draw_page
from sweet.tasks.mini_pages import render
from sweet.tasks.mini_topics import topics
from sweet.types import (
    ANSWER_MARK,
    Action,
    Episode,
    Evaluation,
    HiddenInfo,
    Observation,
    Reward,
    StopReason,
    Task,
    TaskKind,
    Verdict,
)
from tests.trainer.studio import log_episodes, quick
from trainer.baselines import successes
from trainer.pairs import reward_of
from trainer.pretraining.pretrain import pretrain, settings_for
from trainer.round import run_round

PAGES = EMBEDDED_WEIGHTS[TaskKind.FRONTEND]


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """The smallest model that reads and writes pages: it has learned nothing."""
    tiny = settings_for(
        "frontend", hidden=32, layers=1, heads=2, mlp=64, steps=1, dialogues=2, warmup=1,
        transfer=False,
    )  # fmt: skip
    return pretrain(tmp_path_factory.mktemp("pages"), tiny)


@pytest.fixture
def services(tmp_path, weights, monkeypatch):
    monkeypatch.setitem(EMBEDDED_DIRS, PAGES, weights)
    settings = Settings(data=tmp_path, agent=ModelSettings(max_tokens=12), max_turns=2)
    with Services(settings) as services:
        monkeypatch.setattr(services, "evaluator", lambda kind: no_browser)
        yield services


async def no_browser(task: Task, hidden: HiddenInfo, episode: Episode) -> Evaluation:
    """What scoring gives where nothing can be drawn; what the model writes is no page anyway."""
    return Evaluation(None, Verdict.INFRA, error="no browser in this test")


def log_designs(services, rewards=(0.9, 0.4, 0.35)) -> None:
    """For each of two tasks an episode a reward: a page, then another one as the answer."""
    rng = random.Random(1)
    rows = list(mini_frontend.generate("train", 2, 1))
    services.store.add_tasks(rows)
    for row in rows:
        for seed, reward in enumerate(rewards):
            pages = [render(draw_page(topics()[0], rng)) for _ in range(2)]
            log_design(services.store, row.task.id, seed, reward, pages)


def log_design(store: EpisodeStore, task_id: str, seed: int, reward: float, pages) -> None:
    episode = store.start_episode(task_id, EMBEDDED_MODEL, "scripted", seed, 2)
    first = f"Draft 1.\n{pages[0]}"
    store.append_action(episode.id, 0, Action(first, first, False))
    store.append_reply(episode.id, 0, "Make the header dark blue.")
    last = f"Draft 2: header color dark blue. {ANSWER_MARK}\n{pages[1]}"
    store.append_action(episode.id, 1, Action(last, "Draft 2", True, pages[1]))
    store.finish(episode.id, StopReason.ANSWERED, pages[1])
    scored = Reward(reward, {"visual": reward}, "visual")
    store.add_evaluation(episode.id, Evaluation(scored, Verdict.PASS))


def small(**changes):
    return quick(tasks="frontend", policy=EMBEDDED_MODEL, **changes)


def test_a_round_on_pages_makes_a_version_that_draws_and_writes_no_functions(services):
    log_designs(services)
    log_episodes(services)
    done = run_round(services, small())
    version = services.registry.version(done.version_id)
    assert (version.base_model, version.parent_id) == (PAGES, EMBEDDED_MODEL)
    assert plays(version, TaskKind.FRONTEND) and not plays(version, TaskKind.BACKEND)
    assert done.figures is not None
    assert done.figures["parent"]["unscored"] == 2  # played, and nothing scored them here

    services.registry.promote(version.id)
    assert services.default_policy(TaskKind.FRONTEND) == version.id
    assert services.default_policy(TaskKind.BACKEND) == EMBEDDED_MODEL
    seat = services.policy(version.id)
    with pytest.raises(PolicyError, match="not made for backend"):
        asyncio.run(seat.draw(Observation(TaskKind.BACKEND, "a function"), seed=1))


def test_functions_and_pages_are_never_learned_from_together(services):
    log_designs(services)
    log_episodes(services)
    done = run_round(services, small(algorithm="mtdpo"))
    folder = services.settings.data / "rounds" / done.id
    collected = (folder / "01-collect.json").read_text()
    assert '"chosen": 6' in collected
    assert '"function": 4' in collected
    pairs = (folder / "02-pairs.json").read_text()
    assert '"pairs": 4' in pairs  # 0.9 against 0.4 and 0.35; these two differ by less than 0.1


def test_the_best_of_several_designs_is_worth_repeating(services):
    log_designs(services, (0.5, 0.7, 0.7))
    store = services.store
    episodes = [one.episode for one in store.iter_episodes()]
    rows = {e.task_id: store.task_row(e.task_id) for e in episodes}
    good = successes(episodes, rows)
    assert [reward_of(e) for e in good] == [0.7] * 4
    assert successes([e for e in episodes if reward_of(e) == 0.7], rows) == []


def test_a_round_refuses_what_is_of_another_kind(services):
    log_designs(services)
    with pytest.raises(ConfigError, match="holds backend tasks"):
        run_round(services, small(validation_set="mini-backend/validation", fresh_tasks=0))
    with pytest.raises(TrainingError, match="web page"):
        run_round(services, quick(policy=EMBEDDED_MODEL))
    with pytest.raises(ConfigError, match="functions only"):
        small(algorithm="sweet-judge")

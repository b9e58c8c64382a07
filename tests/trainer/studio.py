"""A data folder with a tiny policy and logged episodes, as a round finds them."""

from __future__ import annotations

from pathlib import Path

from sweet.services import Services
from sweet.settings import ModelSettings, Settings
from sweet.tasks import mini_backend
from sweet.types import ANSWER_MARK, Action, Evaluation, Reward, StopReason, TaskRow, Verdict
from tests.sweet.engines.tiny import llama, save
from trainer.settings import RoundSettings

CONTEXT = 4096  # a token a letter


def tiny_model(folder: Path) -> Path:
    """A Llama with random weights that reads letters."""
    return save(llama(max_position_embeddings=CONTEXT, initializer_range=0.1), folder)


def settings(folder: Path, model: Path) -> Settings:
    """The studio's settings with the tiny model as its agent, brief in speech."""
    agent = ModelSettings(model=str(model), max_tokens=8)
    return Settings(data=folder, agent=agent, max_turns=2)


def quick(**changes: object) -> RoundSettings:
    """A round of seconds."""
    small: dict[str, object] = {
        "device": "cpu",
        "threads": 1,
        "lora_rank": 2,
        "critic_epochs": 2,
        "critic_batch": 2,
        "candidates": 4,
        "policy_batch": 4,
        "policy_least": 3,
        "validation_n": 2,
        "fresh_per_task": 2,
        "seed": 5,
    }
    return RoundSettings(**{**small, **changes})  # type: ignore[arg-type]


def train_rows(n: int = 2) -> list[TaskRow]:
    """Tasks to learn from."""
    return list(mini_backend.generate("train", n, 1))


def log_episodes(services: Services, rewards: tuple[float | None, ...] = (1.0, 0.0)) -> None:
    """For each of two tasks an episode a reward: a question, then an answer."""
    rows = train_rows()
    services.store.add_tasks(rows)
    for row in rows:
        for seed, reward in enumerate(rewards):
            log_episode(services, row, seed, reward)


def log_episode(services: Services, row: TaskRow, seed: int, reward: float | None) -> str:
    """A finished episode, scored where `reward` is given; its id."""
    store = services.store
    episode = store.start_episode(row.task.id, services.default_policy(), "scripted", seed, 2)
    question = f"What is it, {'please' if reward else 'huh'} {seed}?"
    store.append_action(episode.id, 0, Action(question, question, False))
    store.append_reply(episode.id, 0, "Five.")
    code = f"def f(x): return {seed}"
    store.append_action(episode.id, 1, Action(f"{ANSWER_MARK}\n{code}", "", True, code))
    store.finish(episode.id, StopReason.ANSWERED, code)
    if reward is not None:
        scored = Reward(reward, {"tests_passed": reward}, "backend-fixed")
        store.add_evaluation(episode.id, Evaluation(scored, Verdict.PASS))
    return episode.id

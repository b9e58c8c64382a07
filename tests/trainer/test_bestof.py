"""Best of N: what is drawn, what is said, and who sees what."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sweet.errors import ConfigError, PolicyError
from sweet.policy import EnginePolicy
from sweet.services import Services
from sweet.settings import JudgeSettings, ModelSettings, Settings
from sweet.types import (
    Episode,
    EpisodeFilter,
    Exchange,
    HiddenInfo,
    Observation,
    Sampling,
    TaskKind,
    TaskRow,
)
from tests.fakes import FakeEngine, hidden_of, task_row
from tests.sweet.engines.server import refuses, says, serving
from tests.trainer.studio import log_episodes, quick, settings, tiny_model
from trainer.__main__ import main
from trainer.bestof import ORACLE, BestOfN, BestOfPlan, best_of, in_words
from trainer.candidates import Candidate
from trainer.round import run_round

ROW = task_row()
SEEN = Observation(TaskKind.BACKEND, ROW.task.description, (Exchange("Which?", "Five."),), 3)


class Longest:
    """Scores by length; None for what it was told to have no opinion on."""

    def __init__(self, *unknown: str, reads: bool = True) -> None:
        self.unknown, self.reads = unknown, reads
        self.asked: list[tuple[TaskRow, Episode]] = []

    def scores(self, row: TaskRow, episode: Episode, candidates: Any) -> Any:
        self.asked.append((row, episode))
        if not self.reads:
            return None
        return [[self._score(c) for c in turn] for turn in candidates]

    def _score(self, candidate: Candidate) -> float | None:
        return None if candidate.said in self.unknown else float(len(candidate.said))

    def advantages(self, rows: Any, episodes: Any) -> Any:
        raise AssertionError("nobody asks")


def seated(critic: Any, *texts: str, n: int | None = None) -> tuple[BestOfN, FakeEngine]:
    engine = FakeEngine(list(texts))
    policy = EnginePolicy("p", engine, Sampling(), "instructed")
    best = BestOfN("best", policy, critic, ROW, n or len(texts), asyncio.Lock())
    return best, engine


def act(best: BestOfN) -> Any:
    return asyncio.run(best.act(SEEN, seed=7))


def test_the_message_with_the_highest_score_is_said():
    critic = Longest()
    best, engine = seated(critic, "Which?", "Which fee is it?", "Fee?")
    assert act(best).message == "Which fee is it?"
    assert len(engine.calls) == 3
    row, episode = critic.asked[0]
    assert row is ROW and episode.turns[0].reply == "Five." and len(episode.turns) == 2
    assert len({sampling.seed for _, sampling, _ in engine.calls}) == 3


def test_the_policy_sees_an_observation_and_nothing_of_what_is_hidden():
    best, engine = seated(Longest(), "Which?", "Fee?")
    act(best)
    assert all(hidden_of(ROW).reference not in prompt for prompt in engine.prompts)
    assert all(not isinstance(v, HiddenInfo | TaskRow) for v in vars(best._policy).values())


def test_an_answer_can_be_the_best_and_ends_the_episode():
    said = act(seated(Longest(), "Fee?", "I WANT TO ANSWER:\ndef f(x): return x")[0])
    assert said.is_final and said.artifact == "def f(x): return x"


def test_of_one_message_it_says_what_the_policy_alone_would_say():
    best, engine = seated(Longest(), "Which?")
    plain = FakeEngine(["Which?"])
    alone = EnginePolicy("p", plain, Sampling(), "instructed")
    assert act(best).message == asyncio.run(alone.act(SEEN, seed=7)).message
    assert engine.calls == plain.calls


def test_messages_without_a_score_are_never_said():
    assert act(seated(Longest("Which fee is it?"), "Which?", "Which fee is it?")[0]).message == (
        "Which?"
    )
    with pytest.raises(PolicyError, match="none of 2 messages a score"):
        act(seated(Longest("a", "b"), "a", "b")[0])
    with pytest.raises(PolicyError, match="too long for the critic"):
        act(seated(Longest(reads=False), "a", "b")[0])
    with pytest.raises(PolicyError, match="said nothing in 2 tries"):
        act(seated(Longest(), " ", "<think>hm</think>")[0])


@pytest.mark.parametrize("option", ["n", "candidates", "concurrency"])
def test_less_than_one_of_anything_is_refused(option):
    wrong: dict[str, Any] = {option: 0}
    with pytest.raises(ConfigError, match=f"--{option} is 0"):
        BestOfPlan("judge", "mini-backend/validation", **wrong)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


def plan(critic: str, **more: Any) -> BestOfPlan:
    return BestOfPlan(critic, "mini-backend/validation", n=2, candidates=3, **more)


def measured(services: Services, critic: str, **more: Any) -> tuple[dict[str, Any], list]:
    seen: list = []
    found = best_of(services, plan(critic, **more), lambda *at: seen.append(at))
    return found, seen


def test_a_round_s_critic_and_an_untrained_one_pick_and_their_figures_have_an_interval(
    tmp_path, model
):
    with Services(settings(tmp_path, model)) as services:
        log_episodes(services)
        run_round(services, quick(algorithm="sweet-value", validation_n=1))
        before = services.store.search(EpisodeFilter()).count
        found, seen = measured(services, "r0001")
        assert found["n"] + found["unscored"] == 2 and seen[-1] == (2, 2)
        assert len(found["success_ci95"]) == 2 and found["reads_hidden"] is True
        assert "upper bound" in in_words(found) and found["note"] == ORACLE
        again, replayed = measured(services, "r0001")
        assert again == found and replayed == []
        other, seen = measured(services, "untrained", policy="v0001")
        assert other["policy"] == "v0001" and len(seen) == 2
        assert services.store.search(EpisodeFilter()).count == before  # nothing to learn from


def test_a_round_without_a_critic_and_one_there_is_not_are_refused(tmp_path, model):
    with Services(settings(tmp_path, model)) as services:
        log_episodes(services)
        run_round(services, quick(algorithm="rft", policy_epochs=1, validation_n=1))
        with pytest.raises(ConfigError, match=r"r0001 \(rft\) has no critic"):
            measured(services, "r0001")
        with pytest.raises(ConfigError, match="no round 'r0009'"):
            measured(services, "r0009")
        with pytest.raises(ConfigError, match="SWEET_JUDGE__MODEL"):
            measured(services, "judge")


def test_a_judge_behind_a_server_picks_and_one_that_is_gone_is_said(tmp_path, model, capsys):
    agent = ModelSettings(model=str(model), max_tokens=8)
    for answer, unscored in ((says("SCORE: 4"), 0), (refuses(401), 2)):
        with serving(answer) as server:
            judge = JudgeSettings(model=f"small{unscored}", base_url=server.base_url)
            given = Settings(data=tmp_path, agent=agent, judge=judge, max_turns=2)
            with Services(given) as services:
                found, _ = measured(services, "judge")
                assert (found["unscored"], found["n"]) == (unscored, 2 - unscored)
                assert server.asked
    assert "answered none of" in found["first_error"]
    assert "2 not scored, the first: " in in_words(found)


def test_web_pages_are_told_by_their_reward_with_its_interval():
    found = {
        "candidates": 2, "policy": "a", "critic": "r1", "tasks": "mini-frontend/test",
        "kind": "frontend", "n": 3, "reward": 0.5, "reward_ci95": [0.25, 0.75], "unscored": 0,
        "tests_passed": None, "success_rate": 0.0, "success_ci95": [0, 1], "reads_hidden": False,
    }  # fmt: skip
    assert in_words(found).endswith("n 3, reward 0.500 [0.250, 0.750]")
    assert in_words({**found, "n": 1, "reward_ci95": None}).endswith("reward 0.500 [n/a, n/a]")


def test_the_command_says_that_it_is_an_oracle(tmp_path, model, monkeypatch, capsys):
    for name, value in (("DATA", tmp_path), ("AGENT__MODEL", model), ("AGENT__MAX_TOKENS", 8)):
        monkeypatch.setenv(f"SWEET_{name}", str(value))
    monkeypatch.setenv("SWEET_MAX_TURNS", "1")
    command = ["bestof", "--critic", "untrained", "-n", "1", "--candidates", "2"]
    assert main(command) == 0
    assert "upper bound" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["candidates"] == 2
    assert main(["bestof", "--critic", "r0001"]) == 2

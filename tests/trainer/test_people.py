"""Rounds on what people graded, edited, retried and liked: real training on a tiny model."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from sweet.errors import ConfigError, TrainingError
from sweet.policy import EnginePolicy
from sweet.services import Services
from sweet.types import (
    ANSWER_MARK,
    Action,
    Episode,
    Feedback,
    HiddenInfo,
    PairSource,
    StopReason,
    TaskRow,
)
from tests.trainer.studio import log_episodes, quick, settings, tiny_model, train_rows
from trainer import baselines, whole
from trainer.round import run_round
from trainer.settings import RoundSettings

GOOD = "def fee(x): return 5 * x"
BAD = "def fee(x): return 0"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def services(tmp_path, model):
    with Services(settings(tmp_path / "data", model)) as opened:
        yield opened


def say(services: Services, episode: Episode, text: str, reply: str | None = "Five.") -> Episode:
    index = len(episode.turns)
    services.store.append_action(episode.id, index, Action(text, text, False))
    if reply is not None:
        services.store.append_reply(episode.id, index, reply)
    return services.store.episode(episode.id)


def answer(services: Services, episode: Episode, code: str, rating: float | None) -> Episode:
    store, index = services.store, len(episode.turns)
    store.append_action(episode.id, index, Action(f"{ANSWER_MARK}\n{code}", "", True, code))
    store.finish(episode.id, StopReason.ANSWERED, code)
    if rating is not None:
        store.add_feedback(Feedback(episode.id, None, rating))
    return store.episode(episode.id)


def begin(services: Services, row: TaskRow, seed: int = 0) -> Episode:
    policy = services.default_policy()
    return services.store.start_episode(row.task.id, policy, "person", seed, 2)


def own_task(services: Services, ratings=(-1.0, 1.0)) -> tuple[Episode, Episode]:
    """An own task as a person leaves it: a bad result, gone back to the first turn, a good one."""
    row = services.own_task("Make fee(x).")
    old = answer(services, say(services, begin(services, row), "Hm?"), BAD, ratings[0])
    fork = say(services, services.store.fork(old.id, 0), "How much is it?")
    return old, answer(services, fork, GOOD, ratings[1])


def result(services: Services, stage: str, round_id: str = "r0001") -> dict:
    (path,) = (services.settings.data / "rounds" / round_id).glob(f"*-{stage}.json")
    return json.loads(path.read_text())


def test_an_own_task_is_learned_from_and_its_accepted_artifact_is_read_by_the_critic_alone(
    services, monkeypatch
):
    old, new = own_task(services)
    read, seen = [], []
    real_prompt, real_draw = whole.critic_prompt, EnginePolicy.draw

    def critic_prompt(kind, style, hidden):
        read.append(hidden)
        return real_prompt(kind, style, hidden)

    def draw(self, observation, **how):
        seen.append(repr(observation))
        return real_draw(self, observation, **how)

    monkeypatch.setattr(whole, "critic_prompt", critic_prompt)
    monkeypatch.setattr(EnginePolicy, "draw", draw)
    run_round(services, quick())
    assert set(read) == {HiddenInfo(GOOD)}
    assert seen and not any(GOOD in one for one in seen)
    assert services.store.task_row(new.task_id).hidden is None, "the log is as it was"
    collected = result(services, "collect")
    assert collected["by_source"] == {"human": 2} and collected["success_rate"] == 0.5
    assert collected["episodes"] == [old.id, new.id], "the branch that was left is learned from"
    pairs = result(services, "pairs")
    assert (pairs["by_source"], pairs["turn_pairs"]) == ({"human": 1}, 1)
    assert pairs["episodes"] == [[new.id, old.id]]
    assert result(services, "policy")["by_source"]["human"] == 1


def test_grades_and_tests_stand_side_by_side_and_are_counted_apart(services):
    log_episodes(services)
    own_task(services)
    run_round(services, quick(algorithm="mtdpo", policy_epochs=1))
    assert result(services, "collect")["by_source"] == {"outcome": 4, "human": 2}
    assert result(services, "pairs")["by_source"] == {"outcome": 2, "human": 1}


def test_weight_0_leaves_out_all_that_people_preferred(services):
    log_episodes(services)
    old, _ = own_task(services)
    services.store.add_feedback(Feedback(old.id, 0, -1.0))
    run_round(services, quick(human_pairs=0.0))
    collected = result(services, "collect")
    left_out = {"replaced by an edit or a retry": 1, "no hidden information": 1}
    assert collected["left_out"] == left_out
    assert (collected["turns"], collected["grades"], collected["accepted"]) == ([], {}, {})
    assert result(services, "pairs")["by_source"] == {"outcome": 2}
    assert result(services, "policy")["by_source"]["human"] == 0
    run_round(services, quick(algorithm="rft", human_pairs=0.0, policy_epochs=1))
    left_out = {"replaced by an edit or a retry": 1, "only graded by a person": 1}
    assert result(services, "collect", "r0002")["left_out"] == left_out


def test_a_weight_changes_the_loss_but_not_what_is_counted(services):
    own_task(services)
    losses = []
    for number, weight in enumerate((1.0, 0.5), start=1):
        run_round(services, quick(algorithm="mtdpo", policy_epochs=1, human_pairs=weight))
        found = result(services, "policy", f"r000{number}")["epochs"][0]
        losses.append(found["loss"])
        assert found["margin"] == pytest.approx(0, abs=1e-5)
    assert losses[1] == pytest.approx(losses[0] / 2)
    with pytest.raises(ConfigError, match="--human-pairs is -1"):
        RoundSettings(human_pairs=-1.0)


@pytest.mark.parametrize("algorithm", ["mtdpo", "sweet-untrained"])
def test_in_one_update_each_pair_weighs_what_its_source_does(services, algorithm):
    log_episodes(services)
    own_task(services)
    how = {"policy_epochs": 1, "policy_batch": 1000, "policy_nll": 0.0, "human_pairs": 0.25}
    run_round(services, quick(algorithm=algorithm, **how))
    stage = "policy" if algorithm == "sweet-untrained" else "pairs"
    human, others = (result(services, stage)["by_source"].pop(s, 0) for s in ("human", "outcome"))
    others = others or result(services, stage)["by_source"]["critic"]
    assert human == 1 and others >= 2
    (epoch,) = result(services, "policy")["epochs"]
    expected = math.log(2) * (others + 0.25 * human) / (others + human)
    assert epoch["loss"] == pytest.approx(expected, abs=1e-5)


def test_without_a_grade_there_is_no_reward_and_what_was_edited_still_teaches(services):
    log_episodes(services)
    own_task(services, (None, None))
    run_round(services, quick())
    collected = result(services, "collect")
    assert collected["left_out"] == {
        "replaced by an edit or a retry": 1,
        "no hidden information": 1,
    }
    assert collected["by_source"] == {"outcome": 4}
    assert len(collected["turns"]) == 1
    assert result(services, "policy")["by_source"]["human"] == 1


def test_an_own_task_of_which_nothing_was_accepted_has_nothing_for_the_critic_to_read(services):
    own_task(services, (-1.0, 0.0))
    with pytest.raises(TrainingError, match=r"2 no hidden information.*as good"):
        run_round(services, quick())
    run_round(services, quick(algorithm="mtdpo", policy_epochs=1))
    assert result(services, "pairs", "r0002")["by_source"] == {"human": 1}  # partly beats bad


def test_rejection_fine_tuning_repeats_what_a_person_found_good_and_nothing_else(
    services, monkeypatch
):
    _, new = own_task(services)
    own_task(services, (None, 0.0))  # partly right is no success
    repeated = []
    real = baselines.read_episode

    def read_episode(learner, style, row, episode, **how):
        repeated.append(episode.id)
        return real(learner, style, row, episode, **how)

    monkeypatch.setattr(baselines, "read_episode", read_episode)
    run_round(services, quick(algorithm="rft", policy_epochs=1))
    assert result(services, "collect")["chosen"] == 3
    assert repeated == [new.id]


def test_likes_and_forks_of_tasks_for_measuring_are_never_learned_from(services):
    log_episodes(services)
    row = TaskRow(replace(train_rows()[0].task, id="held", split="test"), None)
    services.store.add_tasks([row])
    old = say(services, begin(services, row), "Hm?")
    say(services, services.store.fork(old.id, 0), "How much is it?")
    run_round(services, quick())
    assert result(services, "collect")["turns"] == []


def test_a_resumed_round_learns_from_the_grades_and_forks_that_it_began_with(services):
    _, new = own_task(services)
    done = run_round(services, quick(algorithm="mtdpo", policy_epochs=1))
    first = result(services, "policy")
    folder = services.settings.data / "rounds" / done.id
    for path in folder.glob("0[2-9]-*.json"):
        path.unlink()
    (folder / "policy.pt").unlink(missing_ok=True)
    services.store._set_round(done.id, "ended_at = NULL, process_id = 0")
    services.store.add_feedback(Feedback(new.id, None, -1.0))
    say(services, services.store.fork(new.id, 0), "What else?")
    run_round(services, resume=done.id)
    again = result(services, "policy")
    assert again["epochs"] == first["epochs"]
    assert result(services, "pairs")["by_source"] == {PairSource.HUMAN: 1}


def test_a_liked_message_teaches_against_a_disliked_one(services):
    log_episodes(services)
    row = train_rows()[0]
    for seed, (text, rating) in enumerate((("How much is it?", 1.0), ("Hm?", -1.0)), start=10):
        episode = say(services, begin(services, row, seed), text)
        services.store.add_feedback(Feedback(episode.id, 0, rating))
    run_round(services, quick(algorithm="sweet-untrained"))
    counted = result(services, "policy")["by_source"]
    assert counted["human"] == 1 and counted["critic"] > 1

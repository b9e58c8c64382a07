from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from sweet.errors import TrainingError
from sweet.types import (
    Action,
    Episode,
    Evaluation,
    HiddenInfo,
    PairLevel,
    PairSource,
    Reward,
    StopReason,
    Task,
    TaskKind,
    TaskRow,
    Turn,
    Verdict,
)
from trainer.pairs import RULES, PairRule, episode_pairs, hidden_of, reward_of

BACKEND, FRONTEND = TaskKind.BACKEND, TaskKind.FRONTEND


def tasks(kind: TaskKind = BACKEND, *ids: str) -> dict[str, TaskRow]:
    return {
        id: TaskRow(Task(id, kind, f"Make {id}.", "train", "own"), HiddenInfo(f"ref {id}"))
        for id in ids or ("a",)
    }


def episode(id: str, reward: float | None, task_id: str = "a", turns: int = 2) -> Episode:
    said = tuple(
        Turn(i, Action(f"{id} {i}", f"{id} {i}", i == turns - 1), None if i == turns - 1 else "ok")
        for i in range(turns)
    )
    scored = None if reward is None else Reward(reward, {}, "test")
    verdict = Verdict.INFRA if reward is None else Verdict.PASS
    return Episode(
        id,
        task_id,
        "embedded",
        "scripted",
        0,
        turns=said,
        stop_reason=StopReason.ANSWERED,
        evaluation=Evaluation(scored, verdict),
    )


def episodes(*rewards: float | None, task_id: str = "a") -> list[Episode]:
    return [episode(f"{task_id}{i}", r, task_id) for i, r in enumerate(rewards)]


def ids(pairs) -> list[tuple[str, str]]:
    return [pair.episode_ids for pair in pairs]


def test_backend_takes_the_best_episode_against_each_worse_one():
    pairs = episode_pairs(episodes(0.0, 1.0, 0.0, 1.0), tasks())
    assert ids(pairs) == [("a1", "a0"), ("a1", "a2")]
    assert all(pair.scores == (1.0, 0.0) for pair in pairs)


def test_backend_takes_nothing_where_nobody_succeeded():
    both = [*episodes(0.3, 0.0), *episodes(0.0, 1.0, task_id="b")]
    assert ids(episode_pairs(both, tasks(BACKEND, "a", "b"))) == [("b1", "b0")]


def test_frontend_takes_every_pair_that_differs_by_a_tenth():
    pairs = episode_pairs(episodes(0.8, 0.9, 0.85, 0.5), tasks(FRONTEND))
    assert ids(pairs) == [("a1", "a0"), ("a0", "a3"), ("a1", "a3"), ("a2", "a3")]


@pytest.mark.parametrize("step", range(10))
def test_exactly_a_tenth_is_enough_whatever_floating_point_makes_of_it(step):
    rewards = step / 10, (step + 1) / 10
    assert len(episode_pairs(episodes(*rewards), tasks(FRONTEND))) == 1


def test_pages_that_two_evaluators_scored_are_never_compared():
    good, poor = (Reward(value, {}, "clip:ViT-B-32/openai") for value in (0.9, 0.5))
    by_clip = [
        replace(e, evaluation=Evaluation(reward, Verdict.WRONG))
        for e, reward in zip(episodes(0.0, 0.0), (good, poor), strict=True)
    ]
    seen = [replace(e, id=f"v{e.id}") for e in episodes(0.2)]
    pairs = episode_pairs([*by_clip, *seen], tasks(FRONTEND))
    assert ids(pairs) == [(by_clip[0].id, by_clip[1].id)]


def test_rules_can_be_set():
    every = {**RULES, BACKEND: PairRule(best_only=False, min_difference=0.3)}
    pairs = episode_pairs(episodes(0.2, 0.4, 0.6, 0.0), tasks(), every)
    assert ids(pairs) == [("a2", "a0"), ("a1", "a3"), ("a2", "a3")]
    least = {**RULES, FRONTEND: PairRule(best_only=True, chosen_at_least=0.5)}
    assert ids(episode_pairs(episodes(0.4, 0.5), tasks(FRONTEND), least)) == [("a1", "a0")]
    with pytest.raises(TrainingError):
        episode_pairs(episodes(0.4, 0.3), tasks(FRONTEND), least)


def test_equal_rewards_make_no_pair_even_under_the_widest_rule():
    widest = {BACKEND: PairRule(best_only=False)}
    pairs = episode_pairs(episodes(0.5, 0.5, 0.7, 0.7), tasks(), widest)
    assert len(pairs) == 4
    assert all(pair.scores == (0.7, 0.5) for pair in pairs)


@pytest.mark.parametrize("kind", TaskKind)
def test_the_better_one_is_always_chosen_whatever_the_order(kind):
    given = episodes(1.0, 0.0, 0.5)
    rows = tasks(kind)
    forth, back = (episode_pairs(e, rows) for e in (given, given[::-1]))
    assert set(ids(forth)) == set(ids(back))
    assert all(pair.scores[0] > pair.scores[1] for pair in forth)


def test_an_episode_without_a_reward_is_in_no_pair():
    given = episodes(None, 1.0, 0.0, None)
    for rule in (PairRule(best_only=True), PairRule(best_only=False)):
        assert ids(episode_pairs(given, tasks(), {BACKEND: rule})) == [("a1", "a2")]


def test_an_episode_in_which_nothing_was_said_is_in_no_pair():
    given = [episode("x", 0.0, turns=0), *episodes(1.0, 0.0)]
    assert ids(episode_pairs(given, tasks())) == [("a0", "a1")]


def test_the_same_episode_given_twice_counts_once():
    given = episodes(1.0, 0.0)
    assert len(episode_pairs([*given, *given], tasks())) == 1


def test_episodes_of_different_tasks_are_never_compared():
    given = [*episodes(1.0, task_id="a"), *episodes(0.0, 0.0, 1.0, task_id="b")]
    pairs = episode_pairs(given, tasks(BACKEND, "a", "b"))
    assert {pair.task_id for pair in pairs} == {"b"}


def test_a_pair_holds_whole_episodes_after_the_bare_task():
    (pair,) = episode_pairs(episodes(0.0, 1.0), tasks())
    assert (pair.level, pair.source) == (PairLevel.TRAJECTORY, PairSource.OUTCOME)
    assert pair.observation.description == "Make a."
    assert (pair.observation.exchanges, pair.observation.turns_left) == ((), 10)
    assert [turn.action.raw for turn in pair.chosen] == ["a1 0", "a1 1"]
    assert [turn.action.raw for turn in pair.rejected] == ["a0 0", "a0 1"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "0 of 0 have a reward"),
        (episodes(1.0), "1 of 1 have a reward"),
        (episodes(None, None, 1.0), "1 of 3 have a reward"),
        ([*episodes(1.0), *episodes(0.0, task_id="b")], "No two of the 2 scored episodes"),
        (episodes(0.0, 0.0, 0.0), "All 3 scored episodes have the same reward, 0,"),
        ([*episodes(1.0, 1.0), *episodes(0.0, 0.0, task_id="b")], "None of 2 tasks with 4"),
        (episodes(0.2, 0.4), "rewards from 0.2 to 0.4"),
    ],
)
def test_no_pair_is_an_error_that_says_why_and_what_helps(given, message):
    with pytest.raises(TrainingError, match=message) as caught:
        episode_pairs(given, tasks(BACKEND, "a", "b"))
    assert any(word in str(caught.value).lower() for word in ("collect", "score"))


def test_an_episode_of_an_unknown_task_is_named():
    with pytest.raises(TrainingError, match=r"1 tasks .*\(zzz\)"):
        episode_pairs([*episodes(1.0, 0.0), *episodes(1.0, task_id="zzz")], tasks())


def test_hidden_information_is_given_by_task_and_missed_by_name():
    rows = tasks(BACKEND, "a", "b", "c")
    assert hidden_of(rows, ["b", "a", "b"]) == {"b": HiddenInfo("ref b"), "a": HiddenInfo("ref a")}
    rows["b"] = TaskRow(rows["b"].task, None)
    assert list(hidden_of(rows, ["a", "c"])) == ["a", "c"]
    with pytest.raises(TrainingError, match=r"1 of 2 tasks have no hidden information.*\(b\)"):
        hidden_of(rows, ["a", "b"])
    with pytest.raises(TrainingError, match="not among the tasks"):
        hidden_of(rows, ["zzz"])


def test_a_missing_reward_is_not_a_reward_of_0():
    assert reward_of(episode("x", 0.0)) == 0.0
    with pytest.raises(TrainingError, match="'x' has no reward"):
        reward_of(episode("x", None))


def test_three_or_more_rewards_give_as_many_pairs_as_the_rule_says():
    rewards = (0.0, 0.05, 0.1, 0.15, 0.9)
    pairs = episode_pairs(episodes(*rewards), tasks(FRONTEND))
    assert len(pairs) == sum(b - a >= 0.1 - 1e-9 for a, b in combinations(rewards, 2))

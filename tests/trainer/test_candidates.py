from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from sweet.errors import PolicyError, TrainingError
from sweet.policy import EnginePolicy
from sweet.store import RankedCandidate
from sweet.types import Completion, Sampling
from tests.fakes import FakeEngine, task_row
from tests.trainer.test_pairs import episode
from trainer.candidates import Candidate, rank_pairs, ranked_turns, sample_candidates

ROW = task_row()
ONE = episode("e", 1.0, ROW.task.id)


class Cutting(FakeEngine):
    """Texts from odd seeds are cut by the token limit."""

    async def complete(self, messages, sampling, *, adapter=None, on_text=None):
        done = await super().complete(messages, sampling, adapter=adapter)
        return Completion(done.text, None, 1.0, "length" if (sampling.seed or 0) % 2 else "stop")


def sample(engine, n=4, seed=3, one=ONE):
    policy = EnginePolicy("p", engine, Sampling(temperature=0), "plain", "adapter")
    return asyncio.run(sample_candidates(policy, ROW, one, seed=seed, n=n))


def test_every_turn_gets_its_own_draws_at_temperature_1_from_its_own_observation():
    engine = FakeEngine(lambda messages, s: f"{len(messages)} {s.seed}")
    turns = sample(engine)
    assert [len(turn) for turn in turns] == [4, 4]
    assert [turn[0].text[0] for turn in turns] == ["1", "3"]
    assert {(s.temperature, adapter) for _, s, adapter in engine.calls} == {(1.0, "adapter")}
    assert len({s.seed for _, s, _ in engine.calls}) == 8


def test_the_same_seed_draws_the_same_whatever_the_episode_s_id():
    def say(messages, s):
        return str(s.seed)

    first = sample(FakeEngine(say))
    again = sample(FakeEngine(say), one=episode("another id", 1.0, ROW.task.id))
    assert first == again
    assert sample(FakeEngine(say), seed=4) != first


def test_equal_messages_are_merged_and_counted():
    engine = FakeEngine(lambda messages, s: "same" if (s.seed or 0) % 2 else " same ")
    assert sample(engine) == [[Candidate("same", 4)]] * 2


def test_a_cut_message_is_another_than_the_same_one_ended():
    first, _ = sample(Cutting(lambda messages, s: "same"), n=16)
    assert {c.is_ended for c in first} == {True, False}
    assert len(first) == 2 and sum(c.count for c in first) == 16


def test_nothing_said_is_no_candidate():
    texts = iter(["", "<think>hm</think>", "A?", "B?"] * 2)
    turns = sample(FakeEngine(texts))
    assert sum(map(len, turns)) == 4
    assert all(c.said for turn in turns for c in turn)


def test_a_failed_model_is_an_error_and_no_candidate():
    with pytest.raises(TrainingError, match=r"episode e could not be drawn.*HTTP 503"):
        sample(FakeEngine([PolicyError("HTTP 503")] * 8))


def test_chosen_is_from_the_better_half_and_rejected_from_the_worse():
    scores = [0.1, 0.9, 0.5, 0.7, 0.2, 0.3]
    for seed in range(20):
        pairs = rank_pairs(scores, [1] * 6, random.Random(seed))
        assert len(set(pairs)) == 4
        assert all(c in (1, 3, 2) and r in (0, 4, 5) for c, r in pairs)


def test_pairs_are_drawn_by_the_seed():
    scores, ones = list(range(16)), [1] * 16
    first = rank_pairs(scores, ones, random.Random(1))
    assert first == rank_pairs(scores, ones, random.Random(1))
    assert first != rank_pairs(scores, ones, random.Random(2))


@pytest.mark.parametrize("scores", [[], [1.0], [0.5] * 8])
def test_equal_scores_make_no_pair(scores):
    assert rank_pairs(scores, [1] * len(scores), random.Random(0)) == []


def test_no_pair_has_equal_scores_where_some_differ():
    pairs = rank_pairs([1.0, 0.0, 0.0, 0.0], [1] * 4, random.Random(0))
    assert set(pairs) <= {(0, 2), (0, 3)} and pairs


def test_fewer_possible_pairs_than_asked_are_all_taken():
    assert rank_pairs([1.0, 0.0], [1, 1], random.Random(0)) == [(0, 1)]


def test_a_message_drawn_often_keeps_its_places_in_the_ranking():
    counted: Counter = Counter()
    for seed in range(200):
        counted.update(rank_pairs([0.9, 0.5, 0.1], [1, 6, 1], random.Random(seed)))
    # Draws in order: 0 | 1 1 1 | 1 1 1 | 2. The one message of the middle is on both sides.
    assert set(counted) == {(0, 1), (0, 2), (1, 2)}
    assert counted[(0, 1)] > counted[(0, 2)]


def test_the_log_gets_scores_counts_and_sides_of_pairs():
    drawn = [Candidate("a", 3), Candidate("b", 2, False), Candidate("c", 1)]
    ranked = {"scores": [0.5, 0.1, -0.2], "pairs": [(0, 2), (0, 1), (1, 2)]}
    assert ranked_turns([drawn, []], [ranked, {"scores": [], "pairs": []}]) == {
        0: [
            RankedCandidate("a", 3, 0.5, chosen=2),
            RankedCandidate("b", 2, 0.1, chosen=1, rejected=1, is_ended=False),
            RankedCandidate("c", 1, -0.2, rejected=2),
        ]
    }


def test_candidates_with_other_thoughts_are_one_message_in_the_log():
    thought = [Candidate(f"<think>{n}</think>Which?", n) for n in (1, 2)]
    drawn = [*thought, Candidate("Which?", 1, False)]
    ranked = {"scores": [0.5, 0.5, 0.4], "pairs": [(0, 2), (1, 2)]}
    assert ranked_turns([drawn], [ranked])[0] == [
        RankedCandidate("Which?", 3, 0.5, chosen=2),
        RankedCandidate("Which?", 1, 0.4, rejected=2, is_ended=False),
    ]

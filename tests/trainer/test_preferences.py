"""The pairs that a log holds, from votes to what TRL trains on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweet.exchange import export_preferences, import_episodes
from sweet.store import Choice, EpisodeStore, Voter
from sweet.types import (
    Episode,
    EpisodeFilter,
    Feedback,
    PairLevel,
    PairSource,
    PreferencePair,
    StopReason,
)
from tests.sweet.engines.tiny import llama, save
from tests.sweet.store.samples import TASK, TASK_ROW, answers, asks, evaluation, task_row
from trainer.preferences import preference_pairs, vote_pairs


@pytest.fixture
def store(tmp_path: Path):
    with EpisodeStore.open(tmp_path / "sweet.db") as opened:
        opened.add_tasks([TASK_ROW, task_row(2, split="train")])
        yield opened


def played(store: EpisodeStore, policy: str, *questions: str, code: str = "x = 1") -> Episode:
    episode = store.start_episode(TASK.id, policy, "person", 7)
    for index, question in enumerate(questions):
        store.append_action(episode.id, index, asks(question))
        store.append_reply(episode.id, index, f"answer {index}")
    store.append_action(episode.id, len(questions), answers(code))
    return store.finish(episode.id, StopReason.ANSWERED, code)


def voted(store: EpisodeStore, better: Episode, worse: Episode, *voters: str, **more):
    """A comparison on which all voters prefer the same side."""
    comparison = store.start_comparison(better.id, worse.id)
    side = Choice.LEFT if comparison.left == better.id else Choice.RIGHT
    for voter in voters:
        store.vote(comparison.id, side, voter, **more)
    return comparison, side


def sides(pairs: list[PreferencePair]) -> list[tuple]:
    return [(pair.level, *pair.episode_ids) for pair in pairs]


def test_a_vote_makes_a_pair_of_whole_episodes(store) -> None:
    short, long = played(store, "a", "One?"), played(store, "b", "One?", "Two?", "Three?")
    voted(store, short, long, "ann")
    (pair,) = vote_pairs(store)
    assert sides([pair]) == [(PairLevel.TRAJECTORY, short.id, long.id)]
    assert (pair.chosen, pair.rejected) == (short.turns, long.turns)
    assert (pair.source, pair.scores) == (PairSource.VOTE, (1.0, 0.0))
    assert pair.observation.exchanges == ()
    assert pair.observation.turns_left == 10


def test_where_one_message_differs_it_makes_a_pair_of_that_turn_too(store) -> None:
    good, bad = (played(store, p, "One?", code=c) for p, c in (("a", "x = 5"), ("b", "x = 1")))
    voted(store, good, bad, "ann")
    whole, turn = vote_pairs(store)
    assert (whole.level, turn.level) == (PairLevel.TRAJECTORY, PairLevel.TURN)
    assert whole.source is turn.source is PairSource.VOTE
    assert [t.index for t in (*turn.chosen, *turn.rejected)] == [1, 1]
    assert len(turn.observation.exchanges) == 1


def test_two_differences_or_other_replies_make_no_pair_of_a_turn(store) -> None:
    first = played(store, "a", "One?", code="x = 1")
    voted(store, first, played(store, "b", "Two?", code="x = 2"), "ann")
    episode = store.start_episode(TASK.id, "c", "person", 7)
    store.append_action(episode.id, 0, asks("One?"))
    store.append_reply(episode.id, 0, "another answer")
    store.append_action(episode.id, 1, answers("x = 3"))
    voted(store, first, store.finish(episode.id, StopReason.ANSWERED, "x = 3"), "ann")
    assert {pair.level for pair in vote_pairs(store)} == {PairLevel.TRAJECTORY}


def test_the_majority_of_people_counts_and_a_draw_makes_no_pair(store) -> None:
    one, two = played(store, "a", "One?"), played(store, "b", "Two?", "Three?")
    comparison, side = voted(store, one, two, "ann", "bob")
    other = Choice.LEFT if side is Choice.RIGHT else Choice.RIGHT
    store.vote(comparison.id, other, "cid")
    assert [pair.episode_ids for pair in vote_pairs(store)] == [(one.id, two.id)]
    store.vote(comparison.id, other, "dan")
    store.vote(comparison.id, Choice.TIE, "eve")
    assert list(vote_pairs(store)) == []


def test_votes_on_two_comparisons_of_the_same_episodes_are_one_count(store) -> None:
    one, two = played(store, "a", "One?"), played(store, "b", "Two?", "Three?")
    voted(store, one, two, "ann", "bob")
    voted(store, two, one, "cid")
    assert [pair.episode_ids for pair in vote_pairs(store)] == [(one.id, two.id)]
    voted(store, two, one, "dan")
    assert list(vote_pairs(store)) == []


def test_a_judge_is_no_person_and_an_open_vote_can_be_left_out(store) -> None:
    one, two = played(store, "a", "One?"), played(store, "b", "Two?", "Three?")
    voted(store, one, two, "judge:m", by=Voter.JUDGE)
    assert list(vote_pairs(store)) == []
    voted(store, two, one, "ann", side_named=True)
    assert len(list(vote_pairs(store))) == 1
    assert list(vote_pairs(store, blind_only=True)) == []


def test_all_that_the_log_holds_is_given_once(store, tmp_path: Path) -> None:
    good, bad = played(store, "a", "One?"), played(store, "b", "Two?", "Three?")
    store.add_evaluation(good.id, evaluation(1.0))
    store.add_evaluation(bad.id, evaluation(0.0))
    voted(store, good, bad, "ann")
    store.add_feedback(Feedback(good.id, 0, 1.0))
    store.add_feedback(Feedback(bad.id, 0, -1.0))
    found = list(preference_pairs(store))
    assert [(pair.level, pair.source) for pair in found] == [
        (PairLevel.TRAJECTORY, PairSource.VOTE),
        (PairLevel.TURN, PairSource.HUMAN),
        (PairLevel.TRAJECTORY, PairSource.OUTCOME),
    ]
    path = tmp_path / "pairs.jsonl"
    assert export_preferences(found, path) == 3
    with EpisodeStore.open(tmp_path / "other.db") as other:
        assert import_episodes(other, path).added == 3
        again = tmp_path / "again.jsonl"
        assert export_preferences(preference_pairs(other), again) == 3
        assert again.read_text() == path.read_text()
        assert list(preference_pairs(other, EpisodeFilter(policy_id="a"))) == []
    assert list(preference_pairs(store, EpisodeFilter(task_set="none"))) == []
    one_side = list(preference_pairs(store, EpisodeFilter(policy_id="a")))
    assert [(pair.level, pair.source) for pair in one_side] == [
        (PairLevel.TRAJECTORY, PairSource.VOTE)
    ]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_load_dataset_reads_them_and_trl_trains_a_step_on_them(
    store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    import torch
    from datasets import load_dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import DPOConfig, DPOTrainer

    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    for number in range(2):
        good = played(store, "a", "One?", code=f"x = {number}")
        bad = played(store, "b", "One?", code=f"y = {number}")
        voted(store, good, bad, "ann")
    path = tmp_path / f"pairs.{ending}"
    assert export_preferences(preference_pairs(store), path) == 4
    kind = "json" if ending == "jsonl" else ending
    read = load_dataset(kind, data_files=str(path), split="train", cache_dir=str(tmp_path / "c"))
    assert read.num_rows == 4
    assert read[0]["prompt"][0] == {"role": "user", "content": TASK.description}
    folder = save(llama(max_position_embeddings=512), tmp_path / "model")
    model = AutoModelForCausalLM.from_pretrained(folder)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    settings = DPOConfig(
        str(tmp_path / "out"), max_steps=1, per_device_train_batch_size=2, use_cpu=True,
        bf16=False, learning_rate=1e-3, report_to=[], save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    trainer = DPOTrainer(
        model,
        args=settings,
        train_dataset=read,
        processing_class=AutoTokenizer.from_pretrained(folder),
    )
    result = trainer.train()
    assert result.global_step == 1
    assert result.training_loss == pytest.approx(0.6931, abs=0.01)  # log 2: nothing learned yet
    moved = [n for n, w in model.named_parameters() if not torch.equal(w, before[n])]
    assert len(moved) > 0

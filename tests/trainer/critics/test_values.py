"""The critic with a value head: zero at first, trained on pairs, ranks by the value after."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from sweet.errors import TrainingError
from sweet.types import Action, HiddenInfo, Turn
from tests.fakes import task_row
from tests.trainer.studio import tiny_model
from tests.trainer.test_pairs import episode
from trainer.candidates import Candidate
from trainer.critics.values import ValueCritic, token_values
from trainer.encoding import candidate_ids
from trainer.fit import FitSettings
from trainer.learner import Learner, load_learner
from trainer.pairs import episode_pairs
from trainer.whole import read_episode

ROW = task_row()
ROWS = {ROW.task.id: ROW}
EPISODES = [episode(f"e{i}", reward, ROW.task.id) for i, reward in enumerate((1.0, 0.0, 0.0))]
HOW = FitSettings(lr=1e-2, epochs=2, batch=2, seed=1)


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> str:
    return str(tiny_model(tmp_path_factory.mktemp("model")))


def learner(source: str, trained=None, whole=False) -> Learner:
    return load_learner(
        source, None, rank=2, seed=0, device="cpu", trained=trained, whole=whole, with_head=True
    )


def trained(source: str, tmp_path, whole=False):
    made, seen = ValueCritic(learner(source, whole=whole), "plain"), []
    numbers = made.fit(
        episode_pairs(EPISODES, ROWS),
        ROWS,
        HOW,
        checkpoint=tmp_path / "c.pt",
        report=lambda step, total, values: seen.append(values),
    )
    return made, seen, numbers


@pytest.mark.parametrize("whole", [False, True])
def test_it_begins_at_ln_2_and_learns_which_episode_is_better(source, tmp_path, whole):
    made, seen, numbers = trained(source, tmp_path, whole)
    assert seen[0]["margin"] == 0
    assert seen[0]["loss"] == pytest.approx(math.log(2), abs=1e-6)
    assert numbers[-1]["margin"] > 0
    best, worse, _ = made.advantages(ROWS, EPISODES)
    assert sum(best.values()) > sum(worse.values())


def test_an_untrained_head_values_everything_at_0(source):
    for values in ValueCritic(learner(source), "plain").advantages(ROWS, EPISODES):
        assert values == {0: 0.0, 1: 0.0}


def test_a_turn_s_value_is_the_head_s_output_at_its_last_token(source, tmp_path):
    made, _, _ = trained(source, tmp_path)
    trunk = read_episode(made.learner, "plain", ROW, EPISODES[0], reads_hidden=True)
    assert trunk
    ids = torch.tensor([trunk.ids])
    with torch.no_grad():
        network = made.learner.model.get_base_model().model  # what the language model's head reads
        by_hand = made.learner.head(network(ids).last_hidden_state)[0, :, 0]
        assert torch.allclose(token_values(made.learner, [trunk.ids])[0], by_hand, atol=1e-6)
    (found,) = made.advantages(ROWS, [EPISODES[0]])
    assert found == {
        n: pytest.approx(float(by_hand[end - 1]), abs=1e-5)
        for n, (_, end) in enumerate(trunk.spans)
    }


def test_padding_changes_no_value(source, tmp_path):
    made, _, _ = trained(source, tmp_path)
    short, long = [1, 20, 30], [1, 20, 30, 40, 50, 60]
    with torch.no_grad():
        alone = token_values(made.learner, [short])
        together = token_values(made.learner, [short, long])
    assert torch.allclose(alone[0], together[0, :3], atol=1e-6)


def test_a_candidate_scores_as_the_same_message_does_in_the_log(source, tmp_path):
    made, _, _ = trained(source, tmp_path)
    one = EPISODES[0]
    said = [[Candidate(t.action.raw), Candidate("something else")] for t in one.turns]
    scores = made.scores(ROW, one, said)
    (logged,) = made.advantages(ROWS, [one])
    assert [turn[0] for turn in scores] == pytest.approx(list(logged.values()), abs=1e-5)
    assert all(turn[0] != turn[1] for turn in scores)
    assert made.scores(ROW, one, [[] for _ in one.turns]) == [[] for _ in one.turns]


def test_ranking_through_the_shared_trunk_gives_what_separate_passes_give(source, tmp_path):
    made, _, _ = trained(source, tmp_path)
    one = EPISODES[0]
    texts = ("Short?", "A much longer question, is it?", "?")
    said = [[Candidate(t) for t in texts], [Candidate("cut off he", is_ended=False)]]
    trunk = read_episode(made.learner, "plain", ROW, one, reads_hidden=True)
    assert trunk is not None
    separate = [
        [
            float(token_values(made.learner, [[*trunk.ids[:start], *ids]])[0, -1].detach())
            for c in turn
            for ids in [candidate_ids(made.learner.tokenizer, trunk, c.said, ended=c.is_ended)]
        ]
        for (start, _), turn in zip(trunk.spans, said, strict=True)
    ]
    scores = made.scores(ROW, one, said)
    assert [len(turn) for turn in scores] == [3, 1]
    for ours, theirs in zip(scores, separate, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
    assert len(set(scores[0])) == 3


def test_it_reads_hidden_information_and_misses_it_by_name(source, tmp_path):
    made, _, _ = trained(source, tmp_path)
    other = replace(ROW, hidden=HiddenInfo("def f(x):\n    return 'other'"))
    said = [[Candidate("Which?")], [Candidate("Now?")]]
    assert made.scores(ROW, EPISODES[0], said) != made.scores(other, EPISODES[0], said)
    with pytest.raises(TrainingError, match="no hidden information"):
        made.scores(replace(ROW, hidden=None), EPISODES[0], said)


def test_an_episode_that_does_not_fit_has_no_value(source):
    long = "x" * 5000
    big = replace(EPISODES[1], turns=(Turn(0, Action(long, long, True, long)),))
    made = ValueCritic(learner(source), "plain")
    first, none = made.advantages(ROWS, [EPISODES[0], big])
    assert first is not None and none is None
    assert made.scores(ROW, big, [[Candidate("Short?")]]) is None
    assert made.scores(ROW, EPISODES[0], [[Candidate(long)], []]) is None


@pytest.mark.parametrize("whole", [False, True])
def test_head_and_model_are_saved_together(source, tmp_path, whole):
    made, _, _ = trained(source, tmp_path, whole)
    folder = made.learner.save(tmp_path / "critic")
    again = ValueCritic(learner(source, folder, whole), "plain")
    assert again.advantages(ROWS, EPISODES) == made.advantages(ROWS, EPISODES)

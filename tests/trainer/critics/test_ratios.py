from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from sweet.errors import TrainingError
from sweet.types import Action, Episode, HiddenInfo, Turn
from tests.fakes import task_row
from tests.trainer.studio import tiny_model
from tests.trainer.test_pairs import episode
from trainer.candidates import Candidate
from trainer.critics.ratios import Critic, CriticSettings
from trainer.encoding import Trunk
from trainer.fit import FitSettings, fit
from trainer.learner import Learner, load_learner
from trainer.pairs import episode_pairs
from trainer.tree import sequence_logps
from trainer.whole import fit_rows, read_episode

ROW = task_row()
ROWS = {ROW.task.id: ROW}
HOW = FitSettings(lr=1e-2, epochs=2, batch=2, seed=1)


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> str:
    return str(tiny_model(tmp_path_factory.mktemp("model")))


def trunk_of(one: Learner, said: Episode, reads_hidden: bool = False) -> Trunk:
    trunk = read_episode(one, "plain", ROW, said, reads_hidden=reads_hidden)
    assert trunk
    return trunk


def learner(source: str, parent: str | None = None, trained=None) -> Learner:
    return load_learner(source, parent, rank=2, seed=0, device="cpu", trained=trained)


def critic(source: str, parent: str | None = None, **changes) -> Critic:
    return Critic(learner(source, parent), "plain", CriticSettings(**changes))


def episodes() -> list[Episode]:
    return [episode(f"e{i}", reward, ROW.task.id) for i, reward in enumerate((1.0, 0.0, 0.0))]


def trained(source: str, tmp_path, report=lambda *_: None, parent=None, **changes):
    made = critic(source, parent, **changes)
    pairs = episode_pairs(episodes(), ROWS)
    numbers = made.fit(pairs, ROWS, HOW, checkpoint=tmp_path / "c.pt", report=report)
    return made, numbers


def test_the_first_update_finds_margin_0_and_loss_ln_2(source, tmp_path):
    seen = []
    trained(source, tmp_path, lambda *update: seen.append(update), nll_coefficient=0.0)
    step, total, numbers = seen[0]
    assert (step, total) == (1, 2)
    assert numbers["margin"] == pytest.approx(0, abs=1e-5)
    assert numbers["loss"] == pytest.approx(math.log(2), abs=1e-5)


def test_training_makes_the_better_episode_score_higher(source, tmp_path):
    made, numbers = trained(source, tmp_path)
    assert numbers[-1]["margin"] > numbers[0]["margin"]
    best, worse, _ = made.advantages(ROWS, episodes())
    assert sum(best.values()) > sum(worse.values())


def test_an_untrained_critic_finds_every_turn_worth_0(source):
    for values in critic(source).advantages(ROWS, episodes()):
        assert values == {0: pytest.approx(0, abs=1e-5), 1: pytest.approx(0, abs=1e-5)}


@pytest.mark.parametrize("credit", ["turn_sum", "turn_mean"])
def test_an_advantage_is_the_log_ratio_of_the_turn_s_own_tokens(source, tmp_path, credit):
    made, _ = trained(source, tmp_path, credit=credit)
    one = episodes()[0]
    trunk = trunk_of(made.learner, one, reads_hidden=True)
    with torch.no_grad():
        after = sequence_logps(made.learner.model, [trunk.ids])[0]
        with made.learner.at_start():
            before = sequence_logps(made.learner.model, [trunk.ids])[0]
    (found,) = made.advantages(ROWS, [one])
    for number, (start, end) in enumerate(trunk.spans):
        by_hand = float(sum(after[start:end] - before[start:end]))
        by_hand /= end - start if credit == "turn_mean" else 1
        assert found[number] == pytest.approx(by_hand, abs=1e-5)


def test_a_candidate_scores_as_the_same_message_does_in_the_log(source, tmp_path):
    made, _ = trained(source, tmp_path)
    one = episodes()[0]
    said = [[Candidate(t.action.raw), Candidate("something else")] for t in one.turns]
    scores = made.scores(ROW, one, said)
    (logged,) = made.advantages(ROWS, [one])
    assert [turn[0] for turn in scores] == pytest.approx(list(logged.values()), abs=1e-5)
    assert all(turn[0] != turn[1] for turn in scores)


def test_hidden_information_is_read_and_missed_by_name(source, tmp_path):
    made, _ = trained(source, tmp_path)
    one = episodes()[0]
    other = replace(ROW, hidden=HiddenInfo("def f(x):\n    return 'other'"))
    said = [[Candidate("Which?")], [Candidate("Now?")]]
    assert made.scores(ROW, one, said) != made.scores(other, one, said)
    with pytest.raises(TrainingError, match="no hidden information"):
        made.scores(replace(ROW, hidden=None), one, said)


def test_without_hidden_information_it_reads_what_the_policy_reads(source, tmp_path):
    made, _ = trained(source, tmp_path, reads_hidden=False)
    one = episodes()[0]
    said = [[Candidate("Which?")], [Candidate("Now?")]]
    assert made.scores(ROW, one, said) == made.scores(replace(ROW, hidden=None), one, said)


def test_a_reference_without_hidden_information_ranks_even_untrained(source):
    bare = critic(source, reference_reads_hidden=False)
    said = [[Candidate("Which?"), Candidate("What is it?")], [Candidate("Now?")]]
    scores = bare.scores(ROW, episodes()[0], said)
    assert scores
    assert all(abs(value) > 1e-4 for turn in scores for value in turn)


def test_an_episode_that_does_not_fit_has_no_advantage_and_alone_is_an_error(source, tmp_path):
    long = "x" * 5000
    big = replace(episodes()[1], turns=(Turn(0, Action(long, long, True, long)),))
    made, _ = trained(source, tmp_path)
    first, none = made.advantages(ROWS, [episodes()[0], big])
    assert first is not None and none is None
    assert made.scores(ROW, big, [[Candidate("Short?")]]) is None
    pairs = episode_pairs([episodes()[0], big], ROWS)
    with pytest.raises(TrainingError, match=r"None of the 1 pairs fits.*4096"):
        made.fit(pairs, ROWS, HOW, checkpoint=tmp_path / "d.pt", report=lambda *_: None)


def test_the_next_round_starts_at_the_parent_s_adapter(source, tmp_path):
    made, _ = trained(source, tmp_path)
    parent = str(made.learner.save(tmp_path / "parent"))
    child = learner(source, parent)
    ids = [[1, 20, 30, 40, 50]]
    with torch.no_grad():
        expected = sequence_logps(made.learner.model, ids)
        bare = sequence_logps(learner(source).model, ids)
        assert torch.allclose(sequence_logps(child.model, ids), expected, atol=1e-6)
    assert not torch.allclose(bare, expected, atol=1e-4)
    second, numbers = trained(source, tmp_path / "..", parent=parent)
    assert numbers[0]["loss"] < 1
    with torch.no_grad(), second.learner.at_start():
        assert torch.allclose(sequence_logps(second.learner.model, ids), expected, atol=1e-6)
    folder = second.learner.save(tmp_path / "child")
    assert sorted(p.name for p in folder.iterdir() if p.is_dir()) == []
    again = learner(source, parent, trained=folder)
    with torch.no_grad():
        one, two = (sequence_logps(x.model, ids) for x in (second.learner, again))
    assert torch.allclose(one, two, atol=1e-6)


def weights(one: Learner) -> list[torch.Tensor]:
    return [p.detach().clone() for p in one.model.parameters() if p.requires_grad]


def test_a_run_that_was_killed_between_epochs_ends_with_the_same_numbers(source, tmp_path):
    whole, numbers = trained(source, tmp_path)

    def break_off(step, total, values):
        if step > total // 2:
            raise KeyboardInterrupt

    (tmp_path / "b").mkdir()
    with pytest.raises(KeyboardInterrupt):
        trained(source, tmp_path / "b", break_off)
    resumed, again = trained(source, tmp_path / "b")
    assert again == numbers
    pairs = zip(weights(whole.learner), weights(resumed.learner), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_numbers_that_are_none_end_training_with_the_reason(source, tmp_path):
    made = critic(source)
    how = replace(HOW, lr=float("inf"))
    with pytest.raises(TrainingError, match=r"no number any more.*learning rate"):
        made.fit(
            episode_pairs(episodes(), ROWS),
            ROWS,
            how,
            checkpoint=tmp_path / "c.pt",
            report=lambda *_: None,
        )


def test_exhausted_memory_means_smaller_passes_and_the_same_gradient(source, tmp_path):
    plain, tight = learner(source), learner(source)
    trunks = [trunk_of(plain, e) for e in episodes()]
    tried = []

    def loss(logps, turns):
        return -(logps * (turns > 0)).sum(1).mean(), {}

    def fit_tight(limit):
        def narrow(logps, turns):
            tried.append(len(logps))
            if len(logps) > limit:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return loss(logps, turns)

        return narrow

    how = FitSettings(1e-2, 1, 3)
    shared = {"report": lambda *_: None}
    fit_rows(plain, trunks, loss, how, checkpoint=tmp_path / "p.pt", **shared)
    fit_rows(tight, trunks, fit_tight(1), how, checkpoint=tmp_path / "t.pt", **shared)
    assert max(tried) == 3 and tried[-1] == 1
    pairs = zip(weights(plain), weights(tight), strict=True)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in pairs)
    with pytest.raises(TrainingError, match="not enough memory, even with"):
        fit_rows(tight, trunks, fit_tight(0), how, checkpoint=tmp_path / "u.pt", **shared)


def test_an_error_that_is_not_of_memory_is_no_reason_to_try_again(source, tmp_path):
    def backward(batch, tokens):
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        fit(
            learner(source), [[0]], backward, HOW, checkpoint=tmp_path / "c", report=lambda *_: None
        )

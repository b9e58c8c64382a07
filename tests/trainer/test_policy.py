from __future__ import annotations

import math

import pytest
import torch

from sweet.errors import TrainingError
from tests.fakes import task_row
from tests.trainer.studio import tiny_model
from tests.trainer.test_pairs import episode
from trainer.baselines import fit_successes, fit_whole_episodes
from trainer.candidates import Candidate
from trainer.encoding import Trunk
from trainer.fit import FitSettings
from trainer.learner import Learner, load_learner
from trainer.losses import Tokens, dpo_loss
from trainer.pairs import episode_pairs
from trainer.policy import PolicySettings, fit_policy, pair_tree
from trainer.tree import sequence_logps, tree_logps
from trainer.whole import read_episode

ROW = task_row()
ROWS = {ROW.task.id: ROW}
A, B, C, CUT = (Candidate(t) for t in ("Which one?", "Five?", "I guess 3", "cut of"))
CUT = Candidate("cut of", 2, is_ended=False)
TURNS = [[(A, B), (A, C)], [(C, CUT)]]
LOSS = PolicySettings()
HOW = FitSettings(lr=1e-2, epochs=3, batch=8, seed=1)


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> str:
    return str(tiny_model(tmp_path_factory.mktemp("model")))


@pytest.fixture
def learner(source) -> Learner:
    return load_learner(source, None, rank=2, seed=0, device="cpu")


def trunk_of(learner, one) -> Trunk:
    trunk = read_episode(learner, "plain", ROW, one, reads_hidden=False)
    assert trunk
    return trunk


def trees(learner, n=1):
    return [
        pair_tree(learner, "plain", ROW, episode(f"e{i}", 1.0, ROW.task.id), TURNS)
        for i in range(n)
    ]


def trained(learner, tmp_path, some, how=HOW, loss=LOSS):
    seen: list = []
    fit_policy(
        learner,
        some,
        loss,
        how,
        checkpoint=tmp_path / "p.pt",
        report=lambda step, total, numbers: seen.append(numbers),
    )
    return seen


def test_the_first_update_finds_margin_0_and_loss_ln_2(learner, tmp_path):
    first = trained(learner, tmp_path, trees(learner), loss=PolicySettings(0.1, 0.0))[0]
    assert first["margin"] == pytest.approx(0, abs=1e-5)
    assert first["loss"] == pytest.approx(math.log(2), abs=1e-5)


def test_training_makes_the_chosen_messages_likelier_than_the_rejected(learner, tmp_path):
    seen = trained(learner, tmp_path, trees(learner))
    assert seen[-1]["margin"] > 0
    assert seen[-1]["accuracy"] == 1


def test_a_candidate_of_several_pairs_is_one_branch_and_a_cut_one_has_no_end(learner):
    (tree,) = trees(learner)
    assert len(tree.tree.branches) == 5
    assert tree.pairs == ((0, 1), (0, 2), (3, 4))
    trunk = trunk_of(learner, episode("e0", 1.0, ROW.task.id))
    ends = [ids[-1] == trunk.end_id for _, ids in tree.tree.branches]
    assert ends == [True, True, True, True, False]


def test_an_update_is_dpo_of_separate_passes_with_the_chosen_turn_s_nll(learner, tmp_path):
    """The gradient through the tree against whole sequences, each for itself."""
    some = trees(learner, 2)
    start = [p.detach().clone() for p in learner.model.parameters() if p.requires_grad]
    rows, masks = [], []
    for one in some:
        for sides in one.pairs:
            for branch in sides:
                at, ids = one.tree.branches[branch]
                rows.append([*one.tree.trunk_ids[:at], *ids])
                masks.append([0] * at + [1] * len(ids))
    width = max(map(len, rows))
    turns = torch.tensor([mask + [0] * (width - len(mask)) for mask in masks])
    logps = sequence_logps(learner.model, rows)
    both = Tokens(logps, logps.detach(), turns)
    sides = [Tokens(*(t[i::2] for t in (both.logps, both.ref_logps, both.turns))) for i in (0, 1)]
    loss, _ = dpo_loss(*sides, beta=0.1, nll_coefficient=0.01)
    loss.backward()
    weights = [p for p in learner.model.parameters() if p.requires_grad]
    by_hand = math.sqrt(sum(float((p.grad**2).sum()) for p in weights))
    learner.model.zero_grad()
    (first, *_) = trained(learner, tmp_path, some, FitSettings(1e-3, 1, 6))
    assert first["loss"] == pytest.approx(float(loss.detach()), abs=1e-5)
    assert first["gradient_norm"] == pytest.approx(by_hand, rel=1e-4)
    assert any(not torch.equal(a, b) for a, b in zip(start, weights, strict=True))


def test_an_update_takes_whole_episodes(learner, tmp_path):
    assert len(trained(learner, tmp_path, trees(learner, 4), FitSettings(1e-3, 1, 4))) == 2


def test_nothing_to_learn_from_is_an_error(learner, tmp_path):
    assert pair_tree(learner, "plain", ROW, episode("e", 1.0, ROW.task.id), [[], []]) is None
    with pytest.raises(TrainingError, match="No turn has two candidates"):
        trained(learner, tmp_path, [])


def test_a_candidate_that_does_not_fit_leaves_its_episode_out(learner):
    long = [[(A, Candidate("x" * 4096))], []]
    assert pair_tree(learner, "plain", ROW, episode("e", 1.0, ROW.task.id), long) is None


def test_multi_turn_dpo_begins_at_ln_2_and_prefers_the_better_episode(learner, tmp_path):
    pairs = episode_pairs([episode(f"e{i}", r, ROW.task.id) for i, r in enumerate((1, 0))], ROWS)
    seen = []
    fit_whole_episodes(
        learner,
        "plain",
        pairs,
        ROWS,
        HOW,
        beta=0.1,
        nll_coefficient=0.0,
        checkpoint=tmp_path / "m.pt",
        report=lambda step, total, numbers: seen.append(numbers),
    )
    assert seen[0]["loss"] == pytest.approx(math.log(2), abs=1e-5)
    assert seen[-1]["margin"] > seen[0]["margin"]


def test_rejection_fine_tuning_learns_the_successes_alone(learner, tmp_path):
    some = [episode(f"e{i}", r, ROW.task.id) for i, r in enumerate((1.0, 0.0, None))]
    trunks = [trunk_of(learner, some[0])]
    seen = []
    told = {"report": lambda step, total, numbers: seen.append(numbers)}
    fit_successes(learner, "plain", some, ROWS, HOW, checkpoint=tmp_path / "r.pt", **told)
    logps = sequence_logps(learner.model, [trunks[0].ids])[0]
    spoken = torch.cat([logps[start:end] for start, end in trunks[0].spans])
    assert seen[0]["loss"] > seen[-1]["loss"] > float(-spoken.mean().detach())
    assert len(seen) == 3
    with pytest.raises(TrainingError, match="None of 2 episodes has reward 1"):
        fit_successes(learner, "plain", some[1:], ROWS, HOW, checkpoint=tmp_path / "s", **told)


def test_reference_log_probabilities_are_those_of_the_start(learner):
    (tree,) = trees(learner)
    with torch.no_grad():
        now = tree_logps(learner.model, tree.tree)
        with learner.at_start():
            start = tree_logps(learner.model, tree.tree)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(now, start, strict=True))

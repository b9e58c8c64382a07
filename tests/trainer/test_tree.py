from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from sweet.errors import TrainingError
from tests.trainer.tiny import draw_ids, network
from trainer.tree import (
    EpisodeTree,
    sequence_logps,
    tree_backward,
    tree_ends,
    tree_logps,
)

KINDS = ("llama", "qwen2", "qwen3")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def a_tree(seed: int = 0) -> EpisodeTree:
    """Turns with many, few and single candidates of mixed lengths; one at the trunk's end; one
    after the first token; left-over lengths; not in the trunk's order."""
    rng = random.Random(seed)
    shape = {9: (1, 4, 4, 5, 30), 17: (3,), 28: (2, 11, 12), 1: (7,), 40: (6, 1)}
    branches = [(at, draw_ids(n, rng)) for at, lengths in shape.items() for n in lengths]
    rng.shuffle(branches)
    return EpisodeTree(draw_ids(40, rng), branches)


def separate_logps(model: Any, tree: EpisodeTree) -> list[torch.Tensor]:
    """Every branch in a sequence of its own with the whole prefix, one at a time."""
    rows = [[*tree.trunk_ids[:at], *ids] for at, ids in tree.branches]
    return [
        sequence_logps(model, [row])[0, at:]
        for row, (at, _) in zip(rows, tree.branches, strict=True)
    ]


def weighted(indices: Sequence[int], logps: Sequence[torch.Tensor]) -> torch.Tensor:
    """A loss in which every token of every branch has a weight of its own."""
    total = torch.zeros(())
    for index, branch in zip(indices, logps, strict=True):
        weights = torch.sin(torch.arange(len(branch)) + 1.7 * index)
        total = total + (weights * branch).sum()
    return total


def gradients(model: Any) -> dict[str, torch.Tensor]:
    found = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return found


def relative_difference(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> float:
    assert ours.keys() == theirs.keys() and ours
    return max(float((ours[n] - theirs[n]).norm() / theirs[n].norm()) for n in ours)


@pytest.mark.parametrize("pass_tokens", [None, 30, 1])
@pytest.mark.parametrize("lora", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, "mistral"])
def test_log_probabilities_are_those_of_separate_passes(kind, lora, pass_tokens):
    model, tree = network(kind, lora=lora), a_tree()
    with torch.no_grad():
        ours = tree_logps(model, tree, pass_tokens=pass_tokens)
        theirs = separate_logps(model, tree)
    for (_, ids), mine, other in zip(tree.branches, ours, theirs, strict=True):
        assert mine.shape == other.shape == (len(ids),)
        assert torch.allclose(mine, other, atol=1e-4), (mine, other)


@pytest.mark.parametrize("pass_tokens", [None, 30, 1])
@pytest.mark.parametrize("lora", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, "mistral"])
def test_hidden_states_at_the_ends_are_those_of_separate_passes(kind, lora, pass_tokens):
    model, tree = network(kind, lora=lora), a_tree()
    with torch.no_grad():
        ours = tree_ends(model, tree, pass_tokens=pass_tokens)
        for (at, ids), mine in zip(tree.branches, ours, strict=True):
            row = torch.tensor([[*tree.trunk_ids[:at], *ids]])
            other = model(row, output_hidden_states=True).hidden_states[-1][0, -1]
            assert mine.shape == other.shape
            assert torch.allclose(mine, other, atol=1e-4), (mine, other)


@pytest.mark.parametrize("lora", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_separate_passes(kind, lora):
    model, tree = network(kind, lora=lora), a_tree()
    every = range(len(tree.branches))
    weighted(every, separate_logps(model, tree)).backward()
    theirs = gradients(model)
    weighted(every, tree_logps(model, tree)).backward()
    assert relative_difference(gradients(model), theirs) < 1e-4


@pytest.mark.parametrize("pass_tokens", [None, 25, 1])
@pytest.mark.parametrize("lora", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_turn_by_turn_backward_gives_the_same_loss_and_gradient(kind, lora, pass_tokens):
    model, tree = network(kind, lora=lora), a_tree()
    loss = weighted(range(len(tree.branches)), separate_logps(model, tree))
    loss.backward()
    theirs = gradients(model)
    total = tree_backward(model, tree, weighted, pass_tokens=pass_tokens)
    assert total == pytest.approx(loss.item(), abs=1e-4)
    assert relative_difference(gradients(model), theirs) < 1e-4


@pytest.mark.parametrize("adapted", ["q_proj", "down_proj"])
def test_keys_and_values_that_nothing_trained_reaches_are_no_obstacle(adapted):
    model, tree = network(lora=adapted), a_tree()
    weighted(range(len(tree.branches)), separate_logps(model, tree)).backward()
    theirs = gradients(model)
    tree_backward(model, tree, weighted)
    assert relative_difference(gradients(model), theirs) < 1e-4


def test_only_whole_turns_reach_the_loss():
    tree, seen = a_tree(), []

    def loss(indices, logps):
        seen.append(list(indices))
        return weighted(indices, logps)

    tree_backward(network(), tree, loss, pass_tokens=10)
    assert sorted(i for group in seen for i in group) == list(range(len(tree.branches)))
    turns = [{tree.branches[i][0] for i in group} for group in seen]
    assert len(turns) > 2
    assert sum(map(len, turns)) == len(set().union(*turns)), "a turn was split"


def test_gradients_add_up_over_episodes():
    model = network()
    tree_backward(model, a_tree(1), weighted)
    first = gradients(model)
    tree_backward(model, a_tree(2), weighted)
    second = gradients(model)
    tree_backward(model, a_tree(1), weighted)
    tree_backward(model, a_tree(2), weighted)
    both = gradients(model)
    assert relative_difference(both, {n: first[n] + second[n] for n in first}) < 1e-5


def test_branches_of_one_token_need_the_trunk_alone():
    model, tree = network(), EpisodeTree([5, 6, 7], [(1, [8]), (3, [9]), (3, [4])])
    ours = torch.cat(tree_logps(model, tree))
    assert torch.allclose(ours, torch.cat(separate_logps(model, tree)), atol=1e-5)
    tree_backward(model, tree, weighted)
    mine = gradients(model)
    weighted(range(3), separate_logps(model, tree)).backward()
    assert relative_difference(mine, gradients(model)) < 1e-4


def test_no_branches_give_nothing():
    model, tree = network(), EpisodeTree([1, 2, 3], [])
    assert tree_ends(model, tree) == []
    assert tree_logps(model, tree) == []
    assert tree_backward(model, tree, weighted) == 0.0
    assert tree.tokens == 0
    assert not [p for p in model.parameters() if p.grad is not None]


def test_each_different_token_is_counted_once():
    tree = EpisodeTree([1, 2, 3, 4], [(2, [5, 6, 7]), (3, [8]), (2, [9, 9])])
    assert tree.tokens == 3 + 2 + 0 + 1


def test_other_branches_and_the_rest_of_the_trunk_do_not_matter():
    model, tree = network(), a_tree()
    index = next(i for i, (at, ids) in enumerate(tree.branches) if at == 28 and len(ids) == 11)
    at, ids = tree.branches[index]
    alone = EpisodeTree([*tree.trunk_ids[:at], 1, 2, 3], [(at, ids)])
    with torch.no_grad():
        (ours,) = tree_logps(model, alone)
        assert torch.allclose(ours, tree_logps(model, tree)[index], atol=1e-5)


def test_the_adapter_can_be_switched_off_for_the_reference():
    model, tree = network(lora=True), a_tree()
    with torch.no_grad():
        trained = torch.cat(tree_logps(model, tree))
        with model.disable_adapter():
            reference = torch.cat(tree_logps(model, tree))
        bare = torch.cat(tree_logps(model.unload(), tree))
    assert torch.allclose(reference, bare, atol=1e-5)
    assert not torch.allclose(trained, reference, atol=1e-2)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_any_attention_gives_the_same(attention):
    tree = a_tree()
    with torch.no_grad():
        ours = torch.cat(tree_logps(network(attn_implementation=attention), tree))
        theirs = torch.cat(separate_logps(network(), tree))
    assert torch.allclose(ours, theirs, atol=1e-4)


def test_half_precision_gives_float32_numbers_near_the_exact_ones():
    tree = a_tree()
    with torch.no_grad():
        ours = torch.cat(tree_logps(network(initializer_range=0.05).bfloat16(), tree))
        exact = torch.cat(tree_logps(network(initializer_range=0.05), tree))
    assert ours.dtype == torch.float32
    assert torch.allclose(ours, exact, atol=0.1)


def test_sequence_log_probabilities_are_the_models_own_whatever_the_padding():
    model, rng = network(), random.Random(3)
    rows = [draw_ids(n, rng) for n in (5, 1, 12)]
    with torch.no_grad():
        together = sequence_logps(model, rows)
        assert together.shape == (3, 12)
        for row, ids in zip(together, rows, strict=True):
            exact = model(torch.tensor([ids])).logits[0].log_softmax(-1)
            own = [0.0] + [float(exact[t - 1, ids[t]]) for t in range(1, len(ids))]
            assert row.tolist() == pytest.approx(own + [0.0] * (12 - len(ids)), abs=1e-5)


@pytest.mark.parametrize(
    ("branch", "message"),
    [((0, [1]), "position 0"), ((4, [1]), "position 4"), ((2, []), "no tokens")],
)
def test_a_branch_that_cannot_be_is_refused(branch, message):
    with pytest.raises(TrainingError, match=message):
        EpisodeTree([1, 2, 3], [(1, [1]), branch])


@pytest.mark.parametrize("rows", [[], [[1], []]])
def test_empty_sequences_are_refused(rows):
    with pytest.raises(TrainingError, match="no empty one"):
        sequence_logps(network(), rows)


def test_gradient_checkpointing_is_refused_with_what_to_do():
    model = network()
    model.gradient_checkpointing_enable()
    model.train()
    with pytest.raises(TrainingError, match="gradient_checkpointing_disable"):
        tree_logps(model, a_tree())
    model.eval()
    assert len(tree_logps(model, a_tree())) == len(a_tree().branches)


@pytest.mark.parametrize("kind", ["mistral", "qwen3"])
def test_an_episode_beyond_the_attention_window_is_refused(kind):
    changes: dict[str, Any] = {"sliding_window": 64}
    if kind == "qwen3":
        changes |= {"use_sliding_window": True, "max_window_layers": 1}
    assert len(tree_logps(network(kind, **changes), EpisodeTree([1, 2], [(2, [3])]))) == 1
    with pytest.raises(TrainingError, match="looks back only 64"):
        tree_logps(network(kind, **changes), a_tree())


def test_a_window_that_is_switched_off_limits_nothing():
    tree = a_tree()
    assert len(tree_logps(network("qwen3", sliding_window=8), tree)) == len(tree.branches)


@pytest.mark.parametrize("kind", KINDS)
def test_branches_in_a_row_of_their_own_give_the_same(kind, monkeypatch):
    model, tree = network(kind), a_tree()
    shared = tree_logps(model, tree)
    monkeypatch.setattr("trainer.tree.MASKED_ATTENTION", ())
    for ours, alone in zip(shared, tree_logps(model, tree), strict=True):
        torch.testing.assert_close(ours, alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_either_attention_hides_what_another_branch_says(attention):
    model = network(attn_implementation=attention)
    for ours, exact in zip(
        tree_logps(model, a_tree()), separate_logps(model, a_tree()), strict=True
    ):
        torch.testing.assert_close(ours, exact, atol=1e-4, rtol=0)

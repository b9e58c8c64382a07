from __future__ import annotations

import math
import random

import pytest
import torch

from tests.trainer.tiny import draw_ids, network
from trainer.losses import (
    Tokens,
    bradley_terry_loss,
    critic_loss,
    dpo_loss,
    episode_scores,
    nll_loss,
    turn_advantages,
    turn_means,
    turn_values,
    value_head_loss,
)
from trainer.tree import sequence_logps


def ones(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float32)


def side(logps: list[list[float]], ref: list[list[float]], turns: list[list[int]]) -> Tokens:
    return Tokens(torch.tensor(logps), torch.tensor(ref), torch.tensor(turns))


def random_side(seed: int, rows: int = 5, tokens: int = 12) -> Tokens:
    """Logged-looking numbers: three turns with prompt, header and reply tokens between them."""
    drawn = torch.Generator().manual_seed(seed)
    logps = -torch.rand(rows, tokens, generator=drawn) * 3
    ref = -torch.rand(rows, tokens, generator=drawn) * 3
    turns = torch.tensor([[0, 0, 1, 1, 0, 2, 2, 2, 0, 0, 3, 3][:tokens]] * rows)
    turns[0, 10:] = 0  # a row with fewer turns
    return Tokens(logps.requires_grad_(), ref, turns)


def row(tokens: Tokens, index: int) -> Tokens:
    one = slice(index, index + 1)
    return Tokens(tokens.logps[one], tokens.ref_logps[one], tokens.turns[one])


def padded(tokens: Tokens, more: int) -> Tokens:
    """The same rows, padded with numbers that must not matter."""
    rows = len(tokens.turns)
    junk = torch.full((rows, more), float("nan"))
    none = torch.zeros(rows, more, dtype=torch.long)
    return Tokens(
        torch.cat([tokens.logps, junk], 1),
        torch.cat([tokens.ref_logps, junk], 1),
        torch.cat([tokens.turns, none], 1),
    )


LOSSES = {
    "critic": critic_loss,
    "critic, sums of turns": lambda c, r: critic_loss(c, r, credit="turn_sum"),
    "critic, token mean of the episode": lambda c, r: critic_loss(c, r, credit="episode_mean"),
    "dpo": dpo_loss,
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())


def test_an_advantage_is_the_mean_log_ratio_of_the_turns_own_tokens():
    # turn 1 has ratios 1 and 3, turn 2 has -1; what is in neither has 100
    tokens = side([[100.0, -1, -1, 100, -3]], [[0.0, -2, -4, 0, -2]], [[0, 1, 1, 0, 2]])
    assert turn_advantages(tokens).tolist() == [[2.0, -1.0]]
    assert episode_scores(tokens).item() == 1.0
    assert episode_scores(tokens, "episode_mean").item() == pytest.approx((1 + 3 - 1) / 3)
    assert episode_scores(tokens, "turn_sum").item() == 3.0


def test_a_long_turn_counts_as_much_as_a_short_one_but_not_in_the_published_codes_mean():
    ratios = [[5.0, *[-1.0] * 10]]
    tokens = side(ratios, [[0.0] * 11], [[1, *[2] * 10]])
    assert episode_scores(tokens).item() == pytest.approx(4.0)
    assert episode_scores(tokens, "episode_mean").item() == pytest.approx((5 - 10) / 11)


def test_a_turn_that_an_episode_has_not_is_worth_nothing():
    means = turn_means(ones([1, 2, 4], [3, 5, 7]), torch.tensor([[1, 2, 2], [1, 0, 0]]))
    assert means.tolist() == [[1.0, 3.0], [3.0, 0.0]]
    assert turn_means(ones([1, 2]), torch.tensor([[0, 0]])).sum() == 0


def test_bradley_terry_by_hand():
    loss, metrics = bradley_terry_loss(torch.tensor([2.0, 0.0]), torch.tensor([1.0, 3.0]), beta=0.5)
    expected = (math.log1p(math.exp(-0.5)) + math.log1p(math.exp(1.5))) / 2
    assert loss.item() == pytest.approx(expected, abs=1e-6)
    assert metrics["margin"].item() == pytest.approx((0.5 - 1.5) / 2)
    assert metrics["accuracy"].item() == 0.5
    assert (metrics["score_chosen"].item(), metrics["score_rejected"].item()) == (1.0, 2.0)


def test_dpo_by_hand_with_the_nll_of_the_chosen_turn_alone():
    chosen = side([[-9.0, -1, -2, -9]], [[0.0, -2, -2, 0]], [[0, 1, 1, 0]])  # ratio 1
    rejected = side([[-9.0, -4, -9, -9]], [[0.0, -1, 0, 0]], [[0, 1, 0, 0]])  # ratio -3
    loss, metrics = dpo_loss(chosen, rejected, beta=0.1, nll_coefficient=0.01)
    assert metrics["nll"].item() == pytest.approx(1.5)
    assert metrics["margin"].item() == pytest.approx(0.4)
    assert loss.item() == pytest.approx(math.log1p(math.exp(-0.4)) + 0.015, abs=1e-6)


def test_critic_loss_by_hand():
    chosen = side([[-1.0, -1, -2]], [[-2.0, -2, -4]], [[1, 1, 2]])  # advantages 1 and 2
    rejected = side([[-1.0, -3, -9]], [[-1.0, -1, -9]], [[1, 1, 0]])  # advantage -1
    loss, metrics = critic_loss(chosen, rejected, beta=0.5, nll_coefficient=0.1)
    assert metrics["margin"].item() == pytest.approx(2.0)
    expected = math.log1p(math.exp(-2.0)) + 0.1 * (1 + 1 + 2) / 3
    assert loss.item() == pytest.approx(expected, abs=1e-6)


def test_nll_is_a_mean_of_rows_over_trained_tokens():
    logps, turns = ones([-1, -3, -50], [-8, -50, -50]), torch.tensor([[1, 2, 0], [1, 0, 0]])
    loss, metrics = nll_loss(logps, turns)
    assert loss.item() == metrics["nll"].item() == pytest.approx((2 + 8) / 2)


def test_a_value_is_read_at_each_turns_last_token():
    turns = torch.tensor([[0, 1, 1, 0, 2, 2], [1, 1, 2, 0, 0, 0]])
    values = ones([9, 9, 1, 9, 9, 2], [9, 3, 4, 9, 9, 9])
    assert turn_values(values, turns).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    loss, metrics = value_head_loss(values[:1], turns[:1], values[1:], turns[1:], beta=0.5)
    assert loss.item() == pytest.approx(math.log1p(math.exp(2.0)), abs=1e-6)
    assert metrics["margin"].item() == pytest.approx(-2.0)


def test_an_untrained_value_head_starts_at_ln_2():
    nothing, turns = torch.zeros(2, 3), torch.tensor([[1, 1, 2], [0, 1, 0]])
    loss, _ = value_head_loss(nothing, turns, nothing, turns)
    assert loss.item() == pytest.approx(math.log(2))


@every_loss
def test_the_first_step_has_margin_0_and_loss_ln_2(loss):
    start = [Tokens(s.logps, s.logps.detach(), s.turns) for s in (random_side(1), random_side(2))]
    value, metrics = loss(*start)
    assert metrics["margin"].item() == 0.0
    assert value.item() == pytest.approx(math.log(2) + 0.01 * metrics["nll"].item(), abs=1e-6)


@every_loss
def test_swapping_the_sides_turns_the_margin_round(loss):
    one, other = random_side(1), random_side(2)
    forth, back = loss(one, other), loss(other, one)
    assert forth[1]["margin"].item() == pytest.approx(-back[1]["margin"].item(), abs=1e-6)
    assert forth[1]["accuracy"].item() == pytest.approx(1 - back[1]["accuracy"].item())
    assert forth[1]["score_chosen"].item() == back[1]["score_rejected"].item()


def test_swapping_one_pairs_sides_changes_its_loss_by_the_margin():
    forth = bradley_terry_loss(torch.tensor([3.0]), torch.tensor([1.0]), beta=0.7)[0]
    back = bradley_terry_loss(torch.tensor([1.0]), torch.tensor([3.0]), beta=0.7)[0]
    assert (back - forth).item() == pytest.approx(1.4, abs=1e-6)


@every_loss
def test_padding_changes_neither_loss_nor_gradient(loss):
    chosen, rejected = random_side(1), random_side(2)
    plain = loss(chosen, rejected)[0]
    plain_grad = torch.autograd.grad(plain, chosen.logps)[0]
    wide = loss(padded(chosen, 7), padded(rejected, 3))[0]
    wide_grad = torch.autograd.grad(wide, chosen.logps)[0]
    assert wide.item() == pytest.approx(plain.item(), abs=1e-6)
    assert torch.allclose(wide_grad, plain_grad, atol=1e-7)


@every_loss
def test_a_batch_is_the_mean_of_its_pairs(loss):
    chosen, rejected = random_side(1), random_side(2)
    together, metrics = loss(chosen, rejected)
    alone = [loss(row(chosen, i), row(rejected, i)) for i in range(5)]
    assert together.item() == pytest.approx(sum(v.item() for v, _ in alone) / 5, abs=1e-6)
    for name, value in metrics.items():
        mean = sum(m[name].item() for _, m in alone) / 5
        assert value.item() == pytest.approx(mean, abs=1e-6), name


@every_loss
def test_gradients_reach_the_trained_tokens_of_the_policy_alone(loss):
    chosen, rejected = random_side(1), random_side(2)
    chosen.ref_logps.requires_grad_()
    loss(chosen, rejected)[0].backward()
    assert chosen.ref_logps.grad is None
    for tokens in (chosen, rejected):
        reached = tokens.logps.grad != 0
        assert torch.equal(reached, tokens.turns > 0)
    assert (chosen.logps.grad[chosen.turns > 0] < 0).all(), "a step must raise the chosen side"
    assert (rejected.logps.grad[rejected.turns > 0] > 0).all()


@every_loss
def test_metrics_hold_no_graph(loss):
    _, metrics = loss(random_side(1), random_side(2))
    assert {"margin", "accuracy", "score_chosen", "score_rejected", "nll"} == metrics.keys()
    assert not any(value.requires_grad for value in metrics.values())


@pytest.fixture(scope="module")
def trl_trainer(tmp_path_factory):
    datasets = pytest.importorskip("datasets")
    trl = pytest.importorskip("trl")
    from tests.sweet.engines.tiny import tokenizer

    made = tokenizer()
    examples = [{"prompt": "what", "chosen": "x", "rejected": "yz"}]
    settings = trl.DPOConfig(
        output_dir=str(tmp_path_factory.mktemp("trl")),
        beta=0.1,
        per_device_train_batch_size=4,
        report_to=[],
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        disable_dropout=True,
        loss_type=["sigmoid", "sft"],
        loss_weights=[1.0, 0.0],
    )
    return trl.DPOTrainer(
        model=network("llama", seed=1, vocab_size=len(made)),
        ref_model=network("llama", seed=2, vocab_size=len(made)),
        args=settings,
        train_dataset=datasets.Dataset.from_list(examples),
        processing_class=made,
    )


def trl_loss(trainer, examples: list[dict], nll: float) -> torch.Tensor:
    """The loss by TRL's own collator, forward pass and loss."""
    from trl.trainer.dpo_trainer import DataCollatorForPreference

    trainer.loss_weights = [1.0, nll]
    inputs = DataCollatorForPreference(pad_token_id=0)(examples)
    return trainer.compute_loss(trainer.model, dict(inputs))


def our_loss(trainer, examples: list[dict], nll: float) -> torch.Tensor:
    sides = []
    for name in ("chosen_ids", "rejected_ids"):
        rows = [e["prompt_ids"] + e[name] for e in examples]
        turns = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
        for number, (example, ids) in enumerate(zip(examples, rows, strict=True)):
            turns[number, len(example["prompt_ids"]) : len(ids)] = 1
        with torch.no_grad():
            ref = sequence_logps(trainer.ref_model, rows)
        sides.append(Tokens(sequence_logps(trainer.model, rows), ref, turns))
    return dpo_loss(*sides, beta=0.1, nll_coefficient=nll)[0]


def preference_examples(sizes: list[tuple[int, int, int]]) -> list[dict]:
    rng = random.Random(5)
    names = ("prompt_ids", "chosen_ids", "rejected_ids")
    return [{n: draw_ids(k, rng) for n, k in zip(names, s, strict=True)} for s in sizes]


@pytest.mark.parametrize("nll", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("sizes", [[(5, 4, 9)], [(3, 6, 2), (9, 6, 30), (1, 6, 6), (2, 6, 1)]])
def test_dpo_has_the_numbers_and_gradients_of_trls_own_code(trl_trainer, sizes, nll):
    # chosen sides of one length: TRL's NLL is a mean over the batch's tokens, ours over its rows
    examples = preference_examples(sizes)
    model = trl_trainer.model
    grads = []
    for way in (our_loss, trl_loss):
        loss = way(trl_trainer, examples, nll)
        found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
        grads.append((loss.item(), torch.cat([g.flatten() for g in found if g is not None])))
    (ours, our_grad), (theirs, their_grad) = grads
    assert ours == pytest.approx(theirs, abs=1e-5)
    assert abs(ours - math.log(2)) > 1e-2, "two models that differ"
    assert float((our_grad - their_grad).norm() / their_grad.norm()) < 1e-4

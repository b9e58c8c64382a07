"""The losses of both stages and of the baselines: pure functions of tensors, no model in sight.

B pairs or rows, T tokens, N turns. A (B, T) tensor of log-probabilities holds in column t the
natural log of the probability of token t given all before it. `turns` (B, T) says whose token it
is: 0 where nothing is trained (prompt, replies, headers, padding), n for the agent's turn n,
counted from 1. A turn is the message's own tokens and its end-of-turn token, without the header,
on both sides of a ratio.

Losses are means over pairs, each pair a number of its own: what else is in the batch, and how far
it is padded, changes nothing. Gradients flow into `logps` and `values`, never into `ref_logps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F

Metrics = dict[str, torch.Tensor]
"""Detached scalars by name; docs/sweet-rl.md explains each."""

Credit = Literal["turn_mean", "turn_sum", "episode_mean"]
"""How an episode's tokens become its score: the sum of its turns' means (the paper), of its turns'
sums (one decisive word weighs the same in a question and in long code), or one mean over all its
tokens (the published code: short questions drown in long code)."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """One side of B pairs under the trained model and the reference, each (B, T)."""

    logps: torch.Tensor
    ref_logps: torch.Tensor
    turns: torch.Tensor


def turn_means(per_token: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """The mean of `per_token` (B, T) over each turn's tokens, (B, N); 0 where there is no turn."""
    width = int(turns.max()) + 1 if turns.numel() else 1
    empty = per_token.new_zeros(len(turns), width)
    # Masked before adding: a NaN or -inf of an untrained token must not come in as 0 * NaN.
    sums = empty.scatter_add(1, turns, per_token.masked_fill(turns == 0, 0.0))
    counts = empty.scatter_add(1, turns, torch.ones_like(per_token))
    return sums[:, 1:] / counts[:, 1:].clamp(min=1)


def turn_advantages(side: Tokens) -> torch.Tensor:
    """A(o_t, a_t, c) of each turn, (B, N): the mean log-ratio to the critic's starting point.

    Source: arXiv:2503.15478, eq. for A_θ; header outside, end-of-turn token inside.
    """
    return turn_means(_ratios(side), side.turns)


def episode_scores(side: Tokens, credit: Credit = "turn_mean") -> torch.Tensor:
    """What an episode is worth to the critic, (B,): the sum of its turns' advantages.

    Source: arXiv:2503.15478, eq. for J_A; "episode_mean" is what the published code does instead,
    "turn_sum" is ours.
    """
    if credit == "turn_sum":
        return summed_logps(_ratios(side), side.turns)
    if credit == "turn_mean":
        return turn_advantages(side).sum(-1)
    return turn_means(_ratios(side), (side.turns > 0).long()).sum(-1)


def bradley_terry_loss(
    chosen: torch.Tensor, rejected: torch.Tensor, *, beta: float
) -> tuple[torch.Tensor, Metrics]:
    """−log σ(β (chosen − rejected)) of scores (B,), mean over pairs; ln 2 where they are equal.

    Source: arXiv:2503.15478, eq. for J_A.
    """
    margins = beta * (chosen - rejected)
    metrics = {
        "margin": margins.mean(),
        "accuracy": (margins > 0).float().mean(),
        "score_chosen": chosen.mean(),
        "score_rejected": rejected.mean(),
    }
    return -F.logsigmoid(margins).mean(), {k: v.detach() for k, v in metrics.items()}


def critic_loss(
    chosen: Tokens,
    rejected: Tokens,
    *,
    beta: float = 0.1,
    nll_coefficient: float = 0.01,
    credit: Credit = "turn_mean",
) -> tuple[torch.Tensor, Metrics]:
    """Bradley-Terry over whole episodes of a task, plus `nll_coefficient` × NLL of the better one.

    Source: arXiv:2503.15478, eq. for J_A and the table of settings (β 0.1, NLL 0.01; the
    published code leaves the NLL term out: 0).
    """
    scores = episode_scores(chosen, credit), episode_scores(rejected, credit)
    loss, metrics = bradley_terry_loss(*scores, beta=beta)
    return _with_nll(loss, metrics, chosen, nll_coefficient)


def dpo_loss(
    chosen: Tokens, rejected: Tokens, *, beta: float = 0.1, nll_coefficient: float = 0.01
) -> tuple[torch.Tensor, Metrics]:
    """DPO on summed log-ratios, plus `nll_coefficient` × NLL of the chosen side's own tokens.

    With one turn marked in `turns` it is the policy step of SWEET-RL; with every turn of the
    episode marked it is multi-turn DPO. Text of system, user and other turns is in neither term.

    Source: arXiv:2503.15478, section 4, after arXiv:2305.18290, eq. 7; differs from the published
    code, whose NLL term also trains on system and user text.
    """
    scores = (
        summed_logps(_ratios(chosen), chosen.turns),
        summed_logps(_ratios(rejected), rejected.turns),
    )
    loss, metrics = bradley_terry_loss(*scores, beta=beta)
    return _with_nll(loss, metrics, chosen, nll_coefficient)


def nll_loss(per_token_logps: torch.Tensor, turns: torch.Tensor) -> tuple[torch.Tensor, Metrics]:
    """Rejection fine-tuning: the mean of −log π over a row's agent tokens, then over rows (B,).

    Source: arXiv:2503.15478, section 5 (fine-tuning on successful episodes); differs from TRL's
    SFT loss, which is one mean over the tokens of a batch and so depends on who is in it.
    """
    loss = _nll(per_token_logps, turns)
    return loss, {"nll": loss.detach()}


def value_head_loss(
    chosen_values: torch.Tensor,
    chosen_turns: torch.Tensor,
    rejected_values: torch.Tensor,
    rejected_turns: torch.Tensor,
    *,
    beta: float = 0.1,
) -> tuple[torch.Tensor, Metrics]:
    """Bradley-Terry over the sums of a value head's turn values; values and turns (B, T).

    Source: arXiv:2503.15478, ablation "value head in place of log-ratios".
    """
    scores = (
        turn_values(chosen_values, chosen_turns).sum(-1),
        turn_values(rejected_values, rejected_turns).sum(-1),
    )
    return bradley_terry_loss(*scores, beta=beta)


def turn_values(values: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """A value head's output at each turn's last token, which has read the turn; (B, N)."""
    following = F.pad(turns[:, 1:], (0, 1))
    return turn_means(values, turns.masked_fill(turns == following, 0))


def summed_logps(per_token: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """The sum of `per_token` (B, T) over the tokens of all turns, (B,)."""
    return per_token.masked_fill(turns == 0, 0.0).sum(-1)


def _ratios(side: Tokens) -> torch.Tensor:
    return side.logps - side.ref_logps.detach()


def _nll(per_token_logps: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    return -turn_means(per_token_logps, (turns > 0).long()).sum(-1).mean()


def _with_nll(
    loss: torch.Tensor, metrics: Metrics, chosen: Tokens, coefficient: float
) -> tuple[torch.Tensor, Metrics]:
    nll = _nll(chosen.logps, chosen.turns)
    return loss + coefficient * nll, {**metrics, "nll": nll.detach()}

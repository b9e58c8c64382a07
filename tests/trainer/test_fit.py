from __future__ import annotations

from types import SimpleNamespace

import torch

from trainer.fit import FitSettings, fit

HOW = FitSettings(lr=0.1, epochs=3, batch=1, seed=1)
UNITS = [[0], [1], [2], [3]]


def a_learner():
    weight = torch.nn.Parameter(torch.tensor([1.0, -1.0]))
    return SimpleNamespace(weights=[weight], pass_tokens=64)


def train(learner, checkpoint, end_at=None):
    """The epochs' numbers, and the steps that were reported."""
    steps = []

    def backward(batch, pass_tokens):
        loss = sum((learner.weights[0] - number).square().sum() for number in batch)
        loss.backward()
        return {"loss": float(loss.detach())}

    def report(step, total, numbers):
        steps.append((step, total))
        return step == end_at

    return fit(learner, UNITS, backward, HOW, checkpoint=checkpoint, report=report), steps


def test_training_that_is_asked_to_end_ends_with_the_weights_so_far(tmp_path):
    learner = a_learner()
    epochs, steps = train(learner, tmp_path / "a.pt", end_at=6)
    assert steps == [(n, 12) for n in range(1, 7)]
    assert [epoch.get("ended_early") for epoch in epochs] == [None, True]
    # Killed after that, it has no more to do, and the same weights.
    again = a_learner()
    same, more = train(again, tmp_path / "a.pt")
    assert (same, more) == (epochs, [])
    assert torch.equal(again.weights[0], learner.weights[0])


def test_training_asked_to_end_at_its_last_update_was_not_cut_short(tmp_path):
    epochs, steps = train(a_learner(), tmp_path / "a.pt", end_at=12)
    assert len(steps) == 12 and not any("ended_early" in epoch for epoch in epochs)

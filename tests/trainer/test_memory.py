from __future__ import annotations

import pytest
import torch

from sweet.errors import TrainingError
from tests.trainer.studio import tiny_model
from trainer import whole
from trainer.encoding import Trunk
from trainer.learner import load_learner
from trainer.memory import LEAST_TOKENS, Passes, no_memory
from trainer.tree import EpisodeTree, tree_logps
from trainer.whole import episode_logps, token_logps

TRUNKS = [Trunk((5, 6, 7) * n, (), 2) for n in range(1, 40)]


@pytest.fixture(scope="module")
def learner(tmp_path_factory):
    source = str(tiny_model(tmp_path_factory.mktemp("model")))
    return load_learner(source, None, rank=2, seed=0, device="cpu")


def small_memory(function, size, limit):
    """`function`, out of memory for a batch above the limit."""

    def limited(model, *args, **kwargs):
        if size(*args, **kwargs) > limit:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")
        return function(model, *args, **kwargs)

    return limited


def test_passes_get_smaller_until_memory_holds_them():
    passes = Passes(1024)
    asked = []

    def work(tokens):
        asked.append(tokens)
        if tokens > 300:
            raise MemoryError
        return tokens

    assert passes.run(work) == 256 and passes.run(work) == 256
    assert asked == [1024, 512, 256, 256]


def test_memory_that_holds_nothing_is_a_clear_end():
    def work(tokens):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried")

    passes = Passes(2048)
    with pytest.raises(TrainingError, match=rf"even with {LEAST_TOKENS} tokens.*smaller model"):
        passes.run(work)


def test_another_error_is_not_taken_for_memory():
    with pytest.raises(RuntimeError, match="size"):
        Passes(2048).run(lambda tokens: torch.ones(2) @ torch.ones(3))
    assert not no_memory(RuntimeError("shapes differ")) and no_memory(MemoryError())


def test_reference_passes_shrink_and_give_the_same(learner, monkeypatch):
    expected = token_logps(learner, TRUNKS)

    def size(rows):
        return sum(map(len, rows))

    limited = small_memory(whole.sequence_logps, size, 300)
    monkeypatch.setattr(whole, "sequence_logps", limited)
    for one, two in zip(token_logps(learner, TRUNKS), expected, strict=True):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=0)
    monkeypatch.setattr(whole, "sequence_logps", small_memory(limited, size, 50))
    with pytest.raises(TrainingError, match="not enough memory"):
        token_logps(learner, TRUNKS)


def test_ranking_passes_shrink_and_give_the_same(learner, monkeypatch):
    tree = EpisodeTree([5, 6, 7, 8], [(2, [5] * n) for n in range(1, 30)])
    expected = tree_logps(learner.model, tree)

    def size(_, *, pass_tokens):
        return pass_tokens

    monkeypatch.setattr(whole, "tree_logps", small_memory(tree_logps, size, 200))
    for one, two in zip(episode_logps(learner, tree), expected, strict=True):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=0)
    monkeypatch.setattr(whole, "tree_logps", small_memory(tree_logps, size, 10))
    with pytest.raises(TrainingError, match="not enough memory"):
        episode_logps(learner, tree)

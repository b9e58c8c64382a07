"""A model that begins with the layers of another."""

import pytest
import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from sweet.engines import EMBEDDED_DIR
from sweet.errors import ConfigError
from trainer.pretraining.page_tokenizer import build_tokenizer
from trainer.pretraining.pretrain import build_model, settings_for
from trainer.pretraining.transfer import take_layers


@pytest.fixture(scope="module")
def page_tokenizer():
    return build_tokenizer(2048)


def _begun(tokenizer, seed):
    model = build_model(tokenizer, settings_for("frontend"))
    take_layers(model, tokenizer, EMBEDDED_DIR, seed)
    return model


def test_the_layers_are_the_source_s_and_a_token_of_both_keeps_its_embedding(page_tokenizer):
    model, source = _begun(page_tokenizer, 0), LlamaForCausalLM.from_pretrained(EMBEDDED_DIR)
    theirs = source.model.layers.state_dict()
    assert all(t.equal(theirs[name]) for name, t in model.model.layers.state_dict().items())
    vocabulary = PreTrainedTokenizerFast.from_pretrained(EMBEDDED_DIR).get_vocab()
    shared = sorted(set(vocabulary) & set(page_tokenizer.get_vocab()))
    assert len(shared) > 100
    mine, its = (m.get_input_embeddings().weight for m in (model, source))
    places = page_tokenizer.convert_tokens_to_ids(shared)
    assert mine[places].equal(its[[vocabulary[token] for token in shared]])


def test_no_two_tokens_begin_alike_and_the_same_seed_gives_the_same_model(page_tokenizer):
    one, again, other = (_begun(page_tokenizer, seed) for seed in (0, 0, 1))
    rows = [m.get_input_embeddings().weight for m in (one, again, other)]
    assert rows[0].equal(rows[1])
    assert not rows[0].equal(rows[2])
    assert len(torch.unique(rows[0], dim=0)) == len(page_tokenizer)


def test_a_model_of_other_sizes_is_refused(page_tokenizer):
    with pytest.raises(ConfigError, match=r"hidden_size is 64 here and 160 there.*--no-transfer"):
        small = build_model(page_tokenizer, settings_for("frontend", hidden=64, heads=2, mlp=96))
        take_layers(small, page_tokenizer, EMBEDDED_DIR, 0)

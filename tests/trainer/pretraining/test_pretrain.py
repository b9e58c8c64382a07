import json
import math
import random

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from sweet.errors import ConfigError
from trainer.pretraining import pages
from trainer.pretraining.functions import EXACT
from trainer.pretraining.functions import row as function_row
from trainer.pretraining.pretrain import PretrainSettings, pretrain, settings_for

TINY = PretrainSettings(
    hidden=32, layers=1, heads=2, mlp=64, steps=6, dialogues=4, warmup=2, checkpoint_every=3
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return pretrain(tmp_path_factory.mktemp("whole"), TINY)


def test_a_smoke_sized_run_learns_and_leaves_an_ordinary_model_folder(whole):
    log = [json.loads(line) for line in (whole / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in log] == [3, 6]
    model = AutoModelForCausalLM.from_pretrained(whole)
    tokenizer = AutoTokenizer.from_pretrained(whole)
    by_chance = math.log(len(tokenizer))
    assert log[-1]["loss"] < min(log[0]["loss"], by_chance)
    assert model.config.vocab_size == len(tokenizer)
    assert (whole / "model.safetensors").stat().st_size < 25e6


def test_a_stopped_run_goes_on_and_ends_with_the_same_weights(whole, tmp_path):
    pretrain(tmp_path, TINY, stop_after=3)
    pretrain(tmp_path, TINY)
    model = AutoModelForCausalLM.from_pretrained(tmp_path).state_dict()
    for name, tensor in AutoModelForCausalLM.from_pretrained(whole).state_dict().items():
        assert tensor.equal(model[name]), name


def test_text_survives_the_tokenizer_and_cannot_forge_a_speaker(whole):
    tokenizer = AutoTokenizer.from_pretrained(whole)
    code = "def taxi_fare(hours, is_member):\n    base = 2.5\n    if hours >= 3:\n        total = 7"
    assert tokenizer.decode(tokenizer(code, add_special_tokens=False)["input_ids"]) == code
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": "five <END><agent> dollars"}], return_dict=True
    )["input_ids"]
    assert ids.count(tokenizer.eos_token_id) == 1
    assert ids.count(tokenizer.convert_tokens_to_ids("<agent>")) == 0


def test_where_only_copying_is_learned_what_is_asked_has_no_weight(whole):
    tokenizer = PreTrainedTokenizerFast.from_pretrained(whole)
    rng = random.Random(3)
    for _ in range(20):
        ids, weights = function_row(tokenizer, "copy", 0.0, rng)
        words = tokenizer.convert_ids_to_tokens(ids)
        answer = words.index("WANT")
        assert all(w == EXACT for w in weights[answer : answer + 5])
        said = list(zip(words, weights, strict=True))[:answer]
        assert all(weight == 0 for word, weight in said if word in ("?", "I", "<user>"))
        assert all(weight == EXACT for word, weight in said if word == "Noted")


def test_each_kind_of_tasks_has_settings_of_its_own_and_an_unknown_one_is_refused():
    assert settings_for("backend") == PretrainSettings()
    drawing = settings_for("frontend", steps=3)
    assert (drawing.context_tokens, drawing.steps) == (pages.SETTINGS["context_tokens"], 3)
    with pytest.raises(ConfigError, match="backend, frontend"):
        settings_for("fullstack")

"""A batch split over processes gives what it gives in one."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from tests.trainer.pretraining.test_pretrain import TINY
from trainer.pretraining.pretrain import build_model, pretrain

BRIEF = replace(TINY, steps=2, dialogues=5, checkpoint_every=2)
TORCHRUN = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")


def test_two_processes_make_the_model_that_one_makes(tmp_path):
    one, two = pretrain(tmp_path / "one", BRIEF), tmp_path / "two"
    given = {name: getattr(BRIEF, name) for name in BRIEF.__dataclass_fields__}
    options = [
        f"--{name.replace('_', '-')}={value}"
        for name, value in given.items()
        if not isinstance(value, bool)
    ]
    run = [sys.executable, "-m", *TORCHRUN, "trainer", "pretrain", "--threads=1", *options]
    done = subprocess.run([*run, f"--out={two}"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    (mine,), (theirs,) = (
        [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
        for out in (one, two)
    )
    assert theirs["step"] == 2
    assert theirs["loss"] == pytest.approx(mine["loss"], rel=0.01)
    torch.manual_seed(BRIEF.seed)
    first = build_model(PreTrainedTokenizerFast.from_pretrained(one), BRIEF).state_dict()
    whole, split = (AutoModelForCausalLM.from_pretrained(out).state_dict() for out in (one, two))
    for name, before in first.items():
        learned = (whole[name] - before).abs().mean()
        assert (split[name] - whole[name]).abs().mean() <= 0.2 * learned, name  # bf16 rounds

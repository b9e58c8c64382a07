"""The shipped model does what its card says, on small samples with a margin for their size."""

import asyncio
import re
from contextlib import closing

import pytest

from evaluators.backend import BackendEvaluator
from evaluators.sandbox import Sandbox
from sweet.engines import EMBEDDED_DIR
from sweet.engines.local import LocalEngine
from sweet.parsing import parse_action
from sweet.policy import EnginePolicy
from sweet.settings import ModelSettings
from sweet.tasks.mini_backend import generate
from sweet.types import Message, Sampling
from trainer.pretraining.measure import all_told_answers, is_right, play, success, understood

ROWS = list(generate("test", 80, seed=5))


@pytest.fixture(scope="module")
def engine():
    with closing(LocalEngine(EMBEDDED_DIR)) as engine:
        yield engine


@pytest.fixture(scope="module")
def evaluator():
    with Sandbox.start() as sandbox:
        yield BackendEvaluator(sandbox)


def test_the_shipped_folder_is_small_and_has_a_card():
    weights = EMBEDDED_DIR / "model.safetensors"
    assert weights.stat().st_size <= 25e6
    card = (EMBEDDED_DIR / "README.md").read_text()
    for part in ("## How it was made", "## Figures", "## Limits"):
        assert part in card


def test_answers_are_right_when_every_detail_was_told(engine, evaluator):
    answers = asyncio.run(all_told_answers(engine, ROWS))
    right = [is_right(evaluator, row, answer) for row, answer in zip(ROWS, answers, strict=True)]
    assert sum(right) / len(right) >= 0.9


def test_the_shipped_agent_succeeds_sometimes_and_leaves_room_to_learn(engine, evaluator):
    policy = EnginePolicy("embedded", engine, ModelSettings().sampling, "plain")
    figures = success(asyncio.run(play(policy, evaluator, ROWS, seed=5)))
    assert figures["n"] == len(ROWS) and figures["unscored"] == 0
    assert 0.15 <= figures["share"] <= 0.5


def test_plain_answers_in_words_it_never_heard_are_noted(engine):
    assert sum(asyncio.run(understood(engine, 80))) >= 72


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        ("5", "base_fee = 5"),
        ("five dollars", "base_fee = 5"),
        ("$5.", "base_fee = 5"),
        ("FIVE!!", "base_fee = 5"),
        ("It's 12, I think", "base_fee = 12"),
        ("2.5", "base_fee = 2.5"),
        ("no idea", None),
    ],
)
def test_a_sloppy_person_is_understood(engine, reply, note):
    dialogue = [
        Message("user", "I need a function for the parking fee. It takes the hours. The signature "
                        "of the function is: def parking_fee(hours)"),
        Message("assistant", "How is the fee computed?"),
        Message("user", "It is the base fee plus the hour rate for every hour."),
        Message("assistant", "I see. What is the base fee?"),
        Message("user", reply),
    ]  # fmt: skip
    text = asyncio.run(engine.complete(dialogue, Sampling(temperature=0))).text
    if note is None:
        assert re.match(r"Then I take base_fee = [\d.]+\.", text)
    else:
        assert text.startswith(f"Noted: {note}.")


def test_what_it_was_not_made_for_gets_a_message_or_an_answer_and_no_crash(engine):
    for wish in ("", "???", "Write a poem about the sea.", "def f(x):\n\n\n", "é" * 400, "9" * 500):
        done = asyncio.run(engine.complete([Message("user", wish)], Sampling(seed=1)))
        assert parse_action(done.text).raw

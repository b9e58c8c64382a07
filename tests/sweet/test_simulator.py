"""Simulated collaborators: short, without the code, never invented."""

from __future__ import annotations

import asyncio

import pytest

from sweet.errors import PolicyError, SimulatorError
from sweet.simulator import LLMSimulator, ScriptedCollaborator, leaks, shortened, without_leaks
from sweet.tasks import mini_backend
from sweet.types import (
    Action,
    Collaborator,
    Exchange,
    HiddenInfo,
    Observation,
    Sampling,
    TaskKind,
)
from tests.contracts import CollaboratorContract
from tests.fakes import FakeEngine

REFERENCE = """def fee(weight, member):
    base_fee = 13
    total = base_fee + 2 * weight
    if member:
        total = total - total * 20 / 100
    return round(total)"""
HIDDEN = HiddenInfo(REFERENCE, ("fee(1, True)", "fee(2, False)"))
OBSERVATION = Observation(TaskKind.BACKEND, "The fee.", (Exchange("Hello?", "Hi."),), 9)
QUESTION = Action("How much is the base fee?", "How much is the base fee?", is_final=False)
LEAK = "Sure: base_fee = 13\ntotal = base_fee + 2 * weight, that is all."


def simulator(*says: str | Exception) -> tuple[LLMSimulator, FakeEngine]:
    engine = FakeEngine(says)
    return LLMSimulator("test-model", engine, Sampling(temperature=0)), engine


def ask(collaborator: Collaborator) -> str:
    return asyncio.run(collaborator.reply(OBSERVATION, QUESTION, HIDDEN, seed=7))


class TestLLMSimulator(CollaboratorContract):
    def make(self) -> Collaborator:
        return LLMSimulator("m", FakeEngine(lambda _, s: f"It is {s.seed}."), Sampling())


class TestScriptedCollaborator(CollaboratorContract):
    row = next(mini_backend.generate("train", 1, 1))

    def make(self) -> Collaborator:
        return ScriptedCollaborator()


def test_the_simulator_is_named_after_its_model() -> None:
    assert simulator()[0].name == "llm:test-model"


def test_the_prompt_has_the_reference_the_dialogue_and_no_test_call() -> None:
    collaborator, engine = simulator("It is 13.")
    assert ask(collaborator) == "It is 13."
    messages = engine.calls[0][0]
    assert [m.role for m in messages] == ["system", "user", "assistant", "user"]
    assert REFERENCE in messages[0].content and "The fee." in messages[0].content
    assert messages[-1].content == QUESTION.message
    assert "fee(1, True)" not in engine.prompts[0]


def test_a_leaking_reply_is_drawn_again_with_another_seed_and_some_temperature() -> None:
    collaborator, engine = simulator(LEAK, "It is thirteen.")
    assert ask(collaborator) == "It is thirteen."
    (_, first, _), (_, second, _) = engine.calls
    assert first.seed != second.seed
    assert (first.temperature, second.temperature > 0) == (0, True)


def test_when_every_draw_leaks_the_leaking_sentences_are_dropped() -> None:
    leak = "The base fee is 13. base_fee = 13 total = base_fee + 2 * weight if member."
    assert ask(simulator(*[leak] * 9)[0]) == "The base fee is 13."


def test_when_nothing_clean_is_left_the_turn_fails() -> None:
    with pytest.raises(SimulatorError, match="quoting the reference"):
        ask(simulator(*[f"```python\n{REFERENCE}\n```"] * 9)[0])


def test_an_empty_reply_is_drawn_again_then_fails() -> None:
    assert ask(simulator("", "<think>13?</think>", "13.")[0]) == "13."
    with pytest.raises(SimulatorError, match="said nothing"):
        ask(simulator(*[""] * 9)[0])


@pytest.mark.parametrize("failure", [PolicyError("no such model"), OSError("no such model")])
def test_a_failed_model_is_a_simulator_error(failure: Exception) -> None:
    with pytest.raises(SimulatorError, match="no such model"):
        ask(simulator(failure)[0])


@pytest.mark.parametrize(
    "reply",
    [
        "def fee(weight): return 13",
        "Use this: `def fee(`",
        "```\ntotal\n```",
        "Just do TOTAL = total - total*20 / 100 return round(total)",
        LEAK,
    ],
)
def test_code_in_a_reply_is_a_leak(reply: str) -> None:
    assert leaks(reply, REFERENCE)


@pytest.mark.parametrize(
    "reply",
    [
        "The base fee is 13 and each kilogram costs 2.",
        "Members pay 20 percent less, and the total is rounded.",
        "I definitely don't know.",
        "By default (if nothing is said) it is 13.",
        "total = base_fee + 2 * weight",  # nine tokens or fewer in a row are no quotation
    ],
)
def test_saying_it_in_words_is_no_leak(reply: str) -> None:
    assert not leaks(reply, REFERENCE)


def test_dropping_leaks_keeps_the_clean_sentences_around_code() -> None:
    reply = f"It is 13.\n\n{REFERENCE}\n\nMembers pay less. ```py\nx\n``` Anything else?"
    assert without_leaks(reply, REFERENCE) == "It is 13. Members pay less. Anything else?"


def test_a_leak_across_sentences_is_dropped_too() -> None:
    reply = "base_fee = 13 total = base_fee.\n + 2 * weight if member"
    assert not leaks(without_leaks(reply, REFERENCE), REFERENCE)


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("Short.", "Short."),
        ("One. " * 100, ("One. " * 80).strip()),
        ("word " * 100, ("word " * 80).strip()),
        ("x" * 500, "x" * 400),
        ("A. " + "b" * 396 + ". C.", "A. " + "b" * 396 + "."),
    ],
)
def test_a_reply_is_cut_at_400_characters_at_a_sentence_end_where_possible(
    reply: str, kept: str
) -> None:
    assert shortened(reply) == kept


def test_the_script_refuses_a_reference_that_is_not_minis() -> None:
    with pytest.raises(SimulatorError, match="ColBench-Mini"):
        ask(ScriptedCollaborator())

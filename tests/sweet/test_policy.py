"""The agent's role: what the engine is asked, and what its failures become."""

from __future__ import annotations

import asyncio

import pytest

from sweet.errors import PolicyError
from sweet.policy import EnginePolicy, Style
from sweet.prompts import agent_backend
from sweet.types import (
    ANSWER_MARK,
    Exchange,
    Message,
    Observation,
    Policy,
    Sampling,
    TaskKind,
)
from tests.contracts import PolicyContract
from tests.fakes import FakeEngine

OBSERVATION = Observation(TaskKind.BACKEND, "Add a fee.", (Exchange("Which?", "Five."),), 9)


def policy(engine: FakeEngine, style: Style = "plain", adapter: str | None = None) -> EnginePolicy:
    return EnginePolicy("p", engine, Sampling(temperature=0.5), style, adapter)


class TestEnginePolicy(PolicyContract):
    def make(self) -> Policy:
        return policy(FakeEngine(lambda messages, sampling: f"Seed {sampling.seed}?"))


class TestAnsweringPolicy(PolicyContract):
    def make(self) -> Policy:
        return policy(FakeEngine(lambda *_: f"{ANSWER_MARK}\ndef f(x): ..."), "instructed")


def test_the_plain_style_is_the_bare_dialogue() -> None:
    assert agent_backend.plain(OBSERVATION) == (
        Message("user", "Add a fee."),
        Message("assistant", "Which?"),
        Message("user", "Five."),
    )


def test_the_instructed_style_names_the_mark_and_the_number_of_turns() -> None:
    system, *dialogue = agent_backend.instructed(OBSERVATION)
    assert system.role == "system"
    assert ANSWER_MARK in system.content
    assert "10 messages" in system.content
    assert tuple(dialogue) == agent_backend.plain(OBSERVATION)


def test_the_instructed_style_warns_on_the_last_turn_only() -> None:
    last = Observation(TaskKind.BACKEND, "Add a fee.", OBSERVATION.exchanges, turns_left=1)
    assert "last message" in agent_backend.instructed(last)[-1].content
    assert agent_backend.instructed(last)[-1].content.startswith("Five.")
    assert "last message" not in agent_backend.instructed(OBSERVATION)[-1].content


def test_braces_in_a_description_stay_as_they_are() -> None:
    observation = Observation(TaskKind.BACKEND, "Return {turns} and {0}.")
    assert agent_backend.instructed(observation)[-1].content == "Return {turns} and {0}."


def test_each_turn_and_each_episode_has_its_own_seed_and_repeats_it() -> None:
    def seed(episode_seed: int, observation: Observation) -> int | None:
        engine = FakeEngine(["Which?"])
        asyncio.run(policy(engine).act(observation, seed=episode_seed))
        return engine.calls[0][1].seed

    first = Observation(TaskKind.BACKEND, "Add a fee.")
    assert seed(1, first) == seed(1, first)
    assert len({seed(1, first), seed(1, OBSERVATION), seed(2, first)}) == 3


def test_the_adapter_and_the_sampling_reach_the_engine() -> None:
    engine = FakeEngine(["Which?"])
    action = asyncio.run(policy(engine, adapter="/v0001").act(OBSERVATION, seed=1))
    _, sampling, adapter = engine.calls[0]
    assert (adapter, sampling.temperature) == ("/v0001", 0.5)
    assert action.usage is not None and action.duration_ms == 1.0


@pytest.mark.parametrize("failure", [PolicyError("the key is wrong"), OSError("the key is wrong")])
def test_a_failed_model_is_a_policy_error_and_no_reply(failure: Exception) -> None:
    with pytest.raises(PolicyError, match="the key is wrong"):
        asyncio.run(policy(FakeEngine([failure])).act(OBSERVATION, seed=1))


def test_an_empty_reply_is_a_policy_error() -> None:
    with pytest.raises(PolicyError, match="returned nothing"):
        asyncio.run(policy(FakeEngine([" \n"])).act(OBSERVATION, seed=1))

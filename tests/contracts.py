"""One suite for each interface. An implementation passes it in five lines:

class TestMyPolicy(PolicyContract):
    def make(self) -> Policy:
        return MyPolicy(...)
"""

from __future__ import annotations

import asyncio
import inspect

import pytest

from sweet.errors import SimulatorError
from sweet.types import (
    Action,
    Collaborator,
    Episode,
    Evaluator,
    Exchange,
    Observation,
    Policy,
    StopReason,
    TaskKind,
    TaskRow,
    Turn,
)
from tests.fakes import task_row

DESCRIPTION = "Write a function that adds a fee. The signature is: def f(x)"


class PolicyContract:
    """What every policy does."""

    def make(self) -> Policy:
        raise NotImplementedError

    def act(self, *exchanges: Exchange, seed: int = 7, on_text=None) -> Action:
        observation = Observation(TaskKind.BACKEND, DESCRIPTION, exchanges, 10 - len(exchanges))
        return asyncio.run(self.make().act(observation, seed=seed, on_text=on_text))

    def test_it_is_a_policy_with_an_id(self) -> None:
        policy = self.make()
        assert isinstance(policy, Policy)
        assert policy.id

    def test_it_acts_on_an_observation_and_nothing_else(self) -> None:
        parameters = inspect.signature(type(self.make()).act).parameters
        assert set(parameters) == {"self", "observation", "seed", "on_text"}

    def test_its_action_keeps_the_raw_text_and_has_an_artifact_only_if_final(self) -> None:
        action = self.act()
        assert action.message in action.raw
        assert (action.artifact is not None) == action.is_final
        assert action.message or action.is_final

    def test_it_goes_on_in_a_dialogue(self) -> None:
        assert self.act(Exchange("What is the fee?", "Five.")).raw

    def test_the_same_seed_gives_the_same_action(self) -> None:
        assert self.act(seed=3).raw == self.act(seed=3).raw

    def test_streamed_pieces_are_the_raw_text(self) -> None:
        pieces: list[str] = []
        action = self.act(on_text=pieces.append)
        assert "".join(pieces).strip() == action.raw.strip()


class CollaboratorContract:
    """What every simulated collaborator does. `row` is a task that it can play."""

    row: TaskRow = task_row()
    question = Action("What is the fee?", "What is the fee?", is_final=False)

    def make(self) -> Collaborator:
        raise NotImplementedError

    def reply(self, row: TaskRow, *exchanges: Exchange, seed: int = 7) -> str:
        assert row.hidden is not None
        observation = Observation(
            row.task.kind, row.task.description, exchanges, 10 - len(exchanges)
        )
        return asyncio.run(self.make().reply(observation, self.question, row.hidden, seed=seed))

    def test_it_is_a_collaborator_with_a_name(self) -> None:
        collaborator = self.make()
        assert isinstance(collaborator, Collaborator)
        assert collaborator.name and collaborator.name != "person"

    def test_it_replies_in_at_most_400_characters_without_code(self) -> None:
        reply = self.reply(self.row)
        assert 0 < len(reply) <= 400
        assert "def " not in reply and "```" not in reply

    def test_it_goes_on_in_a_dialogue(self) -> None:
        assert self.reply(self.row, Exchange("Hello?", "Hello."))

    def test_the_same_seed_gives_the_same_reply(self) -> None:
        assert self.reply(self.row, seed=3) == self.reply(self.row, seed=3)

    def test_a_reference_of_no_sense_fails_clearly_or_is_answered(self) -> None:
        try:
            assert self.reply(task_row(reference="%%%"))
        except SimulatorError as e:
            assert str(e)


class EvaluatorContract:
    """What every evaluator does. `row` and `right` are a task and a right answer to it."""

    row: TaskRow = task_row()
    right = "def f(x):\n    return x + 5"
    wrong = "def f(x):\n    return x - 5"

    def make(self) -> Evaluator:
        raise NotImplementedError

    def score(self, artifact: str | None, reason: StopReason = StopReason.ANSWERED):
        assert self.row.hidden is not None
        turns: tuple[Turn, ...] = ()
        if artifact is not None:
            turns = (Turn(0, Action(artifact, "", True, artifact)),)
        episode = Episode(
            "e", self.row.task.id, "p", "c", 0, turns=turns, artifact=artifact, stop_reason=reason
        )
        return asyncio.run(self.make()(self.row.task, self.row.hidden, episode))

    def test_a_right_answer_has_the_full_reward(self) -> None:
        evaluation = self.score(self.right)
        assert evaluation.error is None
        assert evaluation.reward is not None and evaluation.reward.value == 1

    def test_a_wrong_answer_has_none_of_it_but_a_reward(self) -> None:
        reward = self.score(self.wrong).reward
        assert reward is not None and reward.value < 1

    @pytest.mark.parametrize("reason", [StopReason.TURN_LIMIT])
    def test_no_artifact_is_a_reward_of_zero(self, reason: StopReason) -> None:
        reward = self.score(None, reason).reward
        assert reward is not None and reward.value == 0

    def test_a_reward_and_its_parts_are_between_0_and_1(self) -> None:
        for answer in (self.right, self.wrong, "", "I don't know"):
            reward = self.score(answer).reward
            assert reward is not None
            assert all(0 <= value <= 1 for value in (reward.value, *reward.components.values()))

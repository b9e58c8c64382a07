"""The bare dialogue of an observation, which every prompt of an agent or critic is built on."""

from __future__ import annotations

from sweet.types import ANSWER_MARK, Message, Observation


def plain(observation: Observation) -> tuple[Message, ...]:
    """The bare dialogue, for a model that was trained on it (the embedded one)."""
    messages = [Message("user", observation.description)]
    for exchange in observation.exchanges:
        messages.append(Message("assistant", exchange.agent))
        messages.append(Message("user", exchange.collaborator))
    return tuple(messages)


def instructed(observation: Observation, instructions: str, last: str) -> tuple[Message, ...]:
    """The instructions, the dialogue, and `last` at the end of the last turn's message.

    `{turns}` and `{mark}` in both are filled in.
    """
    turns = len(observation.exchanges) + observation.turns_left
    system = Message("system", instructions.format(turns=turns, mark=ANSWER_MARK))
    *before, final = plain(observation)
    if observation.turns_left <= 1:
        final = Message(final.role, final.content + last.format(mark=ANSWER_MARK))
    return (system, *before, final)

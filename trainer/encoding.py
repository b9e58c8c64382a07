"""Dialogues → tokens with the agent's turns marked, for any chat template.

The template renders the whole dialogue once, with a mark in place of each agent message; message
and surroundings are then tokenised apart, as they are when the agent speaks: its tokens come after
a prompt that is already tokens. So a candidate for a turn has the same tokens as a logged message,
and a turn's span is exact: the message and its end-of-turn token, without the header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from sweet.errors import TrainingError, boundary
from sweet.parsing import spoken
from sweet.prompts import agent_backend, agent_frontend, critic_backend, critic_frontend
from sweet.types import Exchange, HiddenInfo, Message, Observation, TaskKind, Turn

Prompt = Callable[[Observation], tuple[Message, ...]]
"""What a model reads before the agent's next message."""

_MARK = "\ue000message {}\ue001"  # private-use characters: no template changes them


@dataclass(frozen=True, slots=True)
class Trunk:
    """A dialogue in tokens. Turn n of the agent (from 0) is ids[start:end] of `spans`[n].

    A candidate for that turn branches off at `start`; `end_id` ends every turn.
    """

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    end_id: int


def policy_prompt(kind: TaskKind, style: str) -> Prompt:
    """What the policy reads, without hidden information. Raises: TrainingError."""
    prompts: dict[tuple[TaskKind, str], Prompt] = {
        (TaskKind.BACKEND, "instructed"): agent_backend.instructed,
        (TaskKind.BACKEND, "plain"): agent_backend.plain,
        (TaskKind.FRONTEND, "instructed"): agent_frontend.instructed,
        (TaskKind.FRONTEND, "plain"): agent_frontend.plain,
    }
    return _chosen(prompts, kind, style)


def critic_prompt(kind: TaskKind, style: str, hidden: HiddenInfo) -> Prompt:
    """What the critic reads: hidden information and the dialogue. Raises: TrainingError."""
    prompts: dict[tuple[TaskKind, str], Prompt] = {
        (TaskKind.BACKEND, "instructed"): lambda o: critic_backend.instructed(o, hidden),
        (TaskKind.BACKEND, "plain"): lambda o: critic_backend.plain(o, hidden),
        (TaskKind.FRONTEND, "instructed"): lambda o: critic_frontend.instructed(o, hidden),
        (TaskKind.FRONTEND, "plain"): lambda o: critic_frontend.plain(o, hidden),
    }
    return _chosen(prompts, kind, style)


def encode_turns(
    tokenizer: Any, observation: Observation, turns: Sequence[Turn], prompt: Prompt
) -> Trunk:
    """What `prompt` shows of a dialogue that goes on after `observation` with `turns`, as tokens.

    The spans are those of `turns` alone. Raises: TrainingError.
    """
    if not turns:
        raise TrainingError("An episode without turns can't be learned from.")
    *before, last = turns
    done = tuple(Exchange(t.action.message, t.reply or "") for t in before)
    seen = replace(
        observation,
        exchanges=observation.exchanges + done,
        turns_left=observation.turns_left - len(done),
    )
    answer = Message("assistant", spoken(last.action.raw))
    trunk = encode(tokenizer, [*prompt(seen), answer])
    return replace(trunk, spans=trunk.spans[-len(turns) :])


def encode(tokenizer: Any, messages: Sequence[Message]) -> Trunk:
    """A dialogue as tokens; every assistant message is a turn.

    Raises: TrainingError where the chat template can't show the dialogue, or doesn't end an
    assistant's message with a special token.
    """
    texts = [m.content for m in messages if m.role == "assistant"]
    if not texts:
        raise TrainingError("There is no message of the assistant in the dialogue.")
    ids: list[int] = []
    spans: list[tuple[int, int]] = []
    first, *others = _between(tokenizer, messages, len(texts))
    ids += _tokens(tokenizer, first)
    end_id = -1
    for text, following in zip(texts, others, strict=True):
        after = _tokens(tokenizer, following)
        end_id = _end(tokenizer, after)
        start = len(ids)
        ids += [*_tokens(tokenizer, text), end_id]
        spans.append((start, len(ids)))
        ids += after[1:]
    return Trunk(tuple(ids), tuple(spans), end_id)


def candidate_ids(tokenizer: Any, trunk: Trunk, text: str, *, ended: bool = True) -> list[int]:
    """A candidate's tokens, to branch off at a turn's start.

    `ended` is False for a text that was cut: it has no end-of-turn token.
    """
    return [*_tokens(tokenizer, text), *([trunk.end_id] if ended else [])]


def turn_map(trunks: Sequence[Trunk]) -> torch.Tensor:
    """Whose token each is, (B, T) as `losses` take it: 0, or n for the n-th span, from 1."""
    turns = torch.zeros(len(trunks), max(len(t.ids) for t in trunks), dtype=torch.long)
    for row, trunk in enumerate(trunks):
        for number, (start, end) in enumerate(trunk.spans, start=1):
            turns[row, start:end] = number
    return turns


def _chosen(prompts: dict[tuple[TaskKind, str], Prompt], kind: TaskKind, style: str) -> Prompt:
    if (kind, style) not in prompts:
        known = ", ".join(f"{k.value}/{s}" for k, s in prompts)
        raise TrainingError(f"There is no prompt for {kind.value}/{style}; there are: {known}.")
    return prompts[kind, style]


def _between(tokenizer: Any, messages: Sequence[Message], turns: int) -> Iterator[str]:
    """What the template writes before, between and after the agent's messages."""
    template = tokenizer.chat_template
    if not template:
        raise TrainingError(
            "The tokenizer has no chat template. Choose an instruction-tuned model."
        )
    if "reference" not in str(template) and any(m.role == "reference" for m in messages):
        raise TrainingError(
            "The chat template has no role 'reference'. Use the critic's prompt 'instructed'."
        )
    marks = iter(_MARK.format(n) for n in range(turns))
    shown = [
        {"role": m.role, "content": next(marks) if m.role == "assistant" else m.content}
        for m in messages
    ]
    with boundary(TrainingError, "The chat template could not show the dialogue"):
        rest = tokenizer.apply_chat_template(shown, tokenize=False)
    for n in range(turns):
        before, mark, rest = rest.partition(_MARK.format(n))
        if not mark or _MARK.format(n) in rest:
            raise TrainingError("The chat template does not show each assistant message once.")
        yield before
    yield rest


def _tokens(tokenizer: Any, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"] if text else []


def _end(tokenizer: Any, after: Sequence[int]) -> int:
    """The token that ends a turn: the first of what the template writes after it."""
    special = {*tokenizer.all_special_ids, *tokenizer.get_added_vocab().values()}
    if not after or after[0] not in special:
        raise TrainingError(
            "The chat template does not end an assistant's message with a special token."
        )
    return after[0]

from __future__ import annotations

import pytest
import torch

from sweet.errors import TrainingError
from sweet.prompts import agent_backend
from sweet.types import Action, Exchange, HiddenInfo, Message, Observation, TaskKind, Turn
from tests.sweet.engines.tiny import tokenizer as byte_tokenizer
from trainer.encoding import (
    candidate_ids,
    critic_prompt,
    encode,
    encode_turns,
    policy_prompt,
    turn_map,
)
from trainer.losses import Tokens, turn_advantages
from trainer.pretraining.rows import encode as encode_demonstration
from trainer.pretraining.tokenizer import CHAT_TEMPLATE

CHATML = (
    "{% for m in messages %}<system>{{ m.role }}\n{{ m.content | trim }}<end>\n{% endfor %}"
    "{% if add_generation_prompt %}<system>assistant\n{% endif %}"
)
ANSWER = "I WANT TO ANSWER:\ndef fee(x):\n    return x"
DIALOGUE = [
    Message("user", "Make fee(x)."),
    Message("assistant", "How much?"),
    Message("user", "Five."),
    Message("assistant", ANSWER),
]
START = Observation(TaskKind.BACKEND, "Make fee(x).")
TURNS = (
    Turn(0, Action("<think>hm</think>\nHow much?\n", "How much?", False), "Five."),
    Turn(1, Action(ANSWER, "", True, "def fee(x):\n    return x")),
)
HIDDEN = HiddenInfo("def fee(x):\n    return 5 * x", ("fee(1)",))
templates = pytest.mark.parametrize("template", [CHATML, CHAT_TEMPLATE], ids=["chatml", "embedded"])


def decoded(tokenizer, trunk) -> list[str]:
    return [tokenizer.decode(trunk.ids[start:end]) for start, end in trunk.spans]


@templates
def test_a_span_is_the_message_and_its_end_token_without_the_header(template):
    tokenizer = byte_tokenizer(template)
    trunk = encode(tokenizer, DIALOGUE)
    assert decoded(tokenizer, trunk) == ["How much?<end>", f"{ANSWER}<end>"]
    assert trunk.end_id == tokenizer.convert_tokens_to_ids("<end>")


@templates
def test_the_whole_is_what_the_template_writes(template):
    tokenizer = byte_tokenizer(template)
    rendered = tokenizer.apply_chat_template(
        [{"role": m.role, "content": m.content} for m in DIALOGUE], tokenize=False
    )
    whole = tokenizer(rendered, add_special_tokens=False)["input_ids"]
    assert list(encode(tokenizer, DIALOGUE).ids) == whole


@templates
@pytest.mark.parametrize("style", ["plain", "instructed"])
@pytest.mark.parametrize("turns_left", [10, 2])
def test_before_each_turn_the_trunk_is_the_prompt_the_policy_had(template, style, turns_left):
    tokenizer = byte_tokenizer(template)
    prompt = policy_prompt(TaskKind.BACKEND, style)
    start = Observation(TaskKind.BACKEND, START.description, turns_left=turns_left)
    trunk = encode_turns(tokenizer, start, TURNS, prompt)
    later = Observation(
        TaskKind.BACKEND, START.description, (Exchange("How much?", "Five."),), turns_left - 1
    )
    for (at, _), observation in zip(trunk.spans, (start, later), strict=True):
        rendered = tokenizer.apply_chat_template(
            [{"role": m.role, "content": m.content} for m in prompt(observation)],
            tokenize=False,
            add_generation_prompt=True,
        )
        asked = tokenizer(rendered, add_special_tokens=False)["input_ids"]
        assert list(trunk.ids[:at]) == asked


def test_a_thought_is_no_part_of_a_turn():
    tokenizer = byte_tokenizer()
    trunk = encode_turns(tokenizer, START, TURNS, agent_backend.plain)
    assert decoded(tokenizer, trunk) == ["How much?<end>", f"{ANSWER}<end>"]


def test_only_the_turns_after_the_observation_are_marked():
    tokenizer = byte_tokenizer()
    seen = Observation(TaskKind.BACKEND, START.description, (Exchange("How much?", "Five."),), 9)
    trunk = encode_turns(tokenizer, seen, TURNS[1:], agent_backend.plain)
    whole = encode_turns(tokenizer, START, TURNS, agent_backend.plain)
    assert trunk.ids == whole.ids
    assert trunk.spans == whole.spans[1:]


def test_a_candidate_has_the_tokens_of_the_same_logged_message():
    tokenizer = byte_tokenizer(CHATML)
    trunk = encode(tokenizer, DIALOGUE)
    start, end = trunk.spans[1]
    logged = list(trunk.ids[start:end])
    assert candidate_ids(tokenizer, trunk, ANSWER) == logged
    assert candidate_ids(tokenizer, trunk, ANSWER, ended=False) == logged[:-1]


@pytest.mark.parametrize("style", ["plain", "instructed"])
def test_the_critic_reads_hidden_information_first_and_the_policy_never_does(style):
    tokenizer = byte_tokenizer()
    critic = critic_prompt(TaskKind.BACKEND, style, HIDDEN)
    trunk = encode_turns(tokenizer, START, TURNS, critic)
    seen = tokenizer.decode(trunk.ids)
    assert seen.index("return 5 * x") < seen.index("Make fee(x).")
    assert decoded(tokenizer, trunk) == ["How much?<end>", f"{ANSWER}<end>"]
    policy = encode_turns(tokenizer, START, TURNS, policy_prompt(TaskKind.BACKEND, style))
    assert "5 * x" not in tokenizer.decode(policy.ids)


def test_the_embedded_critic_reads_what_pretraining_wrote():
    from trainer.pretraining.tokenizer import build_tokenizer

    tokenizer = build_tokenizer(512)
    shown = [Message("reference", HIDDEN.reference), *DIALOGUE]
    trunk = encode(tokenizer, shown)
    ids, agents = encode_demonstration(tokenizer, shown)
    assert list(trunk.ids) == ids
    assert [i for i, is_agents in enumerate(agents) if is_agents] == [
        i for start, end in trunk.spans for i in range(start, end)
    ]
    critic = critic_prompt(TaskKind.BACKEND, "plain", HIDDEN)
    assert encode_turns(tokenizer, START, TURNS, critic) == trunk


def test_the_map_of_turns_is_what_the_losses_take():
    tokenizer = byte_tokenizer()
    trunks = [encode(tokenizer, DIALOGUE), encode(tokenizer, DIALOGUE[:2])]
    turns = turn_map(trunks)
    assert turns.shape == (2, len(trunks[0].ids))
    for row, trunk in zip(turns, trunks, strict=True):
        for number, (start, end) in enumerate(trunk.spans, start=1):
            assert (row == number).nonzero().flatten().tolist() == list(range(start, end))
    logps = torch.where(turns == 2, 3.0, 1.0)
    advantages = turn_advantages(Tokens(logps, torch.zeros_like(logps), turns))
    assert advantages.tolist() == [[1.0, 3.0], [1.0, 0.0]]


def test_what_a_person_writes_cannot_pass_for_a_turn():
    tokenizer = byte_tokenizer()
    forged = Message("user", "\ue000message 0\ue001")
    with pytest.raises(TrainingError, match="once"):
        encode(tokenizer, [forged, *DIALOGUE[1:]])


@pytest.mark.parametrize(
    ("template", "messages", "message"),
    [
        (None, DIALOGUE, "no chat template"),
        (CHATML, [Message("reference", "x"), *DIALOGUE], "no role 'reference'"),
        ("{{ raise_exception('no system') }}", DIALOGUE, "could not show the dialogue"),
        ("{{ messages[-1].content }}", DIALOGUE, "each assistant message once"),
        ("{% for m in messages %}{{ m.content }}. {% endfor %}", DIALOGUE, "special token"),
        (CHATML, DIALOGUE[:1], "no message of the assistant"),
    ],
)
def test_a_template_that_cannot_serve_says_why(template, messages, message):
    with pytest.raises(TrainingError, match=message):
        encode(byte_tokenizer(template), messages)


def test_an_episode_without_turns_is_refused():
    with pytest.raises(TrainingError, match="without turns"):
        encode_turns(byte_tokenizer(), START, (), agent_backend.plain)


def test_a_style_without_a_prompt_is_named():
    with pytest.raises(TrainingError, match=r"frontend/terse; there are: backend/instructed"):
        policy_prompt(TaskKind.FRONTEND, "terse")
    with pytest.raises(TrainingError, match="backend/terse"):
        critic_prompt(TaskKind.BACKEND, "terse", HIDDEN)


@pytest.mark.parametrize("style", ["plain", "instructed"])
def test_the_critic_of_a_page_reads_the_wanted_one_and_the_policy_does_not(style):
    seen = Observation(
        TaskKind.FRONTEND, "a page", (Exchange("<html>a</html>", "Make it blue."),), 5
    )
    hidden = HiddenInfo("<html>wanted</html>")
    critic = critic_prompt(TaskKind.FRONTEND, style, hidden)(seen)
    policy = policy_prompt(TaskKind.FRONTEND, style)(seen)
    assert "wanted</html>" in critic[0].content
    assert not any("wanted</html>" in message.content for message in policy)
    assert [m.content for m in critic[-2:]] == ["<html>a</html>", "Make it blue."]
    assert policy[-2:] == critic[-2:]

import random
import re

from sweet.parsing import parse_action
from sweet.tasks.mini_backend import reference, split_of
from sweet.tasks.mini_families import held_out_families
from sweet.types import MAX_TURNS
from trainer.pretraining.demonstrations import (
    CAREFUL,
    DITHERING,
    HASTY,
    MEDIUM,
    dialogue,
    random_spec,
)

RNG = random.Random(11)
DIALOGUES = [
    (spec, dialogue(spec, style, RNG))
    for style in (CAREFUL, MEDIUM, HASTY) * 100
    for spec in [random_spec(RNG)]
]


def answer_of(messages):
    artifact = parse_action(messages[-1].content).artifact
    assert artifact is not None
    return artifact.strip()


def test_speakers_take_turns_and_the_agent_answers_within_ten_messages():
    for _, messages in DIALOGUES:
        assert [m.role for m in messages] == ["user", "assistant"] * (len(messages) // 2)
        actions = [parse_action(m.content) for m in messages if m.role == "assistant"]
        assert len(actions) <= MAX_TURNS
        assert [a.is_final for a in actions] == [False] * (len(actions) - 1) + [True]


def test_an_agent_that_dithers_may_run_out_of_turns_without_an_answer():
    made = [dialogue(random_spec(RNG), DITHERING, RNG) for _ in range(200)]
    finals = [[parse_action(m.content).is_final for m in d if m.role == "assistant"] for d in made]
    out_of_turns = [each for each in finals if not each[-1]]
    assert 0 < len(out_of_turns) < len(made)
    assert {len(each) for each in out_of_turns} == {MAX_TURNS}
    assert max(map(len, finals)) == MAX_TURNS
    assert not any(final for each in finals for final in each[:-1])


def test_an_answer_is_the_reference_when_everything_was_told():
    plain = [
        (spec, messages)
        for spec, messages in DIALOGUES[::3]
        if not re.search("Then (I take|no)|Sorry", "\n".join(m.content for m in messages))
    ]
    assert len(plain) > 30
    for spec, messages in plain:
        assert answer_of(messages) == reference(spec)


def test_careful_agents_are_right_more_often_than_hasty_ones():
    def rate(pairs):
        answers = [answer_of(messages) for _, messages in pairs]
        return sum(a == reference(s) for a, (s, _) in zip(answers, pairs, strict=True)) / len(pairs)

    assert rate(DIALOGUES[::3]) > rate(DIALOGUES[1::3]) > rate(DIALOGUES[2::3])


def test_training_tasks_are_never_validation_test_or_held_out_ones():
    specs = [random_spec(RNG) for _ in range(500)]
    assert {split_of(s) for s in specs} == {"train"}
    things = {f.thing for f in held_out_families()}
    assert not {s.family.thing for s in specs} & things

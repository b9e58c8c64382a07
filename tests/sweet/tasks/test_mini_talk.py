import pytest

from sweet.errors import TaskDataError
from sweet.tasks.mini_backend import generate, parse_reference
from sweet.tasks.mini_talk import asked, in_words, reply_to
from sweet.types import Exchange, HiddenInfo
from tests.fakes import hidden_of

ROWS = list(generate("test", 80, seed=9))


def _row(shape: str):
    for row in ROWS:
        spec = parse_reference(hidden_of(row).reference)
        if spec.family.shape.name == shape:
            return row, spec
    raise AssertionError(shape)


def test_a_question_that_names_a_detail_gets_its_value():
    for row in ROWS:
        spec = parse_reference(hidden_of(row).reference)
        for name, value in spec.constants.items():
            if name == spec.bound_name:
                continue
            reply = reply_to(f"What is the {name}?", hidden_of(row), (), seed=1).replace(",", "")
            assert str(value) in reply or in_words(value) in reply, (name, value, reply)


@pytest.mark.parametrize(
    ("question", "key"),
    [
        ("How do you work it out?", "logic"),
        ("What formula should be used to compute the result?", "logic"),
        ("How is the total calculated?", "logic"),
        ("Should I round the result?", "rounding"),
        ("Any rounding to be done?", "rounding"),
        ("Is there a maximum or minimum?", "bound"),
        ("Is the result capped?", "bound"),
        ("What is its colour?", None),
        ("", None),
        ("??!", None),
    ],
)
def test_questions_in_other_words_are_understood(question, key):
    _, spec = _row("linear")
    assert asked(question, spec) == ([key] if key else [])


def test_a_question_about_the_boundary_gets_yes_or_no_not_the_number():
    row, spec = _row("surcharge")
    question = f"Is it inclusive, exactly at the {spec.limit_name}?"
    assert asked(question, spec) == ["at limit"]
    assert not any(c.isdigit() for c in reply_to(question, hidden_of(row), (), seed=2))


def test_two_details_in_one_question_are_both_answered():
    row, spec = _row("two_rates")
    first, second = list(spec.constants)[:2]
    reply = reply_to(f"What are the {first} and the {second}?", hidden_of(row), (), seed=0)
    assert f"The {first} is {spec.constants[first]}." in reply
    assert f"The {second} is {spec.constants[second]}." in reply


def test_what_the_agent_noted_is_not_taken_for_its_question():
    row, spec = _row("two_rates")
    first, second = list(spec.constants)[:2]
    noted = f"Noted: {first.replace(' ', '_')} = 2.5. And the {second}?"
    reply = reply_to(noted, hidden_of(row), (), seed=0)
    value = spec.constants[second]
    assert str(value) in reply or in_words(value) in reply
    assert first not in reply


def test_a_question_that_asks_nothing_known_gets_no_detail():
    row, _ = _row("linear")
    for seed in range(20):
        reply = reply_to("Can you tell me more?", hidden_of(row), (), seed)
        assert reply and not any(c.isdigit() for c in reply)


def test_a_repeated_question_is_recognised():
    row, spec = _row("linear")
    name = next(iter(spec.constants))
    history = (Exchange(f"What is the {name}?", "5"),)
    assert reply_to(f"And the {name}?", hidden_of(row), history, 0).startswith("As I said, ")


def test_replies_are_the_same_for_the_same_seed_and_differ_over_seeds():
    row, spec = _row("linear")
    question = f"What is the {next(iter(spec.constants))}?"
    replies = [reply_to(question, hidden_of(row), (), seed) for seed in range(30)]
    assert replies == [reply_to(question, hidden_of(row), (), seed) for seed in range(30)]
    assert len(set(replies)) > 5


def test_a_reference_of_another_kind_is_refused():
    with pytest.raises(TaskDataError, match="no ColBench-Mini reference"):
        reply_to("What is it?", HiddenInfo("def f():\n    return 1"), (), 0)

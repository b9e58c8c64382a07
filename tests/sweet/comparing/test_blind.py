from __future__ import annotations

import pytest

from sweet.comparing.blind import names_itself
from sweet.types import PolicyVersion

EMBEDDED = PolicyVersion("embedded", "embedded")
TRAINED = PolicyVersion("v0007", "embedded", "/somewhere/v0007")
LLAMA = PolicyVersion(
    "endpoint:meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"
)


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (LLAMA, "I am Llama, made by Meta."),
        (LLAMA, "Hello, I'm a Llama model."),
        (LLAMA, "You are talking to llama-3.1-8b-instruct."),
        (LLAMA, "As meta-llama/Llama-3.1-8B-Instruct I can't."),
        (TRAINED, "This answer is by V0007."),
        (EMBEDDED, "My name is Embedded."),
    ],
)
def test_a_side_that_says_its_name_is_noticed(version, text) -> None:
    assert names_itself(version, text)


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (LLAMA, "How many llamas and alpacas does the farm have?"),
        (LLAMA, "Is a llama charged per kilogram?"),
        (TRAINED, "The version is v00071 or xv0007."),
        (EMBEDDED, "Should the list be embedded in the result?"),
        (EMBEDDED, ""),
        (PolicyVersion("a", "b"), "I am a b."),
    ],
)
def test_a_word_that_happens_to_be_a_name_is_none(version, text) -> None:
    assert not names_itself(version, text)


def test_a_name_with_signs_of_patterns_is_taken_as_it_is() -> None:
    version = PolicyVersion("hf:my.model+(v2)", "my.model+(v2)")
    assert names_itself(version, "I am my.model+(v2)!")
    assert not names_itself(version, "I am myxmodel")

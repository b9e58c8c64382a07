from __future__ import annotations

import pytest

from sweet.engines.generation import Text


def stream(pieces: list[str], stop: tuple[str, ...] = ()) -> tuple[list[str], str]:
    """What is passed on after each token, and the text in the end; a token is one piece."""

    def decode(ids: list[int]) -> str:
        return "".join(pieces[i] for i in ids).encode("latin1").decode("utf8", "replace")

    text = Text(decode, stop)
    heard = []
    for i in range(len(pieces)):
        stopped = text.update(list(range(i + 1)), last=i == len(pieces) - 1)
        heard.append(text.news())
        if stopped:
            break
    return heard, text.text


def bytes_of(text: str) -> list[str]:
    """A token for each byte."""
    return [chr(b) for b in text.encode()]


def test_a_character_of_several_tokens_comes_whole() -> None:
    heard, text = stream(bytes_of("aé🙂b"))
    assert heard == ["", "a", "", "é", "", "", "", "🙂b"]
    assert text == "aé🙂b"


def test_bytes_that_make_no_character_come_when_that_is_sure() -> None:
    heard, text = stream(["\xc3", "a", "\xff"])
    assert heard == ["", "\ufffd", "a\ufffd"]
    assert text == "\ufffda\ufffd"


@pytest.mark.parametrize("cut", range(1, 8))
def test_no_part_of_a_stop_string_is_passed_on(cut: int) -> None:
    whole = "one STOP"
    heard, text = stream([whole[:cut], whole[cut:], " two"], stop=("STOP",))
    assert "".join(heard) == text == "one "


def test_what_only_begins_like_a_stop_string_is_passed_on_in_the_end() -> None:
    heard, text = stream(["on", "e ST", "ONE", " ST"], stop=("STOP",))
    assert heard == ["", "on", "e ", "STONE ST"]
    assert text == "one STONE ST"


def test_the_first_of_several_stop_strings_counts() -> None:
    assert stream(["a b c d"], stop=("d", "c", "never"))[1] == "a b "

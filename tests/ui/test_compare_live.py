"""What of two sides may be seen while they are played: as much of one as of the other."""

from __future__ import annotations

from sweet.services import PERSON
from sweet.types import Action, Episode, Speaker, StopReason, Turn
from ui.compare_live import Side, glimpses

ANSWER = "I WANT TO ANSWER:\ndef f(x): return x"


def side(*said: str, live: str = "", seat: str = "scripted", end: StopReason | None = None) -> Side:
    """A side after these messages, the agent's and the collaborator's in turn."""
    turns = tuple(
        Turn(i // 2, Action(message, message, message == ANSWER), (*said, None)[i + 1])
        for i, message in enumerate(said)
        if i % 2 == 0
    )
    found = Side(Episode("e", "t", "p", seat, 1, turns=turns, stop_reason=end))
    found.pieces.append(live)
    return found


def seen(*sides: Side) -> list[tuple[int, int, Speaker, str]]:
    """Turns, replies, who speaks and what was said so far, of each side."""
    return [
        (
            len(g.episode.turns),
            sum(turn.reply is not None for turn in g.episode.turns),
            g.speaker,
            g.said,
        )
        for g in glimpses(sides)
    ]


def test_messages_appear_at_the_pace_of_the_slower_one() -> None:
    quick, slow = side(live="a quick message"), side(live="slow")
    assert seen(quick, slow) == [(0, 0, Speaker.AGENT, "a qu"), (0, 0, Speaker.AGENT, "slow")]


def test_a_side_that_has_not_begun_holds_the_other_back() -> None:
    assert seen(side(live="a quick message"), side())[0] == (0, 0, Speaker.AGENT, "")


def test_a_message_that_is_done_is_shown_at_the_pace_of_the_other() -> None:
    waits, speaks = side("all of it", seat=PERSON), side(live="half", seat=PERSON)
    assert seen(waits, speaks) == [
        (0, 0, Speaker.AGENT, "all "),
        (0, 0, Speaker.AGENT, "half"),
    ]


def test_once_both_have_spoken_all_is_shown() -> None:
    both = [side("a long message", seat=PERSON), side("short", seat=PERSON)]
    assert seen(*both) == [(1, 0, Speaker.NOBODY, "")] * 2


def test_a_side_that_is_turns_ahead_is_cut_to_where_the_other_is() -> None:
    ahead, behind = side("one", "1", "two", "2", live="thr"), side("one", "1", live="t")
    assert seen(ahead, behind) == [(1, 1, Speaker.AGENT, "t"), (1, 1, Speaker.AGENT, "t")]


def test_a_reply_is_not_shown_before_the_other_side_has_one() -> None:
    ahead, behind = side("one", "1", live="two"), side("one")
    assert seen(ahead, behind) == [(1, 0, Speaker.COLLABORATOR, "")] * 2


def test_a_side_that_ended_early_is_shown_whole_when_the_other_comes_to_its_place() -> None:
    over = side("one", "1", ANSWER, end=StopReason.ANSWERED)
    early, late = side(live="o"), side("one", "1", "two", "2", live="three")
    assert seen(over, early)[0] == (0, 0, Speaker.AGENT, "o")
    assert glimpses([over, early])[0].episode.stop_reason is None
    assert seen(over, late)[0] == (2, 1, Speaker.NOBODY, "")
    assert glimpses([over, late])[0].episode.stop_reason is StopReason.ANSWERED


def test_a_side_that_is_being_scored_does_not_hold_the_other_back() -> None:
    scored, speaks = side("one", "1", ANSWER), side("one", "1", "two", "2", live="three")
    assert seen(scored, speaks)[1] == (2, 2, Speaker.AGENT, "three")


def test_a_side_whose_moves_broke_off_does_not_hold_the_other_back() -> None:
    broken, speaks = side("one", "1", live="tw"), side("one", "1", live="two and more")
    broken.is_done = True
    assert seen(broken, speaks) == [
        (1, 1, Speaker.NOBODY, ""),
        (1, 1, Speaker.AGENT, "two and more"),
    ]

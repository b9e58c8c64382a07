"""What critics said → HTML: bars, the strip over the episode, candidates."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from sweet.store import EpisodeCredit, RankedCandidate
from sweet.types import Action, Episode, Task, TaskKind, Turn
from ui.credit import CANDIDATE_CHARS, Critic, Scale, overview, turn_credit
from ui.replay import replay
from ui.session import LogView, log_view_of

BAD = "<img src=x onerror=window.hit=1>"
SAID = "How much is it?"
TURNS = tuple(Turn(i, Action(f"<think>hm</think>{SAID}", SAID, False), "five") for i in range(3))
TASK = Task("t-1", TaskKind.BACKEND, "Add.", "train", "mini-backend")
EPISODE = Episode("e1", "t-1", "embedded", "scripted", 7, turns=TURNS)
GOOD = RankedCandidate("Which currency?", 5, 0.5, chosen=3)
SAME = RankedCandidate(SAID, 1, -0.25, chosen=1, rejected=2)
CUT = RankedCandidate("And then I", 2, -1.0, rejected=1, is_ended=False)
CREDIT = EpisodeCredit("round r1", {0: 0.3125, 1: -0.5}, {0: (GOOD, SAME, CUT)})
NEAR_ZERO = EpisodeCredit("round r1", {0: 1e-6, 1: -1e-6, 2: 0.0}, {})


def shown(turn: int = 0, credit: EpisodeCredit = CREDIT) -> str:
    return turn_credit(TURNS[turn], credit)


def candidates(html: str) -> list[str]:
    return re.findall(r'<li class="candidate.*?</li>', html, re.DOTALL)


def ranked(*given: RankedCandidate, advantage: float = -0.4) -> str:
    return shown(credit=EpisodeCredit("round r1", {0: advantage}, {0: given}))


def test_a_bar_has_side_sign_number_and_word() -> None:
    above, below = shown(0), shown(1)
    assert 'class="score-bar up"' in above and "<b>+0.31</b> helped" in above
    assert 'class="score-bar down"' in below and "<b>\N{MINUS SIGN}0.50</b> hurt" in below


def test_what_is_not_known_is_na_and_not_zero() -> None:
    assert 'advantage</span><span class="score none"><b>n/a</b>' in shown(2)
    strip = overview(TURNS, CREDIT)
    assert 'aria-label="Turn 3: advantage n/a"' in strip
    assert strip.count('data-action="goto"') == 3


def test_all_bars_of_an_episode_have_one_scale() -> None:
    assert Scale.of(CREDIT).top == 1.0
    sizes = re.findall(r"--size:([\d.]+)%", overview(TURNS, CREDIT) + shown(0))
    assert sizes == ["31.2", "50.0", "0", "31.2", "50.0", "25.0", "100.0"]


def test_a_critic_that_learned_nothing_shows_no_difference() -> None:
    strip = overview(TURNS, NEAR_ZERO)
    assert "No turn helped or hurt." in strip
    assert "advantage 0.000, neutral" in strip
    assert "-0.0" not in strip and "\N{MINUS SIGN}" not in strip and "+0" not in strip


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.312, "+0.31"), (-1.74, "\N{MINUS SIGN}1.74"), (0.0412, "+0.041"), (120.0, "+120.00")],
)
def test_small_and_large_numbers_can_be_told_apart(value: float, text: str) -> None:
    credit = EpisodeCredit("c", {0: value}, {})
    assert Scale.of(credit).number(value) == text


def test_the_strip_says_which_turns_stand_out_and_in_whose_eyes() -> None:
    strip = overview(TURNS, CREDIT, [Critic("round r1", "sweet")])
    assert "Turn 1 helped most (+0.31). Turn 2 hurt most (\N{MINUS SIGN}0.50)." in strip
    assert "in the eyes of round r1 (sweet)" in strip
    assert "<select" not in strip
    assert "a full one is 1.00" in strip


def test_several_critics_can_be_chosen_from() -> None:
    strip = overview(TURNS, CREDIT, [Critic("round r2", "sweet"), Critic("round r1"), Critic(BAD)])
    assert '<option value="round r1" selected>round r1</option>' in strip
    assert '<option value="round r2">round r2 (sweet)</option>' in strip
    assert "<img" not in strip


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        ("sweet", "also reads the hidden information"),
        ("sweet-nohidden", "reads what the agent reads"),
        ("sweet-untrained", "Nothing was trained"),
        ("sweet-value", "value head"),
        ("sweet-judge", "a model gave"),
        ("", "the log does not know more"),
    ],
)
def test_what_a_bar_means_depends_on_the_critic(algorithm: str, words: str) -> None:
    assert words in overview(TURNS, CREDIT, [Critic("round r1", algorithm)])


def test_an_episode_that_no_critic_read_says_so_once() -> None:
    page = replay(EPISODE, TASK, {})
    assert page.count("No critic has read this episode") == 1
    assert page.count("advantage n/a") == 1 + len(TURNS)
    assert "score-bar" not in page and "candidates" not in page


def test_candidates_are_ranked_with_draws_and_sides_of_pairs() -> None:
    html = shown()
    assert "3 different messages in 8 draws, ranked" in html
    first, second, third = candidates(html)
    assert ">1</span>" in first and "<b>+0.50</b> would help" in first and "×5" in first
    assert "✓ chosen in 3 pairs" in first and "rejected" not in first
    assert "✓ chosen in 1 pair<" in second and "✗ rejected in 2 pairs" in second
    assert "cut by the token limit" in third and "cut by" not in first + second


def test_the_logged_message_is_marked_among_the_candidates() -> None:
    assert ["what was said" in row for row in candidates(shown())] == [False, True, False]


def test_of_a_cut_and_a_finished_message_the_finished_one_was_said() -> None:
    cut = RankedCandidate(SAID, 1, 0.1, is_ended=False)
    rows = candidates(ranked(cut, RankedCandidate(SAID, 1, -0.4)))
    assert ["what was said" in row for row in rows] == [False, True]


@pytest.mark.parametrize(("advantage", "place"), [(0.9, 0), (0.5, 1), (0.0, 1), (-2.0, 2)])
def test_a_logged_message_that_was_not_drawn_stands_where_it_would(
    advantage: float, place: int
) -> None:
    rows = candidates(ranked(GOOD, CUT, advantage=advantage))
    assert [i for i, row in enumerate(rows) if "not among the draws" in row] == [place]
    assert len(rows) == 3


def test_a_candidate_that_answers_shows_its_code() -> None:
    (row,) = candidates(
        ranked(RankedCandidate(f"OK.\nI WANT TO ANSWER:\ndef f(x): {BAD}", 1, 0.1))
    )[:1]
    assert "Final answer" in row
    assert '<span class="k">def</span>' in row
    assert "<img" not in row


@pytest.mark.parametrize(
    "text",
    [BAD, f"```\n{BAD}\n```", f"`{BAD}`", f"[a](javascript:{BAD}) ![b](http://evil.example)",
     f"</li></ol>{BAD}", f"I WANT TO ANSWER:\n</code></pre>{BAD}", "\u202egnp.exe", ""],
)  # fmt: skip
def test_nothing_in_a_candidate_becomes_markup(text: str) -> None:
    html = ranked(RankedCandidate(text, 1, 0.1))
    assert "<img" not in html and "href" not in html and "\u202e" not in html
    assert html.count("<li") == html.count("</li>") == 2


def test_a_long_candidate_is_cut_on_the_page_and_says_so() -> None:
    html = ranked(RankedCandidate("word " * CANDIDATE_CHARS, 1, 0.1))
    assert len(html) < CANDIDATE_CHARS * 2
    assert f"{4 * CANDIDATE_CHARS:,} more characters are in the log" in html


class Tags(HTMLParser):
    """Counts the elements of a page and sees that each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.count += 1
        if tag not in ("br", "hr", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_replay_of_ten_turns_with_sixteen_candidates_is_whole_and_not_too_big() -> None:
    body = "    total = price * kilograms + fee\n" * 20
    drawn = tuple(
        RankedCandidate(f"I WANT TO ANSWER:\ndef f{n}(x):\n{body}", 1, n / 16) for n in range(16)
    )
    turns = tuple(Turn(i, TURNS[0].action, "five") for i in range(10))
    credit = EpisodeCredit("c", dict.fromkeys(range(10), 0.1), dict.fromkeys(range(10), drawn))
    episode = Episode("e1", "t-1", "embedded", "scripted", 7, turns=turns)
    page = replay(episode, TASK, {}, credit=credit)
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert len(candidates(page)) == 170  # and what was said
    assert len(page) < 3_000_000


def test_the_critic_is_part_of_a_link() -> None:
    view = LogView(episode_id="e1").judged_by("round r1 & more", 4)
    assert view.query == "episode=e1&turn=4&critic=round+r1+%26+more"
    assert log_view_of({"episode": "e1", "turn": "4", "critic": "round r1 & more"}) == view
    assert view.opening("e2").critic == ""

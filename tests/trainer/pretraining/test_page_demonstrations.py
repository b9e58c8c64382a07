"""Demonstrations of drawing: every page follows from what was said, and nothing else changes."""

import random
import re

from sweet.parsing import page_in, parse_action
from sweet.tasks.mini_drawing import draw_page
from sweet.tasks.mini_frontend import split_of
from sweet.tasks.mini_page_reader import parse_page
from sweet.tasks.mini_pages import Kind
from sweet.tasks.mini_topics import held_out_topics, topics
from sweet.tasks.page_differences import What, differences
from sweet.types import MAX_TURNS
from trainer.pretraining.page_demonstrations import (
    ANYTHING,
    HASTY,
    MEDIUM,
    PATIENT,
    demonstrate,
    random_task,
)
from trainer.pretraining.page_edits import END, TOP, follow
from trainer.pretraining.page_people import say_all

RNG = random.Random(7)
MADE = [
    (style, task, demonstrate(task, style, random.Random(number)))
    for number, task in enumerate(random_task(RNG) for _ in range(60))
    for style in (PATIENT, MEDIUM, HASTY)
]
"""Each task by three agents that begin alike."""


def pages_of(made):
    found = [page_in(m.content).html for m in made.messages if m.role == "assistant"]
    return [parse_page(html or "") for html in found]


def test_every_message_of_the_agent_is_a_whole_page_and_the_last_is_the_answer():
    for _, _, made in MADE:
        assert [m.role for m in made.messages] == ["user", "assistant"] * len(made.bases)
        assert len(made.bases) <= MAX_TURNS
        assert None not in pages_of(made)
        actions = [parse_action(m.content) for m in made.messages if m.role == "assistant"]
        assert [a.is_final for a in actions] == [False] * (len(actions) - 1) + [True]


def test_drafts_are_counted():
    for _, _, made in MADE:
        said = [m.content for m in made.messages if m.role == "assistant"]
        for number, text in enumerate(said, start=1):
            assert text.startswith((f"Draft {number}.", f"Draft {number}: "))


def test_a_first_page_names_its_sections():
    for _, _, made in MADE:
        note = made.messages[1].content.split("<html>")[0]
        assert f" Sections: {', '.join(pages_of(made)[0].names)}." in note


def texts_on(page):
    """Every text of a page, those of its rows one by one."""
    for _, _, kind, value in page.all_details():
        if kind is Kind.TEXT:
            yield value
        elif kind is Kind.ITEMS:
            yield from value


def test_a_guessed_first_page_says_what_the_wish_says_or_what_any_business_might_say():
    words = ANYTHING.words
    anything = {
        *ANYTHING.things,
        *words.links,
        *words.points,
        *words.fields,
        *words.buttons,
        *words.footers,
    }
    anything |= {*words.slogans, *(f"{name} Company" for name in words.names)}
    told = 0
    for _, _, made in MADE:
        if made.bases[0] == "guess":
            for text in texts_on(pages_of(made)[0]):
                assert text in anything or text in made.messages[0].content
                told += text not in anything
    assert told > 10


def test_half_of_the_first_pages_are_nearly_the_one_that_is_wanted():
    def left(basis):
        ones = [(t, m) for style, t, m in MADE if m.bases[0] == basis]
        return [len(differences(task.page, pages_of(made)[0])) for task, made in ones]

    assert 0.35 < len(left("luck")) / len(MADE) < 0.65
    assert sum(left("luck")) / len(left("luck")) < 0.6 * sum(left("guess")) / len(left("guess"))


def after_links(names, links):
    """The sections in their order, once these follow one another and the rest as before."""
    follows = dict(zip((TOP, *names), (*names, END), strict=True)) | dict(links)
    order = [follows[TOP]]
    while order[-1] != END:
        order.append(follows[order[-1]])
    return tuple(order[:-1])


def test_a_later_page_is_the_one_before_with_the_order_that_the_note_names():
    kept = edited = 0
    for _, _, made in (one for one in MADE if one[0] is PATIENT):
        notes = [m.content.split("<html>")[0] for m in made.messages if m.role == "assistant"]
        pages = pages_of(made)
        for note, before, page in zip(notes[1:], pages, pages[1:], strict=False):
            links = re.findall(r"[:,] (\w+) then (\w+)", note)
            assert after_links(before.names, links) == page.names
            edited += bool(links)
            kept += not links
    assert min(kept, edited) > 30


def test_a_patient_agent_comes_nearer_with_every_told_page():
    rising = steps = 0
    for style, task, made in MADE:
        if style is not PATIENT:
            continue
        left = [len(differences(task.page, page)) for page in pages_of(made)]
        pairs = zip(left, left[1:], made.bases[1:], strict=False)
        told = [(a, b) for a, b, basis in pairs if basis == "told"]
        steps += len(told)
        rising += sum(b > a for a, b in told)
    assert steps > 100
    assert rising == 0


def test_the_hasty_end_further_from_the_page_that_is_wanted():
    def left(style):
        ends = [
            len(differences(task.page, pages_of(made)[-1]))
            for one, task, made in MADE
            if one is style
        ]
        return sum(ends) / len(ends)

    assert left(HASTY) > left(MEDIUM) > left(PATIENT)


def test_a_told_detail_is_changed_and_the_rest_stays():
    rng = random.Random(3)
    for _ in range(150):
        topic = rng.choice(topics())
        target, page = draw_page(topic, rng), draw_page(topic, rng)
        for difference in differences(target, page):
            _, (said,) = say_all([difference], page, rng)
            after = follow(page, difference, said, topic, rng)
            if difference.what is What.DETAIL and not after.is_guess:
                changed = differences(after.page, page)
                assert [(d.section, d.detail) for d in changed] in (
                    [(difference.section, difference.detail)],
                    [],  # fewer columns, or one text, said as it was
                )
                assert difference.section in after.note


def test_nothing_of_what_is_held_out_is_trained_on():
    tasks = [random_task(RNG) for _ in range(300)]
    assert {split_of(task.page) for task in tasks} == {"train"}
    names = {topic.name for topic in held_out_topics()}
    assert not {task.topic.name for task in tasks} & names

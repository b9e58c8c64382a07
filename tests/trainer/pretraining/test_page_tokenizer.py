"""Pages come back from their tokens letter by letter, and are short."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from sweet.engines.generation import Text
from sweet.tasks.mini_drawing import draw_page, draw_section
from sweet.tasks.mini_frontend import generate
from sweet.tasks.mini_page_reader import parse_page
from sweet.tasks.mini_pages import DETAILS, PageSpec, render
from sweet.tasks.mini_topics import held_out_topics, topics
from trainer.pretraining.page_demonstrations import (
    HASTY,
    demonstrate,
    made_up_text,
    random_task,
    said_with,
)
from trainer.pretraining.page_tokenizer import build_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(2048)


def ids_of(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def of_sections(*names):
    rng = random.Random(3)
    return PageSpec("white", tuple(draw_section(name, topics()[0], rng) for name in names))


def followers(tokens, token):
    return [after for before, after in pairwise(tokens) if before == token]


def test_thousands_of_pages_come_back_letter_by_letter_and_are_short(tokenizer):
    rng = random.Random(2)
    pages = [draw_page(rng.choice((*topics(), *held_out_topics())), rng) for _ in range(1500)]
    pages += [random_task(rng, made_up=1.0).page for _ in range(500)]
    lengths = []
    for page in pages:
        said = said_with(page, 3, 'page color light blue; header title "A dark red one"')
        ids = ids_of(tokenizer, said)
        assert tokenizer.decode(ids) == said
        lengths.append(len(ids))
    assert max(lengths) <= 350
    assert sum(lengths) / len(lengths) < 110


@pytest.mark.parametrize(
    "text",
    [
        "Proud Chapter", "hello WORLD", "Café Öl & Söhne", "Bob's (24/7) shop!", "50% off, today",
        "a-b c.d", "Straße 1987", "I'm \'here\'", "x" * 60,
    ],
)  # fmt: skip
def test_what_is_quoted_is_the_same_tokens_on_the_page(tokenizer, text):
    page = draw_page(topics()[0], random.Random(4)).having("header", "title", text)
    html = f"Draft 1.\n{render(page)}"
    assert tokenizer.decode(ids_of(tokenizer, html)) == html
    read = parse_page(html)
    assert read is not None and read.section("header")["title"] == text
    asked = tokenizer.apply_chat_template(
        [{"role": "user", "content": f'The header title should say "{text}", please.'}],
        return_dict=True,
    )["input_ids"]
    on_page = ids_of(tokenizer, html)
    escaped = ids_of(tokenizer, text.replace("&", "&amp;"))
    for ids in (asked, on_page):
        assert any(ids[i : i + len(escaped)] == escaped for i in range(len(ids)))


def test_every_detail_of_a_page_is_one_token(tokenizer):
    rng = random.Random(6)
    page = draw_page(topics()[3], rng)
    before = ids_of(tokenizer, render(page))
    for name, detail, kind, value in page.all_details():
        if isinstance(value, str) and kind not in ("text", "items"):
            for other in ("dark red", "light gray") if kind == "color" else ():
                after = ids_of(tokenizer, render(page.having(name, detail, other)))
                assert len(after) == len(before)


SPOKEN = [
    ("header", "color", "dark blue"), ("hero", "button color", "gray"), ("nav", "align", "center"),
    ("hero", "size", "huge"), ("cards", "columns", 3), ("cards", "align", "right"),
    ("page", "color", "light pink"),
]  # fmt: skip


@pytest.mark.parametrize(("section", "detail", "value"), SPOKEN)
def test_what_is_said_is_the_token_that_stands_on_the_page(tokenizer, section, detail, value):
    rng = random.Random(1)
    sections = tuple(draw_section(name, topics()[0], rng) for name in DETAILS)
    page = PageSpec("white", sections)
    before = Counter(ids_of(tokenizer, render(page)))
    after = Counter(ids_of(tokenizer, render(page.having(section, detail, value))))
    (spoken,) = ids_of(tokenizer, str(value))
    assert set(after - before) <= {spoken}
    assert after[spoken] > 0


def test_a_note_leads_to_the_place_on_the_page(tokenizer):
    page = random_task(random.Random(4)).page
    note = "header color dark blue; hero button color pink; cards columns 2; form button color red"
    said = said_with(page, 2, note)
    tokens = tokenizer.tokenize(said)
    for before, value in (
        ('\n<header class="', "dark⎵blue"), ('</h1>\n    <button class="', "pink"),
        ('\n<section id="cards" class="grid ', "2"), ('">\n    <button class="', "red"),
    ):  # fmt: skip
        at = tokens.index(before)
        assert tokens[at - 1] in ("color", "columns") and tokens[at + 1] == value
    assert tokenizer.decode(ids_of(tokenizer, said)) == said
    heard = "header color: dark blue; hero button color pink"  # a person's words are left alone
    assert '\n<header class="' not in tokenizer.tokenize(heard)


def test_the_list_of_sections_leads_from_the_end_of_one_to_the_beginning_of_the_next(tokenizer):
    page = of_sections("nav", "header", "cards", "form", "footer")
    for is_last in (False, True):
        said = said_with(page, 1, is_last=is_last)
        tokens = tokenizer.tokenize(said)
        assert tokenizer.decode(ids_of(tokenizer, said)) == said
        ends = ["</a>\n</nav>", "</h1>\n</header>", "</div>\n</section>", "</button>\n</form>"]
        for end in ends:
            assert len(followers(tokens, end)) == 2  # in the list, and on the page
            assert len(set(followers(tokens, end))) == 1
        assert tokens.count("\n</body>\n</html>") == 2
    person = "Sections: header, nav, footer."
    assert "</footer>" not in tokenizer.tokenize(person)


def test_a_new_order_leads_from_the_end_of_one_section_to_the_beginning_of_the_next(tokenizer):
    page = of_sections("nav", "header", "list", "footer")
    moved = (
        "move nav (nav after header, nav before list): header then list, "
        "(header after top): top then nav, nav then header"
    )
    added = "add footer (list before end): list then footer, footer then end"
    for note in (
        moved,
        f"{added}; header size small; {moved}",
        f"remove form (form after top, form before nav): top then nav; {added}",
    ):
        for is_last in (False, True):
            said = said_with(page, 4, note, is_last=is_last)
            assert tokenizer.decode(ids_of(tokenizer, said)) == said
    tokens = tokenizer.tokenize(said_with(page, 4, f"{moved}; {added}"))
    for end, start in (
        ("</a>\n</nav>", '\n<header class="'), ("</h1>\n</header>", '\n<ul class="'),
        ("</li>\n</ul>", '\n<footer class="'), ("</footer>", "\n</body>\n</html>"),
    ):  # fmt: skip
        assert followers(tokens, end)[-2:] == [start, start]
    assert tokens[tokens.index("⟦←⟧") :][1:3] == ['\n<nav class="', "</h1>\n</header>"]
    said = 'Draft 2: header title "Go: header then list, now".\n' + render(page)
    assert tokenizer.decode(ids_of(tokenizer, said)) == said


def test_a_row_of_texts_is_noted_as_it_stands_on_the_page(tokenizer):
    page = of_sections("nav", "cards", "list", "form")
    texts = ("Free parking", "Open, daily", "Fair prices!")
    for section, detail in (
        ("nav", "links"), ("cards", "cards"), ("list", "items"), ("form", "fields"),
    ):  # fmt: skip
        new = page.having(section, detail, texts)
        said = said_with(new, 2, f"{section} {detail} {', '.join(texts)}; {section} color blue")
        tokens = tokenizer.tokenize(said)
        assert tokenizer.decode(ids_of(tokenizer, said)) == said
        assert len(followers(tokens, "Free")) == len(followers(tokens, "Fair")) == 2
        first, again = (i for i, token in enumerate(tokens) if token == "Free")
        assert tokens[first - 1] == tokens[again - 1]


def test_what_is_streamed_is_what_is_said(tokenizer):
    rng = random.Random(9)
    for _ in range(12):
        made = demonstrate(random_task(rng), HASTY, rng)
        said = made.messages[-1].content
        ids = ids_of(tokenizer, said)
        text, pieces = Text(tokenizer.decode, []), []
        for n in range(1, len(ids) + 1):
            text.update(ids[:n], last=n == len(ids))
            pieces.append(text.news())
        assert "".join(pieces) == said
        assert sum(map(bool, pieces)) > len(ids) / 2


@pytest.mark.parametrize("text", ["make it dark blue.", "Light gray, please", "header:dark red!!"])
def test_a_color_of_two_words_is_one_token_and_reads_as_written(tokenizer, text):
    ids = ids_of(tokenizer, text)
    assert tokenizer.decode(ids) == text
    tokens = tokenizer.convert_ids_to_tokens(ids)
    assert {"dark⎵blue", "Light⎵gray", "dark⎵red"} & set(tokens)
    assert not {"dark", "Light"} & set(tokens)


@pytest.mark.parametrize("text", ["a dark bluebird", "darkblue", "a light roast", "dark  blue"])
def test_other_words_stay_words(tokenizer, text):
    assert not any("⎵" in t for t in tokenizer.convert_ids_to_tokens(ids_of(tokenizer, text)))


def test_nobody_can_forge_a_speaker(tokenizer):
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": "blue<end><agent>Draft 1.\n<html>"}], return_dict=True
    )["input_ids"]
    assert ids.count(tokenizer.eos_token_id) == 1
    assert ids.count(tokenizer.convert_tokens_to_ids("<agent>")) == 0


def test_words_of_the_held_out_topics_are_spelt(tokenizer):
    rows = list(generate("families", 30, seed=1))
    known = tokenizer.get_vocab()
    assert not {"Marionette", "Samovar", "Praline", "Velvet", "Regattas"} & known.keys()
    for row in rows:
        assert tokenizer.unk_token_id not in ids_of(tokenizer, row.task.description)
    made_up = [made_up_text(random.Random(i)) for i in range(200)]
    assert all(tokenizer.unk_token_id not in ids_of(tokenizer, text) for text in made_up)


def test_what_people_are_made_to_say_has_words_and_a_slip_is_spelt(tokenizer):
    words = "forget cut hide include Insert discard eighth bottom forest".split()
    lengths = {word: len(ids_of(tokenizer, word)) for word in words}
    assert lengths.pop("forest") > 1
    assert set(lengths.values()) == {1}
    for slip in ("haeder", "foter", "yellw", "plese"):
        assert len(ids_of(tokenizer, slip)) > 1

"""The tokenizer of the model that draws: a detail of a page is a token, and so is its markup.

`bg-blue-800 text-white` is one token, and so is everything that is written between two details,
so a page has about as many tokens as things that can be wished for. A color is the same token in
speech (`dark blue`) and as a class, and so are alignments, sizes and columns: to do what is said is
to copy it, as with texts. A word is a token in speech and in the page's texts alike, with its
capitals; unknown words are spelt. What is quoted keeps every letter: spaces are implied, and where
there is none, that is what is written down.
It is an ordinary `tokenizers` file that transformers and vLLM load.
"""

from __future__ import annotations

import random
import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from sweet.tasks import page_phrases
from sweet.tasks.mini_pages import CLASSES, COLORS, HEAD, HUES, Kind, Value, is_dark
from sweet.tasks.mini_topics import topics
from sweet.tasks.page_phrases import Phrases
from sweet.types import ANSWER_MARK
from trainer.pretraining import page_people
from trainer.pretraining.page_demonstrations import ANYTHING, PATIENT, demonstrate, random_task
from trainer.pretraining.page_edits import END, TOP
from trainer.pretraining.tokenizer import SPECIAL, for_dialogues

_I = "\n    "  # before what stands inside a section
_PADDED = ' p-4">'
_CLASS_END = '">'
_PAGE_END = "\n</body>\n</html>"
_PIECES = {
    "header": ('\n<header class="', f'">{_I}<h1 class="', "</h1>\n</header>"),
    "nav": ('\n<nav class="', f' p-4 space-x-4">{_I}<a>', f"</a>{_I}<a>", "</a>\n</nav>"),
    "hero": ('\n<section id="hero" class="', f'</h1>{_I}<button class="', "</button>\n</section>"),
    "cards": (
        '\n<section id="cards" class="grid ', f' gap-4 p-4">{_I}<div class="',
        f'</div>{_I}<div class="', "</div>\n</section>",
    ),
    "list": ('\n<ul class="', f' list-inside p-4">{_I}<li>', f"</li>{_I}<li>", "</li>\n</ul>"),
    "form": (
        '\n<form class="', f' p-4">{_I}<input class="border" placeholder="',
        f'">{_I}<input class="border" placeholder="', f'">{_I}<button class="',
        "</button>\n</form>",
    ),
    "footer": ('\n<footer class="', "</footer>"),
}  # fmt: skip
"""What is written between the details of each section, from its beginning to its end."""
_MARKUP = (
    f'\n{HEAD}<body class="', f'{HEAD}<body class="', _PAGE_END, _CLASS_END, _PADDED, ' p-2">',
    *(piece for pieces in _PIECES.values() for piece in pieces),
)  # fmt: skip
_SLOTS = {f"{name} color": pieces[0] for name, pieces in _PIECES.items()} | {
    "cards columns": _PIECES["cards"][0],
    "cards color": _PIECES["cards"][1],
    "hero button color": _PIECES["hero"][1],
    "form button color": _PIECES["form"][3],
    "nav links": _PIECES["nav"][1],
    "cards cards": _PADDED,
    "list items": _PIECES["list"][1],
    "form fields": _PIECES["form"][1],
}
"""What stands before a detail on a page is written before it in the agent's note as well, unseen.

So what followed it last is what follows it now: the note's value if it says one, else that of the
page before. Without, changed colors were right in 28 of 93 places after 3,500 steps, and the old
ones stood in the others; 300 steps later, with it, in 91 of 93.
"""
_BETWEEN = {
    "nav links": _PIECES["nav"][2],
    "cards cards": _PADDED,
    "list items": _PIECES["list"][2],
    "form fields": _PIECES["form"][2],
}
"""What stands between texts of a row is written in the note in place of their commas."""
_STARTS = {name: pieces[0] for name, pieces in _PIECES.items()} | {END: _PAGE_END}
_ENDS = {TOP: _CLASS_END} | {name: pieces[-1] for name, pieces in _PIECES.items()}
"""How a section begins and ends: these stand for its name where the agent names an order.

So what follows a section's end, there and on the page, is the beginning of the next one. What
stands before a section is found by its beginning: "hero after nav" is a hero's beginning and a
nav's end. Without that the agent took what mostly stands before one: 22 of 96 changes of sections
were right after 2,400 steps.
"""
_COMMA = "⟦,⟧"  # before what stands between two texts of a row
_AFTER = "⟦←⟧"  # before the beginning of one section and the end of another: "hero after nav"
_BEFORE = "⟦.⟧"  # before the end of one section and the beginning of the next, as it is
_THEN = "⟦→⟧"  # the same, as it will be
_SIGNS = (_THEN, _BEFORE, _AFTER, _COMMA)
_OPENING = ('"', "'", "(")
_JOINT = "⟦+⟧"  # no space here, though words are apart: "header:blue"
_SPACE = "⎵"  # in a color of two words: "dark⎵blue"
_BACK = "⎴"  # while a text is made ready, before a section whose end is to stand there
_WORD = re.compile("[A-Za-z]+")
_OFTEN = 4  # times in 200 dialogues
_WORD_END = r'(?=[ "]|$)'
_SPOKEN = (Kind.COLOR, Kind.ALIGN, Kind.SIZE, Kind.COLUMNS)  # whose classes are tokens of speech
_ENTITIES = ("&amp;", "&lt;", "&gt;", "&quot;", "&#x27;")
_LETTERS = string.ascii_letters + "".join(
    chr(code) for code in range(0xC0, 0x180) if chr(code).isalpha()
)
_MARKS = string.punctuation + "–—’…€£°·"

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'reference' %}<ref>{{ m.content }}<end>"
    "{% elif m.role == 'user' %}<user>{{ m.content | replace('&', '&amp;') "
    "| replace('<', '&lt;') | replace('>', '&gt;') | replace('“', '\"') | replace('”', '\"') }}"
    "<end>"
    "{% elif m.role == 'assistant' %}<agent>{% generation %}{{ m.content }}<end>"
    "{% endgeneration %}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<agent>{% endif %}"
)
"""System messages are left out: the model was made on bare dialogues. What a person writes is
escaped as it would be in a page: a copy of it has the same tokens, and none is a special one."""


def build_tokenizer(context_tokens: int) -> PreTrainedTokenizerFast:
    """The tokenizer, with its chat template, for a model with this context length."""
    vocabulary = {token: i for i, token in enumerate(_vocabulary())}
    tokenizer = Tokenizer(
        models.WordPiece(
            vocabulary,
            unk_token="<unk>",
            continuing_subword_prefix="##",
            max_input_chars_per_word=1000,
        )
    )
    written = [normalizers.Replace(found, by) for found, by in _written()]
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), *written])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_words()), "removed", invert=True)
    read = [decoders.Replace(found, by) for found, by in _read()]
    pieces = decoders.WordPiece(prefix="##", cleanup=False)
    tokenizer.decoder = decoders.Sequence([pieces, decoders.Fuse(), *read])
    return for_dialogues(tokenizer, CHAT_TEMPLATE, context_tokens)


Rules = Iterator[tuple[Regex | str, str]]
"""What is found, and what is put in its place, one rule after the other."""


def _written() -> Rules:
    """How a text is made ready for its tokens."""
    in_note = r"(?=[\s\S]*\n<html>)"  # of the agent, before the page
    place = rf"(?<=\()(?:{'|'.join((TOP, *_STARTS))}) (?:after|before) "
    yield Regex(rf"(?!{place})(?:(?<=[:,;=(])|(?<=\bdark-)|(?<=\blight-))(?=[^\W_])"), f" {_JOINT} "
    shade = "|".join(rf"(?<=\b{shade})" for shade in ("dark", "light", "Dark", "Light"))
    yield Regex(rf"(?:{shade}) (?=(?:{'|'.join(HUES)})\b)"), _SPACE
    for name, at in _BETWEEN.items():
        so_far = rf"(?:(?<=[:;] ){name} |(?!\A)\G)[^,;\n]*?"
        yield Regex(rf"{so_far}\K, {in_note}"), f" {_COMMA}{at}"
    for name, at in _SLOTS.items():
        yield Regex(rf"(?<=[:;] ){name} {in_note}"), name + at
    starts, ends = (rf"(?=(?:{'|'.join(names)})\b)" for names in (_STARTS, _ENDS))
    was = r"(?:(?<=\()|(?<=, ))"
    for name, end in _ENDS.items():
        yield Regex(rf"(?<=[:,] ){name} then {starts}{in_note}"), f"{_THEN}{end}{_SPACE}"
        yield Regex(rf"{was}{name} before {starts}{in_note}"), f"{_BEFORE}{end}{_SPACE}"
    for name, start in _STARTS.items():
        yield Regex(rf"{was}{name} after {ends}{in_note}"), f"{_AFTER}{start}{_BACK}"
    for name, end in _ENDS.items():
        yield Regex(f"{_BACK}{name}"), end
    for name, start in _STARTS.items():
        yield Regex(f"(?<=>){_SPACE}{name}"), start
    for name, pieces in _PIECES.items():
        for mark, after in ((", ", ""), (".", _PAGE_END)):
            listed = rf"\b{name}{re.escape(mark)}(?![\s\S]*Sections: ){in_note}"
            yield Regex(listed), pieces[0] + pieces[-1] + after
    for at, name, word in _spoken_classes():
        yield Regex(f"{at}{name}{_WORD_END}"), word


def _read() -> Rules:
    """How tokens with spaces between them become the text again: the other way round."""
    for piece in _markup():
        yield Regex(f" ?{re.escape(piece)} ?"), piece
    for mark in _OPENING:
        yield Regex(rf"(?<![^\s(>])\{mark} "), mark
    for at in _BETWEEN.values():
        yield Regex(f" ?{_COMMA} ?{re.escape(at)}"), ", "
    for mark, word in ((_THEN, "then"), (_BEFORE, "before")):
        for name, end in _ENDS.items():
            yield Regex(f" ?{mark} ?{re.escape(end)}"), f" {name} {word}"
        for name, start in _STARTS.items():
            yield Regex(f"(?<= {word}){re.escape(start.rstrip())} ?"), f" {name}"
    for name, start in _STARTS.items():
        yield Regex(f" ?{_AFTER} ?{re.escape(start.rstrip())} ?"), f" {name} after"
    for name, end in _ENDS.items():
        yield Regex(f"(?<= after){re.escape(end)} ?"), f" {name}"
    yield Regex(r"\( (?=[a-z]+ (?:after|before) )"), "("
    for name, pieces in _PIECES.items():
        listed = f"{re.escape(pieces[0].rstrip())} ?{re.escape(pieces[-1])}"
        yield Regex(listed + _PAGE_END + r"(?=[^\n])"), f" {name}. "
        yield Regex(listed + _PAGE_END), f" {name}."
        yield Regex(listed), f" {name},"
    for name, at in _SLOTS.items():
        yield Regex(f"(?<={name}){re.escape(at)}"), " "
    for at, name, word in reversed(_spoken_classes()):
        yield Regex(f"{at}{word}{_WORD_END}"), name
    yield Regex(f" ?{re.escape(_JOINT)} ?"), ""
    yield _SPACE, " "


def _markup() -> list[str]:
    """What is written between details, the longest first."""
    return sorted(_MARKUP, key=lambda text: -len(text))


def _values() -> list[str]:
    """Every value of a detail as it is written on a page: its word, or its class."""
    found = []
    for kind, classes in CLASSES.items():
        spoken = kind in _SPOKEN
        found += [_token(word) if spoken else name for word, name in classes.items()]
    return list(dict.fromkeys(found))


def _token(word: Value) -> str:
    return str(word).replace(" ", _SPACE)


def _spoken_classes() -> list[tuple[str, str, str]]:
    """Classes that are tokens of speech: what stands before one on a page, it, and the token.

    To be replaced in this order, and to be put back in the opposite one.
    """
    colors = [(f"bg-{n} text-white" if is_dark(w) else f"bg-{n}", w) for w, n in COLORS.items()]
    columns = list(CLASSES[Kind.COLUMNS].values())
    known = "|".join(f"(?<={name} )" for name in (*(name for name, _ in colors), *columns))
    before = {
        Kind.ALIGN: f"(?:{known})",
        Kind.SIZE: '(?<=<h1 class=")',
        Kind.COLUMNS: '(?<=class="grid )',
    }
    found = [
        (at, name, _token(word))
        for kind, at in before.items()
        for word, name in CLASSES[kind].items()
    ]
    return found + [('(?<=class=")', name, _token(word)) for name, word in colors]


def _colors() -> list[str]:
    """The colors of two words, as tokens; at the beginning of a sentence, too."""
    names = [name.replace(" ", _SPACE) for name in COLORS if " " in name]
    return [*names, *(name.capitalize() for name in names)]


def _words() -> str:
    """A regular expression of what is looked up: markup, values of two words, words, marks."""
    whole = [*_markup(), *_SIGNS, *(value for value in _values() if " " in value)]
    # In a hero, the padding before the title is a detail.
    apart = [re.escape(text) + r"(?!\s*<h1)" * (text == _PADDED) for text in whole]
    opening = [rf"(?<![^\s(])\{mark}(?=\S)" for mark in _OPENING]
    return "|".join([*apart, *opening, r"""<?(?:[^\s<"]|"(?!>))+""", "<"])


def _vocabulary() -> list[str]:
    """Special tokens, markup and values by name, letters and pairs of them, numbers, words."""
    pieces = [*_LETTERS, *string.digits, *_MARKS, *_ENTITIES]
    vowels, others = "aeiou", sorted(set(string.ascii_lowercase) - set("aeiou"))
    pairs = [a + b for a in vowels for b in others] + [b + a for a in vowels for b in others]
    pieces += [*pairs, *(a + b for a in vowels for b in vowels)]
    names = [*_MARKUP, *_values(), *_colors(), *_OPENING, _JOINT, *_SIGNS]
    numbers = [str(n) for n in range(10, 100)]
    words = [word for word in _known_words() if len(word) > 1]
    capital = [pair.capitalize() for pair in pairs]
    tokens = [*SPECIAL, *names, *pieces, *(f"##{p}" for p in pieces), *capital, *numbers, *words]
    return list(dict.fromkeys(tokens))


@cache
def _known_words() -> tuple[str, ...]:
    """Words of the topics, of what people are made to say, and what is said often besides."""
    texts = [ANSWER_MARK]
    for topic in (*topics(), ANYTHING):
        words = topic.words
        pools = (topic.nouns, topic.things, *(getattr(words, f.name) for f in fields(words)))
        said = " ".join(text for pool in pools for text in pool)
        texts += [said, said.lower(), topic.name, topic.name.capitalize()]
    for phrase in _phrases():
        texts += [phrase, phrase.capitalize()]
    texts += _often_said()
    return tuple(dict.fromkeys(word for text in texts for word in _WORD.findall(text)))


def _phrases() -> Iterator[str]:
    """What people are made to say, without its slots, and the values of details by name."""
    tables = [
        table
        for module in (page_phrases, page_people)
        for name, table in vars(module).items()
        if name.isupper()
    ]
    for text in _texts([*tables, [list(classes) for classes in CLASSES.values()]]):
        yield re.sub(r"\{\w+\}", " ", text).strip()


def _often_said() -> list[str]:
    """Words that come again and again in dialogues: those of wishes and notes, and no slips."""
    rng, counts = random.Random(0), Counter[str]()
    for _ in range(200):
        made = demonstrate(random_task(rng, made_up=0.0), PATIENT, rng)
        said = " ".join(re.sub(r"\n<html.*", "", m.content) for m in made.messages)
        counts.update(_WORD.findall(said))
    return [word for word, count in counts.items() if count >= _OFTEN]


def _texts(value: object) -> Iterator[str]:
    """Every phrase in a table that training hears."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Phrases):
        yield from value.heard
    elif isinstance(value, Mapping | Sequence):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)

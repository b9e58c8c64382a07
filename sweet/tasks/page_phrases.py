"""How people say in what a page differs from the one they want.

{s} is the part with its article ("the header"), {w} what is wanted, {g} what is shown, {n} the
things that are counted, {place} where a section belongs. Each table has the phrasings that
training hears and, held out, some that it never hears.
"""

from __future__ import annotations

from dataclasses import dataclass

from sweet.tasks.mini_pages import Kind
from sweet.tasks.page_differences import What


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrasings that training hears, and ones kept from it."""

    heard: tuple[str, ...]
    unheard: tuple[str, ...]


COLOR = Phrases(
    (
        "{s} should be {w}, not {g}.", "{s} should be {w}.", "make {s} {w}", "{s} must be {w}",
        "please make {s} {w} instead of {g}", "I want {s} in {w}.", "can {s} be {w}?",
        "change {s} from {g} to {w}", "change {s} to {w}", "{s} is {g} but I wanted {w}.",
        "I would like {s} to be {w}", "{w} for {s}, please", "use {w} for {s}, not {g}",
        "{s} is not {g}, it is {w}", "{s} has the wrong color, it should be {w}.",
        "turn {s} {w}", "I see {g} where {s} should be {w}", "not {g} but {w} for {s}",
    ),
    (
        "paint {s} {w}", "{s} in {g} is wrong, go for {w}", "I had {w} in mind for {s}",
        "the color of {s} is off: {w}, not {g}", "could you give {s} a {w} color?",
    ),
)  # fmt: skip
ALIGN = Phrases(
    (
        "{s} should be {w}, not {g}.", "{s} should be {w}.", "put {s} {w}",
        "I want {s} {w}.", "{s} is {g} but should be {w}", "please have {s} {w}",
        "{s} must be {w}", "can {s} be {w}?", "{s}: {w}, not {g}", "I would like {s} {w}",
        "{s} belongs {w}", "not {g} but {w} for {s}",
    ),
    ("shift {s} so that it is {w}", "{s} looks wrong {g}, it was {w}", "{s} goes {w}"),
)  # fmt: skip
SIZE = Phrases(
    (
        "{s} should be {w}, not {g}.", "{s} should be {w}.", "make {s} {w}", "{s} must be {w}",
        "I want {s} {w}.", "{s} is {g}, it should be {w}", "please make {s} {w} instead of {g}",
        "{s} should be {c}: {w}", "make {s} {c}, it should be {w}", "{w} for {s}, not {g}",
        "{s} needs to be {c}, so {w}", "I want a {c} size for {s}: {w}",
    ),
    ("I imagined {s} {c}, {w} in fact", "{s} ought to be {w}", "go {c} with {s}: {w}"),
)  # fmt: skip
SCALE = Phrases(
    (
        "{s} should be {c}.", "make {s} {c}", "{s} must be {c}", "I want {s} {c}.",
        "please make {s} {c}", "can {s} be {c}?", "{s} needs to be {c}", "I would like {s} {c}",
    ),
    ("I imagined {s} {c}", "{s} ought to be {c}", "could you make {s} {c}?"),
)  # fmt: skip
COLUMNS = Phrases(
    (
        "The cards should be in {w}, not {g}.", "put the cards in {w}",
        "there should be {w} of cards", "I want {w} for the cards", "the cards need {w}",
        "arrange the cards in {w} instead of {g}",
        "please show the cards in {w}", "{w} for the cards, not {g}", "use {w} for the cards",
    ),
    ("lay the cards out in {w}", "the cards go in {w}, you have {g}", "split the cards into {w}"),
)  # fmt: skip
MARKS = Phrases(
    (
        "The list should have {w}, not {g}.", "use {w} in the list", "the list should have {w}",
        "I want {w} in the list", "the list needs {w} instead of {g}", "{w} for the list, please",
        "please give the list {w}", "change the list from {g} to {w}",
    ),
    ("the list comes with {w}", "start every line of the list with {w}, not {g}"),
)  # fmt: skip
TEXT = Phrases(
    (
        '{s} should say "{w}", not "{g}".', '{s} should say "{w}".', '{s} should read "{w}"',
        'change {s} to "{w}"', '{s} is "{w}"', 'write "{w}" in {s}', '{s} must be "{w}"',
        '{s} says "{g}", but I want "{w}"', 'I want "{w}" for {s}', 'put "{w}" in {s}',
        'replace "{g}" by "{w}" in {s}', 'please have {s} say "{w}" instead of "{g}"',
    ),
    (
        'the words of {s} are "{w}"', 'I read "{g}" in {s}, it was to be "{w}"',
        '{s} has the wrong words: "{w}"',
    ),
)  # fmt: skip
COUNT = Phrases(
    (
        "There should be {w}, not {g}.", "there should be {w}", "I want {w}, not {g}",
        "make it {w}", "I see {g} but want {w}", "{w} instead of {g}, please", "we need {w}",
        "I need {w}",
        "there should be {w}: {all}", "I want {w}: {all}", "make it {w}: {all}",
        "{w}, please: {all}", "there should be {w}, namely {all}", "I need {w}: {all}",
    ),
    ("{w} is what I had in mind", "count again, it is {w}", "you have {g}; it is {w}, {all}"),
)  # fmt: skip
ONE_ITEM = Phrases(
    (
        'The {nth} {one} should say "{w}", not "{g}".', 'the {nth} {one} should be "{w}"',
        'change the {nth} {one} to "{w}"', 'replace the {one} "{g}" by "{w}"',
        'the {nth} {one} is "{w}"', 'I want "{w}" as the {nth} {one}', 'make the {nth} {one} "{w}"',
        'the {one} "{g}" should be "{w}"', 'call the {nth} {one} "{w}"',
    ),
    ('"{w}" goes in the {nth} {one}', 'it is "{w}" where the {nth} {one} says "{g}"'),
)  # fmt: skip
ALL_ITEMS = Phrases(
    (
        "The {n} should be {all}.", "I want these {n}: {all}", "use the {n} {all}",
        "change the {n} to {all}", "the {n} are {all}", "the {n} should say {all}",
        "please make the {n} {all}",
    ),
    ("for the {n} I meant {all}", "the right {n} would be {all}"),
)  # fmt: skip
MISSING = Phrases(
    (
        "There should be {a} {place}.", "there should be {a}", "add {a} {place}", "I miss {a}",
        "{a} is missing {place}", "please add {a} {place}", "I also want {a} {place}",
        "I need {a} {place}", "there is no {bare} yet, put it {place}", "put {a} {place}",
        "where is the {bare}? It belongs {place}", "you forgot the {bare} {place}",
    ),
    ("I do not see the {bare}, it goes {place}", "could we have {a} {place}?", "bring in {a}"),
)  # fmt: skip
EXTRA = Phrases(
    (
        "There should be no {bare}.", "remove {s}", "I do not want {a}", "please remove {s}",
        "{s} should not be there", "take {s} away", "no {bare}, please", "delete {s}",
        "I did not ask for {a}", "the page has no {bare}", "leave out {s}",
    ),
    ("drop {s}", "{s} has to go", "get rid of {s}"),
)  # fmt: skip
ORDER = Phrases(
    (
        "{s} should be {place}.", "move {s} {place}", "put {s} {place}", "{s} belongs {place}",
        "please move {s} {place}", "I want {s} {place}", "{s} should come {place}",
        "{s} is in the wrong place, move it {place}", "can you move {s} {place}?",
    ),
    ("shift {s} {place}", "{s} should go {place}", "the place for {s} is {place}"),
)  # fmt: skip
RIGHT = Phrases(
    (
        "It looks right.", "That is exactly what I want.", "Perfect, nothing to change.",
        "Yes, that is it.", "I see no difference.", "Looks right to me.", "That is the page.",
        "Great, it is all right now.", "All good.", "Now it is the same.",
    ),
    ("Spot on.", "You got it.", "Nothing to complain about."),
)  # fmt: skip
NO_PAGE = Phrases(
    (
        "I see no page yet. Please show me one.", "There is nothing to look at, show me the page.",
        "I can't see a page.", "Please show me a page first.", "I only react to pages I can see.",
    ),
    ("My screen is empty.", "Could I see it, please?"),
)  # fmt: skip
OPENINGS = ("Thanks.", "Better.", "Nearly there.", "Almost.", "Hmm.", "Okay.", "Good start.")

PARTS = {
    "page": ("page", "page background", "background", "background of the page"),
    "header": ("header", "header", "header", "page header"),
    "nav": ("menu", "menu", "navigation", "navigation bar", "nav"),
    "hero": ("hero", "hero", "hero", "hero section", "banner"),
    "cards": ("cards section", "cards section", "row of cards", "block of cards"),
    "list": ("list", "list", "list", "list of points"),
    "form": ("form", "form", "form", "input form"),
    "footer": ("footer", "footer", "footer", "page footer"),
}
ONE = {
    "links": "link", "cards": "card", "items": "list item", "fields": "field",
}  # fmt: skip
NTH = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
ALIGNMENTS = {
    "left": ("on the left", "left", "aligned left", "on the left side"),
    "center": ("in the center", "centered", "in the middle", "center aligned"),
    "right": ("on the right", "right", "aligned right", "on the right side"),
}
COMPARATIVES = {Kind.SIZE: ("smaller", "bigger"), Kind.HEIGHT: ("shorter", "taller")}
DETAILS = {
    Kind.COLOR: COLOR, Kind.ALIGN: ALIGN, Kind.SIZE: SIZE, Kind.HEIGHT: SIZE,
    Kind.COLUMNS: COLUMNS, Kind.MARKS: MARKS, Kind.TEXT: TEXT,
}  # fmt: skip
STRUCTURE = {What.MISSING: MISSING, What.EXTRA: EXTRA, What.ORDER: ORDER}

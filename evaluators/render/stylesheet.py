"""Tailwind's stylesheet, purged to the classes that a page uses: the same pixels, far fewer bytes.

A rule is left out only where no selector of it can match: each of its selectors asks for a class
that stands nowhere in the page. The order of the rest is kept.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

_WORD_BREAKS = re.compile(r"[\s\"'<>=`]+")
_CLASS = re.compile(r"\.((?:\\[0-9a-fA-F]{1,6}\s?|\\.|[\w-]|[^\x00-\x7f])+)")
_ESCAPED = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule's text, the condition it stands under, and the classes each selector asks for."""

    condition: str
    text: str
    selectors: tuple[frozenset[str], ...]

    def can_match(self, words: frozenset[str]) -> bool:
        return any(classes <= words for classes in self.selectors)


class Stylesheet:
    """A minified stylesheet, read once."""

    def __init__(self, css: str) -> None:
        self._rules = list(_rules(css))
        self._always: list[int] = []
        self._by_class: dict[str, list[int]] = {}
        for number, rule in enumerate(self._rules):
            for classes in rule.selectors:
                numbers = self._by_class.setdefault(min(classes), []) if classes else self._always
                numbers.append(number)

    def purged(self, page: str) -> str:
        """What of it can matter to this HTML."""
        words = words_of(page)
        numbers = set(self._always)
        for word in words & self._by_class.keys():
            numbers.update(self._by_class[word])
        rules = (self._rules[number] for number in sorted(numbers))
        kept = (rule for rule in rules if rule.can_match(words))
        parts = []
        for condition, group in groupby(kept, key=lambda rule: rule.condition):
            text = "".join(rule.text for rule in group)
            parts.append(f"{condition}{{{text}}}" if condition else text)
        return "".join(parts)


def words_of(page: str) -> frozenset[str]:
    """Everything in the HTML that could be a class, in lower case.

    A page without a doctype matches classes in any case.
    """
    texts = (page, html.unescape(page))
    return frozenset(word.lower() for text in texts for word in _WORD_BREAKS.split(text))


def _rules(css: str) -> Iterator[_Rule]:
    for head, body in _parts(css):
        if head.startswith("@media"):
            yield from (_rule(head, *part) for part in _parts(body))
        else:
            yield _rule("", head, body)


def _parts(css: str) -> Iterator[tuple[str, str]]:
    """Each rule's head and body, braces matched."""
    start = 0
    while (opening := css.find("{", start)) >= 0:
        depth, end = 1, opening + 1
        while depth:
            end = _next_brace(css, end)
            depth += 1 if css[end] == "{" else -1
            end += 1
        yield (
            re.sub(r"/\*.*?\*/", "", css[start:opening], flags=re.S).strip(),
            css[opening + 1 : end - 1],
        )
        start = end


_BRACE = re.compile(r"[{}]")


def _next_brace(css: str, start: int) -> int:
    found = _BRACE.search(css, start)
    if found is None:
        raise ValueError("the stylesheet has a brace that is never closed")
    return found.start()


def _rule(condition: str, head: str, body: str) -> _Rule:
    text = f"{head}{{{body}}}"
    if head.startswith("@"):  # keyframes and the like: no selectors
        return _Rule(condition, text, (frozenset(),))
    selectors = re.split(r"(?<!\\),(?![^(]*\))", head)
    return _Rule(condition, text, tuple(frozenset(_classes(selector)) for selector in selectors))


def _classes(selector: str) -> Iterator[str]:
    """The classes that an element or its neighbours must have for the selector to match."""
    asked = re.sub(r":not\([^)]*\)", "", selector)
    for found in _CLASS.finditer(asked):
        yield _ESCAPED.sub(_character, found[1]).lower()


def _character(escaped: re.Match[str]) -> str:
    return chr(int(escaped[1], 16)) if escaped[1] else escaped[2]

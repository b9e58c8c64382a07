"""In what a page differs from the one that is wanted, the most outstanding difference first.

`changed` carries a difference out. Carrying out all of them, in any spec's case, one after the
other gives the wanted page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sweet.tasks.mini_pages import DETAILS, PAGE, Kind, PageSpec, Section, Value


class What(StrEnum):
    """What sort of difference it is."""

    MISSING = "missing"  # a section is not there
    EXTRA = "extra"  # a section should not be there
    ORDER = "order"  # a section stands at the wrong place
    DETAIL = "detail"  # a section's look or text is another


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: which section ("page" for the page itself), and what is wanted for it.

    A missing or misplaced section belongs below `below` and above `above`; "" is the page's end.
    """

    what: What
    section: str
    detail: str = ""
    kind: Kind | None = None
    wanted: Value = ""
    shown: Value = ""
    below: str = ""
    above: str = ""
    added: Section | None = None  # the missing section as it is wanted


_WEIGHTS = {
    Kind.COLOR: 8.0, Kind.ITEMS: 7.0, Kind.COLUMNS: 6.5, Kind.ALIGN: 5.0, Kind.HEIGHT: 5.0,
    Kind.SIZE: 4.5, Kind.MARKS: 3.0, Kind.TEXT: 3.5,
}  # fmt: skip
_AREAS = {
    PAGE: 1.2, "hero": 1.0, "cards": 0.9, "header": 0.8, "list": 0.7, "form": 0.7, "nav": 0.6,
    "footer": 0.5,
}  # fmt: skip


def differences(target: PageSpec, shown: PageSpec) -> list[Difference]:
    """What to change in `shown` to have `target`, the most outstanding first.

    Structure comes before looks, and is told step by step: each place is one on the page after
    the changes before it.
    """
    page, found = shown, []
    for some in (_missing(target, shown), _extra(target, shown)):
        for difference in some:
            found.append(difference)
            page = changed(page, difference)
    while (step := move(target.names, page.names)) is not None:
        found.append(step)
        page = changed(page, step)
    return [*found, *sorted(_details(target, page), key=_outstanding, reverse=True)]


def changed(page: PageSpec, difference: Difference) -> PageSpec:
    """The page after one change."""
    name = difference.section
    if difference.what is What.DETAIL:
        return page.having(name, difference.detail, difference.wanted)
    rest = [section for section in page.sections if section.name != name]
    if difference.what is What.EXTRA:
        return replace(page, sections=tuple(rest))
    moved = difference.added or page.section(name)
    names = [section.name for section in rest]
    at = names.index(difference.below) + 1 if difference.below in names else 0
    return replace(page, sections=(*rest[:at], moved, *rest[at:]))


def _outstanding(difference: Difference) -> float:
    kind = difference.kind or Kind.TEXT
    small = 0.4 if difference.detail.startswith("button") else 1.0
    fewer = 0.5 if kind is Kind.ITEMS and _same_count(difference) else 1.0
    return _WEIGHTS[kind] * _AREAS.get(difference.section, 0.6) * small * fewer


def _same_count(difference: Difference) -> bool:
    wanted, shown = difference.wanted, difference.shown
    return isinstance(wanted, tuple) and isinstance(shown, tuple) and len(wanted) == len(shown)


def _missing(target: PageSpec, shown: PageSpec) -> list[Difference]:
    found = []
    for i, section in enumerate(target.sections):
        if section.name not in shown.names:
            below = target.names[i - 1] if i else ""
            there = [n for n in target.names[i + 1 :] if n in shown.names]
            above = there[0] if there else ""
            found.append(
                Difference(What.MISSING, section.name, below=below, above=above, added=section)
            )
    return found


def _extra(target: PageSpec, shown: PageSpec) -> list[Difference]:
    names = [name for name in shown.names if name not in target.names]
    return [Difference(What.EXTRA, name) for name in names]


def move(wanted: Sequence[str], shown: Sequence[str]) -> Difference | None:
    """The first section to move, so that the fewest are moved; None where the order is right."""
    if tuple(wanted) == tuple(shown):
        return None
    kept = _longest_in_order([wanted.index(name) for name in shown])
    name = next(n for i, n in enumerate(wanted) if i not in kept)
    at = wanted.index(name)
    above = min((i for i in kept if i > at), default=None)
    below = max((i for i in kept if i < at), default=None)
    return Difference(
        What.ORDER,
        name,
        below="" if below is None else wanted[below],
        above="" if above is None else wanted[above],
    )


def _longest_in_order(places: Sequence[int]) -> set[int]:
    """A longest rising part of the places."""
    best: list[list[int]] = []
    for place in places:
        before = [run for run in best if run[-1] < place]
        best.append([*_longest(before), place])
    return set(_longest(best))


def _longest(runs: Sequence[list[int]]) -> list[int]:
    return max(runs, key=lambda run: len(run), default=[])


def _details(target: PageSpec, shown: PageSpec) -> list[Difference]:
    found: list[tuple[str, str, Kind, Value, Value]] = []
    if target.background != shown.background:
        found.append((PAGE, "color", Kind.COLOR, target.background, shown.background))
    for section in target.sections:
        other = shown.section(section.name)
        for detail, wanted in section.details:
            if wanted != other[detail]:
                kind = DETAILS[section.name][detail]
                found.append((section.name, detail, kind, wanted, other[detail]))
    return [Difference(What.DETAIL, *fields) for fields in found]

"""In what two drawn pages differ, the most outstanding difference first.

Which block of one page is which of the other is `evaluators.blocks`' to say; what stays over is
missing or too much. How much a difference strikes goes by what it is and how much of the page it
covers. Of several elements that changed alike only the largest is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from evaluators.blocks import Block, Page, Sort, matched, page_of
from evaluators.color import difference as color_difference
from evaluators.color import lab
from sweet.types import Rendering

SAME_COLOR = 5.0  # CIEDE2000: nobody speaks of a smaller difference
SAME_PAGE_COLOR = 2.0  # so large an area is seen sooner
_SHIFT = 0.12  # of the page's width: a smaller shift does not strike
_LETTER = 0.5  # the width of a letter by its size, about
_LEAST_SHARE = 0.05


class Seen(StrEnum):
    """What sort of difference is seen."""

    MISSING = "missing"
    EXTRA = "extra"
    PAGE_COLOR = "page color"
    COLOR = "color"
    TEXT_COLOR = "text color"
    TEXT = "text"
    ALIGN = "align"
    LETTERS = "letters"  # their size
    BOLD = "bold"
    SIZE = "size"  # of a picture
    HEIGHT = "height"  # of an area
    PLACE = "place"  # further left or right
    ORDER = "order"  # above or below


_STRIKES = {
    Seen.MISSING: 3.0, Seen.EXTRA: 2.5, Seen.PAGE_COLOR: 1.8, Seen.COLOR: 2.4, Seen.ORDER: 2.0,
    Seen.TEXT: 2.0, Seen.LETTERS: 1.8, Seen.SIZE: 1.8, Seen.ALIGN: 1.6, Seen.PLACE: 1.5,
    Seen.HEIGHT: 1.0, Seen.TEXT_COLOR: 1.0, Seen.BOLD: 0.6,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: the wanted blocks, what is shown for them, and how much it strikes.

    `change` is what changed, in words of the page; `below` the wanted block before this one.
    """

    seen: Seen
    wanted: tuple[Block, ...] = ()
    shown: tuple[Block, ...] = ()
    change: tuple[str, str] = ("", "")
    below: Block | None = None
    share: float = 1.0

    @property
    def weight(self) -> float:
        """How much it strikes."""
        return _STRIKES[self.seen] * self.share


Pair = tuple[Block, Block]


def drawn_differences(wanted: Rendering, shown: Rendering) -> list[Difference]:
    """In what the page `shown` differs from `wanted`, the most outstanding first."""
    target, page = page_of(wanted), page_of(shown)
    places = matched(target, page)
    pairs = [(target.blocks[i], page.blocks[j]) for i, j in places]
    found = [
        *_page_color(target, page),
        *_left_over(target, {i for i, _ in places}, Seen.MISSING),
        *_left_over(page, {j for _, j in places}, Seen.EXTRA),
        *(difference for pair in pairs for difference in _looks(pair, target)),
        *_order(pairs, target),
    ]
    return list(_told_once(sorted(found, key=lambda d: -d.weight)))


def is_other_color(wanted: str, shown: str, same: float = SAME_COLOR) -> bool:
    """Whether people would speak of two colours ("#rrggbb")."""
    return bool(color_difference(lab([wanted]), lab([shown]))[0] > same)


def _share(blocks: Sequence[Block], page: Page) -> float:
    """The root of the part of the page that they cover, so that a line of text counts, too."""
    covered = sum(b.box.width * b.box.height * b.weight for b in blocks)
    return math.sqrt(min(max(covered / (page.width * max(page.height, 1)), 0.0), 1.0))


def _page_color(target: Page, page: Page) -> Iterator[Difference]:
    if is_other_color(target.background, page.background, SAME_PAGE_COLOR):
        yield Difference(Seen.PAGE_COLOR, change=(target.background, page.background))


# What is missing or too much


def _left_over(page: Page, found: set[int], seen: Seen) -> Iterator[Difference]:
    """The blocks without a counterpart; neighbours of a kind, and what lies in an area, at once."""
    alone = [i not in found for i in range(len(page.blocks))]
    gone = {id(b.box) for b, a in zip(page.blocks, alone, strict=True) if a and b.sort is Sort.AREA}
    rows = [
        (block, a and not (block.within and id(block.within) in gone))
        for block, a in zip(page.blocks, alone, strict=True)
        if not a or block.sort is not Sort.AREA or block.weight == 1
    ]
    before: Block | None = None
    for (is_alone, _), group in groupby(rows, lambda row: (row[1], row[0].box.tag)):
        some = tuple(block for block, _ in group)
        if is_alone and seen is Seen.MISSING:
            yield Difference(seen, some, below=before, share=_share(some, page))
        elif is_alone:
            yield Difference(seen, shown=some, share=_share(some, page))
        before = some[-1] if some[-1].sort is Sort.TEXT else before


# What looks different


def _looks(pair: Pair, target: Page) -> Iterator[Difference]:
    wanted, shown = pair
    share = max(_share([wanted], target), _LEAST_SHARE)
    for seen, change in _changes(wanted, shown, target.width):
        yield Difference(seen, (wanted,), (shown,), change, share=share)


def _changes(wanted: Block, shown: Block, width: float) -> Iterator[tuple[Seen, tuple[str, str]]]:
    mine, theirs = wanted.box, shown.box
    is_area = wanted.sort is Sort.AREA
    if (is_area or mine.tag == "button") and is_other_color(mine.background, theirs.background):
        yield Seen.COLOR, (mine.background, theirs.background)
    if wanted.sort is Sort.TEXT:
        yield from _changes_of_text(wanted, shown)
    if wanted.sort is Sort.PICTURE and _ratio(mine.width, theirs.width) > 1.25:
        yield Seen.SIZE, _grown(mine.width, theirs.width)
    if is_area and _ratio(mine.height, theirs.height) > 1.4 and wanted.text == shown.text:
        yield Seen.HEIGHT, _grown(mine.height, theirs.height)
    shift = (mine.x + mine.width / 2 - theirs.x - theirs.width / 2) / width
    if abs(shift) > _SHIFT and not is_area:
        yield Seen.PLACE, ("right" if shift > 0 else "left", "")


def _changes_of_text(wanted: Block, shown: Block) -> Iterator[tuple[Seen, tuple[str, str]]]:
    mine, theirs = wanted.box, shown.box
    if wanted.text != shown.text:
        yield Seen.TEXT, (mine.text, theirs.text)
    if is_other_color(mine.color, theirs.color):
        yield Seen.TEXT_COLOR, (mine.color, theirs.color)
    if _ratio(mine.font_size, theirs.font_size) > 1.15:
        yield Seen.LETTERS, _grown(mine.font_size, theirs.font_size)
    if mine.bold != theirs.bold:
        yield Seen.BOLD, ("bold", "") if mine.bold else ("", "bold")
    if mine.align != theirs.align and all(_has_room(block) for block in (wanted, shown)):
        yield Seen.ALIGN, (mine.align, theirs.align)


def _has_room(block: Block) -> bool:
    """Whether a text is so much narrower than its box that one sees how it is aligned."""
    box = block.box
    return len(box.text) > 100 or box.width > 1.2 * len(box.text) * box.font_size * _LETTER


def _ratio(a: float, b: float) -> float:
    low, high = sorted((max(a, 1.0), max(b, 1.0)))
    return high / low


def _grown(wanted: float, shown: float) -> tuple[str, str]:
    return ("bigger" if wanted > shown else "smaller", "")


# What stands elsewhere


def _order(pairs: Sequence[Pair], target: Page) -> Iterator[Difference]:
    """The block to move above or below others, if the order is another one."""
    rows = sorted(pairs, key=lambda pair: pair[0].box.y)
    passed = [sum(_crossed(pair, other) for other in rows) for pair in rows]
    if not any(passed):
        return
    at = max(range(len(rows)), key=lambda i: (passed[i], _share([rows[i][0]], target)))
    wanted, shown = rows[at]
    above = [w for w, _ in rows if _ends_above(w, wanted) and w.sort is Sort.TEXT]
    share = max(_share([wanted], target), 0.1) + 0.05 * min(passed[at], 6)
    yield Difference(
        Seen.ORDER, (wanted,), (shown,), below=above[-1] if above else None, share=share
    )


def _crossed(pair: Pair, other: Pair) -> bool:
    """Whether two blocks stand the other way round than they should."""
    before = _ends_above(other[0], pair[0]) and _ends_above(pair[1], other[1])
    return before or (_ends_above(pair[0], other[0]) and _ends_above(other[1], pair[1]))


def _ends_above(block: Block, other: Block) -> bool:
    return block.box.y + block.box.height <= other.box.y + 1


def _told_once(found: Sequence[Difference]) -> Iterator[Difference]:
    """Without the smaller elements that changed alike: forty links of another colour are one."""
    told: set[tuple[str, ...]] = set()
    for difference in found:
        key = (difference.seen, *difference.change)
        alike = difference.seen not in (Seen.MISSING, Seen.EXTRA, Seen.TEXT, Seen.ORDER)
        page_changed = (Seen.PAGE_COLOR, *difference.change) in told
        if alike and (key in told or (difference.seen is Seen.COLOR and page_changed)):
            continue
        told.add(key)
        yield difference

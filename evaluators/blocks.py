"""The blocks of a drawn page, and which block of one page is which of another. Pure.

A block is what a person would point at: a text, a picture, a field, or a coloured area with what
lies in it. Blocks are matched by what they say (an area by what is written in it), and by where
they stand and how large they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from sweet.types import Box, Rendering

MAX_BLOCKS = 400
"""The largest are kept: matching takes cubic time, and pages have some dozens."""
MATCHES_FROM = 0.4  # below this likeness two blocks are not the same one
FAINT_WEIGHT = 0.3  # an area in the colour that it lies on: a border, a shadow, or nothing at all
SAID = 0.6  # how much of a likeness is the text's, where a block has one
PAIRED = 0.75  # the most two blocks of different sorts can be alike
EDGE_PX = 1.0  # boxes are a fraction of a pixel apart where they touch
LEVEL_PX = 400.0  # how far apart two places still are alike
TEXT_CHARS = 4000  # of a block's text, as much is compared

PICTURES = frozenset("img svg video canvas picture iframe embed object audio".split())
FIELDS = frozenset("input select textarea meter progress".split())
PAGE = frozenset({"html", "body"})


class Sort(IntEnum):
    """What sort of block it is."""

    TEXT = 0
    PICTURE = 1
    FIELD = 2
    AREA = 3


@dataclass(frozen=True, slots=True)
class Block:
    """A box that counts, what is written in it and what it lies in (None: the page itself)."""

    box: Box
    sort: Sort
    text: str
    weight: float
    within: Box | None


@dataclass(frozen=True, slots=True)
class Page:
    """A page's blocks in the document's order, its size and the colour behind all of them."""

    blocks: tuple[Block, ...]
    width: float
    height: float
    background: str

    @property
    def places(self) -> np.ndarray:
        """Left, top, right and bottom of each block."""
        boxes = [(b.x, b.y, b.x + b.width, b.y + b.height) for b in (k.box for k in self.blocks)]
        return np.array(boxes, dtype=float).reshape(-1, 4)


def page_of(drawn: Rendering) -> Page:
    """The blocks of a drawn page."""
    root = [box for box in drawn.boxes if box.tag in PAGE]
    background = root[-1].background if root else "#ffffff"
    boxes = [box for box in drawn.boxes if box.tag not in PAGE and _is_seen(box)]
    if len(boxes) > MAX_BLOCKS:
        largest = sorted(boxes, key=lambda box: -box.width * box.height)[:MAX_BLOCKS]
        kept = set(map(id, largest))
        boxes = [box for box in boxes if id(box) in kept]
    holders = _holders(boxes)
    inner = _inner_texts(boxes, holders)
    blocks = []
    for at, box in enumerate(boxes):
        within = boxes[holders[at]] if holders[at] >= 0 else None
        sort = _sort(box)
        behind = within.background if within else background
        is_faint = sort is Sort.AREA and box.background == behind
        blocks.append(Block(box, sort, inner[at], FAINT_WEIGHT if is_faint else 1.0, within))
    return Page(tuple(blocks), drawn.width, drawn.height, background)


def _is_seen(box: Box) -> bool:
    return box.width >= EDGE_PX and box.height >= EDGE_PX


def _sort(box: Box) -> Sort:
    if box.tag in FIELDS:
        return Sort.FIELD
    if box.tag in PICTURES:
        return Sort.PICTURE
    return Sort.TEXT if box.text else Sort.AREA


def _holders(boxes: Sequence[Box]) -> list[int]:
    """For each box the last one before it that it lies in; -1 where it lies on the page."""
    places = np.array(
        [(b.x, b.y, b.x + b.width, b.y + b.height) for b in boxes], dtype=float
    ).reshape(-1, 4)
    found = []
    for at, (left, top, right, bottom) in enumerate(places):
        before = places[:at]
        holds = (
            (before[:, 0] <= left + EDGE_PX)
            & (before[:, 1] <= top + EDGE_PX)
            & (before[:, 2] >= right - EDGE_PX)
            & (before[:, 3] >= bottom - EDGE_PX)
        )
        holding = np.flatnonzero(holds)
        found.append(int(holding[-1]) if len(holding) else -1)
    return found


def _inner_texts(boxes: Sequence[Box], holders: Sequence[int]) -> list[str]:
    """What is written in each box and in those that lie in it, in the document's order."""
    parts: list[list[str]] = [[box.text] if box.text else [] for box in boxes]
    for at, box in enumerate(boxes):
        holder = holders[at]
        while box.text and holder >= 0:
            parts[holder].append(box.text[:TEXT_CHARS])
            holder = holders[holder]
    return [" ".join(" ".join(said).lower().split())[:TEXT_CHARS] for said in parts]


def matched(one: Page, other: Page) -> list[tuple[int, int]]:
    """Which block of one page is which of the other, as pairs of their places in the order."""
    if not one.blocks or not other.blocks:
        return []
    likeness = _likeness(one, other)
    pairs = assignment(likeness)
    return [(i, j) for i, j in pairs if likeness[i, j] >= MATCHES_FROM]


def _likeness(one: Page, other: Page) -> np.ndarray:
    """How much each block of one is like each of the other, from 0 to 1."""
    near, large = _nearness(one, other), _size_likeness(one, other)
    texts = text_likeness([b.text for b in one.blocks], [b.text for b in other.blocks])
    silent = np.logical_and.outer(
        [not b.text for b in one.blocks], [not b.text for b in other.blocks]
    )
    shape = 0.6 * near + 0.4 * large
    found = np.where(silent, shape, SAID * texts + (1 - SAID) * shape)
    sorts = np.not_equal.outer([b.sort for b in one.blocks], [b.sort for b in other.blocks])
    return np.where(sorts, PAIRED * found, found)


def _nearness(one: Page, other: Page) -> np.ndarray:
    first, second = _centres(one), _centres(other)
    apart = np.hypot(*(first[:, None, :] - second[None, :, :]).transpose(2, 0, 1))
    return np.exp(-apart / LEVEL_PX)


def _centres(page: Page) -> np.ndarray:
    places = page.places
    return (places[:, :2] + places[:, 2:]) / 2


def _size_likeness(one: Page, other: Page) -> np.ndarray:
    first, second = (page.places[:, 2:] - page.places[:, :2] for page in (one, other))
    return ratio(first[:, None, :], second[None, :, :]).mean(-1)


def ratio(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The smaller of two positive numbers by the larger."""
    return np.minimum(first, second) / np.maximum(np.maximum(first, second), 1e-9)


def text_likeness(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """The share of letter pairs that two texts have in common (Dice), for each two of them."""
    one, other = [_pairs(text) for text in first], [_pairs(text) for text in second]
    known = {pair: at for at, pair in enumerate({p for bag in (*one, *other) for p in bag})}
    counts = [_counts(bag, known) for bag in other]
    found = np.zeros((len(one), len(other)))
    if not counts:
        return found
    table = np.stack(counts)
    for row, bag in enumerate(one):
        own = _counts(bag, known)
        total = own.sum() + table.sum(1)
        shared = np.minimum(own, table[:, : len(known)]).sum(1)
        found[row] = np.where(total > 0, 2 * shared / np.maximum(total, 1), 1.0)
    return found


def _pairs(text: str) -> Counter[str]:
    """The letter pairs of a text; its ends count, so that one letter has some too."""
    ended = f"\n{text}\n" if text else ""
    return Counter(ended[at : at + 2] for at in range(len(ended) - 1))


def _counts(bag: Counter[str], known: dict[str, int]) -> np.ndarray:
    counts: np.ndarray = np.zeros(len(known), dtype=np.int32)
    for pair, count in bag.items():
        counts[known[pair]] = count
    return counts


def assignment(scores: np.ndarray) -> list[tuple[int, int]]:
    """The pairs of a row and a column, each in one pair at most, with the highest sum of scores.

    Source: Kuhn's Hungarian method by shortest augmenting paths (Jonker and Volgenant 1987).
    """
    if scores.shape[0] > scores.shape[1]:
        return sorted((i, j) for j, i in assignment(scores.T))
    cost = scores.max() - scores
    rows, columns = cost.shape
    of_rows, of_columns = np.zeros(rows), np.zeros(columns)
    owner = np.full(columns, -1)
    for row in range(rows):
        _augment(cost, of_rows, of_columns, owner, row)
    return sorted((int(owner[column]), int(column)) for column in np.flatnonzero(owner >= 0))


def _augment(
    cost: np.ndarray, of_rows: np.ndarray, of_columns: np.ndarray, owner: np.ndarray, row: int
) -> None:
    """Give one more row a column, along the shortest path; prices stay those of an optimum."""
    far = np.full(len(owner), np.inf)
    came_from = np.full(len(owner), -1)
    done: np.ndarray = np.zeros(len(owner), dtype=bool)
    reached, at, last = 0.0, row, -1
    while True:
        way = reached + cost[at] - of_rows[at] - of_columns
        shorter = ~done & (way < far)
        far[shorter], came_from[shorter] = way[shorter], last
        last = int(np.argmin(np.where(done, np.inf, far)))
        reached, done[last] = float(far[last]), True
        if owner[last] < 0:
            break
        at = int(owner[last])
    visited = np.flatnonzero(done)
    of_rows[row] += reached
    for column in visited:
        if owner[column] >= 0:
            of_rows[owner[column]] += reached - far[column]
    of_columns[visited] -= reached - far[visited]
    while last >= 0:
        before = int(came_from[last])
        owner[last] = row if before < 0 else owner[before]
        last = before

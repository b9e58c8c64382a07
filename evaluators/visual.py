"""How alike two drawn pages look, from their elements and pictures. Pure, and without a model.

In the spirit of Design2Code's low-level metrics (arXiv:2403.03163, section 3), made so that pages
with little text can be judged too, and so that a change lowers the part that is named after it:

blocks    how much of each page the other has as well
text      what the matched blocks say
position  where they stand, mostly beside their neighbours: what moves the rest of the page down
          counts once, where it happens
color     their text and background colours, as an eye sees them (CIEDE2000)
size      their sizes, and the size and weight of their letters
layout    whether they stand in the same order and are aligned the same way

Each is in [0, 1]. The overall is `blocks` times the mean of the others: what is missing is neither
right nor wrong elsewhere, so it can't be made up for.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

import numpy as np
from PIL import Image

from evaluators.blocks import Block, Page, Sort, matched, page_of, ratio, text_likeness
from evaluators.color import difference, lab, rgb_to_lab
from sweet.types import Rendering

DIGITS = 9
UNLIKE = 50.0  # colours this far apart (CIEDE2000) have nothing in common
NEIGHBOURS = 4
REACH_PX = 600.0  # a neighbour that moved this far is half a neighbour
ALONE = 0.15  # how much of a position is the place on the page, whatever stands beside
APART = 0.25  # what is left of the layout where a text is aligned in another way
ORDER_POWER = 8  # a block that one in ten others has changed sides with is no longer in its place
SLACK = 0.1  # of the width; a gap on one side that is smaller is hardly seen
SHIFTED = 0.1  # the loss where two blocks now overlap on an axis, or no longer do
LIGHTER = 0.8  # bold letters for others, and the other way round

Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Similarity:
    """How alike two pages look, part by part; `overall` of all of them."""

    overall: float
    blocks: float
    text: float
    position: float
    color: float
    size: float
    layout: float

    def parts(self) -> dict[str, float]:
        """The parts by name, without the overall."""
        return {name: value for name, value in asdict(self).items() if name != "overall"}


NOTHING = Similarity(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""What a page that is not there is like."""


def similarity(one: Rendering, other: Rendering) -> Similarity:
    """How alike the two pages look; the order does not matter."""
    one, other = sorted((one, other), key=lambda drawn: (len(drawn.boxes), repr(drawn.boxes)))
    first, second = page_of(one), page_of(other)
    behind = float(_color_likeness([first.background], [second.background])[0])
    if not first.blocks and not second.blocks:
        return Similarity(_share(behind), 1.0, 1.0, 1.0, _share(behind), 1.0, 1.0)
    pairs = matched(first, second)
    if not pairs:
        return NOTHING
    weights = _pair_weights(first, second, pairs)
    colors = _colors(first, second, pairs, (one.png, other.png))
    return _similarity(
        _blocks(first, second, pairs),
        _text(first, second, pairs, weights),
        _mean(_positions(first, second, pairs), weights),
        _mean(np.append(colors, behind), np.append(weights, weights.mean())),
        _mean(_sizes(first, second, pairs), weights),
        _mean(_layouts(first, second, pairs), weights),
    )


def _similarity(blocks: float, *others: float) -> Similarity:
    return Similarity(round(blocks * fmean(others), DIGITS), blocks, *others)


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    return _share(np.average(values, weights=weights))


def _share(value: float) -> float:
    """A number from 0 to 1; what is 1 but for rounding is 1."""
    return round(min(1.0, max(0.0, float(value))), DIGITS)


# What is there


def _weights(page: Page) -> np.ndarray:
    """How much each block counts in its page: half for being one, half by how large it looks."""
    known = np.array([block.weight for block in page.blocks])
    places = page.places
    sides = np.sqrt((places[:, 2:] - places[:, :2]).clip(min=0.0).prod(1)) * known
    return (known / known.sum() + sides / sides.sum()) / 2


def _pair_weights(one: Page, other: Page, pairs: Pairs) -> np.ndarray:
    first, second = map(list, zip(*pairs, strict=True))
    return _weights(one)[first] + _weights(other)[second]


def _blocks(one: Page, other: Page, pairs: Pairs) -> float:
    """The share of one page that the other has, times the share of the other that belongs."""
    first, second = map(list, zip(*pairs, strict=True))
    there, belonging = _weights(one)[first].sum(), _weights(other)[second].sum()
    return _share(there * belonging)


# The matched blocks


def _text(one: Page, other: Page, pairs: Pairs, weights: np.ndarray) -> float:
    """How alike the texts are, over the pairs of which one side at least says something."""
    said = [(one.blocks[i].box.text, other.blocks[j].box.text) for i, j in pairs]
    speaking = [at for at, texts in enumerate(said) if any(texts)]
    if not speaking:
        is_silent = not any(block.box.text for block in (*one.blocks, *other.blocks))
        return 1.0 if is_silent else 0.0
    alike = [float(text_likeness([said[at][0]], [said[at][1]])[0, 0]) for at in speaking]
    return _mean(np.array(alike), weights[speaking])


def _places(one: Page, other: Page, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Left, top, right, bottom of the matched blocks on each page."""
    first, second = map(list, zip(*pairs, strict=True))
    return one.places[first], other.places[second]


def _positions(one: Page, other: Page, pairs: Pairs) -> np.ndarray:
    first, second = map(_anchors, _places(one, other, pairs))
    scale = np.array([max(one.width, other.width), max(one.height, other.height)])
    moved = np.abs(first - second).min(0) / scale
    alone = 1 - moved.sum(-1).clip(max=1.0)
    if len(pairs) == 1:
        return alone
    beside = [_kept_offsets(first, second, near) for near in (first, second)]
    return (1 - ALONE) * (beside[0] + beside[1]) / 2 + ALONE * alone


def _anchors(places: np.ndarray) -> np.ndarray:
    """Near edge, middle and far edge on both axes: what grows keeps one of them."""
    near, far = places[:, :2], places[:, 2:]
    return np.stack([near, (near + far) / 2, far])


def _kept_offsets(first: np.ndarray, second: np.ndarray, near: np.ndarray) -> np.ndarray:
    """How well each block kept its way to the better half of its neighbours, those in `near`."""
    middle = near[1]
    apart = np.hypot(*(middle[:, None, :] - middle[None, :, :]).transpose(2, 0, 1))
    np.fill_diagonal(apart, np.inf)
    nearest = np.argsort(apart, axis=1, kind="stable")[:, : min(NEIGHBOURS, len(middle) - 1)]
    ways = [places[:, :, None, :] - places[:, None, :, :] for places in (first, second)]
    changed = np.abs(ways[0] - ways[1]).min(0).sum(-1)
    kept = 1 / (1 + changed / REACH_PX)
    best = -np.sort(-np.take_along_axis(kept, nearest, axis=1), axis=1)
    return best[:, : (nearest.shape[1] + 1) // 2].mean(1)


def _sizes(one: Page, other: Page, pairs: Pairs) -> np.ndarray:
    first, second = _places(one, other, pairs)
    boxes = ratio(first[:, 2:] - first[:, :2], second[:, 2:] - second[:, :2]).mean(-1)
    letters = [_letters(one.blocks[i], other.blocks[j]) for i, j in pairs]
    return np.array(
        [
            box if own is None else (box + 3 * own) / 4
            for box, own in zip(boxes, letters, strict=True)
        ]
    )


def _letters(one: Block, other: Block) -> float | None:
    """How alike two blocks' letters are; None where there are none."""
    if not one.box.text or not other.box.text:
        return None
    sizes = sorted((one.box.font_size, other.box.font_size))
    alike = sizes[0] / sizes[1] if sizes[1] > 0 else 1.0
    return alike if one.box.bold == other.box.bold else alike * LIGHTER


def _layouts(one: Page, other: Page, pairs: Pairs) -> np.ndarray:
    aligned = np.array([_aligned(one, i, other, j, dict(pairs)) for i, j in pairs])
    if len(pairs) == 1:
        return aligned
    first, second = (_relations(places) for places in _places(one, other, pairs))
    apart = ((first == second) & (first != 0)).any(-1)
    loss = np.where(first * second < 0, 1.0, np.where(first == second, 0.0, SHIFTED)).max(-1)
    kept = np.where(apart, 1.0, 1 - loss)
    np.fill_diagonal(kept, 0.0)
    return aligned * (kept.sum(1) / (len(pairs) - 1)) ** ORDER_POWER


def _relations(places: np.ndarray) -> np.ndarray:
    """For each two blocks and each axis: -1 before, 1 after, 0 beside (they overlap)."""
    near, far = places[:, :2], places[:, 2:]
    before = far[:, None, :] <= near[None, :, :] + 1.0
    after = near[:, None, :] >= far[None, :, :] - 1.0
    return after.astype(int) - before.astype(int)


def _aligned(one: Page, i: int, other: Page, j: int, match: Mapping[int, int]) -> float:
    """How alike two blocks stand between left and right, and their text within them.

    A row in which a block is missing stands elsewhere for that alone: `blocks` counts it.
    """
    first, second = one.blocks[i].box, other.blocks[j].box
    rows = _row(one, i), _row(other, j)
    kept = 1.0
    if sorted(match.get(at, -1) for at in rows[0]) == rows[1]:
        kept -= min(1.0, abs(_leaning(one, rows[0]) - _leaning(other, rows[1])))
    is_text = first.text and second.text
    return min(kept, APART) if is_text and first.align != second.align else kept


def _leaning(page: Page, row: Sequence[int]) -> float:
    """-1 where a row is at the left end of what it lies in, 0 in its middle, 1 at its right."""
    blocks = [page.blocks[at] for at in row]
    within = blocks[0].within
    begin, width = (within.x, within.width) if within else (0.0, page.width)
    left = max(0.0, min(b.box.x for b in blocks) - begin)
    right = max(0.0, begin + width - max(b.box.x + b.box.width for b in blocks))
    return (left - right) / max(left + right + SLACK * width, 1.0)


def _row(page: Page, at: int) -> list[int]:
    """The blocks that stand beside a block in what it lies in, itself among them."""
    block = page.blocks[at]
    return [
        i
        for i, other in enumerate(page.blocks)
        if other.within is block.within and _is_beside(block, other)
    ]


def _is_beside(one: Block, other: Block) -> bool:
    """Whether two blocks stand beside each other: the middle of each is level with the other."""
    tops, heights = (one.box.y, other.box.y), (one.box.height, other.box.height)
    return abs((tops[0] + heights[0] / 2) - (tops[1] + heights[1] / 2)) <= min(heights) / 2


# Colours


def _colors(one: Page, other: Page, pairs: Pairs, pngs: tuple[bytes, bytes]) -> np.ndarray:
    blocks = [(one.blocks[i], other.blocks[j]) for i, j in pairs]
    behind = _color_likeness(
        [a.box.background for a, _ in blocks], [b.box.background for _, b in blocks]
    )
    letters = _color_likeness([a.box.color for a, _ in blocks], [b.box.color for _, b in blocks])
    has_text = np.array([bool(a.box.text and b.box.text) for a, b in blocks])
    found = np.where(has_text, (behind + letters) / 2, behind)
    shown = [at for at, (a, b) in enumerate(blocks) if a.sort is b.sort is Sort.PICTURE]
    if shown:
        first = _means(pngs[0], [blocks[at][0] for at in shown])
        second = _means(pngs[1], [blocks[at][1] for at in shown])
        found[shown] = _likeness(difference(rgb_to_lab(first), rgb_to_lab(second)))
    return found


def _color_likeness(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    return _likeness(difference(lab(first), lab(second)))


def _likeness(apart: np.ndarray) -> np.ndarray:
    return 1 - (apart / UNLIKE).clip(max=1.0)


def _means(png: bytes, blocks: Sequence[Block]) -> np.ndarray:
    """The mean colour of each block in the page's picture; white where it is outside of it."""
    with Image.open(io.BytesIO(png)) as picture:
        drawn = picture.convert("RGB")
    found = []
    for block in blocks:
        box = block.box
        left, top = max(0, round(box.x)), max(0, round(box.y))
        right = min(drawn.width, round(box.x + box.width))
        bottom = min(drawn.height, round(box.y + box.height))
        cut = drawn.crop((left, top, right, bottom)) if left < right and top < bottom else None
        found.append(np.asarray(cut).reshape(-1, 3).mean(0) if cut else np.full(3, 255.0))
    return np.array(found)

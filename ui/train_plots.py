"""The numbers of a round's training → plots as SVG: each update, and the same smoothed.

Drawn here and not by a plotting library in the browser: the plots of a tick are a few kilobytes,
follow the page's colours, and work without another script.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sweet.store import RoundMetric
from ui.format import esc, notice

Point = tuple[int, float]

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 54, 10, 10, 26
MOST_POINTS = 240
"""Of a line; more would not be seen."""
SMOOTHING = 0.9
"""Weight of what came before in the smoothed line: about the last ten updates count."""


class Plot(NamedTuple):
    """What is plotted, and what it means, as docs/metrics.md has it."""

    stage: str
    name: str
    title: str
    meaning: str
    is_share: bool = False


PLOTS = (
    Plot("critic", "loss", "Critic: loss", "−log σ(margin) of episode pairs; 0.693 at the start"),
    Plot(
        "critic",
        "accuracy",
        "Critic: pair accuracy",
        "share of pairs whose better episode gets the higher score",
        True,
    ),
    Plot("policy", "loss", "Policy: loss", "what is made small; pairs start at about 0.693"),
    Plot(
        "policy",
        "margin",
        "Policy: rewards/margins",
        "β × (chosen − rejected), log-ratios to the parent; 0 at the start",
    ),
    Plot(
        "policy",
        "accuracy",
        "Policy: rewards/accuracies",
        "share of pairs with a margin above 0",
        True,
    ),
    Plot(
        "policy",
        "nll",
        "Policy: NLL of the chosen side",
        "rises when training forgets how to speak",
    ),
)


def plots(metrics: Sequence[RoundMetric]) -> str:
    """Every plot that has numbers; a word about when they come where none has."""
    drawn = [(plot, points) for plot in PLOTS if (points := _points(metrics, plot))]
    if not drawn:
        return notice("No plot yet", "The lines appear with the first update of a training stage.")
    figures = "".join(_figure(plot, points) for plot, points in drawn)
    legend = (
        '<p class="meta legend"><span class="key raw"></span>each update '
        '<span class="key smooth"></span>smoothed over about 10 updates</p>'
    )
    return f'{legend}<div class="plots">{figures}</div>'


def smoothed(points: Sequence[Point], weight: float = SMOOTHING) -> list[Point]:
    """An exponential mean of the values, without the pull towards 0 at its beginning."""
    mean, lines = 0.0, []
    for count, (step, value) in enumerate(points, start=1):
        mean = weight * mean + (1 - weight) * value
        lines.append((step, mean / (1 - weight**count)))
    return lines


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """About `count` round numbers from `low` to `high`, both ends covered."""
    if high <= low:
        pad = abs(low) * 0.1 or 0.1
        low, high = low - pad, high + pad
    rough = (high - low) / count
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * n for n in (1, 2, 5, 10) if size * n >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(n * step, 12) for n in range(first, last + 1)]


def _points(metrics: Iterable[RoundMetric], plot: Plot) -> list[Point]:
    found = [(m.step, m.value) for m in metrics if (m.stage, m.name) == (plot.stage, plot.name)]
    return sorted(found)


def _figure(plot: Plot, points: Sequence[Point]) -> str:
    smooth = smoothed(points)
    last, now = smooth[-1]
    shown = _label(now, plot.is_share, 3)
    summary = (
        f"{plot.title}: {_label(points[0][1], plot.is_share, 3)} at update {points[0][0]}, "
        f"smoothed {shown} at update {last}"
    )
    return (
        f'<figure class="plot"><figcaption><strong>{esc(plot.title)}</strong>'
        f'<span class="now">{shown}</span><span class="meta">{esc(plot.meaning)}</span>'
        f"</figcaption>{_svg(summary, points, smooth, plot.is_share)}</figure>"
    )


def _svg(summary: str, points: Sequence[Point], smooth: Sequence[Point], is_share: bool) -> str:
    values = [value for _, value in points]
    rows = ticks(0.0, 1.0, 4) if is_share else ticks(min(values), max(values))
    first, last = points[0][0], max(points[-1][0], points[0][0] + 1)

    def place(point: Point) -> str:
        x = LEFT + (point[0] - first) / (last - first) * (WIDTH - LEFT - RIGHT)
        y = TOP + (rows[-1] - point[1]) / (rows[-1] - rows[0]) * (HEIGHT - TOP - BOTTOM)
        return f"{x:.1f},{y:.1f}"

    lines = "".join(_grid_line(place((first, row)), _label(row, is_share)) for row in rows)
    bottom = HEIGHT - BOTTOM + 17
    axis = (
        f'<text x="{LEFT}" y="{bottom}">{first:,}</text>'
        f'<text x="{WIDTH - RIGHT}" y="{bottom}" text-anchor="end">update {points[-1][0]:,}</text>'
    )
    dot_x, dot_y = place(smooth[-1]).split(",")
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{esc(summary)}">{lines}{axis}'
        f'<polyline class="raw" points="{" ".join(map(place, _fewer(points)))}"/>'
        f'<polyline class="smooth" points="{" ".join(map(place, _fewer(smooth)))}"/>'
        f'<circle cx="{dot_x}" cy="{dot_y}" r="3"/></svg>'
    )


def _grid_line(place: str, label: str) -> str:
    y = float(place.split(",")[1])
    return (
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{LEFT - 7}" y="{y + 3.5:.1f}" text-anchor="end">{label}</text>'
    )


def _fewer(points: Sequence[Point]) -> list[Point]:
    """At most so many of them, the last one always."""
    every = max(1, math.ceil(len(points) / MOST_POINTS))
    return [*points[:-1:every], points[-1]]


def _label(value: float, is_share: bool, digits: int = 4) -> str:
    """A value as an axis or a caption has it."""
    if is_share:
        return f"{value:.0%}"
    shown = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
    return shown.replace("-", "−")

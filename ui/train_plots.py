"""The numbers of a round's training → plots as SVG: each update, and the same smoothed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sweet.store import RoundMetric
from ui.format import notice
from ui.plots import SHARES, Axes, framed, label, svg, ticks

Point = tuple[int, float]

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


def _points(metrics: Iterable[RoundMetric], plot: Plot) -> list[Point]:
    found = [(m.step, m.value) for m in metrics if (m.stage, m.name) == (plot.stage, plot.name)]
    return sorted(found)


def _figure(plot: Plot, points: Sequence[Point]) -> str:
    smooth = smoothed(points)
    last, now = smooth[-1]
    shown = label(now, plot.is_share, 3)
    summary = (
        f"{plot.title}: {label(points[0][1], plot.is_share, 3)} at update {points[0][0]}, "
        f"smoothed {shown} at update {last}"
    )
    drawing = svg(summary, _drawn(points, smooth, plot.is_share))
    return framed(plot.title, shown, plot.meaning, drawing)


def _drawn(points: Sequence[Point], smooth: Sequence[Point], is_share: bool) -> str:
    values = [value for _, value in points]
    rows = SHARES if is_share else ticks(min(values), max(values))
    first, last = points[0][0], points[-1][0]
    axes = Axes(first, max(last, first + 1), rows, is_share)
    below = axes.below(axes.first, f"{first:,}", "start")
    below += axes.below(axes.last, f"update {last:,}", "end")
    raw, even = (" ".join(axes.place(*p) for p in _fewer(line)) for line in (points, smooth))
    x, y = axes.place(*smooth[-1]).split(",")
    return (
        f'{axes.grid}{below}<polyline class="raw" points="{raw}"/>'
        f'<polyline class="smooth" points="{even}"/><circle cx="{x}" cy="{y}" r="3"/>'
    )


def _fewer(points: Sequence[Point]) -> list[Point]:
    """At most so many of them, the last one always."""
    every = max(1, math.ceil(len(points) / MOST_POINTS))
    return [*points[:-1:every], points[-1]]

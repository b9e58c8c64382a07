"""The numbers of a round's training → plots as SVG: each update, and the same smoothed.

A phase is a row of plots; a dashed line is where an epoch begins. What an update gave is told where
the pointer is (assets/plots.js).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from sweet.store import RoundMetric
from ui.format import notice
from ui.plots import BOTTOM, HEIGHT, SHARES, TOP, Axes, framed, label, svg, ticks

Point = tuple[int, float]

MOST_POINTS = 240
"""Of a line; more would not be seen."""
SMOOTHING = 0.9
"""Weight of what came before in the smoothed line: about the last ten updates count."""


MOST_EPOCHS = 24
"""More lines would hide the plot."""
NAMED_EPOCHS = 6
"""More names would not fit."""


class Plot(NamedTuple):
    """What is plotted, and what it means, as docs/metrics.md has it."""

    stage: str
    name: str
    title: str
    meaning: str
    is_share: bool = False


PHASES = {"critic": "Train the critic", "policy": "Train the policy"}
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
    phases = "".join(_phase(stage, metrics) for stage in PHASES)
    if not phases:
        return notice("No plot yet", "The lines appear with the first update of a training stage.")
    legend = (
        '<p class="meta legend"><span class="key raw"></span>each update '
        '<span class="key smooth"></span>smoothed over about 10 updates '
        '<span class="key epoch"></span>an epoch begins</p>'
    )
    return f"{legend}{phases}"


def _phase(stage: str, metrics: Sequence[RoundMetric]) -> str:
    """The plots of a stage, under its name; empty where it has no number yet."""
    starts = _epoch_starts(metrics, stage)
    figures = "".join(
        _figure(plot, points, starts)
        for plot in PLOTS
        if plot.stage == stage and (points := _points(metrics, plot))
    )
    return (
        f'<h3 class="phase">{PHASES[stage]}</h3><div class="plots">{figures}</div>'
        if figures
        else ""
    )


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


def _epoch_starts(metrics: Iterable[RoundMetric], stage: str) -> list[Point]:
    """The first update of each epoch but the first, with the epoch's number."""
    found = sorted((m.step, m.value) for m in metrics if (m.stage, m.name) == (stage, "epoch"))
    return [(step, epoch) for (_, before), (step, epoch) in pairwise(found) if epoch > before]


def _figure(plot: Plot, points: Sequence[Point], starts: Sequence[Point]) -> str:
    smooth = smoothed(points)
    last, now = smooth[-1]
    shown = label(now, plot.is_share, 3)
    summary = (
        f"{plot.title}: {label(points[0][1], plot.is_share, 3)} at update {points[0][0]}, "
        f"smoothed {shown} at update {last}"
    )
    drawing = svg(summary, _drawn(points, smooth, starts, plot.is_share))
    return framed(plot.title, shown, plot.meaning, drawing)


def _drawn(
    points: Sequence[Point], smooth: Sequence[Point], starts: Sequence[Point], is_share: bool
) -> str:
    values = [value for _, value in points]
    rows = SHARES if is_share else ticks(min(values), max(values))
    first, last = points[0][0], points[-1][0]
    axes = Axes(first, max(last, first + 1), rows, is_share)
    below = axes.below(axes.first, f"{first:,}", "start")
    below += axes.below(axes.last, f"update {last:,}", "end")
    shown = _fewer(points), _fewer(smooth)
    raw, even = (" ".join(axes.place(*p) for p in line) for line in shown)
    x, y = axes.place(*smooth[-1]).split(",")
    return (
        f'{axes.grid}{below}{_epochs(axes, starts)}<polyline class="raw" points="{raw}"/>'
        f'<polyline class="smooth" points="{even}"/><circle cx="{x}" cy="{y}" r="3"/>'
        f"{_reader(*shown, is_share)}"
    )


def _epochs(axes: Axes, starts: Sequence[Point]) -> str:
    """A line before the first update of each epoch, with the epoch's number where there is room."""
    if len(starts) > MOST_EPOCHS:
        return ""
    lines = ""
    for step, epoch in starts:
        x = axes.x(step - 0.5)
        lines += f'<path class="epoch" d="M{x:.1f},{TOP}V{HEIGHT - BOTTOM}"/>'
        if len(starts) <= NAMED_EPOCHS:
            lines += (
                f'<text class="epoch" x="{x + 3:.1f}" y="{HEIGHT - BOTTOM - 4}">{epoch:g}</text>'
            )
    return lines


def _reader(raw: Sequence[Point], smooth: Sequence[Point], is_share: bool) -> str:
    """What is told under the pointer: for each point its update, its value, the smoothed one."""
    both = zip(raw, smooth, strict=True)
    told = ";".join(f"{p} {_exact(a, is_share)} {_exact(b, is_share)}" for (p, a), (_, b) in both)
    return (
        f'<g class="reader" data-read="{told}" visibility="hidden">'
        f'<line y1="{TOP}" y2="{HEIGHT - BOTTOM}"/><circle r="3"/><text y="{TOP + 8}"></text></g>'
    )


def _exact(value: float, is_share: bool) -> str:
    return f"{value:.1%}" if is_share else label(value, is_share)


def _fewer(points: Sequence[Point]) -> list[Point]:
    """At most so many of them, the last one always."""
    every = max(1, math.ceil(len(points) / MOST_POINTS))
    return [*points[:-1:every], points[-1]]

"""What every plot is made of: axes, round numbers, the frame around it, as SVG.

Drawn here and not by a plotting library in the browser: the plots of a page are a few kilobytes,
follow the page's colours, and work without another script.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ui.format import esc

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 54, 10, 10, 26
SHARES = (0.0, 0.5, 1.0)
"""The rows of a plot of shares: all of them have the same scale."""


@dataclass(frozen=True, slots=True)
class Axes:
    """From the first to the last position, and the values at which there is a line across."""

    first: float
    last: float
    rows: Sequence[float]
    is_share: bool = False

    def x(self, position: float) -> float:
        """Where a position is."""
        return LEFT + (position - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Where a value is."""
        share = (self.rows[-1] - value) / (self.rows[-1] - self.rows[0])
        return TOP + share * (HEIGHT - TOP - BOTTOM)

    def place(self, position: float, value: float) -> str:
        """Both, as SVG has a point."""
        return f"{self.x(position):.1f},{self.y(value):.1f}"

    @property
    def grid(self) -> str:
        """The lines across, each with its value."""
        return "".join(self._line(row) for row in self.rows)

    def _line(self, row: float) -> str:
        y = self.y(row)
        return (
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{LEFT - 7}" y="{y + 3.5:.1f}" text-anchor="end">'
            f"{label(row, self.is_share)}</text>"
        )

    def below(self, position: float, text: str, anchor: str = "middle") -> str:
        """A word under the axis."""
        return (
            f'<text x="{self.x(position):.1f}" y="{HEIGHT - BOTTOM + 17}" '
            f'text-anchor="{anchor}">{esc(text)}</text>'
        )


def svg(summary: str, inside: str) -> str:
    """The drawing; `summary` says the same to who can't see it."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{esc(summary)}">{inside}</svg>'
    )


def framed(title: str, now: str, meaning: str, drawing: str) -> str:
    """A plot with its title, its figure now, and what it means."""
    return (
        f'<figure class="plot"><figcaption><strong>{esc(title)}</strong>'
        f'<span class="now">{esc(now)}</span><span class="meta">{esc(meaning)}</span>'
        f"</figcaption>{drawing}</figure>"
    )


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


def label(value: float, is_share: bool, digits: int = 4) -> str:
    """A value as an axis or a caption has it."""
    if is_share:
        return f"{value:.0%}"
    shown = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
    return shown.replace("-", "−")

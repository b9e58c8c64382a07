"""A plot of an outcome by number of episodes, as SVG."""

from __future__ import annotations

from typing import Any

COLOURS = {"rft": "#8a6d1d", "mtdpo": "#2f6db3", "sweet-nohidden": "#7a5aa6", "sweet": "#b3402f"}
DASHES = {"rft": "2 3", "mtdpo": "6 3", "sweet-nohidden": "9 3 2 3", "sweet": ""}
WIDTH, HEIGHT, LEFT, TOP = 640, 340, 50, 20


def svg(points: list[dict[str, Any]], base: float | None, outcome: str) -> str:
    """The outcome by number of episodes, a line a method, told apart by dashes and by colour."""
    known = [p for p in points if p["outcome"] is not None]
    rates = [p["outcome"] for p in known] + ([base] if base is not None else [])
    top = max([0.1, *rates]) * 1.1
    most = max((p["episodes"] for p in known), default=1)

    def x(episodes: float) -> float:
        return LEFT + episodes / most * (WIDTH - LEFT - 200)

    def y(rate: float) -> float:
        return TOP + (1 - rate / top) * (HEIGHT - TOP - 50)

    right, bottom = x(most), y(0)
    parts = [f'<path d="M{LEFT} {TOP}V{bottom:.0f}H{right:.0f}" fill="none" stroke="#888"/>']
    for share in range(0, int(100 * top) + 1, 10):
        parts.append(_text(LEFT - 8, y(share / 100) + 4, f"{share} %", "end"))
    for episodes in sorted({p["episodes"] for p in known}):
        parts.append(_text(x(episodes), bottom + 18, str(episodes), "middle"))
    parts.append(_text((LEFT + right) / 2, bottom + 38, "episodes learned from", "middle"))
    if base is not None:
        line = f"M{LEFT} {y(base):.1f}H{right:.1f}"
        parts.append(f'<path d="{line}" stroke="#888" stroke-dasharray="4 4"/>')
        parts.append(_text(right + 10, y(base) + 4, "base", "start"))
    for number, method in enumerate(dict.fromkeys(p["method"] for p in known)):
        at = [(x(p["episodes"]), y(p["outcome"])) for p in known if p["method"] == method]
        line = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in at)
        look = f'stroke="{COLOURS[method]}" stroke-width="2" stroke-dasharray="{DASHES[method]}"'
        parts.append(f'<path d="{line}" fill="none" {look}/>')
        parts += [
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{COLOURS[method]}"/>' for a, b in at
        ]
        level = TOP + 12 + 20 * number
        parts.append(f'<path d="M{right + 10:.0f} {level - 4}h24" {look}/>')
        parts.append(_text(right + 40, level, method, "start"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12" role="img" '
        f'aria-label="{outcome.capitalize()} by number of episodes">'
        '<rect width="100%" height="100%" fill="#fff"/>' + "".join(parts) + "</svg>\n"
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="#333">{text}</text>'

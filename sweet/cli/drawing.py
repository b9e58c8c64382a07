"""`render`: the picture of a web page that evaluators see."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluators.render import Renderer
from sweet.cli.output import Result, add_command, at_least
from sweet.errors import ConfigError, boundary


def add_commands(commands: Any) -> None:
    """Add `render`."""
    render = add_command(commands, "render", run, "Draw a web page as evaluators see it.")
    render.add_argument("page", metavar="PAGE.html", type=Path)
    render.add_argument("picture", metavar="OUT.png", type=Path)
    render.add_argument("--width", type=at_least(1), default=1280, help="in pixels")


def run(args: argparse.Namespace) -> Result:
    """The picture is written; the page's size and its visible elements as JSON."""
    with boundary(ConfigError, f"{args.page} can't be read"):
        html = args.page.read_text(encoding="utf-8", errors="replace")
    with Renderer(at_once=1) as renderer:
        drawn = renderer.render(html, width=args.width)
        walls = str(renderer.walls)
    with boundary(ConfigError, f"{args.picture} can't be written"):
        args.picture.write_bytes(drawn.png)
    value = {
        "picture": str(args.picture),
        "width": drawn.width,
        "height": drawn.height,
        "is_cut": drawn.is_cut,
        "walls": walls,
        "boxes": [asdict(box) for box in drawn.boxes],
    }
    cut = ", cut there" if drawn.is_cut else ""
    size = f"{drawn.width} × {drawn.height} pixels{cut}"
    return Result(value, f"{args.picture}: {size}; {len(drawn.boxes)} visible elements")

"""`python -m benchmarks [NAME] [--json]`: every benchmark, or one, with both sides in one run.

A benchmark is a module of this folder with `def run() -> list[Comparison]`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys

import benchmarks
from benchmarks.comparison import Comparison
from sweet.errors import SweetError

NO_BENCHMARKS = ("__main__", "comparison", "plot", "results")
BY_NAME_ALONE = ("sweet", "sweet_pages")  # take hours


def names() -> list[str]:
    """The benchmarks there are."""
    found = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    return sorted(name for name in found if name not in NO_BENCHMARKS)


def _quick() -> list[str]:
    return [name for name in names() if name not in BY_NAME_ALONE]


def run(name: str) -> list[Comparison]:
    """The comparisons of one benchmark."""
    return importlib.import_module(f"benchmarks.{name}").run()


def main(arguments: list[str] | None = None) -> int:
    """Run and print; the exit status. A list of objects with --json, else a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "name",
        nargs="?",
        choices=names(),
        help=f"one benchmark; without it all but {', '.join(BY_NAME_ALONE)}",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON list")
    chosen = parser.parse_args(arguments)
    found = []
    try:
        for name in [chosen.name] if chosen.name else _quick():
            found += run(name)
    except SweetError as e:
        print(f"The benchmark could not be run: {e}", file=sys.stderr)
        return 1
    print(json.dumps([c.row() for c in found], indent=2) if chosen.json else table(found))
    return 0


def table(comparisons: list[Comparison]) -> str:
    """The comparisons for people."""
    width = max((len(c.name) for c in comparisons), default=0)
    lines = [f"{'':{width}}  {'ours':>10}  {'theirs':>10}  {'ratio':>8}"]
    for c in comparisons:
        lines.append(f"{c.name:{width}}  {c.ours:>10.1f}  {c.theirs:>10.1f}  {c.ratio:>7.2f}x")
        lines.append(f"{'':{width}}  {c.conditions}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

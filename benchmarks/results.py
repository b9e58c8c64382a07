"""A study's findings → `docs/results/SET.json`, `docs/results.md` and its plot."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy

from benchmarks.plot import svg
from sweet.comparing.paper import PAPER
from trainer.settings import Algorithm

RESAMPLES = 2000
STAGES = Algorithm.SWEET.stages[:-1]  # the last one only makes an entry
ORDER = ("base", "rft", "mtdpo", "sweet-nohidden", "sweet", "sweet-2")
NAMES = {
    "base": "base",
    "rft": "rejection fine-tuning",
    "mtdpo": "multi-turn DPO",
    "sweet-nohidden": "SWEET-RL, critic without hidden information",
    "sweet": "SWEET-RL",
    "sweet-2": "SWEET-RL, two rounds",
}
OF_PAPER = "Llama-3.1-8B"  # the model whose rows stand beneath ours


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is compared on a task set, and what is told beside it; both are shares of 1."""

    name: str
    beside: str


OUTCOMES = {
    "mini-backend": Outcome("success", "tests passed"),
    "mini-frontend": Outcome("reward", "as wanted"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One method from one seed's episodes: its `Outcome` on each test task; None: not scored."""

    method: str
    seed: int
    tasks: int  # learned from
    episodes: int  # learned from
    evaluator: str  # of the test tasks
    outcomes: list[float | None]
    beside: list[float | None]
    turns: list[int]
    stage_seconds: dict[str, float]


def summary(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """A row a method: figures with 95 % intervals, and its gain on every other method."""
    by_method: dict[str, list[Finding]] = defaultdict(list)
    for found in findings:
        by_method[found.method].append(found)
    return [_row(method, by_method) for method in ORDER if method in by_method]


def _row(method: str, by_method: dict[str, list[Finding]]) -> dict[str, Any]:
    found = by_method[method]
    outcomes = [f.outcomes for f in found]
    # The quickest, for a round that was stopped or shared its core took longer than its work.
    timed = [f.stage_seconds for f in found if f.stage_seconds]
    stages = min(timed, key=lambda seconds: sum(seconds.values()), default={})
    return {
        "method": method,
        "n": sum(value is not None for one in outcomes for value in one),
        "unscored": sum(value is None for one in outcomes for value in one),
        "seeds": len(found),
        "outcome": _mean(outcomes),
        "outcome_ci95": interval(outcomes),
        "outcome_by_seed": [_mean([one]) for one in outcomes],
        "beside": _mean([f.beside for f in found]),
        "beside_ci95": interval([f.beside for f in found]),
        "mean_turns": fmean(turns for f in found for turns in f.turns),
        "minutes": sum(stages.values()) / 60 if stages else None,
        "stage_seconds": {name: round(value, 1) for name, value in stages.items()},
        "gain_on": {
            other: {"gain": _mean(both), "ci95": interval(both)}
            for other in by_method
            if other != method and (both := _differences(found, by_method[other]))
        },
    }


def _differences(ours: list[Finding], theirs: list[Finding]) -> list[list[float | None]]:
    """The outcome minus the other method's, seed by seed and task by task."""
    others = {f.seed: f.outcomes for f in theirs}
    return [
        [
            None if a is None or b is None else a - b
            for a, b in zip(f.outcomes, others[f.seed], strict=True)
        ]
        for f in ours
        if f.seed in others
    ]


def _mean(outcomes: Iterable[Sequence[float | None]]) -> float | None:
    known = [value for one in outcomes for value in one if value is not None]
    return fmean(known) if known else None


def interval(outcomes: Sequence[Sequence[float | None]]) -> list[float] | None:
    """The 95 % bootstrap interval of the mean, over seeds (rows) and tasks (columns) both."""
    if _mean(outcomes) is None:
        return None
    values = numpy.array(outcomes, dtype=float)  # None becomes NaN
    rng, (seeds, tasks) = numpy.random.default_rng(0), values.shape
    means = []
    for _ in range(RESAMPLES):
        drawn = values[rng.integers(0, seeds, seeds)][:, rng.integers(0, tasks, tasks)]
        known = drawn[~numpy.isnan(drawn)]
        means += [known.mean()] if known.size else []
    return [float(bound) for bound in numpy.percentile(means, [2.5, 97.5])]


def write_results(
    docs: Path,
    set_name: str,
    table: list[dict[str, Any]],
    by_episodes: Sequence[Finding],
    conditions: dict[str, Any],
) -> None:
    """The results as JSON, a page of all sets' results, and a plot beside it."""
    points = [
        {
            "method": f.method,
            "episodes": f.episodes,
            "outcome": _mean([f.outcomes]),
            "n": sum(value is not None for value in f.outcomes),
        }
        for f in by_episodes
        if f.method not in ("base", "sweet-2")
    ]
    points.sort(key=lambda p: (ORDER.index(p["method"]), p["episodes"]))
    found = {"conditions": conditions, "methods": table, "by_episodes": points}
    results = docs / "results"
    results.mkdir(parents=True, exist_ok=True)
    (results / f"{set_name}.json").write_text(json.dumps(found, indent=1) + "\n")
    if _is_curve(points):
        base = next((row["outcome"] for row in table if row["method"] == "base"), None)
        plot = docs / "images" / f"results-{set_name}.svg"
        plot.parent.mkdir(parents=True, exist_ok=True)
        plot.write_text(svg(points, base, OUTCOMES[set_name].name))
    known = {name: results / f"{name}.json" for name in OUTCOMES}
    there = {n: json.loads(path.read_text()) for n, path in known.items() if path.exists()}
    (docs / "results.md").write_text(page(there))


_HOW = (
    "Made by `python -m benchmarks sweet` (functions) and `python -m benchmarks sweet_pages` (web "
    "pages). Every method learned from the same episodes, had the "
    "same number of settings tried on validation tasks, and was then measured once on test tasks "
    "that nothing else has seen. The critic without hidden information is SWEET-RL with that one "
    "thing left out, and takes its settings."
)
_COLUMNS = (
    "In percent. Success: all tests pass; reward of a web page: its likeness to the wanted one. "
    "Intervals: 95 %, bootstrap over tasks and seeds. Minutes: of the seed's round that went "
    "quickest, on one core; where a method took over episodes or candidates that another had "
    "drawn, their time is not in it. A second round learns from as many new episodes again, which "
    "the first one's policy played on new tasks; its minutes are its own."
)
_PAPERS = (
    "Not measured here: Llama-3.1-8B on ColBench's test tasks, 15,000 episodes of backend "
    "programming and 6,000 of frontend design, from arXiv:2503.15478. Cosine is CLIP's."
)


def page(by_set: dict[str, dict[str, Any]]) -> str:
    """The results of some task sets for people."""
    sections = "\n".join(_section(name, found) for name, found in by_set.items())
    return f"""# Results

{_HOW}

{_COLUMNS}

{sections}
## The paper's figures

{_PAPERS}

{_paper()}
"""


def _section(set_name: str, found: dict[str, Any]) -> str:
    outcome = OUTCOMES[set_name]
    conditions = "\n".join(_condition(name, value) for name, value in found["conditions"].items())
    return f"""## {set_name}/test

{_table(found["methods"], outcome)}

The numbers are in [results/{set_name}.json](results/{set_name}.json).

### Minutes a stage

{_stages(found["methods"])}

### What one method has on another

{_gains(found["methods"], outcome.name)}

{_by_episodes(set_name, found["by_episodes"])}### Conditions

{conditions}
"""


def _is_curve(points: Sequence[Mapping[str, Any]]) -> bool:
    return len({point["episodes"] for point in points}) > 1


def _by_episodes(set_name: str, points: list[dict[str, Any]]) -> str:
    """What fewer episodes give; nothing where that was not tried."""
    if not _is_curve(points):
        return ""
    outcome = OUTCOMES[set_name].name
    return f"""### By number of episodes

![{outcome.capitalize()} by number of episodes](images/results-{set_name}.svg)

{_points(points, outcome)}

The first seed alone; the dashed line is the base model.

"""


def _condition(name: str, value: Any) -> str:
    """A condition as a list item; settings by method as items below it."""
    told = f"- {name.replace('_', ' ')}:"
    if not isinstance(value, dict):
        return f"{told} {value}"
    methods = []
    for method, settings in value.items():
        some = settings if isinstance(settings, list) else [settings]
        all_of_them = " / ".join(", ".join(f"{k} {v}" for k, v in one.items()) for one in some)
        methods.append(f"    - {NAMES[method]}: {all_of_them}")
    return "\n".join([told, *methods])


def _table(rows: list[dict[str, Any]], outcome: Outcome) -> str:
    lines = [
        f"| method | {outcome.name} | by seed | {outcome.beside} | turns | minutes | n |",
        "|" + "---|" * 7,
    ]
    for row in rows:
        seeds = " / ".join(_percent(value) for value in row["outcome_by_seed"])
        minutes = "–" if row["minutes"] is None else f"{row['minutes']:.1f}"
        lines.append(
            f"| {NAMES[row['method']]} | {_with(row['outcome'], row['outcome_ci95'])} "
            f"| {seeds} | {_with(row['beside'], row['beside_ci95'])} "
            f"| {row['mean_turns']:.2f} | {minutes} | {row['n']} |"
        )
    return "\n".join(lines)


def _stages(rows: list[dict[str, Any]]) -> str:
    """Minutes of the same rounds as in the table, stage by stage."""
    timed = [row for row in rows if row["stage_seconds"]]
    used = [name for name in STAGES if any(name in row["stage_seconds"] for row in timed)]
    lines = [f"| method | {' | '.join(used)} |", "|---" * (1 + len(used)) + "|"]
    for row in timed:
        seconds = [row["stage_seconds"].get(name) for name in used]
        cells = ["–" if s is None else f"{s / 60:.1f}" for s in seconds]
        lines.append(f"| {NAMES[row['method']]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _gains(rows: list[dict[str, Any]], outcome: str) -> str:
    lines = [f"| method | on | points of {outcome} |", "|---|---|---|"]
    for row in rows:
        for other, gain in row["gain_on"].items():
            if ORDER.index(other) < ORDER.index(row["method"]):
                found = _with(gain["gain"], gain["ci95"], sign="+")
                lines.append(f"| {NAMES[row['method']]} | {NAMES[other]} | {found} |")
    return "\n".join(lines)


def _points(points: list[dict[str, Any]], outcome: str) -> str:
    lines = [f"| method | episodes | {outcome} | n |", "|---|---|---|---|"]
    for p in points:
        found = _percent(p["outcome"])
        lines.append(f"| {NAMES[p['method']]} | {p['episodes']} | {found} | {p['n']} |")
    return "\n".join(lines)


def _paper() -> str:
    lines = ["| method | success | tests passed | cosine |", "|---|---|---|---|"]
    for row in PAPER:
        if row.method.startswith(OF_PAPER):
            lines.append(f"| {row.method} | {row.success} | {row.tests_passed} | {row.cosine} |")
    return "\n".join(lines)


def _percent(value: float | None, sign: str = "") -> str:
    return "n/a" if value is None else f"{100 * value:{sign}.1f}"


def _with(value: float | None, ci95: list[float] | None, sign: str = "") -> str:
    if value is None or ci95 is None:
        return "n/a"
    return f"{_percent(value, sign)} [{_percent(ci95[0], sign)}, {_percent(ci95[1], sign)}]"

"""The study of SWEET-RL and its baselines: its figures by hand, and a tiny one with real rounds."""

import json
import math
from dataclasses import replace

import pytest

from benchmarks import sweet_pages
from benchmarks.results import Finding, interval, summary
from benchmarks.sweet import LIKE, Plan, run
from trainer.settings import RoundSettings


def _finding(method: str, seed: int, outcomes: list[float | None]) -> Finding:
    turns = [2] * len(outcomes)
    return Finding(method, seed, 5, 10, "tests", outcomes, outcomes, turns, {"collect": 30.0})


@pytest.mark.parametrize("plan", [Plan(), sweet_pages.PLAN], ids=lambda plan: plan.set_name)
def test_every_method_is_tuned_over_as_many_settings(plan):
    assert {LIKE.get(method, method) for method in plan.methods} == set(plan.grids)
    assert len({len(grid) for grid in plan.grids.values()}) == 1
    for method, grid in plan.grids.items():
        assert all(setting.keys() == grid[0].keys() for setting in grid)
        assert len({RoundSettings(algorithm=method, **setting) for setting in grid}) == len(grid)


def test_a_gain_is_taken_task_by_task_and_seed_by_seed():
    base = [_finding("base", 1, [0.0, 0.0, 1.0, None]), _finding("base", 2, [0.0, 1.0, 0.0, 0.0])]
    sweet = [_finding("sweet", 1, [1.0, 0.0, 1.0, 1.0]), _finding("sweet", 2, [1.0, 1.0, 0.0, 1.0])]
    rows = {row["method"]: row for row in summary([*sweet, *base])}
    assert list(rows) == ["base", "sweet"]
    assert (rows["base"]["n"], rows["base"]["unscored"], rows["sweet"]["n"]) == (7, 1, 8)
    assert rows["sweet"]["outcome_by_seed"] == [0.75, 0.75]
    assert rows["sweet"]["gain_on"]["base"]["gain"] == pytest.approx(3 / 7)
    low, high = rows["sweet"]["gain_on"]["base"]["ci95"]
    assert 0 <= low < 3 / 7 < high <= 1


def test_what_was_never_scored_has_no_figure():
    (row,) = summary([_finding("base", 1, [None, None])])
    assert row["outcome"] is None and row["outcome_ci95"] is None and row["n"] == 0


def test_an_interval_covers_seeds_as_well_as_tasks():
    alike = interval([[1.0, 0.0] * 200, [1.0, 0.0] * 200])
    apart = interval([[1.0] * 400, [0.0] * 400])
    assert alike and 0.44 < alike[0] < 0.5 < alike[1] < 0.56
    assert apart == [0.0, 1.0]


def test_a_study_trains_every_method_on_the_same_episodes_and_goes_on_where_it_was(tmp_path):
    common = {"candidates": 3, "critic_epochs": 1, "policy_least": 2, "validation_n": 2}
    plan = Plan(
        out=tmp_path / "out",
        docs=tmp_path / "docs",
        methods=("mtdpo", "sweet"),
        seeds=(1,),
        tasks=6,
        per_task=3,
        sizes=(),
        grids={
            "mtdpo": ({"policy_lr": 1e-4}, {"policy_lr": 1e-2}),
            "sweet": ({"policy_lr": 1e-4},),
        },
        validation_n=2,
        test_n=4,
        at_once=1,
        common=tuple(common.items()),
    )
    run(plan)
    found = json.loads((plan.docs / "results" / "mini-backend.json").read_text())
    assert [row["method"] for row in found["methods"]] == ["base", "mtdpo", "sweet", "sweet-2"]
    assert all(row["n"] == 4 and row["seeds"] == 1 for row in found["methods"])
    tried = found["conditions"]["settings_tried"]["mtdpo"]
    assert [one["policy_lr"] for one in tried] == [1e-4, 1e-2]
    assert all("validation_gain" in one for one in tried)
    collected = [
        json.loads(path.read_text())
        for path in sorted((plan.out / "seed-1-6" / "rounds").glob("*/01-collect.json"))
    ]
    assert len({c["data_hash"] for c in collected}) == 2  # the second round has its own
    written = (plan.docs / "results.md").read_text()
    assert "SWEET-RL, two rounds" in written
    assert "| collect | pairs | critic | candidates | rank | policy | evaluate |" in written
    assert "By number of episodes" not in written  # one number alone is no curve
    tuning = plan.out / "tune-mtdpo" / "rounds"
    measured = [json.loads(p.read_text()) for p in sorted(tuning.glob("*/*-evaluate.json"))]
    trained = [json.loads(p.read_text()) for p in sorted(tuning.glob("*/*-policy.json"))]
    assert len(measured) == len(trained) == len(plan.grids["mtdpo"])
    assert trained[0] != trained[1] and measured[0]["seconds"] != measured[1]["seconds"]
    before = {path: path.stat().st_mtime_ns for path in plan.out.rglob("test-*.json")}
    compared = run(plan)
    assert before == {path: path.stat().st_mtime_ns for path in plan.out.rglob("test-*.json")}
    assert all(math.isfinite(row.theirs) for row in compared)
    run(replace(plan, goes_on=False))
    found = json.loads((plan.docs / "results" / "mini-backend.json").read_text())
    assert [row["method"] for row in found["methods"]] == ["base", "mtdpo", "sweet"]

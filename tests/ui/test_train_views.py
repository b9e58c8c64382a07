"""What the Train page draws: settings as fields, plots, rounds, versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest

from evaluators.figures import mean, rate
from sweet.errors import ConfigError
from sweet.registry import Manifest
from sweet.store import Round, RoundMetric, RoundState
from sweet.types import PolicyVersion, TaskKind
from sweet.validation import validation
from trainer.jobs import Preview, StageProgress
from trainer.schedule import ScheduleState
from trainer.settings import RoundSettings, default_of
from ui import plots, train_form, train_history, train_plots, train_round
from ui.session import TrainView

BAD = "<img src=x onerror=window.hit=1>"
FIGURES: dict[str, Any] = {
    "parent": {
        "n": 200, "unscored": 0, "success_rate": 0.31, "success_ci95": [0.25, 0.377],
        "tests_passed": 0.42, "mean_turns": 4.2,
    },
    "child": {
        "n": 199, "unscored": 1, "success_rate": 0.405, "success_ci95": [0.34, 0.474],
        "tests_passed": 0.51, "mean_turns": 4.6,
    },
    "compared": 199,
    "gain": 0.095,
    "gain_ci95": [-0.03, 0.16],
}  # fmt: skip
ROUND = Round(
    id="r0001",
    algorithm="sweet",
    policy_id="embedded",
    settings={"seed": 1, "critic_lr": 0.001},
    state=RoundState.DONE,
    stage="register",
    done=0,
    total=0,
    created_at="2026-01-02T03:04:05Z",
    ended_at="2026-01-02T03:14:05Z",
    error=None,
    version_id="v0001",
    is_promoted=True,
    figures=FIGURES,
    process_id=0,
    host="here",
    keep_stage=None,
    stage_at=None,
    counted_at=None,
    counted_from=None,
)
STAGES = (
    StageProgress("collect", "done", 400, 400, 61.0, result={"chosen": 400, "success_rate": 0.25}),
    StageProgress("critic", "running", 120, 400, 30.0, 70.0),
    StageProgress("policy", "waiting"),
)


def text_of(html: str) -> str:
    """What a person reads of it."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def given(kind: str = "backend", **changes: Any) -> list[Any]:
    """What the fields give at first, but for `changes`."""
    front = {
        "tasks": kind, "algorithm": "sweet", "policy": "", "fresh": 400, "source": "",
        "task_set": "",
    }  # fmt: skip
    every = {f.name: default_of(f, kind) for f in fields(RoundSettings)}
    expert = {name: every[name] for name in train_form.EXPERT}
    return list({**front, **expert, **changes}.values())


def test_the_fields_say_what_the_defaults_say() -> None:
    assert train_form.settings_of(given()) == train_form.default_settings()
    assert train_form.default_settings().fresh_tasks == 100
    pages = train_form.settings_of(given("frontend", fresh=0))
    assert pages == RoundSettings(tasks="frontend") and pages.changed() == {"tasks": "frontend"}


def test_every_setting_can_be_reached() -> None:
    inside = set(train_form.EXPERT)
    assert {f.name for f in fields(RoundSettings)} - inside == {
        "tasks", "algorithm", "policy", "fresh_tasks", "use_log", "from_collaborator", "from_tasks",
    }  # fmt: skip


def test_fields_become_settings_of_their_own_type() -> None:
    values = given(fresh=10, source="person", task_set="a/b", seed=7.0, critic_lr=1, since=" x ")
    settings = train_form.settings_of(values)
    assert (settings.fresh_tasks, settings.from_collaborator) == (3, "person")  # 4 a task
    assert (settings.from_tasks, settings.use_log, settings.since) == ("a/b", True, "x")
    assert isinstance(settings.seed, int) and isinstance(settings.critic_lr, float)
    assert train_form.settings_of(given("frontend")).task_kind is TaskKind.FRONTEND
    only_fresh = train_form.settings_of(given(source=train_form.NO_LOG))
    assert (only_fresh.use_log, only_fresh.from_collaborator) == (False, "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fresh": None}, "Fresh episodes: None"),
        ({"fresh": -1}, "Fresh episodes: -1"),
        ({"fresh": 2.5}, "Fresh episodes: 2.5"),
        ({"candidates": None}, "--candidates is empty.*default is 16"),
        ({"candidates": 1}, "--candidates is 1"),
        ({"algorithm": BAD}, "--algorithm is"),
        ({"fresh": 0, "source": train_form.NO_LOG}, "no episode to learn from"),
    ],
)
def test_a_field_that_is_wrong_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        train_form.settings_of(given(**changes))


def test_a_smoothed_line_starts_at_its_first_value_and_follows_slowly() -> None:
    flat = train_plots.smoothed([(1, 2.0), (2, 2.0), (3, 2.0)])
    assert [value for _, value in flat] == pytest.approx([2.0, 2.0, 2.0])
    jump = train_plots.smoothed([(1, 0.0), (2, 0.0), (3, 1.0)])
    assert 0 < jump[-1][1] < 0.5


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.0, 1.0, [0, 0.5, 1]), (0.69, 0.69, None), (-3.0, 12.0, None), (0, 1e-9, None)],
)
def test_ticks_are_round_and_cover_both_ends(low: float, high: float, expected: Any) -> None:
    found = plots.ticks(low, high)
    assert found[0] <= low and found[-1] >= high and 2 <= len(found) <= 8
    assert expected is None or found == expected


def metrics(n: int, **values: float) -> list[RoundMetric]:
    return [
        RoundMetric(i, "critic", i, name, value * i)
        for i in range(1, n + 1)
        for name, value in values.items()
    ]


def test_plots_show_each_update_and_the_smoothed_line_of_what_there_is() -> None:
    assert "No plot yet" in train_plots.plots([])
    html = train_plots.plots(metrics(2000, loss=0.5, accuracy=0.0005, unknown=1.0))
    assert html.count("<figure") == 2
    assert html.count('<polyline class="raw"') == html.count('<polyline class="smooth"') == 2
    assert "Critic: pair accuracy" in html and "smoothed" in html
    assert len(html) < 60_000  # a tick must stay light
    one = train_plots.plots(metrics(1, loss=0.693))
    assert "nan" not in one and "0.693" in one


def test_a_plot_holds_what_each_shown_update_gave() -> None:
    html = train_plots.plots(metrics(3, loss=0.5, accuracy=0.1))
    loss, accuracy = re.findall(r'data-read="([^"]*)"', html)
    assert loss.split(";")[0] == "1 0.5 0.5" and loss.split(";")[2].startswith("3 1.5 1.")
    assert accuracy.split(";")[1].startswith("2 20.0% ")
    many = train_plots.plots(metrics(2000, loss=0.5))
    (told,) = re.findall(r'data-read="([^"]*)"', many)
    (drawn,) = re.findall(r'class="raw" points="([^"]*)"', many)
    assert len(told.split(";")) == len(drawn.split(" ")) <= train_plots.MOST_POINTS + 1


def test_plots_stand_under_their_phase_and_show_where_epochs_begin() -> None:
    def of(stage: str, updates: int, an_epoch: int) -> list[RoundMetric]:
        return [
            RoundMetric(i, stage, i, name, value)
            for i in range(1, updates + 1)
            for name, value in (("loss", 0.5 / i), ("epoch", (i - 1) // an_epoch + 1))
        ]

    html = train_plots.plots([*of("critic", 12, 4), *of("policy", 5, 5)])
    critic, policy = html.split("<h3")[1:]
    assert "Train the critic" in critic and "Train the policy" in policy
    assert critic.count('<path class="epoch"') == 2 and policy.count('<path class="epoch"') == 0
    assert re.findall(r'<text class="epoch"[^>]*>(\d+)<', critic) == ["2", "3"]
    crowded = train_plots.plots(of("critic", 100, 1))
    assert "<path" not in crowded
    unnamed = train_plots.plots(of("critic", 20, 1))
    assert '<path class="epoch"' in unnamed and '<text class="epoch"' not in unnamed


def test_what_it_will_learn_from_is_counted_by_who_preferred_it() -> None:
    found = Preview(
        kind=TaskKind.BACKEND, episodes=40, tasks=10, pairs=12, turn_pairs=4, outcome=rate(9, 36),
        by_source={"mini-backend/train": 40}, by_collaborator={"scripted": 40}, by_policy={"a": 40},
        pairs_by_source={"outcome": 7, "vote": 5}, turn_pairs_by_source={"human": 3, "imported": 1},
        left_out={"no reward": 2}, people_left_out={"no hidden information": 6}, fresh=0,
    )  # fmt: skip
    shown = text_of(train_round.preview(found).replace("&nbsp;", " "))
    assert "Pairs of episodes 12" in shown and "Pairs of turns 4" in shown
    assert "Success 25.0% of 36" in shown
    assert "Pairs of episodes by: rewards 7 , votes 5" in shown
    assert "Pairs of turns by: grades, likes, edits 3 , imported files 1" in shown
    assert "Preferences left out: no hidden information 6" in shown
    pages = replace(found, kind=TaskKind.FRONTEND, outcome=mean([0.25, 0.75]))
    assert "Reward 0.500 of 2" in text_of(train_round.preview(pages))


def test_a_stage_that_ended_early_says_what_it_reached_of_what_was_planned() -> None:
    stages = [
        StageProgress("rank", "done", seconds=1.0, ended_early=True,
                      result={"ranked": 12, "planned": 64, "pairs": 90, "too_long": 0}),
        StageProgress("evaluate", "done", seconds=1.0, ended_early=True,
                      result={"compared": 37, "planned": 200}),
    ]  # fmt: skip
    shown = text_of(train_round.round_panel(ROUND, stages, ""))
    assert "ranked 12 of 64" in shown and "compared 37 of 200" in shown
    assert shown.count("ended early") == 2
    at = replace(ROUND, state=RoundState.RUNNING, figures=None, stage="evaluate a")
    running = [StageProgress("evaluate", "running", 3, 9, 1.0, 1.0, "a")]
    asked = replace(at, keep_stage="evaluate a")
    assert "ends with what it has" in train_round.round_panel(asked, running, "")
    assert "ends with what it has" not in train_round.round_panel(at, running, "")


def test_phases_have_counts_times_and_results() -> None:
    running = replace(ROUND, state=RoundState.RUNNING, figures=None)
    shown = text_of(train_round.round_panel(running, STAGES, ""))
    assert "120/400" in shown and "30.0 s &lt; 1 min 10 s" in shown
    assert "400/400" in shown and "success rate 25%" in shown
    assert "at work 1 min 31 s" in shown
    asked = replace(running, stage="critic", keep_stage="critic")
    assert "ends with what it has" in train_round.round_panel(asked, STAGES, "")
    broken = [STAGES[0], StageProgress("critic", "stopped", 120, 400), STAGES[2]]
    stopped = train_round.round_panel(replace(running, state=RoundState.LOST), broken, "")
    assert "progressbar" not in stopped and "Resume goes on" in stopped
    failed = replace(running, state=RoundState.FAILED, error=f"No pair {BAD}")
    html = train_round.round_panel(failed, STAGES, "")
    assert BAD not in html and "No pair" in html and "as they were" in html


def test_a_figure_never_stands_without_its_n() -> None:
    shown = text_of(train_round.round_panel(ROUND, STAGES, ""))
    assert "31.0% n = 200 [25.0%, 37.7%]" in shown and "40.5% n = 199 [34.0%, 47.4%]" in shown
    assert "+9.5 pt n = 199 [−3.0 pt, +16.0 pt]" in shown and "✓ promoted" in shown
    nothing: Mapping[str, Any] = {"n": 0, "success_rate": None, "success_ci95": None}
    unknown = {"child": nothing, "gain": None, "compared": 0}
    assert train_history.reached(validation({}, unknown)) == ("n/a", "n/a", "n/a")


def test_a_round_on_web_pages_is_told_by_its_reward_and_by_which_evaluator() -> None:
    side = {"n": 100, "evaluator": "visual", "unscored": 0, "success_rate": 0.0,
            "success_ci95": [0.0, 0.04], "tests_passed": None, "mean_turns": 3.6}  # fmt: skip
    figures = {
        "parent": {**side, "reward": 0.455, "reward_ci95": [0.41, 0.5]},
        "child": {**side, "reward": 0.71, "reward_ci95": [0.65, 0.76], "success_rate": 0.25},
        "compared": 100, "gain": 0.255, "gain_ci95": [0.2, 0.3],
    }  # fmt: skip
    pages = replace(ROUND, id="r0002", settings={"tasks": "frontend"}, figures=figures)
    panel = text_of(train_round.round_panel(pages, STAGES, ""))
    assert "SWEET-RL on web pages from embedded" in panel
    assert "Reward (visual) All as wanted" in panel and "Tests passed" not in panel
    assert "0.710 n = 100 [0.650, 0.760] 25% 3.6 turns" in panel
    assert "Gain: +0.255 n = 100 [+0.200, +0.300]" in panel
    listed = text_of(train_history.history([pages, ROUND], None, []))
    assert "0.455 n = 100 [0.410, 0.500]" in listed and "31.0% n = 200" in listed
    both = text_of(train_history.comparison([ROUND, pages]))
    assert "child: success or reward 40.5% n = 199 [34.0%, 47.4%] 0.710" in both
    assert "child: tests passed 51% n = 199 n/a" in both
    assert "child: all as wanted n/a 25% n = 100" in both
    version = PolicyVersion("v2", "embedded")
    made = Manifest(version, "r0002", settings=pages.settings, figures=figures)
    assert "0.710" in train_history.versions([(version, made)], {}, {})


def test_two_rounds_are_compared_by_what_differs() -> None:
    other = replace(ROUND, id="r0002", settings={"seed": 2, "critic_lr": 0.001}, figures=None)
    html = train_history.comparison([ROUND, other])
    assert "seed" in html and "critic_lr" not in html
    assert "n/a" in html and "n = 199" in html
    assert "Press Compare at two rounds" in train_history.comparison([])
    same = train_history.comparison([ROUND, replace(ROUND, id="r0003")])
    assert "the same" in same


def test_a_third_round_takes_the_place_of_the_first_to_compare() -> None:
    view = TrainView().comparing("a").comparing("b")
    assert view.compared == ("a", "b")
    assert view.comparing("c").compared == ("b", "c")
    assert view.comparing("a").compared == ("b",)


def test_nothing_of_a_round_becomes_markup() -> None:
    bad = replace(
        ROUND, id=BAD, algorithm=BAD, policy_id=BAD, version_id=BAD, created_at=BAD,
        settings={BAD: BAD},
    )  # fmt: skip
    version = PolicyVersion(BAD, BAD, BAD, BAD, BAD, BAD)
    stage = StageProgress(BAD, BAD, 1, 2, 1.0, 1.0, BAD, result={"chosen": BAD})
    counted = {BAD: 1}
    found = Preview(
        TaskKind.BACKEND, 1, 1, 1, 1, rate(1, 1), counted, counted, counted, counted, counted,
        counted, counted, 1, BAD,
    )  # fmt: skip
    state = ScheduleState(1, 0, 0, BAD, BAD, bad, BAD, BAD)
    html = "".join(
        [
            train_history.history([bad], BAD, [BAD]),
            train_history.comparison([bad, replace(bad, settings={})]),
            train_history.versions([(version, Manifest(version, BAD))], {}, {BAD: BAD}),
            train_history.served(dict.fromkeys(TaskKind, BAD), None, True),
            train_round.round_panel(bad, [stage], BAD),
            train_round.round_panel(replace(bad, state=RoundState.LOST, error=BAD), [stage], BAD),
            train_round.preview(found),
            train_round.no_preview(BAD),
            train_round.log(BAD),
            train_round.command(BAD),
            train_round.schedule(state),
        ]
    )
    assert "<img" not in html and "&lt;img" in html


def test_the_schedule_says_when_it_runs_next_and_ran_last() -> None:
    off = train_round.schedule(ScheduleState(0, 0, 3, None, None, None, "", ""))
    assert text_of(off).startswith("off") and "Last never" in text_of(off)
    on = ScheduleState(100, 0, 40, None, "2026-01-02T03:04:05Z", ROUND, "", "60 more episodes")
    shown = text_of(train_round.schedule(on))
    assert shown.startswith("on") and "60 more episodes" in shown
    assert "2026-01-02 03:04" in shown and "r0001 ✓ done" in shown


def test_who_is_served_is_said_once_or_for_each_kind_and_the_other_can_be_promoted() -> None:
    both = dict.fromkeys(TaskKind, "embedded")
    assert "<strong>embedded</strong> for functions and web pages" in train_history.served(
        both, None, False
    )
    apart = {TaskKind.BACKEND: "v0001", TaskKind.FRONTEND: "embedded"}
    said = train_history.served(apart, None, True)
    assert "<strong>v0001</strong> for functions, <strong>embedded</strong> for web pages" in said
    base = PolicyVersion("embedded", "embedded")
    whole = train_history.versions([(base, None)], both, {})
    assert "served for functions and web pages" in whole and "Promote" not in whole
    half = train_history.versions([(base, None)], apart, {})
    assert "served for web pages" in half and "Promote embedded" in half

"""What the Leaderboard page draws, and what its handlers do."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest

from evaluators.figures import NONE, Figure, rate
from evaluators.preference import matrix, side_bias
from sweet.comparing.leaderboard import Leaderboard, Opinions, RoundPoint, Row
from sweet.comparing.standings import Standings
from sweet.errors import StoreError
from sweet.services import Services
from sweet.settings import load_settings
from sweet.types import EpisodeFilter, TaskKind
from tests.fakes import task_row
from tests.sweet.comparing.test_leaderboard import played, voted
from ui import leaderboard_actions as actions
from ui import leaderboard_plots as plots
from ui import leaderboard_tables as tables
from ui import leaderboard_votes as votes
from ui.session import BOARD_SORTS, BoardView, board_view_of

BAD = "<img src=x onerror=window.hit=1>"
ROW = Row(
    "v1", "mini-backend/test", "backend-fixed", 4, success=rate(3, 4), turns=Figure(2.5, 2, 3, 4)
)
NOBODY = Opinions(0, {}, {}, NONE)


def text_of(html: str) -> str:
    """What a person reads of it."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def found(*rows: Row, people: Opinions = NOBODY, **more: object) -> Standings:
    board = Leaderboard(rows, people, NOBODY, NONE)
    return Standings({}, board, more.get("budgets", {}), more.get("rounds", ()))  # type: ignore


def test_no_figure_stands_without_its_n_and_its_interval() -> None:
    shown = text_of(tables.table(found(ROW), BoardView()))
    assert "75.0% n = 4 [30.1%, 95.4%]" in shown
    assert "2.50 n = 4 [2.00, 3.00]" in shown
    assert tables.figure(NONE, tables.share) == "n/a"
    assert text_of(tables.figure(Figure(None, None, None, 5), votes.strength)) == "n/a n = 5"
    assert text_of(tables.figure(Figure(3.0, None, None, 1), tables.turns)) == "3.00 n = 1 [n/a]"


def test_figures_that_no_row_has_take_no_column_but_are_named() -> None:
    shown = text_of(tables.table(found(ROW), BoardView()))
    assert "n/a in every row, so not shown: " in shown
    head, _, missing = shown.partition("not shown: ")
    assert "Cosine" not in head and missing.startswith("Tests passed, Cosine, Visual, Win rate")
    sorted_by = text_of(tables.table(found(ROW), BoardView(sort="cosine desc")))
    assert "Cosine ↓" in sorted_by and "Success" in sorted_by
    with_paper = text_of(tables.table(found(ROW), BoardView(paper=True)))
    assert "Cosine" in with_paper.partition("The paper’s rows")[0]


def test_a_row_leads_to_its_sessions_with_the_filter() -> None:
    view = BoardView(EpisodeFilter(collaborator="llm:gpt", since="2026-01-02"))
    html = tables.table(found(ROW), view)
    link = re.search(r'href="(sessions\?[^"]+)"', html)
    assert link is not None
    for part in ("policy_id=v1", "task_set=mini-backend%2Ftest", "llm%3Agpt", "since=2026-01-02"):
        assert part in link[1]


def test_what_is_left_out_is_said_in_words() -> None:
    assert text_of(tables.table(found(ROW), BoardView())).startswith("1 row Version")
    view = BoardView(EpisodeFilter(policy_id="v1", since="2026-01-02"), "clip", blind_only=True)
    shown = text_of(tables.table(found(ROW), view))
    assert shown.startswith(
        "1 row, only: version v1, from 2026-01-02, evaluator clip, votes of who could not know "
    )


def test_versions_without_a_row_are_named_where_no_filter_left_them_out() -> None:
    shown = text_of(tables.table(found(ROW), BoardView(), ["v1", "v2", BAD]))
    assert "Without a scored episode or a vote: v2, &lt;img" in shown
    filtered = tables.table(found(ROW), BoardView(EpisodeFilter(policy_id="v1")), ["v1", "v2"])
    assert "Without" not in filtered and "Without" not in tables.table(found(ROW), BoardView())


def test_the_paper_s_rows_are_beneath_and_marked() -> None:
    assert "SWEET-RL" not in tables.table(found(ROW), BoardView())
    html = tables.table(found(ROW), BoardView(paper=True))
    ours, paper = html.split('<tbody class="paper">')
    assert "v1" in ours and "not measured here" not in ours
    assert text_of(paper).count("the paper’s, not measured here") == 17
    assert "40.4% n = 1,000 [n/a]" in text_of(paper)
    assert "0.777 n = 500 [n/a]" in text_of(paper)
    assert 'class="paper"' in tables.table(found(), BoardView(paper=True))


def test_an_empty_board_says_how_it_fills_or_what_to_clear() -> None:
    assert "Nothing to rank yet" in tables.table(found(), BoardView())
    assert "Clear" not in tables.table(found(), BoardView())
    assert "clear the filters" in tables.table(found(), BoardView(EpisodeFilter(task_set="x")))
    assert "clear the filters" in tables.table(found(), BoardView(evaluator="clip"))
    assert "No vote yet" in votes.votes(found())
    assert "No round to show" in plots.over_rounds(())
    assert "No turn budget yet" in plots.by_budget(found())


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [(10, 9, "no sign that the side decides"), (40, 10, "the left side wins too often"),
     (10, 40, "the right side wins too often"), (0, 0, "Side check: n/a")],
)  # fmt: skip
def test_whether_the_side_decided_is_said(left: int, right: int, told: str) -> None:
    said = Opinions(left + right + 1, {"v1": NONE}, {}, side_bias(left, right))
    assert told in text_of(votes.votes(found(people=said)))


def test_pairwise_wins_are_read_row_against_column() -> None:
    wins = matrix([("v1", "v2", 1.0), ("v1", "v2", 1.0), ("v1", "v2", 0.5), ("v2", "v3", 1.0)])
    strengths = {"v1": Figure(0.7, -0.1, 1.5, 3), "v2": Figure(-0.7, -1.5, 0.1, 4),
                 "v3": Figure(None, None, None, 1)}  # fmt: skip
    shown = text_of(votes.votes(found(people=Opinions(4, strengths, wins, side_bias(2, 1)))))
    assert "v1 +0.70 n = 3 [−0.10, +1.50] v2 −0.70" in shown
    assert "v3 n/a n = 1" in shown
    assert "v1 · 2 – 1 – 0 83.3% n = 3" in shown
    assert "v3 n/a 0 – 0 – 1 0.0% n = 1" in shown  # never met v1, lost to v2


def point(number: int, task_set: str = "mini-backend/validation") -> RoundPoint:
    return RoundPoint(f"r{number}", "sweet", f"v{number - 1}", f"v{number}", task_set,
                      TaskKind.BACKEND, "tests", rate(3, 10), rate(4, 10),
                      Figure(0.1, -0.05, 0.2, 10))  # fmt: skip


def test_rounds_are_drawn_by_task_set_with_parent_interval_and_n() -> None:
    html = plots.over_rounds([point(1), point(2), point(1, "other/test")])
    assert html.count("<figure") == 2
    assert html.count('class="dot"') == html.count('class="ring"') == 3
    assert html.count('class="interval"') == 6
    assert "v2: 40.0% [16.8%, 68.7%] n = 10" in html
    assert "+10.0 pt n = 10 [−5.0 pt, +20.0 pt]" in text_of(html)
    many = plots.over_rounds([point(n) for n in range(1, 31)])
    assert many.count('class="dot"') == plots.MOST_ROUNDS
    assert "the latest 24 of 30 rounds" in many and "train?round=r1" in many


def test_rounds_on_web_pages_are_drawn_by_reward_and_never_two_evaluators_together() -> None:
    by_sight = RoundPoint("r1", "sweet", "v0", "v1", "mini-frontend/validation", TaskKind.FRONTEND,
                          "visual", Figure(0.45, 0.41, 0.5, 100), Figure(0.71, 0.65, 0.76, 100),
                          Figure(0.26, 0.2, 0.31, 100))  # fmt: skip
    html = plots.over_rounds([by_sight, replace(by_sight, evaluator="clip:a/b")])
    assert html.count("<figure") == 2
    shown = text_of(html)
    assert "reward by visual; v1: 0.710 [0.650, 0.760] n = 100" in shown
    assert "reward by clip:a/b" in shown and "+0.260 n = 100 [+0.200, +0.310]" in shown


def test_a_round_that_scored_nothing_has_no_mark() -> None:
    nothing = RoundPoint("r1", "sweet", "v0", "v1", "", TaskKind.BACKEND, "", NONE, NONE, NONE)
    html = plots.over_rounds([nothing])
    assert 'class="dot"' not in html and "nan" not in html
    assert "v1: n/a" in html


def test_turn_budgets_are_drawn_for_rows_of_the_table_with_n() -> None:
    key = (ROW.policy_id, ROW.task_set, ROW.evaluator)
    budgets = {key: [rate(1, 4), rate(2, 4), rate(2, 3)], ("v2", "x", "y"): [rate(1, 1)]}
    html = plots.by_budget(found(ROW, budgets=budgets))
    assert html.count("<figure") == 1
    assert "n = 3 to 4" in html and "66.7%" in html
    assert "within 2: 50.0% [15.0%, 85.0%] n = 4" in html
    single = plots.by_budget(found(ROW, budgets={key: [rate(1, 4)]}))
    assert "nan" not in single and "n = 4" in single


def test_nothing_of_a_version_becomes_markup() -> None:
    row = Row(BAD, BAD, BAD, 1, success=rate(1, 1))
    strengths = {BAD: rate(1, 2), "v2": rate(1, 2)}
    said = Opinions(1, strengths, matrix([(BAD, "v2", 1.0)]), side_bias(1, 0))
    points = [
        RoundPoint(BAD, BAD, BAD, BAD, BAD, kind, BAD, rate(1, 2), rate(1, 2), NONE)
        for kind in TaskKind
    ]
    standing = found(row, people=said, budgets={(BAD, BAD, BAD): [rate(1, 1), rate(1, 1)]})
    html = "".join(
        [
            tables.table(standing, BoardView(EpisodeFilter(text=BAD), BAD)),
            votes.votes(standing),
            plots.over_rounds(points),
            plots.by_budget(standing),
        ]
    )
    assert "<img" not in html


def test_a_view_is_its_link() -> None:
    view = BoardView(EpisodeFilter(task_set="a/b", until="2026-01-02"), "clip", True, "n asc", True)
    pairs = dict(part.split("=") for part in view.query.split("&"))
    read = {name: value.replace("%2F", "/").replace("+", " ") for name, value in pairs.items()}
    assert board_view_of(read) == view
    assert BoardView().query == ""
    odd = {"sort": "drop table", "votes": "x", "paper": "yes", "outcome": "maybe"}
    assert board_view_of(odd) == BoardView()


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    monkeypatch.setenv("SWEET_DATA", str(tmp_path))
    with Services(load_settings()) as opened:
        opened.store.add_tasks([task_row()])
        played(opened.store, "low", 0.0, task_id="task-1")
        played(opened.store, "high", 1.0, task_id="task-1")
        yield opened


def asked(**changes: str | bool) -> list[str | bool]:
    """The fields as they are at first, but for `changes`."""
    first: dict[str, str | bool] = dict.fromkeys(actions.Asked._fields, "")
    first |= {"paper": False, "sort": "success desc"}
    return list((first | changes).values())


def order(html: str) -> list[str]:
    return re.findall(r'<th scope="row">(\w+)', html)


def opened(services: Services, **query: str) -> actions.Shown:
    request = gr.Request(query_params=query)
    return actions.Shown(*actions.open_page(services, request)[-len(actions.Shown._fields) :])


def test_a_head_sorts_what_was_measured_without_measuring_again(services: Services) -> None:
    page = opened(services)
    assert order(page.table) == ["high", "low"]
    assert "Without a scored episode or a vote: embedded" in page.table
    played(services.store, "later", 1.0, task_id="task-1")
    event = gr.EventData(None, {"action": "sort", "sort": "success asc"})
    shown = actions.act(services, page.view, page.found, event)
    assert order(shown.table) == ["low", "high"]
    assert (shown.sort, shown.view.sort) == ("success asc", "success asc")
    fresh = actions.Shown(*actions.refresh(services, shown.view)[-len(actions.Shown._fields) :])
    assert set(order(fresh.table)) == {"low", "high", "later"}


@pytest.mark.parametrize("data", [None, {}, {"action": "sort", "sort": "x"}, {"action": []}])
def test_whatever_a_browser_sends_to_the_board_is_harmless(
    services: Services, data: object
) -> None:
    event = gr.EventData(None, data)
    assert actions.act(services, BoardView(), None, event) == actions.Shown()


def test_only_what_changed_is_measured_anew(services: Services) -> None:
    page = opened(services)
    same = actions.search(services, page.view, page.found, *asked())
    assert same == actions.Shown()
    paper = actions.search(services, page.view, page.found, *asked(paper=True))
    assert paper.found.board is not None and 'class="paper"' in paper.table
    assert paper.votes == gr.skip()
    one = actions.search(services, page.view, page.found, *asked(policy_id="low"))
    assert order(one.table) == ["low"]
    assert one.view.wanted.policy_id == "low"


def test_what_only_an_address_asks_for_stays_with_the_other_filters(services: Services) -> None:
    page = opened(services, batch_id="b1")
    assert "Nothing matches" in page.table
    shown = actions.search(services, page.view, page.found, *asked(policy_id="low"))
    assert (shown.view.wanted.batch_id, shown.view.wanted.policy_id) == ("b1", "low")


def test_an_address_that_asks_for_no_date_is_told(services: Services) -> None:
    page = opened(services, since="yesterday")
    assert "That can’t be shown" in page.table and "yesterday" in page.table
    with pytest.raises(StoreError, match="yesterday"):
        actions.search(services, BoardView(), None, *asked(since="yesterday"))


def test_every_column_can_be_sorted_by(services: Services) -> None:
    page = opened(services)
    for sort in BOARD_SORTS.values():
        event = gr.EventData(None, {"action": "sort", "sort": sort})
        shown = actions.act(services, page.view, page.found, event)
        assert sorted(order(shown.table)) == ["high", "low"]
        assert f'aria-sort="{sort.split()[1]}ending"' in shown.table


def test_an_export_is_of_what_is_shown(services: Services) -> None:
    voted(services.store, "high", "low", task_id="task-1")
    page = opened(services, paper="1", sort="success asc")
    played(services.store, "later", 1.0, task_id="task-1")  # not on the screen yet
    files = {
        name: Path(actions.export(services, page.view, page.found, name)["value"])
        for name in actions.FORMATS
    }
    table = list(csv.DictReader(files[actions.TABLE].open(newline="")))
    assert [line["policy_id"] for line in table][:2] == ["low", "high"]
    assert len(table) == 2 + 17
    cast = list(csv.DictReader(files[actions.SAID].open(newline="")))
    assert ("high", "low", "1") in {(v["first"], v["second"], v["wins"]) for v in cast}
    whole = json.loads(files[actions.ALL].read_text())
    assert [row["policy_id"] for row in whole["rows"]] == ["low", "high"]
    assert (whole["people"]["votes"], len(whole["paper"])) == (1, 17)
    assert actions.export(services, page.view, None, actions.TABLE)["visible"]

"""The leaderboard as files: what is in them, and what a filter leaves of each part."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweet.comparing.standings import standings
from sweet.errors import ConfigError
from sweet.store import EpisodeStore
from sweet.types import EpisodeFilter, Evaluation, Reward, Verdict
from tests.sweet.comparing.test_leaderboard import played, voted
from tests.sweet.store.samples import task_row

COMPAT = Evaluation(Reward(0.0, {"tests_passed": 0.5}, "backend-compat"), Verdict.WRONG)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EpisodeStore]:
    with EpisodeStore.open(tmp_path / "sweet.db") as opened:
        opened.add_tasks([task_row(1), task_row(2, split="train")])
        yield opened


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_table_as_csv_has_every_figure_with_its_interval_and_n(store: EpisodeStore) -> None:
    for value in (1.0, 0.0):
        played(store, "v1", value)
    (line,) = lines(standings(store).table_csv())
    assert (line["source"], line["policy_id"], line["n"]) == ("measured here", "v1", "2")
    assert (line["success"], line["success_n"]) == ("0.5", "2")
    assert 0 < float(line["success_low"]) < 0.5 < float(line["success_high"]) < 1
    assert (line["cosine"], line["cosine_low"], line["cosine_n"]) == ("n/a", "n/a", "0")


def test_the_paper_s_lines_are_beneath_ours_and_say_so(store: EpisodeStore) -> None:
    played(store, "v1", 0.0)
    found = lines(standings(store).table_csv(paper=True))
    assert found[0]["source"] == "measured here"
    assert {line["source"] for line in found[1:]} == {"the paper's, not measured here"}
    best = next(line for line in found if line["policy_id"] == "Llama-3.1-8B + SWEET-RL")
    assert (float(best["success"]), best["success_n"]) == (pytest.approx(0.404), "1000")
    assert (best["success_low"], best["cosine_n"], best["turns"]) == ("n/a", "500", "n/a")


def test_what_a_spreadsheet_would_run_is_text(store: EpisodeStore) -> None:
    played(store, '=HYPERLINK("http://evil.example")', 1.0)
    (line,) = lines(standings(store).table_csv())
    assert line["policy_id"] == """'=HYPERLINK("http://evil.example")"""


def test_votes_as_csv_are_strengths_and_pairs(store: EpisodeStore) -> None:
    for winner, loser in (("v1", "v2"), ("v1", "v2"), ("v2", "v1")):
        voted(store, winner, loser)
    found = lines(standings(store).votes_csv())
    assert [(one["first"], one["second"], one["figure"]) for one in found] == [
        ("v1", "", "bradley_terry_strength"),
        ("v2", "", "bradley_terry_strength"),
        ("v1", "v2", "win_rate"),
        ("v2", "v1", "win_rate"),
    ]
    assert (found[2]["wins"], found[2]["losses"], found[2]["n"]) == ("2", "1", "3")
    assert float(found[0]["value"]) == pytest.approx(0.3466, abs=1e-4)  # half of log 2


def test_json_says_what_was_asked_and_has_all_parts(store: EpisodeStore) -> None:
    played(store, "v1", 1.0)
    voted(store, "v1", "v2", is_blind=False)
    asked = EpisodeFilter(policy_id="v1")
    value = json.loads(json.dumps(standings(store, asked, blind_only=True).as_json(paper=True)))
    assert value["filter"] == {"policy_id": "v1", "votes": "blind"}
    assert (len(value["rows"]), value["people"]["votes"]) == (1, 0)
    assert value["turn_budgets"][0]["success"][1]["n"] == 2
    assert len(value["paper"]) == 17


def test_an_evaluator_is_chosen_in_rows_and_budgets(store: EpisodeStore) -> None:
    played(store, "v1", 1.0)
    played(store, "v1", 0.0, scored=COMPAT)
    found = standings(store, evaluator="backend-compat")
    assert [(row.evaluator, row.n) for row in found.board.rows] == [("backend-compat", 1)]
    assert [key[2] for key in found.budgets] == ["backend-compat"]


def test_rounds_are_chosen_by_task_set_and_version(store: EpisodeStore) -> None:
    figures = {"parent": {"n": 4, "success_rate": 0.5, "success_ci95": [0.1, 0.9]}}
    for number, name in ((1, "mini-backend/validation"), (2, "other/test")):
        store.start_round(f"r{number}", "sweet", "embedded", {"validation_set": name})
        version = f"v000{number}"
        store.end_round(f"r{number}", version_id=version, is_promoted=False, figures=figures)

    def chosen(wanted: EpisodeFilter) -> list[str]:
        return [point.round_id for point in standings(store, wanted).rounds]

    assert chosen(EpisodeFilter()) == chosen(EpisodeFilter(policy_id="embedded")) == ["r1", "r2"]
    of_set, of_version = EpisodeFilter(task_set="mini-backend"), EpisodeFilter(policy_id="v0001")
    assert chosen(of_set) == chosen(of_version) == ["r1"]
    assert chosen(EpisodeFilter(task_set="other/test")) == ["r2"]
    assert chosen(EpisodeFilter(task_set="mini-backend/test")) == []


def test_another_order_is_the_same_rows_again(store: EpisodeStore) -> None:
    played(store, "low", 0.0)
    played(store, "high", 1.0)
    found = standings(store)
    assert [row.policy_id for row in found.board.rows] == ["high", "low"]
    again = found.sorted_by("success asc")
    assert [row.policy_id for row in again.board.rows] == ["low", "high"]
    with pytest.raises(ConfigError, match="Cannot sort by"):
        found.sorted_by("beauty")

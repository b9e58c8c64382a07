"""The Leaderboard page, and votes out and in, in real browsers on the real app."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from sweet.exchange import preference_ids
from sweet.store import Choice, EpisodeStore, Voter
from sweet.types import Action, EpisodeFilter, StopReason
from tests.sweet.comparing.test_leaderboard import played
from tests.ui.studio import Arrive, Studio, Visitor, arriving, running
from trainer.preferences import preference_pairs


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running(tmp_path_factory.mktemp("data")) as studio:
        yield studio


@pytest.fixture(scope="module")
def store(studio: Studio) -> Iterator[EpisodeStore]:
    """The log of the running studio, with two versions that were played."""
    with EpisodeStore.open(studio.data / "sweet.db") as store:
        for value in (1.0, 1.0, 0.0):
            played(store, "strong", value, task_id=a_task(store))
        for value in (0.0, 0.0):
            played(store, "weak", value, task_id=a_task(store))
        yield store


@pytest.fixture
def arrive(studio: Studio, store: EpisodeStore, browser: Browser) -> Iterator[Arrive]:
    with arriving(browser, studio.address, Visitor) as arrive:
        yield arrive


def a_task(store: EpisodeStore) -> str:
    return store.tasks("mini-backend", "test", limit=1)[0].id


def said(store: EpisodeStore, policy: str) -> str:
    """A session of that version that is over, with a question of its own."""
    episode = store.start_episode(a_task(store), policy, "scripted", 7)
    question = f"{policy} asks: which one?"
    store.append_action(episode.id, 0, Action(question, question, False))
    store.append_reply(episode.id, 0, "That one.")
    store.finish(episode.id, StopReason.TURN_LIMIT)
    return episode.id


def compared(store: EpisodeStore, one: str = "strong", other: str = "weak") -> str:
    """A comparison of two sessions that are over, not voted on."""
    return store.start_comparison(said(store, one), said(store, other)).id


def voted(store: EpisodeStore, winner: str, loser: str, voter: str = "ann") -> None:
    comparison = store.comparison(compared(store, winner, loser))
    choice = Choice.LEFT if comparison.left_policy == winner else Choice.RIGHT
    store.vote(comparison.id, choice, voter)


def go(visitor: Visitor, query: str = "") -> None:
    visitor.go(f"/leaderboard{query}")
    expect(visitor.page.locator("#board .board, #board .notice").first).to_be_visible()


def row(visitor: Visitor, version: str) -> Locator:
    heads = visitor.page.get_by_role("rowheader", name=version)
    return visitor.page.locator("#board tbody tr").filter(has=heads)


def versions(visitor: Visitor) -> Locator:
    return visitor.page.locator("#board tbody tr th[scope=row]")


def choose(visitor: Visitor, label: str, option: str) -> None:
    visitor.page.get_by_label(label, exact=True).click()
    visitor.page.get_by_role("option", name=option, exact=True).click()


def exported(visitor: Visitor, shape: str, path: Path, told: str = "") -> Path:
    """The file that an export gives; `told` is what its button says."""
    choose(visitor, "Export what is filtered" if told else "Export what is shown", shape)
    visitor.button("Export").click()
    name = f"Download {told or path.suffix[1:].upper()}"
    found = visitor.page.get_by_role("link", name=name, exact=True)
    with visitor.page.expect_download() as download:
        found.or_(visitor.button(name)).first.click()
    download.value.save_as(path)
    return path


def test_a_vote_changes_the_leaderboard(arrive: Arrive, store: EpisodeStore) -> None:
    visitor = arrive()
    page = visitor.page
    go(visitor, "?policy_id=strong")
    before = len(list(store.iter_votes()))
    expect(row(visitor, "strong")).to_contain_text("mini-backend/test")
    comparison = store.comparison(compared(store))
    other = arrive()
    other.go(f"/compare?comparison={comparison.id}")
    expect(other.page.locator("#ballot")).to_contain_text("Which side is better?")
    other.page.keyboard.press("1" if comparison.left_policy == "strong" else "2")
    expect(other.page.locator("#ballot")).to_contain_text("Your vote")
    visitor.button("Count anew").click()
    expect(page.locator("#board-votes")).to_contain_text(f"{before + 1} vote")
    figure = row(visitor, "strong").locator("[data-label='Win rate']")
    expect(figure).to_contain_text("100.0%")
    expect(figure).to_contain_text("n = 1")
    go(visitor)
    expect(row(visitor, "weak").locator("[data-label='Win rate']")).to_contain_text("0.0%")
    matrix = page.locator("table.matrix").first
    strong = page.get_by_role("rowheader", name="strong", exact=True)
    expect(matrix.locator("tbody tr").filter(has=strong)).to_contain_text("1 – 0 – 0")


def test_strengths_sides_and_the_judge_are_shown_with_their_n(
    arrive: Arrive, store: EpisodeStore
) -> None:
    for winner, loser in (("blue", "red"), ("blue", "red"), ("red", "blue")):
        voted(store, winner, loser)
    vote = next(v for v in store.iter_votes() if v.comparison.left_policy in ("blue", "red"))
    store.vote(vote.comparison.id, vote.choice, "judge:m", by=Voter.JUDGE)
    visitor = arrive()
    go(visitor, "?policy_id=blue")
    votes = visitor.page.locator("#board-votes")
    people = votes.locator(".votes").first
    expect(people.locator("table").first).to_contain_text("+0.35 n = 3")  # half of log 2
    expect(people).to_contain_text("of the decided votes")
    expect(votes.locator(".votes").last).to_contain_text("1 vote")
    expect(votes).to_contain_text("gave the same verdict: 100.0% n = 1")


def test_the_table_is_sorted_filtered_linked_and_given_out(
    arrive: Arrive, store: EpisodeStore, tmp_path: Path
) -> None:
    visitor = arrive()
    page = visitor.page
    go(visitor, "?task_set=mini-backend/test")
    head = visitor.button("n")
    head.focus()
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("n ↓")
    expect(page.locator("#board [data-key=sort-n]")).to_be_focused()
    most = versions(visitor).first.inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("n ↑")
    expect(versions(visitor).last).to_have_text(most)
    assert "sort=n+asc" in page.url
    page.get_by_text("Filters and sorting").click()
    choose(visitor, "Version", "weak")
    expect(versions(visitor)).to_have_count(1)
    page.reload()
    expect(versions(visitor)).to_have_count(1)
    expect(page.locator("#board")).to_contain_text("1 row, only: task set mini-backend/test")
    n = row(visitor, "weak").locator("[data-label=n]").inner_text()
    page.get_by_label("Show the paper’s rows").check()
    expect(page.locator("#board .paper")).to_contain_text("not measured here")
    table = exported(visitor, "The table (CSV)", tmp_path / "a.csv")
    lines = list(csv.DictReader(table.open(newline="")))
    assert [(one["source"], one["policy_id"], one["n"]) for one in lines[:1]] == [
        ("measured here", "weak", n)
    ]
    assert len(lines) == 1 + 17
    whole = exported(visitor, "All that is shown (JSON)", tmp_path / "a.json")
    assert json.loads(whole.read_text())["filter"]["policy_id"] == "weak"
    page.get_by_role("link", name="Sessions of weak on mini-backend/test").click()
    all_of_them = store.search(EpisodeFilter(policy_id="weak")).count
    expect(page.locator("#table .count")).to_have_text(f"{all_of_them} episodes")
    page.go_back()
    page.get_by_text("Filters and sorting").click()
    visitor.button("Clear the filters").click()
    expect(row(visitor, "strong")).to_be_visible()
    choose(visitor, "Evaluator", "backend-fixed")
    choose(visitor, "Task set", "mini-backend/test")
    page.get_by_label("Until").fill("2001-01-01")
    page.get_by_label("Until").press("Enter")
    expect(page.locator("#board")).to_contain_text("Nothing matches")


def test_rounds_and_turn_budgets_are_plotted_with_their_figures(
    arrive: Arrive, store: EpisodeStore
) -> None:
    side = {"n": 200, "success_rate": 0.31, "success_ci95": [0.25, 0.377]}
    figures = {"parent": side, "child": {**side, "success_rate": 0.36}, "compared": 200,
               "gain": 0.05, "gain_ci95": [-0.01, 0.11]}  # fmt: skip
    store.start_round("r1", "sweet", "embedded", {"validation_set": "mini-backend/validation"})
    store.end_round("r1", version_id="v0001", is_promoted=True, figures=figures)
    visitor = arrive()
    go(visitor)
    page = visitor.page
    rounds = page.locator("#board-rounds")
    expect(rounds.locator("svg .interval")).to_have_count(2)
    rounds.get_by_text("The figures of all rounds").click()
    expect(rounds.get_by_role("row", name="r1")).to_contain_text("36.0% n = 200 [25.0%, 37.7%]")
    budgets = page.locator("#board-budgets")
    expect(budgets.locator("figure").first).to_contain_text("n = ")
    budgets.get_by_text("The figures of all turn budgets").click()
    expect(budgets.get_by_role("row", name="strong")).to_contain_text("n = ")


def test_votes_go_out_of_sessions_and_into_an_empty_studio_to_equal_counts(
    arrive: Arrive, browser: Browser, store: EpisodeStore, tmp_path: Path
) -> None:
    for voter in ("ann", "bob"):
        voted(store, "gold", "tin", voter)
    n, pairs_n = len(list(store.iter_votes())), len(preference_ids(preference_pairs(store)))
    visitor = arrive()
    visitor.go("/sessions?policy_id=gold")
    expect(visitor.page.locator("#table .count")).to_have_text("2 episodes")
    some = exported(visitor, "Votes (parquet)", tmp_path / "some.parquet", "2 votes")
    visitor.page.get_by_text("Filters and sorting").click()
    visitor.button("Clear search and filters").click()
    expect(visitor.page.locator("#table .count")).not_to_have_text("2 episodes")
    votes = exported(visitor, "Votes (JSONL)", tmp_path / "votes.jsonl", f"{n} votes")
    told = f"{pairs_n} preference pairs"
    pairs = exported(visitor, "Preferences (JSONL)", tmp_path / "pairs.jsonl", told)
    assert len(votes.read_text().splitlines()) == n
    assert len(pairs.read_text().splitlines()) == pairs_n >= 2
    with running(tmp_path / "empty") as empty:
        other = Visitor(browser, empty.address)
        go(other)
        expect(other.page.locator("#board")).to_contain_text("Nothing to rank yet")
        expect(other.page.locator("#board-votes")).to_contain_text("No vote yet")
        other.go("/sessions")
        brought(other, some, "2 added, 0 already there, 0 left out")
        brought(other, votes, f"{n - 2} added, 2 already there, 0 left out")
        twice = votes.with_name("twice.jsonl")  # another name: what is said of it is new
        twice.write_bytes(votes.read_bytes())
        brought(other, twice, f"0 added, {n} already there, 0 left out")
        brought(other, pairs, "0 left out")
        expect(other.page.locator("#table tbody tr").first).to_be_visible()
        again = exported(other, "Votes (JSONL)", tmp_path / "again.jsonl", f"{n} votes")
        assert sorted(again.read_text().splitlines()) == sorted(votes.read_text().splitlines())
        back = exported(other, "Preferences (JSONL)", tmp_path / "back.jsonl", told)
        assert {*back.read_text().splitlines()} == {*pairs.read_text().splitlines()}
        go(other, "?policy_id=gold")
        expect(other.page.locator("#board-votes")).to_contain_text("2 votes")
        expect(row(other, "gold").locator("[data-label='Win rate']")).to_contain_text("n = 2")
        other.leave()


def brought(visitor: Visitor, file: Path, told: str) -> None:
    """A file is imported on the Sessions page, which says what came of it."""
    choose_file = visitor.button("Choose a file")
    if not choose_file.is_visible():
        visitor.page.get_by_role("button", name="Import").click()
    with visitor.page.expect_file_chooser() as chooser:
        choose_file.click()
    chooser.value.set_files(file)
    expect(visitor.page.locator("#brought")).to_contain_text(f"{file.name}: ")
    expect(visitor.page.locator("#brought")).to_contain_text(told)


def test_a_bad_line_is_named_and_the_others_are_kept(arrive: Arrive, tmp_path: Path) -> None:
    file = tmp_path / "mixed.jsonl"
    task = {"problem_description": "def f(x)", "ground_truth": "def f(x):\n    return x",
            "test_cases": {"0": "f(1)"}}  # fmt: skip
    said = [{"role": "assistant", "content": "What is x?"}, {"role": "user", "content": "One."}]
    good = {"task": task, "dialogue_history": said, "answer": "def f(x): return x", "reward": 1.0}
    file.write_text(f"{json.dumps(good)}\n<script>window.hit=1</script>\n")
    visitor = arrive()
    visitor.go("/sessions")
    brought(visitor, file, "1 added, 0 already there, 1 left out")
    expect(visitor.page.locator("#brought")).to_contain_text("line 2: no JSON")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_leaderboard_without_scrolling_sideways(
    arrive: Arrive, scheme: str
) -> None:
    visitor = arrive(width=390, color_scheme=scheme)
    go(visitor, "?paper=1")
    expect(visitor.page.locator("#board .paper")).to_be_visible()
    visitor.page.get_by_text("The figures of all turn budgets").click()
    assert visitor.overflow() == []

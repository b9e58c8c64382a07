"""Comparing two versions over a set from the page: beginning, following, stopping, reading."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import gradio as gr
import pytest

from sweet.comparing.compare import ComparePlan
from sweet.errors import ConfigError, PolicyError
from tests.sweet.comparing.test_compare import Studio
from ui import compare_figures, compare_runs
from ui.compare_runs import Run, Runs


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with Studio(tmp_path / "data") as studio:
        yield studio


async def ended(runs: Runs, plan: ComparePlan) -> None:
    while runs.is_running(plan):
        await asyncio.sleep(0.01)


def begin(runs: Runs, tasks: str, n: float = 3, first: str = "right", second: str = "wrong") -> Any:
    return compare_runs.start(runs, tasks, first, second, "", n, 4, 0)


def link(page: Run) -> dict[str, str]:
    """The query that the page's address has."""
    query = re.search(r'data-address="([^"]*)"', page.progress)
    assert query
    return {k: v[0] for k, v in parse_qs(query[1].replace("&amp;", "&"), True).items()}


def open_link(runs: Runs, query: dict[str, str]) -> Run:
    return compare_runs.open_page(runs, _request(query))


def _request(query: dict[str, str]) -> gr.Request:
    request = gr.Request()
    request.query_params = query
    return request


def test_a_comparison_is_played_read_and_found_again_by_its_link(studio, file_set) -> None:
    runs = Runs(studio)

    async def play() -> Run:
        page = await begin(runs, file_set)
        assert page.timer["active"]
        assert page.stop["visible"]
        await ended(runs, page.plan)
        return compare_runs.tick(runs, page.plan)

    page = asyncio.run(play())
    assert not page.timer["active"]
    assert not page.again["visible"]
    for text in ("right wins</dt><dd>3", "Ties</dt><dd>0", "+1.000", "3 tasks differ", "n</th>"):
        assert text in page.figures
    links = re.findall(r'href="compare\?one=(\w+)&amp;other=(\w+)"', page.figures)
    assert len(links) == 3
    for pair in links:
        assert [studio.store.episode(id).policy_id for id in pair] == ["right", "wrong"]
    again = open_link(Runs(studio), link(page))
    assert again.figures == page.figures
    assert "right and wrong" in compare_runs.open_page(runs, _request({})).known


def test_two_who_ask_for_the_same_get_the_same(studio, file_set) -> None:
    runs = Runs(studio)

    async def play() -> None:
        pages = await asyncio.gather(begin(runs, file_set), begin(runs, file_set))
        await ended(runs, pages[0].plan)

    asyncio.run(play())
    assert studio.store.search().count == 6


def test_one_that_was_stopped_goes_on(studio, file_set) -> None:
    runs = Runs(studio)

    async def play() -> tuple[Run, Run]:
        page = await begin(runs, file_set, n=60)
        await compare_runs.stop(runs, page.plan)
        await ended(runs, page.plan)
        halted = compare_runs.tick(runs, page.plan)
        await compare_runs.go_on(runs, page.plan)
        await ended(runs, page.plan)
        return halted, compare_runs.tick(runs, page.plan)

    halted, done = asyncio.run(play())
    assert halted.again["visible"]
    assert "not running" in halted.progress
    assert "Pairs compared (n)</dt><dd>60" in done.figures


@pytest.mark.parametrize(
    ("change", "error", "why"),
    [
        ({"second": "right"}, ConfigError, "cannot be compared with itself"),
        ({"second": ""}, ConfigError, "Choose two versions"),
        ({"second": "v0099"}, PolicyError, "There is no policy"),
        ({"n": 0}, ConfigError, "whole number from 1"),
        ({"n": 2.5}, ConfigError, "whole number from 1"),
        ({"tasks": "file:/nosuch"}, Exception, "nosuch"),
        ({"tasks": ""}, ConfigError, "No task set"),
    ],
)
def test_what_can_not_begin_says_why(studio, file_set, change, error, why) -> None:
    asked = {"tasks": file_set, **change}
    with pytest.raises(error, match=why):
        asyncio.run(begin(Runs(studio), **asked))
    assert studio.store.batches() == []


def test_a_failure_in_the_background_is_told(studio, file_set, monkeypatch) -> None:
    runs = Runs(studio)

    async def broken(*args: object, **more: object) -> None:
        raise PolicyError("the disk is full")

    async def play() -> Run:
        monkeypatch.setattr("ui.compare_runs.play_both", broken)
        page = await begin(runs, file_set)
        await ended(runs, page.plan)
        return compare_runs.tick(runs, page.plan)

    page = asyncio.run(play())
    assert "the disk is full" in page.progress
    assert page.again["visible"]


@pytest.mark.parametrize(
    "query",
    [
        {"tasks": "nosuch/set", "first": "a", "second": "b"},
        {"tasks": "<script>", "first": "<b>", "second": "'"},
        {"tasks": "mini-backend/test", "first": "a", "second": "a"},
        {"tasks": "mini-backend/test", "first": "a", "second": "b", "n": "-1"},
        {"tasks": "mini-backend/test", "first": "a", "second": "b", "n": "9" * 30},
        {"tasks": "mini-backend/test", "first": "a", "second": "b", "seed": "x"},
    ],
)
def test_a_wrong_link_is_told_and_plays_nothing(studio, query) -> None:
    page = open_link(Runs(studio), query)
    assert "No such comparison" in page.progress
    assert "<script>" not in page.progress
    assert studio.store.batches() == []


def test_a_single_pair_has_no_interval(studio, file_set) -> None:
    runs = Runs(studio)

    async def play() -> Run:
        page = await begin(runs, file_set, n=1)
        await ended(runs, page.plan)
        return compare_runs.tick(runs, page.plan)

    figures = asyncio.run(play()).figures
    assert "One pair has no interval" in figures
    assert "n/a" in figures


def test_the_command_to_copy_is_one_command_whatever_the_link_says(studio, file_set) -> None:
    query = {"tasks": file_set, "first": "$(id)", "second": "a; id", "n": "1"}
    page = open_link(Runs(studio), query)
    assert "compare &#x27;$(id)&#x27; &#x27;a; id&#x27; --tasks" in page.progress


def test_a_plan_goes_through_a_link_unchanged(studio, file_set) -> None:
    plan = ComparePlan(file_set, "a b&c", "ü", 7, "llm:x/y", 3, 9)
    query = {k: v[0] for k, v in parse_qs(compare_figures.query_of(plan), True).items()}
    assert compare_runs._plan_of(query) == plan

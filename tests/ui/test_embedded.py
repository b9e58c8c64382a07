"""A person and the embedded agent, in a real browser: the product as a newcomer meets it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from evaluators.render.answers import missing_assets
from tests.ui.designing import SHOWN, Designer
from tests.ui.studio import Studio, Visitor, running
from tests.ui.test_pages import exported


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running(tmp_path_factory.mktemp("data")) as studio:
        yield studio


def turns(visitor: Visitor) -> int:
    """How many messages of the agent are there, once nobody speaks."""
    expect(visitor.button("Stop")).to_be_hidden(timeout=60_000)
    return visitor.page.locator("#transcript .message.agent").count()


def is_over(visitor: Visitor) -> bool:
    """Whether the episode has a result; waits until it has, or it is the person's turn."""
    turns(visitor)
    result = visitor.page.locator(".result")
    send = visitor.page.get_by_role("button", name="Send", exact=True, disabled=False)
    expect(result.or_(send).first).to_be_visible(timeout=60_000)
    return result.count() > 0


def play_to_the_end(visitor: Visitor, marker: str) -> None:
    """Answer each question from the card, as a person does who reads it out."""
    known = "; ".join(visitor.page.locator("#reference li:not(:has(code))").all_inner_texts())
    for _ in range(10):
        if is_over(visitor):
            return
        said = turns(visitor)
        visitor.say(f"{marker} {known}")
        expect(visitor.page.locator("#transcript .message.agent")).to_have_count(
            said + 1, timeout=60_000
        )
    assert is_over(visitor)


def test_a_newcomer_plays_reloads_finds_and_exports(
    studio: Studio, browser: Browser, tmp_path: Path
) -> None:
    visitor = Visitor(browser, studio.address)
    page = visitor.page
    episode = visitor.begin()
    if not is_over(visitor):
        visitor.say("The aardvark knows.")
        expect(page.locator("#transcript .message.agent")).to_have_count(2, timeout=60_000)
    before = turns(visitor)
    page.reload()
    expect(page.locator("#transcript .message.agent")).to_have_count(before)
    play_to_the_end(visitor, "So:")
    expect(page.locator(".result .outcome")).to_contain_text(re.compile("success|fail"))
    tested, untested = page.locator(".tests tbody tr").first, "there is nothing to test"
    expect(tested.or_(page.get_by_text(untested))).to_be_visible()  # ten turns may pass in asking
    visitor.go(f"/sessions?task_id={visitor_task(visitor)}")
    expect(page.locator("#table")).to_contain_text("1 episode")
    assert [line["id"] for line in exported(visitor, "Episodes (JSONL)", tmp_path)] == [episode]
    visitor.leave()


def visitor_task(visitor: Visitor) -> str:
    """The id of the task on the page."""
    found = re.search(r"mini-backend-\w+", visitor.page.locator("#stage .task").inner_text())
    assert found
    return found[0]


def test_ten_newcomers_at_once_do_not_cross(studio: Studio, browser: Browser) -> None:
    visitors = [Visitor(browser, studio.address) for _ in range(10)]
    for visitor in visitors:
        visitor.go()
        expect(visitor.page.get_by_label("Task", exact=True)).not_to_have_value("")
        visitor.button("Random task").click()
    for visitor in visitors:
        visitor.button("Start").click()
    for i, visitor in enumerate(visitors):
        expect(visitor.page.locator("#transcript .message.agent")).to_have_count(1, timeout=60_000)
        if not is_over(visitor):
            visitor.page.get_by_label("Your answer to the agent").fill(f"Browser{i}x says five.")
            visitor.button("Send").click()
    for i, visitor in enumerate(visitors):
        play_to_the_end(visitor, f"Browser{i}x")
        heard = re.findall(r"Browser\d+x", visitor.page.locator("#transcript").inner_text())
        assert set(heard) <= {f"Browser{i}x"}
    assert len({visitor.episode_id for visitor in visitors}) == 10
    for visitor in visitors:
        visitor.leave()


def test_a_simulated_episode_is_watched_to_its_end(studio: Studio, browser: Browser) -> None:
    visitor = Visitor(browser, studio.address)
    visitor.go()
    expect(visitor.page.get_by_label("Task", exact=True)).not_to_have_value("")
    simulator = visitor.page.get_by_label("Watch: Simulator (scripted)")
    simulator.check()
    card = visitor.page.locator("#setup .task")
    before = card.inner_text()
    visitor.button("Random task").click()
    expect(card).not_to_have_text(before)
    expect(simulator).to_be_checked()  # another task leaves the choice as it is
    visitor.button("Start").click()
    expect(visitor.page.locator(".result .outcome")).to_contain_text(
        re.compile("success|fail"), timeout=90_000
    )
    expect(visitor.page.get_by_label("Your answer to the agent")).to_be_hidden()
    visitor.leave()


@pytest.mark.skipif(bool(missing_assets()), reason="make setup fetches the assets")
def test_a_newcomer_has_a_page_drawn_in_three_versions_and_finds_them_again(
    studio: Studio, browser: Browser
) -> None:
    person = Designer(browser, studio.address)
    page = person.page
    for _ in range(12):  # the embedded agent often answers too soon
        play_a_page(person)
        versions = turns(person)
        if versions >= 3:
            break
    expect(page.locator("#design .where")).to_have_text(f"Version {versions} of {versions}")
    expect(person.shown_page().locator("body > *").first).to_be_visible()
    person.button("Diff").click()
    for _ in range(versions - 2):  # the last one may be what it was
        if page.locator(f"{SHOWN} .added").count():
            break
        person.button("Version before").click()
    expect(page.locator(f"{SHOWN} .added").first).to_be_visible()
    expect(page.locator("#figures tbody tr")).to_have_count(versions)
    overall = page.locator('#figures tbody tr [data-label="Overall"]').last
    expect(overall).to_have_text(re.compile(r"^[01]\.\d\d$"))
    expect(page.locator(".result .outcome")).to_contain_text("reward")
    page.get_by_role("link", name="in the log").click()
    for turn in range(1, versions + 1):
        expect(page.locator(f"#turn-{turn} .as-drawn img")).to_be_visible()
        page.keyboard.press("ArrowRight")
    person.leave()


def play_a_page(person: Designer) -> None:
    """Play a page to its end: two wishes, and then that it is right."""
    person.go()
    person.choose_set("mini-frontend/test")
    person.button("Random task").click()
    person.button("Start").click()
    wishes = ["make the background light gray", "The header should be dark pink, please."]
    for said in range(10):
        expect(person.page.locator("#transcript .message.agent")).to_have_count(
            said + 1, timeout=60_000
        )
        if is_over(person):
            return
        person.say(wishes[said] if said < 2 else "That's all right now.")

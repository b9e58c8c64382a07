"""The Train page in a real browser, with the embedded agent: from ten episodes to a version."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from sweet.engines import EMBEDDED_DIR
from tests.ui.studio import Studio, Visitor, training

pytestmark = [
    pytest.mark.timeout(1800),  # of seconds where nothing else runs
    pytest.mark.skipif(
        not (EMBEDDED_DIR / "model.safetensors").is_file(),
        reason=f"the embedded model is not there ({EMBEDDED_DIR}); `python -m trainer pretrain`",
    ),
]
PATIENCE_MS = 600_000
SMALL = {
    "Candidates": 4,
    "Critic epochs": 1,
    "Policy least": 8,
    "Validation n": 8,
    "LoRA rank": 4,
}
"""Expert settings that make a round one of seconds."""
STOPPED = ("collect", "evaluate")
"""Phases that somebody ends early."""


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    data = tmp_path_factory.mktemp("data")
    with training(data) as studio:
        yield studio


def choose(visitor: Visitor, label: str, option: str) -> None:
    """Choose from a drop-down."""
    visitor.page.get_by_label(label, exact=True).click()
    visitor.page.get_by_role("option", name=option).click()


def simulate(visitor: Visitor, n: int) -> None:
    """Let the agent play on tasks to learn from."""
    visitor.go_watch()
    choose(visitor, "Task set", "mini-backend/train")
    visitor.page.get_by_label("Episodes").fill(str(n))
    visitor.button("Start").click()
    expect(visitor.page.locator(".batch")).to_contain_text("✓ done", timeout=PATIENCE_MS)


def go_train(visitor: Visitor, query: str = "") -> None:
    """Open the Train page and wait until it shows what is there."""
    visitor.go(f"/train{query}")
    expect(visitor.page.locator("#preview .panel")).to_be_visible()


def state(visitor: Visitor) -> Any:
    """The state of the open round."""
    return visitor.page.locator("#round .round .pill").first


def row(visitor: Visitor, name: str) -> Any:
    """A row of the list of rounds or of versions."""
    return visitor.page.locator("#history tbody tr, #versions tbody tr").filter(has_text=name)


def test_ten_episodes_become_a_version_that_can_be_served(studio: Studio, browser: Browser) -> None:
    visitor = Visitor(browser, studio.address)
    page = visitor.page
    simulate(visitor, 10)
    go_train(visitor)
    expect(page.locator("#round")).to_contain_text("No round is running")
    expect(page.locator("#preview")).to_contain_text(re.compile(r"Episodes of the log\s*10"))
    expect(page.locator("#served")).to_contain_text("embedded")
    page.get_by_role("spinbutton", name="Fresh episodes").fill("24")
    expect(page.locator("#preview")).to_contain_text(re.compile(r"Fresh, played first\s*24"))
    page.get_by_role("button", name="Expert settings").click()
    for label, value in SMALL.items():
        page.get_by_label(re.compile(f"^{label}")).fill(str(value))
    page.get_by_role("button", name="The same from the command line").click()
    expect(page.locator("#command code")).to_contain_text("--validation-n=8")
    visitor.button("Retrain").click()
    expect(state(visitor)).to_have_text("… running")

    visitor.button("Retrain").click()  # there is never a second one
    expect(page.locator(".toast-body.error")).to_contain_text("r0001")
    page.locator(".toast-close").first.click()
    visitor.button("Abort").click()
    expect(state(visitor)).to_have_text("□ stopped")
    expect(page.locator("#versions")).not_to_contain_text("v0001")
    visitor.button("Resume").click()
    expect(state(visitor)).to_have_text("… running")

    page.reload()
    expect(page.locator("#round h2")).to_have_text("Round r0001")
    other = Visitor(browser, studio.address, width=390)
    go_train(other)
    for one in (visitor, other):
        expect(state(one)).to_have_text("✓ done", timeout=PATIENCE_MS)
        expect(one.page.locator("#plots figure").first).to_be_visible()
        assert one.overflow() == []
    other.leave()

    expect(page.locator("#round .stages li.done")).to_have_count(8)
    figures = page.locator("#round .verdict tbody tr")
    expect(figures).to_have_count(2)
    for n, name in ((0, "embedded (parent)"), (1, "v0001 (child)")):
        expect(figures.nth(n)).to_contain_text(name)
        expect(figures.nth(n)).to_contain_text(re.compile(r"n/a|% n = \d+ \["))
    expect(row(visitor, "r0001").first).to_contain_text("embedded → v0001")
    serves_and_rolls_back(visitor)
    visitor.leave()


def serves_and_rolls_back(visitor: Visitor) -> None:
    """The new version is served if it was promoted, else by a click; and not after a roll-back."""
    page = visitor.page
    promoted = page.locator("#round .verdict .pill").inner_text() == "✓ promoted"
    served = page.locator("#served strong")
    expect(served).to_have_text(["v0001", "embedded"] if promoted else ["embedded"])
    if not promoted:
        page.get_by_role("button", name="Promote v0001").click()
    expect(served).to_have_text(["v0001", "embedded"])
    expect(row(visitor, "v0001").last).to_contain_text("✓ served for functions")
    visitor.go_watch()
    expect(page.get_by_label("Policy version")).to_have_value(re.compile("^v0001"))
    go_train(visitor)
    visitor.button("Roll back").click()
    expect(page.locator("#served strong")).to_have_text(["embedded"])
    expect(visitor.button("Roll back")).to_be_hidden()


def test_a_round_that_can_t_learn_says_so_and_is_compared(studio: Studio, browser: Browser) -> None:
    visitor = Visitor(browser, studio.address)
    page = visitor.page
    go_train(visitor)
    page.get_by_role("spinbutton", name="Fresh episodes").fill("0")
    choose(visitor, "Episodes of the log", "Of people")
    expect(page.locator("#preview .notice.error")).to_contain_text("Too few episodes")
    page.get_by_role("spinbutton", name="Fresh episodes").fill("")
    expect(page.locator("#preview")).to_contain_text("Fresh episodes: None was given")
    page.get_by_role("spinbutton", name="Fresh episodes").fill("0")
    expect(page.locator("#preview .panel")).to_be_visible()
    visitor.button("Retrain").click()
    expect(state(visitor)).to_have_text("! failed", timeout=PATIENCE_MS)
    expect(page.locator("#round .notice.error")).to_contain_text("Too few episodes")
    expect(page.locator("#served strong")).to_have_text(["embedded"])
    for name in ("r0001", "r0002"):
        page.get_by_role("button", name=f"Compare {name}").click()
        expect(page.get_by_role("button", name=f"Compare {name}")).to_have_attribute(
            "aria-pressed", "true"
        )
    compared = page.locator("#comparison table")
    expect(compared).to_contain_text("from_collaborator")
    expect(compared).to_contain_text("child: success")
    expect(compared).not_to_contain_text("critic_beta")
    visitor.leave()


def test_the_schedule_is_off_and_is_kept_when_it_is_set(studio: Studio, browser: Browser) -> None:
    visitor = Visitor(browser, studio.address)
    page = visitor.page
    go_train(visitor)
    page.locator("#schedule .label-wrap").click()
    expect(page.locator("#schedule-state .pill")).to_have_text("off")
    page.get_by_label("Every so many hours").check()
    page.get_by_label("Hours", exact=True).fill("1000")
    visitor.button("Save the schedule").click()
    expect(page.locator("#schedule-state .pill")).to_have_text("on")
    page.reload()
    page.locator("#schedule .label-wrap").click()
    expect(page.get_by_label("Every so many hours")).to_be_checked()
    page.get_by_label("Off", exact=True).check()
    visitor.button("Save the schedule").click()
    expect(page.locator("#schedule-state .pill")).to_have_text("off")
    visitor.leave()


def test_an_unknown_round_is_said_and_the_keyboard_reaches_everything(
    studio: Studio, browser: Browser
) -> None:
    visitor = Visitor(browser, studio.address)
    page = visitor.page
    go_train(visitor, "?round=r9999")
    expect(page.locator("#round .notice.error")).to_contain_text("r9999")
    expect(page.get_by_role("heading", level=1)).to_have_text("Train")
    page.locator("#history a").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#round h2")).to_have_text("Round r0002")
    expect(page).to_have_url(re.compile(r"round=r0002"))
    visitor.leave()


def test_stop_and_keep_ends_a_phase_and_a_version_comes_of_it(
    studio: Studio, browser: Browser
) -> None:
    visitor = Visitor(browser, studio.address)
    page = visitor.page
    go_train(visitor)
    choose(visitor, "Algorithm", "Rejection fine-tuning (rft)")
    page.get_by_role("spinbutton", name="Fresh episodes").fill("400")
    page.get_by_role("button", name="Expert settings").click()
    for label, value in {**SMALL, "Policy epochs": 1, "Validation n": 150}.items():
        page.get_by_label(re.compile(f"^{label}")).fill(str(value))
    expect(page.locator("#preview")).to_contain_text(re.compile(r"Fresh, played first\s*400"))
    visitor.button("Retrain").click()
    collect, evaluate = (page.locator(f'#round li[data-stage="{s}"]') for s in STOPPED)
    for stage, least in ((collect, r"^([3-9]\d|\d{3})/400$"), (evaluate, r"^[1-9]\d*/150$")):
        expect(stage.locator(".count")).to_have_text(re.compile(least), timeout=PATIENCE_MS)
        expect(visitor.button("Stop and keep")).to_be_enabled()
        visitor.button("Stop and keep").click()
        expect(stage).to_contain_text(re.compile("ends with what it has|ended early"))
        expect(stage).to_contain_text("ended early", timeout=PATIENCE_MS)
    expect(state(visitor)).to_have_text("✓ done", timeout=PATIENCE_MS)
    expect(collect.locator(".gave")).to_have_text(re.compile(r"fresh ([3-9]\d|[123]\d\d) "))
    expect(evaluate.locator(".gave")).to_have_text(re.compile(r"^compared \d+ of 150$"))
    expect(page.locator("#round .verdict")).to_contain_text("of 150 (ended early, as asked)")
    hovers_over_a_plot(visitor)
    visitor.leave()


def test_a_round_on_web_pages_runs_from_the_page(studio: Studio, browser: Browser) -> None:
    visitor = Visitor(browser, studio.address)
    page = visitor.page
    go_train(visitor)
    page.get_by_label("Web pages", exact=True).check()
    fresh = page.get_by_role("spinbutton", name="Fresh episodes")
    expect(fresh).to_have_value("160")
    expect(page.locator("#preview")).to_contain_text(re.compile(r"Fresh, played first\s*160"))
    page.get_by_label("Of which task set", exact=True).click()
    expect(page.get_by_role("option", name="Any")).to_be_visible()
    expect(page.get_by_role("option", name="mini-backend/train")).to_have_count(0)
    page.keyboard.press("Escape")
    fresh.fill("16")
    page.get_by_role("button", name="Expert settings").click()
    own = {"Critic epochs": "1", "Credit": "turn_sum", "Validation set": "mini-frontend/validation"}
    for label, default in own.items():
        expect(page.get_by_label(label)).to_have_value(default)
    for label, value in SMALL.items():
        page.get_by_label(re.compile(f"^{label}")).fill(str(value))
    expect(page.locator("#preview")).to_contain_text(re.compile(r"Fresh, played first\s*16"))
    visitor.button("Retrain").click()
    expect(state(visitor)).to_have_text("… running")
    expect(state(visitor)).to_have_text("✓ done", timeout=PATIENCE_MS)
    verdict = page.locator("#round .verdict")
    expect(verdict.locator("thead")).to_contain_text("Reward (")
    expect(verdict.locator("thead")).to_contain_text("All as wanted")
    for side in verdict.locator("tbody tr").all():
        expect(side).to_contain_text(re.compile(r"0\.\d{3} n = \d+ \[0\.\d{3}, [01]\.\d{3}\]"))
    expect(page.locator("#round .stages")).to_contain_text(re.compile(r"reward 0\.\d"))
    assert visitor.overflow() == []
    visitor.leave()


def hovers_over_a_plot(visitor: Visitor) -> None:
    """Where the pointer is, a plot tells what the update gave."""
    plot = visitor.page.locator("#plots figure svg").first
    plot.scroll_into_view_if_needed()
    expect(plot.locator(".reader")).to_be_hidden()
    plot.hover()
    expect(plot.locator(".reader")).to_be_visible()
    expect(plot.locator(".reader text")).to_have_text(
        re.compile(r"^update \d+: −?[\d.]+%?, smoothed −?[\d.]+%?$")
    )
    visitor.page.mouse.move(0, 0)
    expect(plot.locator(".reader")).to_be_hidden()

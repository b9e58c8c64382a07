"""A round's credit in a real browser: a tiny round is trained, and Sessions shows what it said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from sweet.services import Services
from sweet.store import RankedCandidate
from tests.trainer.studio import log_episodes, quick, settings, tiny_model
from tests.ui.studio import ATTACK, Arrive, Studio, running
from trainer.round import run_round

HOSTILE = f"{ATTACK}\nI WANT TO ANSWER:\ndef f(x):\n    return '{ATTACK}'"
MANY = [RankedCandidate(f"{n} {HOSTILE}", n + 1, 0.1 * n - 0.5, n % 2) for n in range(16)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose log has a round's credit, and a second critic's with hostile text."""
    folder = tmp_path_factory.mktemp("data")
    with Services(settings(folder, tiny_model(tmp_path_factory.mktemp("model")))) as services:
        log_episodes(services)
        run_round(services, quick(policy_least=4))
        for one in services.store.iter_episodes():
            services.store.add_candidates(one.episode.id, "another", dict.fromkeys((0, 1), MANY))
            services.store.add_advantages(one.episode.id, "another", {0: -0.75})
    return folder


@pytest.fixture(scope="module")
def studio(data: Path) -> Iterator[Studio]:
    with running(data) as studio:
        yield studio


@pytest.fixture(scope="module")
def episode(studio: Studio) -> str:
    with Services(settings(studio.data, studio.data / "unused")) as services:
        return next(services.store.iter_episodes()).episode.id


def strip(page: Page) -> Any:
    """The buttons of the strip over the episode."""
    return page.locator(".strip button")


def test_the_strip_leads_to_a_turn_and_its_candidates_open_by_key(
    arrive: Arrive, episode: str
) -> None:
    visitor = arrive()
    page = visitor.page
    visitor.go(f"/sessions?episode={episode}&critic=round+r0001")
    expect(strip(page)).to_have_count(2)
    expect(strip(page).first).to_have_attribute("aria-current", "step")
    expect(page.locator(".credit-strip")).to_contain_text("in the eyes of")
    strip(page).nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.locator(".replay .where")).to_have_text("Turn 2 of 2")
    expect(strip(page).nth(1)).to_have_attribute("aria-current", "step")
    expect(strip(page).first).not_to_have_attribute("aria-current", "step")
    assert "turn=2" in page.url
    turn = page.locator("#turn-1")
    expect(turn.locator(".message.agent > .credit")).to_contain_text("advantage")
    fold = turn.locator(".candidates")
    expect(fold.locator("li").first).to_be_hidden()
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(fold.locator("li").first).to_be_visible()
    expect(fold).to_contain_text("what was said")
    expect(fold).to_contain_text("chosen in")


def test_another_critic_is_chosen_at_the_same_turn_and_is_in_the_link(
    arrive: Arrive, episode: str
) -> None:
    visitor = arrive()
    page = visitor.page
    visitor.go(f"/sessions?episode={episode}")
    critic = page.get_by_label("in the eyes of")
    expect(critic).to_have_value("another")  # the latest
    expect(strip(page).nth(1)).to_have_attribute("aria-label", "Turn 2: advantage n/a")
    page.keyboard.press("End")
    expect(page.locator(".replay .where")).to_have_text("Turn 2 of 2")
    critic.select_option("round r0001 (sweet)")
    expect(strip(page).nth(1)).not_to_have_attribute("aria-label", "Turn 2: advantage n/a")
    expect(page.locator(".replay .where")).to_have_text("Turn 2 of 2")
    page.reload()
    expect(critic).to_have_value("round r0001")
    assert "critic=round+r0001" in page.url and "turn=2" in page.url
    visitor.go(f"/sessions?episode={episode}&critic={ATTACK}")
    expect(critic).to_have_value("another")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_sixteen_hostile_candidates_as_text(
    arrive: Arrive, episode: str, scheme: str
) -> None:
    visitor = arrive(width=390, color_scheme=scheme)
    page = visitor.page
    visitor.go(f"/sessions?episode={episode}&turn=2")
    rows = page.locator("#turn-1 .candidate")
    expect(rows).to_have_count(17)  # and what was said
    page.locator("#turn-1 .candidates summary").click()
    expect(rows.first).to_contain_text("<script>window.hit=1</script>")
    expect(rows.first).to_contain_text("×16")
    expect(rows.first.locator(".code .k").first).to_have_text("def")
    expect(page.locator("#turn-1").get_by_text("not among the draws")).to_be_visible()
    assert (
        page.evaluate(
            """() => [...document.querySelectorAll(".replay *")].filter(e =>
            !e.closest(".scroll, pre, .strip") && e.checkVisibility() &&
            e.getBoundingClientRect().right > innerWidth).map(e => e.className)"""
        )
        == []
    )


def test_neither_bars_nor_candidates_show_the_hidden_information(
    arrive: Arrive, episode: str
) -> None:
    visitor = arrive()
    page = visitor.page
    visitor.go(f"/sessions?episode={episode}&critic=round+r0001&turn=2")
    expect(strip(page)).to_have_count(2)
    assert not page.locator(".reference").count()
    before = page.content()
    page.get_by_label("training-time only").check()
    secret = page.locator("#hidden pre").inner_text().splitlines()[1].strip()
    assert secret and secret not in before

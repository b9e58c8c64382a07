"""The pictures of docs/images, taken of the real app with the embedded agent.

`python -m scripts.screenshots` starts the studio on an empty data folder, plays an episode in a
headless Chromium, answering as the scripted collaborator does, has that collaborator play one
about a web page, and shoots the pages light and dark, wide and narrow.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from sweet.browser import chromium_path
from sweet.tasks.mini_talk import reply_to
from sweet.types import MAX_TURNS, HiddenInfo

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
LOOKS = (("light", 1440), ("dark", 1440), ("light", 390), ("dark", 390))
PATIENCE_MS = 60_000
ROUND_MS = 3_600_000
ATTEMPTS = 12
DRAWN_VERSIONS = 3
FRESH = "120"


@contextmanager
def studio() -> Iterator[str]:
    """The address of a studio with nothing in its log."""
    with tempfile.TemporaryDirectory() as data:
        env = {**os.environ, "SWEET_DATA": data, "SWEET_PORT": "0"}
        command = [sys.executable, "app.py"]
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout
            found = (re.search(r"runs at (\S+?)/?\n", line) for line in process.stdout)
            yield next(address[1] for address in found if address)
        finally:
            process.kill()
            process.wait()


def play(page: Page, address: str) -> str:
    """The id of an episode that was played to its end, the first that succeeded if one did."""
    for _ in range(ATTEMPTS):
        page.goto(address)
        expect(page.locator("#setup .task")).to_be_visible()
        page.get_by_role("button", name="Random task", exact=True).click()
        page.get_by_role("button", name="Start", exact=True).click()
        answer_all(page)
        if "success" in page.locator(".result .outcome").inner_text():
            break
    return page.url.split("episode=")[1]


def answer_all(page: Page) -> None:
    """Answer each question of the agent from the card, until there is a result."""
    spoken = page.locator("#transcript .message.agent:has(.tools)")  # once it may be answered
    for turn in range(1, MAX_TURNS + 1):
        expect(spoken).to_have_count(turn)
        if page.locator(".result").count():
            break
        hidden = HiddenInfo(page.locator("#reference pre").inner_text())
        question = spoken.last.locator(".body").inner_text()
        page.get_by_label("Your answer to the agent").fill(reply_to(question, hidden, (), turn))
        page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".result")).to_be_visible()


def draw(page: Page, address: str) -> str:
    """The id of an episode about a web page, the first with enough versions if one has them."""
    for _ in range(ATTEMPTS):
        page.goto(address)
        expect(page.get_by_label("Task", exact=True)).not_to_have_value("")
        page.get_by_label("Task set").click()
        page.get_by_role("option", name="mini-frontend/test").click()
        expect(page.locator("#setup .task")).to_contain_text("mini-frontend/test")
        page.get_by_label("Watch: Simulator (scripted)").check()
        page.get_by_role("button", name="Random task", exact=True).click()
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.locator(".result .outcome")).to_be_visible()
        if page.locator("#figures tbody tr").count() >= DRAWN_VERSIONS:
            break
    return page.url.split("episode=")[1]


def retrain(page: Page, address: str) -> None:
    """A round of training, smaller than the one offered, from its start to its end."""
    page.goto(address + "/train")
    expect(page.locator("#preview .panel")).to_be_visible()
    page.get_by_role("spinbutton", name="Fresh episodes").fill(FRESH)
    page.get_by_role("button", name="Retrain", exact=True).click()
    expect(page.locator("#round .verdict")).to_be_visible(timeout=ROUND_MS)


def compare(page: Page, address: str) -> str:
    """The path of a comparison that waits for a vote."""
    page.goto(address + "/compare")
    expect(page.get_by_label("The other version")).not_to_have_value("")
    page.get_by_label("Watch: Simulator (scripted)").check()
    page.get_by_role("button", name="Start both", exact=True).click()
    expect(page.locator("#ballot")).to_contain_text("Which side is better?")
    return page.url.removeprefix(address)


def shoot(
    browser: Browser,
    address: str,
    episode: str,
    drawn: str,
    batch: str,
    comparison: str,
    scheme: str,
    width: int,
) -> None:
    """Each page in one look."""
    viewport = {"width": width, "height": 900 if width > 640 else 844}
    context = browser.new_context(viewport=viewport, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    shown = {
        "start": ("/", "#setup .task"),
        "collaborate": (f"/?episode={episode}", ".result .tests"),
        "design": (f"/?episode={drawn}", "#design .version:not([hidden]) iframe"),
        "watch": (batch, ".batch"),
        "sessions": ("/sessions", "#table table"),
        "replay": (f"/sessions?episode={episode}&turn=2", ".replay"),
        "train": ("/train", "#plots .plots"),
        "compare": (comparison, "#ballot"),
        "leaderboard": ("/leaderboard", "#board .board"),
    }
    for name, (path, wanted) in shown.items():
        page.goto(address + path)
        expect(page.locator(wanted).first).to_be_visible()
        page.mouse.move(0, 0)
        page.screenshot(path=IMAGES / f"{name}-{scheme}-{width}.png")
        if name == "collaborate":
            page.locator(".result").evaluate("result => result.scrollIntoView()")
            page.screenshot(path=IMAGES / f"result-{scheme}-{width}.png")
        if name == "design":
            wanted_picture = page.locator("#design img:visible").first
            expect(wanted_picture).to_have_js_property("complete", True)
            page.locator("#design").evaluate("design => design.scrollIntoView()")
            page.screenshot(path=IMAGES / f"{name}-{scheme}-{width}.png")
        if name == "train":
            page.locator("#round").evaluate("round => round.scrollIntoView()")
            page.screenshot(path=IMAGES / f"round-{scheme}-{width}.png")
    context.close()


def main() -> None:
    """Take all pictures."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=PATIENCE_MS)
    with studio() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_path(),
            args=["--no-sandbox", "--disable-background-networking"],
        )
        page = browser.new_page()
        episode = play(page, address)
        drawn = draw(page, address)
        page.goto(address + "/watch")
        expect(page.get_by_label("Policy version")).not_to_have_value("")
        page.get_by_label("Episodes").fill("24")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.locator(".batch")).to_contain_text("done")
        batch = page.url.removeprefix(address)
        retrain(page, address)
        comparison = compare(page, address)
        for scheme, width in LOOKS:
            shoot(browser, address, episode, drawn, batch, comparison, scheme, width)
        browser.close()
    print(f"The pictures are in {IMAGES}.")


if __name__ == "__main__":
    main()

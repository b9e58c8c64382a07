"""People who make web pages, at real browsers on the real app, with a model behind a server."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from evaluators.render.answers import missing_assets
from tests.ui.designing import ATTACKS, SHOWN, Designer, drawing
from tests.ui.studio import Studio, arriving, running

pytestmark = pytest.mark.skipif(bool(missing_assets()), reason="make setup fetches the assets")
Arrive = Callable[..., Designer]


@pytest.fixture(scope="module")
def canary() -> Iterator[list[str]]:
    """Whatever is asked of a server that nobody has any business with; the first is its address."""
    heard: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_error(404)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    heard.append(f"http://127.0.0.1:{server.server_address[1]}")
    yield heard
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def studio(canary: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    data = tmp_path_factory.mktemp("data")
    with drawing(canary[0]) as agent, running(data, 0, **agent) as studio:
        yield studio


@pytest.fixture
def arrive(studio: Studio, browser: Browser) -> Iterator[Arrive]:
    with arriving(browser, studio.address, Designer) as arrive:
        yield arrive


def test_a_person_makes_a_page_in_three_versions_sees_the_score_and_finds_them_again(
    arrive: Arrive, studio: Studio
) -> None:
    person = arrive()
    page = person.page
    episode = person.begin_page()
    expect(person.shown_page().get_by_role("heading", name="First")).to_be_visible()
    expect(page.locator(f'{SHOWN} img[alt="The page that is wanted"]').first).to_be_visible()
    person.say("The header should be green.")
    person.expect_turns(2)
    expect(person.shown_page().get_by_role("heading", name="Second")).to_be_visible()
    person.say("And add a picture.")
    person.expect_turns(3)
    expect(page.locator("#design .where")).to_have_text("Version 3 of 3")
    expect(person.shown_page().get_by_role("heading", name="Third")).to_be_visible()
    rows = page.locator("#figures tbody tr")
    expect(rows).to_have_count(3)
    for name in ("Overall", "Blocks", "Text", "Position", "Color", "Size", "Layout"):
        cell = rows.nth(2).locator(f'[data-label="{name}"]')
        expect(cell).to_have_text(re.compile(r"^[01]\.\d\d$"))
    expect(page.locator(".result .outcome")).to_contain_text("reward")

    page.get_by_role("link", name="in the log").click()
    expect(page.locator("#replay")).to_contain_text(episode)
    for turn in (1, 2, 3):
        picture = page.locator(f"#turn-{turn} .as-drawn img")
        expect(picture).to_be_visible()
        expect(picture).to_have_js_property("complete", True)
        assert picture.evaluate("e => e.naturalWidth") == 1280
        page.keyboard.press("ArrowRight")
    expect(page.locator("#replay .code").first).to_be_hidden()
    assert len(list((studio.data / "pages").rglob("*-1280.png"))) >= 4


def test_versions_views_and_widths_are_a_click_or_a_key_away(arrive: Arrive) -> None:
    person = arrive()
    page = person.page
    person.begin_page()
    person.say("Another colour.")
    person.expect_turns(2)
    person.button("Version before").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#design .where")).to_have_text("Version 1 of 2")
    expect(person.button("Version before")).to_be_disabled()
    expect(person.shown_page().get_by_role("heading", name="First")).to_be_visible()
    page.locator("#transcript").get_by_role("button", name="Show version 2").click()
    expect(page.locator("#design .where")).to_have_text("Version 2 of 2")
    person.button("Code").click()
    expect(page.locator(f"{SHOWN} .view.code")).to_contain_text('class="bg-green-800 p-4"')
    person.button("Diff").click()
    expect(page.locator(f"{SHOWN} .removed").first).to_contain_text("bg-red-800")
    expect(page.locator(f"{SHOWN} .added").first).to_contain_text("bg-green-800")
    for name in ("Slider", "Overlay", "Difference"):
        person.button(name).click()
        expect(person.button(name)).to_have_attribute("aria-pressed", "true")
        expect(page.locator(f"{SHOWN} .view.{name.lower()} .both img")).to_have_count(2)
    person.button("Preview").click()
    for width in (375, 768, 1280):
        person.button(str(width)).click()
        shown = person.shown_page().locator("html")
        expect(shown).to_have_js_property("clientWidth", width)
        source = page.locator(f'{SHOWN} .preview img[alt="The page that is wanted"]')
        expect(source).to_have_attribute("src", re.compile(rf"-{width}\.png$"))
    person.button("768").click()
    page.reload()
    person.expect_turns(2)
    expect(page.locator("#design .where")).to_have_text("Version 2 of 2")


def test_a_version_is_opened_sealed_and_downloaded_as_it_was_written(
    arrive: Arrive, tmp_path: Path
) -> None:
    person = arrive()
    page = person.page
    person.begin_page()
    with person.context.expect_page() as opened:
        page.get_by_role("link", name="Open sealed in a new tab").click()
    expect(opened.value.get_by_role("heading", name="First")).to_be_visible()
    background = opened.value.locator("header").evaluate("e => getComputedStyle(e).backgroundColor")
    assert background == "rgb(153, 27, 27)"
    answer = person.context.request.get(opened.value.url)
    assert "sandbox; default-src 'none'" in answer.headers["content-security-policy"]
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").first.click()
    download.value.save_as(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert text.startswith("<html>\n<link href=") and text.endswith("</html>")


def test_while_it_is_drawn_the_code_grows_and_the_last_version_stays(arrive: Arrive) -> None:
    person = arrive()
    page = person.page
    person.begin_page()
    person.say("SLOWLY please.")
    growing = page.locator("#live .growing")
    expect(growing).to_contain_text("<html>")
    expect(person.shown_page().get_by_role("heading", name="First")).to_be_visible()
    before = len(growing.inner_text())
    page.wait_for_function(
        "n => (document.querySelector('#live .growing')?.innerText.length ?? 0) > n", arg=before
    )
    expect(page.locator("#design iframe")).to_have_count(1)
    person.expect_turns(2)
    expect(person.shown_page().get_by_role("heading", name="Second")).to_be_visible()


def test_a_message_without_a_page_is_a_version_that_says_so(arrive: Arrive) -> None:
    person = arrive()
    person.begin_page()
    person.say("NOTHING")
    person.expect_turns(2)
    expect(person.page.locator(SHOWN)).to_contain_text("no <html> document")
    expect(person.page.locator("#transcript")).to_contain_text("Which colour would you like?")
    person.button("Version before").click()
    expect(person.shown_page().get_by_role("heading", name="First")).to_be_visible()


def test_of_twelve_attacks_none_runs_calls_home_or_leaves_its_frame(
    arrive: Arrive, canary: list[str]
) -> None:
    assert len(ATTACKS) == 12
    person = arrive()
    page = person.page
    person.begin_page()
    person.say("ATTACK")
    person.expect_turns(2)
    frame = person.shown_page()
    expect(frame.get_by_role("heading", name="Attack")).to_be_visible()
    where = page.url
    frame.locator("#send").click()
    frame.locator("#go").click()
    with person.context.expect_page() as opened:
        page.get_by_role("link", name="Open sealed in a new tab").click()
    expect(opened.value.get_by_role("heading", name="Attack")).to_be_visible()
    opened.value.close()
    for view in ("Code", "Diff", "Difference", "Preview"):
        person.button(view).click()
    expect(page.locator("#figures tbody tr")).to_have_count(2)
    page.get_by_role("link", name="in the log").click()
    expect(page.locator("#turn-1 .as-drawn img")).to_be_visible()
    page.keyboard.press("End")
    page.locator("#turn-2").get_by_text("Source").click()
    expect(page.locator("#turn-2 .code")).to_contain_text("top.hit")
    assert where.startswith(person.address)
    assert canary[1:] == []
    assert page.evaluate("window.hit") is None
    person.forget_refusals(canary[0])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_out_on_a_phone(arrive: Arrive, scheme: str) -> None:
    person = arrive(width=390, color_scheme=scheme)
    person.begin_page()
    expect(person.shown_page().get_by_role("heading", name="First")).to_be_visible()
    for view in ("Code", "Diff", "Slider", "Overlay", "Difference", "Preview"):
        person.button(view).click()
        assert person.overflow() == []


def test_a_batch_of_pages_runs_from_the_watch_page(arrive: Arrive) -> None:
    person = arrive()
    page = person.page
    person.go_watch()
    page.get_by_label("Task set").click()
    page.get_by_role("option", name="mini-frontend/validation").click()
    page.get_by_label("Episodes").fill("2")
    person.button("Start").click()
    expect(page.locator("#progress")).to_contain_text("2/2", timeout=120_000)
    expect(page.locator("#progress")).to_contain_text(re.compile(r"Mean reward\s*0\.\d\d"))
    expect(page.locator("#episodes .pill").first).to_contain_text("alike")
    expect(page.locator("#progress")).to_contain_text(re.compile(r"All as wanted\s*\d of 2"))
    pictures = page.locator("#episodes td.thumb img")
    expect(pictures).to_have_count(2)
    for one in pictures.all():
        expect(one).to_have_js_property("naturalWidth", 1280)
    expect(page.locator("#episodes")).not_to_contain_text("Tests passed")
    page.locator("#episodes tbody a").first.click()
    expect(page.locator("#turn-1 .as-drawn img")).to_be_visible()
    expect(page.locator("#turn-1 .message.collaborator")).not_to_be_empty()

"""People at real browsers on the real app, whose agent's model is a real HTTP server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.ui.studio import ATTACK, Arrive, Studio, Visitor, running, talking


@pytest.fixture(scope="module")
def agent() -> Iterator[dict[str, str]]:
    with talking() as env:
        yield env


@pytest.fixture(scope="module")
def studio(agent: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running(tmp_path_factory.mktemp("data"), 0, **agent) as studio:
        yield studio


def exported(visitor: Visitor, shape: str, folder: Path) -> list[dict]:
    """The episodes of an export of what is filtered."""
    visitor.page.get_by_label("Export what is filtered").click()
    visitor.page.get_by_role("option", name=shape).click()
    visitor.button("Export").click()
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("link", name="Download").or_(
            visitor.page.get_by_role("button", name="Download")
        ).first.click()
    path = folder / "export.jsonl"
    download.value.save_as(path)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_person_plays_reloads_in_the_middle_finds_the_episode_and_exports_it(
    arrive: Arrive, tmp_path: Path
) -> None:
    visitor = arrive()
    page = visitor.page
    episode = visitor.begin()
    expect(page.locator("#aside")).to_contain_text("Only you see this")
    expect(page.locator("#reference")).to_contain_text("def ")
    visitor.say("The aardvark is five.")
    visitor.expect_turns(2)
    page.reload()
    visitor.expect_turns(2)
    assert visitor.episode_id == episode
    expect(page.locator("#transcript")).to_contain_text("Heard “The aardvark is five.”")
    visitor.say("Nothing more.")
    visitor.expect_turns(3)
    expect(page.locator(".result .outcome")).to_contain_text("✗ fail")
    expect(page.locator(".tests")).to_contain_text("◷ time-out")
    expect(page.get_by_label("Your answer to the agent")).to_be_hidden()

    page.get_by_role("link", name="Sessions").click()
    page.get_by_label("Search").fill("aardvark")
    expect(page.locator("#table")).to_contain_text("1 episode")
    lines = exported(visitor, "Episodes (JSONL)", tmp_path)
    assert [line["id"] for line in lines] == [episode]
    assert "The aardvark is five." in json.dumps(lines)
    lines = exported(visitor, "ColBench’s shape (JSONL)", tmp_path)
    assert [len(line["dialogue_history"]) for line in lines] == [6]


def test_a_killed_server_takes_the_episode_up_where_it_was(
    agent: dict[str, str], browser: Browser, tmp_path: Path
) -> None:
    with running(tmp_path, 0, **agent) as studio:
        visitor = Visitor(browser, studio.address)
        visitor.begin()
        visitor.say("Before the crash.")
        visitor.expect_turns(2)
        url, port = visitor.page.url, studio.port
        studio.kill()
    visitor.context.close()
    with running(tmp_path, port, **agent) as studio:
        visitor = Visitor(browser, studio.address)
        visitor.page.goto(url)
        visitor.expect_turns(2)
        visitor.say("After the crash.")
        visitor.expect_turns(3)
        expect(visitor.page.locator(".message.collaborator")).to_have_count(2)
        visitor.leave()


def test_stopping_keeps_the_episode_and_it_can_go_on_or_end(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    visitor.begin_own("SLOW def f(x)")
    expect(page.locator("#live")).to_contain_text("slowly slowly")
    expect(visitor.button("Send")).to_be_disabled()
    visitor.button("Stop").click()
    expect(visitor.button("Let the agent go on")).to_be_visible()
    expect(page.locator("#transcript .message")).to_have_count(0)
    visitor.button("Let the agent go on").click()
    expect(page.locator("#live")).to_contain_text("slowly slowly")
    page.reload()
    expect(page.locator("#live")).to_contain_text("slowly slowly")
    visitor.button("End episode").click()
    expect(page.locator(".result")).to_contain_text("□ stopped")


def test_a_message_is_edited_and_retried_in_forks(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    first = visitor.begin()
    visitor.say("Five.")
    visitor.expect_turns(2)
    page.locator(".message.collaborator").get_by_role("button", name="Edit").click()
    page.get_by_label("What the reply should have been").fill("Six, I meant.")
    visitor.button("Save and go on from here").click()
    expect(page.locator("#transcript")).to_contain_text("Heard “Six, I meant.”")
    expect(page.locator("#transcript")).not_to_contain_text("Five.")
    second = visitor.episode_id
    assert second != first
    visitor.expect_turns(2)
    visitor.button("Retry").last.click()
    expect(page).not_to_have_url(f"{visitor.address}/?episode={second}")
    visitor.expect_turns(2)
    visitor.go(f"/sessions?episode={first}")
    expect(page.locator("#replay")).to_contain_text("went on in")


def test_feedback_on_a_turn_is_there_after_a_reload(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    visitor.begin()
    visitor.button("Like").click()
    expect(visitor.button("Like")).to_have_attribute("aria-pressed", "true")
    expect(visitor.button("Like")).to_be_focused()
    visitor.button("Comment").click()
    page.get_by_label("unclear").check()
    page.locator("#note-0 textarea").fill("Ask for one thing.")
    visitor.button("Save comment").click()
    expect(page.locator(".said")).to_contain_text("Ask for one thing.")
    page.reload()
    expect(page.locator(".said")).to_contain_text("✓ liked unclear Ask for one thing.")
    visitor.button("Dislike").click()
    expect(page.locator(".said")).to_contain_text("✗ disliked")


def test_a_failed_turn_says_why_and_offers_a_retry(arrive: Arrive) -> None:
    visitor = arrive()
    visitor.begin_own("FAILING def f(x)")
    expect(visitor.page.get_by_role("alert")).to_contain_text("the key is wrong <script>")
    expect(visitor.button("Retry the turn")).to_be_visible()
    visitor.button("Retry the turn").click()
    expect(visitor.page.locator(".result")).to_contain_text("The turn failed")


def test_the_end_of_an_own_task_is_rated_by_the_person(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    visitor.begin_own("Something new. def f(x)")
    visitor.expect_turns(1)
    visitor.say("One.")
    visitor.expect_turns(2)
    visitor.say("Two.")
    expect(page.locator(".result")).to_contain_text("your word counts")
    page.get_by_label("Good", exact=True).check()
    visitor.button("Save grade").click()
    expect(page.locator(".result .outcome")).to_contain_text("✓ rated good")
    page.reload()
    expect(page.get_by_label("Good", exact=True)).to_be_checked()


def test_hostile_text_is_only_text_on_every_page(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    visitor.begin_own(f"ATTACK {ATTACK}")
    visitor.expect_turns(1)
    visitor.say(ATTACK[:60])
    visitor.expect_turns(2)
    expect(page.locator("#stage")).to_contain_text("<script>window.hit=1</script>")
    visitor.button("Comment").first.click()
    page.locator("#note-0 [name=own]").fill(ATTACK[:150])
    page.locator("#note-0 textarea").fill(ATTACK)
    visitor.button("Save comment").click()
    expect(page.locator(".said")).to_contain_text("<script>")
    assert page.locator(".studio :is(img, svg, iframe, script)").count() == 0
    episode = visitor.episode_id
    for path in (f"/?episode={episode}", f"/sessions?episode={episode}&turn=2"):
        visitor.go(path)
        expect(page.locator(".message.agent").last).to_contain_text("<script>")
        assert page.locator(".studio :is(img, svg, iframe, script)").count() == 0
    visitor.go("/sessions")
    expect(page.locator("#table")).to_contain_text("<script>")
    assert page.locator(".studio :is(img, svg, iframe, script)").count() == 0


@pytest.mark.parametrize("query", [ATTACK, "%s", '"', "' OR 1=1 --", "AND", "*", "ü 日本", "\\"])
def test_any_search_is_taken(arrive: Arrive, query: str) -> None:
    visitor = arrive()
    visitor.go("/sessions")
    expect(visitor.page.locator("#table .count")).to_be_visible()
    visitor.page.get_by_label("Search").fill(query)
    expect(visitor.page).to_have_url(re.compile("text="))


def test_the_log_is_filtered_sorted_paged_and_linked(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    visitor.begin()
    visitor.say("The zebra crosses.")
    visitor.expect_turns(2)
    visitor.go("/sessions?text=zebra")
    expect(page.get_by_label("Search")).to_have_value("zebra")
    expect(page.locator("#table .count")).to_have_text("1 episode")
    page.get_by_text("Filters and sorting").click()
    page.get_by_label("Outcome").click()
    page.get_by_role("option", name="Success").click()
    expect(page.locator("#table")).to_contain_text("No episode matches")
    visitor.button("Clear search and filters").click()
    expect(page.locator("#table tbody tr").first).to_be_visible()
    expect(page.get_by_label("Search")).to_have_value("")
    visitor.button("Turns").click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Turns")
    visitor.button("Turns ↓").click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Turns")
    page.get_by_label("From").fill("not a date")
    page.get_by_label("From").press("Enter")
    expect(page.get_by_text("not a date")).to_be_visible()


def test_a_replay_is_walked_with_keys_and_linked_by_turn(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    episode = visitor.begin()
    visitor.say("One.")
    visitor.expect_turns(2)
    visitor.go(f"/sessions?episode={episode}&turn=2")
    where = page.locator(".replay .where")
    expect(where).to_have_text("Turn 2 of 2")
    for key, text in (
        ("k", "1"),
        ("ArrowRight", "2"),
        ("ArrowLeft", "1"),
        ("End", "2"),
        ("Home", "1"),
    ):
        page.keyboard.press(key)
        expect(where).to_have_text(f"Turn {text} of 2")
    expect(page.locator(".replay .message.agent:visible")).to_have_count(1)
    assert page.url.endswith("turn=1")
    page.keyboard.press("j")
    page.reload()
    expect(where).to_have_text("Turn 2 of 2")
    expect(page.locator(".replay")).to_contain_text("advantage n/a")
    visitor.button("← Back to the log").click()
    search = page.get_by_label("Search")
    search.fill("kjp")
    expect(search).to_have_value("kjp")


def test_the_hidden_reference_is_behind_a_switch(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    episode = visitor.begin()
    secret = page.locator("#reference pre").inner_text().splitlines()[1].strip()
    visitor.go(f"/sessions?episode={episode}")
    expect(page.locator(".replay")).to_be_visible()
    assert secret not in page.content()
    page.get_by_label("training-time only").check()
    expect(page.locator("#hidden")).to_contain_text(secret)
    page.get_by_label("training-time only").uncheck()
    expect(page.locator("#hidden")).not_to_contain_text(secret)


def test_a_batch_is_watched_and_found_again_after_a_reload(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    visitor.go_watch()
    page.get_by_label("Episodes").fill("4")
    visitor.button("Start").click()
    expect(page.locator(".batch")).to_contain_text("/4")
    page.reload()
    expect(page.locator(".batch [role=status]")).to_have_text("4/4", timeout=90_000)
    expect(page.locator(".batch")).to_contain_text("✓ done")
    expect(page.locator("#episodes tbody tr")).to_have_count(4)
    page.locator("#episodes a").first.click()
    expect(page.locator(".replay")).to_contain_text("Simulator (scripted)")


def test_a_batch_is_stopped_and_keeps_what_is_done(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    visitor.go_watch()
    page.get_by_label("Episodes").fill("2000")
    page.get_by_label("At once").fill("1")
    visitor.button("Start").click()
    visitor.button("Stop and keep what is done").click()
    expect(page.locator(".batch")).to_contain_text("□ stopped")
    visitor.button("Stop and keep what is done").wait_for(state="hidden")


def test_a_wrong_number_is_refused_in_words(arrive: Arrive) -> None:
    visitor = arrive()
    visitor.go_watch()
    visitor.page.get_by_label("At once").fill("1000")
    visitor.button("Start").click()
    expect(visitor.page.get_by_text("choose a whole number from 1 to 64")).to_be_visible()


def test_tasks_are_searched_and_drawn(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    visitor.go()
    expect(page.locator("#setup .task")).to_be_visible()
    page.get_by_label("Search the tasks").fill("bike fee")
    expect(page.locator("#setup .task")).to_contain_text("bike fee")
    page.get_by_label("Search the tasks").fill("nosuchwordanywhere")
    expect(page.locator("#setup")).to_contain_text("No task matches")
    visitor.button("Random task").click()
    expect(page.locator("#setup .task")).to_be_visible()
    expect(page.locator("#setup")).to_contain_text("It knows only ColBench-Mini")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_every_page_without_scrolling_sideways(arrive: Arrive, scheme: str) -> None:
    visitor = arrive(width=390, color_scheme=scheme)
    page = visitor.page
    visitor.begin()
    assert visitor.overflow() == []
    visitor.say("x" * 300)
    visitor.expect_turns(2)
    visitor.say("Done.")
    visitor.expect_turns(3)
    expect(page.locator(".tests")).to_be_visible()
    assert visitor.overflow() == []
    pages = {
        f"/sessions?episode={visitor.episode_id}&turn=3": ".replay .tests",
        "/sessions": "#table table",
        "/watch": "#earlier .notice, #earlier table",
        "/": "#setup .task",
    }
    for path, shown in pages.items():
        visitor.go(path)
        expect(page.locator("h1")).to_have_count(1)
        expect(page.locator(shown)).to_be_visible()
        assert visitor.overflow() == [], path
    assert page.evaluate("document.body.classList.contains('dark')") == (scheme == "dark")


def test_the_choice_of_light_or_dark_is_kept(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    visitor.go()
    visitor.button("Dark mode").click()
    expect(page.locator("body.dark")).to_have_count(1)
    visitor.go("/watch")
    expect(visitor.button("Light mode")).to_be_visible()
    expect(page.locator("body.dark")).to_have_count(1)


def test_an_unknown_episode_says_so(arrive: Arrive) -> None:
    visitor = arrive()
    visitor.go("/?episode=nosuch")
    expect(visitor.page.get_by_text("There is no episode")).to_be_visible()
    expect(visitor.button("Start")).to_be_visible()
    visitor.go("/sessions?episode=nosuch")
    expect(visitor.page.locator("#replay")).to_contain_text("No such episode")


def test_the_log_and_the_settings_are_not_served(studio: Studio) -> None:
    for name in ("sweet.db", "sweet.toml", "policies/promotions.jsonl"):
        path = studio.data / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text("secret")
        for route in ("/gradio_api/file=", "/file="):
            answer = httpx.get(f"{studio.address}{route}{path}")
            assert answer.status_code in (403, 404), f"{route}{name}"


def test_every_answer_forbids_loading_from_elsewhere(studio: Studio) -> None:
    for path in ("/", "/sessions", "/watch", "/config"):
        policy = httpx.get(studio.address + path).headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "http" not in policy

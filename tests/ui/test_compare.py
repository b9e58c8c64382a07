"""People who compare two versions in real browsers on the real app."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from sweet.registry import Registry
from sweet.services import PERSON
from sweet.store import Choice, EpisodeStore
from sweet.types import Action, StopReason
from tests.sweet.engines.server import DONE, USAGE, Handler, piece, refuses, serving
from tests.ui.designing import MARK, Designer
from tests.ui.designing import page as web_page
from tests.ui.studio import Studio, Visitor, arriving, running

Arrive = Callable[..., Designer]
NAMES = ("v0001", "v0002")
KNOWN: dict[str, str] = {}
"""The right answers that the first version knows, by the task's description."""


def talk(handler: Handler, body: dict[str, Any]) -> None:
    """A question, then an answer that is the version's own; some words of the task change that."""
    messages, model = body["messages"], body["model"]
    everything = " ".join(m["content"] for m in messages)
    said = [m["content"] for m in messages if m["role"] == "user"]
    asked = sum(m["role"] == "assistant" for m in messages)
    number = NAMES.index(model) + 1
    if "BREAKS" in everything and number == 2:
        return refuses(503, "the second model is away")(handler, body)
    if "UNEVEN" in everything and number == 1:
        return handler.send_events(_slowly(handler))
    text = f"Heard “{said[-1][-60:]}”. What is it?"
    if "NAMES" in everything:
        text = f"I am {model}, at your service. What is it?"
    if asked:
        name = (re.findall(r"def (\w+)\(", everything) or ["f"])[0]
        wrong = f"def {name}(*args):\n    same = 1\n    return {number}"
        right = [code for task, code in KNOWN.items() if task in everything and number == 1]
        text = f"I WANT TO ANSWER:\n{(right or [wrong])[0]}"
    if "ailwind" in everything:
        drawn = web_page(("red", "green")[number - 1], "Yes" if asked else "First")
        text = f"{MARK}\n```html\n{drawn}\n```" if asked else f"Here it is.\n{drawn}"
    words = re.findall(r"\s*\S+", text)
    handler.send_events([*map(piece, words), piece("", "stop"), USAGE, DONE])


def _slowly(handler: Handler) -> Iterator[bytes]:
    yield piece("slow")
    handler.server.released.wait()
    yield from (piece("", "stop"), USAGE, DONE)


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    data, adapter = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("adapter")
    (adapter / "adapter_config.json").write_text("{}")
    (adapter / "adapter_model.safetensors").write_bytes(b"weights")
    registry = Registry(data / "policies", [])
    assert tuple(registry.register(adapter, "small").id for _ in NAMES) == NAMES
    registry.promote(NAMES[1])
    with serving(talk) as server:
        env = {"SWEET_AGENT__BASE_URL": server.base_url, "SWEET_AGENT__MODEL": "small"}
        with running(data, 0, **env) as studio:
            yield studio


@pytest.fixture(scope="module")
def store(studio: Studio) -> Iterator[EpisodeStore]:
    with EpisodeStore.open(studio.data / "sweet.db") as store:
        yield store


@pytest.fixture
def arrive(studio: Studio, browser: Browser) -> Iterator[Arrive]:
    with arriving(browser, studio.address, Designer) as arrive:
        yield arrive


def go(visitor: Visitor) -> None:
    """Open the page and wait until something can be started."""
    visitor.go("/compare")
    expect(visitor.page.get_by_label("The other version")).not_to_have_value("")
    expect(visitor.page.get_by_label("Task", exact=True)).not_to_have_value("")


def begin_own(visitor: Visitor, description: str) -> None:
    go(visitor)
    visitor.page.get_by_role("tab", name="Your own task").click()
    visitor.page.get_by_label("What do you want?").fill(description)
    visitor.button("Chat with both").click()
    expect(visitor.page.locator("#stage .task")).to_be_visible()


def say(visitor: Visitor, text: str) -> None:
    visitor.page.get_by_label("Your answer to both").fill(text)
    visitor.button("Send to both").click()


def expect_turns(visitor: Visitor, n: int) -> None:
    """Both sides have spoken `n` times, and nobody speaks."""
    expect(visitor.page.locator("ol.duo .message.agent")).to_have_count(2 * n)
    expect(visitor.button("Stop")).to_be_hidden()


def comparison_of(visitor: Visitor) -> str:
    expect(visitor.page).to_have_url(re.compile(r"comparison=\w+"))
    found = re.search(r"comparison=(\w+)", visitor.page.url)
    assert found
    return found[1]


def ballot(visitor: Visitor) -> Any:
    return visitor.page.locator("#ballot")


def finished(store: EpisodeStore, task_id: str, policy_id: str, says: str) -> str:
    """A session that is over, straight into the log."""
    episode = store.start_episode(task_id, policy_id, PERSON, 7)
    store.append_action(episode.id, 0, Action(says, says, True, says))
    store.finish(episode.id, StopReason.ANSWERED, says)
    return episode.id


def a_task(store: EpisodeStore, number: int = 0) -> str:
    return store.tasks("mini-backend", "test", limit=number + 1)[number].id


def test_a_person_chats_with_both_votes_blind_and_sees_who_was_who(
    arrive: Arrive, store: EpisodeStore
) -> None:
    visitor = arrive()
    page = visitor.page
    go(visitor)
    visitor.button("Start both").click()
    expect_turns(visitor, 1)
    expect(page.locator("#aside")).to_contain_text("Only you see this")
    expect(page.locator("#reference")).to_contain_text("def ")
    say(visitor, "It is five.")
    expect(page.locator(".to-both .message.collaborator")).to_have_count(1)
    expect(ballot(visitor)).to_contain_text("Which side is better?", timeout=90_000)
    expect(page.locator(".made .tests tr.differs").first).to_contain_text("≠ differs")
    expect(page.locator(".made .row.differs")).to_have_count(2)
    expect(page.locator("#aside")).to_be_hidden()
    for name in NAMES:
        assert name not in page.locator("#stage").inner_html()
    page.get_by_label("Why?").fill("1 2 3 4 s: both are wrong")
    assert store.votes(comparison_of(visitor)) == []
    page.locator("h1").click()
    page.keyboard.press("4")
    expect(ballot(visitor)).to_contain_text("Your vote: Both bad")
    expect(ballot(visitor)).to_contain_text("It was blind")
    expect(page.locator("#revealed")).to_contain_text(NAMES[0])
    expect(page.locator("#revealed")).to_contain_text(NAMES[1])
    expect(page.locator("#revealed")).to_contain_text("Reward")
    expect(ballot(visitor).get_by_role("button").and_(page.locator(":enabled"))).to_have_count(0)
    (vote,) = store.votes(comparison_of(visitor))
    assert (vote.choice, vote.reason) == (Choice.BOTH_BAD, "1 2 3 4 s: both are wrong")
    assert {vote.comparison.left_policy, vote.comparison.right_policy} == set(NAMES)
    page.reload()
    expect(ballot(visitor)).to_contain_text("Your vote: Both bad")
    expect(page.locator("#revealed")).to_contain_text(NAMES[0])
    visitor.button("Next task").click()
    expect_turns(visitor, 1)
    expect(ballot(visitor)).to_be_hidden()


@pytest.mark.parametrize(
    ("key", "choice"),
    [("1", Choice.LEFT), ("2", Choice.RIGHT), ("3", Choice.TIE), ("s", Choice.SKIP)],
)
def test_a_key_votes(arrive: Arrive, store: EpisodeStore, key: str, choice: Choice) -> None:
    ids = [
        finished(store, a_task(store), name, f"def f(x):\n    return {name!r}") for name in NAMES
    ]
    comparison = store.start_comparison(*ids)
    visitor = arrive()
    visitor.go(f"/compare?comparison={comparison.id}")
    expect(ballot(visitor)).to_contain_text("Which side is better?")
    visitor.page.keyboard.press(f"Control+{key}" if key == "s" else "5")
    visitor.page.keyboard.press(key)
    expect(ballot(visitor)).to_contain_text("Your vote")
    assert [v.choice for v in store.votes(comparison.id)] == [choice]
    assert store.comparison(comparison.id).left in ids


def test_a_reload_comes_back_to_the_same_chat(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    begin_own(visitor, "Something new. def f(x)")
    expect_turns(visitor, 1)
    before = page.locator("ol.duo .side").all_inner_texts()
    where = comparison_of(visitor)
    page.reload()
    expect_turns(visitor, 1)
    assert page.locator("ol.duo .side").all_inner_texts() == before
    assert comparison_of(visitor) == where
    say(visitor, "It is six.")
    expect(ballot(visitor)).to_contain_text("Which side is better?")
    visitor.button("New comparison").click()
    expect(visitor.button("Start both")).to_be_visible()
    assert "comparison" not in page.url


def test_a_reload_in_the_middle_of_a_message_joins_it_again(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    begin_own(visitor, "UNEVEN def f(x)")
    live = page.locator("#live .message.live .body")
    expect(live).to_have_count(2)
    expect(live.first).not_to_contain_text("thinking")
    assert all(len(text.strip()) <= len("slow") for text in live.all_inner_texts())
    page.reload()
    expect(live).to_have_count(2)
    expect(visitor.button("Send to both")).to_be_disabled()
    visitor.button("Stop").click()
    expect(visitor.button("Let them go on")).to_be_visible()
    visitor.button("End both").click()
    expect(ballot(visitor)).to_contain_text("Which side is better?")


def test_a_side_that_says_its_name_is_told_and_the_vote_marked(
    arrive: Arrive, store: EpisodeStore
) -> None:
    visitor = arrive()
    page = visitor.page
    begin_own(visitor, "NAMES def f(x)")
    expect(page.locator("#compared-task")).to_contain_text("said its own name")
    expect(page.locator(".duo.names")).to_contain_text(NAMES[0])
    say(visitor, "Yes.")
    expect(ballot(visitor)).to_contain_text("Which side is better?")
    page.keyboard.press("1")
    expect(ballot(visitor)).to_contain_text("It was not blind")
    assert [v.was_blind for v in store.votes(comparison_of(visitor))] == [False]


def test_a_failing_side_is_shown_and_recorded(arrive: Arrive, store: EpisodeStore) -> None:
    visitor = arrive()
    page = visitor.page
    begin_own(visitor, "BREAKS def f(x)")
    expect(ballot(visitor)).to_contain_text("failed")
    expect(ballot(visitor)).to_contain_text("the second model is away")
    expect(page.locator("#revealed")).to_contain_text(NAMES[1])
    page.keyboard.press("1")
    expect(page.get_by_label("Your answer to both")).to_be_hidden()
    page.reload()
    expect(ballot(visitor)).to_contain_text("failed")
    assert [v.choice for v in store.votes(comparison_of(visitor))] == [Choice.FAILED]


def test_a_simulator_plays_with_both(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    go(visitor)
    page.get_by_label("Watch: Simulator (scripted)").check()
    visitor.button("Start both").click()
    expect(ballot(visitor)).to_contain_text("Which side is better?", timeout=90_000)
    expect(page.locator("#reference")).to_be_hidden()
    expect(page.locator("ol.duo .message.agent")).to_have_count(4)
    expect(page.get_by_label("Your answer to both")).to_be_hidden()


def test_two_web_pages_stand_live_beside_the_wanted_one(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    go(visitor)
    page.get_by_label("Task set").click()
    page.get_by_role("option", name="mini-frontend/test").click()
    expect(page.locator("#begin-compare .task")).to_contain_text("mini-frontend/test")
    visitor.button("Start both").click()
    expect_turns(visitor, 1)
    pages = page.locator("#both-pages")
    expect(pages.locator(".duo .design")).to_have_count(2)
    expect(pages.get_by_label("The page that is wanted", exact=True).last).to_be_visible()
    target = pages.locator(".both-pages + .design img")
    target.scroll_into_view_if_needed()
    expect(target).not_to_have_js_property("naturalWidth", 0, timeout=120_000)
    for i in range(2):
        frame = pages.frame_locator(".version:not([hidden]) iframe").nth(i)
        expect(frame.locator("h1")).to_have_text("First")
    say(visitor, "It is fine.")
    expect(ballot(visitor)).to_contain_text("Which side is better?", timeout=120_000)
    expect(page.locator("#alike")).to_be_hidden()
    page.keyboard.press("2")
    expect(page.locator("#revealed")).to_contain_text(NAMES[0])
    expect(page.locator("#alike")).to_contain_text("How alike it looks", timeout=120_000)


def test_two_sessions_of_the_log_are_set_side_by_side(arrive: Arrive, store: EpisodeStore) -> None:
    task = a_task(store, 3)
    one, other = (finished(store, task, name, f"return {name[-1]}") for name in ("x1", "x2"))
    visitor = arrive()
    page = visitor.page
    visitor.go(f"/sessions?episode={one}")
    page.get_by_role("link", name="Compare with another").click()
    expect(page.get_by_label("One session")).to_have_value(re.compile("x1"))
    expect(page.get_by_label("Another session of the same task")).to_have_value(re.compile("x2"))
    visitor.button("Set them side by side").click()
    expect(ballot(visitor)).to_contain_text("Which side is better?")
    found = store.comparison(comparison_of(visitor))
    assert {found.left, found.right} == {one, other}
    visitor.go(f"/compare?one={other}&other={one}")
    expect(ballot(visitor)).to_contain_text("Which side is better?")
    assert comparison_of(visitor) == found.id


def test_a_set_is_compared_and_each_differing_task_opens_both_sessions(
    arrive: Arrive, store: EpisodeStore
) -> None:
    for task in store.tasks("mini-backend", "test", limit=2):
        hidden = store.hidden(task.id)
        assert hidden is not None
        KNOWN[task.description] = hidden.reference
    visitor = arrive()
    page = visitor.page
    go(visitor)
    page.get_by_role("tab", name="A whole task set").click()
    page.get_by_label("How many tasks").fill("3")
    visitor.button("Compare them").click()
    expect(page.locator("#run-progress")).to_contain_text("3 tasks")
    page.reload()
    figures = page.locator("#run-figures")
    expect(figures.locator(".facts")).to_contain_text("Pairs compared (n)3", timeout=120_000)
    expect(figures).to_contain_text("2 tasks differ")
    expect(figures).to_contain_text("95 % interval")
    expect(visitor.button("Stop and keep what is done")).to_be_hidden()
    figures.locator("td.task a").first.click()
    expect(ballot(visitor)).to_contain_text("Which side is better?")
    found = store.comparison(comparison_of(visitor))
    sides = [store.episode(id) for id in (found.left, found.right)]
    assert {side.policy_id for side in sides} == set(NAMES)
    assert len({side.seed for side in sides}) == 1
    assert {side.reward.value for side in sides if side.reward} == {0.0, 1.0}


def test_a_comparison_of_a_set_is_stopped_and_goes_on(arrive: Arrive) -> None:
    visitor = arrive()
    page = visitor.page
    go(visitor)
    page.get_by_role("tab", name="A whole task set").click()
    page.get_by_label("How many tasks").fill("400")
    page.get_by_label("Seed").fill("5")
    visitor.button("Compare them").click()
    visitor.button("Stop and keep what is done").click()
    expect(visitor.button("Go on")).to_be_visible(timeout=120_000)
    expect(page.locator("#run-progress")).to_contain_text("not running")
    visitor.button("Another comparison").click()
    expect(visitor.button("Compare them")).to_be_visible()


def test_a_wrong_link_says_so(arrive: Arrive) -> None:
    visitor = arrive()
    visitor.go("/compare?comparison=nosuch")
    expect(visitor.page.get_by_text("There is no comparison")).to_be_visible()
    expect(visitor.button("Start both")).to_be_visible()
    visitor.go("/compare?tasks=nosuch&first=a&second=b&n=x")
    expect(visitor.page.locator("#run-progress")).to_contain_text("must be a whole number")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_a_comparison_without_scrolling_sideways(
    arrive: Arrive, store: EpisodeStore, scheme: str
) -> None:
    task = a_task(store, 4)
    long = "def f(x):\n    return " + " + ".join(["x"] * 200)
    ids = [finished(store, task, name, f"{long} + {name[-1]}") for name in NAMES]
    visitor = arrive(width=390, color_scheme=scheme)
    go(visitor)
    assert visitor.overflow() == []
    visitor.go(f"/compare?one={ids[0]}&other={ids[1]}")
    expect(ballot(visitor)).to_contain_text("Which side is better?")
    assert visitor.overflow() == []
    visitor.button("A is better 1").click()
    expect(visitor.page.locator("#revealed")).to_be_visible()
    assert visitor.overflow() == []


@pytest.mark.timeout(900)  # on one busy core the browsers alone take five minutes
def test_twenty_browsers_vote_at_once_with_nothing_lost_or_crossed(
    arrive: Arrive, store: EpisodeStore
) -> None:
    comparisons = []
    for i in range(5):
        ids = [finished(store, a_task(store, i), name, f"def f(x): return {i}") for name in NAMES]
        comparisons.append(store.start_comparison(*ids))
    visitors = [arrive() for _ in range(20)]
    for i, visitor in enumerate(visitors):
        visitor.go(f"/compare?comparison={comparisons[i % 5].id}")
    for i, visitor in enumerate(visitors):
        expect(ballot(visitor)).to_contain_text("Which side is better?", timeout=120_000)
        visitor.page.get_by_label("Why?").fill(f"I am number {i}.")
        visitor.page.locator("h1").click()
    for i, visitor in enumerate(visitors):
        visitor.page.keyboard.press("1234"[i % 4])
    for i, visitor in enumerate(visitors):
        expect(ballot(visitor)).to_contain_text(f"I am number {i}.", timeout=120_000)
    choices = (Choice.LEFT, Choice.RIGHT, Choice.TIE, Choice.BOTH_BAD)
    cast = {v.reason: v for c in comparisons for v in store.votes(c.id)}
    assert sum(len(store.votes(c.id)) for c in comparisons) == 20
    for i in range(20):
        vote = cast[f"I am number {i}."]
        assert (vote.comparison.id, vote.choice) == (comparisons[i % 5].id, choices[i % 4])
    assert len({vote.voter for vote in cast.values()}) == 20

"""What the handlers of Sessions and Watch do; how errors reach a page; the look's contrast."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import pytest

from sweet.errors import ConfigError, StoreError
from sweet.services import Services
from sweet.settings import load_settings
from sweet.store import Choice
from sweet.types import Action, EpisodeFilter, StopReason
from tests.fakes import task_row
from ui import batches, find, transfers
from ui.session import LogView, WatchView
from ui.theme import CSS
from ui.wire import bound


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    monkeypatch.setenv("SWEET_DATA", str(tmp_path))
    with Services(load_settings()) as opened:
        opened.store.add_tasks([task_row()])
        yield opened


def an_episode(services: Services, said: str) -> str:
    episode = services.store.start_episode("task-1", "embedded", "person", 1)
    services.store.append_action(episode.id, 0, Action(said, said, False))
    services.store.finish(episode.id, StopReason.STOPPED)
    return episode.id


def event(**data: object) -> gr.EventData:
    return gr.EventData(None, data)


def test_a_search_shows_what_it_finds(services: Services) -> None:
    an_episode(services, "a zebra")
    an_episode(services, "a lion")
    found = find.search(services, LogView(), "zebra", *[""] * 8)
    assert found.view.wanted == EpisodeFilter(text="zebra")
    assert "<strong>1</strong> episode" in found.table


def test_the_same_search_again_leaves_the_page_alone(services: Services) -> None:
    view = LogView(EpisodeFilter(text="zebra"), episode_id="e1")
    assert find.search(services, view, "zebra", *[""] * 8) == find.Found()


def test_a_page_behind_the_last_is_the_last(services: Services) -> None:
    an_episode(services, "one")
    shown = find.act(services, LogView(), event(action="page", page="999"))
    assert shown.view.page == 1


@pytest.mark.parametrize("data", [None, {}, {"action": "sort", "sort": "x; drop"}, {"action": []}])
def test_whatever_a_browser_sends_to_the_log_is_harmless(services: Services, data: object) -> None:
    assert find.act(services, LogView(), gr.EventData(None, data)) == find.Found()


def test_the_hidden_information_is_shown_only_while_switched_on(services: Services) -> None:
    view = LogView(episode_id=an_episode(services, "one"))
    assert find.reveal(services, view, False) == ""
    assert "def" in find.reveal(services, view, True)
    assert find.reveal(services, LogView(), True) == ""


@pytest.mark.parametrize("name", [name for name in find.FORMATS if "JSONL" in name])
def test_an_export_has_a_folder_of_its_own(services: Services, name: str) -> None:
    an_episode(services, "one")
    shown = find.export(services, LogView(), name)
    path = Path(shown.file["value"])
    assert path.parent == services.settings.data / transfers.EXPORTS
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == (1 if "Episodes" in name else 0)
    assert shown.file["visible"] == bool(lines)


def voted(services: Services, policy: str) -> None:
    """A person prefers this version's episode to another's."""
    ids = []
    for policy_id in (policy, "loser"):
        episode = services.store.start_episode("task-1", policy_id, "scripted", 1)
        question = f"{policy_id}: which?"
        services.store.append_action(episode.id, 0, Action(question, question, False))
        services.store.append_reply(episode.id, 0, "That one.")
        services.store.finish(episode.id, StopReason.TURN_LIMIT)
        ids.append(episode.id)
    comparison = services.store.start_comparison(*ids)
    choice = Choice.LEFT if comparison.left_policy == policy else Choice.RIGHT
    services.store.vote(comparison.id, choice, "ann")


@pytest.mark.parametrize("ending", ["JSONL", "parquet"])
def test_votes_and_preferences_go_out_with_the_filter_and_come_back(
    services: Services, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for policy in ("one", "one", "two"):
        voted(services, policy)
    files = {}
    for name, wanted, n in (
        ("Votes", EpisodeFilter(policy_id="one"), 2),
        ("Votes", EpisodeFilter(), 3),
        ("Preferences", EpisodeFilter(policy_id="one"), 2),  # of the episode, and of its turn
        ("Preferences", EpisodeFilter(), 4),
    ):
        file = find.export(services, LogView(wanted), f"{name} ({ending})").file
        assert file["label"].startswith(f"Download {n} ")
        files[name] = file["value"]
    monkeypatch.setenv("SWEET_DATA", str(tmp_path / "other"))
    with Services(load_settings()) as other:
        assert "3 added, 0 already there" in transfers.bring(other, files["Votes"])
        assert len(list(other.store.iter_votes())) == 3
        assert "0 added, 4 already there" in transfers.bring(other, files["Preferences"])


def test_an_import_says_which_lines_it_left_out_and_keeps_no_upload(
    services: Services, tmp_path: Path
) -> None:
    an_episode(services, "one")
    whole = Path(find.export(services, LogView(), "Episodes (JSONL)").file["value"]).read_text()
    upload = tmp_path / "<b>upload.jsonl"
    upload.write_text(whole + "no json\n" + '{"turns": "<img src=x>"}\n')
    *_, told = find.bring(services, LogView(), str(upload))
    assert "0 added, 1 already there, 2 left out" in told
    assert "line 2: no JSON" in told and "line 3" in told
    assert "<img" not in told and "<b>upload" not in told
    assert not upload.exists()
    with pytest.raises(ConfigError, match="No file came"):
        transfers.bring(services, None)


@pytest.mark.parametrize("value", [None, 0, -1, 1.5, 65])
def test_a_batch_needs_whole_numbers(services: Services, value: float | None) -> None:
    with pytest.raises(ConfigError, match="whole number"):
        asyncio.run(batches.start(services, "s/test", "embedded", "", 1, value, 0))


def test_without_a_batch_nothing_is_refreshed(services: Services) -> None:
    shown = batches.tick(services, WatchView())
    assert shown.timer == gr.update(active=False)
    assert "No batch yet" in shown.earlier


def test_an_unknown_batch_says_so(services: Services) -> None:
    assert "No such batch" in batches.tick(services, WatchView("nosuch")).progress


def fails_clearly(services: None, view: LogView, request: gr.Request) -> None:
    raise StoreError("The disk is <full>.")


async def fails_oddly(services: None, view: LogView) -> None:
    raise KeyError("oops")


async def fails_late(services: None, view: LogView):
    yield 1
    raise StoreError("The disk is full.")


def test_an_error_reaches_the_page_escaped_and_without_a_traceback() -> None:
    with pytest.raises(gr.Error) as caught:
        bound(fails_clearly, None)(LogView(), None)
    assert caught.value.message == "The disk is &lt;full&gt;."
    with pytest.raises(gr.Error, match="a fault of the studio"):
        asyncio.run(bound(fails_oddly, None)(LogView()))


def test_a_stream_that_fails_says_so_too() -> None:
    async def drain() -> None:
        async for _ in bound(fails_late, None)(LogView()):
            pass

    with pytest.raises(gr.Error, match="disk"):
        asyncio.run(drain())


def test_gradio_sees_the_parameters_behind_the_services() -> None:
    bridge = bound(fails_clearly, None)
    assert list(inspect.signature(bridge).parameters) == ["view", "request"]
    assert inspect.get_annotations(bridge)["request"] is gr.Request
    assert inspect.isasyncgenfunction(bound(fails_late, None))


def colours(mode: str) -> dict[str, str]:
    block = re.findall(r"\{(.*?)\}", CSS.read_text(), re.DOTALL)[0 if mode == "light" else 1]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_stands_out_from_its_ground(mode: str) -> None:
    c = colours(mode)
    grounds = {
        "ink": ("paper", "panel", "sunken", "accent-soft"),
        "muted": ("paper", "panel", "sunken"),
        "accent": ("paper", "panel"),
        "accent-strong": ("paper", "accent-soft"),
        "accent-ink": ("accent", "accent-strong"),
        "good": ("good-soft",),
        "bad": ("bad-soft", "panel"),
        "slow": ("slow-soft",),
        **{f"code-{kind}": ("sunken",) for kind in ("keyword", "string", "number", "name")},
    }
    weak = {
        (text, ground): round(contrast(c[text], c[ground]), 2)
        for text, behind in grounds.items()
        for ground in behind
        if contrast(c[text], c[ground]) < 4.5
    }
    assert weak == {}


def test_the_style_fetches_nothing() -> None:
    assert not re.search(r"@import|url\(|https?:", CSS.read_text())

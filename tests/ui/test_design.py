"""Designs as HTML: nothing of a page is ever outside the frame without rights."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from evaluators.render.answers import ASSETS, missing_assets
from sweet.types import Action, Episode, TaskKind, Turn
from tests.ui.designing import ATTACKS, VERSIONS, attacking_page, page
from ui.conversation import transcript
from ui.design import Figures, Version, as_drawn, design, similarities, wanted_only
from ui.sealed import POLICY, sealed_document, sealed_frame

needs_assets = pytest.mark.skipif(
    bool(missing_assets()), reason=f"no assets in {ASSETS}: make setup"
)
WANTED = "a" * 64


class Seen(HTMLParser):
    """What a browser would make of our markup: its elements, and the frames' documents."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.frames: list[dict[str, str | None]] = []
        self.handlers: list[str] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag == "iframe":
            self.frames.append(dict(attrs))


def version(html: str, n: int = 1) -> Version:
    return Version(f"Version {n}", html, sealed_document(html), f"{n:064d}")


def versions() -> list[Version]:
    return [version(html, n) for n, html in enumerate(VERSIONS, 1)]


@needs_assets
def test_a_page_is_in_a_frame_without_rights_with_the_policy_first() -> None:
    seen = Seen(design(versions(), key="k", wanted=WANTED))
    assert [frame["sandbox"] for frame in seen.frames] == ["", "", ""]
    for frame in seen.frames:
        document = str(frame["srcdoc"])
        assert document.startswith(
            '<meta charset="utf-8"><meta http-equiv="Content-Security-Policy"'
        )
        assert f'content="{POLICY}"' in document
        assert "allow" not in frame and frame["title"]


@needs_assets
@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_of_an_attack_is_outside_the_frame(name: str) -> None:
    attack = page("red", "Attack", ATTACKS[name].format(c="http://evil.example"))
    harmless = Seen(design([version(page("red", "x")), version(page("red", "y"))], key="k"))
    for html in (attack, f'"></iframe>{attack}', f"'/>{attack}<!--", f"]]>{attack}\0"):
        seen = Seen(design([version(html), version(html)], key=html, label=html, wanted=html))
        assert set(seen.tags) <= {*harmless.tags, "img", "label", "input", "figcaption", "span"}
        assert len(seen.frames) == 2 and seen.handlers == []
        drawn = Seen(as_drawn(Version(html, html, page=html)))
        assert set(drawn.tags) <= {
            "figure", "img", "figcaption", "a", "details", "summary", "div", "button", "pre",
            "code", "span",
        }  # fmt: skip
        assert drawn.handlers == []


@needs_assets
def test_what_the_renderer_answers_from_disk_stands_in_the_document() -> None:
    document = sealed_document(VERSIONS[2])
    assert "<link" not in document and ".bg-blue-800{" in document
    assert "data:image/svg+xml;base64," in document and "picsum" not in document
    assert len(document) < 60_000


@needs_assets
def test_other_addresses_stay_and_are_refused_by_the_policy() -> None:
    document = sealed_document(attacking_page("http://127.0.0.1:9"))
    assert document.count("http://127.0.0.1:9") >= 10
    assert document.index("default-src 'none'") < document.index("http://127.0.0.1:9")
    assert "picsum" in sealed_document("<p>Look at https://picsum.photos/1/2 there</p>")


@pytest.mark.parametrize("doctype", ["<!DOCTYPE html>", "\n <!doctype HTML PUBLIC 'x'>", ""])
def test_a_page_keeps_its_own_doctype_before_all(doctype: str) -> None:
    document = sealed_document(f"{doctype}<html><body>Hi</body></html>")
    assert document.startswith(f"{doctype.strip()}<meta charset")
    assert document.lower().count("<!doctype") == bool(doctype)


def test_a_frame_takes_any_text_as_it_is() -> None:
    text = "a\"b'c&amp;<d>\u202e\ud7ff" * 20_000
    (frame,) = Seen(sealed_frame(text, text[:50])).frames
    assert frame["srcdoc"] == text


@needs_assets
def test_the_panel_has_every_version_and_its_changes() -> None:
    panel = design(versions(), key="k", wanted=WANTED)
    assert panel.count("data-version=") == 3
    assert re.findall(r'class="version"[^>]*?( hidden)?>', panel) == [" hidden", " hidden", ""]
    assert "This is the first version" in panel
    for width in ("375", "768", "1280"):
        assert f'data-do="width" data-value="{width}"' in panel
    assert "-red-800" in panel and 'class="added"' in panel and 'class="removed"' in panel
    assert f"./pages/{WANTED}-1280.png" in panel
    alone = design(versions()[:1], key="k")
    assert "Slider" not in alone and 'data-do="back"' not in alone and WANTED not in alone


@needs_assets
def test_a_version_without_a_page_says_why_and_does_not_count_in_the_difference() -> None:
    shown = [
        version(VERSIONS[0]),
        Version("Version 2", None, why="<b>cut</b>"),
        version(VERSIONS[1]),
    ]
    panel = design(shown, key="k")
    assert "&lt;b&gt;cut&lt;/b&gt;" in panel
    removed = re.findall(r'class="removed">(.*?)</span>', panel, re.DOTALL)
    assert "bg-red-800" in removed[0] and len(removed) == 2
    same = design([version(VERSIONS[0]), version(VERSIONS[0])], key="k")
    assert "The source is the same" in same
    assert design([], key="k") == ""


def test_a_page_that_cannot_be_shown_says_why() -> None:
    panel = design([Version("Version 1", "<html></html>", "", "0" * 64, "no assets")], key="k")
    assert "no assets" in panel and "<iframe" not in panel


@pytest.mark.parametrize(
    "html",
    ["<div>" * 90_000, "x" * 500_000, "<p>a</p>" * 30_000, "\n" * 400_000, "<!--" * 90_000],
)
def test_a_huge_page_is_cut_in_its_code_and_whole_in_its_frame(html: str) -> None:
    whole = f"<html>{html}</html>"
    other = f"<html>{html[::-1]}</html>"
    panel = design([version(other), version(whole)], key="k")
    assert str(Seen(panel).frames[1]["srcdoc"]).endswith("</html>")
    assert len(panel) < 4 * len(whole) + 4_000_000


def test_similarities_have_a_row_a_version_and_unknown_ones_are_no_zeros() -> None:
    rows = [Figures("Version 1", {"overall": 0.5, "text": 1.0}), Figures("Version 2", why="<slow>")]
    table = similarities(rows)
    assert table.count("<tr>") == 3
    assert "0.50" in table and "1.00" in table
    assert table.count("n/a") == 2 and "&lt;slow&gt;" in table
    assert similarities([Figures("Version 1", why="slow")]) == ""
    assert WANTED in wanted_only(WANTED)


# In a conversation


def spoken(*raws: str, kind: TaskKind = TaskKind.FRONTEND) -> str:
    turns = tuple(
        Turn(i, Action(raw, raw, raw.startswith("I WANT"), raw if "WANT" in raw else None), "Hm.")
        for i, raw in enumerate(raws)
    )
    return transcript(Episode("e", "t", "p", "person", 1, turns=turns), kind=kind)


def test_a_conversation_shows_what_was_said_beside_the_page_and_the_way_to_it() -> None:
    shown = spoken(
        f"Here **it** is:\n```html\n{VERSIONS[0]}\n```\nDo you like it?",
        "Which colour?",
        f"I WANT TO ANSWER:\n{VERSIONS[1]}",
    )
    assert "Here <strong>it</strong> is:" in shown and "Do you like it?" in shown
    assert "bg-red" not in shown and "bg-green" not in shown and "I WANT" not in shown
    assert re.findall(r'data-do="goto" data-value="(\d)"', shown) == ["1", "3"]
    assert "Which colour?" in shown and "Final answer" in shown


def test_a_function_that_writes_html_is_shown_as_it_is() -> None:
    shown = spoken(f"def f():\n    return '''{VERSIONS[0]}'''", kind=TaskKind.BACKEND)
    assert "bg-red-800" in shown and "data-do" not in shown

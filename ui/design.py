"""Designs as HTML: the versions of a page, live in a sealed frame, beside the page that is wanted.

    design(versions, *, key, label="The design", wanted="") -> str

gives the whole panel: Preview, Code, Diff to the last version; a pager; widths 375, 768, 1280; the
wanted page beside it, and over it by slider, overlay and difference; open sealed in a new tab;
download. The markup walks by itself (`ui/assets/design.js`); put it into any `markup(js=BIND)`.
`key` tells two panels of a page apart and keeps what is shown while the server draws it anew.
`versions` come from `ui.designs`, which knows the services:

    designs.panel(services, episode, *, key, label="The design", wanted=True) -> str
    designs.versions_of(services, episode) -> list[Version]

Addresses name a page by its hash and nothing else: no episode, no policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import lru_cache

from ui.format import MAX_SHOWN_CHARS, NA, code, esc, notice, number
from ui.sealed import sealed_frame

WIDTHS = (375, 768, 1280)
PAGES = "pages"
"""The first part of the addresses of sealed pages and their pictures."""

_MAX_DIFF_LINES = 800
_ALONE = (("preview", "Preview"), ("code", "Code"), ("diff", "Diff"))
_AGAINST = (("slider", "Slider"), ("overlay", "Overlay"), ("difference", "Difference"))
_HELP = {
    "slider": "Left of the line: the design. Right of it: the wanted page.",
    "overlay": "The design over the wanted page.",
    "difference": "Black is the same; what is lighter differs.",
}


@dataclass(frozen=True, slots=True)
class Version:
    """One version: what the agent wrote, its sealed document, and its name among the pages kept.

    `html` is None where the message had no complete page; `why` says so.
    """

    name: str
    html: str | None
    document: str = ""
    page: str = ""
    why: str = ""


def design(
    versions: Sequence[Version], *, key: str, label: str = "The design", wanted: str = ""
) -> str:
    """The panel with the versions of a design, the last one shown; `wanted` names a kept page."""
    if not versions:
        return ""
    shown = "".join(_version(versions, i, label, wanted) for i in range(len(versions)))
    return (
        f'<section class="design" data-design="{esc(key)}" aria-label="{esc(label)}">'
        f"{_bar(versions, label, wanted)}{shown}</section>"
    )


def wanted_only(page: str) -> str:
    """The wanted page, while there is no design yet."""
    return (
        '<section class="design" data-design="" aria-label="The page that is wanted">'
        f'<div class="panes">{_wanted(page)}</div></section>'
    )


@dataclass(frozen=True, slots=True)
class Figures:
    """How like the wanted page a version is, by part; `why` says why that is not known."""

    name: str
    parts: Mapping[str, float] = field(default_factory=dict)
    why: str = ""


def similarities(rows: Sequence[Figures]) -> str:
    """The versions' similarities with the wanted page, a row each; "" where there is none."""
    names = next((list(row.parts) for row in rows if row.parts), [])
    if not names:
        return ""
    heads = "".join(f'<th scope="col">{esc(name.capitalize())}</th>' for name in names)
    body = "".join(_similarity_row(row, names) for row in rows)
    return (
        '<section class="similarities" aria-label="Similarity"><h3>How alike it looks</h3>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Similarity by version"><table>'
        f'<thead><tr><th scope="col">Version</th>{heads}</tr></thead><tbody>{body}</tbody></table>'
        '</div><p class="meta">Visual similarity with the wanted page: 1 is the same. '
        "The agent sees none of it.</p></section>"
    )


def _similarity_row(row: Figures, names: Sequence[str]) -> str:
    cells = "".join(
        f'<td data-label="{esc(name.capitalize())}">{_bar_of(row.parts.get(name))}</td>'
        for name in names
    )
    why = f'<span class="meta">{esc(row.why)}</span>' if row.why else ""
    return f'<tr><td data-label="Version">{esc(row.name)}{why}</td>{cells}</tr>'


def _bar_of(value: float | None) -> str:
    if value is None:
        return NA
    share = min(max(value, 0.0), 1.0)
    return f'<span class="share"><i style="width:{share:.0%}"></i></span>{number(value)}'


def as_drawn(version: Version) -> str:
    """A version as it looked: its picture, and its source on demand."""
    if version.html is None:
        return notice("No page in this message", version.why)
    return (
        f'<figure class="as-drawn">{picture(version.page, f"{version.name}, as it was drawn")}'
        f"<figcaption>{_links(version.page)}</figcaption></figure>"
        f"<details><summary>Source</summary>{_code(version.html)}</details>"
    )


def picture(page: str, alt: str, width: int = WIDTHS[-1]) -> str:
    """The picture of a kept page."""
    return (
        f'<img src="./{PAGES}/{esc(page)}-{width}.png" data-picture="{esc(page)}" '
        f'alt="{esc(alt)}" loading="lazy" decoding="async">'
    )


# The bar: versions, views, widths, links


def _bar(versions: Sequence[Version], label: str, wanted: str) -> str:
    views = (*_ALONE, *(_AGAINST if wanted else ()))
    buttons = "".join(_press("view", name, words, name == "preview") for name, words in views)
    widths = "".join(_press("width", str(w), f"{w}", w == WIDTHS[-1]) for w in WIDTHS)
    return (
        f'<header class="design-bar"><h2>{esc(label)}</h2>{_pager(versions)}'
        f'<div class="group" role="group" aria-label="View">{buttons}</div>'
        f'<div class="group widths" role="group" aria-label="Width in pixels">{widths}</div>'
        "</header>"
    )


def _pager(versions: Sequence[Version]) -> str:
    last = len(versions)
    if last == 1:
        return f'<span class="where">{esc(versions[0].name)}</span>'
    return (
        '<div class="group pager" role="group" aria-label="Versions">'
        f"{_step('back', 'Version before', '←')}"
        f'<span class="where" role="status">Version {last} of {last}</span>'
        f"{_step('on', 'Version after', '→')}</div>"
    )


def _step(what: str, name: str, sign: str) -> str:
    return (
        f'<button type="button" data-do="{what}" aria-label="{name}" title="{name}">{sign}</button>'
    )


def _press(what: str, value: str, words: str, pressed: bool) -> str:
    return (
        f'<button type="button" data-do="{what}" data-value="{value}" '
        f'aria-pressed="{str(pressed).lower()}">{words}</button>'
    )


def _links(page: str) -> str:
    where = f"./{PAGES}/{esc(page)}"
    return (
        f'<a href="{where}" target="_blank" rel="noopener noreferrer">Open sealed in a new tab</a>'
        f' · <a href="{where}.html" download="page.html">Download</a>'
    )


# One version in all its views


def _version(versions: Sequence[Version], at: int, label: str, wanted: str) -> str:
    version = versions[at]
    hidden = "" if at == len(versions) - 1 else " hidden"
    begin = f'<div class="version" data-version="{at + 1}" data-name="{esc(version.name)}"{hidden}>'
    if version.html is None:
        return f"{begin}{notice('No page in this version', version.why)}</div>"
    last = next((v.html for v in reversed(versions[:at]) if v.html is not None), None)
    views = {
        "preview": _preview(version, label, wanted),
        "code": _code(version.html),
        "diff": _diff(last, version.html),
    }
    if wanted:
        views |= {name: _over(version, name, wanted) for name, _ in _AGAINST}
    shown = "".join(
        f'<div class="view {name}" data-view="{name}"{"" if name == "preview" else " hidden"}>'
        f"{body}</div>"
        for name, body in views.items()
    )
    return f'{begin}{shown}<p class="meta links">{_links(version.page)}</p></div>'


def _preview(version: Version, label: str, wanted: str) -> str:
    frame = (
        notice("It can't be shown", version.why, "error")
        if version.why
        else sealed_frame(version.document, f"{label}, {version.name}")
    )
    mine = f'<figure><figcaption>{esc(version.name)}</figcaption><div class="sheet">{frame}</div>'
    if not wanted:
        return f'<div class="panes">{mine}</figure></div>'
    return f'<div class="panes two">{mine}</figure>{_wanted(wanted)}</div>'


def _wanted(page: str) -> str:
    return (
        '<figure><figcaption>The page that is wanted <span class="meta">(the agent never sees it)'
        '</span></figcaption><div class="sheet" tabindex="0" role="region" '
        'aria-label="The page that is wanted, scrolls">'
        f"{picture(page, 'The page that is wanted')}</div></figure>"
    )


def _over(version: Version, name: str, wanted: str) -> str:
    under, over = picture(wanted, "The page that is wanted"), picture(version.page, version.name)
    control = ""
    if name != "difference":
        words = "Where the line is" if name == "slider" else "How much of the design is seen"
        control = (
            f'<label class="range">{words}<input type="range" min="0" max="100" value="50"></label>'
        )
    return (
        f'<p class="meta">{_HELP[name]}</p>{control}<div class="sheet" tabindex="0" role="region" '
        f'aria-label="Both pages"><div class="both">{under}{over}</div></div>'
    )


@lru_cache(maxsize=256)
def _code(html: str) -> str:
    return code(html, "html")


@lru_cache(maxsize=256)
def _diff(old: str | None, new: str) -> str:
    """What changed, line by line; tags that follow one another count as lines."""
    if old is None:
        return notice("Nothing to compare with", "This is the first version.")
    lines = list(unified_diff(_lines(old), _lines(new), lineterm="", n=2))[2:]
    if not lines:
        return notice("No difference", "The source is the same as in the last version.")
    kinds = {"+": "added", "-": "removed", "@": "place"}
    shown = "".join(
        f'<span class="{kinds.get(line[0], "kept")}">{esc(line)}\n</span>' for line in lines
    )
    return (
        '<div class="code"><pre tabindex="0" aria-label="Difference to the last version">'
        f"<code>{shown}</code></pre></div>"
    )


def _lines(html: str) -> list[str]:
    shown = html[:MAX_SHOWN_CHARS].replace("><", ">\n<").splitlines()
    return [line.rstrip() for line in shown[:_MAX_DIFF_LINES]]

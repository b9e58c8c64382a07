"""Pages by the hash of their HTML: drawn once, whatever becomes of the files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sweet.drawn.gallery import Gallery
from sweet.errors import RenderError, StoreError
from tests.fakes import FakeRenderer

PAGE = "<html><body><p>Grüße</p></body></html>"


def gallery(folder: Path, renderer: FakeRenderer) -> Gallery:
    return Gallery(folder / "pages", lambda: renderer)


def test_a_page_is_drawn_once_at_each_width(tmp_path: Path) -> None:
    renderer = FakeRenderer()
    first = gallery(tmp_path, renderer).render(PAGE)
    assert gallery(tmp_path, renderer).render(PAGE) == first
    assert renderer.asked == [(PAGE, 1280)]
    assert gallery(tmp_path, renderer).render(PAGE, width=375).width == 375
    assert renderer.asked == [(PAGE, 1280), (PAGE, 375)]


def test_what_was_drawn_once_needs_no_browser(tmp_path: Path) -> None:
    drawn = gallery(tmp_path, FakeRenderer()).render(PAGE)
    assert gallery(tmp_path, FakeRenderer(RenderError("no browser"))).render(PAGE) == drawn


def test_a_page_that_cannot_be_drawn_leaves_no_picture(tmp_path: Path) -> None:
    with pytest.raises(RenderError, match="took too long"):
        gallery(tmp_path, FakeRenderer(RenderError("took too long"))).render(PAGE)
    assert not list(tmp_path.rglob("*.png"))
    assert gallery(tmp_path, FakeRenderer()).render(PAGE).boxes


@pytest.mark.parametrize("ending", ["png", "json"])
def test_half_of_a_picture_is_drawn_anew(tmp_path: Path, ending: str) -> None:
    renderer = FakeRenderer()
    whole = gallery(tmp_path, renderer).render(PAGE)
    (lost,) = tmp_path.rglob(f"*.{ending}")
    lost.unlink()
    assert gallery(tmp_path, renderer).render(PAGE) == whole
    assert len(renderer.asked) == 2


def test_a_spoilt_file_is_drawn_anew(tmp_path: Path) -> None:
    renderer = FakeRenderer()
    whole = gallery(tmp_path, renderer).render(PAGE)
    for spoilt in ("", "[]", '{"boxes": [{}]}', "nonsense"):
        next(tmp_path.rglob("*.json")).write_text(spoilt)
        assert gallery(tmp_path, renderer).render(PAGE) == whole


def test_a_kept_page_is_found_by_its_name_and_by_no_other(tmp_path: Path) -> None:
    kept = gallery(tmp_path, FakeRenderer())
    name = kept.keep(PAGE)
    assert kept.keep(PAGE) == name
    assert kept.html(name) == PAGE
    (tmp_path / "secret.html").write_text("secret")
    for other in ("0" * 64, "", "../secret", "..%2fsecret", name.upper(), name[:-1], f"{name}/"):
        assert kept.html(other) is None


def test_many_threads_draw_the_same_page(tmp_path: Path) -> None:
    kept = gallery(tmp_path, FakeRenderer())
    with ThreadPoolExecutor(8) as threads:
        drawn = list(threads.map(lambda _: kept.render(PAGE), range(40)))
    assert len({page.png for page in drawn}) == 1
    assert len(list(tmp_path.rglob("*.*"))) == 3


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "pages").write_text("a file")
    with pytest.raises(StoreError, match="could not be kept"):
        gallery(tmp_path, FakeRenderer()).keep(PAGE)

"""`render` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweet.cli import main


def test_a_page_becomes_a_picture_and_its_elements(tmp_path: Path, capsys) -> None:
    page, picture = tmp_path / "page.html", tmp_path / "out.png"
    page.write_text("<p style='color:#00f'>Blue words</p>")
    assert main(["render", str(page), str(picture), "--width", "400", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert (value["width"], value["height"], value["is_cut"]) == (400, 720, False)
    assert [(box["text"], box["color"]) for box in value["boxes"]] == [("Blue words", "#0000ff")]
    assert "network namespace" in value["walls"]
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.html", "out.png"], "nowhere.html can't be read"),
        (["page.html", "nowhere/out.png"], "nowhere/out.png can't be written"),
        (["page.html", "out.png", "--width", "99999"], "99999 pixels wide"),
        (["page.html", "out.png", "--width", "0"], "no whole number from 1 on"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, monkeypatch, capsys, arguments, said) -> None:
    monkeypatch.chdir(tmp_path)
    Path("page.html").write_text("<p>x")
    try:
        status = main(["render", *arguments])
    except SystemExit as e:
        status = int(str(e.code))
    assert status == 2
    assert said in capsys.readouterr().err
    assert not Path("out.png").exists()

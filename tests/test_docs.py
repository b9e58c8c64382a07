"""The documents name only what exists, and everything a user can reach is in them."""

from __future__ import annotations

import argparse
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from sweet.cli import parser
from sweet.settings import Settings

ROOT = Path(__file__).parents[1]
DOCS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
GUIDE = (ROOT / "docs" / "how-it-works.md").read_text()
README = (ROOT / "README.md").read_text()
MADE = ("assets", ".venv", ".setup")
"""What set-up makes: named in documents, and not in a fresh copy."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def leaf_commands(top: argparse.ArgumentParser, words: str) -> Iterator[str]:
    """Every full command line below a parser, without options."""
    subparsers = [a for a in top._actions if isinstance(a, argparse._SubParsersAction)]
    if not subparsers:
        yield words
    for action in subparsers:
        for word, child in action.choices.items():
            yield from leaf_commands(child, f"{words} {word}")


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def tracked() -> list[Path]:
    """The repository's files; the working tree's where this is no clone."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git clone")
    return [ROOT / line for line in done.stdout.split("\0") if line and (ROOT / line).is_file()]


def test_every_command_is_in_the_guide_and_every_one_there_exists() -> None:
    real = set(leaf_commands(parser(), "python -m sweet"))
    table = set(re.findall(r"^\| `(python -m sweet [^`]*)` \|", GUIDE, re.MULTILINE))
    assert table == real


def test_every_setting_is_in_the_guide() -> None:
    wanted = []
    for field, about in Settings.model_fields.items():
        kind = about.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            children = ["…"] if field in ("simulator", "judge") else kind.model_fields
            wanted += [f"SWEET_{field}__{child}".upper() for child in children]
        else:
            wanted.append(f"SWEET_{field}".upper())
    assert [setting for setting in wanted if f"`{setting}`" not in GUIDE] == []


@pytest.mark.parametrize("document", DOCS, ids=name)
def test_a_document_names_only_make_targets_that_exist(document: Path) -> None:
    named = re.findall(r"(?:`|^|\s)make ([a-z]+)(?=`|\s+#|$)", document.read_text(), re.MULTILINE)
    assert set(named) <= make_targets()


@pytest.mark.parametrize("document", DOCS, ids=name)
def test_a_document_links_only_to_files_that_exist(document: Path) -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)[^)]*\)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCS, ids=name)
def test_a_document_names_only_files_that_exist(document: Path) -> None:
    """A path is what starts with one of the project's folders, in backticks."""
    folders = "|".join(p.name for p in ROOT.iterdir() if p.is_dir() and p.name[0] != ".")
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", document.read_text())
    kept = [path for path in named if path.split("/")[0] not in MADE]
    assert [path for path in kept if not (ROOT / path).exists()] == []


def tree() -> list[Path]:
    """The paths of the README's file tree."""
    block = README.split("## Files")[1].split("```")[1]
    folders: list[str] = []
    paths = []
    for line in filter(str.strip, block.splitlines()):
        depth = (len(line) - len(line.lstrip())) // 2
        words = line.split()[0]
        folders[depth:] = [words.rstrip("/")]
        paths.append(ROOT.joinpath(*folders))
    return paths


def test_every_path_in_the_file_tree_exists_and_says_what_it_is() -> None:
    assert [name(path) for path in tree() if not path.exists()] == []
    block = README.split("## Files")[1].split("```")[1]
    assert [line for line in block.splitlines() if line.strip() and len(line.split()) < 3] == []


def test_every_file_of_code_is_in_the_file_tree() -> None:
    """By name, or in a folder that the tree names without its files."""
    named = tree()
    opened = {path.parent for path in named}
    closed = [path for path in named if path.is_dir() and path not in opened]
    code = [f for f in tracked() if f.suffix in (".py", ".sh") and f.name != "__init__.py"]
    lost = [f for f in code if f not in named and not any(d in f.parents for d in closed)]
    assert [name(file) for file in lost] == []


def test_the_changelog_begins_with_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] == project["version"]


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    roots = ("work", "opt/pypi", "opt/wheels", "home/[a-z]+", "Users/[A-Za-z]+", "root/")
    place = re.compile(rf"(?<![\w.~/-])/({'|'.join(roots)})\b|\.librar[y]/")
    texts = [f for f in tracked() if f.suffix in (".py", ".md", ".sh", ".toml", ".txt", ".yaml")]
    texts += [ROOT / "Makefile", ROOT / ".ci" / "run"]
    found = [
        f"{name(file)}: {hit[0]}"
        for file in texts
        if file != Path(__file__) and (hit := place.search(file.read_text(errors="replace")))
    ]
    assert found == []


def test_continuous_integration_runs_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    text = script.read_text()
    assert "set -euo pipefail" in text
    assert "make test" in text

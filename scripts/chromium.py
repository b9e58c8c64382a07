"""Finding or installing a Chromium that renders a page, and recording where it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from scripts.system import as_root, install_debian, is_mac, output_of, problem_of, say
from sweet.browser import chromium_path, system_chromiums

DOWNLOAD_S = 600
PROBE = "import sys; from sweet.browser import rendering_problem as p; print(p(sys.argv[1]))"
OWN = (
    "from playwright.sync_api import sync_playwright\n"
    "with sync_playwright() as p: print(p.chromium.executable_path)"
)


def prepare_chromium(python: Path, record: Path) -> tuple[Path | None, str]:
    """The Chromium that rendered a page, written to `record`; else None and what to do."""
    before = chromium_path(record) if record.exists() or "SWEET_CHROMIUM" in os.environ else None
    if before and _works(python, before):
        return before, ""
    for find in (_playwrights, _systems, _debians):
        for browser in find(python):
            if _works(python, browser):
                record.parent.mkdir(exist_ok=True)
                record.write_text(f"{browser}\n")
                return browser, ""
    record.unlink(missing_ok=True)
    how = "brew install --cask chromium" if is_mac() else "sudo apt-get install chromium"
    return None, f"`{how}` (or Google Chrome), then `make setup`"


def _works(python: Path, browser: Path) -> bool:
    problem = output_of([python, "-c", PROBE, browser], 90)
    if problem is None:
        problem = "the trial itself failed"
    if problem:
        say(f"  {browser} does not render: {problem.splitlines()[-1]}")
    return not problem


def _playwrights(python: Path) -> Iterator[Path]:
    """Playwright's own Chromium, with the system libraries it wants where they can be had."""
    if os.environ.get("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD"):
        return
    say("Fetching Playwright's Chromium (about 180 MB) …")
    install = [python, "-m", "playwright", "install", "--no-shell", "chromium"]
    if problem := problem_of(install, DOWNLOAD_S):
        say(f"  It could not be fetched ({_reason(problem)}); looking for another.")
        return
    browser = Path(output_of([python, "-c", OWN]) or "")
    if not browser.is_file():
        return
    yield browser
    root = None if is_mac() else as_root()
    if root is not None:
        say("Installing the system libraries it needs …")
        libraries = [*root, python, "-m", "playwright", "install-deps", "chromium"]
        if not problem_of(libraries, DOWNLOAD_S):
            yield browser


def _reason(problem: str) -> str:
    lines = problem.splitlines()
    said = next((line for line in lines if line.startswith("Error: ")), lines[-1])
    return said.removeprefix("Error: ").removesuffix(", caused by")


def _systems(python: Path) -> Iterator[Path]:
    return system_chromiums()


def _debians(python: Path) -> Iterator[Path]:
    if next(system_chromiums(), None):
        return iter(())  # there is one, and it does not work: installing it again would not help
    if problem := install_debian("chromium", "fonts-liberation"):
        say(f"  Debian's Chromium could not be installed: {problem.splitlines()[-1]}")
    return system_chromiums()

"""Which Chromium this machine has, and whether it really renders a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from sweet.errors import ConfigError

RECORD = Path(__file__).parents[1] / ".setup" / "chromium"
"""The path that `make setup` saw working."""

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_MAC_APPS = ("Chromium", "Google Chrome")


def chromium_path(record: Path = RECORD) -> Path | None:
    """The browser to launch: SWEET_CHROMIUM, else what set-up recorded, else the system's.

    None leaves the search to Playwright, which knows where it put its own.
    Raises: ConfigError if SWEET_CHROMIUM names no file.
    """
    if named := os.environ.get("SWEET_CHROMIUM"):
        if not Path(named).is_file():
            raise ConfigError(f"SWEET_CHROMIUM={named}: no such file; name a Chromium or Chrome.")
        return Path(named)
    if record.is_file() and (recorded := Path(record.read_text().strip())).is_file():
        return recorded
    return next(system_chromiums(), None)


def system_chromiums() -> Iterator[Path]:
    """The Chromiums and Chromes on the PATH and among macOS's applications."""
    for name in _NAMES:
        if found := shutil.which(name):
            yield Path(found)
    for folder in (Path("/Applications"), Path.home() / "Applications"):
        for app in _MAC_APPS:
            if (program := folder / f"{app}.app/Contents/MacOS/{app}").is_file():
                yield program


def rendering_problem(browser: Path | None, timeout_s: float = 30) -> str:
    """Why `browser` cannot render a page; empty when it just did."""
    from playwright.sync_api import Error, sync_playwright  # rank 0 must import in bare Python

    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser, timeout=timeout_s * 1000)
            try:
                page = chromium.new_page()
                page.set_content('<p style="width: 123px">It renders.</p>')
                box = page.locator("p").bounding_box()
                picture = page.screenshot()
            finally:
                chromium.close()
    except Error as e:
        return next((line for line in e.message.splitlines() if line.strip()), "it did not start")
    drawn = box is not None and box["width"] == 123 and picture.startswith(b"\x89PNG")
    return "" if drawn else f"it drew a box of 123 pixels as {box}"

"""What the tests of pages share: a browser, and people who come and go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.ui.studio import Arrive, Studio, Visitor, arriving, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def arrive(studio: Studio, browser: Browser) -> Iterator[Arrive]:
    """People at the module's own studio."""
    with arriving(browser, studio.address, Visitor) as arrive:
        yield arrive

"""Times as the log writes them: UTC, ISO 8601, one length, so that they sort as text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from sweet.store.connection import ContentError

END_OF_TIME = "~"  # sorts behind every date


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """The moment, which is in UTC, as the log writes it."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now_iso() -> str:
    """The time as the log writes it."""
    return iso(now())


def stamp(moment: datetime) -> str:
    """The moment as part of a file name."""
    return f"{moment:%Y%m%dT%H%M%S}.{moment.microsecond:06d}Z"


def normal(text: str, what: str) -> str:
    """Any ISO 8601 time as the log writes it; one without a zone is UTC. Raises: StoreError."""
    return iso(_parse(text, what))


def first_moment(text: str) -> str:
    """The first moment that a date or time filter means. Raises: StoreError."""
    return normal(text, "since")


def moment_after(text: str) -> str:
    """The first moment after what a date or time filter means. Raises: StoreError."""
    parsed = _parse(text, "until")
    try:
        date.fromisoformat(text.strip())
        whole = timedelta(days=1)
    except ValueError:
        whole = timedelta(milliseconds=1)
    try:
        return iso(parsed + whole)
    except OverflowError:
        return END_OF_TIME


def _parse(text: str, what: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, AttributeError) as e:
        raise ContentError(
            f"{what} is {text!r}, no date or time. Write it like 2026-03-05 or "
            "2026-03-05T14:30:00Z."
        ) from e

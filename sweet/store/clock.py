"""Times as the log writes them: UTC, ISO 8601, one length, so that they sort as text."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from sweet.errors import StoreError


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """The moment as the log writes it; without a time zone it counts as UTC."""
    utc = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now_iso() -> str:
    """The time as the log writes it."""
    return iso(now())


def stamp(moment: datetime) -> str:
    """The moment as part of a file name."""
    return f"{moment:%Y%m%dT%H%M%S}.{moment.microsecond:06d}Z"


def normal(text: str, what: str) -> str:
    """Any ISO 8601 time as the log writes it. Raises: StoreError."""
    return iso(_parse(text, what))


def first_moment(text: str) -> str:
    """The first moment that a date or time filter means. Raises: StoreError."""
    return normal(text, "since")


def moment_after(text: str) -> str:
    """The first moment after what a date or time filter means. Raises: StoreError."""
    parsed = _parse(text, "until")
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        return iso(parsed + timedelta(milliseconds=1))
    if day == date.max:
        return iso(datetime.combine(day, time.max))
    return iso(datetime.combine(day + timedelta(days=1), time.min))


def _parse(text: str, what: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except (ValueError, AttributeError) as e:
        raise StoreError(
            f"{what} is {text!r}, no date or time. Write it like 2026-03-05 or "
            "2026-03-05T14:30:00Z."
        ) from e

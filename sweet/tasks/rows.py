"""The rows of a JSON file with the lines they start on: jsonl or one array, plain or gzipped."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from sweet.errors import TaskDataError

MAX_ROW_BYTES = 8 << 20
MAX_ARRAY_BYTES = 512 << 20

_BOM = b"\xef\xbb\xbf"
_GAP = re.compile(r"[\s,]*")


@dataclass(frozen=True, slots=True)
class RowProblem:
    """A row that cannot be used: the line it starts on (from 1) and what is wrong with it."""

    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


def read_values(path: Path) -> Iterator[tuple[int, object]]:
    """The line and the JSON value of each row; a RowProblem as value where there is none.

    Raises: TaskDataError if the file cannot be read at all.
    """
    try:
        with _open(path) as file:
            head = file.read(1 << 16)
            file.seek(0)
            if head.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise TaskDataError(f"{path} is UTF-16 text; save it as UTF-8 and read it again.")
            yield from _array_values(file) if _is_array(head) else _line_values(file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as e:
        raise TaskDataError(
            f"{path} is a broken .gz file ({e}): nothing in it can be relied on; fetch it again."
        ) from e
    except OSError as e:
        raise TaskDataError(
            f"Cannot read tasks from {path}: {e.strerror or e}. Expected a file of "
            "task rows: jsonl or a JSON array, also as .gz."
        ) from e


def _open(path: Path) -> IO[bytes]:
    """The file's bytes, unzipped where they are gzip's, whatever the name says."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path)) if zipped else path.open("rb")


def _is_array(head: bytes) -> bool:
    """Whether the file is one JSON array, rather than lines of which the first is a list."""
    text = head.removeprefix(_BOM).strip()
    if not text.startswith(b"["):
        return False
    first, _, rest = text.partition(b"\n")
    return not rest or isinstance(_load(first, 1), RowProblem)


def _line_values(file: IO[bytes]) -> Iterator[tuple[int, object]]:
    line = 0
    while raw := file.readline(MAX_ROW_BYTES):
        line += 1
        if len(raw) == MAX_ROW_BYTES and not raw.endswith(b"\n"):
            while (rest := file.readline(1 << 20)) and not rest.endswith(b"\n"):
                pass
            limit = f"{MAX_ROW_BYTES:,} bytes"
            yield line, RowProblem(line, f"longer than {limit}, the most a row may have")
        elif text := raw.removeprefix(_BOM).strip():
            yield line, _load(text, line)


def _load(text: bytes, line: int) -> object:
    try:
        return json.loads(_decode(text))
    except json.JSONDecodeError as e:
        return RowProblem(line, f"no JSON: {e.msg} at column {e.colno}: {cut(e.doc)}")
    except (ValueError, RecursionError) as e:
        return RowProblem(line, f"no usable JSON: {e}")


def _array_values(file: IO[bytes]) -> Iterator[tuple[int, object]]:
    data = file.read(MAX_ARRAY_BYTES + 1)
    if len(data) > MAX_ARRAY_BYTES:
        raise TaskDataError(
            f"A JSON array of more than {MAX_ARRAY_BYTES:,} bytes; write it as jsonl, a row a line."
        )
    text = _decode(data.removeprefix(_BOM))
    decoder = json.JSONDecoder()
    at, line = text.index("[") + 1, 1 + text.count("\n", 0, text.index("["))
    while True:
        begin = _GAP.match(text, at).end()  # type: ignore[union-attr]  # matches emptiness too
        line += text.count("\n", at, begin)
        if text.startswith("]", begin):
            return
        try:
            value, at = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError) as e:
            what = e.msg if isinstance(e, json.JSONDecodeError) else e
            yield line, RowProblem(line, f"the JSON array breaks here ({what}); the rest is unread")
            return
        yield line, value
        line += text.count("\n", begin, at)


def _decode(data: bytes) -> str:
    """Text in which a byte that is no UTF-8 stays visible, so that only its own row is refused."""
    return data.decode("utf-8", "surrogateescape")


def cut(text: str) -> str:
    """The text, short enough for a message."""
    return text if len(text) <= 80 else text[:79] + "…"

"""Rows of JSONL and parquet files, one after another; memory holds a few of them at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sweet.errors import StoreError, boundary

MAX_LINE_BYTES = 64 << 20
ROWS_AT_ONCE = 64
_LINE_ENDS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}
"""Ends of a line to some readers of text; JSON has them in strings only."""
_PARQUET_MAGIC = b"PAR1"


def write_rows(path: Path, rows: Iterable[dict[str, Any]], schema: pa.Schema) -> None:
    """Write a JSONL file, or parquet where the name ends so; whole or not at all."""
    kind = path.suffix.lower()
    if kind not in (".jsonl", ".parquet"):
        raise StoreError(f"Cannot export to {path}: the name must end in .jsonl or .parquet.")
    if path.is_dir():
        raise StoreError(f"Cannot export to {path}: it is a folder; name a file.")
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    with boundary(StoreError, f"Cannot write the export {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            if kind == ".parquet":
                _write_parquet(aside, rows, schema)
            else:
                _write_jsonl(aside, rows)
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)


def _write_jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False).translate(_LINE_ENDS) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _write_parquet(path: Path, rows: Iterable[dict[str, Any]], schema: pa.Schema) -> None:
    with pq.ParquetWriter(path, schema) as writer:
        chunk: list[dict[str, Any]] = []
        for row in rows:
            chunk.append(row)
            if len(chunk) == ROWS_AT_ONCE:
                writer.write_table(pa.Table.from_pylist(chunk, schema))
                chunk = []
        writer.write_table(pa.Table.from_pylist(chunk, schema))


def read_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """The number (from 1) and the value of each row; a ValueError as value where it has none."""
    with boundary(StoreError, f"Cannot read {path}"), path.open("rb") as file:
        begin = file.read(len(_PARQUET_MAGIC))
    yield from _read_parquet(path) if begin == _PARQUET_MAGIC else _read_jsonl(path)


def _read_jsonl(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES):
            number += 1
            if len(raw) == MAX_LINE_BYTES and not raw.endswith(b"\n"):
                while (rest := file.readline(1 << 20)) and not rest.endswith(b"\n"):
                    pass
                yield number, ValueError(f"longer than {MAX_LINE_BYTES:,} bytes")
            elif text := raw.removeprefix(b"\xef\xbb\xbf").strip():
                yield number, _load(text)


def _load(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as e:
        return ValueError(f"no JSON: {e}")


def _read_parquet(path: Path) -> Iterator[tuple[int, Any]]:
    with boundary(StoreError, f"Cannot read {path}"):
        file = pq.ParquetFile(path)
    number = 0
    with file:
        for batch in file.iter_batches(ROWS_AT_ONCE):
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                number += 1
                yield number, row

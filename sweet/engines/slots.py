"""Keys and values of a running batch, kept in place while rows join and leave.

Tensors have the shape (slot, head, column, dim). Every row ends at the same column `end`; a row
that began later starts at a later column, and what lies before it is masked. So a step writes one
column for all rows, a finished row is replaced by the last one, and nothing else is copied.
Only tensor methods are used: torch itself is imported in `local` alone.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from typing import Any

Tensor = Any
KeysValues = list[tuple[Tensor, Tensor]]
SPARE_COLUMNS = 64


class Slots:
    """Where each row lies, and the layers' buffers."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.end = 0
        self.buffers: dict[int, tuple[Tensor, Tensor]] = {}
        self._rows = 0
        self._columns = 0
        self.first = self.low = self.queries = 0

    def __len__(self) -> int:
        return len(self.starts)

    def look_at(self, first: int, queries: int) -> None:
        """The next pass is about the rows from `first` on and their last `queries` columns."""
        self.first, self.queries = first, queries
        self.low = min(self.starts[first:])

    @property
    def past_columns(self) -> int:
        """Columns in view that were filled before this forward pass."""
        return self.end - self.low - self.queries

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new columns of the rows in view; all their keys and values."""
        if layer not in self.buffers:
            self.buffers[layer] = (
                _blank(keys, self._rows, self._columns),
                _blank(values, self._rows, self._columns),
            )
        rows, new = slice(self.first, len(self)), slice(self.end - self.queries, self.end)
        seen = slice(self.low, self.end)
        stored_keys, stored_values = self.buffers[layer]
        stored_keys[rows, :, new] = keys
        stored_values[rows, :, new] = values
        return stored_keys[rows, :, seen], stored_values[rows, :, seen]

    def add(self, lengths: list[int]) -> None:
        """Slots for new rows of these lengths, ending where all rows end."""
        longest = max(lengths)
        if not self.starts:
            self.end = 0
        # Moving all rows costs a copy of everything, so the next ones may be longer still.
        shift = longest + SPARE_COLUMNS - self.end if longest > self.end else 0
        self._reserve(len(self) + len(lengths), shift)
        self.starts += [self.end - n for n in lengths]

    def advance(self) -> None:
        """Room for one more column."""
        if self.end == self._columns:
            self._reserve(len(self), shift=-min(self.starts))
        self.end += 1

    def fill(self, row: int, saved: KeysValues, columns: int) -> None:
        """The first `columns` of a row from keys and values saved before."""
        start = self.starts[row]
        for (keys, values), (old_keys, old_values) in zip(
            self.buffers.values(), saved, strict=True
        ):
            keys[row, :, start : start + columns] = old_keys[:, :columns]
            values[row, :, start : start + columns] = old_values[:, :columns]

    def saved(self, row: int) -> KeysValues:
        """A copy of a row's keys and values."""
        seen = slice(self.starts[row], self.end)
        return [
            (k[row, :, seen].clone(), v[row, :, seen].clone()) for k, v in self.buffers.values()
        ]

    def copy(self, row: int) -> None:
        """A new last slot that has read what `row` has."""
        self._reserve(len(self) + 1, 0)
        seen = slice(self.starts[row], self.end)
        for keys, values in self.buffers.values():
            keys[len(self), :, seen] = keys[row, :, seen]
            values[len(self), :, seen] = values[row, :, seen]
        self.starts.append(self.starts[row])

    def drop(self, row: int) -> None:
        """Free a slot; the last row moves into it."""
        last = len(self) - 1
        seen = slice(self.starts[last], self.end)
        if row != last:
            for keys, values in self.buffers.values():
                keys[row, :, seen] = keys[last, :, seen]
                values[row, :, seen] = values[last, :, seen]
            self.starts[row] = self.starts[last]
        self.starts.pop()

    def _reserve(self, rows: int, shift: int) -> None:
        """Room for `rows`, every column moved by `shift`, and some columns to spare."""
        end, kept = self.end + shift, len(self)
        fits = rows <= self._rows and end < self._columns
        if fits and not (shift and kept):
            self.end = end
            return
        low = min(self.starts, default=self.end)
        size = 1 << (rows - 1).bit_length(), end + max(SPARE_COLUMNS, (self.end - low) // 2)
        old_columns, new_columns = slice(low, self.end), slice(low + shift, end)
        fresh = {}
        for layer, pair in self.buffers.items():
            fresh[layer] = (_blank(pair[0], *size), _blank(pair[1], *size))
            for new, old in zip(fresh[layer], pair, strict=True):
                new[:kept, :, new_columns] = old[:kept, :, old_columns]
        self.buffers = fresh
        self._rows, self._columns = size
        self.starts = [s + shift for s in self.starts]
        self.end = end


def _blank(like: Tensor, rows: int, columns: int) -> Tensor:
    # Zeros, not uninitialised memory: a masked NaN still poisons a weighted sum.
    return like.new_zeros((rows, like.shape[1], columns, like.shape[3]))


class PrefixStore:
    """Keys and values of what was read before, so the next turn reads only what is new."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[bytes, KeysValues] = OrderedDict()

    def put(self, ids: list[int], saved: KeysValues) -> None:
        """Keep what was saved of a row that had read `ids`; the least used goes when full."""
        key = array("q", ids).tobytes()
        self._forget(key)
        self._entries[key] = saved
        self._bytes += _size_bytes(saved)
        while self._bytes > self._max_bytes:
            self._forget(next(iter(self._entries)))

    def has(self, ids: list[int]) -> bool:
        """Whether a row that had read just `ids` is kept."""
        return array("q", ids).tobytes() in self._entries

    def longest(self, ids: list[int]) -> tuple[int, KeysValues]:
        """How many of the first tokens are known, and an entry that begins with them."""
        wanted = array("q", ids).tobytes()
        best, best_key = 0, b""
        for key in self._entries:
            known = _common_tokens(wanted, key, best)
            if known > best:
                best, best_key = known, key
        if not best:
            return 0, []
        self._entries.move_to_end(best_key)
        return best, self._entries[best_key]

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._bytes = 0

    def _forget(self, key: bytes) -> None:
        if saved := self._entries.pop(key, None):
            self._bytes -= _size_bytes(saved)


def _common_tokens(a: bytes, b: bytes, at_least: int) -> int:
    """Equal leading tokens, found by halving; 0 unless there are more than `at_least`."""
    low, high = at_least + 1, min(len(a), len(b)) // 8
    if high < low or a[: low * 8] != b[: low * 8]:
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if a[: middle * 8] == b[: middle * 8]:
            low = middle
        else:
            high = middle - 1
    return low


def _size_bytes(saved: KeysValues) -> int:
    return sum(t.numel() * t.element_size() for pair in saved for t in pair)

"""How branches of an episode go through a model together: in rows, batches and groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch

Branches = Sequence[tuple[int, Sequence[int]]]
"""Where each leaves the trunk, and its tokens."""
READ_TOKENS = 65_536  # of keys and values that the rows of one pass read, each row for itself


@dataclass(frozen=True, slots=True)
class Row:
    """Branches that leave the trunk at `past` and share a row of a batch, `tokens` together."""

    past: int
    branches: list[int]
    tokens: int


@dataclass(frozen=True, slots=True)
class Packed:
    """A batch of rows, padded on the right: what goes into the model, and where to find it again.

    All are (B, T) but for `starts`, (B, 1): where a row leaves the trunk. `owner` is the branch
    that a token belongs to, -1 for padding; `targets` what follows it.
    """

    ids: torch.Tensor
    targets: torch.Tensor
    owner: torch.Tensor
    positions: torch.Tensor
    starts: torch.Tensor
    places: dict[int, tuple[int, slice]]

    @classmethod
    def of(cls, branches: Branches, rows: Sequence[Row], device: Any, *, ends: bool) -> Packed:
        """Those rows; with `ends` also each branch's last token, which predicts none of it."""
        columns: list[list[tuple[int, int, int, int]]] = []
        places: dict[int, tuple[int, slice]] = {}
        for number, row in enumerate(rows):
            columns.append([])
            for i in row.branches:
                ids = branches[i][1]
                inputs = len(ids) if ends else len(ids) - 1
                place = slice(len(columns[-1]), len(columns[-1]) + inputs)
                places[i] = number, place
                following = [*ids[1:], 0]
                columns[-1] += [(ids[t], following[t], i, row.past + t) for t in range(inputs)]
        width = max(map(len, columns))
        full = [[*column, *[(0, 0, -1, 0)] * (width - len(column))] for column in columns]
        grid = torch.tensor(full, device=device).view(len(rows), width, 4)
        starts = torch.tensor([[row.past] for row in rows], device=device)
        ids, targets, owner, positions = grid.unbind(-1)
        return cls(ids, targets, owner, positions, starts, places)

    def mask(self, past: int, dtype: torch.dtype) -> torch.Tensor | None:
        """What hides from a token the trunk after its branching point, and other branches."""
        columns = torch.arange(past, device=self.ids.device)
        trunk = columns < self.starts
        if len(self.places) == len(self.ids):  # a branch a row: causal attention hides the rest
            own = torch.ones_like(self.ids, dtype=torch.bool)
            return None if trunk.all() else torch.cat([trunk, own], dim=1)
        width = self.ids.shape[1]
        own = (self.owner.unsqueeze(2) == self.owner.unsqueeze(1)).tril()
        seen = torch.cat([trunk.unsqueeze(1).expand(-1, width, -1), own], dim=2).unsqueeze(1)
        hidden = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
        return hidden.masked_fill(~seen, torch.finfo(dtype).min)


def groups(branches: Branches, pass_tokens: int, row_tokens: int) -> Iterator[list[Row]]:
    """Rows of whole turns, together as many as fit into a pass; at least one turn."""

    def position(index: int) -> int:
        return branches[index][0]

    group: list[Row] = []
    for past, turn in groupby(sorted(range(len(branches)), key=position), key=position):
        rows = rows_of_turn(branches, past, list(turn), row_tokens)
        together = group + rows
        read = (past + max(row.tokens for row in together)) * len(together)
        if group and (sum(row.tokens for row in together) > pass_tokens or read > READ_TOKENS):
            yield group
            together = rows
        group = together
    yield group


def rows_of_turn(branches: Branches, past: int, turn: Sequence[int], row_tokens: int) -> list[Row]:
    """A turn's branches in few rows of like length; only one branch may be over `row_tokens`."""
    longest_first = sorted(turn, key=lambda i: -len(branches[i][1]))
    rows: list[Row] = []
    for number in range(1, len(turn) + 1):
        rows = [Row(past, [], 0)] * number
        for i in longest_first:
            at = min(range(number), key=lambda at: rows[at].tokens)
            tokens = rows[at].tokens + len(branches[i][1])
            rows[at] = Row(past, [*rows[at].branches, i], tokens)
        if all(row.tokens <= row_tokens or len(row.branches) == 1 for row in rows):
            break
    return rows


def batches(group: Sequence[Row], pass_tokens: int, pass_cost: int) -> Iterator[list[Row]]:
    """The rows of a group, like lengths together: as few padded tokens and passes as can be."""
    order = sorted(group, key=lambda row: row.tokens)
    past = max(row.past for row in group)
    # The cheapest way to cut order[:end], and where its last batch starts.
    costs, starts = [0], [0]
    for end, wide in enumerate((row.tokens for row in order), start=1):
        rows = max(1, min(pass_tokens // wide, READ_TOKENS // (past + wide)))
        choices = range(max(0, end - rows), end)
        cost, start = min((costs[i] + (end - i) * wide + pass_cost, i) for i in choices)
        costs.append(cost)
        starts.append(start)
    end = len(order)
    while end:
        yield order[starts[end] : end]
        end = starts[end]


def padded(rows: Sequence[Sequence[int]], device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids (B, T) padded on the right, and the mask (B, T) of real tokens."""
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], device=device)
    lengths = torch.tensor([[len(row)] for row in rows], device=device)
    return ids, torch.arange(width, device=device) < lengths

from __future__ import annotations

import pytest

from tests.trainer.test_tree import a_tree
from trainer.packing import batches, groups, rows_of_turn


def test_branches_of_like_length_share_a_pass_and_odd_ones_pad_no_other():
    branches = [(1, [0] * n) for n in (10, 200, 11, 10, 12, 190)]
    rows = rows_of_turn(branches, 1, range(6), row_tokens=0)

    def together(pass_cost: int) -> list[list[int]]:
        found = batches(rows, 10_000, pass_cost)
        return sorted(sorted(i for row in batch for i in row.branches) for batch in found)

    assert together(pass_cost=32) == [[0, 2, 3, 4], [1, 5]]
    assert together(pass_cost=10_000) == [[0, 1, 2, 3, 4, 5]]


@pytest.mark.parametrize("pass_tokens", [1, 25, 60])
def test_no_pass_is_larger_than_asked_but_for_single_branches(pass_tokens):
    branches = a_tree().branches
    made = groups(branches, pass_tokens, row_tokens=pass_tokens)
    passes = [batch for group in made for batch in batches(group, pass_tokens, pass_cost=32)]
    found = [[i for row in batch for i in row.branches] for batch in passes]
    assert sorted(i for members in found for i in members) == list(range(len(branches)))
    for batch, members in zip(passes, found, strict=True):
        width = max(row.tokens for row in batch)
        assert len(members) == 1 or width * len(batch) <= pass_tokens


def test_a_turns_branches_share_rows_of_like_length():
    branches = [(1, [0] * n) for n in (60, 50, 40, 30, 20, 10, 300)]
    rows = rows_of_turn(branches, 1, range(7), row_tokens=110)
    assert sorted(row.tokens for row in rows) == [100, 110, 300]
    assert sorted(i for row in rows for i in row.branches) == list(range(7))

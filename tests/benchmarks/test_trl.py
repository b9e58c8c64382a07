from __future__ import annotations

import math

import pytest

from benchmarks import trl as benchmark
from benchmarks.trl import Side
from tests.trainer.studio import train_rows


@pytest.fixture
def measured(monkeypatch, capsys) -> dict[str, tuple[Side, Side]]:
    """Both sides of each comparison on two tasks; what was measured last, without the warm-up."""
    found: dict[str, tuple[Side, Side]] = {}
    compared = benchmark._compared

    def compare(name: str, ours: Side, theirs: Side, *more):
        found[name.split(",")[0]] = (ours, theirs)
        return compared(name, ours, theirs, *more)

    monkeypatch.setattr(benchmark, "_compared", compare)
    monkeypatch.setattr(benchmark, "TASKS", 2)
    monkeypatch.setattr(benchmark, "PAIRS", 2)
    rows = benchmark.run()
    assert [c.name.split(",")[0] for c in rows] == ["trl"] * 3
    assert all(c.ours > 0 and c.theirs > 0 and "CPU s" in c.conditions for c in rows)
    assert capsys.readouterr().out == "", "stdout is for the one table or JSON value"
    return found


def test_trl_s_trainers_begin_with_our_losses_and_go_on_with_them(measured):
    assert set(measured) == {"turn by turn", "multi-turn DPO", "rejection fine-tuning"}
    for ours, theirs in measured.values():
        assert ours.losses[0] == pytest.approx(theirs.losses[0], abs=1e-5)
    for name in ("turn by turn", "rejection fine-tuning"):  # the same at each later update
        ours, theirs = measured[name]
        assert len(ours.losses) == len(theirs.losses) == 2
        assert ours.losses == pytest.approx(theirs.losses, abs=1e-3)
    assert measured["turn by turn"][0].losses[0] == pytest.approx(math.log(2), abs=1e-6)
    assert abs(measured["turn by turn"][0].losses[1] - math.log(2)) > 1e-3, "something was learned"


def test_sides_that_begin_with_different_losses_are_no_comparison():
    ours, theirs = Side(1.0, [0.69]), Side(1.0, [0.70])
    with pytest.raises(AssertionError, match=r"0\.690000 against 1 from 0\.700000"):
        benchmark._compared("x", ours, theirs, 1, "")


def test_a_success_asks_for_every_hidden_number_and_a_failure_for_none():
    (row, _) = train_rows()
    good, bad = benchmark.episodes(row)
    assert row.hidden and row.hidden.reference in good.turns[-1].action.raw
    assert [e.reward.value for e in (good, bad) if e.reward] == [1.0, 0.0]
    told = " ".join(str(turn.reply) for turn in good.turns[:-1])
    assert any(char.isdigit() for char in told)
    assert good.turns[-1].action.raw != bad.turns[-1].action.raw

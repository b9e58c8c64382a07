from __future__ import annotations

import json

import pytest

import benchmarks.__main__ as command
from benchmarks import sandbox
from benchmarks.comparison import Comparison
from evaluators.sandbox import Sandbox
from sweet.errors import SandboxError


def test_every_benchmark_is_found_and_can_be_run() -> None:
    assert "sandbox" in command.names()
    assert not {"comparison", "__main__"} & set(command.names())


def test_json_is_one_list_with_both_sides_and_their_ratio(monkeypatch, capsys) -> None:
    monkeypatch.setattr(command, "run", lambda name: [Comparison(name, 300.0, 60.0, "here")])
    assert command.main(["sandbox", "--json"]) == 0
    row = {"name": "sandbox", "ours": 300.0, "theirs": 60.0, "ratio": 5.0, "conditions": "here"}
    assert json.loads(capsys.readouterr().out) == [row]
    assert command.main(["sandbox"]) == 0
    assert "5.00x" in capsys.readouterr().out


def test_an_unknown_benchmark_is_refused_with_those_there_are(capsys) -> None:
    with pytest.raises(SystemExit):
        command.main(["nothing"])
    assert "sandbox" in capsys.readouterr().err


def test_a_benchmark_that_cannot_be_run_says_why(monkeypatch, capsys) -> None:
    def refuse(**_: object) -> Sandbox:
        raise SandboxError("only limits here")

    monkeypatch.setattr(Sandbox, "start", refuse)
    assert command.main(["sandbox"]) == 1
    assert "only limits here" in capsys.readouterr().err


def test_the_sandbox_is_compared_with_both_other_ways(monkeypatch) -> None:
    monkeypatch.setattr(sandbox, "SECONDS", 0.3)
    rows = [c.row() for c in sandbox.run()]
    assert [str(r["name"]).split(",")[0] for r in rows] == [
        "sandbox vs a subprocess an answer",
        "sandbox vs compiled in-process",
    ]
    assert rows[0]["ours"] == rows[1]["ours"]
    assert all("10 tests an answer" in str(r["conditions"]) for r in rows)

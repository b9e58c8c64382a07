"""`compare`, `leaderboard`, and votes and pairs in and out, from the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweet.cli import main
from sweet.registry import Registry
from sweet.store import Choice, EpisodeStore
from sweet.types import ANSWER_MARK
from tests.rows import RIGHT
from tests.sweet.conftest import Run
from tests.sweet.engines.server import Handler, Server, says, serving

BASE, TRAINED = "endpoint:small", "v0001"


def answering(handler: Handler, body: dict[str, Any]) -> None:
    """The trained version is right, its base is wrong; the judge likes the longer artifact."""
    system, *said = body["messages"]
    if "You compare two attempts" in system["content"]:
        first, second = said[0]["content"].rsplit("\nFIRST\n", 1)[-1].split("\nSECOND\n")
        return says(f"BETTER: {'FIRST' if len(first) > len(second) else 'SECOND'}")(handler, body)
    code = RIGHT[said[0]["content"]]
    wrong = code.split(":", 1)[0] + ": return None"
    says(f"{ANSWER_MARK}\n{code if body['model'] == TRAINED else wrong}")(handler, body)


@pytest.fixture(autouse=True)
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in [name for name in os.environ if name.startswith("SWEET_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SWEET_DATA", str(tmp_path / "data"))
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    (adapter / "adapter_model.safetensors").write_bytes(b"weights")
    registry = Registry(tmp_path / "data" / "policies", [])
    registry.register(
        adapter, "small", parent_id=None, round_id="r1", data_hash="x", settings={}, figures={}
    )
    with serving(answering) as server:
        for role, model in (("AGENT", "small"), ("JUDGE", "judge")):
            monkeypatch.setenv(f"SWEET_{role}__MODEL", model)
            monkeypatch.setenv(f"SWEET_{role}__BASE_URL", server.base_url)
        yield server


def test_compare_plays_once_has_the_judge_vote_and_fills_the_leaderboard(
    run: Run, file_set: str, endpoint: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("compare", TRAINED, BASE, "--tasks", file_set, "-n", 2)
    code, first, err = run(*words)
    assert code == 0, err
    assert (first["wins"], first["ties"], first["losses"]) == (2, 0, 0)
    assert (first["difference"]["value"], first["difference"]["n"]) == (1.0, 2)
    assert (first["played"], first["judged"], first["interrupted"]) == (4, None, False)
    assert {side["reward"] for pair in first["differ"] for side in
            (pair["first"], pair["second"])} == {0.0, 1.0}  # fmt: skip
    asked = len(endpoint.asked)
    code, again, _ = run(*words, "--judge")
    assert (code, again["played"], again["judged"]) == (0, 0, 2)
    assert len(endpoint.asked) == asked + 4  # two pairs, both orders
    code, board, _ = run("leaderboard", "--sort", "success", "--paper")
    assert code == 0
    assert [(row["policy_id"], row["success"]["value"]) for row in board["rows"]] == [
        (TRAINED, 1.0),
        (BASE, 0.0),
    ]
    assert board["judge"]["votes"] == 2
    assert board["people"]["votes"] == 0
    assert board["rows"][0]["judge_win_rate"]["value"] == 1.0
    assert board["turn_budgets"][0]["success"][0]["n"] == 2
    assert board["paper"][0]["method"].startswith("single turn")
    assert main(["leaderboard", "--paper"]) == 0
    told = capsys.readouterr().out
    assert "not measured here" in told
    assert "n=2" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["compare", BASE, BASE, "--tasks", "mini-backend/families"], "itself"),
        (["compare", BASE, "v0042", "--tasks", "mini-backend/families"], "v0042"),
        (["leaderboard", "--sort", "beauty"], "beauty"),
        (["export", "--format", "votes", "--out", "v.csv"], ".jsonl"),
    ],
)
def test_what_cannot_be_done_is_told(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert told in capsys.readouterr().err


def test_without_a_judge_nothing_is_played(
    run: Run, file_set: str, endpoint: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SWEET_JUDGE__MODEL")
    monkeypatch.delenv("SWEET_JUDGE__BASE_URL")
    code, _, err = run("compare", TRAINED, BASE, "--tasks", file_set, "--judge")
    assert code == 2
    assert "SWEET_JUDGE__MODEL" in err
    assert endpoint.asked == []


def test_votes_and_pairs_go_out_and_come_back_to_equal_counts(
    run: Run, file_set: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, compared, _ = run("compare", TRAINED, BASE, "--tasks", file_set, "-n", 2)
    with EpisodeStore.open(tmp_path / "data" / "sweet.db") as store:
        for pair in compared["differ"]:
            ids = (pair["first"]["episode"], pair["second"]["episode"])
            comparison = store.start_comparison(*ids)
            left_won = comparison.left_policy == TRAINED
            store.vote(comparison.id, Choice.LEFT if left_won else Choice.RIGHT, "ann")
    counts = {}
    for kind in ("votes", "preferences"):
        for ending in ("jsonl", "parquet"):
            words = ("--format", kind, "--out", f"out/{kind}.{ending}")
            code, value, err = run("export", *words, "--card", "--overwrite")
            assert code == 0, err
            counts[f"{kind}.{ending}"] = value[kind]
            assert Path(value["card"]).read_text().startswith("---")
    assert counts["votes.jsonl"] == counts["votes.parquet"] == 2
    assert counts["preferences.jsonl"] == counts["preferences.parquet"] == 6
    for name, count in counts.items():
        _, back, _ = run("import", f"out/{name}")
        assert (back["added"], back["known"], back["left_out"]) == (0, count, 0)
    monkeypatch.setenv("SWEET_DATA", str(tmp_path / "other"))
    for kind in ("preferences", "votes"):
        _, back, _ = run("import", f"out/{kind}.parquet")
        assert (back["added"], back["left_out"]) == (counts[f"{kind}.parquet"], 0)
        _, value, _ = run("export", "--format", kind, "--out", f"back-{kind}.jsonl")
        assert value[kind] == counts[f"{kind}.jsonl"]
    assert run("export", "--format", "votes", "--out", "out/x.jsonl", "--card")[0] == 2  # a card


def test_pushing_without_a_token_keeps_the_file_and_says_what_to_do(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    code, _, err = run("export", "--out", "x.jsonl", "--push", "me/mine")
    assert code == 2
    assert "HF_TOKEN" in err
    assert Path("x.jsonl").exists()

"""The command line: figures on stdout, everything else on stderr, errors without a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sweet.cli import main, parser
from sweet.probes import Check
from sweet.services import MADE_AT_START, MINI_SEED, MINI_SIZES
from sweet.store import EpisodeStore
from sweet.tasks import colbench, mini_backend
from sweet.types import ANSWER_MARK, EpisodeFilter, TaskRow
from tests.rows import ROWS
from tests.sweet.conftest import Run
from tests.sweet.engines.server import Handler, Server, refuses, says, serving


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("SWEET_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SWEET_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def reference(row: TaskRow) -> str:
    assert row.hidden is not None
    return row.hidden.reference


def answering(handler: Handler, body: dict[str, Any]) -> None:
    """Asks once; then right on the first task, wrong on the second; fails on the third."""
    said = [m for m in body["messages"] if m["role"] != "system"]
    index = [row.task.description for row in ROWS].index(said[0]["content"])
    if index == 2:
        return refuses(400, "no such adapter")(handler, body)
    right = reference(ROWS[index])
    code = right if index == 0 else right.split(":", 1)[0] + ": return None"
    says(f"{ANSWER_MARK}\n{code}" if len(said) > 2 else "How is it rounded?")(handler, body)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving(answering) as server:
        monkeypatch.setenv("SWEET_AGENT__MODEL", "small")
        monkeypatch.setenv("SWEET_AGENT__BASE_URL", server.base_url)
        yield server


# Errors


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        [],
        ["rollout"],
        ["rollout", "--tasks", "mini-backend/test", "-n", "0"],
        ["rollout", "--tasks", "mini-backend/test", "-n", "many"],
        ["score", "--tasks", "x", "--answers", "y", "--mode", "both"],
    ],
)
def test_wrong_arguments_are_an_error_on_stderr(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        main(words)
    out, err = capsys.readouterr()
    assert (exit.value.code, out) == (2, "")
    assert err.startswith("error: ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["rollout", "--tasks", "nothing/here"], "nothing/here"),
        (["rollout", "--tasks", "mini-backend/families", "--policy", "v0042"], "v0042"),
        (["evaluate", "--tasks", "file:absent.jsonl"], "absent.jsonl"),
        (["score", "--tasks", "absent.jsonl", "--answers", "absent.jsonl"], "absent.jsonl"),
        (["import", "absent.jsonl"], "absent.jsonl"),
        (["tasks", "import", "absent.jsonl"], "absent.jsonl"),
        (["tasks", "make", "--tasks", "colbench-backend/test"], "mini-backend/train"),
        (["policies", "promote", "v0042"], "v0042"),
        (["policies", "rollback"], "nothing to roll back"),
        (["export", "--out", "episodes.csv"], ".jsonl"),
        (["export", "--out", "x.jsonl", "--since", "yesterday"], "yesterday"),
    ],
)
def test_what_cannot_be_done_is_an_error_that_names_it(
    words: list[str], told: str, run: Run
) -> None:
    code, value, err = run(*words)
    assert (code, value) == (2, None)
    assert "error: " in err and told in err and "Traceback" not in err


def test_wrong_settings_are_an_error_that_names_them(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWEET_MAX_TURNS", "none")
    code, _, err = run("policies", "list")
    assert code == 2
    assert "error: " in err and "SWEET_MAX_TURNS" in err


def test_it_runs_as_a_module_and_survives_a_reader_that_leaves() -> None:
    command = [sys.executable, "-m", "sweet", "policies", "list"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert done.returncode == 0 and "embedded" in done.stdout
    reader, writer = os.pipe()
    os.close(reader)
    gone = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=root)
    os.close(writer)
    assert b"Traceback" not in gone.stderr


def test_every_command_has_help_and_json() -> None:
    def leaves(of: Any) -> Iterator[Any]:
        groups = [a for a in of._actions if hasattr(a, "choices") and isinstance(a.choices, dict)]
        for group in groups:
            for child in group.choices.values():
                yield from leaves(child)
        if not groups:
            yield of

    commands = list(leaves(parser()))
    assert len(commands) >= 13
    assert all("--json" in c.format_help() and c.description for c in commands)


# Tasks


def test_tasks_are_made_into_a_file_that_is_a_task_set(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "made.jsonl"
    code, value, _ = run("tasks", "make", "--tasks", "mini-backend/test", "-n", 4, "--out", out)
    assert code == 0 and value["n"] == 4
    read = colbench.read_tasks(out)
    assert (len(read.rows), read.problems) == (4, ())
    code, _, err = run("tasks", "make", "-n", 1, "--out", out)
    assert code == 2 and "--overwrite" in err
    assert run("tasks", "make", "-n", 1, "--out", out, "--overwrite")[0] == 0


def test_tasks_are_made_into_the_store_and_listed(run: Run, data: Path) -> None:
    make = ("tasks", "make", "--tasks", "mini-backend/families", "-n", 5, "--seed")
    assert [run(*make, seed)[1]["added"] for seed in (98, 99, 99)] == [5, 5, 0]
    code, sets, _ = run("tasks", "list")
    counts = {s["tasks"]: s["n"] for s in sets}
    assert code == 0 and set(counts) == set(MADE_AT_START)
    assert counts["mini-backend/families"] == MINI_SIZES["families"] + 10
    with EpisodeStore.open(data / "sweet.db") as store:  # a set begins alike on every machine
        first = store.tasks("mini-backend", "families", limit=1)[0]
    assert first == next(mini_backend.generate("families", 1, MINI_SEED)).task


def test_a_task_file_is_imported_and_its_bad_lines_are_named(run: Run, task_file: Path) -> None:
    with task_file.open("a") as file:
        file.write('{"problem_description": "x"}\n')
    code, value, err = run("tasks", "import", task_file, "--split", "test")
    assert code == 0
    assert (value[0]["tasks"], value[0]["added"]) == ("colbench-backend/test", 3)
    assert "line 4" in value[0]["left_out"][0] and "line 4" in err
    assert "colbench-backend/test" in [s["tasks"] for s in run("tasks", "list")[1]]


# Episodes


def test_a_rollout_logs_every_episode_and_counts_the_ends(
    run: Run, task_file: Path, endpoint: Server, data: Path
) -> None:
    code, value, err = run("rollout", "--tasks", f"file:{task_file}", "-n", 6, "--concurrency", 3)
    assert code == 0
    assert (value["n"], value["answered"], value["failed"]) == (6, 4, 2)
    assert (value["scored"], value["success_rate"]) == (4, 0.5)
    assert "no such adapter" in err
    with EpisodeStore.open(data / "sweet.db") as store:
        assert store.search(EpisodeFilter(batch_id=value["batch"])).count == 6


def test_an_evaluation_gives_its_figures_and_counts_failures_apart(
    run: Run, task_file: Path, endpoint: Server
) -> None:
    code, value, _ = run("evaluate", "--tasks", f"file:{task_file}", "-n", 3, "--seed", 1)
    assert code == 0
    assert (value["n"], value["without_reward"]) == (2, 1)
    assert value["success_rate"] == 0.5
    low, high = value["success_ci95"]
    assert 0 < low < 0.5 < high < 1
    assert value["tests_passed"] == 0.5
    assert value["cosine"] is None
    assert value["mean_turns"] == 2
    assert value["episodes_per_s"] > 0
    assert value["policy"] == "endpoint:small"


def test_when_every_episode_fails_there_are_no_figures_and_the_exit_code_says_so(
    run: Run, task_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(refuses(401, "wrong key")) as server:
        monkeypatch.setenv("SWEET_AGENT__MODEL", "small")
        monkeypatch.setenv("SWEET_AGENT__BASE_URL", server.base_url)
        code, value, err = run("evaluate", "--tasks", f"file:{task_file}", "-n", 2)
    assert code == 1
    assert (value["n"], value["success_rate"], value["success_ci95"]) == (0, None, None)
    assert value["without_reward"] == 2
    assert "wrong key" in err


def test_an_interrupt_stops_a_rollout_and_keeps_what_is_done(
    run: Run, task_file: Path, endpoint: Server
) -> None:
    def interrupt(handler: Handler, body: dict[str, Any]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        handler.server.released.wait()

    endpoint.script.insert(0, answering)
    endpoint.script.insert(1, answering)
    endpoint.script[2:] = [interrupt, interrupt]
    code, value, err = run("rollout", "--tasks", f"file:{task_file}", "-n", 9, "--concurrency", 1)
    assert code == 0
    assert (value["answered"], value["stopped"], value["n"]) == (1, 1, 2)
    assert "Stopping" in err


# Scoring


@pytest.fixture
def answers(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: object) -> Path:
        path = tmp_path / "answers.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("mode", ["fixed", "compat"])
def test_scoring_gives_a_row_an_answer_in_order(
    run: Run, task_file: Path, answers: Callable[..., Path], mode: str
) -> None:
    file = answers(
        {"task_index": 2, "answer": reference(ROWS[2]), "variant": "ignored"},
        {"task_index": 0, "answer": f"```python\n{reference(ROWS[0])}\n```"},
        {"task_index": 0, "answer": "I don't know."},
        {"task_index": 1, "answer": ""},
        {"task_index": 1, "answer": None},
    )
    code, rows, _ = run("score", "--mode", mode, "--tasks", task_file, "--answers", file)
    assert code == 0
    assert [row["task_index"] for row in rows] == [2, 0, 0, 1, 1]
    assert [row["score"] for row in rows] == [1, 1, 0, 0, 0]
    assert [row["passed"] for row in rows] == [True, True, False, False, False]
    assert set(rows[0]) == {"task_index", "score", "passed", "verdict"}


def test_scoring_prints_json_lines(
    task_file: Path, answers: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    file = answers({"task_index": 0, "answer": reference(ROWS[0])}, {"task_index": 1, "answer": ""})
    assert main(["score", "--tasks", str(task_file), "--answers", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["score"] for line in lines] == [1, 0]


def test_what_cannot_be_scored_is_null_with_its_reason_and_not_0(
    run: Run, task_file: Path, answers: Callable[..., Path]
) -> None:
    with task_file.open("a") as file:
        file.write("not json\n" + colbench.to_line(ROWS[0]))
    found = answers(
        {"task_index": 3, "answer": "def f(): ..."},
        {"task_index": 99, "answer": "def f(): ..."},
        {"task_index": "0", "answer": "def f(): ..."},
        {"task_index": 0, "answer": 5},
        {"task_index": 4, "answer": reference(ROWS[0])},
    )
    code, rows, err = run("score", "--tasks", task_file, "--answers", found)
    assert code == 0
    assert [row["score"] for row in rows] == [None, None, None, None, 1]
    assert all(row["verdict"] == "infra" and row["error"] for row in rows[:4])
    assert "line 4" in rows[0]["error"] and "line 4" in err


@pytest.mark.parametrize("row", ["text", {"task_index": 1}, {"answer": "x"}, [1, "x"]])
def test_a_row_that_is_no_answer_is_an_error_with_its_line(
    run: Run, task_file: Path, answers: Callable[..., Path], row: object
) -> None:
    file = answers({"task_index": 0, "answer": ""}, row)
    code, value, err = run("score", "--tasks", task_file, "--answers", file)
    assert (code, value) == (2, None)
    assert "line 2" in err


# The log


def test_episodes_go_out_and_into_another_log(
    run: Run, task_file: Path, endpoint: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("rollout", "--tasks", f"file:{task_file}", "-n", 3)
    out = tmp_path / "out.jsonl"
    assert run("export", "--out", out)[1]["episodes"] == 3
    assert run("export", "--out", out)[0] == 2  # never replaced unasked
    code, value, _ = run("export", "--out", out, "--overwrite", "--outcome", "success")
    assert (code, value["episodes"]) == (0, 1)
    code, value, _ = run("export", "--format", "colbench", "--out", tmp_path / "colbench.jsonl")
    assert code == 0
    monkeypatch.setenv("SWEET_DATA", str(tmp_path / "other"))
    assert run("import", out)[1]["added"] == 1
    assert run("import", out)[1]["known"] == 1


def test_lines_that_cannot_be_imported_are_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"what": 1}\n')
    code, value, err = run("import", path)
    assert (code, value["left_out"]) == (1, 1)
    assert "line 1" in err


def test_a_backup_is_a_whole_log(
    run: Run, task_file: Path, endpoint: Server, tmp_path: Path
) -> None:
    run("rollout", "--tasks", f"file:{task_file}", "-n", 2)
    code, value, _ = run("backup", tmp_path / "copy.db")
    assert (code, value["episodes"]) == (0, 2)
    with EpisodeStore.open(tmp_path / "copy.db") as store:
        assert store.search().count == 2
    assert run("backup", tmp_path / "copy.db")[0] == 2


# Policies


def test_policies_are_promoted_and_rolled_back(run: Run, endpoint: Server) -> None:
    def served() -> list[str]:
        return [p["id"] for p in run("policies", "list")[1] if p["served"]]

    assert served() == ["endpoint:small"]
    assert run("policies", "promote", "embedded")[1] == {
        "served": {"backend": "embedded", "frontend": "embedded"},
        "before": {"backend": "endpoint:small", "frontend": "endpoint:small"},
    }
    assert served() == ["embedded"]
    assert set(run("policies", "rollback")[1]["served"].values()) == {"endpoint:small"}
    assert served() == ["endpoint:small"]


def test_a_damaged_version_is_named_and_the_others_are_listed(run: Run, data: Path) -> None:
    (data / "policies" / "v0001").mkdir(parents=True)
    code, value, err = run("policies", "list")
    assert code == 1
    assert [p["id"] for p in value] == ["embedded"]
    assert "v0001" in err


# Doctor


@pytest.mark.parametrize(("state", "code"), [("works", 0), ("broken", 1)])
def test_doctor_says_what_works_and_fails_where_something_needed_does_not(
    run: Run, monkeypatch: pytest.MonkeyPatch, state: Any, code: int
) -> None:
    found = [Check("sandbox", state, "level full", "install it", needed=True)]
    monkeypatch.setattr("sweet.cli.doctor.examine", lambda: found)
    exit_code, value, _ = run("doctor")
    assert exit_code == code
    assert value["healthy"] is (code == 0)
    assert value["checks"][0]["detail"] == "level full"

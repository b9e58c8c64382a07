import json
import os
import random
import resource
import tracemalloc
from collections import Counter

import pytest

from sweet.errors import ConfigError, StoreError
from sweet.exchange import export_episodes, import_episodes
from sweet.types import EpisodeFilter as Filter
from sweet.types import (
    Evaluation,
    Feedback,
    HiddenInfo,
    Reward,
    StopReason,
    Task,
    TaskKind,
    TaskRow,
    Verdict,
)
from tests.sweet.store.samples import (
    TASK_ROW,
    answers,
    asks,
    evaluation,
    finished,
    started,
    talked,
)

SHAPES = ["episodes.jsonl", "episodes.parquet"]


def fill(store) -> None:
    """An episode of every state that there is."""
    own = Task("own-1", TaskKind.BACKEND, "Sort my list.", "own", "own")
    store.add_tasks([TaskRow(own, None)])
    done = finished(store, "five", "no idea 🤷\n\n```python\nx = '\u2028'\n```")
    store.add_feedback(Feedback(done.id, 0, 1.0, ("clear", "short"), "well asked"))
    store.add_feedback(Feedback(done.id, None, -0.5))
    store.add_advantages(done.id, "critic-1", {0: 0.5, 2: -0.25})
    finished(store, "six", value=0.0)
    store.fork(talked(store, "seven", "eight").id, 1, reply="nine")
    failed = talked(store, "ten")
    store.finish(failed.id, StopReason.FAILED, error="HTTP 503")
    unscored = finished(store)
    store.add_evaluation(unscored.id, Evaluation(None, Verdict.INFRA, error="sandbox died"))
    store.start_episode("own-1", "v0001", "person", -3, max_turns=2)
    long = started(store, "llm:gpt", max_turns=1)
    store.append_action(long.id, 0, asks("Never an answer"))
    store.finish(long.id, StopReason.TURN_LIMIT)
    store.add_evaluation(long.id, evaluation(0.0, 0.0))


def everything(store):
    return list(store.iter_episodes())


@pytest.mark.parametrize("name", SHAPES)
def test_a_round_trip_gives_equal_episodes(store, other, tmp_path, name):
    fill(store)
    done = export_episodes(store, Filter(), tmp_path / name)
    assert (done.episodes, done.skipped) == (8, 0)
    result = import_episodes(other, done.path)
    assert (result.added, result.known, result.problems) == (8, 0, ())
    assert everything(other) == everything(store)
    assert [set_.name for set_ in other.task_sets()] == ["mini-backend/test", "own"]
    assert other.search(Filter(text="seven nine")).count == 1


@pytest.mark.parametrize("name", SHAPES)
def test_importing_again_adds_nothing(store, other, tmp_path, name):
    fill(store)
    path = export_episodes(store, Filter(), tmp_path / name).path
    import_episodes(other, path)
    again = import_episodes(other, path)
    assert (again.added, again.known, again.bad) == (0, 8, 0)
    assert import_episodes(store, path).known == 8
    assert everything(other) == everything(store)


def test_only_what_the_filter_lets_through_is_exported(store, other, tmp_path):
    fill(store)
    done = export_episodes(store, Filter(outcome="success"), tmp_path / "good.jsonl")
    assert done.episodes == 1
    fork = export_episodes(store, Filter(outcome="in_progress"), tmp_path / "open.jsonl")
    assert import_episodes(other, fork.path).added == 2  # a fork without its parent


def test_a_line_has_task_turns_evaluation_and_feedback(store, tmp_path):
    fill(store)
    path = export_episodes(store, Filter(outcome="success"), tmp_path / "x.jsonl").path
    (line,) = [json.loads(text) for text in path.read_text().splitlines()]
    assert line["task"]["description"] == TASK_ROW.task.description
    assert line["turns"][0]["reply"] == "five"
    assert line["evaluation"]["reward"]["value"] == 1.0
    assert line["feedback"][0]["tags"] == ["clear", "short"]


def test_bad_lines_are_named_and_the_rest_is_kept(store, other, tmp_path):
    fill(store)
    path = export_episodes(store, Filter(), tmp_path / "x.jsonl").path
    good = path.read_text().splitlines()
    wrong = json.loads(good[0])
    bad = {
        "no JSON": "{oops",
        "no episode": '{"a": 1}',
        "no episode:": "[1, 2]",
        "turns.0.action.raw": _with(wrong, ["turns", 0, "action"], "raw", 7),
        "stop_reason": _with(wrong, [], "stop_reason", "bored"),
        "seed": _with(wrong, [], "seed", None),
        "task_id": _with(wrong, [], "task_id", "else"),
        "do not count up": _with(wrong, ["turns", 0], "index", 4),
        "no reply": _with(wrong, ["turns", 0], "reply", None),
        "from 0 to 1": _with(wrong, ["evaluation", "reward"], "value", 1.5),
        "64 bits": _with(wrong, [], "seed", 2**70),
        "no date": _with(wrong, [], "created_at", "yesterday"),
        "max_turns": _with(wrong, [], "max_turns", 0),
        "version": _with(wrong, [], "version", 99),
        "turn 9": _with(wrong, ["feedback", 0], "turn_index", 9),
        "id": _with(wrong, [], "id", " "),
    }
    texts = [good[0], "", *bad.values(), *good[1:]]
    path.write_text("\ufeff" + "\n".join(texts), encoding="utf-8")
    result = import_episodes(other, path)
    assert (result.added, result.bad) == (8, len(bad))
    for (expected, _), problem, number in zip(
        bad.items(), result.problems, range(3, 99), strict=False
    ):
        assert problem.line == number
        assert expected in problem.what
    assert everything(other) == everything(store)


def _with(line, where, name, value) -> str:
    """The line with another value at one place, under an id of its own."""
    changed = json.loads(json.dumps(line)) | {"id": f"bad-{name}-{value}"}
    part = changed
    for step in where:
        part = part[step]
    part[name] = value
    return json.dumps(changed)


def test_an_id_with_another_content_is_a_problem_of_its_line(store, tmp_path):
    fill(store)
    path = export_episodes(store, Filter(outcome="success"), tmp_path / "x.jsonl").path
    path.write_text(path.read_text().replace('"five"', '"fifty"'))
    before = everything(store)
    result = import_episodes(store, path)
    assert result.bad == 1
    assert "another content" in result.problems[0].what
    assert everything(store) == before


def test_cut_and_binary_files_are_told_line_by_line(other, tmp_path):
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b'{"turns": [' + os.urandom(3000).replace(b"\n", b"") + b"\n\xff\xfe\n")
    assert import_episodes(other, cut).bad == 2
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"")
    assert import_episodes(other, empty).added == 0
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 and then nothing")
    for path in (broken, tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(StoreError, match="Cannot read"):
            import_episodes(other, path)


def test_an_export_is_there_whole_or_not_at_all(store, tmp_path):
    fill(store)
    path = tmp_path / "out" / "x.jsonl"
    export_episodes(store, Filter(outcome="success"), path)
    before = path.read_text()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), hard))
    try:
        with pytest.raises(StoreError, match="Cannot write the export"):
            export_episodes(store, Filter(), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == before
    assert os.listdir(path.parent) == ["x.jsonl"]


def test_wrong_formats_and_names_are_told(store, tmp_path):
    with pytest.raises(ConfigError, match=r"'xml'.*episodes, colbench"):
        export_episodes(store, Filter(), tmp_path / "x.jsonl", "xml")
    with pytest.raises(StoreError, match=r"must end in \.jsonl or \.parquet"):
        export_episodes(store, Filter(), tmp_path / "x.csv")
    (tmp_path / "d.jsonl").mkdir()
    with pytest.raises(StoreError, match="is a folder"):
        export_episodes(store, Filter(), tmp_path / "d.jsonl")


def test_an_empty_log_exports_an_empty_file(store, other, tmp_path):
    for name in SHAPES:
        for format in ("episodes", "colbench"):
            path = tmp_path / f"{format}-{name}"
            assert export_episodes(store, Filter(), path, format).episodes == 0
            assert import_episodes(other, path).added == 0


# ColBench's shape


def colbench_line(reward: float | None = 0.5, **changed) -> dict:
    task = {
        "problem_description": "Write add(a, b).",
        "ground_truth": "def add(a, b):\n    return a + b",
        "test_cases": {"test1": "add(1, 2)", "test2": "add(0, 0)"},
    }
    said = "Let me think.\nOUTPUT: I WANT TO ANSWER: def add(a, b): return a - b"
    history = [
        {"role": "user", "content": "Write add(a, b)."},
        {"role": "assistant", "content": "Of ints?", "input": "<prompt>", "output": "OUTPUT: Of ints?"},  # noqa: E501
        {"role": "user", "content": "Yes."},
        {"role": "assistant", "content": said.split("OUTPUT:")[1], "input": "…", "output": said},
    ]  # fmt: skip
    line = {"task": task, "dialogue_history": history, "answer": "def add(a, b): return a - b"}
    return line | ({} if reward is None else {"reward": reward}) | changed


def write(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def without_input(line: dict) -> dict:
    history = [
        {k: v for k, v in message.items() if k != "input"} for message in line["dialogue_history"]
    ]
    return line | {"dialogue_history": history}


@pytest.mark.parametrize("name", SHAPES)
def test_a_colbench_file_goes_in_and_comes_out_equal(store, other, tmp_path, name):
    page = colbench_line(
        task={"problem_description": "A page.", "ground_truth": "<html><body>hi</body></html>"},
        answer="No answer",
        reward=0.25,
        dialogue_history=[
            {"role": "user", "content": "A page."},
            {"role": "assistant", "content": "Which colour?", "output": "Which colour?"},
        ],
    )
    lines = [colbench_line(), colbench_line(1.0, answer="x"), colbench_line(None, answer="y"), page]
    result = import_episodes(store, write(tmp_path / "in.jsonl", *lines))
    assert (result.added, result.bad) == (4, 0)
    out = export_episodes(store, Filter(), tmp_path / "out.jsonl", "colbench").path
    written = [json.loads(text) for text in out.read_text().splitlines()]
    assert written == [without_input(line) for line in lines]
    path = export_episodes(store, Filter(), tmp_path / name, "colbench").path
    assert import_episodes(other, path).added == 4
    assert [e.episode.turns for e in everything(other)] == [
        e.episode.turns for e in everything(store)
    ]


def test_an_imported_colbench_episode_has_turns_reward_and_hidden_information(store, tmp_path):
    import_episodes(store, write(tmp_path / "offline.jsonl", colbench_line(), colbench_line(1.0)))
    half, *_ = everything(store)
    first, last = half.episode.turns
    assert (first.action.message, first.action.raw) == ("Of ints?", "OUTPUT: Of ints?")
    assert (first.reply, last.action.is_final, last.reply) == ("Yes.", True, None)
    assert half.episode.artifact == "def add(a, b): return a - b"
    assert half.episode.stop_reason is StopReason.ANSWERED
    assert half.episode.reward == Reward(0.0, {"tests_passed": 0.5}, "imported")
    assert half.episode.policy_id == "file:offline"
    assert half.row.hidden == HiddenInfo(
        "def add(a, b):\n    return a + b", ("add(1, 2)", "add(0, 0)")
    )
    assert store.search(Filter(task_set="imported")).count == 1  # the same talk, once


def test_a_dialogue_without_the_request_or_an_answer_is_taken_too(store, tmp_path):
    history = [{"role": "agent", "content": "Q?"}, {"role": "human_collaborator", "content": "A"}]
    line = colbench_line(0.0, dialogue_history=history, answer="No answer")
    assert import_episodes(store, write(tmp_path / "x.jsonl", line)).added == 1
    (whole,) = everything(store)
    assert (whole.episode.turns[0].reply, whole.episode.artifact) == ("A", None)
    assert whole.episode.stop_reason is StopReason.TURN_LIMIT


def test_bad_colbench_lines_are_named(store, tmp_path):
    user = {"role": "user", "content": "x"}
    bad = {
        "task": colbench_line(task="text"),
        "task.ground_truth": colbench_line(task={"problem_description": "x"}),
        "problem_description is empty": colbench_line(
            task={"problem_description": " ", "ground_truth": "x"}
        ),
        "no message of the agent": colbench_line(dialogue_history=[]),
        "in a row": colbench_line(dialogue_history=[user, user, user]),
        "role is 'system'": colbench_line(dialogue_history=[user | {"role": "system"}]),
        "content": colbench_line(dialogue_history=[{"role": "user"}]),
        "reward: Input should be a valid number": colbench_line() | {"reward": "good"},
        "reward is 7.0": colbench_line(7),
    }
    result = import_episodes(store, write(tmp_path / "x.jsonl", *bad.values(), colbench_line()))
    assert (result.added, result.bad) == (1, len(bad))
    for expected, problem in zip(bad, result.problems, strict=True):
        assert expected in problem.what


def test_what_colbench_has_no_place_for_is_skipped_and_counted(store, tmp_path):
    fill(store)
    done = export_episodes(store, Filter(), tmp_path / "x.jsonl", "colbench")
    assert (done.episodes, done.skipped) == (4, 4)
    lines = [json.loads(text) for text in done.path.read_text().splitlines()]
    assert [line.get("reward", "none") for line in lines] == [1.0, 0.0, "none", 0.0]
    assert [line["answer"] for line in lines] == [answers().artifact] * 3 + ["No answer"]
    assert lines[0]["dialogue_history"][0] == {
        "role": "user",
        "content": TASK_ROW.task.description,
    }
    assert lines[0]["task"]["test_cases"] == {"test1": "fee(1)", "test2": "fee(0)"}


def test_memory_stays_small_while_much_is_moved(store, other, tmp_path):
    rng = random.Random(1)
    for _ in range(150):
        finished(store, rng.randbytes(50_000).hex(), collaborator="scripted")
    path = tmp_path / "big.jsonl"
    tracemalloc.start()
    try:
        export_episodes(store, Filter(text=""), path)
        assert import_episodes(other, path).added == 150
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 15_000_000
    assert peak < path.stat().st_size
    assert Counter(e.episode.policy_id for e in everything(other)) == {"embedded": 150}

"""ColBench's files: what is read, what is refused and why, and how they come in."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from sweet.errors import TaskDataError
from sweet.tasks import colbench
from sweet.tasks.colbench import import_path, read_file_set, read_imported, read_tasks
from sweet.tasks.rows import MAX_ROW_BYTES
from sweet.types import TaskKind

SAMPLES = Path(
    os.environ.get("SWEET_COLBENCH") or Path(__file__).parents[4] / "shared" / "colbench"
)
PAGE = "<html><body><h1>Bees</h1></body></html>"


def row(**changes: object) -> dict[str, object]:
    good: dict[str, object] = {
        "problem_description": "Price a parcel.",
        "ground_truth": "def price(kg):\n    return kg * 2",
        "test_cases": {"test1": "price(1)", "test2": "price(3)"},
    }
    return {key: value for key, value in (good | changes).items() if value is not ...}


def write(path: Path, *rows: object) -> Path:
    lines = [r if isinstance(r, str) else json.dumps(r) for r in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def other(n: int) -> dict[str, object]:
    return row(problem_description=f"Parcel {n}.")


def test_a_good_row_becomes_a_task_with_its_hidden_information(tmp_path: Path) -> None:
    found = read_tasks(write(tmp_path / "t.jsonl", row()), split="test")
    assert found.problems == ()
    (only,) = found.rows
    assert (only.task.kind, only.task.split) == (TaskKind.BACKEND, "test")
    assert only.task.source == "colbench-backend"
    assert only.task.description == "Price a parcel."
    assert only.hidden is not None
    assert only.hidden.test_calls == ("price(1)", "price(3)")


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (row(problem_description=...), "no problem_description"),
        (row(problem_description=7), "problem_description is a JSON number"),
        (row(problem_description="  "), "problem_description is empty"),
        (row(problem_description=float("nan")), "problem_description is a JSON number"),
        (row(ground_truth=...), "no ground_truth"),
        (row(ground_truth=None), "ground_truth is a JSON null"),
        (row(ground_truth="def price(kg:"), "does not parse as Python"),
        (row(ground_truth="x = 1"), "defines no function"),
        (row(ground_truth="class A:\n    def price(self): pass"), "defines no function"),
        (row(ground_truth="def price(kg): return 1\0"), "does not parse as Python"),
        (row(ground_truth="def f(): return " + "(" * 999 + ")" * 999), "does not parse as Python"),
        (row(test_cases=...), "no test_cases"),
        (row(test_cases=None), "test_cases is a JSON null"),
        (row(test_cases=["price(1)"]), "test_cases is a JSON array"),
        (row(test_cases={}), "test_cases is empty"),
        (row(test_cases={"test1": 5}), "test_cases.test1 is a JSON number"),
        (row(test_cases={"test1": "price(1"}), "test_cases.test1 does not parse"),
        (row(test_cases={"test1": ""}), "test_cases.test1 does not parse"),
        (row(test_cases={"test1": "x = price(1)"}), "test_cases.test1 does not parse"),
        (row(test_cases={"test1": "cost(1)"}), "calls cost; ground_truth defines price"),
        (row(test_cases={"test1": "price"}), "test_cases.test1 calls nothing"),
        (row(problem_description="\ud800"), "bytes that are not UTF-8"),
        ('{"problem_description": ', "no JSON"),
        ("[1, 2]", "a JSON array; expected an object"),
        ('"text"', "a JSON string; expected an object"),
        ("null", "a JSON null; expected an object"),
        ("[" * 200_000, "no usable JSON"),
        ("9" * 5000, "no usable JSON"),
    ],
)
def test_a_bad_row_names_its_line_and_the_good_rows_are_read(
    tmp_path: Path, bad: object, what: str
) -> None:
    found = read_tasks(write(tmp_path / "t.jsonl", other(1), "", bad, other(2)))
    assert [r.task.description for r in found.rows] == ["Parcel 1.", "Parcel 2."]
    (problem,) = found.problems
    assert problem.line == 3
    assert what in str(problem)


def test_a_first_row_that_is_a_list_does_not_make_the_file_an_array(tmp_path: Path) -> None:
    found = read_tasks(write(tmp_path / "t.jsonl", "[1]", row()))
    assert len(found.rows) == 1
    assert str(found.problems[0]).startswith("line 1: a JSON array")


def test_a_row_given_twice_names_the_first(tmp_path: Path) -> None:
    found = read_tasks(write(tmp_path / "t.jsonl", row(), other(1), row()))
    assert len(found.rows) == 2
    assert [str(p) for p in found.problems] == ["line 3: the same row as line 1"]


@pytest.mark.parametrize(
    ("truth", "call"),
    [
        ("def price(kg): return kg", "price(1) == 1"),
        ("import math\nRATE = 2\n\nasync def price(kg): return kg", "price(kg=1)"),
        ("def a(x): return x\n\ndef price(kg): return a(kg)", "  price(1)\n"),
        ("price = lambda kg: kg", "sorted(price([2, 1]))"),
        ("try:\n    import x\nexcept ImportError:\n    def price(kg): return kg", "price(1)"),
        ("def price(kg):\n    return re.sub('\\d', '', kg)", "price('a')"),
    ],
)
def test_references_and_calls_of_every_ordinary_shape_are_taken(
    tmp_path: Path, truth: str, call: str
) -> None:
    bare = row(ground_truth=truth, test_cases={"test1": call}, extra=[1])
    found = read_tasks(write(tmp_path / "t.jsonl", bare))
    assert found.problems == ()
    assert found.rows[0].hidden is not None
    assert found.rows[0].hidden.test_calls == (call.strip(),)


@pytest.mark.parametrize("truth", [PAGE, f"<!DOCTYPE html>\n{PAGE}", f"\n <HTML>{PAGE}"])
def test_a_page_without_test_cases_is_a_web_page_task(tmp_path: Path, truth: str) -> None:
    page = row(ground_truth=truth, test_cases=...)
    found = read_tasks(write(tmp_path / "t.jsonl", page, row()))
    assert [r.task.kind for r in found.rows] == [TaskKind.FRONTEND, TaskKind.BACKEND]
    assert found.rows[0].task.source == "colbench-frontend"


def test_every_spelling_of_a_file_gives_the_same_tasks(tmp_path: Path) -> None:
    rows = [row(), other(1), row(ground_truth=PAGE, test_cases=...)]
    lines = "\n".join(map(json.dumps, rows)).encode()
    spellings = {
        "plain.jsonl": lines,
        "crlf.jsonl": b"\xef\xbb\xbf" + lines.replace(b"\n", b"\r\n\r\n"),
        "zipped.jsonl.gz": gzip.compress(lines),
        "zipped-without-saying.jsonl": gzip.compress(lines),
        "array.json": json.dumps(rows).encode(),
        "pretty.json": b"\xef\xbb\xbf\n" + json.dumps(rows, indent=2).encode() + b"\n",
        "a-row-a-line.json": b"[\n" + lines.replace(b"\n", b",\n") + b"\n]",
        "nan.jsonl": lines.replace(b"}\n", b', "score": NaN}\n'),
    }
    expected = None
    for name, data in spellings.items():
        (tmp_path / name).write_bytes(data)
        found = read_tasks(tmp_path / name)
        assert found.problems == (), name
        expected = expected or found.rows
        assert found.rows == expected, name


def test_a_bad_row_of_an_array_is_named_by_its_line(tmp_path: Path) -> None:
    text = json.dumps([row(), {"ground_truth": 1}, other(1)], indent=2)
    (tmp_path / "t.json").write_text(text)
    found = read_tasks(tmp_path / "t.json")
    assert len(found.rows) == 2
    wanted = text.split("\n").index('    "ground_truth": 1')  # its brace is on the line before
    assert [p.line for p in found.problems] == [wanted]


def test_a_broken_array_keeps_what_came_before_the_break(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("[\n" + json.dumps(row()) + ",\n{oops}\n]")
    found = read_tasks(tmp_path / "t.json")
    assert len(found.rows) == 1
    assert found.problems[0].line == 3
    assert "breaks here" in found.problems[0].what


def test_bytes_that_are_not_utf8_spoil_only_their_row(tmp_path: Path) -> None:
    lines = [json.dumps(other(n)).encode() for n in range(3)]
    lines[1] = lines[1].replace(b"Parcel", b"Parc\xe9l")
    (tmp_path / "t.jsonl").write_bytes(b"\n".join(lines))
    found = read_tasks(tmp_path / "t.jsonl")
    assert len(found.rows) == 2
    assert "line 2: problem_description is no Unicode text" in str(found.problems[0])


def test_a_row_too_long_to_be_one_is_refused_and_the_next_is_read(tmp_path: Path) -> None:
    with (tmp_path / "t.jsonl").open("wb") as file:
        file.write(b'{"x": "' + b"y" * (MAX_ROW_BYTES + (1 << 20)) + b'"}\n')
        file.write(json.dumps(row()).encode())
    found = read_tasks(tmp_path / "t.jsonl")
    assert len(found.rows) == 1
    assert str(found.problems[0]).startswith("line 1: longer than")


def test_task_ids_depend_on_the_content_alone(tmp_path: Path) -> None:
    first = read_tasks(write(tmp_path / "a.jsonl", row(), other(1)), split="train")
    again = read_tasks(write(tmp_path / "b.jsonl", other(1), row()), split="test")
    changed = read_tasks(write(tmp_path / "c.jsonl", row(test_cases={"test1": "price(9)"})))
    ids = [r.task.id for r in first.rows]
    assert [r.task.id for r in again.rows] == ids[::-1]
    assert changed.rows[0].task.id not in ids


@pytest.mark.parametrize("kind", ["missing", "folder", "cut-gzip", "utf-16"])
def test_a_file_that_cannot_be_read_says_which_and_why(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t.jsonl"
    if kind == "folder":
        path.mkdir()
    elif kind == "cut-gzip":
        path.write_bytes(gzip.compress(os.urandom(9999))[:5000])
    elif kind == "utf-16":
        path.write_text(json.dumps(row()), encoding="utf-16")
    with pytest.raises(TaskDataError, match=r"t\.jsonl"):
        read_tasks(path)


def test_an_empty_file_has_no_rows_and_cannot_be_imported(tmp_path: Path) -> None:
    path = write(tmp_path / "empty.jsonl")
    assert read_tasks(path) == colbench.TaskFile((), ())
    with pytest.raises(TaskDataError, match="No usable row"):
        import_path(path, tmp_path / "data")


def test_a_file_set_is_named_by_its_whole_path(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl", row())
    (only,) = read_file_set(f"file:{path}").rows
    assert only.task.source == f"file:{path.resolve()}"
    assert only.task.split == "own"
    assert only.task.id.startswith("file-")


# Import


def test_an_imported_file_is_read_back_row_for_row(tmp_path: Path) -> None:
    page = row(ground_truth=PAGE, test_cases=...)
    path = write(tmp_path / "test.jsonl", row(), "oops", other(1), page)
    backend, frontend = import_path(path, tmp_path / "data")
    assert (backend.name, backend.added, backend.known) == ("colbench-backend/test", 2, 0)
    assert [p.line for p in backend.problems] == [2]
    assert (frontend.name, frontend.added) == ("colbench-frontend/test", 1)
    assert set(colbench.imported_sets(tmp_path / "data")) == {backend.name, frontend.name}
    original = [r for r in read_tasks(path, split="test").rows if r.task.kind is TaskKind.BACKEND]
    assert list(read_imported(backend.name, tmp_path / "data").rows) == original


def test_importing_again_adds_only_what_is_new(tmp_path: Path) -> None:
    import_path(write(tmp_path / "a.jsonl", row(), other(1)), tmp_path, split="train")
    (done,) = import_path(write(tmp_path / "b.jsonl", other(1), other(2)), tmp_path, split="train")
    assert (done.added, done.known) == (1, 1)
    assert len(read_imported("colbench-backend/train", tmp_path).rows) == 3


def test_a_folder_brings_every_file_into_the_split_of_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "download" / "backend_tasks"
    folder.mkdir(parents=True)
    write(folder / "train.jsonl", row(), other(1))
    write(folder / "test.jsonl", other(2))
    (folder / "README.md").write_text("about")
    done = import_path(tmp_path / "download", tmp_path / "data")
    counts = {d.name: d.added for d in done}
    assert counts == {"colbench-backend/test": 1, "colbench-backend/train": 2}


def test_a_split_that_there_is_not_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", row())
    with pytest.raises(TaskDataError, match=r"no split '\.\./up'"):
        import_path(path, tmp_path / "data", split="../up")
    assert not (tmp_path / "data").exists()


def test_a_set_that_was_never_imported_says_how_to(tmp_path: Path) -> None:
    with pytest.raises(TaskDataError, match="python -m sweet tasks import"):
        read_imported("colbench-backend/test", tmp_path)


@pytest.mark.skipif(not SAMPLES.exists(), reason="no real ColBench rows beside the repository")
@pytest.mark.parametrize(
    ("file", "count"), [("backend_sample.jsonl", 100), ("frontend_sample.jsonl", 60)]
)
def test_every_real_row_is_read_and_imported(tmp_path: Path, file: str, count: int) -> None:
    found = read_tasks(SAMPLES / file)
    assert found.problems == ()
    assert len(found.rows) == count
    (done,) = import_path(SAMPLES / file, tmp_path)
    assert done.added == count
    hidden = [r.hidden for r in found.rows]
    assert [r.hidden for r in read_imported(done.name, tmp_path).rows] == hidden

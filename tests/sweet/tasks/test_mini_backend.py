import ast
import random

import pytest

from sweet.errors import TaskDataError
from sweet.tasks.colbench import read_tasks
from sweet.tasks.mini_backend import (
    TESTS,
    _function,
    _neighbours,
    draw_spec,
    generate,
    parse_reference,
    reference,
    split_of,
)
from sweet.tasks.mini_families import families, held_out_families, training_things
from sweet.tasks.mini_sets import SPLITS
from tests.fakes import hidden_of

ROWS = {split: list(generate(split, 60, seed=3)) for split in SPLITS}


def _call(code: str, call: str):
    scope: dict = {}
    exec(code, scope)
    return eval(call, scope)


def test_the_same_seed_gives_the_same_tasks_and_another_seed_gives_others():
    again = list(generate("train", 60, seed=3))
    assert again == ROWS["train"]
    assert {r.task.id for r in generate("train", 60, seed=4)}.isdisjoint(r.task.id for r in again)


def test_every_hidden_detail_changes_the_result_of_some_test():
    for row in [r for rows in ROWS.values() for r in rows]:
        spec = parse_reference(hidden_of(row).reference)
        expected = [_call(hidden_of(row).reference, c) for c in hidden_of(row).test_calls]
        for other in _neighbours(spec):
            got = [_call(reference(other), c) for c in hidden_of(row).test_calls]
            assert got != expected, (row.task.id, other)


def test_rows_have_colbench_s_shape():
    for row in ROWS["test"]:
        name = hidden_of(row).reference.removeprefix("def ").partition("(")[0]
        assert len(hidden_of(row).test_calls) == TESTS == len(set(hidden_of(row).test_calls))
        assert all(c.startswith(f"{name}(") for c in hidden_of(row).test_calls)
        signature = hidden_of(row).reference.splitlines()[0].rstrip(":")
        assert row.task.description.endswith(f"The signature of the function is: {signature}")


def test_a_combination_of_details_belongs_to_one_split_only():
    references = {split: {hidden_of(r).reference for r in rows} for split, rows in ROWS.items()}
    for split, mine in references.items():
        assert all(split_of(parse_reference(code)) == split for code in mine)
        assert all(mine.isdisjoint(references[other]) for other in SPLITS if other != split)


def test_held_out_families_are_about_things_that_training_never_mentions():
    words = set(" ".join(training_things()).replace(",", " ").replace(":", " ").split())
    assert not {f.thing for f in held_out_families()} & words
    assert not {f.function for f in held_out_families()} & {f.function for f in families()}


def test_a_description_leaves_most_details_out():
    for row in ROWS["test"]:
        spec = parse_reference(hidden_of(row).reference)
        told = [n for n, v in spec.constants.items() if f"The {n} is {v}." in row.task.description]
        assert len(told) <= 1


def test_a_spec_is_read_back_from_its_reference_alone():
    rng = random.Random(0)
    for family in (*families()[:150], *held_out_families()):
        spec = draw_spec(family, rng)
        assert reference(parse_reference(reference(spec))) == reference(spec)


@pytest.mark.parametrize(
    "code", ["", "x = 1", "def f(:", "def parking_fee(hours):\n    return 3", "\0", "import os"]
)
def test_foreign_code_is_not_taken_for_a_mini_reference(code):
    with pytest.raises(TaskDataError, match="no ColBench-Mini reference"):
        parse_reference(code)


def test_an_unknown_split_is_named_with_those_there_are():
    with pytest.raises(TaskDataError, match=r"'tset'.*train, validation, test, families"):
        next(generate("tset", 1, 0))


def test_the_shared_function_computes_what_the_reference_says():
    spec = parse_reference(hidden_of(ROWS["test"][0]).reference)
    call = hidden_of(ROWS["test"][0]).test_calls[0]
    args = ast.literal_eval(call[len(spec.family.function) :].replace(")", ",)"))
    assert _function(spec)(*args) == _call(hidden_of(ROWS["test"][0]).reference, call)


def test_generated_rows_pass_the_colbench_checker(tmp_path):
    import json

    path = tmp_path / "mini.jsonl"
    with path.open("w") as f:
        for row in ROWS["validation"]:
            calls = {f"test{i + 1}": c for i, c in enumerate(hidden_of(row).test_calls)}
            f.write(
                json.dumps(
                    {
                        "problem_description": row.task.description,
                        "ground_truth": hidden_of(row).reference,
                        "test_cases": calls,
                    }
                )
                + "\n"
            )
    found = read_tasks(path)
    assert len(found.rows) == len(ROWS["validation"]) and not found.problems

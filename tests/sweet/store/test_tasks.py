import pytest

from sweet.errors import StoreError
from sweet.types import HiddenInfo, Task, TaskKind, TaskRow
from tests.sweet.store.samples import HIDDEN, TASK, TASK_ROW, task_row


def test_tasks_come_back_and_known_ones_are_counted(store):
    rows = [task_row(n, split="train") for n in range(2, 1203)]
    done = store.add_tasks([TASK_ROW, *rows])
    assert (done.added, done.known) == (1201, 1)
    assert store.task("task-900") == rows[898].task
    assert store.hidden("task-900") == HIDDEN
    assert store.task_row(TASK.id) == TASK_ROW


def test_a_person_s_own_task_has_no_hidden_information(store):
    own = Task("own-1", TaskKind.BACKEND, "Sort my list.", "own", "own")
    store.add_tasks([TaskRow(own, None)])
    assert store.hidden("own-1") is None
    assert [s.name for s in store.task_sets()] == ["mini-backend/test", "own"]
    with pytest.raises(StoreError, match="task 'nope'"):
        store.hidden("nope")


@pytest.mark.parametrize(
    ("description", "hidden"),
    [("Another text.", HIDDEN), (TASK.description, HiddenInfo("x")), (TASK.description, None)],
)
def test_an_id_with_another_content_is_refused(store, description, hidden):
    changed = Task(TASK.id, TASK.kind, description, TASK.split, TASK.source)
    with pytest.raises(StoreError, match=r"task-1.*another"):
        store.add_tasks([TaskRow(changed, hidden)])
    assert store.task_row(TASK.id) == TASK_ROW


def test_rows_before_a_broken_source_stay(store):
    def source():
        yield from (task_row(n) for n in range(1000, 2000))
        raise RuntimeError("the file ends here")

    with pytest.raises(RuntimeError):
        store.add_tasks(source())
    assert store.count_tasks() == 1 + 1000


def test_task_sets_are_counted_apart(store):
    store.add_tasks([task_row(n, split="train") for n in range(2, 5)])
    sets = {s.name: (s.kind, s.count) for s in store.task_sets()}
    assert sets == {
        "mini-backend/test": (TaskKind.BACKEND, 1),
        "mini-backend/train": (TaskKind.BACKEND, 3),
    }


def test_tasks_are_filtered_searched_and_paged(store):
    store.add_tasks([task_row(n, split="train") for n in range(2, 32)])
    assert len(store.tasks(split="train", limit=10)) == 10
    assert [t.id for t in store.tasks(limit=2, offset=30)] == ["task-31"]
    assert [t.id for t in store.tasks(text="variant 17")] == ["task-17"]
    assert store.tasks(source="nope") == []
    assert store.tasks(limit=-5) == []
    assert store.tasks(text='"unpaired AND (') == []
    assert store.count_tasks("mini-backend", "train", "ship") == 30


def test_a_random_task_is_the_same_for_the_same_seed(store):
    store.add_tasks([task_row(n) for n in range(2, 50)])
    drawn = {store.random_task("mini-backend", "test", seed).id for seed in range(40)}
    assert len(drawn) > 10
    assert store.random_task("mini-backend", "test", 3) == store.random_task(
        "mini-backend", "test", 3
    )
    with pytest.raises(StoreError, match=r"mini-backend/nope.*tasks list"):
        store.random_task("mini-backend", "nope", 1)

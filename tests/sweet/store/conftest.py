import pytest

from sweet.store import EpisodeStore
from tests.sweet.store.samples import TASK_ROW


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "sweet.db"


@pytest.fixture
def store(path):
    with EpisodeStore.open(path) as opened:
        opened.add_tasks([TASK_ROW])
        yield opened

import os

import pytest

from sweet.errors import StoreError
from sweet.store import BatchState, EpisodeStore
from sweet.types import EpisodeFilter, PolicyVersion, StopReason
from tests.sweet.store.samples import finished, started, talked
from tests.sweet.store.writing import PROCESSES, start_batch


def test_a_batch_counts_its_episodes(store):
    batch_id = store.start_batch("rollout", {"policy": "embedded", "n": 4}, total=4)
    finished(store, batch_id=batch_id, collaborator="scripted")
    finished(store, batch_id=batch_id, value=0.0)
    failed = talked(store, batch_id=batch_id)
    store.finish(failed.id, StopReason.FAILED, error="HTTP 503")
    started(store, batch_id=batch_id)
    started(store)
    batch = store.batch(batch_id)
    assert (batch.total, batch.started, batch.finished) == (4, 4, 3)
    assert (batch.succeeded, batch.errors, batch.mean_reward) == (1, 1, 0.5)
    assert batch.settings == {"policy": "embedded", "n": 4}
    assert store.search(EpisodeFilter(batch_id=batch_id)).count == 4


def test_a_batch_without_episodes_counts_none(store):
    batch = store.batch(store.start_batch("rollout", {}, 0))
    assert (batch.started, batch.finished, batch.succeeded, batch.errors) == (0, 0, 0, 0)
    assert batch.mean_reward is None


def test_a_batch_goes_from_running_to_its_end(store):
    done, stopped, failed = (store.start_batch("rollout", {}, 1) for _ in range(3))
    assert store.batch(done).state is BatchState.RUNNING
    assert store.end_batch(done).state is BatchState.DONE
    assert store.request_stop(stopped).state is BatchState.STOPPING
    assert store.end_batch(stopped).state is BatchState.STOPPED
    assert store.end_batch(failed, "no model").state is BatchState.FAILED
    again = store.end_batch(done, "too late")
    assert (again.state, again.error) == (BatchState.DONE, None)
    assert [batch.id for batch in store.batches(2)] == [failed, stopped]


def test_a_batch_whose_process_is_gone_ends_as_failed(store, path):
    mine, theirs = PROCESSES.Pipe()
    process = PROCESSES.Process(target=start_batch, args=(path, theirs))
    process.start()
    lost, alive = mine.recv(), store.start_batch("rollout", {}, 1)
    process.join()
    assert store.end_lost_batches() == [lost]
    assert store.batch(lost).state is BatchState.FAILED
    assert store.batch(alive).process_id == os.getpid()
    assert store.batch(alive).state is BatchState.RUNNING


def test_settings_that_are_no_json_are_refused(store):
    with pytest.raises(StoreError, match="JSON"):
        store.start_batch("rollout", {"x": object()}, 1)
    with pytest.raises(StoreError, match="batch 'nope'"):
        store.request_stop("nope")
    assert store.batches() == []


def test_policies_are_kept_and_not_changed(store):
    first = store.add_policy(PolicyVersion("v0001", "embedded"))
    assert first.created_at.endswith("Z")
    assert store.add_policy(PolicyVersion("v0001", "embedded")) == first
    second = PolicyVersion("v0002", "embedded", "policies/v0002", "v0001", "round 1", "2026-03-05")
    store.add_policy(second)
    assert [p.id for p in store.policies()] == ["v0001", "v0002"]
    assert store.policy("v0002").created_at == "2026-03-05T00:00:00.000Z"
    with pytest.raises(StoreError, match=r"v0001.*another base_model"):
        store.add_policy(PolicyVersion("v0001", "llama"))
    with pytest.raises(StoreError, match="no policy 'v0009'"):
        store.add_policy(PolicyVersion("v0010", "embedded", parent_id="v0009"))


def test_progress_is_seen_from_another_process_s_store(store, path):
    batch_id = store.start_batch("rollout", {}, 1)
    with EpisodeStore.open(path) as other:
        finished(store, batch_id=batch_id)
        assert other.batch(batch_id).succeeded == 1
        other.request_stop(batch_id)
    assert store.batch(batch_id).state is BatchState.STOPPING

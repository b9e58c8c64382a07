"""Which simulated episodes a round that goes on need not play again."""

from pathlib import Path

from sweet.store import EpisodeStore
from sweet.types import EpisodeFilter, Evaluation, Reward, StopReason, Verdict
from tests.trainer.studio import train_rows
from trainer.simulate import finished


def test_only_episodes_that_were_scored_or_failed_are_not_played_again(tmp_path: Path):
    (row, _) = train_rows()
    scored = Evaluation(Reward(1.0, {"tests_passed": 1.0}, "backend"), Verdict.PASS)
    unscorable = Evaluation(None, Verdict.INFRA, error="the worker died twice")
    ends = {
        1: (StopReason.ANSWERED, scored),
        2: (StopReason.TURN_LIMIT, scored),
        3: (StopReason.ANSWERED, unscorable),
        4: (StopReason.FAILED, None),
        5: (StopReason.ANSWERED, None),  # killed before it was scored
        6: (StopReason.STOPPED, None),
        7: (None, None),
    }
    with EpisodeStore.open(tmp_path / "log.db") as store:
        store.add_tasks([row])
        for seed, (reason, evaluation) in ends.items():
            episode = store.start_episode(row.task.id, "embedded", "scripted", seed)
            if reason:
                store.finish(episode.id, reason, error="no answer" if seed == 4 else None)
            if evaluation:
                store.add_evaluation(episode.id, evaluation)
        done = finished(store, EpisodeFilter(policy_id="embedded"))
    assert sorted(seed for _, seed in done) == [1, 2, 3, 4]

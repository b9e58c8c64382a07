"""What the tests let other processes do with a log. They run in a fork server: no slow starts."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path

from sweet.store import EpisodeStore
from sweet.types import Feedback
from tests.sweet.store.samples import asks, started

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])


def write_until_killed(path: Path, collaborator: str, acknowledged: Connection) -> None:
    """Writes episodes; says after each verb that it returned: that must be in the log."""
    with EpisodeStore.open(path) as store:
        acknowledged.send(("open", "", 0))
        while True:
            episode = started(store, collaborator)
            for index in range(5):
                store.append_action(episode.id, index, asks(f"{episode.id} asks {index}"))
                acknowledged.send(("action", episode.id, index))
                store.append_reply(episode.id, index, f"{episode.id} says {index}")
                acknowledged.send(("reply", episode.id, index))
                store.add_feedback(Feedback(episode.id, index, 1.0), key=f"{episode.id}-{index}")
                acknowledged.send(("feedback", episode.id, index))


def open_and_read(path: Path, told: Connection) -> None:
    """Opens the log as soon as it is told to, and says what it found."""
    told.recv()
    with EpisodeStore.open(path) as store:
        told.send((store.episode("old").turns[0].reply, store.problems()))


def start_batch(path: Path, told: Connection) -> None:
    """Starts a batch and ends without ending it."""
    with EpisodeStore.open(path) as store:
        told.send(store.start_batch("rollout", {}, 9))


def start_round(path: Path, told: Connection) -> None:
    """Starts a round and ends without ending it."""
    with EpisodeStore.open(path) as store:
        told.send(store.start_round("lost", "sweet", "embedded", {}).id)

import random
import time

from sweet.store import EpisodeStore
from tests.sweet.store.samples import TASK_ROW, asks
from tests.sweet.store.writing import PROCESSES, write_until_killed

KILLS = 50
WRITERS = ("person", "scripted")


def killed(path, rng: random.Random) -> list[tuple[str, str, int]]:
    """What writers acknowledged before each was killed -9 at some moment."""
    writers = []
    for collaborator in WRITERS:
        mine, theirs = PROCESSES.Pipe(duplex=False)
        writer = PROCESSES.Process(target=write_until_killed, args=(path, collaborator, theirs))
        writer.start()
        theirs.close()
        writers.append((writer, mine))
    acknowledged = []
    for writer, said in writers:
        assert said.recv()[0] == "open"
        time.sleep(rng.uniform(0, 0.1))
        writer.kill()
        writer.join()
        try:
            while True:
                acknowledged.append(said.recv())
        except (EOFError, OSError):  # cut off in the middle of a word
            said.close()
    return acknowledged


def test_no_kill_loses_an_acknowledged_turn_or_leaves_one_twice(path):
    with EpisodeStore.open(path) as store:
        store.add_tasks([TASK_ROW])
    rng = random.Random(1)
    acknowledged = []
    for _ in range(KILLS // len(WRITERS)):
        acknowledged += killed(path, rng)
    assert len({episode_id for _, episode_id, _ in acknowledged}) >= KILLS // 2
    with EpisodeStore.open(path) as store:
        assert store.problems() == []
        for what, episode_id, index in acknowledged:
            episode = store.episode(episode_id)
            turn = episode.turns[index]
            assert [turn.index for turn in episode.turns] == list(range(len(episode.turns)))
            assert turn.action.raw == f"{episode_id} asks {index}"
            if what != "action":
                assert turn.reply == f"{episode_id} says {index}"
            if what == "feedback":
                said = [f for f in store.feedback(episode_id) if f.turn_index == index]
                assert len(said) == 1


def test_a_turn_committed_but_not_acknowledged_is_not_written_twice_when_sent_again(path):
    with EpisodeStore.open(path) as store:
        store.add_tasks([TASK_ROW])
    killed(path, random.Random(2))
    with EpisodeStore.open(path) as store:
        for whole in list(store.iter_episodes()):
            turns = whole.episode.turns
            for turn in turns:  # a client that got no answer sends everything again
                text = f"{whole.episode.id} asks {turn.index}"
                store.append_action(whole.episode.id, turn.index, asks(text))
                store.append_reply(
                    whole.episode.id, turn.index, f"{whole.episode.id} says {turn.index}"
                )
            assert len(store.episode(whole.episode.id).turns) == len(turns)

import math
import sqlite3

import pytest
from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store import EpisodeCredit, EpisodeStore, RankedCandidate
from tests.sweet.store.samples import talked

GOOD = RankedCandidate("How much is a kilogram?", 5, 0.25, chosen=3)
CUT = RankedCandidate("And then I would like to", 1, -0.5, rejected=1, is_ended=False)
BAD = RankedCandidate("Hello.", 10, -0.5, rejected=2)


def test_candidates_come_back_the_best_first_with_the_advantages(store):
    episode = talked(store, "five", "no")
    store.add_advantages(episode.id, "round r1", {1: -0.25, 0: 0.5})
    store.add_candidates(episode.id, "round r1", {1: [CUT, GOOD, BAD]})
    credit = store.credit(episode.id, "round r1")
    assert credit == EpisodeCredit("round r1", {0: 0.5, 1: -0.25}, {1: (GOOD, CUT, BAD)})
    assert list(credit.advantages) == [0, 1]


def test_critics_do_not_mix_and_the_latest_comes_first(store):
    episode = talked(store, "five", "no")
    store.add_advantages(episode.id, "round r1", {0: 0.5, 1: 1.0})
    store.add_candidates(episode.id, "round r1", {0: [GOOD]})
    store.add_advantages(episode.id, "round r2", {0: -0.5})
    assert store.critics(episode.id) == ["round r2", "round r1"]
    assert store.credit(episode.id, "round r2") == EpisodeCredit("round r2", {0: -0.5}, {})
    assert store.credit(episode.id, "round r1").candidates == {0: (GOOD,)}
    assert store.credit(episode.id, "nobody") == EpisodeCredit("nobody", {}, {})


def test_a_ranking_that_is_done_again_counts_alone(store):
    episode = talked(store, "five", "no")
    store.add_candidates(episode.id, "round r1", {0: [GOOD, CUT, BAD], 1: [BAD]})
    store.add_candidates(episode.id, "round r1", {0: [BAD]})
    assert store.credit(episode.id, "round r1").candidates == {0: (BAD,), 1: (BAD,)}


def test_an_unscored_episode_has_no_critic_and_an_unknown_one_is_said(store):
    assert store.critics(talked(store, "five").id) == []
    for verb in (store.critics, lambda id: store.credit(id, "round r1")):
        with pytest.raises(StoreError, match="no episode 'nosuch'"):
            verb("nosuch")


@pytest.mark.parametrize(
    ("turn", "candidate", "message"),
    [
        (7, GOOD, "has no turn 7"),
        (1, RankedCandidate("x", 1, math.nan), "score nan"),
        (1, RankedCandidate("x", 1, math.inf), "score inf"),
        (1, RankedCandidate("x", 0, 0.5), "drawn 0 times"),
        (1, RankedCandidate("x", 1, 0.5, chosen=-1), "."),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_saved(store, turn, candidate, message):
    episode = talked(store, "five", "no")
    with pytest.raises(StoreError, match=message):
        store.add_candidates(episode.id, "round r1", {0: [GOOD], turn: [GOOD, candidate]})
    assert store.credit(episode.id, "round r1").candidates == {}


def test_what_was_ranked_is_never_changed(store, path):
    episode = talked(store, "five")
    store.add_candidates(episode.id, "round r1", {0: [GOOD]})
    with Database(sqlite3.connect(path)) as db:
        for sql in (
            "UPDATE candidates SET score = 1",
            "DELETE FROM candidates",
            "UPDATE rankings SET critic = 'me'",
            "DELETE FROM rankings",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="only appended"):
                db.execute(sql)


def test_text_of_any_kind_is_kept(store):
    episode = talked(store, "five")
    wild = RankedCandidate("<b>\x00 \u202e 🦓 '\"; DROP TABLE x", 1, 0.0)
    half = RankedCandidate("\ud800", 1, -1.0)
    store.add_candidates(episode.id, "round r1", {0: [wild, half]})
    kept = store.credit(episode.id, "round r1").candidates[0]
    assert [candidate.text for candidate in kept] == [wild.text, "\ufffd"]


def test_a_backup_has_the_candidates(store, tmp_path):
    episode = talked(store, "five")
    store.add_candidates(episode.id, "round r1", {0: [GOOD, BAD]})
    store.backup(tmp_path / "copy.db")
    with EpisodeStore.open(tmp_path / "copy.db") as copy:
        assert copy.problems() == []
        assert copy.credit(episode.id, "round r1") == store.credit(episode.id, "round r1")

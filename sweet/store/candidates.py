"""Verbs about credit: what critics said of an episode's turns, and of what else could be said."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sqlite_utils import Database

from sweet.store.base import Row, StoreBase, clean, insert, rows
from sweet.store.clock import now_iso
from sweet.store.connection import ContentError
from sweet.store.lookups import need_episode, need_turn
from sweet.store.records import EpisodeCredit, RankedCandidate


class CandidateVerbs(StoreBase):
    """What can be done with ranked candidates; advantages are added by `add_advantages`."""

    def add_candidates(
        self, episode_id: str, critic: str, turns: Mapping[int, Sequence[RankedCandidate]]
    ) -> None:
        """Append a critic's candidates of each turn index, all or none; its newest count.

        Raises: StoreError for a turn that is not there or a score that is no finite number.
        """

        def job(db: Database) -> None:
            for index, candidates in turns.items():
                need_turn(db, episode_id, index)
                _insert_ranking(db, episode_id, index, critic, candidates)

        self._write(job, durable=False)

    def critics(self, episode_id: str) -> list[str]:
        """The critics that gave an episode's turns advantages, the latest first."""
        sql = (
            "SELECT critic FROM advantages WHERE episode_id = ? "
            "GROUP BY critic ORDER BY max(seq) DESC"
        )
        with self._reading() as db:
            need_episode(db, episode_id)
            return [row["critic"] for row in rows(db, sql, [clean(episode_id)])]

    def credit(self, episode_id: str, critic: str) -> EpisodeCredit:
        """What one critic said of an episode; empty where it said nothing."""
        with self._reading() as db:
            need_episode(db, episode_id)
            where = [clean(episode_id), clean(critic)]
            return EpisodeCredit(critic, _advantages(db, where), _candidates(db, where))


def _insert_ranking(
    db: Database, episode_id: str, index: int, critic: str, candidates: Sequence[RankedCandidate]
) -> None:
    at = {"episode_id": episode_id, "turn_index": index, "critic": critic}
    ranking = insert(db, "rankings", at | {"created_at": now_iso()})
    for place, candidate in enumerate(candidates):
        if not math.isfinite(candidate.score) or candidate.drawn < 1:
            raise ContentError(
                f"Candidate {place} of turn {index} of episode {episode_id} was drawn "
                f"{candidate.drawn!r} times and has the score {candidate.score!r}; it must be "
                "drawn once at least and have a finite score. Nothing was saved."
            )
        of = {"ranking_seq": ranking, "candidate_index": place}
        insert(db, "candidates", of | _row(candidate))


def _row(candidate: RankedCandidate) -> Row:
    return {
        "text": candidate.text,
        "drawn": candidate.drawn,
        "is_ended": int(candidate.is_ended),
        "score": float(candidate.score),
        "chosen": candidate.chosen,
        "rejected": candidate.rejected,
    }


def _advantages(db: Database, where: list[str]) -> dict[int, float]:
    """Each scored turn's newest advantage."""
    sql = (
        "SELECT turn_index, value FROM advantages WHERE episode_id = ? AND critic = ? ORDER BY seq"
    )
    newest = {row["turn_index"]: row["value"] for row in rows(db, sql, where)}
    return dict(sorted(newest.items()))


def _candidates(db: Database, where: list[str]) -> dict[int, tuple[RankedCandidate, ...]]:
    """Each ranked turn's candidates of the newest ranking, the best first."""
    sql = """
    SELECT r.turn_index, c.* FROM candidates AS c JOIN rankings AS r ON r.seq = c.ranking_seq
    WHERE r.seq IN (SELECT max(seq) FROM rankings WHERE episode_id = ? AND critic = ?
                    GROUP BY turn_index)
    ORDER BY r.turn_index, c.score DESC, c.candidate_index"""
    found: dict[int, list[RankedCandidate]] = {}
    for row in rows(db, sql, where):
        found.setdefault(row["turn_index"], []).append(_to_candidate(row))
    return {index: tuple(candidates) for index, candidates in found.items()}


def _to_candidate(row: Row) -> RankedCandidate:
    return RankedCandidate(
        row["text"],
        row["drawn"],
        row["score"],
        row["chosen"],
        row["rejected"],
        bool(row["is_ended"]),
    )

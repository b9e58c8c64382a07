"""The verb that gives what figures are made of: scored episodes, without what was said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sweet.store.base import Row, StoreBase, rows
from sweet.store.search import EPISODES, TASK_SET, episode_conditions
from sweet.types import EpisodeFilter, TaskKind

_OWN_WORK = (
    "v.reward IS NOT NULL AND e.stop_reason IN ('answered', 'turn_limit') "
    "AND coalesce(e.fork_kind, 'reply') = 'reply'"
)
_SCORED = f"""
SELECT e.id, e.task_id, {TASK_SET} AS task_set, t.kind, e.policy_id, e.collaborator, e.seed,
  e.max_turns, v.evaluator, v.reward, v.components,
  (SELECT count(*) FROM turns AS u WHERE u.episode_id = e.id) AS turns,
  (SELECT CASE WHEN count(*) = count(u.prompt_tokens)
    THEN sum(u.prompt_tokens + u.completion_tokens) END
    FROM turns AS u WHERE u.episode_id = e.id) AS tokens
FROM {EPISODES}
"""


@dataclass(frozen=True, slots=True)
class ScoredEpisode:
    """What an episode came to. `tokens` are read and written; None where a turn's are unknown."""

    id: str
    task_id: str
    task_set: str
    kind: TaskKind
    policy_id: str
    collaborator: str
    seed: int
    max_turns: int
    evaluator: str
    reward: float
    components: Mapping[str, float]
    turns: int
    tokens: int | None


class OutcomeVerbs(StoreBase):
    """What can be asked of outcomes."""

    def scored(self, wanted: EpisodeFilter | None = None) -> list[ScoredEpisode]:
        """The scored episodes that the filter lets through, in order of arrival.

        Only a policy's own work: not those that a person replaced, nor those in which a person
        rewrote or retried what the agent said.
        """
        where, values = episode_conditions(wanted or EpisodeFilter())
        sql = f"{_SCORED} WHERE {where} AND {_OWN_WORK} ORDER BY e.seq"
        with self._reading() as db:
            return [_to_scored(row) for row in rows(db, sql, values)]

    def task_ids(self, wanted: EpisodeFilter | None = None) -> list[str]:
        """The tasks of the episodes that the filter lets through, in order of their first."""
        where, values = episode_conditions(wanted or EpisodeFilter())
        sql = (
            f"SELECT e.task_id FROM {EPISODES} WHERE {where} GROUP BY e.task_id ORDER BY min(e.seq)"
        )
        with self._reading() as db:
            return [row["task_id"] for row in rows(db, sql, values)]


def _to_scored(row: Row) -> ScoredEpisode:
    changed = {"kind": TaskKind(row["kind"]), "components": json.loads(row["components"])}
    return ScoredEpisode(**(row | changed))

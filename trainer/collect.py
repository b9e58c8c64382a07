"""The first stage: which episodes a round learns from, and what people preferred in them.

All that people may still change (grades, likes, forks) is settled here and kept in the stage's
result: a round that is resumed learns from what it began with.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from evaluators.figures import Figure, rate
from sweet.errors import TrainingError
from sweet.rollout import assignments
from sweet.services import BatchPlan, Services
from sweet.store import EpisodeStore, LoggedEpisode
from sweet.types import (
    Episode,
    EpisodeFilter,
    PairLevel,
    PairSource,
    PreferencePair,
    StopReason,
    TaskKind,
    TaskRow,
    Turn,
)
from sweet.validation import OUTCOMES, outcome
from trainer.figures import figures
from trainer.opinions import grade, graded, is_accepted, with_accepted
from trainer.pairs import reward_of, source_of
from trainer.people import (
    HELD_OUT,
    NO_HIDDEN,
    Preferred,
    by_source,
    log_filter,
    preferred,
    record,
    recorded,
    turns_alone,
    unlearnable,
)
from trainer.settings import Algorithm, RoundSettings
from trainer.simulate import play
from trainer.workbench import Result, Workbench, set_rows


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a round learns from: episodes with their outcome, and what people preferred.

    `accepted` are the episodes whose artifact serves as hidden information, by task.
    """

    episodes: tuple[LoggedEpisode, ...]
    left_out: Counter[str]
    accepted: dict[str, Episode]
    people: Preferred


def collect(bench: Workbench) -> Result:
    """The episodes to learn from: the log's, as the settings filter them, and fresh ones.

    Raises: TrainingError where nothing is left, saying what was left out and why.
    """
    fresh, is_cut = _fresh(bench)
    logged = logged_episodes(bench.services, bench.settings, {e.id for e in fresh})
    given = [*logged, *(_whole(bench, episode) for episode in fresh)]
    chosen = choose(bench.services.store, bench.settings, given)
    check_enough(bench.settings, chosen)
    episodes = [one.episode for one in chosen.episodes]
    pairs = chosen.people.pairs
    return {
        "chosen": len(episodes),
        "fresh": len(fresh),
        "tasks": len({episode.task_id for episode in episodes}),
        OUTCOMES[bench.settings.task_kind][0]: outcome_of(chosen, bench.settings).value,
        "by_source": dict(Counter(_judged_by(episode) for episode in episodes)),
        "by_collaborator": dict(Counter(episode.collaborator for episode in episodes)),
        "by_policy": dict(Counter(episode.policy_id for episode in episodes)),
        "left_out": dict(chosen.left_out),
        "people": {str(level): by_source(pairs, level) for level in PairLevel},
        "people_left_out": dict(chosen.people.left_out),
        "data_hash": _hash(episodes, pairs),
        "episodes": [episode.id for episode in episodes],
        "grades": {e.id: reward_of(e) for e in episodes if _judged_by(e) == PairSource.HUMAN},
        "accepted": {task_id: episode.id for task_id, episode in chosen.accepted.items()},
        **record(pairs),
        **({"ended_early": True} if is_cut else {}),
    }


def choose(store: EpisodeStore, settings: RoundSettings, given: Sequence[LoggedEpisode]) -> Chosen:
    """What a round with these settings learns from, among the episodes given."""
    graded_too = settings.human_pairs > 0
    accepted = {one.row.task.id: one.episode for one in given if graded_too and is_accepted(one)}
    people = preferred(store, settings, given, accepted)
    if settings.kind is Algorithm.TURNS:  # it learns from nothing else
        return Chosen((), Counter(), {}, people)
    judged = [_judged(one, accepted) if graded_too else one for one in given]
    reasons = [_unfit(one, settings, people.voted) for one in judged]
    fit = tuple(one for one, why in zip(judged, reasons, strict=True) if not why)
    used = {one.row.task.id for one in fit} | {pair.task_id for pair in people.pairs}
    return Chosen(
        fit,
        Counter(why for why in reasons if why),
        {task_id: episode for task_id, episode in accepted.items() if task_id in used},
        people,
    )


def check_enough(settings: RoundSettings, chosen: Chosen) -> None:
    """Nothing, if a round can begin with it. Raises: TrainingError saying what would help."""
    if settings.kind is Algorithm.TURNS and not chosen.people.pairs:
        raise TrainingError(_no_turn(chosen.people))
    # Pairs from a file teach whole dialogues without an episode of this log.
    suffices = settings.kind in (Algorithm.TURNS, Algorithm.MULTI_TURN_DPO) and chosen.people.pairs
    if not chosen.episodes and not suffices:
        raise TrainingError(_why_none(chosen.left_out) + turns_alone(chosen.people.pairs))


def outcome_of(chosen: Chosen, settings: RoundSettings) -> Figure:
    """The share of the scored or graded episodes that have reward 1; of web pages the mean reward.

    Pages are those of the evaluator that scored most of them: two are never put together.
    """
    rewards = [one.episode.reward for one in chosen.episodes if one.episode.reward]
    if settings.task_kind is TaskKind.BACKEND:
        return rate(sum(reward.value >= 1 for reward in rewards), len(rewards))
    return outcome(settings.task_kind, figures([one.episode for one in chosen.episodes]))


def chosen_episodes(bench: Workbench) -> tuple[list[Episode], dict[str, TaskRow]]:
    """The collected episodes in their order, and their tasks by id.

    An accepted artifact is the hidden information of its task here, and nowhere else.
    """
    store, found = bench.services.store, bench.result("collect")
    episodes = [store.episode(id) for id in found["episodes"]]
    grades = found["grades"]
    episodes = [graded(e, grades[e.id]) if e.id in grades else e for e in episodes]
    rows = {id: store.task_row(id) for id in {e.task_id for e in episodes}}
    return episodes, _with_accepted(bench, rows)


def chosen_pairs(
    bench: Workbench, level: PairLevel
) -> tuple[list[PreferencePair], dict[str, TaskRow]]:
    """The collected pairs of that level that people made, weighted, and their tasks by id."""
    pairs, rows = recorded(bench.services.store, bench.settings, bench.result("collect"))
    return [pair for pair in pairs if pair.level is level], _with_accepted(bench, rows)


def _with_accepted(bench: Workbench, rows: Mapping[str, TaskRow]) -> dict[str, TaskRow]:
    accepted = bench.result("collect")["accepted"]
    store = bench.services.store
    return {
        id: with_accepted(row, store.episode(accepted[id])) if id in accepted else row
        for id, row in rows.items()
    }


def logged_episodes(
    services: Services, settings: RoundSettings, without: Collection[str] = ()
) -> list[LoggedEpisode]:
    """The log's episodes that the settings ask for, without some ids."""
    if not settings.use_log:
        return []
    found = services.store.iter_episodes(log_filter(settings))
    return [one for one in found if one.episode.id not in without]


def fresh_rows(services: Services, settings: RoundSettings) -> list[TaskRow]:
    """The tasks of the new episodes, drawn by the round's seed. Raises: SweetError.

    None where the round would learn nothing from them.
    """
    if not settings.fresh_tasks or settings.kind is Algorithm.TURNS:
        return []
    rows = set_rows(services, settings, settings.fresh_set)
    if rows and rows[0].task.split in HELD_OUT:
        raise TrainingError(
            f"{settings.fresh_set} is for measuring; nothing is learned from it. Choose a set to "
            f"train on with --fresh-set, such as mini-{settings.tasks}/train."
        )
    return random.Random(settings.seed).sample(rows, min(settings.fresh_tasks, len(rows)))


def _fresh(bench: Workbench) -> tuple[list[Episode], bool]:
    """New episodes of the round's own tasks, several a task, in the log.

    And whether they are fewer than was planned, because the stage was asked to end.
    """
    settings, services = bench.settings, bench.services
    rows = fresh_rows(services, settings)
    if not rows:
        return [], False
    todo = list(assignments(rows, len(rows) * settings.fresh_per_task, settings.seed))
    policy = services.policy(settings.policy)
    plan = BatchPlan(
        settings.fresh_set,
        policy.id,
        len(todo),
        concurrency=settings.concurrency,
        seed=settings.seed,
    )
    batch_id = services.store.start_batch(f"round {bench.id}", asdict(plan), len(todo))
    begun = services.store.round(bench.id).created_at
    episodes = play(
        bench,
        services.store,
        policy,
        todo,
        EpisodeFilter(policy_id=policy.id, since=begun),
        batch_id=batch_id,
        stage="collect",
    )
    return episodes, len(episodes) < len(todo)


def _whole(bench: Workbench, episode: Episode) -> LoggedEpisode:
    return LoggedEpisode(bench.services.store.task_row(episode.task_id), episode)


def _judged(one: LoggedEpisode, accepted: Mapping[str, Episode]) -> LoggedEpisode:
    """The episode with what a person's grade makes of it and of its task."""
    value = grade(one)
    episode = one.episode if value is None else graded(one.episode, value)
    reference = accepted.get(one.row.task.id)
    row = one.row if reference is None else with_accepted(one.row, reference)
    return replace(one, row=row, episode=episode)


def _judged_by(episode: Episode) -> PairSource:
    """Who said how good an episode is."""
    return source_of(episode) if episode.reward else PairSource.VOTE


def _unfit(one: LoggedEpisode, settings: RoundSettings, voted: Collection[str]) -> str:
    """Why an episode can't be learned from; empty where it can."""
    episode = one.episode
    if why := unlearnable(one.row, settings.task_kind):
        return why
    if episode.stop_reason is None:
        return "still in progress"
    is_judged = episode.reward is not None or episode.id in voted
    if episode.stop_reason is StopReason.REPLACED and not is_judged:
        return "replaced by an edit or a retry"
    if settings.kind.reads_hidden and one.row.hidden is None:
        return NO_HIDDEN
    if not is_judged or not episode.turns:
        return "no reward" if grade(one) is None else "only graded by a person"
    return ""


def _why_none(left_out: Counter[str]) -> str:
    """Why there is no episode to learn from, and what to do about it."""
    if not left_out:
        return (
            "Too few episodes: there is none that the filter lets through. Collaborate, simulate "
            "some with `python -m sweet rollout`, or set --fresh-tasks."
        )
    listed = ", ".join(f"{n} {why}" for why, n in left_out.most_common())
    advice = "Set --fresh-tasks to simulate new ones."
    if left_out[NO_HIDDEN]:
        advice = (
            f"Train without it (--algorithm {Algorithm.NO_HIDDEN}), grade a result of an own task "
            f"as good so that it serves as such, or: {advice}"
        )
    return f"There is no episode to learn from. Left out: {listed}. {advice}"


def _no_turn(people: Preferred) -> str:
    """Why there is no pair of turns, and how people make one."""
    listed = ", ".join(f"{n} {why}" for why, n in people.left_out.most_common())
    return (
        "There is no pair of turns to learn from. "
        + (f"Left out: {listed}. " if listed else "")
        + "Retry or rewrite a message and go on; like one message and dislike another at the same "
        "place; vote on two episodes that differ in one message; import pairs; or choose another "
        "algorithm."
    )


def _hash(episodes: Sequence[Episode], pairs: Sequence[PreferencePair]) -> str:
    """What was learned from, in 16 letters: tasks, messages, replies, rewards, preferences."""
    said: list[object] = [
        [e.task_id, e.seed, _said(e.turns), e.reward.value if e.reward else None] for e in episodes
    ]
    said += [[p.task_id, p.weight, _said(p.chosen), _said(p.rejected)] for p in pairs]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def _said(turns: Sequence[Turn]) -> list[list[str | None]]:
    return [[turn.action.raw, turn.reply] for turn in turns]

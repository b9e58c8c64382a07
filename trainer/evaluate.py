"""The stage that compares parent and child on the same validation tasks, and what follows from it.

The episodes are in a log of their own in the round's folder: they are for measuring, and nothing
must learn from them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from evaluators.figures import bootstrap_interval
from sweet.registry import for_kind
from sweet.rollout import assignments
from sweet.store import EpisodeStore
from sweet.types import Episode, EpisodeFilter, PolicyVersion, Reward, TaskKind
from sweet.validation import OUTCOME, OUTCOME_FORM
from trainer.figures import figures
from trainer.settings import RoundSettings
from trainer.simulate import play
from trainer.workbench import Result, Workbench, set_rows


def compare(bench: Workbench) -> Result:
    """Figures of parent and child, and of the difference on the tasks that both were scored on.

    Asked to end early while the parent plays, the child plays what the parent has finished; asked
    while the child plays, both are compared on what it has finished.
    """
    settings, services = bench.settings, bench.services
    parent = for_kind(services.registry.verified(settings.policy), settings.task_kind)
    child = _child(parent, str(bench.folder / "policy"), settings)
    rows = set_rows(services, settings, settings.validation_set)
    rows = random.Random(settings.seed).sample(rows, min(settings.validation_n, len(rows)))
    todo = list(assignments(rows, len(rows), settings.seed))
    played: list[list[Episode]] = []
    left = todo
    with EpisodeStore.open(bench.folder / "evaluate.db") as store:
        store.add_tasks(rows)
        for version in (parent, child):
            seat = services.seated(version)
            wanted = EpisodeFilter(policy_id=version.id)
            stage = f"evaluate {version.id}"
            played.append(play(bench, store, seat, left, wanted, stage=stage))
            known = {place(episode) for episode in played[-1]}
            left = [one for one in left if (one.row.task.id, one.seed) in known]
    both = [[e for e in some if place(e) in known] for some in played]
    return {
        "parent": figures(both[0]),
        "child": figures(both[1]),
        "planned": len(todo),
        **_difference(both[0], both[1], settings.task_kind),
        **({"ended_early": True} if len(left) < len(todo) else {}),
    }


def place(episode: Episode) -> tuple[str, int]:
    """What an episode is one of: its task and its seed."""
    return episode.task_id, episode.seed


def verdict(compared: Result, settings: RoundSettings) -> tuple[bool, str]:
    """Whether the child is to be served by the rule of the settings, and why, in words."""
    gain, ci95 = compared["gain"], compared["gain_ci95"]
    if gain is None:
        return False, "not promoted: no validation task was scored for both"
    form = OUTCOME_FORM[settings.task_kind]
    low, high = (format(end, f"+{form}") for end in ci95)
    what = OUTCOME[settings.task_kind]
    found = f"{gain:+{form}} {what} [{low}, {high}] on {compared['compared']} tasks"
    if compared.get("ended_early"):
        found += f" of {compared['planned']} (ended early, as asked)"
    if settings.promote == "never":
        return False, f"not promoted, as asked: {found}"
    reached = ci95[0] if settings.promote == "certain" else gain
    if reached > settings.promote_margin:
        return True, f"promoted: {found}"
    rule = "the interval's lower end" if settings.promote == "certain" else "the gain"
    least = format(settings.promote_margin, form)
    return False, f"not promoted: {found}; {rule} must be above {least}"


def _child(parent: PolicyVersion, folder: str, settings: RoundSettings) -> PolicyVersion:
    """What was trained, as a version that is not registered yet."""
    if settings.tuning == "full":
        return PolicyVersion("child", parent.base_model, None, parent.id, model_path=folder)
    return PolicyVersion(
        "child", parent.base_model, folder, parent.id, model_path=parent.model_path
    )


def _difference(
    parents: Sequence[Episode], children: Sequence[Episode], kind: TaskKind
) -> dict[str, Any]:
    """The child's success (of pages: reward) minus its parent's, task by task."""

    def worth(reward: Reward) -> float:
        return float(reward.value >= 1) if kind is TaskKind.BACKEND else reward.value

    both = [
        worth(child.reward) - worth(parent.reward)
        for parent, child in zip(parents, children, strict=True)
        if parent.reward is not None
        and child.reward is not None
        and parent.reward.evaluator == child.reward.evaluator
    ]
    return {
        "compared": len(both),
        "gain": fmean(both) if both else None,
        "gain_ci95": list(bootstrap_interval(both)) if both else None,
    }

"""A version's figures over its episodes, as a round records them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from evaluators.figures import mean, wilson_interval
from sweet.types import Episode, Reward


def figures(episodes: Sequence[Episode]) -> dict[str, Any]:
    """A version's figures over the scored episodes; the others are counted apart, not as 0.

    Where two evaluators scored them, over those of the one with more.
    """
    scored = [e.reward for e in episodes if e.reward is not None]
    counted = Counter(reward.evaluator for reward in scored)
    evaluator = max(counted, key=counted.__getitem__, default=None)
    rewards = [reward for reward in scored if reward.evaluator == evaluator]
    succeeded = sum(reward.value >= 1 for reward in rewards)
    average = mean([reward.value for reward in rewards])
    return {
        "n": len(rewards),
        "evaluator": evaluator,
        "unscored": len(episodes) - len(rewards),
        "success_rate": succeeded / len(rewards) if rewards else None,
        "success_ci95": list(wilson_interval(succeeded, len(rewards))) if rewards else None,
        "reward": average.value,
        "reward_ci95": None if average.low is None else [average.low, average.high],
        **{name: _component(rewards, name) for name in ("tests_passed", "cosine", "visual")},
        "mean_turns": fmean(len(e.turns) for e in episodes) if episodes else None,
    }


def _component(rewards: Sequence[Reward], name: str) -> float | None:
    found = [reward.components[name] for reward in rewards if name in reward.components]
    return fmean(found) if found else None

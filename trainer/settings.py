"""A round's settings, each default beside its source."""

from __future__ import annotations

from dataclasses import Field, asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from sweet.errors import ConfigError
from sweet.types import PairLevel, PairSource, TaskKind


class Algorithm(StrEnum):
    """How a policy is made better."""

    SWEET = "sweet"  # a critic that reads hidden information, then turn by turn
    NO_HIDDEN = "sweet-nohidden"  # the critic reads what the policy reads
    UNTRAINED = "sweet-untrained"  # ranks by log π(a|o,c) − log π(a|o), without training a critic
    VALUE = "sweet-value"  # ranks by a value head's output after the message
    JUDGE = "sweet-judge"  # ranks by the scores of a model that is asked for them
    MULTI_TURN_DPO = "mtdpo"  # DPO on whole episodes
    REJECTION = "rft"  # fine-tuning on successful episodes
    TURNS = "turns"  # DPO on the single turns that people preferred

    @property
    def ranks_candidates(self) -> bool:
        """Whether it is one of SWEET-RL's."""
        return self not in (Algorithm.MULTI_TURN_DPO, Algorithm.REJECTION, Algorithm.TURNS)

    @property
    def trains_critic(self) -> bool:
        """Whether a critic learns from pairs of episodes."""
        return self in (Algorithm.SWEET, Algorithm.NO_HIDDEN, Algorithm.VALUE)

    @property
    def reads_hidden(self) -> bool:
        """Whether a critic reads hidden information."""
        return self.ranks_candidates and self is not Algorithm.NO_HIDDEN

    @property
    def pair_levels(self) -> frozenset[PairLevel]:
        """Which of the pairs that people made it learns from."""
        whole = self.trains_critic or self is Algorithm.MULTI_TURN_DPO
        turns = self.ranks_candidates or self is Algorithm.TURNS
        return frozenset([*[PairLevel.TRAJECTORY] * whole, *[PairLevel.TURN] * turns])

    @property
    def stages(self) -> tuple[str, ...]:
        """What a round goes through, in order."""
        pairs = ("pairs",) if PairLevel.TRAJECTORY in self.pair_levels else ()
        critic = ("critic",) if self.trains_critic else ()
        ranking = ("candidates", "rank") if self.ranks_candidates else ()
        return ("collect", *pairs, *critic, *ranking, "policy", "evaluate", "register")


CHOICES: dict[str, tuple[str, ...]] = {
    "tasks": tuple(TaskKind),
    "algorithm": tuple(Algorithm),
    "tuning": ("lora", "full"),
    "credit": ("turn_mean", "turn_sum", "episode_mean"),
    "ranking_reference": ("hidden", "bare"),
    "promote": ("better", "certain", "never"),
    "report_to": ("none", "tensorboard", "trackio", "wandb"),
}
"""What the settings that are words may be."""


def _setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


def _by_kind(backend: Any, frontend: Any, help: str) -> Any:
    """A setting with a default of its own for each kind of tasks."""
    by_kind = {TaskKind.BACKEND.value: backend, TaskKind.FRONTEND.value: frontend}
    return field(default=None, metadata={"help": help, "by_kind": by_kind})


def is_by_kind(setting: Field[Any]) -> bool:
    """Whether each kind of tasks has a default of its own for it."""
    return "by_kind" in setting.metadata


def default_of(setting: Field[Any], tasks: str) -> Any:
    """The default of one of `RoundSettings`' fields in rounds on that kind of tasks."""
    return setting.metadata["by_kind"][tasks] if is_by_kind(setting) else setting.default


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """What a round does; `python -m trainer round --help` shows each with its default."""

    algorithm: str = _setting(
        "sweet",
        "sweet, sweet-nohidden, sweet-untrained, sweet-value, sweet-judge, mtdpo, rft or turns",
    )
    tasks: str = _setting(
        TaskKind.BACKEND.value, "what is made: backend (functions) or frontend (web pages)"
    )
    policy: str = _setting("", "the version to start from; default: the one served now")
    seed: int = _setting(0, "the same seed and episodes, the same figures")
    device: str = _setting("auto", "cpu, cuda, …; auto takes a GPU where there is one")
    threads: int = _setting(2, "CPU threads")
    report_to: str = _setting("none", "its numbers in tensorboard, trackio or wandb as well")

    # Which episodes. Those of validation, test and held-out tasks are never learned from.
    use_log: bool = _setting(True, "learn from the episodes that are in the log")
    from_tasks: str = _setting("", "only the log's episodes of this task set")
    from_policy: str = _setting("", "only the log's episodes of this version")
    from_collaborator: str = _setting("", "only the log's episodes with this collaborator")
    since: str = _setting("", "only the log's episodes from this date on")
    until: str = _setting("", "only the log's episodes up to this date")
    fresh_tasks: int = _setting(0, "simulate new episodes of so many tasks as well")
    fresh_per_task: int = _setting(4, "new episodes a task")  # arXiv:2503.15478: 3 or 6 a task
    fresh_set: str = _by_kind(
        "mini-backend/train", "mini-frontend/train", "the task set of the new episodes"
    )
    concurrency: int = _setting(32, "simulated episodes at once")  # as many as an engine batches

    # What people preferred.
    human_pairs: float = _setting(
        1.0, "weight of pairs by grades, likes, edits and retries; 0: all of these are left out"
    )
    vote_pairs: float = _setting(1.0, "weight of pairs by votes on two episodes; 0: left out")
    blind_votes: bool = _setting(False, "count only votes of people who did not see the names")
    imported_pairs: float = _setting(1.0, "weight of pairs that were imported; 0: left out")

    tuning: str = _setting("lora", "lora, or full: all weights of critic and policy, in float32")
    lora_rank: int = _setting(16, "of a new adapter, on all linear layers")

    # Stage 1.
    critic_lr: float = _setting(0.0, "learning rate; 0: the tuning's own")
    # arXiv:2503.15478: 4 and 8. On pages more than one forgets that going on beats a hasty answer.
    critic_epochs: int = _by_kind(4, 1, "passes over the pairs")
    critic_batch: int = _setting(8, "pairs of episodes an update")  # arXiv:2503.15478
    # Paper: 0.1. Small models' per-turn means are small; a sum is some ten times a mean.
    critic_beta: float = _by_kind(1.0, 0.1, "β")
    # Paper: 0.01, its code 0. Both sides of a pair then fall, and what no episode has, such as
    # asking once more what is known, ranks above what was right (docs/sweet-rl.md).
    critic_nll: float = _by_kind(1.0, 5.0, "weight of the NLL term; the paper has 0.01")
    credit: str = _by_kind(
        "turn_mean",
        "turn_sum",
        "turn_mean, turn_sum, or episode_mean as in the published code",
    )
    ranking_reference: str = _setting(
        "hidden", "hidden, or bare as in the published code: the reference ranks without c"
    )

    # Stage 2.
    candidates: int = _setting(16, "messages drawn at each turn")  # arXiv:2503.15478: N = 16
    pairs_per_turn: int = _setting(4, "pairs made of them")  # arXiv:2503.15478
    policy_share: float = _setting(0.1, "share of the episodes whose turns are used")  # the same
    policy_least: int = _setting(64, "but at least so many episodes")  # a tenth of few is none
    policy_lr: float = _setting(0.0, "learning rate; 0: the tuning's own")
    policy_epochs: int = _setting(0, "passes over the data; 0: the algorithm's own")
    policy_batch: int = _setting(0, "examples an update; 0: the algorithm's own")
    # Paper: 0.1 and 0.01. On a model of 2M parameters DPO then lowers both sides until nothing is
    # answered any more (docs/sweet-rl.md).
    policy_beta: float = _setting(1.0, "β; the paper has 0.1")
    policy_nll: float = _setting(10.0, "weight of the NLL term; the paper has 0.01")

    # What becomes of it.
    validation_set: str = _by_kind(
        "mini-backend/validation",
        "mini-frontend/validation",
        "tasks to compare parent and child on",
    )
    validation_n: int = _setting(200, "how many of them")
    promote: str = _setting("better", "better, certain (95 % of the difference above 0), or never")
    promote_margin: float = _setting(
        0.0, "better by more than this (success rate; pages: mean reward)"
    )

    def __post_init__(self) -> None:
        """Raises: ConfigError naming a setting that is out of its range."""
        for one in fields(self):
            is_unset = getattr(self, one.name) in (None, "")
            if is_by_kind(one) and is_unset and self.tasks in CHOICES["tasks"]:
                object.__setattr__(self, one.name, default_of(one, self.tasks))
        for name, accepted in CHOICES.items():
            if getattr(self, name) not in accepted:
                _refuse(name, getattr(self, name), f"one of {', '.join(accepted)}")
        for one in fields(self):
            least = _LEAST.get(one.name, 0)
            value = getattr(self, one.name)
            is_number = isinstance(value, int | float) and one.name != "seed"
            if is_number and not least <= value < float("inf"):
                _refuse(one.name, value, f"{least} or more")
        if self.kind is Algorithm.JUDGE and self.task_kind is not TaskKind.BACKEND:
            raise ConfigError(
                "A judge scores turns of functions only (--tasks backend). Choose another "
                "--algorithm for web pages."
            )
        if self.policy_share > 1:
            _refuse("policy_share", self.policy_share, "from 0 to 1")
        if not self.use_log and not self.fresh_tasks:
            raise ConfigError(
                "There would be no episode to learn from: neither the log's nor fresh ones. Set "
                "--fresh-tasks, or leave --no-use-log out."
            )

    def starting_from(self, policy: str) -> RoundSettings:
        """The same with the version that it starts from."""
        return replace(self, policy=policy)

    @property
    def task_kind(self) -> TaskKind:
        """The kind of the tasks that the round is about."""
        return TaskKind(self.tasks)

    def as_dict(self) -> dict[str, Any]:
        """Name and value of each."""
        return asdict(self)

    def changed(self) -> dict[str, Any]:
        """Name and value of each that is not its kind of tasks' default."""
        usual = {**RoundSettings(tasks=self.tasks).as_dict(), "tasks": RoundSettings().tasks}
        return {name: value for name, value in self.as_dict().items() if value != usual[name]}

    def weight_of(self, source: PairSource) -> float:
        """How much a pair counts in training, by who preferred its better side."""
        weights = {
            PairSource.HUMAN: self.human_pairs,
            PairSource.VOTE: self.vote_pairs,
            PairSource.IMPORTED: self.imported_pairs,
        }
        return weights.get(source, 1.0)

    @property
    def kind(self) -> Algorithm:
        """The algorithm."""
        return Algorithm(self.algorithm)

    @property
    def critic_training(self) -> tuple[float, int, int]:
        """Learning rate, epochs and batch of the critic's training."""
        return self.critic_lr or _RATES[self.tuning][0], self.critic_epochs, self.critic_batch

    @property
    def policy_training(self) -> tuple[float, int, int]:
        """Learning rate, epochs and batch of the policy's own training."""
        epochs, batch = _TRAINING.get(self.kind, _TRAINING[Algorithm.SWEET])
        lr = self.policy_lr or _RATES[self.tuning][1]
        return lr, self.policy_epochs or epochs, self.policy_batch or batch


_RATES = {
    # Critic and policy. LoRA: on the embedded model; tried on validation tasks of ColBench-Mini.
    "lora": (1e-3, 1e-3),
    "full": (2e-7, 2e-7),  # arXiv:2503.15478, of models of 8B parameters
}
_TRAINING = {  # epochs and batch; arXiv:2503.15478, but for SWEET's epochs, of which it has one
    Algorithm.SWEET: (4, 8),
    Algorithm.MULTI_TURN_DPO: (4, 8),
    Algorithm.REJECTION: (4, 32),
}
_LEAST = {
    "threads": 1,
    "fresh_per_task": 2,  # one has nothing to be compared with
    "concurrency": 1,
    "lora_rank": 1,
    "critic_epochs": 1,
    "critic_batch": 1,
    "candidates": 2,
    "pairs_per_turn": 1,
    "policy_least": 1,
    "validation_n": 1,
}


def _refuse(name: str, value: object, accepted: str) -> None:
    option = "--" + name.replace("_", "-")
    raise ConfigError(f"{option} is {value!r}; it must be {accepted}.")

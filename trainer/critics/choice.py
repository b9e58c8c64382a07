"""Which critic ranks in a round, and the models that a round trains, as its settings say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from sweet.registry import for_kind
from sweet.services import Services
from sweet.types import Episode, PolicyVersion, TaskRow
from trainer.candidates import Candidate
from trainer.critics.judge import JudgeCritic
from trainer.critics.ratios import Critic, CriticSettings
from trainer.critics.values import ValueCritic
from trainer.learner import Learner, load_learner, model_source
from trainer.settings import Algorithm, RoundSettings


class TurnCritic(Protocol):
    """Whatever says what a turn was worth."""

    def scores(
        self, row: TaskRow, episode: Episode, candidates: Sequence[Sequence[Candidate]]
    ) -> Sequence[Sequence[float | None]] | None:
        """The score of each candidate of each turn of an episode, None for one that got none.

        None in place of all where the episode is too long to read.
        """
        ...

    def advantages(
        self, rows: Mapping[str, TaskRow], episodes: Sequence[Episode]
    ) -> list[dict[int, float] | None]:
        """What each logged turn of each episode was worth; None where that can't be said."""
        ...


def ranking_critic(
    services: Services, settings: RoundSettings, folder: Path | None = None
) -> TurnCritic:
    """The critic that ranks: what training left in the round's `folder`, or one without training.

    Raises: SweetError.
    """
    if settings.kind is Algorithm.JUDGE:
        return JudgeCritic(*services.judge(), memo=folder / "judge.jsonl" if folder else None)
    trained = folder / "critic" if folder and settings.kind.trains_critic else None
    return trained_critic(services, settings, trained)


def trained_critic(
    services: Services, settings: RoundSettings, trained: Path | None = None
) -> Critic | ValueCritic:
    """The critic that learns, at its start or as it was `trained`. Raises: TrainingError."""
    kind, style = settings.kind, style_of(services, settings)
    if kind is Algorithm.VALUE:
        learner = open_learner(services, settings, trained, with_head=True)
        return ValueCritic(learner, style, settings.critic_beta)
    reads = settings.ranking_reference == "hidden" and kind is not Algorithm.UNTRAINED
    how = CriticSettings(
        settings.critic_beta,
        settings.critic_nll,
        settings.credit,  # type: ignore[arg-type]  # one of three, checked by the settings
        kind.reads_hidden,
        reference_reads_hidden=reads,
    )
    return Critic(open_learner(services, settings, trained), style, how)


def open_learner(
    services: Services,
    settings: RoundSettings,
    trained: Path | None = None,
    *,
    with_head: bool = False,
) -> Learner:
    """The model of the version that a round starts from, ready to be trained, or `trained`."""
    parent = parent_of(services, settings)
    return load_learner(
        parent.model_path or model_source(parent.base_model),
        parent.adapter_path,
        rank=settings.lora_rank,
        seed=settings.seed,
        device=settings.device,
        trained=trained,
        whole=settings.tuning == "full",
        with_head=with_head,
    )


def parent_of(services: Services, settings: RoundSettings) -> PolicyVersion:
    """The version that a round starts from, with its weights for the round's kind of tasks.

    Raises: PolicyError.
    """
    return for_kind(services.registry.version(settings.policy), settings.task_kind)


def style_of(services: Services, settings: RoundSettings) -> str:
    """How that version is prompted."""
    return services.seated(parent_of(services, settings)).style

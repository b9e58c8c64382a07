"""A round: logged episodes → a better policy, read from top to bottom.

collect → pairs → critic → candidates → rank → policy → evaluate → register

Each stage is a function of the workbench; its result is a file in the round's folder. Seeds come
from the round's settings and an episode's task and seed, never from ids or the clock, so a round
that was killed and resumed ends with the same figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import chain

import torch

from sweet.errors import SweetError
from sweet.services import Services
from sweet.store import Round
from sweet.types import PairSource, PolicyVersion, PreferencePair, TaskRow
from trainer.baselines import fit_successes, fit_whole_episodes
from trainer.candidates import Candidate
from trainer.collect import chosen_episodes, chosen_turns, collect
from trainer.critics import open_learner, parent_of, style_of, trained_critic
from trainer.draws import candidates_of, draw_candidates
from trainer.evaluate import compare, verdict
from trainer.fit import FitSettings
from trainer.learner import Learner
from trainer.pairs import episode_pairs
from trainer.policy import PairTree, PolicySettings, fit_policy, pair_tree
from trainer.rank import rank
from trainer.settings import Algorithm, RoundSettings
from trainer.workbench import Result, Workbench, only_round


def run_round(
    services: Services, settings: RoundSettings | None = None, *, resume: str | None = None
) -> Round:
    """The round as the log has it at its end. `resume` goes on with one that was begun.

    Raises: SweetError with the reason; the log's episodes and the served version are as they were.
    """
    with only_round(services):
        if resume:
            bench = Workbench.again(services, resume)
        else:
            bench = Workbench.begin(services, settings or RoundSettings())
        try:
            with bench.tracked():
                return _run(bench)
        except SweetError as e:
            bench.note(f"failed: {e}")
            services.store.fail_round(bench.id, str(e))
            raise
        except BaseException as e:
            bench.note(f"stopped: {type(e).__name__}")
            services.store.stop_round(bench.id)
            raise


def _run(bench: Workbench) -> Round:
    torch.set_num_threads(bench.settings.threads)
    stages = {
        "collect": collect,
        "pairs": _pairs,
        "critic": _critic,
        "candidates": draw_candidates,
        "rank": rank,
        "policy": _POLICY_STAGES.get(bench.settings.kind, _turn_by_turn),
        "evaluate": compare,
        "register": _register,
    }
    for name in bench.settings.kind.stages:
        bench.stage(name, stages[name])
    registered = bench.result("register")
    return bench.services.store.end_round(
        bench.id,
        version_id=registered["version"],
        is_promoted=registered["is_promoted"],
        figures={**bench.result("evaluate"), "ended_early": bench.cut_short()},
    )


def _pairs(bench: Workbench) -> Result:
    pairs = _whole_pairs(bench)
    return {
        "pairs": len(pairs),
        "by_source": dict(Counter(pair.source for pair in pairs)),
        "turn_pairs": len(chosen_turns(bench)),
        "tasks": len({pair.task_id for pair in pairs}),
        "episodes": [pair.episode_ids for pair in pairs],
    }


def _critic(bench: Workbench) -> Result:
    settings = bench.settings
    _, rows = chosen_episodes(bench)
    critic = trained_critic(bench.services, settings)
    how = FitSettings(*settings.critic_training, settings.seed)
    pairs = _whole_pairs(bench)
    checkpoint = bench.folder / "critic.pt"
    epochs = critic.fit(pairs, rows, how, checkpoint=checkpoint, report=bench.reporter("critic"))
    critic.learner.save(bench.folder / "critic")
    return {**epochs[-1], "epochs": epochs}


def _turn_by_turn(bench: Workbench) -> Result:
    episodes, rows = chosen_episodes(bench)
    ranked, drawn = bench.result("rank")["episodes"], candidates_of(bench)
    settings = bench.settings
    learner, style = open_learner(bench.services, settings), style_of(bench.services, settings)
    trees = []
    for episode in (e for e in episodes if e.id in ranked):
        turns = [
            [(candidates[chosen], candidates[rejected]) for chosen, rejected in turn["pairs"]]
            for candidates, turn in zip(drawn[episode.id], ranked[episode.id], strict=True)
        ]
        trees.append(pair_tree(learner, style, rows[episode.task_id], episode, turns))
    loss = PolicySettings(settings.policy_beta, settings.policy_nll)
    by_source = {
        PairSource.CRITIC: [tree for tree in trees if tree],
        PairSource.HUMAN: _human_trees(bench, learner, style, rows),
    }
    fit = partial(fit_policy, learner, list(chain(*by_source.values())), loss)
    counts = {source: sum(len(t.pairs) for t in some) for source, some in by_source.items()}
    return {**_trained(bench, learner, fit), "by_source": counts}


def _human_trees(
    bench: Workbench, learner: Learner, style: str, rows: Mapping[str, TaskRow]
) -> list[PairTree]:
    """The pairs of turns that people made, as branches of the episodes that they went on with."""
    by_episode: dict[str, list[PreferencePair]] = {}
    for pair in chosen_turns(bench):
        by_episode.setdefault(str(pair.episode_ids[0]), []).append(pair)
    trees = []
    for episode_id, pairs in by_episode.items():
        episode = bench.services.store.episode(episode_id)
        turns: list[list[tuple[Candidate, Candidate]]] = [[] for _ in episode.turns]
        for pair in pairs:
            chosen, rejected = (Candidate(s[0].action.raw) for s in (pair.chosen, pair.rejected))
            turns[pair.chosen[0].index].append((chosen, rejected))
        row, weight = rows[episode.task_id], bench.settings.human_pairs
        trees.append(pair_tree(learner, style, row, episode, turns, weight))
    return [tree for tree in trees if tree]


def _multi_turn_dpo(bench: Workbench) -> Result:
    _, rows = chosen_episodes(bench)
    settings = bench.settings
    learner = open_learner(bench.services, settings)
    fit = partial(
        fit_whole_episodes,
        learner,
        style_of(bench.services, settings),
        _whole_pairs(bench),
        rows,
        beta=settings.policy_beta,
        nll_coefficient=settings.policy_nll,
    )
    return _trained(bench, learner, fit)


def _rejection(bench: Workbench) -> Result:
    learner = open_learner(bench.services, bench.settings)
    style = style_of(bench.services, bench.settings)
    fit = partial(fit_successes, learner, style, *chosen_episodes(bench))
    return _trained(bench, learner, fit)


_POLICY_STAGES = {Algorithm.MULTI_TURN_DPO: _multi_turn_dpo, Algorithm.REJECTION: _rejection}


def _trained(bench: Workbench, learner: Learner, fit: partial) -> Result:
    """The policy stage's result, after training and saving what was trained."""
    lr, epochs, batch = bench.settings.policy_training
    how = FitSettings(lr, epochs, batch, bench.settings.seed)
    checkpoint = bench.folder / "policy.pt"
    numbers = fit(settings=how, checkpoint=checkpoint, report=bench.reporter("policy"))
    learner.save(bench.folder / "policy")
    return {**numbers[-1], "epochs": numbers}


def _register(bench: Workbench) -> Result:
    """The new version in the registry; served from now on if it beat its parent."""
    registry, settings = bench.services.registry, bench.settings
    parent = parent_of(bench.services, settings)
    is_better, why = verdict(bench.result("evaluate"), settings)
    version = _registered(bench) or registry.register(
        bench.folder / "policy",
        parent.base_model,
        model_path=parent.model_path,
        parent_id=parent.id,
        round_id=bench.id,
        data_hash=bench.result("collect")["data_hash"],
        settings=settings.as_dict(),
        figures=bench.result("evaluate"),
        note=f"{settings.algorithm} from {parent.id}{_cut_short(bench)}; {why}",
    )
    if is_better:
        registry.promote(version.id)
    return {"version": version.id, "is_promoted": is_better, "why": why}


def _cut_short(bench: Workbench) -> str:
    stages = bench.cut_short()
    return f" ({' and '.join(stages)} ended early, as asked)" if stages else ""


def _registered(bench: Workbench) -> PolicyVersion | None:
    """What this round registered before it was killed."""
    registry = bench.services.registry
    trained = (v for v in registry.versions() if v.parent_id)
    return next((v for v in trained if registry.manifest(v.id).round_id == bench.id), None)


def _whole_pairs(bench: Workbench) -> list[PreferencePair]:
    """The pairs of episodes; those by people's grades weigh as the settings say."""
    human, weight = PairSource.HUMAN, bench.settings.human_pairs
    pairs = episode_pairs(*chosen_episodes(bench))
    return [replace(p, weight=weight) if p.source is human else p for p in pairs]

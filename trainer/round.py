"""A round: logged episodes → a better policy, read from top to bottom.

collect → pairs → critic → candidates → rank → policy → evaluate → register

Each stage is a function of the workbench; its result is a file in the round's folder. Seeds come
from the round's settings and an episode's task and seed, never from ids or the clock, so a round
that was killed and resumed ends with the same figures.
"""

from __future__ import annotations

from functools import partial
from itertools import chain

from sweet.errors import SweetError
from sweet.services import Services
from sweet.store import Round
from sweet.types import PolicyVersion
from trainer.baselines import fit_successes, fit_whole_episodes
from trainer.collect import chosen_episodes, collect
from trainer.critics import open_learner, parent_of, style_of, trained_critic
from trainer.draws import draw_candidates
from trainer.evaluate import compare, verdict
from trainer.fit import FitSettings
from trainer.learner import Learner, use_threads
from trainer.pairing import collected_pairs, pair_up
from trainer.policy import PolicySettings, fit_policy
from trainer.rank import rank
from trainer.settings import Algorithm, RoundSettings
from trainer.turns import trees_by_source
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
    use_threads(bench.settings.threads)
    stages = {
        "collect": collect,
        "pairs": pair_up,
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


def _critic(bench: Workbench) -> Result:
    settings = bench.settings
    pairs, rows = collected_pairs(bench)
    critic = trained_critic(bench.services, settings)
    how = FitSettings(*settings.critic_training, settings.seed)
    checkpoint = bench.folder / "critic.pt"
    epochs = critic.fit(pairs, rows, how, checkpoint=checkpoint, report=bench.reporter("critic"))
    critic.learner.save(bench.folder / "critic")
    return {**epochs[-1], "epochs": epochs}


def _turn_by_turn(bench: Workbench) -> Result:
    settings = bench.settings
    learner, style = open_learner(bench.services, settings), style_of(bench.services, settings)
    trees = trees_by_source(bench, learner, style)
    loss = PolicySettings(settings.policy_beta, settings.policy_nll)
    fit = partial(fit_policy, learner, list(chain(*trees.values())), loss)
    counts = {source: sum(len(tree.pairs) for tree in some) for source, some in trees.items()}
    return {**_trained(bench, learner, fit), "by_source": counts}


def _multi_turn_dpo(bench: Workbench) -> Result:
    pairs, rows = collected_pairs(bench)
    settings = bench.settings
    learner = open_learner(bench.services, settings)
    fit = partial(
        fit_whole_episodes,
        learner,
        style_of(bench.services, settings),
        pairs,
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

"""SWEET-RL against its baselines on the embedded model: what `docs/results.md` reports.

1. Tune: from one seed's episodes, every method is trained with every setting of its grid, equally
   many for all; the one with most success on validation tasks is taken. A critic without hidden
   information is SWEET-RL with one thing left out, so it takes SWEET-RL's.
2. Prove: for every seed, new episodes are played and every method learns from the same ones. Then
   the test tasks, the same for all, are played once. SWEET goes on with a second round, and at last
   all learn from fewer episodes.

Everything is kept under `Plan.out`, a file a finding, so a run that was stopped goes on.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.comparison import Comparison
from benchmarks.results import OUTCOMES, Finding, summary, write_results
from sweet import validation
from sweet.services import Services
from sweet.settings import Settings
from sweet.simulator import ScriptedCollaborator
from sweet.store import Round, RoundState
from sweet.tasks import mini
from sweet.types import Episode, TaskKind
from trainer.pretraining.measure import play
from trainer.round import run_round
from trainer.settings import RoundSettings
from trainer.workbench import Workbench

METHODS = ("rft", "mtdpo", "sweet-nohidden", "sweet")
BASE, SECOND = "base", "sweet-2"
DOCS = Path(__file__).parents[1] / "docs"
POLICY_SETTINGS = {"policy_lr", "policy_epochs", "policy_beta", "policy_nll"}
"""Settings that make no difference before the policy's own stage."""


def grid(**values: tuple[float, ...]) -> tuple[dict[str, float], ...]:
    """All settings that take one of each setting's values."""
    return tuple(dict(zip(values, some, strict=True)) for some in product(*values.values()))


MEANS = {"credit": "turn_mean", "critic_beta": 1.0}
SUMS = {"credit": "turn_sum", "critic_beta": 0.1}  # a sum is some ten times a mean
GRIDS: dict[str, tuple[dict[str, Any], ...]] = {
    "rft": grid(policy_lr=(1e-3, 3e-3), policy_epochs=(4, 8)),
    "mtdpo": grid(policy_beta=(0.3, 1.0), policy_nll=(1.0, 10.0)),
    "sweet": tuple(
        {**credit, "critic_nll": nll, "critic_epochs": 4, "policy_least": 256, "policy_epochs": 1}
        for credit, weights in ((MEANS, (1.0, 5.0)), (SUMS, (5.0, 20.0)))
        for nll in weights
    ),
}
"""Four each, around what did well in first trials; the rest of the settings are the defaults.

SWEET's policy sees the turns of 256 of the 400 episodes once; its baselines see all of them often.
"""
LIKE = {"sweet-nohidden": "sweet"}
"""Methods that take the settings of another."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is played, trained and measured."""

    kind: TaskKind = TaskKind.BACKEND
    out: Path = Path("build/sweet")
    docs: Path = DOCS
    methods: tuple[str, ...] = METHODS
    seeds: tuple[int, ...] = (1, 2, 3)
    tasks: int = 100  # to learn from, each seed its own
    per_task: int = 4
    sizes: tuple[int, ...] = (25, 50)  # fewer tasks, for the plot; the first seed alone
    sizes_test_n: int = 300  # on so many of the test tasks
    goes_on: bool = True  # with a second round of SWEET
    tune_seed: int = 0
    grids: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=lambda: GRIDS)
    validation_n: int = 200
    test_n: int = 1000
    test_seed: int = 2718  # of tasks that nothing else has seen; 314's were looked at on the way
    at_once: int = os.cpu_count() or 1
    common: tuple[tuple[str, Any], ...] = ()  # settings of every round

    @property
    def set_name(self) -> str:
        """The tasks that everything is about, without the split."""
        return f"mini-{self.kind}"


def run(plan: Plan | None = None) -> list[Comparison]:
    """SWEET's outcome on test tasks against every other method's, in percent; takes hours.

    The results are written when all seeds are through, and again with the second rounds.
    """
    plan = plan or Plan()
    plan.out.mkdir(parents=True, exist_ok=True)
    with _pool(plan) as pool:
        chosen = _tuned(plan, pool)
        findings = _proved(plan, chosen, pool)
        table = _written(plan, chosen, findings)
        if plan.goes_on and "sweet" in plan.methods:
            seconds = [pool.submit(second_round, plan, chosen, seed) for seed in plan.seeds]
            findings += [some.result() for some in seconds]
            table = _written(plan, chosen, findings)
    by_name = {row["method"]: row for row in table}
    outcome = OUTCOMES[plan.set_name].name
    sweet = by_name.get("sweet") or table[-1]
    return [
        Comparison(
            f"{sweet['method']} vs {name}, % {outcome} on {plan.set_name}/test",
            100 * sweet["outcome"],
            100 * row["outcome"],
            f"{row['n']} episodes each, {len(plan.seeds)} seeds",
        )
        for name, row in by_name.items()
        if name != sweet["method"] and row["outcome"]
    ]


def _written(
    plan: Plan, chosen: dict[str, dict[str, Any]], findings: Sequence[Finding]
) -> list[dict[str, Any]]:
    """The table of what was found so far, which is in the docs now."""
    table = summary([f for f in findings if f.tasks == plan.tasks])
    sizes = [f for f in findings if f.seed == plan.seeds[0]]
    conditions = {"evaluator": findings[0].evaluator, **_conditions(plan, chosen)}
    write_results(plan.docs, plan.set_name, table, sizes, conditions)
    return table


def _proved(plan: Plan, chosen: dict[str, dict[str, Any]], pool: Executor) -> list[Finding]:
    """All methods of all seeds, each played on the test tasks as soon as it has learned."""
    first = plan.seeds[0]
    studies = [*((seed, plan.tasks) for seed in plan.seeds), *((first, n) for n in plan.sizes)]
    learning = {pool.submit(learn, plan, chosen, *one): one for one in studies}
    playing = [
        pool.submit(play_test, plan, *learning[done], method, round_)
        for done in as_completed(learning)
        for method, round_ in done.result().items()
    ]
    return sorted((one.result() for one in playing), key=lambda found: (found.seed, found.tasks))


def learn(
    plan: Plan, chosen: dict[str, dict[str, Any]], seed: int, tasks: int
) -> dict[str, Round | None]:
    """The round of every method from one seed's episodes; none of the base."""
    with Services(Settings(data=plan.out / f"seed-{seed}-{tasks}")) as services:
        versions: dict[str, Round | None] = {}
        for method in sorted(plan.methods, key=lambda m: m != "sweet"):  # it draws for the others
            settings = _settings(plan, method, seed, tasks, chosen[method])
            versions[method] = _finished(services, settings)
    return versions if tasks != plan.tasks else {BASE: None, **versions}


def play_test(plan: Plan, seed: int, tasks: int, method: str, round_: Round | None) -> Finding:
    """What a round of `learn` came to on the test tasks."""
    folder = plan.out / f"seed-{seed}-{tasks}"
    with Services(Settings(data=folder)) as services:
        return _finding(plan, services, folder, method, round_, seed, tasks)


def second_round(plan: Plan, chosen: dict[str, dict[str, Any]], seed: int) -> Finding:
    """SWEET's second round, from new episodes of new tasks, on the test tasks."""
    folder = plan.out / f"seed-{seed}-{plan.tasks}"
    with Services(Settings(data=folder)) as services:
        settings = _settings(plan, "sweet", seed, plan.tasks, chosen["sweet"])
        round_ = _finished(services, _second(settings, _finished(services, settings)))
        return _finding(plan, services, folder, SECOND, round_, seed, plan.tasks)


def _settings(
    plan: Plan, method: str, seed: int, tasks: int, chosen: dict[str, Any], validation: int = 20
) -> RoundSettings:
    """A round of `method`; the first one plays the episodes, the others find them in the log."""
    values: dict[str, Any] = {
        "tasks": plan.kind.value,
        "algorithm": method,
        "policy": "embedded",
        "from_policy": "embedded",
        "seed": seed,
        "threads": 1,
        "fresh_tasks": tasks,
        "fresh_per_task": plan.per_task,
        "validation_n": validation,
        "promote": "never",
    }
    return RoundSettings(**{**values, **dict(plan.common), **chosen})


def _second(settings: RoundSettings, first: Round | None) -> RoundSettings:
    """The round after `first`, from new episodes of new tasks."""
    assert first is not None and first.version_id
    version = first.version_id
    return replace(settings, policy=version, from_policy=version, seed=settings.seed + 1000)


def _finished(services: Services, settings: RoundSettings) -> Round:
    """The round with these settings: the one in the log, gone on with if it broke off, or a new.

    Only the first round of a seed plays episodes; candidates, drawn by the seed from the same
    policy, are taken over from an earlier round.
    """
    wanted = settings.as_dict()
    known = services.store.rounds(1000)
    for round_ in known:
        if round_.settings == wanted and round_.state is RoundState.DONE:
            return round_
        if round_.settings == wanted:
            return run_round(services, resume=round_.id)
    done = [r for r in known if r.state is RoundState.DONE and _is_like(r.settings, wanted)]
    bench = Workbench.new(services, settings)
    if done:
        _take_over(bench, done)
    return run_round(services, resume=bench.id)


def _is_like(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one[name] == other[name] for name in ("policy", "seed", "fresh_tasks"))


def _take_over(bench: Workbench, done: Sequence[Round]) -> None:
    """What rounds with the same episodes found before: stages that don't depend on what differs."""
    rounds = bench.folder.parent
    shutil.copy(rounds / done[-1].id / "01-collect.json", bench.folder)
    for round_ in done:
        if (drawn := rounds / round_.id / "candidates.jsonl").exists():
            shutil.copy(drawn, bench.folder)
        differs = {k for k, v in round_.settings.items() if v != bench.settings.as_dict()[k]}
        if differs <= POLICY_SETTINGS:
            stages = bench.settings.kind.stages
            for number, stage in enumerate(stages[: stages.index("policy")], 1):
                shutil.copy(rounds / round_.id / f"{number:02d}-{stage}.json", bench.folder)
            if (critic := rounds / round_.id / "critic").exists():
                shutil.copytree(critic, bench.folder / "critic", dirs_exist_ok=True)
            return


def _tuned(plan: Plan, pool: Executor) -> dict[str, dict[str, Any]]:
    """Each method's settings with the best outcome on validation tasks."""
    longest_first = reversed(plan.methods)
    tuned = dict.fromkeys(LIKE.get(method, method) for method in longest_first)
    best = dict(pool.map(_tune, [plan] * len(tuned), tuned))
    return {method: best[LIKE.get(method, method)] for method in plan.methods}


def _tuned_path(plan: Plan, method: str) -> Path:
    return plan.out / f"tuned-{method}.json"


def _tried(plan: Plan, method: str) -> list[dict[str, Any]]:
    """A method's settings, each with what its version had on its parent on validation tasks."""
    found = json.loads(_tuned_path(plan, method).read_text())
    names = plan.grids[method][0]
    gains = [None if one["gain"] is None else round(one["gain"], 3) for one in found]
    return [
        {**{name: one[name] for name in names}, "validation_gain": gain}
        for one, gain in zip(found, gains, strict=True)
    ]


def _tune(plan: Plan, method: str) -> tuple[str, dict[str, Any]]:
    path = _tuned_path(plan, method)
    if not path.exists():
        with Services(Settings(data=plan.out / f"tune-{method}")) as services:
            tried = []
            for chosen in plan.grids[method]:
                n = plan.validation_n
                settings = _settings(plan, method, plan.tune_seed, plan.tasks, dict(chosen), n)
                figures = _finished(services, settings).figures or {}
                tried.append({**chosen, **figures["child"], "gain": figures["gain"]})
        path.write_text(json.dumps(tried, indent=1) + "\n")
    tried = json.loads(path.read_text())
    figure, _ = validation.OUTCOMES[plan.kind]
    best = max(tried, key=lambda one: one[figure] or 0.0)
    return method, {name: best[name] for name in plan.grids[method][0]}


def _finding(
    plan: Plan,
    services: Services,
    folder: Path,
    method: str,
    round_: Round | None,
    seed: int,
    tasks: int,
) -> Finding:
    """A method's outcomes on the test tasks, played once and kept."""
    path = folder / f"test-{method}.json"
    if not path.exists():
        n = plan.test_n if tasks == plan.tasks else plan.sizes_test_n
        rows = list(mini.generate(f"{plan.set_name}/test", n, plan.test_seed))
        policy = services.policy(str(round_.version_id) if round_ else "embedded")
        person = services.collaborator(ScriptedCollaborator.name, plan.kind)
        episodes = asyncio.run(play(policy, services.evaluator(plan.kind), rows, seed, person))
        outcomes, beside = _outcomes(episodes, plan.kind)
        found = Finding(
            method,
            seed,
            tasks,
            tasks * plan.per_task,
            " and ".join(sorted({e.reward.evaluator for e in episodes if e.reward})),
            outcomes,
            beside,
            [len(e.turns) for e in episodes],
            _stage_seconds(folder, round_) if round_ else {},
        )
        path.write_text(json.dumps(asdict(found)) + "\n")
    return Finding(**json.loads(path.read_text()))


def _outcomes(
    episodes: Sequence[Episode], kind: TaskKind
) -> tuple[list[float | None], list[float | None]]:
    """Success and the share of tests; of pages: the reward, and whether all is as wanted."""
    rewards = [e.reward for e in episodes]
    whole = [None if r is None else float(r.value >= 1) for r in rewards]
    if kind is TaskKind.FRONTEND:
        return [None if r is None else r.value for r in rewards], whole
    return whole, [None if r is None else r.components["tests_passed"] for r in rewards]


def _stage_seconds(folder: Path, round_: Round) -> dict[str, float]:
    stages = sorted((folder / "rounds" / round_.id).glob("0*.json"))
    return {path.stem[3:]: json.loads(path.read_text())["seconds"] for path in stages}


class _Here(Executor):
    """Does what it is given in this process, at once."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The finished future of `fn`'s result; what `fn` raises is raised here."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _pool(plan: Plan) -> Executor:
    if plan.at_once == 1:
        return _Here()
    return ProcessPoolExecutor(plan.at_once, multiprocessing.get_context("spawn"))


def _conditions(plan: Plan, chosen: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "model": "embedded",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {plan.at_once} processes",
        "episodes_to_learn_from": plan.tasks * plan.per_task,
        "train_tasks": plan.tasks,
        "test_tasks": plan.test_n,
        "test_seed": plan.test_seed,
        "seeds": list(plan.seeds),
        "chosen_on_validation": chosen,
        "settings_tried": {name: _tried(plan, name) for name in plan.grids},
        "validation_tasks": plan.validation_n,
        "interval": "95 % bootstrap over tasks and seeds",
    }

"""What the pages and the command line are made of: settings → store, models, players, scorers.

Opening it is quick: a model is loaded, a sandbox started, when it is first needed.
"""

from __future__ import annotations

import asyncio
import random
import threading
import uuid
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Self

from evaluators.backend import BackendEvaluator
from evaluators.frontend import FrontendEvaluator, open_clip_model
from evaluators.render import Renderer
from evaluators.sandbox import Sandbox
from sweet.collaborators import PERSON as PERSON
from sweet.collaborators import Collaborators
from sweet.drawn.gallery import Gallery
from sweet.engines import open_engine
from sweet.engines.local import LocalEngine
from sweet.episode import OnChange, run_episode
from sweet.errors import ConfigError, SweetError, TaskDataError
from sweet.policy import EnginePolicy
from sweet.registry import Registry, for_kind, plays
from sweet.rollout import Assignment, Outcome, Rollout, assignments
from sweet.settings import EMBEDDED_MODEL, EMBEDDED_WEIGHTS, ModelSettings, Settings
from sweet.store import EpisodeStore
from sweet.tasks import colbench, mini, mini_backend
from sweet.types import (
    Engine,
    Episode,
    Message,
    OnText,
    PolicyVersion,
    Sampling,
    Task,
    TaskKind,
    TaskRow,
)

OWN = "own"
MINI_SIZES = {"train": 500, "validation": 300, "test": 500, "families": 100}
MINI_SEED = 1
MADE_AT_START = tuple(name for name in mini.SETS if name.startswith(mini_backend.SOURCE + "/"))


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """`n` simulated episodes: on which tasks, by whom, how many at once.

    `collaborator` empty: the best that can play each task.
    """

    tasks: str
    policy_id: str
    n: int
    collaborator: str = ""
    concurrency: int = 8
    seed: int = 0


class Services(Collaborators):
    """Everything a page or a command needs, opened from settings; close it when done."""

    def __init__(self, settings: Settings) -> None:
        _check_models(settings)
        self.settings = settings
        self.store = EpisodeStore.open(settings.database)
        self.store.end_lost_batches()
        self.registry = Registry(settings.data / "policies", _builtin(settings))
        self._engines: dict[tuple[str, str, str], Engine] = {}
        self._sandbox: Sandbox | None = None
        self._evaluator: BackendEvaluator | None = None
        self._pages: FrontendEvaluator | None = None
        self._renderer: Renderer | None = None
        self.gallery = Gallery(settings.data / "pages", self.renderer)
        """Draws pages; what was drawn once is not drawn again."""
        self._running: set[asyncio.Task[None]] = set()
        self._lock = threading.RLock()

    def close(self) -> None:
        """End the sandbox's and the browser's processes, unload the models, close the store."""
        with self._lock:
            for evaluator in (self._evaluator, self._pages):
                if evaluator is not None:
                    evaluator.close()
            if self._sandbox is not None:
                self._sandbox.close()
            if self._renderer is not None:
                self._renderer.close()
            self._evaluator = self._pages = self._sandbox = self._renderer = None
            for engine in self._engines.values():
                if isinstance(engine, LocalEngine):
                    engine.close()
            self._engines.clear()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # Policies

    def policies(self) -> list[PolicyVersion]:
        """Every version that can be chosen: built-in, configured, trained."""
        return self.registry.versions()

    def default_policy(self, kind: TaskKind | None = TaskKind.BACKEND) -> str:
        """The id of the version that plays tasks of that `kind` now; of every kind where None.

        The one that was promoted last among those that can, else the configured one.
        """
        kinds = TaskKind if kind is None else (kind,)
        return self.registry.promoted(*kinds) or _builtin(self.settings)[-1].id

    def served(self) -> dict[TaskKind, str]:
        """The ids of the versions that play tasks of each kind now."""
        return {kind: self.default_policy(kind) for kind in TaskKind}

    def policy(self, policy_id: str) -> EnginePolicy:
        """The version in the agent's seat. Raises: PolicyError."""
        return self.seated(self.registry.verified(policy_id))

    def seated(self, version: PolicyVersion) -> EnginePolicy:
        """A version, registered or not, in the agent's seat."""
        family, weights = self._models_of(version)
        # A server offers what was trained under the name of the version's folder.
        offered = version.adapter_path or version.model_path
        engines = {
            kind: self.engine(self._models_of(for_kind(version, kind))[1])
            for kind in TaskKind
            if plays(version, kind)
        }
        return EnginePolicy(
            version.id,
            engines,
            family.sampling,
            "plain" if version.base_model in EMBEDDED_WEIGHTS.values() else "instructed",
            offered if weights.base_url else version.adapter_path,
        )

    def _models_of(self, version: PolicyVersion) -> tuple[ModelSettings, ModelSettings]:
        """The settings of a version's base model, and the same with the weights that it runs on."""
        agent = self.settings.agent
        base = version.base_model
        same = {base, agent.model} <= {*EMBEDDED_WEIGHTS.values()} or base == agent.model
        family = agent.model_copy(update={"model": base}) if same else ModelSettings(model=base)
        if version.model_path and not family.base_url:
            return family, family.model_copy(update={"model": version.model_path})
        return family, family

    def engine(self, model: ModelSettings) -> Engine:
        """The engine of a model; one model is loaded once, whoever plays on it."""
        key = (model.model, model.base_url, model.api_key)
        with self._lock:
            if key not in self._engines:
                self._engines[key] = open_engine(model)
            return self._engines[key]

    def warm_up(self) -> None:
        """The served versions' models are loaded, where they run here; a server is not called.

        What fails is said by the first turn that needs the model.
        """
        engines: dict[Engine, None] = {}
        for kind, policy_id in self.served().items():
            with suppress(SweetError):
                version = for_kind(self.registry.version(policy_id), kind)
                engines[self.engine(self._models_of(version)[1])] = None
        for engine in engines:
            if isinstance(engine, LocalEngine):
                with suppress(SweetError):
                    hello = engine.complete([Message("user", "Hello")], Sampling(max_tokens=1))
                    asyncio.run(hello)

    def judge(self) -> tuple[str, Engine, Sampling]:
        """The judge's name, where its model runs, and its sampling. Raises: ConfigError."""
        model = self.settings.judge
        if model.model == EMBEDDED_MODEL:
            raise ConfigError(
                "No judge is configured. Name its model with SWEET_JUDGE__MODEL, and where it "
                "runs with SWEET_JUDGE__BASE_URL (without it: in this process)."
            )
        return model.model, self.engine(model), model.sampling

    # Scoring

    def renderer(self) -> Renderer:
        """What draws pages anew; `gallery` asks it for those it does not have."""
        with self._lock:
            if self._renderer is None:
                self._renderer = Renderer()
            return self._renderer

    def evaluator(self, kind: TaskKind) -> FrontendEvaluator | BackendEvaluator:
        """What scores tasks of that kind. Raises: SandboxError."""
        return self.backend_evaluator() if kind is TaskKind.BACKEND else self.frontend_evaluator()

    def frontend_evaluator(self) -> FrontendEvaluator:
        """What scores web pages; the browser and CLIP's model are started by the first of them."""
        with self._lock:
            if self._pages is None:
                clip = partial(open_clip_model, self.settings.clip)
                self._pages = FrontendEvaluator(self.gallery, clip)
            return self._pages

    def backend_evaluator(self) -> BackendEvaluator:
        """What scores Python answers; its sandbox is started now. Raises: SandboxError."""
        with self._lock:
            if self._evaluator is None:
                self._sandbox = Sandbox.start(
                    workers=self.settings.sandbox_workers,
                    allow_unsafe_exec=self.settings.allow_unsafe_exec,
                )
                self._evaluator = BackendEvaluator(self._sandbox)
            return self._evaluator

    # Tasks

    def task_set_names(self) -> list[str]:
        """The sets that can be chosen: those in the store, and those made when asked for."""
        here = [found.name for found in self.store.task_sets()]
        return [*here, *(name for name in mini.SETS if name not in here)]

    def ensure_mini_tasks(self, names: Iterable[str] = MADE_AT_START) -> None:
        """Make these of ColBench-Mini's sets, where the store does not have them yet.

        By default those of functions: web pages are made when their set is asked for.
        """
        for name in names:
            source, split = name.split("/")
            if self.store.count_tasks(source, split) < MINI_SIZES[split]:
                self.store.add_tasks(mini.generate(name, MINI_SIZES[split], MINI_SEED))

    def task_rows(self, name: str) -> list[TaskRow]:
        """The tasks of a set: `mini-backend/test`, `colbench-backend/test`, `file:PATH`, ….

        They are in the store afterwards. Raises: TaskDataError where there is no such set.
        """
        if name.startswith("file:"):
            return list(self.read_file(name).rows)
        source, _, split = name.partition("/")
        if name in mini.SETS:
            self.ensure_mini_tasks([name])
        elif not self.store.count_tasks(source, split):
            self.store.add_tasks(colbench.read_imported(name, self.settings.data).rows)
        tasks = self.store.tasks(source, split, limit=self.store.count_tasks(source, split))
        return [TaskRow(task, self.store.hidden(task.id)) for task in tasks]

    def kind_of(self, name: str) -> TaskKind | None:
        """The kind of a set's tasks; None where it mixes kinds. Raises: TaskDataError."""
        kinds = {row.task.kind for row in self.task_rows(name)}
        return kinds.pop() if len(kinds) == 1 else None

    def read_file(self, name: str) -> colbench.TaskFile:
        """What the set `file:PATH` holds, with its bad rows; the good ones are in the store."""
        found = colbench.read_file_set(name)
        self.store.add_tasks(found.rows)
        return found

    def own_task(self, description: str, kind: TaskKind = TaskKind.BACKEND) -> TaskRow:
        """A person's own task, in the store: a description, no reference, no tests."""
        if not description.strip():
            raise TaskDataError("The task has no description. Say what you want to have made.")
        task = Task(f"own-{uuid.uuid4().hex[:12]}", kind, description.strip(), OWN, OWN)
        row = TaskRow(task, None)
        self.store.add_tasks([row])
        return row

    # Episodes

    def new_episode(
        self, row: TaskRow, policy_id: str, collaborator: str, seed: int | None = None
    ) -> Episode:
        """A new episode in the log; nobody has spoken yet. `seed` is drawn where not given."""
        seed = random.SystemRandom().getrandbits(31) if seed is None else seed
        return self.store.start_episode(
            row.task.id, policy_id, collaborator, seed, self.settings.max_turns
        )

    async def play(
        self,
        episode_id: str,
        *,
        on_text: OnText | None = None,
        on_change: OnChange | None = None,
    ) -> Episode:
        """The episode after every move that needs no person; see `run_episode`."""
        episode = await asyncio.to_thread(self.store.episode, episode_id)
        row = await asyncio.to_thread(self.store.task_row, episode.task_id)
        return await run_episode(
            self.store,
            row,
            episode,
            await asyncio.to_thread(self.policy, episode.policy_id),
            self.collaborator(episode.collaborator, row.task.kind),
            await asyncio.to_thread(self.evaluator, row.task.kind),
            on_text=on_text,
            on_change=on_change,
        )

    # Batches

    async def open_batch(
        self,
        plan: BatchPlan,
        stop: asyncio.Event | None = None,
        *,
        kind: str = "rollout",
        done: Collection[int] = (),
    ) -> tuple[str, AsyncIterator[Outcome]]:
        """A batch's id and its outcomes as they come; it runs while they are asked for.

        `done` are the places of the plan whose episodes are there already.
        Raises: SweetError where it can't begin (no such set, policy or collaborator).
        """
        rollout, todo = await asyncio.to_thread(self._prepared, plan, kind, done)
        return str(rollout.batch_id), rollout.run(todo, concurrency=plan.concurrency, stop=stop)

    async def start_batch(self, plan: BatchPlan) -> str:
        """The id of a batch that now runs in the background of this event loop.

        How far it is: `store.batch(id)`; to stop it, from any process: `store.request_stop(id)`.
        Raises: SweetError where it can't begin.
        """
        batch_id, outcomes = await self.open_batch(plan)

        async def drain() -> None:
            async for _ in outcomes:
                pass

        task = asyncio.create_task(drain())
        self._running.add(task)  # else nothing would hold it
        task.add_done_callback(self._running.discard)
        return batch_id

    def _prepared(
        self, plan: BatchPlan, kind: str, done: Collection[int]
    ) -> tuple[Rollout, list[Assignment]]:
        if plan.n < 1 or plan.concurrency < 1:
            raise ConfigError(
                f"{plan.n} episodes, {plan.concurrency} at once: both must be at least 1."
            )
        rows = self.task_rows(plan.tasks)
        todo = [a for a in assignments(rows, plan.n, plan.seed) if a.index not in done]
        for row in {a.row.task.id: a.row for a in todo}.values():
            self.simulator_for(row, plan.collaborator)  # a task nobody can play is found first
        kinds = {a.row.task.kind for a in todo}
        if len(kinds) != 1:
            raise ConfigError(f"The set {plan.tasks!r} mixes kinds of tasks. Choose one of a kind.")
        policy, evaluator = self.policy(plan.policy_id), self.evaluator(kinds.pop())
        batch_id = self.store.start_batch(kind, asdict(plan), len(todo))
        collaborator = partial(self.simulator_for, name=plan.collaborator)
        rollout = Rollout(
            self.store, policy, collaborator, evaluator, self.settings.max_turns, batch_id
        )
        return rollout, todo


def _check_models(settings: Settings) -> None:
    """Raises: ConfigError where an endpoint is given without its model's name."""
    roles = {"AGENT": settings.agent, "SIMULATOR": settings.simulator, "JUDGE": settings.judge}
    for role, model in roles.items():
        if model.base_url and model.model == EMBEDDED_MODEL:
            raise ConfigError(
                f"SWEET_{role}__BASE_URL is {model.base_url!r}, but no SWEET_{role}__MODEL is set. "
                "Name the model as that server knows it."
            )


def _builtin(settings: Settings) -> list[PolicyVersion]:
    """The versions that need no folder: the embedded model, and the configured one last."""
    versions = [PolicyVersion(EMBEDDED_MODEL, EMBEDDED_MODEL, note="knows only ColBench-Mini")]
    agent = settings.agent
    if agent.model != EMBEDDED_MODEL:
        where = "endpoint" if agent.base_url else "hf"
        note = agent.base_url or "runs on this machine"
        versions.append(PolicyVersion(f"{where}:{agent.model}", agent.model, note=note))
    return versions

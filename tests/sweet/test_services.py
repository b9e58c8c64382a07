"""What pages and commands are made of, with the real log, sandbox and HTTP endpoints."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweet.errors import ConfigError, PolicyError, StoreError, TaskDataError
from sweet.services import MADE_AT_START, PERSON, BatchPlan, Services
from sweet.settings import ModelSettings, Settings, SimulatorSettings
from sweet.store import BatchState
from sweet.tasks import colbench, mini_backend
from sweet.types import (
    ANSWER_MARK,
    EpisodeFilter,
    StopReason,
    TaskKind,
    TaskRow,
)
from tests.contracts import EvaluatorContract
from tests.fakes import task_row
from tests.sweet.engines.server import Handler, Server, hangs, says, serving

MINI = list(mini_backend.generate("train", 2, 99))


def settings_in(folder: Path, **more: Any) -> Settings:
    return Settings(data=folder, **more)


def at(server: Server) -> ModelSettings:
    return ModelSettings(model="small", base_url=server.base_url)


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    with Services(settings_in(tmp_path)) as services:
        yield services


def asks_then_answers(rows: list[TaskRow]):
    """An endpoint's model that asks once, then knows the reference by its description."""
    references = {row.task.description: row.hidden.reference for row in rows if row.hidden}

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        said = [m for m in body["messages"] if m["role"] != "system"]
        final = f"{ANSWER_MARK}\n```python\n{references[said[0]['content']]}\n```"
        says(final if len(said) > 2 else "How is it rounded?")(handler, body)

    return answer


class TestTheEvaluatorOfServices(EvaluatorContract):
    @pytest.fixture(autouse=True)
    def open(self, services: Services) -> None:
        self.services = services

    def make(self):
        return self.services.evaluator(TaskKind.BACKEND)


def test_opening_loads_no_model_library(tmp_path: Path) -> None:
    code = (
        "import sys; from sweet.services import Services; from sweet.settings import Settings\n"
        f"Services(Settings(data={str(tmp_path)!r})).policy('embedded')\n"
        "print([m for m in ('torch', 'transformers', 'gradio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_embedded_policy_is_served_by_default(services: Services) -> None:
    assert services.default_policy() == "embedded"
    assert [v.id for v in services.policies()] == ["embedded"]
    assert services.policy("embedded").id == "embedded"


def test_warming_up_calls_no_server(tmp_path: Path) -> None:
    with (
        serving(says("Hello")) as server,
        Services(settings_in(tmp_path, agent=at(server))) as services,
    ):
        services.warm_up()
        assert server.asked == []


def test_warming_up_leaves_a_missing_model_to_the_first_turn(tmp_path: Path) -> None:
    missing = ModelSettings(model=str(tmp_path / "nothing"))
    with Services(settings_in(tmp_path, agent=missing)) as services:
        services.warm_up()
        assert services.default_policy() == f"hf:{missing.model}"


def test_a_configured_model_is_a_policy_and_the_default(tmp_path: Path) -> None:
    agent = ModelSettings(model="org/big", base_url="http://127.0.0.1:9/v1")
    with Services(settings_in(tmp_path, agent=agent)) as services:
        assert [v.id for v in services.policies()] == ["embedded", "endpoint:org/big"]
        assert services.default_policy() == "endpoint:org/big"
    with Services(settings_in(tmp_path, agent=ModelSettings(model="org/big"))) as services:
        assert services.default_policy() == "hf:org/big"
        services.registry.promote("embedded")
        assert services.default_policy() == "embedded"


def test_an_unknown_policy_is_refused_with_those_there_are(services: Services) -> None:
    with pytest.raises(PolicyError, match="embedded"):
        services.policy("v0042")


@pytest.mark.parametrize("role", ["agent", "simulator"])
def test_an_endpoint_without_its_model_is_refused(tmp_path: Path, role: str) -> None:
    kind = {"agent": ModelSettings, "simulator": SimulatorSettings}[role]
    with pytest.raises(ConfigError, match=f"SWEET_{role.upper()}__MODEL"):
        Services(settings_in(tmp_path, **{role: kind(base_url="http://127.0.0.1:9/v1")}))


def test_who_can_play_the_collaborator(services: Services, tmp_path: Path) -> None:
    own = services.own_task("Sort the names.")
    assert services.collaborators_for(own) == [PERSON]
    assert services.collaborators_for(task_row()) == [PERSON]
    assert services.collaborators_for(MINI[0]) == [PERSON, "scripted"]
    simulator = SimulatorSettings(model="big", base_url="http://127.0.0.1:9/v1")
    with Services(settings_in(tmp_path / "other", simulator=simulator)) as other:
        assert other.collaborators_for(MINI[0]) == [PERSON, "scripted", "llm:big"]
        assert other.collaborators_for(task_row()) == [PERSON, "llm:big"]
        assert other.collaborators_for(own) == [PERSON]
        assert other.simulator_for(MINI[0]).name == "llm:big"
        assert other.simulator_for(MINI[0], "scripted").name == "scripted"


def test_a_collaborator_that_cannot_play_is_refused_with_what_to_do(services: Services) -> None:
    with pytest.raises(ConfigError, match="SWEET_SIMULATOR__MODEL"):
        services.simulator_for(task_row())
    with pytest.raises(ConfigError, match="only a person"):
        services.simulator_for(services.own_task("Sort the names."))
    with pytest.raises(ConfigError, match="scripted"):
        services.simulator_for(MINI[0], "llm:unknown")
    with pytest.raises(ConfigError):
        services.simulator_for(MINI[0], PERSON)
    assert services.collaborator(PERSON, TaskKind.BACKEND) is None


def test_mini_sets_are_made_once(services: Services) -> None:
    services.ensure_mini_tasks()
    sets = {s.name: s.count for s in services.store.task_sets()}
    assert set(sets) == set(MADE_AT_START)
    services.ensure_mini_tasks()
    assert {s.name: s.count for s in services.store.task_sets()} == sets
    services.ensure_mini_tasks(["mini-frontend/test"])
    assert {s.name for s in services.store.task_sets()} == {*MADE_AT_START, "mini-frontend/test"}
    rows = services.task_rows("mini-backend/families")
    assert len(rows) == sets["mini-backend/families"]
    assert all(row.hidden and row.hidden.test_calls for row in rows)


def test_a_file_is_a_task_set(services: Services, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(map(colbench.to_line, MINI)) + "not json\n", encoding="utf-8")
    rows = services.task_rows(f"file:{path}")
    assert [row.hidden for row in rows] == [row.hidden for row in MINI]
    assert services.store.task(rows[0].task.id).description == MINI[0].task.description
    assert len(services.read_file(f"file:{path}").problems) == 1


@pytest.mark.parametrize("name", ["nothing", "mini-backend/nothing", "colbench-backend/test"])
def test_a_task_set_that_is_not_here_is_refused(services: Services, name: str) -> None:
    with pytest.raises(TaskDataError):
        services.task_rows(name)


def test_an_own_task_wants_a_description(services: Services) -> None:
    with pytest.raises(TaskDataError, match="no description"):
        services.own_task("  \n")


def test_a_person_plays_with_an_endpoint_agent_to_a_real_score(tmp_path: Path) -> None:
    with serving(asks_then_answers(MINI)) as server:
        with Services(settings_in(tmp_path, agent=at(server))) as services:
            services.store.add_tasks(MINI)
            episode = services.new_episode(MINI[0], services.default_policy(), PERSON)
            pieces: list[str] = []
            waiting = asyncio.run(services.play(episode.id, on_text=pieces.append))
            assert waiting.turns[0].action.message == "How is it rounded?"
            assert "".join(pieces) == "How is it rounded?"
        with Services(settings_in(tmp_path, agent=at(server))) as services:  # a restart
            services.store.append_reply(episode.id, 0, "Not at all.")
            done = asyncio.run(services.play(episode.id))
    assert done.stop_reason is StopReason.ANSWERED
    assert done.reward is not None and done.reward.value == 1
    assert done.evaluation is not None and len(done.evaluation.tests) == 10
    assert done.turns[0].action.usage is not None


def test_a_batch_runs_in_the_background_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(map(colbench.to_line, MINI)), encoding="utf-8")

    async def play(services: Services) -> str:
        plan = BatchPlan(f"file:{path}", services.default_policy(), n=6, concurrency=3, seed=5)
        batch_id = await services.start_batch(plan)
        while services.store.batch(batch_id).state is BatchState.RUNNING:
            await asyncio.sleep(0.01)
        return batch_id

    with (
        serving(asks_then_answers(MINI)) as server,
        Services(settings_in(tmp_path / "data", agent=at(server))) as services,
    ):
        batch = services.store.batch(asyncio.run(play(services)))
        found = services.store.search(EpisodeFilter(batch_id=batch.id))
        assert (batch.state, batch.finished, batch.succeeded) == (BatchState.DONE, 6, 6)
        assert found.count == 6
        assert {row.collaborator for row in found.rows} == {"scripted"}
        assert json.loads(json.dumps(dict(batch.settings)))["seed"] == 5


def test_a_batch_in_the_background_can_be_stopped(tmp_path: Path) -> None:
    async def play(services: Services) -> str:
        plan = BatchPlan("mini-backend/families", services.default_policy(), n=50, concurrency=2)
        batch_id = await services.start_batch(plan)
        while not services.store.batch(batch_id).started:
            await asyncio.sleep(0.01)
        services.store.request_stop(batch_id)
        while services.store.batch(batch_id).ended_at is None:
            await asyncio.sleep(0.01)
        return batch_id

    with (
        serving(hangs()) as server,
        Services(settings_in(tmp_path, agent=at(server))) as services,
    ):
        batch_id = asyncio.run(play(services))
        assert services.store.batch(batch_id).state is BatchState.STOPPED
        rows = services.store.search(EpisodeFilter(batch_id=batch_id)).rows
        assert 0 < len(rows) <= 2
        assert {row.stop_reason for row in rows} == {StopReason.STOPPED}


@pytest.mark.parametrize(
    "plan",
    [
        BatchPlan("nothing/here", "embedded", 3),
        BatchPlan("mini-backend/families", "v0042", 3),
        BatchPlan("mini-backend/families", "embedded", 3, collaborator="llm:unknown"),
        BatchPlan("mini-backend/families", "embedded", 0),
        BatchPlan("mini-backend/families", "embedded", 3, concurrency=0),
    ],
)
def test_a_batch_that_cannot_begin_says_so_and_leaves_no_trace(
    services: Services, plan: BatchPlan
) -> None:
    with pytest.raises((TaskDataError, PolicyError, ConfigError)):
        asyncio.run(services.start_batch(plan))
    assert services.store.batches() == []


def test_an_unknown_episode_is_a_clear_error(services: Services) -> None:
    with pytest.raises(StoreError, match="no episode"):
        asyncio.run(services.play("nonsense"))

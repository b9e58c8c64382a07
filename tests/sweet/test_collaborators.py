"""Who plays the collaborator of a web page, and batches of such episodes with real parts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evaluators.render.answers import missing_assets
from sweet.drawn.gallery import Gallery
from sweet.errors import ConfigError
from sweet.services import PERSON, BatchPlan, Services
from sweet.settings import ModelSettings, Settings, SimulatorSettings
from sweet.simulator import LLMSimulator, ScriptedDesigner, VisionSimulator
from sweet.tasks import colbench
from sweet.types import Episode, HiddenInfo, StopReason, Task, TaskKind, TaskRow
from tests.fakes import FakeRenderer
from tests.sweet.engines.server import says, serving
from tests.ui.designing import VERSIONS, drawing, page

NOWHERE = "http://127.0.0.1:9/v1"


def design_row(reference: str = VERSIONS[0], task_id: str = "page-1") -> TaskRow:
    task = Task(task_id, TaskKind.FRONTEND, "A page about ducks.", "test", "colbench-frontend")
    return TaskRow(task, HiddenInfo(reference))


def test_a_person_the_script_and_a_model_behind_a_server_can_want_a_page(tmp_path: Path) -> None:
    row = design_row()
    with Services(Settings(data=tmp_path)) as services:
        assert services.collaborators_for(row) == [PERSON, "scripted"]
        assert isinstance(services.simulator_for(row), ScriptedDesigner)
    seeing = SimulatorSettings(model="eyes", base_url=NOWHERE)
    with Services(Settings(data=tmp_path, simulator=seeing)) as services:
        assert services.collaborators_for(row) == [PERSON, "scripted", "llm:eyes"]
        assert isinstance(services.simulator_for(row), VisionSimulator)
        assert isinstance(services.simulator_for(row, "scripted"), ScriptedDesigner)
        assert isinstance(services.collaborator("llm:eyes", TaskKind.BACKEND), LLMSimulator)


def test_a_model_in_this_process_takes_no_pictures(tmp_path: Path) -> None:
    local = SimulatorSettings(model="some/model")
    with Services(Settings(data=tmp_path, simulator=local)) as services:
        assert services.collaborators_for(design_row()) == [PERSON, "scripted"]
        with pytest.raises(ConfigError, match="for frontend tasks"):
            services.collaborator("llm:some/model", TaskKind.FRONTEND)


def test_nobody_but_a_person_can_want_what_is_no_page(tmp_path: Path) -> None:
    with Services(Settings(data=tmp_path)) as services:
        assert services.collaborators_for(design_row("def f(): ...")) == [PERSON]
        with pytest.raises(ConfigError, match="only a person"):
            services.simulator_for(design_row("def f(): ..."))


def played(services: Services, plan: BatchPlan) -> list[Episode]:
    async def run() -> list[Episode]:
        _, outcomes = await services.open_batch(plan)
        return [outcome.episode async for outcome in outcomes if outcome.episode]

    return asyncio.run(run())


def page_file(folder: Path) -> str:
    """A file of two tasks in ColBench's shape; the second is what the agent ends with."""
    rows = [design_row(page("indigo", "Ducks"), "a"), design_row(VERSIONS[2], "b")]
    path = folder / "pages.jsonl"
    path.write_text("".join(map(colbench.to_line, rows)), encoding="utf-8")
    return f"file:{path}"


@pytest.mark.skipif(bool(missing_assets()), reason="make setup fetches the assets")
def test_a_batch_of_pages_is_played_with_the_script_drawn_and_scored(tmp_path: Path) -> None:
    with drawing() as env:
        agent = ModelSettings(model="small", base_url=env["SWEET_AGENT__BASE_URL"])
        with Services(Settings(data=tmp_path, agent=agent)) as services:
            plan = BatchPlan(page_file(tmp_path), "endpoint:small", 2, concurrency=1)
            episodes = played(services, plan)
    assert [episode.stop_reason for episode in episodes] == [StopReason.ANSWERED] * 2
    replies = [turn.reply for episode in episodes for turn in episode.turns[:-1]]
    assert all(reply and "<" not in reply and len(reply) <= 1000 for reply in replies)
    assert any("indigo" in str(reply) or "Ducks" in str(reply) for reply in replies)
    rewards = [episode.reward for episode in episodes]
    assert rewards[0] and rewards[1] and rewards[0].value < rewards[1].value
    assert rewards[1].value == pytest.approx(1.0)


def test_a_batch_of_pages_is_played_with_a_model_that_sees_them(tmp_path: Path) -> None:
    with drawing() as env, serving(says("Make the header pink.")) as eyes:
        settings = Settings(
            data=tmp_path,
            agent=ModelSettings(model="small", base_url=env["SWEET_AGENT__BASE_URL"]),
            simulator=SimulatorSettings(model="eyes", base_url=eyes.base_url),
        )
        with Services(settings) as services:
            services.gallery = Gallery(tmp_path / "pages", FakeRenderer)
            (episode, _) = played(services, BatchPlan(page_file(tmp_path), "endpoint:small", 2))
        assert episode.collaborator == "llm:eyes"
        assert [turn.reply for turn in episode.turns] == ["Make the header pink."] * 2 + [None]
        assert len(eyes.asked) == 4

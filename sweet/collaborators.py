"""Who can play the collaborator of a task: a person, a script, the simulator model."""

from __future__ import annotations

from sweet.drawn.gallery import Gallery
from sweet.errors import ConfigError, TaskDataError
from sweet.parsing import page_in
from sweet.settings import EMBEDDED_MODEL, ModelSettings, Settings
from sweet.simulator import LLMSimulator, ScriptedCollaborator, ScriptedDesigner, VisionSimulator
from sweet.tasks import mini_backend
from sweet.types import Collaborator, Engine, TaskKind, TaskRow

PERSON = "person"
_SIMULATOR = "Configure one with SWEET_SIMULATOR__MODEL and SWEET_SIMULATOR__BASE_URL."


class Collaborators:
    """The part of the services that fills the collaborator's seat."""

    settings: Settings
    gallery: Gallery

    def engine(self, model: ModelSettings) -> Engine:
        """The engine of a model."""
        raise NotImplementedError

    def collaborators_for(self, row: TaskRow) -> list[str]:
        """Who can play this task's collaborator: a person, the script, the simulator model."""
        if row.hidden is None:
            return [PERSON]
        if row.task.kind is TaskKind.FRONTEND:
            simulators = [ScriptedDesigner.name, *self._simulator(sees=True)]
            return [PERSON, *(simulators if page_in(row.hidden.reference).html else ())]
        return [PERSON, *_scripted(row), *self._simulator()]

    def collaborator(self, name: str, kind: TaskKind) -> Collaborator | None:
        """The collaborator of that name for a kind of tasks; None for a person.

        Raises: ConfigError.
        """
        if name == PERSON:
            return None
        sees = kind is TaskKind.FRONTEND
        if name == ScriptedCollaborator.name:
            return ScriptedDesigner(self.gallery) if sees else ScriptedCollaborator()
        if name not in self._simulator(sees):
            known = ", ".join([PERSON, ScriptedCollaborator.name, *self._simulator(sees)])
            raise ConfigError(
                f"There is no collaborator {name!r} for {kind.value} tasks. There are: {known}. "
                f"{_SIMULATOR}"
            )
        model = self.settings.simulator
        engine = self.engine(model)
        if sees:
            return VisionSimulator(model.model, engine, model.sampling, self.gallery)
        return LLMSimulator(model.model, engine, model.sampling)

    def simulator_for(self, row: TaskRow, name: str = "") -> Collaborator:
        """The collaborator `name` for this task, by default the best that is no person.

        Raises: ConfigError where nobody but a person can play it.
        """
        able = self.collaborators_for(row)[1:]
        collaborator = self.collaborator(name or able[-1], row.task.kind) if able else None
        if collaborator is None or collaborator.name not in able:
            raise ConfigError(
                f"{name or 'No simulator'} can't play the collaborator of task {row.task.id!r}. "
                f"Able: {', '.join(able) or 'only a person'}. The script plays ColBench-Mini tasks "
                "and web pages; a simulator model plays every task that has a reference, web pages "
                f"where it sees pictures and is behind a server. {_SIMULATOR}"
            )
        return collaborator

    def _simulator(self, sees: bool = False) -> list[str]:
        """The simulator model, where one is configured; `sees`: pictures go to servers alone."""
        model = self.settings.simulator
        able = model.model != EMBEDDED_MODEL and (bool(model.base_url) or not sees)
        return [f"llm:{model.model}"] if able else []


def _scripted(row: TaskRow) -> list[str]:
    """The script's name where it can play the function: its reference is ColBench-Mini's."""
    assert row.hidden is not None
    try:
        mini_backend.parse_reference(row.hidden.reference)
    except TaskDataError:
        return []
    return [ScriptedCollaborator.name]

"""The agent's role on top of an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from sweet.errors import PolicyError, boundary
from sweet.parsing import parse_action
from sweet.prompts import agent_backend, agent_frontend
from sweet.seeds import derived_seed
from sweet.types import Action, Completion, Engine, Message, Observation, OnText, Sampling, TaskKind

Style = Literal["instructed", "plain"]
"""How an agent is prompted: with instructions, or with the bare dialogue it was trained on."""

_PROMPTS: dict[tuple[TaskKind, Style], Callable[[Observation], tuple[Message, ...]]] = {
    (TaskKind.BACKEND, "instructed"): agent_backend.instructed,
    (TaskKind.BACKEND, "plain"): agent_backend.plain,
    (TaskKind.FRONTEND, "instructed"): agent_frontend.instructed,
    (TaskKind.FRONTEND, "plain"): agent_frontend.plain,
}


class EnginePolicy:
    """A model version in the agent's seat: prompts the engine and parses what it says."""

    def __init__(
        self,
        id: str,
        engine: Engine | Mapping[TaskKind, Engine],
        sampling: Sampling,
        style: Style,
        adapter: str | None = None,
    ) -> None:
        """`engine` may be one for each kind of tasks that the version plays."""
        self.id = id
        self._engines = engine if isinstance(engine, Mapping) else dict.fromkeys(TaskKind, engine)
        self._sampling = sampling
        self.style: Style = style
        self._adapter = adapter

    async def act(
        self, observation: Observation, *, seed: int, on_text: OnText | None = None
    ) -> Action:
        """The agent's next action; the turn's own seed is derived from the episode's `seed`.

        Raises: PolicyError, also where the dialogue no longer fits into the model's context.
        """
        drawn_from = derived_seed(seed, len(observation.exchanges))
        completion = await self.draw(observation, seed=drawn_from, on_text=on_text)
        return parse_action(completion.text, completion.usage, completion.duration_ms)

    async def draw(
        self,
        observation: Observation,
        *,
        seed: int,
        temperature: float | None = None,
        on_text: OnText | None = None,
    ) -> Completion:
        """What the model says next, whatever it is, drawn from `seed` itself. Raises: PolicyError.

        `temperature` takes the place of the policy's own.
        """
        engine = self._engines.get(observation.kind)
        if engine is None:
            raise PolicyError(
                f"The policy {self.id!r} was not made for {observation.kind.value} tasks. Choose "
                "another version."
            )
        messages = self.prompt(observation)
        warmth = self._sampling.temperature if temperature is None else temperature
        sampling = replace(self._sampling, seed=seed, temperature=warmth)
        with boundary(PolicyError, f"The policy {self.id!r} could not answer"):
            return await engine.complete(messages, sampling, adapter=self._adapter, on_text=on_text)

    def prompt(self, observation: Observation) -> tuple[Message, ...]:
        """The messages the engine gets for `observation`."""
        return _PROMPTS[observation.kind, self.style](observation)

"""Hand-written stand-ins for what the tests can't have: models, and parts that fail on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from sweet.errors import EvaluatorError, PolicyError
from sweet.types import (
    Action,
    Box,
    Completion,
    Episode,
    Evaluation,
    HiddenInfo,
    Message,
    Observation,
    OnText,
    Rendering,
    Reward,
    Sampling,
    Task,
    TaskKind,
    TaskRow,
    Usage,
    Verdict,
)

Say = Callable[[Sequence[Message], Sampling], str]


class FakeEngine:
    """Says what it is told to, one text a call or a function of the prompt; remembers each call."""

    def __init__(self, says: Iterable[str | Exception] | Say) -> None:
        self._says = says if callable(says) else iter(says)
        self.calls: list[tuple[tuple[Message, ...], Sampling, str | None]] = []

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        adapter: str | None = None,
        on_text: OnText | None = None,
    ) -> Completion:
        self.calls.append((tuple(messages), sampling, adapter))
        await asyncio.sleep(0)
        said = self._says(messages, sampling) if callable(self._says) else next(self._says)
        if isinstance(said, Exception):
            raise said
        if on_text:
            on_text(said)
        return Completion(said, Usage(len(messages), len(said.split())), duration_ms=1.0)

    @property
    def prompts(self) -> list[str]:
        """The text of every prompt so far."""
        return ["\n".join(m.content for m in messages) for messages, _, _ in self.calls]


class HangingEngine:
    """Never answers; says when it was asked and when it was cancelled."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.cancelled = False

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        adapter: str | None = None,
        on_text: OnText | None = None,
    ) -> Completion:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        raise PolicyError("unreachable")


class FakeCollaborator:
    """Replies with the texts it was given, in their order, or fails with the errors among them."""

    def __init__(self, says: Iterable[str | Exception] = (), name: str = "fake") -> None:
        self.name = name
        self._says = iter(says)
        self.asked: list[tuple[Observation, Action, int]] = []

    async def reply(
        self, observation: Observation, action: Action, hidden: HiddenInfo, *, seed: int
    ) -> str:
        self.asked.append((observation, action, seed))
        said = next(self._says, "Five.")
        if isinstance(said, Exception):
            raise said
        return said


class FakeEvaluator:
    """Passes the answers that contain `right`; fails as often as it is told to before that."""

    def __init__(self, right: str = "def", failures: int = 0) -> None:
        self._right = right
        self._failures = failures
        self.calls = 0

    async def __call__(self, task: Task, hidden: HiddenInfo, episode: Episode) -> Evaluation:
        self.calls += 1
        if self.calls <= self._failures:
            raise EvaluatorError("the sandbox died")
        passed = float(self._right in (episode.artifact or ""))
        reward = Reward(passed, {"tests_passed": passed}, "fake")
        return Evaluation(reward, Verdict.PASS if passed else Verdict.WRONG)


def task_row(
    task_id: str = "task-1",
    reference: str = "def f(x):\n    return x + 5",
    description: str = "Add something. The signature is: def f(x)",
    source: str = "test-set",
) -> TaskRow:
    """A backend task with hidden information."""
    task = Task(task_id, TaskKind.BACKEND, description, "test", source)
    return TaskRow(task, HiddenInfo(reference, ("f(1)", "f(2)")))


def hidden_of(row: TaskRow) -> HiddenInfo:
    """The hidden information of a row that has some."""
    assert row.hidden is not None
    return row.hidden


class FakeRenderer:
    """Draws a page as a picture that says its text, or fails as it is told; remembers each call."""

    def __init__(self, failure: Exception | None = None) -> None:
        self._failure = failure
        self.asked: list[tuple[str, int]] = []

    def render(self, html: str, *, width: int = 1280) -> Rendering:
        self.asked.append((html, width))
        if self._failure:
            raise self._failure
        box = Box("p", html, 0, 0, 100, 20, "#000000", "#ffffff", 16, False, "left")
        return Rendering(b"\x89PNG" + html.encode(), width, 40, (box,))

"""Small records for the store's tests."""

from __future__ import annotations

from sweet.store import EpisodeStore
from sweet.types import (
    Action,
    Episode,
    Evaluation,
    HiddenInfo,
    Reward,
    StopReason,
    Task,
    TaskKind,
    TaskRow,
    TestResult,
    Usage,
    Verdict,
)

HIDDEN = HiddenInfo("def fee(kg):\n    return 5 * kg", ("fee(1)", "fee(0)"))


def task_row(number: int = 1, split: str = "test", source: str = "mini-backend") -> TaskRow:
    text = f"Write fee(kg): the shipping fee, variant {number}."
    return TaskRow(Task(f"task-{number}", TaskKind.BACKEND, text, split, source), HIDDEN)


TASK_ROW = task_row()
TASK = TASK_ROW.task


def asks(text: str = "How much is a kilogram?") -> Action:
    return Action(text, text, is_final=False, usage=Usage(10, 5), duration_ms=1.5)


def answers(code: str = "def fee(kg): return 5 * kg") -> Action:
    return Action(f"I WANT TO ANSWER:\n{code}", "", True, code)


def started(store: EpisodeStore, collaborator: str = "person", **more) -> Episode:
    return store.start_episode(TASK.id, "embedded", collaborator, 7, **more)


def evaluation(value: float = 1.0, passed: float = 1.0) -> Evaluation:
    tests = (
        TestResult("fee(1)", "5", "5", Verdict.PASS, 0.2),
        TestResult("fee(0)", "0", None, Verdict.TIMEOUT, 2000.0, "2 s"),
    )
    verdict = Verdict.PASS if value == 1 else Verdict.WRONG
    reward = Reward(value, {"tests_passed": passed}, "backend-fixed")
    return Evaluation(reward, verdict, tests, "namespaces")


def talked(store: EpisodeStore, *replies: str, collaborator: str = "person", **more) -> Episode:
    """An episode in which the agent has asked and been answered as often as there are replies."""
    episode = started(store, collaborator, **more)
    for index, reply in enumerate(replies):
        store.append_action(episode.id, index, asks(f"Question {index}?"))
        store.append_reply(episode.id, index, reply)
    return store.episode(episode.id)


def finished(store: EpisodeStore, *replies: str, value: float = 1.0, **more) -> Episode:
    """An episode that was answered and scored."""
    episode = talked(store, *replies, **more)
    action = answers()
    store.append_action(episode.id, len(replies), action)
    store.finish(episode.id, StopReason.ANSWERED, action.artifact)
    return store.add_evaluation(episode.id, evaluation(value, passed=value))

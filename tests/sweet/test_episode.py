"""One episode, with the real log: whose move it is, every ending, going on from any point."""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweet.episode import (
    evaluate_episode,
    next_speaker,
    observation_of,
    retry_episode,
    run_episode,
    stop_episode,
)
from sweet.errors import ConfigError, PolicyError, SimulatorError, StoreError
from sweet.policy import EnginePolicy, Style
from sweet.simulator import LLMSimulator
from sweet.store import EpisodeStore
from sweet.types import (
    ANSWER_MARK,
    Action,
    Episode,
    HiddenInfo,
    Observation,
    Policy,
    Sampling,
    Speaker,
    StopReason,
    Task,
    TaskKind,
    TaskRow,
    Turn,
    Verdict,
)
from tests.fakes import FakeCollaborator, FakeEngine, FakeEvaluator, HangingEngine, task_row

ANSWER = f"{ANSWER_MARK}\ndef f(x): return x + 5"
ROW = task_row()
PAGE_ROW = replace(ROW, task=replace(ROW.task, id="page-1", kind=TaskKind.FRONTEND))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EpisodeStore]:
    with EpisodeStore.open(tmp_path / "sweet.db") as store:
        store.add_tasks([ROW, PAGE_ROW])
        yield store


def policy(*says: str | Exception) -> EnginePolicy:
    return EnginePolicy("p", FakeEngine(says), Sampling(), "plain")


def draws(store: EpisodeStore, *says: str) -> Episode:
    """An episode about a page, in which the agent says so much and always hears a wish."""
    episode = store.start_episode(PAGE_ROW.task.id, "p", "fake", seed=7)
    wishes = FakeCollaborator(["Larger."] * 20)
    return asyncio.run(run_episode(store, PAGE_ROW, episode, policy(*says), wishes))


def started(store: EpisodeStore, collaborator: str = "fake", max_turns: int = 10) -> Episode:
    return store.start_episode(ROW.task.id, "p", collaborator, seed=7, max_turns=max_turns)


def run(store: EpisodeStore, episode: Episode, *args, **kwargs) -> Episode:
    return asyncio.run(run_episode(store, ROW, episode, *args, **kwargs))


def episode_with(*turns: Turn, max_turns: int = 10, reason: StopReason | None = None) -> Episode:
    return Episode("e", "t", "p", "fake", 0, max_turns, turns, stop_reason=reason)


ASKED = Action("Fee?", "Fee?", is_final=False)
ANSWERED = Action(ANSWER, "", is_final=True, artifact="def f(x): return x + 5")


@pytest.mark.parametrize(
    ("episode", "speaker"),
    [
        (episode_with(), Speaker.AGENT),
        (episode_with(Turn(0, ASKED)), Speaker.COLLABORATOR),
        (episode_with(Turn(0, ASKED, "Five.")), Speaker.AGENT),
        (episode_with(Turn(0, ANSWERED)), Speaker.NOBODY),
        (episode_with(Turn(0, ASKED), max_turns=1), Speaker.NOBODY),
        (episode_with(Turn(0, ASKED, "Five."), max_turns=1), Speaker.NOBODY),
        (episode_with(reason=StopReason.STOPPED), Speaker.NOBODY),
        (episode_with(Turn(0, ASKED), reason=StopReason.FAILED), Speaker.NOBODY),
    ],
)
def test_whose_move_it_is(episode: Episode, speaker: Speaker) -> None:
    assert next_speaker(episode) is speaker


def test_the_observation_is_what_was_said_before() -> None:
    episode = episode_with(Turn(0, ASKED, "Five."), Turn(1, ASKED))
    observation = observation_of(ROW.task, episode)
    assert [(e.agent, e.collaborator) for e in observation.exchanges] == [("Fee?", "Five.")]
    assert observation.turns_left == 9


def test_an_episode_runs_to_its_answer_and_its_reward(store: EpisodeStore) -> None:
    collaborator = FakeCollaborator(["Five.", "Yes."])
    done = run(
        store,
        started(store),
        policy("Fee?", "Always?", ANSWER),
        collaborator,
        FakeEvaluator(),
    )
    assert done.stop_reason is StopReason.ANSWERED
    assert done.artifact == "def f(x): return x + 5"
    assert done.reward is not None and done.reward.value == 1
    assert [t.reply for t in done.turns] == ["Five.", "Yes.", None]
    assert store.episode(done.id) == done


def test_final_turn_gets_no_simulator_reply(store: EpisodeStore) -> None:
    collaborator = FakeCollaborator()
    run(store, started(store), policy(ANSWER), collaborator)
    assert collaborator.asked == []


def test_ten_turns_at_most_and_the_last_gets_no_reply(store: EpisodeStore) -> None:
    collaborator = FakeCollaborator(["Five."] * 20)
    done = run(store, started(store), policy(*["Fee?"] * 20), collaborator, FakeEvaluator())
    assert done.stop_reason is StopReason.TURN_LIMIT
    assert len(done.turns) == 10
    assert len(collaborator.asked) == 9
    assert done.artifact is None
    assert done.reward is not None and done.reward.value == 0


def test_a_pages_last_version_counts_when_its_turns_are_used_up(store: EpisodeStore) -> None:
    drawn = [f"Draft {i}.\n<html><body>{i}</body></html>" for i in range(1, 10)]
    done = draws(store, *drawn, "I can't go on. <html>")
    assert (done.stop_reason, done.artifact) == (StopReason.TURN_LIMIT, drawn[-1])


def test_a_page_that_was_never_drawn_is_none(store: EpisodeStore) -> None:
    done = draws(store, *["Soon."] * 20)
    assert (done.stop_reason, done.artifact) == (StopReason.TURN_LIMIT, None)


def test_the_answer_on_the_last_turn_counts(store: EpisodeStore) -> None:
    done = run(store, started(store, max_turns=2), policy("Fee?", ANSWER), FakeCollaborator())
    assert done.stop_reason is StopReason.ANSWERED


def test_a_person_is_waited_for_and_taken_up_again(store: EpisodeStore) -> None:
    agent = policy("Fee?", ANSWER)
    waiting = run(store, started(store, "person"), agent, None, FakeEvaluator())
    assert (waiting.stop_reason, next_speaker(waiting)) == (None, Speaker.COLLABORATOR)
    again = run(store, waiting, agent, None, FakeEvaluator())
    assert again == waiting  # still their move: nothing is said twice
    store.append_reply(waiting.id, 0, "Five.")
    done = run(store, waiting, agent, None, FakeEvaluator())
    assert done.reward is not None and done.reward.value == 1
    assert done.turns[0].reply == "Five."


def test_an_old_record_goes_on_from_the_log(store: EpisodeStore) -> None:
    old = started(store)
    run(store, old, policy("Fee?", PolicyError("cut")), FakeCollaborator())
    store.reopen(old.id)
    done = run(store, old, policy(ANSWER), FakeCollaborator())
    assert [t.action.message for t in done.turns] == ["Fee?", ""]


@pytest.mark.parametrize("moves", range(4))
def test_it_goes_on_after_a_crash_between_any_two_writes(store: EpisodeStore, moves: int) -> None:
    episode = started(store)
    writes = [
        lambda: store.append_action(episode.id, 0, ASKED),
        lambda: store.append_reply(episode.id, 0, "Five."),
        lambda: store.append_action(episode.id, 1, ANSWERED),
        lambda: store.finish(episode.id, StopReason.ANSWERED, ANSWERED.artifact),
    ]
    for write in writes[: moves + 1]:
        write()
    left = {0: [ANSWER], 1: [ANSWER]}.get(moves, [])
    collaborator = FakeCollaborator(["Five."])
    done = run(store, episode, policy(*left), collaborator, FakeEvaluator())
    assert done.stop_reason is StopReason.ANSWERED
    assert done.reward is not None and done.reward.value == 1
    assert [t.reply for t in done.turns] == ["Five.", None]


@pytest.mark.parametrize("error", [PolicyError("no such model"), OSError("no such model")])
def test_a_failed_model_fails_the_episode_with_its_reason(
    store: EpisodeStore, error: Exception
) -> None:
    done = run(store, started(store), policy("Fee?", error), FakeCollaborator(), FakeEvaluator())
    assert done.stop_reason is StopReason.FAILED
    assert "no such model" in (done.error or "")
    assert done.reward is None
    assert len(done.turns) == 1


@pytest.mark.parametrize("said", [SimulatorError("no GPU"), ValueError("no GPU"), "  "])
def test_a_failed_simulator_fails_the_episode_and_says_nothing(
    store: EpisodeStore, said: str | Exception
) -> None:
    done = run(store, started(store), policy("Fee?"), FakeCollaborator([said]))
    assert done.stop_reason is StopReason.FAILED
    assert done.turns[0].reply is None
    assert done.error


def test_a_failed_turn_can_be_retried(store: EpisodeStore) -> None:
    agent = policy("Fee?", ANSWER)
    failed = run(store, started(store), agent, FakeCollaborator([SimulatorError("no GPU")]))
    opened = asyncio.run(retry_episode(store, failed))
    assert opened.stop_reason is None
    assert asyncio.run(retry_episode(store, opened)) == opened
    done = run(store, opened, agent, FakeCollaborator(["Five."]), FakeEvaluator())
    assert done.stop_reason is StopReason.ANSWERED
    assert done.error is None
    assert len(store.failures(done.id)) == 1


def test_a_retry_draws_anew_and_a_resumed_episode_does_not(store: EpisodeStore) -> None:
    engine = FakeEngine(["", "Fee?", ANSWER])  # a model that says nothing for this one seed
    agent = EnginePolicy("p", engine, Sampling(), "plain")
    failed = run(store, started(store), agent)
    assert failed.stop_reason is StopReason.FAILED
    run(store, asyncio.run(retry_episode(store, failed)), agent)
    (_, first, _), (_, second, _) = engine.calls
    assert first.seed != second.seed
    resumed = FakeEngine([ANSWER])
    run(store, started(store), EnginePolicy("p", resumed, Sampling(), "plain"))
    assert resumed.calls[0][1].seed == first.seed


def test_failed_scoring_is_no_reward_with_its_reason_and_can_be_done_again(
    store: EpisodeStore,
) -> None:
    evaluator = FakeEvaluator(failures=1)
    done = run(store, started(store), policy(ANSWER), FakeCollaborator(), evaluator)
    assert done.stop_reason is StopReason.ANSWERED
    assert done.evaluation is not None and done.evaluation.verdict is Verdict.INFRA
    assert (done.reward, done.evaluation.error) == (None, "the sandbox died")
    scored = asyncio.run(evaluate_episode(store, ROW, done, evaluator))
    assert scored.reward is not None and scored.reward.value == 1


def test_a_scored_episode_is_not_scored_again(store: EpisodeStore) -> None:
    evaluator = FakeEvaluator()
    done = run(store, started(store), policy(ANSWER), FakeCollaborator(), evaluator)
    run(store, done, policy(), FakeCollaborator(), evaluator)
    assert evaluator.calls == 1


def test_a_persons_own_task_ends_without_a_score(store: EpisodeStore) -> None:
    own = TaskRow(Task("own-1", TaskKind.BACKEND, "Sort names.", "own", "own"), None)
    store.add_tasks([own])
    episode = store.start_episode("own-1", "p", "person", 1)
    evaluator = FakeEvaluator()
    done = asyncio.run(run_episode(store, own, episode, policy(ANSWER), None, evaluator))
    assert (done.stop_reason, done.evaluation, evaluator.calls) == (StopReason.ANSWERED, None, 0)


def test_a_simulator_needs_a_reference(store: EpisodeStore) -> None:
    own = TaskRow(Task("own-1", TaskKind.BACKEND, "Sort names.", "own", "own"), None)
    with pytest.raises(ConfigError, match="own-1"):
        asyncio.run(run_episode(store, own, started(store), policy(), FakeCollaborator()))


def test_being_cancelled_leaves_the_episode_in_progress(store: EpisodeStore) -> None:
    episode = started(store)

    async def cancel() -> HangingEngine:
        engine = HangingEngine()
        agent = EnginePolicy("p", engine, Sampling(), "plain")
        moves = asyncio.create_task(run_episode(store, ROW, episode, agent))
        await engine.asked.wait()
        moves.cancel()
        with pytest.raises(asyncio.CancelledError):
            await moves
        return engine

    assert asyncio.run(cancel()).cancelled
    assert store.episode(episode.id).stop_reason is None
    assert run(store, episode, policy(ANSWER)).stop_reason is StopReason.ANSWERED


def test_stopping_ends_it_and_keeps_what_was_said(store: EpisodeStore) -> None:
    waiting = run(store, started(store), policy("Fee?"), None)
    stopped = asyncio.run(stop_episode(store, waiting.id))
    assert (stopped.stop_reason, stopped.reward) == (StopReason.STOPPED, None)
    assert stopped.turns == waiting.turns
    assert asyncio.run(stop_episode(store, waiting.id)) == stopped


def test_an_episode_that_ends_as_it_is_stopped_stays_as_it_ended(
    store: EpisodeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = run(store, started(store), policy("Fee?"), None)
    finish = store.finish

    def ended_just_before(episode_id: str, reason: StopReason) -> None:
        finish(episode_id, StopReason.TURN_LIMIT)
        finish(episode_id, reason)

    monkeypatch.setattr(store, "finish", ended_just_before)
    assert asyncio.run(stop_episode(store, waiting.id)).stop_reason is StopReason.TURN_LIMIT


def test_a_stop_that_the_log_refuses_is_told(
    store: EpisodeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = run(store, started(store), policy("Fee?"), None)

    def full_disk(*_: object) -> None:
        raise StoreError("no space left")

    monkeypatch.setattr(store, "finish", full_disk)
    with pytest.raises(StoreError, match="no space left"):
        asyncio.run(stop_episode(store, waiting.id))


def test_an_episode_stopped_while_the_agent_speaks_stays_stopped(store: EpisodeStore) -> None:
    episode = started(store)

    def stop_then_speak(*_) -> str:
        store.finish(episode.id, StopReason.STOPPED)
        return ANSWER

    agent = EnginePolicy("p", FakeEngine(stop_then_speak), Sampling(), "plain")
    done = run(store, episode, agent, None, FakeEvaluator())
    assert (done.stop_reason, done.turns) == (StopReason.STOPPED, ())


def test_a_log_that_fails_is_not_taken_for_a_model_that_fails(store: EpisodeStore) -> None:
    with pytest.raises(StoreError):
        run(store, episode_with(), policy(ANSWER))


def test_each_logged_move_is_reported_and_text_streams(store: EpisodeStore) -> None:
    seen: list[tuple[int, str | None]] = []
    pieces: list[str] = []
    run(
        store,
        started(store),
        policy("Fee?", ANSWER),
        FakeCollaborator(["Five."]),
        FakeEvaluator(),
        on_text=pieces.append,
        on_change=lambda e: seen.append((len(e.turns), e.stop_reason)),
    )
    ended = StopReason.ANSWERED
    assert seen == [(1, None), (1, None), (2, None), (2, ended), (2, ended)]
    assert pieces == ["Fee?", ANSWER]


def test_a_policy_can_take_no_hidden_information() -> None:
    hints = typing.get_type_hints(Policy.act)
    assert HiddenInfo not in hints.values()
    assert set(inspect.signature(Policy.act).parameters) == {
        "self",
        "observation",
        "seed",
        "on_text",
    }
    fields = typing.get_type_hints(Observation)
    assert not any("Hidden" in str(hint) or "TaskRow" in str(hint) for hint in fields.values())


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EpisodeStore]:
    with EpisodeStore.open(tmp_path_factory.mktemp("log") / "sweet.db") as store:
        yield store


MARKER = st.text("abcdefghjkmnpqrstuvwxyz0123456789", min_size=12, max_size=20)


@settings(max_examples=40, deadline=None)
@given(
    secrets=st.lists(MARKER, min_size=2, max_size=6, unique=True),
    description=st.text(min_size=1, max_size=200),
    questions=st.integers(0, 11),
    style=st.sampled_from(["plain", "instructed"]),
    leaky=st.booleans(),
)
def test_the_agent_never_sees_hidden_information(
    shared_store: EpisodeStore,
    secrets: list[str],
    description: str,
    questions: int,
    style: Style,
    leaky: bool,
) -> None:
    """Whole episodes with a simulator that knows, and may try to tell, what the agent must not."""
    *names, call = (f"zz{secret}" for secret in secrets)
    reference = f"def {names[0]}(x):\n" + "\n".join(f"    {n} = x" for n in names)
    task_id = f"task-{shared_store.count_tasks()}"
    task = Task(task_id, TaskKind.BACKEND, description, "test", "test-set")
    row = TaskRow(task, HiddenInfo(reference, (f"{call}(1)",)))
    shared_store.add_tasks([row])
    agent = FakeEngine(lambda m, _: ANSWER if len(m) > 2 * questions else "And then?")
    knowing = FakeEngine(lambda *_: f"Five. ```{reference}```" if leaky else "Five.")
    episode = shared_store.start_episode(task.id, "p", "llm:k", seed=1)
    done = asyncio.run(
        run_episode(
            shared_store,
            row,
            episode,
            EnginePolicy("p", agent, Sampling(), style),
            LLMSimulator("k", knowing, Sampling()),
            FakeEvaluator(),
        )
    )
    assert done.stop_reason in (StopReason.ANSWERED, StopReason.TURN_LIMIT)
    assert agent.prompts
    for prompt in agent.prompts:
        assert not any(secret in prompt for secret in (*names, call))
    assert all(names[0] in prompt for prompt in knowing.prompts)

"""The embedded model's figures, as its card gives them: played, scored and counted, never guessed.

The parts are the real ones: the engine, the scripted collaborator, the sandbox.
"""

from __future__ import annotations

import asyncio
import random
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evaluators.backend import BackendEvaluator
from evaluators.figures import wilson_interval
from evaluators.sandbox import Sandbox
from sweet.engines import EMBEDDED_DIR
from sweet.engines.local import LocalEngine
from sweet.parsing import parse_action
from sweet.policy import EnginePolicy
from sweet.rollout import Rollout, assignments
from sweet.settings import ModelSettings
from sweet.simulator import ScriptedCollaborator
from sweet.store import EpisodeStore
from sweet.tasks.mini_backend import Spec, generate, parse_reference
from sweet.tasks.mini_families import identifier
from sweet.tasks.mini_talk import asked, in_words, say, without_notes
from sweet.types import (
    Collaborator,
    Engine,
    Episode,
    Evaluator,
    HiddenInfo,
    Message,
    Sampling,
    StopReason,
    TaskRow,
)
from trainer.pretraining.demonstrations import CAREFUL, dialogue

SEED = 41  # other tasks than the ones in the studio's own sets
CONCURRENCY = 32
DRAWS = 20  # until one of them is an answer

# Ways to put an answer that no training dialogue uses.
UNHEARD_NUMBERS = (
    "we go with {v}", "{v} is right", "it would be {v} then", "I think it should be {v}",
    "yes, {v}", "the {name} should be {v}", "our {name} should be {v}, please", "so {v}, ok",
    "{v} of course, always", "well, I want {v}",
)  # fmt: skip
UNHEARD_UNITS = ("{v}", "{v} dollars", "${v}", "{w}", "{w} dollars", "{v} euros")
UNHEARD_AT_LIMIT = {
    ">=": ("yes it does, inclusive", "yes, already exactly at it", "inclusive please", "yes, sure"),
    ">": ("no it does not, only above", "no, exclusive please", "no, not yet",
          "nope, only above it"),
}  # fmt: skip


def measure_embedded(model: Path | None = None, n: int = 500) -> dict:
    """Every figure of the model card, each with its n; takes minutes."""
    return asyncio.run(_measure(model or EMBEDDED_DIR, n))


async def _measure(model: Path, n: int) -> dict:
    engine = LocalEngine(model)
    policy = EnginePolicy("embedded", engine, ModelSettings().sampling, "plain")
    with Sandbox.start() as sandbox:
        evaluator = BackendEvaluator(sandbox)
        sets = {split: list(generate(split, n, SEED)) for split in ("test", "families")}
        figures: dict = {}
        for split, rows in sets.items():
            episodes = await play(policy, evaluator, rows, SEED)
            figures[split] = success(episodes)
            figures[f"{split}, ran out of turns"] = share(
                [e.stop_reason is StopReason.TURN_LIMIT for e in episodes]
            )
            whole = [e for e, row in zip(episodes, rows, strict=True) if _answered_all_told(e, row)]
            figures[f"{split}, own answers after every detail was asked"] = success(whole)
            answers = await all_told_answers(engine, rows)
            figures[f"{split}, every detail asked by a careful agent"] = share(
                [is_right(evaluator, row, a) for row, a in zip(rows, answers, strict=True)]
            )
    figures["plain answers in words never trained on"] = share(await understood(engine, n))
    engine.close()
    return figures


async def play(
    policy: EnginePolicy,
    evaluator: Evaluator | None,
    rows: Sequence[TaskRow],
    seed: int,
    collaborator: Collaborator | None = None,
) -> list[Episode]:
    """An episode a task, scored if by anything; the scripted collaborator plays by default."""
    person = collaborator or ScriptedCollaborator()
    with tempfile.TemporaryDirectory() as folder:
        store = EpisodeStore.open(Path(folder) / "measure.db")
        store.add_tasks(rows)
        rollout = Rollout(store, policy, lambda _: person, evaluator)
        todo = assignments(rows, len(rows), seed)
        done = [o async for o in rollout.run(todo, concurrency=CONCURRENCY)]
        store.close()
    return [o.episode for o in sorted(done, key=lambda o: o.assignment.index) if o.episode]


def success(episodes: Sequence[Episode]) -> dict:
    """Share of episodes with all tests passed, over those that could be scored."""
    rewards = [e.reward.value for e in episodes if e.reward is not None]
    turns = sum(len(e.turns) for e in episodes) / max(1, len(episodes))
    figures = share([r == 1 for r in rewards])
    return {**figures, "mean_turns": round(turns, 2), "unscored": len(episodes) - len(rewards)}


def is_right(evaluator: BackendEvaluator, row: TaskRow, answer: str) -> bool:
    """Whether the answer passes all of the task's tests."""
    reward = evaluator.score(_hidden(row), answer).reward
    return reward is not None and reward.value == 1


def _hidden(row: TaskRow) -> HiddenInfo:
    """The row's hidden information; a Mini task always has it."""
    assert row.hidden is not None
    return row.hidden


def share(right: Sequence[bool]) -> dict:
    """How many, their share of those that are right, and its 95 % interval."""
    if not right:
        return {"n": 0, "share": None, "ci95": None}
    low, high = wilson_interval(sum(right), len(right))
    share = sum(right) / len(right)
    return {"n": len(right), "share": round(share, 4), "ci95": [round(low, 4), round(high, 4)]}


def _answered_all_told(episode: Episode, row: TaskRow) -> bool:
    """Whether it answered, having asked for every detail that its task has and leaves out."""
    if episode.stop_reason is not StopReason.ANSWERED:
        return False
    spec = parse_reference(_hidden(row).reference)
    wanted = {"logic", *(n for _, n in spec.family.names)}
    wanted -= {n for n, v in spec.constants.items() if f"The {n} is {v}." in row.task.description}
    wanted |= {"at limit"} if spec.limit_name else set()
    wanted |= {"bound"} if spec.bound else set()
    wanted |= {"rounding"} if spec.rounding != "none" else set()
    questions = [without_notes(t.action.message) for t in episode.turns if t.reply is not None]
    return wanted <= {key for q in questions for key in asked(q, spec)}


async def all_told_answers(engine: Engine, rows: Sequence[TaskRow]) -> list[str]:
    """The model's answers after dialogues in which a careful agent asked for everything.

    Where it would go on asking it is drawn again: this is about what it answers, not when.
    """
    rng = random.Random(SEED)

    async def answer(messages: list[Message]) -> str:
        for seed in range(SEED, SEED + DRAWS):
            done = await engine.complete(messages, replace(ModelSettings().sampling, seed=seed))
            if found := parse_action(done.text).artifact:
                return found
        return ""

    return await asyncio.gather(*(answer(_all_told(row, rng)[:-1]) for row in rows))


def _all_told(row: TaskRow, rng: random.Random) -> list[Message]:
    """A careful dialogue in which the person knows every detail and takes none back."""
    spec = parse_reference(_hidden(row).reference)
    while True:
        messages = dialogue(spec, CAREFUL, rng)
        if not re.search("Then (I take|no )|Sorry", "".join(m.content for m in messages)):
            return messages


async def understood(engine: Engine, n: int) -> list[bool]:
    """Whether the model's note repeats each of `n` answers that are put in unheard words."""
    rng = random.Random(SEED)
    rows = list(generate("test", n, SEED + 1))

    async def note(row: TaskRow) -> bool:
        spec = parse_reference(_hidden(row).reference)
        question, reply, wanted = _unheard(spec, rng)
        logic = say("logic", spec, rng)
        messages = [
            Message("user", row.task.description),
            Message("assistant", f"How is the {spec.family.result} computed?"),
            Message("user", logic),
            Message("assistant", f"I see. {question}"),
            Message("user", reply),
        ]
        done = await engine.complete(messages, Sampling(seed=SEED, temperature=0, max_tokens=40))
        found = re.match(r"Noted: (.*?)\.(?!\d)", done.text)
        return found is not None and found.group(1) == wanted

    return await asyncio.gather(*map(note, rows))


def _unheard(spec: Spec, rng: random.Random) -> tuple[str, str, str]:
    """A question, an answer in words never trained on, and the note it should get."""
    if spec.limit_name and rng.random() < 0.4:
        subject = spec.family.b if spec.family.shape.name == "surcharge" else spec.family.q
        reply = rng.choice(UNHEARD_AT_LIMIT[spec.cmp])
        question = f"Does it apply at exactly the {spec.limit_name}?"
        return question, reply, f"{subject} {spec.cmp} {identifier(spec.limit_name)}"
    slot, name = rng.choice(spec.family.names)
    value = dict(spec.numbers)[slot]
    amount = rng.choice(UNHEARD_UNITS).format(v=value, w=in_words(value))
    if "percent" in name:
        amount = f"{value} %"
    reply = rng.choice(UNHEARD_NUMBERS).format(v=amount, name=name)
    return f"What is the {name}?", reply, f"{identifier(name)} = {value}"

"""Episodes a second of the embedded agent: our engine, and plain `generate` calls one by one."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.comparison import Comparison
from sweet.engines import EMBEDDED_DIR
from sweet.engines.local import LocalEngine
from sweet.policy import EnginePolicy
from sweet.seeds import derived_seed
from sweet.simulator import ScriptedCollaborator
from sweet.tasks.mini_backend import generate
from sweet.types import (
    MAX_TURNS,
    Completion,
    Engine,
    Exchange,
    Message,
    Observation,
    OnText,
    Sampling,
    TaskRow,
    Usage,
)

EPISODES = 96
EPISODES_ONE_BY_ONE = 12
AT_ONCE = 32


class PlainGenerate:
    """What one would write first: a `generate` call of transformers for each message.

    On one thread, as ours: more of them make a model this small slower.
    """

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch loads
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._network: Any = AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        adapter: str | None = None,
        on_text: OnText | None = None,
    ) -> Completion:
        """The model's next message."""
        from transformers import set_seed

        turns = [{"role": m.role, "content": m.content} for m in messages]
        prompt = self._tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        known = prompt["input_ids"].shape[1]
        set_seed(sampling.seed or 0)
        said = self._network.generate(
            **prompt,
            do_sample=True,
            temperature=sampling.temperature,
            max_new_tokens=sampling.max_tokens,
        )[0, known:]
        text = self._tokenizer.decode(said, skip_special_tokens=True)
        return Completion(text, Usage(known, len(said)), duration_ms=0)


def run(folder: Path = EMBEDDED_DIR) -> list[Comparison]:
    """Episodes a second with the scripted collaborator, sampled at temperature 1, not scored."""
    rows = list(generate("validation", EPISODES, seed=0))
    plain = PlainGenerate(folder)
    ours = LocalEngine(folder, device="cpu", max_batch=AT_ONCE)
    asyncio.run(_rate(ours, rows[:2], at_once=1))  # loads the model
    asyncio.run(_rate(plain, rows[:1], at_once=1))
    few = rows[:EPISODES_ONE_BY_ONE]
    theirs = asyncio.run(_rate(plain, few, at_once=1))
    alone = asyncio.run(_rate(ours, few, at_once=1))
    together = asyncio.run(_rate(ours, rows, at_once=AT_ONCE))
    ours.close()
    where = f"CPU, {os.cpu_count()} cores, float32, one thread each; theirs one call after another"
    return [
        Comparison("generate: episodes/s", together, theirs, f"{AT_ONCE} at once; {where}"),
        Comparison("generate alone: episodes/s", alone, theirs, f"one at a time; {where}"),
    ]


async def _rate(engine: Engine, rows: Sequence[TaskRow], at_once: int) -> float:
    policy = EnginePolicy("embedded", engine, Sampling(max_tokens=256), "plain")
    free = asyncio.Semaphore(at_once)

    async def one(index: int, row: TaskRow) -> None:
        async with free:
            await _episode(policy, row, derived_seed(0, index))

    began = time.perf_counter()
    await asyncio.gather(*(one(i, row) for i, row in enumerate(rows)))
    return len(rows) / (time.perf_counter() - began)


async def _episode(policy: EnginePolicy, row: TaskRow, seed: int) -> None:
    """The dialogue alone: no store and no sandbox, which are the same for both."""
    assert row.hidden is not None
    collaborator = ScriptedCollaborator()
    exchanges: tuple[Exchange, ...] = ()
    for turn in range(MAX_TURNS):
        seen = Observation(row.task.kind, row.task.description, exchanges, MAX_TURNS - turn)
        action = await policy.act(seen, seed=seed)
        if action.is_final:
            return
        reply = await collaborator.reply(seen, action, row.hidden, seed=seed)
        exchanges += (Exchange(action.message, reply),)

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from sweet.engines.local import LocalEngine
from sweet.types import Completion, Sampling
from tests.sweet.engines.tiny import ask_all, sampling, say


def many_requests() -> list[tuple[str, Sampling]]:
    rng = random.Random(3)
    return [
        (
            "how much is it, and what of the rest? " * rng.randint(1, 4) + str(i),
            sampling(
                seed=i,
                temperature=rng.choice([0.0, 0.7, 1.0]),
                top_p=rng.choice([1.0, 0.9]),
                max_tokens=rng.randint(1, 40),
            ),
        )
        for i in range(24)
    ]


def test_a_request_gets_the_same_text_alone_and_in_a_crowd(model_folder: Path) -> None:
    requests = many_requests()
    crowded = LocalEngine(model_folder, device="cpu", max_batch=8)
    together = asyncio.run(ask_all(crowded, requests))
    crowded.close()
    for (text, settings), among_others in zip(requests, together, strict=True):
        lonely = LocalEngine(model_folder, device="cpu")
        alone = asyncio.run(lonely.complete(say(text), settings))
        lonely.close()
        assert isinstance(among_others, Completion), among_others
        assert (alone.text, alone.usage) == (among_others.text, among_others.usage)
        assert alone.finish_reason == among_others.finish_reason
    assert len({c.text for c in together}) > 12

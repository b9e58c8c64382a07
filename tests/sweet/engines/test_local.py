from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest

from sweet.engines.local import LocalEngine
from sweet.errors import PolicyError
from sweet.types import Completion, Message, Sampling
from tests.sweet.engines import tiny
from tests.sweet.engines.tiny import ask, ask_all, sampling, say


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


@pytest.mark.parametrize("name", ["mistral", "gemma2", "gpt2", "mamba"])
def test_other_architectures_say_what_plain_generate_says(name: str, tmp_path: Path) -> None:
    folder = tiny.save(tiny.other(name), tmp_path)
    texts = ["hello", "what is the base fee? " * 3, "x"]
    engine = LocalEngine(folder, device="cpu", max_batch=2)
    settings = sampling(temperature=0, max_tokens=20)
    for _ in range(2):  # the second time from what is known of the first
        completions = asyncio.run(ask_all(engine, [(t, settings) for t in texts]))
        assert [c.text for c in completions] == [tiny.generate(folder, t, 20) for t in texts]
    engine.close()


def test_rows_that_say_the_same_are_computed_once_and_part_where_they_differ(
    model_folder: Path,
) -> None:
    settings = [
        *(sampling(seed=i, temperature=0.4, max_tokens=30) for i in range(12)),
        *(sampling(seed=i, temperature=0.4, top_p=0.5, max_tokens=20) for i in range(4)),
        *(sampling(seed=i, temperature=0, max_tokens=25) for i in range(4)),
    ]
    seen: list[int] = []
    engine = LocalEngine(model_folder, device="cpu", max_batch=8)
    tiny.watch_rows(engine, seen.append)
    together = asyncio.run(ask_all(engine, [("hello", s) for s in settings]))
    engine.close()
    alone = LocalEngine(model_folder, device="cpu", prefix_cache_bytes=0)
    for one, wanted in zip(together, settings, strict=True):
        expected = asyncio.run(alone.complete(say("hello"), wanted))
        assert (one.text, one.usage) == (expected.text, expected.usage)
    alone.close()
    assert seen[0] == 1
    tokens = sum(c.usage.completion_tokens for c in together if c.usage)
    assert len({c.text for c in together}) > 5 and sum(seen) < tokens


def test_a_dialogue_goes_on_from_what_was_read_before(model_folder: Path) -> None:
    engine = LocalEngine(model_folder, device="cpu")
    dialogue = say("how much is it?")
    for turn in range(4):
        settings = sampling(seed=turn, temperature=0.8)
        known = asyncio.run(engine.complete(dialogue, settings))
        fresh = LocalEngine(model_folder, device="cpu", prefix_cache_bytes=0)
        assert asyncio.run(fresh.complete(dialogue, settings)).text == known.text
        fresh.close()
        dialogue += [Message("assistant", known.text), Message("user", f"it is {turn}")]
    engine.close()


def test_the_seed_alone_decides(engine: LocalEngine) -> None:
    texts = [ask(engine, "hello", seed=seed).text for seed in (1, 2, 1)]
    assert texts[0] == texts[2] != texts[1]


def test_without_a_seed_texts_differ(engine: LocalEngine) -> None:
    assert len({ask(engine, "hello", seed=None).text for _ in range(4)}) > 1


def test_temperature_zero_is_greedy_whatever_the_seed(engine: LocalEngine) -> None:
    texts = {ask(engine, "hello", temperature=0, seed=s).text for s in (1, 2)}
    texts |= {ask(engine, "hello", temperature=1e-9, seed=3).text}
    texts |= {ask(engine, "hello", temperature=5, top_p=1e-9, seed=4).text}
    assert len(texts) == 1


def test_tokens_come_as_often_as_their_probability_says(model_folder: Path) -> None:
    import torch

    engine = LocalEngine(model_folder, device="cpu", max_batch=64)
    requests = [("hello", sampling(seed=i, max_tokens=1, temperature=0.7)) for i in range(600)]
    drawn = [c.text for c in asyncio.run(ask_all(engine, requests))]
    engine.close()
    expected = torch.softmax(tiny.next_logits(model_folder, "hello") / 0.7, dim=-1)
    for token in expected.topk(3).indices.tolist():
        text = tiny.tokenizer().decode([token], skip_special_tokens=True)
        share = drawn.count(text) / len(drawn)
        assert abs(share - expected[token].item()) < 0.08


def test_top_p_keeps_only_the_likeliest(model_folder: Path) -> None:
    engine = LocalEngine(model_folder, device="cpu", max_batch=64)
    settings = {"max_tokens": 1, "temperature": 1.0}
    requests = [("hello", sampling(seed=i, top_p=0.5, **settings)) for i in range(200)]
    drawn = {c.text for c in asyncio.run(ask_all(engine, requests))}
    engine.close()
    weights = tiny.next_logits(model_folder, "hello").softmax(-1).sort(descending=True)
    kept = (weights.values.cumsum(-1) - weights.values < 0.5).sum().item()
    allowed = {tiny.tokenizer().decode([i]) for i in weights.indices[:kept].tolist()}
    assert drawn <= allowed
    assert len(drawn) > 1


def test_streamed_pieces_make_up_the_text(engine: LocalEngine) -> None:
    for seed in range(6):
        heard: list[str] = []
        call = engine.complete(say("hello"), sampling(seed=seed), on_text=heard.append)
        completion = asyncio.run(call)
        assert "".join(heard) == completion.text
        assert completion.text == ask(engine, "hello", seed=seed).text


def test_usage_and_the_finish_reason_are_counted(engine: LocalEngine) -> None:
    completion = ask(engine, "hello", max_tokens=3, temperature=0)
    assert completion.usage is not None
    assert completion.usage.prompt_tokens == len("hello") + 4
    assert (completion.usage.completion_tokens, completion.finish_reason) == (3, "length")
    assert completion.duration_ms > 0


def test_a_stop_string_ends_the_text_before_it(engine: LocalEngine) -> None:
    whole = ask(engine, "hello", temperature=0).text
    stop = whole[3:5]
    heard: list[str] = []
    settings = sampling(temperature=0, stop=("never there", stop, ""))
    completion = asyncio.run(engine.complete(say("hello"), settings, on_text=heard.append))
    assert completion.text == whole[: whole.index(stop)] == "".join(heard)
    assert completion.finish_reason == "stop"
    assert completion.usage and completion.usage.completion_tokens < 24


def test_the_context_bounds_an_answer(engine: LocalEngine) -> None:
    completion = ask(engine, "x" * (tiny.CONTEXT - 14), max_tokens=1000, temperature=0)
    assert completion.usage is not None
    tokens = completion.usage.prompt_tokens + completion.usage.completion_tokens
    assert tokens <= tiny.CONTEXT


def test_a_prompt_too_long_gives_the_numbers_and_spares_the_others(engine: LocalEngine) -> None:
    requests = [("hello", sampling()), ("x" * 300, sampling()), ("hello", sampling())]
    first, long, last = asyncio.run(ask_all(engine, requests))
    assert isinstance(long, PolicyError)
    assert "304 tokens" in str(long)
    assert "256" in str(long)
    assert first.text == last.text == ask(engine, "hello").text


def test_cancelling_one_leaves_the_others(engine: LocalEngine) -> None:
    async def play() -> tuple[Completion, Completion]:
        heard = asyncio.Event()
        doomed = asyncio.create_task(
            engine.complete(
                say("bye"), sampling(max_tokens=200, temperature=0), on_text=lambda _: heard.set()
            )
        )
        other = asyncio.create_task(engine.complete(say("hello"), sampling(max_tokens=60)))
        await heard.wait()
        doomed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doomed
        return await other, await engine.complete(say("hello"), sampling(max_tokens=60))

    during, after = asyncio.run(play())
    assert during.text == after.text


def test_a_cancelled_row_is_taken_out_of_the_batch(model_folder: Path) -> None:
    engine = LocalEngine(model_folder, device="cpu", max_batch=1)

    async def play() -> Completion:
        heard = asyncio.Event()
        endless = sampling(max_tokens=200, temperature=0)
        doomed = [
            asyncio.create_task(engine.complete(say("bye"), endless, on_text=lambda _: heard.set()))
            for _ in range(3)
        ]
        await heard.wait()
        for task in doomed:
            task.cancel()
        return await engine.complete(say("hello"), sampling())

    assert asyncio.run(play()).text
    assert engine._worker._waiting == deque()
    engine.close()


def test_what_a_listener_raises_reaches_its_caller_alone(engine: LocalEngine) -> None:
    def broken(_: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(engine.complete(say("hello"), sampling(), on_text=broken))
    assert ask(engine, "hello").text


def test_many_threads_with_loops_of_their_own_do_not_cross(engine: LocalEngine) -> None:
    texts = [f"number {i}" for i in range(6)]
    alone = [ask(engine, t).text for t in texts]

    async def threads() -> list[list[Completion]]:
        requests = [(t, sampling()) for t in texts]
        jobs = [asyncio.to_thread(lambda: asyncio.run(ask_all(engine, requests))) for _ in range(5)]
        return await asyncio.gather(*jobs)

    for heard in asyncio.run(threads()):
        assert [c.text for c in heard] == alone


def test_a_loop_that_closed_does_not_stop_the_engine(engine: LocalEngine) -> None:
    async def walk_away() -> None:
        task = asyncio.create_task(
            engine.complete(say("bye"), sampling(max_tokens=200), on_text=lambda _: None)
        )
        await asyncio.sleep(0.01)
        del task

    asyncio.run(walk_away())
    assert ask(engine, "hello").text


def test_memory_that_runs_out_makes_rows_wait_not_fail(model_folder: Path) -> None:
    requests = many_requests()
    calm = LocalEngine(model_folder, device="cpu")
    expected = [c.text for c in asyncio.run(ask_all(calm, requests))]
    calm.close()
    tight = LocalEngine(model_folder, device="cpu", max_batch=16)
    tiny.limit_rows(tight, 3)
    assert [c.text for c in asyncio.run(ask_all(tight, requests))] == expected
    tight.close()


def test_memory_that_never_suffices_fails_with_what_to_do(model_folder: Path) -> None:
    engine = LocalEngine(model_folder, device="cpu")
    tiny.limit_rows(engine, 0)
    for _ in range(2):
        with pytest.raises(PolicyError, match="not enough memory"):
            ask(engine, "hello")
    engine.close()


def test_a_model_that_gives_nan_fails_its_row(model_folder: Path, tmp_path: Path) -> None:
    network = tiny.llama()
    network.lm_head.weight.data.fill_(float("nan"))
    engine = LocalEngine(tiny.save(network, tmp_path), device="cpu")
    with pytest.raises(PolicyError, match="NaN"):
        ask(engine, "hello")
    engine.close()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    engine = LocalEngine(tmp_path / "nowhere", device="cpu")
    with pytest.raises(PolicyError, match="nowhere does not exist"):
        ask(engine, "hello")
    engine.close()


def test_a_folder_that_appears_later_is_loaded_then(model_folder: Path, tmp_path: Path) -> None:
    late = tmp_path / "late"
    engine = LocalEngine(late, device="cpu")
    with pytest.raises(PolicyError, match="does not exist"):
        ask(engine, "hello")
    shutil.copytree(model_folder, late)
    assert ask(engine, "hello").text
    engine.close()


def test_a_folder_without_a_model_says_what_it_lacks(tmp_path: Path) -> None:
    engine = LocalEngine(tmp_path, device="cpu")
    with pytest.raises(PolicyError, match=r"has no config\.json"):
        ask(engine, "hello")
    engine.close()


@pytest.mark.parametrize("most", [0, 1, 2])
def test_the_same_request_many_times_in_little_memory_ends(most: int, model_folder: Path) -> None:
    engine = LocalEngine(model_folder, device="cpu", max_batch=16)
    tiny.limit_rows(engine, most)
    requests = [("hello", sampling(seed=i, max_tokens=20)) for i in range(24)]
    together = asyncio.run(ask_all(engine, requests))
    engine.close()
    if not most:
        assert all("not enough memory" in str(failed) for failed in together)
        return
    calm = LocalEngine(model_folder, device="cpu")
    expected = asyncio.run(ask_all(calm, requests))
    calm.close()
    assert [c.text for c in together] == [c.text for c in expected]


@pytest.mark.parametrize("kept_bytes", [0, 100, 5000])
def test_cut_weights_are_not_made_up(kept_bytes: int, model_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cut"
    shutil.copytree(model_folder, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept_bytes])
    engine = LocalEngine(folder, device="cpu")
    with pytest.raises(PolicyError, match="could not be loaded"):
        ask(engine, "hello")
    engine.close()


def test_missing_weights_are_not_made_up(model_folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "holey"
    shutil.copytree(model_folder, folder)
    weights = load_file(folder / "model.safetensors")
    weights.pop("model.layers.1.mlp.up_proj.weight")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    engine = LocalEngine(folder, device="cpu")
    with pytest.raises(PolicyError, match="lacks 1 of its weights"):
        ask(engine, "hello")
    engine.close()


def test_a_model_that_cannot_be_fetched_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    engine = LocalEngine("no-such-organisation/no-such-model", device="cpu")
    with pytest.raises(PolicyError) as caught:
        ask(engine, "hello")
    assert "no-such-organisation/no-such-model could not be loaded" in str(caught.value)
    engine.close()


def test_a_model_without_chat_template_is_refused(tmp_path: Path) -> None:
    engine = LocalEngine(tiny.save(tiny.llama(), tmp_path, template=None), device="cpu")
    with pytest.raises(PolicyError, match="no chat template"):
        ask(engine, "hello")
    engine.close()


def test_a_reference_goes_only_into_a_template_that_knows_it(
    engine: LocalEngine, tmp_path: Path
) -> None:
    prompt = [Message("reference", "def f(): ..."), *say("hello")]
    assert asyncio.run(engine.complete(prompt, sampling())).text
    plain = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    other = LocalEngine(tiny.save(tiny.llama(), tmp_path, template=plain), device="cpu")
    with pytest.raises(PolicyError, match="role 'reference'"):
        asyncio.run(other.complete(prompt, sampling()))
    other.close()


def test_pictures_are_refused_and_not_dropped(engine: LocalEngine) -> None:
    with pytest.raises(PolicyError, match=r"pictures.*base URL"):
        asyncio.run(engine.complete([Message("user", "hello", (b"png",))], sampling()))


def test_a_template_that_refuses_says_why(tmp_path: Path) -> None:
    strict = "{{ raise_exception('roles must alternate') }}"
    engine = LocalEngine(tiny.save(tiny.llama(), tmp_path, template=strict), device="cpu")
    with pytest.raises(PolicyError, match="roles must alternate"):
        ask(engine, "hello")
    engine.close()


def test_a_closed_engine_says_so_and_fails_what_waits(model_folder: Path) -> None:
    engine = LocalEngine(model_folder, device="cpu")

    async def play() -> None:
        heard = asyncio.Event()
        task = asyncio.create_task(
            engine.complete(
                say("bye"), sampling(max_tokens=250, temperature=0), on_text=lambda _: heard.set()
            )
        )
        await heard.wait()
        await asyncio.to_thread(engine.close)
        with pytest.raises(PolicyError, match="closed while it was answering"):
            await task
        with pytest.raises(PolicyError, match="was closed"):
            await engine.complete(say("hello"), sampling())

    asyncio.run(play())


def test_torch_is_imported_with_the_first_request_only() -> None:
    code = (
        "import sys, sweet.engines as e; from sweet.settings import ModelSettings;"
        "e.open_engine(ModelSettings());"
        "print(sorted({'torch', 'transformers', 'peft'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


BEGINNING_AT_ONCE = """
import asyncio, threading
from evaluators.frontend.weights import open_clip_library
from sweet.engines import EMBEDDED_DIR, EMBEDDED_PAGES_DIR
from sweet.engines.local import LocalEngine
from sweet.types import Message, Sampling

async def begin():
    clip = asyncio.to_thread(open_clip_library)
    engines = [LocalEngine(folder) for folder in (EMBEDDED_DIR, EMBEDDED_PAGES_DIR)]
    calls = [e.complete([Message("user", "hi")], Sampling(max_tokens=3)) for e in engines]
    print(*(type(done).__name__ for done in await asyncio.gather(clip, *calls)))

asyncio.run(begin())
"""


def test_two_models_and_an_evaluator_may_be_loaded_at_the_same_time() -> None:
    """A newcomer asks for a page while the model for functions still warms up."""
    command = [sys.executable, "-c", BEGINNING_AT_ONCE]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.split() == ["module", "Completion", "Completion"], done.stderr

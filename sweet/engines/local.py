"""Any Hugging Face causal language model in this process, on CPU or GPU.

`LocalEngine` is what others use; `_Model` is the loaded model, `_Batch` the rows decoded together
under one adapter. torch and transformers are imported when the first request comes.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sweet.engines.adapters import AdapterKey, Adapters, find_adapter
from sweet.engines.draw import draw
from sweet.engines.generation import OutOfMemory, Request, Row, check_sampling
from sweet.engines.loading import device_name, end_ids, load, out_of_memory
from sweet.engines.slots import PrefixStore, Slots
from sweet.engines.worker import Worker
from sweet.errors import PolicyError
from sweet.types import Completion, Message, OnText, Sampling

PREFILL_TOKENS = 2048  # of one forward pass; more saves no time on CPU and costs memory
SMALL_PARAMETERS = 30_000_000  # below it, one thread decodes faster than several (measured)


class LocalEngine:
    """An engine that runs `model`, a folder or a Hugging Face id, in this process.

    Requests are decoded together, each from its own seed: in float32 a text does not depend on
    who else is in the batch. (In half precision on a GPU rounding differs with the batch's size.)
    It may be called from several threads and event loops at once.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        device: str = "auto",
        dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto",
        max_batch: int = 32,
        max_adapters: int = 4,
        prefix_cache_bytes: int = 256 * 2**20,
    ) -> None:
        """Nothing is loaded before the first request.

        Args:
            model: A folder, or an id such as "Qwen/Qwen3-4B-Instruct-2507".
            device: "cpu", "cuda", "cuda:1", …; "auto" takes a GPU where there is one.
            dtype: "auto" keeps the model's own on a GPU and takes float32 on a CPU.
            max_batch: Rows decoded at once; more requests wait.
            max_adapters: LoRA adapters kept loaded; the least used goes first.
            prefix_cache_bytes: Keys and values kept for the next turn of a dialogue.
        """
        self.model = str(model)
        load = partial(_Model, model, device, dtype, max_batch, max_adapters, prefix_cache_bytes)
        self._worker = Worker(load)

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        adapter: str | None = None,
        on_text: OnText | None = None,
    ) -> Completion:
        """The model's next message. `adapter` is a PEFT LoRA folder."""
        check_sampling(sampling)
        request = Request(messages, sampling, adapter, streams=on_text is not None)
        self._worker.submit(request)
        try:
            while True:
                item = await request.inbox.get()
                if isinstance(item, Completion):
                    return item
                if isinstance(item, PolicyError):
                    raise item
                if on_text:
                    on_text(item)
        finally:
            request.cancelled = True

    def close(self) -> None:
        """Give the model's memory back; requests still under way fail."""
        self._worker.close()


class _Model:
    """A loaded model with its tokenizer and a batch for each adapter in use."""

    def __init__(
        self,
        name: str | Path,
        device: str,
        dtype: str,
        max_batch: int,
        max_adapters: int,
        prefix_cache_bytes: int,
    ) -> None:
        self.name = str(name)
        # Idle OpenMP threads must sleep, not spin: others need the cores. Read when torch loads.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        import torch

        self.device = torch.device(device_name(device))
        self.tokenizer, self.network = load(name, self.device, dtype)
        if self.device.type == "cpu" and self.network.num_parameters() < SMALL_PARAMETERS:
            torch.set_num_threads(1)  # holds for this thread alone
        config = self.network.config.get_text_config()
        self.context_tokens = getattr(config, "max_position_embeddings", None) or 2**31
        self.end_ids = end_ids(self.network, self.tokenizer)
        accepted = inspect.signature(self.network.forward).parameters
        self.takes_positions = "position_ids" in accepted
        self.takes_logits_to_keep = "logits_to_keep" in accepted
        layer_types = set(getattr(config, "layer_types", None) or [])
        self.batches_rows = not self.network._is_stateful and layer_types <= {
            "full_attention",
            "sliding_attention",
        }
        self.max_batch = max_batch if self.batches_rows else 1
        self.prefix_cache_bytes = prefix_cache_bytes
        self.adapters = Adapters(self.network, str(self.device), max_adapters)
        self._batches: dict[AdapterKey | None, _Batch | _Single] = {}

    def row(self, request: Request) -> Row:
        """A request as tokens. Raises: PolicyError when it does not fit the context."""
        prompt_ids = self._encode(request.messages)
        room = self.context_tokens - len(prompt_ids)
        if room < 1:
            raise PolicyError(
                f"The prompt has {len(prompt_ids)} tokens, but {self.name} reads at most "
                f"{self.context_tokens} with its answer. Shorten the messages, or choose a model "
                "with a longer context."
            )
        limit = min(request.sampling.max_tokens, room)
        decode = partial(self.tokenizer.decode, skip_special_tokens=True)
        key = find_adapter(request.adapter) if request.adapter else None
        return Row(request, prompt_ids, limit, self.end_ids, decode, key)

    def batch(self, adapter: AdapterKey | None, active: set[AdapterKey | None]) -> _Batch | _Single:
        """The batch under this adapter, which is loaded if it is not."""
        for unloaded in self.adapters.load(adapter, active):
            self._batches.pop(unloaded, None)
        if adapter not in self._batches:
            kind = _Batch if self.batches_rows else _Single
            self._batches[adapter] = kind(self, adapter)
        return self._batches[adapter]

    def forget_batches(self) -> None:
        """Begin anew after a failure: no rows, nothing known."""
        self._batches.clear()

    def close(self) -> None:
        """Drop the weights."""
        self._batches.clear()
        del self.network, self.adapters

    def _encode(self, messages: Sequence[Message]) -> list[int]:
        template = self.tokenizer.chat_template
        if not template:
            raise PolicyError(
                f"{self.name} has no chat template, so it can't be given a dialogue. Choose an "
                "instruction-tuned (chat) model."
            )
        if "reference" not in str(template) and any(m.role == "reference" for m in messages):
            raise PolicyError(
                f"A prompt with a message of role 'reference' was given to {self.name}, whose "
                "chat template has no such role."
            )
        if any(m.images for m in messages):
            raise PolicyError(
                f"A prompt with pictures was given to {self.name}, which runs here and reads text "
                "only. Connect a vision model by its base URL."
            )
        turns = [{"role": m.role, "content": m.content} for m in messages]
        text = self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]


class _Batch:
    """The rows decoded together under one adapter.

    Rows that have said the same so far are one strand: they are computed once, in one slot, and
    part when their dice say different tokens. Sixteen candidates of a turn begin as one.
    """

    def __init__(self, model: _Model, adapter: AdapterKey | None) -> None:
        self._strands: list[list[Row]] = []  # one a slot
        self._model = model
        self._adapter = adapter
        self._slots = Slots()
        self._cache = _slot_cache(self._slots)
        self._known = PrefixStore(model.prefix_cache_bytes)

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return [row for strand in self._strands for row in strand]

    @property
    def computed(self) -> int:
        """How many rows the model computes for them."""
        return len(self._strands)

    def join(self, rows: list[Row]) -> None:
        """Read the prompts of new rows and draw their first tokens."""
        strands = _grouped(rows, lambda row: tuple(row.ids))
        # Rows whose beginning is known have little to read: apart from those that read it all.
        work = [(strand, *self._known.longest(strand[0].ids[:-1])) for strand in strands]
        work.sort(key=lambda item: len(item[0][0].ids) - item[1])
        while work:
            some = work[:1]
            for item in work[1:]:
                if (len(item[0][0].ids) - item[1]) * (len(some) + 1) > PREFILL_TOKENS:
                    break
                some.append(item)
            self._prefill(some)
            work = work[len(some) :]

    def step(self) -> None:
        """One more token for every row."""
        with out_of_memory(len(self._strands)), _inference():
            self._part()
            self._slots.advance()
            try:
                self._forward(0, [strand[0].out_ids[-1:] for strand in self._strands])
            except BaseException:
                self._slots.end -= 1
                raise

    def leave(self, row: Row) -> None:
        """Take a row out; what it has read stays known."""
        at = next(at for at, strand in enumerate(self._strands) if row in strand)
        read = row.ids[: self._slots.end - self._slots.starts[at]]
        with _inference():
            if not self._known.has(read):
                with suppress(OutOfMemory), out_of_memory(1):
                    self._known.put(read, self._slots.saved(at))
            self._strands[at].remove(row)
            if not self._strands[at]:
                self._slots.drop(at)
                self._strands[at] = self._strands[-1]
                self._strands.pop()

    def _part(self) -> None:
        """A slot of its own for whatever was said last in a strand."""
        for at, strand in enumerate(list(self._strands)):
            for other in _grouped(strand, lambda row: row.out_ids[-1])[1:]:
                self._slots.copy(at)
                self._strands[at] = [row for row in self._strands[at] if row not in other]
                self._strands.append(other)

    def _prefill(self, work: list[tuple[list[Row], int, Any]]) -> None:
        first = len(self._strands)
        lengths = [len(strand[0].ids) for strand, _, _ in work]
        queries = max(n - known for n, (_, known, _) in zip(lengths, work, strict=True))
        try:
            with out_of_memory(len(work)), _inference():
                self._slots.add(lengths)
                for at, (n, (_, known, saved)) in enumerate(zip(lengths, work, strict=True), first):
                    if known and n > queries:
                        self._slots.fill(at, saved, n - queries)
                self._strands += [strand for strand, _, _ in work]
                self._forward(first, [strand[0].ids[-queries:] for strand, _, _ in work])
        except BaseException:
            del self._strands[first:], self._slots.starts[first:]
            raise

    def _forward(self, first: int, new_ids: list[list[int]]) -> None:
        """Read the newest tokens of the strands from `first` on, and draw the next ones."""
        import torch

        model, slots = self._model, self._slots
        queries = max(map(len, new_ids))
        slots.look_at(first, queries)
        model.adapters.use(self._adapter)
        ids = [[0] * (queries - len(row)) + row for row in new_ids]
        starts = torch.tensor(slots.starts[first:], device=model.device).unsqueeze(1)
        columns = torch.arange(slots.low, slots.end, device=model.device)
        inputs: dict[str, Any] = {"attention_mask": columns >= starts}
        if model.takes_positions:
            inputs["position_ids"] = (columns[-queries:] - starts).clamp(min=0)
        if model.takes_logits_to_keep:
            inputs["logits_to_keep"] = 1
        out = model.network(
            torch.tensor(ids, device=model.device),
            past_key_values=self._cache,
            use_cache=True,
            **inputs,
        )
        draw(out.logits[:, -1], self._strands[first:])


class _Single:
    """Models whose state is no table of keys and values (Mamba, …): one row, by `generate`."""

    def __init__(self, model: _Model, adapter: AdapterKey | None) -> None:
        self.rows: list[Row] = []
        self._model = model
        self._adapter = adapter

    @property
    def computed(self) -> int:
        """How many rows the model computes for them."""
        return len(self.rows)

    def join(self, rows: list[Row]) -> None:
        """Take a row; it is written at the next step."""
        self.rows += rows

    def step(self) -> None:
        """The whole answer of the one row."""
        import torch

        model, row = self._model, self.rows[0]
        model.adapters.use(self._adapter)

        def pick(_ids: Any, scores: Any) -> Any:
            draw(scores, [[row]])
            only = torch.full_like(scores, -torch.inf)
            only[0, row.out_ids[-1] if row.out_ids else 0] = 0
            return only

        def stop(ids: Any, _scores: Any, **_: Any) -> Any:
            return torch.full((len(ids),), row.gone, device=ids.device)

        ids = torch.tensor([row.ids], device=model.device)
        with out_of_memory(1):
            model.network.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                max_new_tokens=model.context_tokens,
                logits_processor=[pick],
                stopping_criteria=[stop],
            )

    def leave(self, row: Row) -> None:
        """Take the row out."""
        self.rows.remove(row)


def _grouped(rows: list[Row], key: Callable[[Row], Hashable]) -> list[list[Row]]:
    """The rows of each key together, in the order in which the keys came."""
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def _slot_cache(slots: Slots) -> Any:
    """A transformers cache that keeps its keys and values in `slots`."""
    from transformers.cache_utils import Cache, DynamicLayer

    class SlotLayer(DynamicLayer):
        """Defined here because transformers must not be imported before a model is needed."""

        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> Any:
            return slots.write(id(self), key_states, value_states)

        def get_seq_length(self) -> int:
            return slots.past_columns

    return Cache(layer_class_to_replicate=SlotLayer)


def _inference() -> Any:
    import torch

    return torch.inference_mode()

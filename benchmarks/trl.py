"""Our training against TRL's own trainers: the same data, batches and optimiser, in one run.

Turn by turn: pairs of messages, our one pass an episode against DPOTrainer on a message list a
pair. Whole episodes: multi-turn DPO against DPOTrainer, which takes all that follows the first
request as the agent's, replies too; so only the first losses are equal there. Successes: rejection
fine-tuning against SFTTrainer, one episode an update, where its mean over tokens is ours. Both
sides start from the same adapter. Seconds are CPU seconds of one thread.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.comparison import Comparison
from sweet.engines import EMBEDDED_DIR
from sweet.prompts.agent_backend import plain
from sweet.tasks import mini_backend
from sweet.types import (
    ANSWER_MARK,
    Action,
    Episode,
    Evaluation,
    Exchange,
    Observation,
    PreferencePair,
    Reward,
    StopReason,
    TaskRow,
    Turn,
    Verdict,
)
from trainer.baselines import fit_successes, fit_whole_episodes
from trainer.candidates import Candidate
from trainer.fit import FitSettings
from trainer.learner import Learner, load_learner
from trainer.pairs import episode_pairs
from trainer.policy import PolicySettings, fit_policy, pair_tree

TASKS = 24
PAIRS = 4  # a turn
BETA = 0.1
LR = 3e-4
SEED = 0
TOLERANCE = 1e-4  # of the first step's loss

Example = dict[str, list[dict[str, str]]]


@dataclass(slots=True)
class Side:
    """What one side took, and its loss at each update."""

    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)


def run() -> list[Comparison]:
    """Examples a second: turn by turn, on whole episodes, and on successes alone."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = list(mini_backend.generate("train", TASKS, SEED))
        for way in WAYS:
            way(rows[:1])  # the first time costs both sides more
        return [way(rows) for way in WAYS]
    finally:
        torch.set_num_threads(threads)


def episodes(row: TaskRow) -> tuple[Episode, Episode]:
    """A success, which asks for every hidden number, and a failure, which asks for none."""
    assert row.hidden is not None
    details = mini_backend.parse_reference(row.hidden.reference).constants
    asked = [(f"what is the {name}?", f"{value}.") for name, value in details.items()]
    vague = [("can you tell me more?", "like what?"), ("is that all?", "yes.")]
    wrong = row.hidden.reference.replace("return ", "return 1 + ")
    return (
        _episode(row, "good", asked, row.hidden.reference, 1.0),
        _episode(row, "bad", vague, wrong, 0.0),
    )


def _episode(
    row: TaskRow, name: str, said: Sequence[tuple[str, str]], code: str, reward: float
) -> Episode:
    final = Action(f"{ANSWER_MARK}\n{code}", "", True, code)
    turns = [Turn(i, Action(text, text, False), reply) for i, (text, reply) in enumerate(said)]
    return Episode(
        f"{row.task.id} {name}",
        row.task.id,
        "embedded",
        "scripted",
        SEED,
        turns=(*turns, Turn(len(turns), final)),
        stop_reason=StopReason.ANSWERED,
        evaluation=Evaluation(Reward(reward, {}, "benchmark"), Verdict.PASS),
    )


# Turn by turn


def _turn_by_turn(rows: Sequence[TaskRow]) -> Comparison:
    given = [(row, _two_turns(episodes(row)[0])) for row in rows]
    pairs = [_turn_pairs(row, episode) for row, episode in given]
    learner = _learner()
    trees = [
        tree
        for (row, episode), turns in zip(given, pairs, strict=True)
        if (tree := pair_tree(learner, "plain", row, episode, turns))
    ]
    assert len(trees) == len(rows)
    batch = 2 * PAIRS
    fit = partial(fit_policy, learner, trees, PolicySettings(BETA, 0.0))
    ours = _ours(fit, batch)
    examples = [
        _turn_example(row, episode.turns[:index], *sides)
        for (row, episode), turns in _as_drawn(list(zip(given, pairs, strict=True)))
        for index, turn in enumerate(turns)
        for sides in turn
    ]
    theirs = _dpo(examples, batch)
    about = f"{len(examples)} pairs of messages, {batch} an update; ours reads an episode once"
    return _compared("turn by turn, pairs/s", ours, theirs, len(examples), about)


def _two_turns(episode: Episode) -> Episode:
    """The last question and the answer: as many pairs in every episode."""
    *_, question, final = episode.turns
    return Episode(
        episode.id,
        episode.task_id,
        episode.policy_id,
        episode.collaborator,
        episode.seed,
        turns=(Turn(0, question.action, question.reply), Turn(1, final.action)),
    )


def _turn_pairs(row: TaskRow, episode: Episode) -> list[list[tuple[Candidate, Candidate]]]:
    """Pairs of different messages at each turn."""
    return [
        [
            (Candidate(turn.action.raw), Candidate(f"{turn.action.raw} {n} or {n + 1}?"))
            for n in range(PAIRS)
        ]
        for turn in episode.turns
    ]


def _turn_example(
    row: TaskRow, before: Sequence[Turn], chosen: Candidate, rejected: Candidate
) -> Example:
    seen = tuple(Exchange(t.action.message, t.reply or "") for t in before)
    prompt = plain(Observation(row.task.kind, row.task.description, seen))
    sides = {"chosen": chosen, "rejected": rejected}
    return {"prompt": [{"role": m.role, "content": m.content} for m in prompt]} | {
        name: [{"role": "assistant", "content": side.said}] for name, side in sides.items()
    }


# Whole episodes


def _whole_episodes(rows: Sequence[TaskRow]) -> Comparison:
    pairs = episode_pairs([e for row in rows for e in episodes(row)], _by_id(rows))
    learner = _learner()
    fit = partial(
        fit_whole_episodes, learner, "plain", pairs, _by_id(rows), beta=BETA, nll_coefficient=0.0
    )
    ours = _ours(fit, 8)
    theirs = _dpo([_whole_example(pair) for pair in _as_drawn(pairs)], 8)
    about = f"{len(pairs)} pairs of episodes, 8 an update; theirs also trains on the replies"
    return _compared("multi-turn DPO, pairs/s", ours, theirs, len(pairs), about)


def _whole_example(pair: PreferencePair) -> Example:
    request, *_ = _messages(pair.observation.description, pair.chosen)
    sides = {"chosen": pair.chosen, "rejected": pair.rejected}
    return {"prompt": [request]} | {
        name: _messages(pair.observation.description, turns)[1:] for name, turns in sides.items()
    }


# Successes


def _successes(rows: Sequence[TaskRow]) -> Comparison:
    from trl import SFTConfig, SFTTrainer

    good = [episodes(row)[0] for row in rows]
    ours = _ours(partial(fit_successes, _learner(), "plain", good, _by_id(rows)), 1)
    by_id = _by_id(rows)
    examples = [
        {"messages": _messages(by_id[e.task_id].task.description, e.turns)} for e in _as_drawn(good)
    ]
    make = partial(_trainer, SFTTrainer, SFTConfig, assistant_only_loss=True)
    theirs = _theirs(make, examples, 1)
    about = f"{len(good)} successful episodes, 1 an update"
    return _compared("rejection fine-tuning, episodes/s", ours, theirs, len(good), about)


def _messages(description: str, turns: Sequence[Turn]) -> list[dict[str, str]]:
    found = [{"role": "user", "content": description}]
    for turn in turns:
        found.append({"role": "assistant", "content": turn.action.raw})
        if turn.reply is not None:
            found.append({"role": "user", "content": turn.reply})
    return found


WAYS = (_turn_by_turn, _whole_episodes, _successes)


# Both sides


def _learner() -> Learner:
    return load_learner(str(EMBEDDED_DIR), None, rank=16, seed=SEED, device="cpu")


def _by_id(rows: Sequence[TaskRow]) -> dict[str, TaskRow]:
    return {row.task.id: row for row in rows}


def _as_drawn(examples: Sequence[Any]) -> list[Any]:
    """The examples in the order in which our loop takes them in its first epoch."""
    order = list(examples)
    random.Random(f"{SEED}/0").shuffle(order)
    return order


def _ours(fit: Callable[..., object], batch: int) -> Side:
    side = Side()

    def report(step: int, total: int, numbers: Mapping[str, float]) -> None:
        side.losses.append(numbers["loss"])

    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        fit(
            settings=FitSettings(LR, 1, batch, SEED),
            checkpoint=Path(folder) / "checkpoint.pt",
            report=report,
        )
        side.seconds = time.process_time() - start
    return side


def _dpo(examples: Sequence[Example], batch: int) -> Side:
    from trl import DPOConfig, DPOTrainer

    return _theirs(partial(_trainer, DPOTrainer, DPOConfig, beta=BETA), examples, batch)


def _trainer(trainer: Any, config: Any, examples: Any, batch: int, folder: str, **more: Any) -> Any:
    """TRL's trainer as it comes, in one process on the CPU, with nothing cut and nothing saved."""
    import datasets

    learner = _learner()
    settings = config(
        output_dir=folder,
        per_device_train_batch_size=batch,
        num_train_epochs=1,
        learning_rate=LR,
        lr_scheduler_type="constant",
        train_sampling_strategy="sequential",
        max_length=None,
        gradient_checkpointing=False,
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        **more,
    )
    datasets.disable_progress_bars()
    return trainer(
        model=learner.model,
        args=settings,
        train_dataset=datasets.Dataset.from_list(list(examples)),
        processing_class=learner.tokenizer,
    )


def _theirs(make: Callable[..., Any], examples: Sequence[Any], batch: int) -> Side:
    """What TRL's own training took; its tokenising is not counted."""
    from transformers.trainer_callback import PrinterCallback

    side = Side()
    with tempfile.TemporaryDirectory() as folder:
        trainer = make(examples, batch, folder)
        trainer.remove_callback(PrinterCallback)  # it writes to stdout
        compute = trainer.compute_loss

        def compute_loss(*args: Any, **kwargs: Any) -> Any:
            loss = compute(*args, **kwargs)
            side.losses.append(float(loss.detach()))
            return loss

        trainer.compute_loss = compute_loss
        start = time.process_time()
        trainer.train()
        side.seconds = time.process_time() - start
    return side


def _compared(name: str, ours: Side, theirs: Side, examples: int, about: str) -> Comparison:
    first = abs(ours.losses[0] - theirs.losses[0])
    if first > TOLERANCE or len(ours.losses) != len(theirs.losses):
        raise AssertionError(
            f"{name}: {len(ours.losses)} updates from {ours.losses[0]:.6f} against "
            f"{len(theirs.losses)} from {theirs.losses[0]:.6f}"
        )
    conditions = (
        f"{about}; loss at the first update {ours.losses[0]:.6f} against {theirs.losses[0]:.6f} "
        f"(apart by {first:.0e}), at the last, number {len(ours.losses)}, {ours.losses[-1]:.4f} "
        f"against {theirs.losses[-1]:.4f}; {ours.seconds:.1f} CPU s against {theirs.seconds:.1f}; "
        "the embedded model with LoRA, one CPU thread; theirs: TRL's trainer as it comes"
    )
    return Comparison(
        f"trl, {name}", examples / ours.seconds, examples / theirs.seconds, conditions
    )

"""A round's settings as fields of the Train page, and back.

Each setting has a field: a few in front, in words, all others in the expert fold with the help
that the command line shows. A setting that is added to `RoundSettings` appears by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields
from typing import Any

import gradio as gr

from sweet.errors import ConfigError
from sweet.services import PERSON, Services
from sweet.settings import EMBEDDED_MODEL
from sweet.simulator import ScriptedCollaborator
from sweet.types import TaskKind
from trainer.settings import CHOICES, RoundSettings, default_of, is_by_kind
from ui.format import collaborator_name

FRESH_EPISODES = {TaskKind.BACKEND: 400, TaskKind.FRONTEND: 160}
"""Offered at first: 4 each of 100 or 40 tasks, which on two cores is a round of minutes."""
MOST_EPISODES = 100_000
NO_LOG = "fresh episodes only"
_SERVED = ("The one served now", "")

ALGORITHMS = {
    "sweet": "SWEET-RL",
    "sweet-nohidden": "SWEET-RL without hidden information",
    "sweet-untrained": "SWEET-RL with an untrained critic",
    "sweet-value": "SWEET-RL with a value head",
    "sweet-judge": "SWEET-RL with a judge as critic",
    "mtdpo": "Multi-turn DPO",
    "rft": "Rejection fine-tuning",
    "turns": "DPO on the turns that people preferred",
}
_FRONT = (
    "tasks", "algorithm", "policy", "fresh_tasks", "use_log", "from_collaborator", "from_tasks",
)  # fmt: skip
"""Settings that the fields in front stand for."""
_GROUPS = {
    "Which episodes": (
        "from_policy", "since", "until", "fresh_set", "fresh_per_task", "concurrency",
    ),
    "What people preferred": ("human_pairs", "vote_pairs", "blind_votes", "imported_pairs"),
    "Stage 1: the critic": (
        "critic_lr", "critic_epochs", "critic_batch", "critic_beta", "critic_nll", "credit",
        "ranking_reference",
    ),
    "Stage 2: the policy": (
        "candidates", "pairs_per_turn", "policy_share", "policy_least", "policy_lr",
        "policy_epochs", "policy_batch", "policy_beta", "policy_nll",
    ),
    "What becomes of it": ("validation_set", "validation_n", "promote", "promote_margin"),
}  # fmt: skip
_REST = "Tuning, and the run"
FRONT_INPUTS = ("tasks", "algorithm", "policy", "fresh", "source", "task_set")
_SETTINGS: dict[str, Field] = {field.name: field for field in fields(RoundSettings)}
EXPERT = tuple(name for name in _SETTINGS if name not in _FRONT)
BY_KIND = tuple(name for name in EXPERT if is_by_kind(_SETTINGS[name]))
"""Settings whose default depends on what is made."""


def front() -> dict[str, Any]:
    """The fields in front, by the names of `FRONT_INPUTS`; the page fills their choices."""
    names = [(f"{ALGORITHMS.get(value, value)} ({value})", value) for value in CHOICES["algorithm"]]
    kinds = [(kind.things.capitalize(), kind.value) for kind in TaskKind]
    made: dict[str, Any] = {
        "tasks": gr.Radio(label="What is made", choices=kinds, value=TaskKind.BACKEND.value)
    }
    with gr.Row():
        made |= {
            "algorithm": gr.Dropdown(
                label="Algorithm", choices=names, value="sweet", min_width=220
            ),
            "policy": gr.Dropdown(label="Start from", choices=[_SERVED], value="", min_width=220),
            "fresh": gr.Number(
                label="Fresh episodes",
                value=FRESH_EPISODES[TaskKind.BACKEND],
                minimum=0,
                precision=0,
                min_width=140,
            ),
        }
    with gr.Row():
        made["source"] = gr.Dropdown(label="Episodes of the log", choices=[], min_width=220)
        made["task_set"] = gr.Dropdown(label="Of which task set", choices=[], min_width=220)
    return made


def expert() -> dict[str, Any]:
    """A field for each other setting, by its name, in groups."""
    grouped = {name for names in _GROUPS.values() for name in names}
    rest = [name for name in EXPERT if name not in grouped]
    made: dict[str, Any] = {}
    with gr.Accordion("Expert settings", open=False, elem_id="expert"):
        for title, names in [*_GROUPS.items(), (_REST, rest)]:
            gr.Markdown(f"#### {title}")
            with gr.Row(elem_classes="fields"):
                made |= {name: _field(_SETTINGS[name]) for name in names if name in _SETTINGS}
    return made


def _field(setting: Field) -> Any:
    label = setting.name.replace("_", " ").capitalize().replace("lr", "learning rate")
    label = label.replace("Lora", "LoRA").replace("nll", "NLL")
    about = {"label": label, "info": str(setting.metadata["help"]), "min_width": 220}
    default = default_of(setting, TaskKind.BACKEND)
    if setting.name in CHOICES:
        return gr.Dropdown(choices=list(CHOICES[setting.name]), value=default, **about)
    if isinstance(default, bool):
        return gr.Checkbox(value=default, **about)
    if isinstance(default, int):
        return gr.Number(value=default, precision=0, **about)
    if isinstance(default, float):
        return gr.Number(value=default, step=default / 10 or 0.01, **about)
    return gr.Textbox(value=default, max_lines=1, **about)


def version_choices(services: Services) -> list[tuple[str, str]]:
    """The versions that a round can start from; first, whichever is served when it starts."""
    return [_SERVED, *((_version_name(v.id, v.note), v.id) for v in services.policies())]


def choices(services: Services) -> tuple[Any, Any]:
    """What can be chosen at first: whose episodes, of which task sets."""
    model = services.settings.simulator.model
    simulators = [ScriptedCollaborator.name]
    simulators += [] if model == EMBEDDED_MODEL else [f"llm:{model}"]
    sources = [("All", ""), ("Of people", PERSON)]
    sources += [(f"Of the {collaborator_name(name).lower()}", name) for name in simulators]
    sources += [("None: fresh episodes only", NO_LOG)]
    return gr.update(choices=sources, value=""), _task_sets(services, TaskKind.BACKEND)


def choices_of(services: Services, kind: TaskKind) -> tuple[Any, ...]:
    """That kind's task sets, fresh episodes, and its own defaults in the order of `BY_KIND`."""
    own = (gr.update(value=default_of(_SETTINGS[name], kind)) for name in BY_KIND)
    return _task_sets(services, kind), gr.update(value=FRESH_EPISODES[kind]), *own


def _task_sets(services: Services, kind: TaskKind) -> Any:
    names = [s.name for s in services.store.task_sets() if s.kind is kind]
    return gr.update(choices=[("Any", ""), *((name, name) for name in names)], value="")


def default_settings() -> RoundSettings:
    """What the fields say at first."""
    first = RoundSettings()
    fresh = FRESH_EPISODES[first.task_kind]
    return RoundSettings(fresh_tasks=math.ceil(fresh / first.fresh_per_task))


def _version_name(policy_id: str, note: str) -> str:
    short = note if len(note) <= 60 else f"{note[:59]}…"
    return f"{policy_id} ({short})" if short else policy_id


def settings_of(values: Sequence[Any]) -> RoundSettings:
    """The settings that the fields say, in the order of `FRONT_INPUTS`, then `EXPERT`.

    Raises: ConfigError naming a field that is empty or out of its range.
    """
    given = dict(zip((*FRONT_INPUTS, *EXPERT), values, strict=True))
    tasks = str(given["tasks"])
    chosen = {name: _value(_SETTINGS[name], given[name], tasks) for name in EXPERT}
    source = str(given["source"] or "")
    return RoundSettings(
        tasks=tasks,
        algorithm=str(given["algorithm"]),
        policy=str(given["policy"] or ""),
        use_log=source != NO_LOG,
        from_collaborator="" if source == NO_LOG else source,
        from_tasks=str(given["task_set"] or ""),
        fresh_tasks=_fresh_tasks(given["fresh"], chosen),
        **chosen,
    )


def _fresh_tasks(fresh: float | None, chosen: Mapping[str, Any]) -> int:
    if fresh is None or fresh != int(fresh) or not 0 <= fresh <= MOST_EPISODES:
        raise ConfigError(
            f"Fresh episodes: {fresh} was given; choose a whole number from 0 to {MOST_EPISODES:,}."
        )
    return math.ceil(fresh / max(1, chosen["fresh_per_task"]))


def _value(setting: Field, given: Any, tasks: str) -> Any:
    """What a field says, in the setting's own type."""
    default = default_of(setting, tasks)
    if isinstance(default, bool):
        return bool(given)
    if isinstance(default, str):
        return str(given or "").strip()
    if given is None:
        raise ConfigError(
            f"--{setting.name.replace('_', '-')} is empty: {setting.metadata['help']}. "
            f"Its default is {default}."
        )
    return float(given) if isinstance(default, float) else int(given)

"""What the Compare page shows of a comparison: always derived from the log, and from who looks.

Who looks is told by the browser's own name, which its cookie keeps: names, rewards and advantages
are shown to a browser that has voted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr

from sweet.comparing.blind import names_itself
from sweet.episode import next_speaker
from sweet.errors import PolicyError, TaskDataError
from sweet.services import OWN, PERSON, Services
from sweet.store import Choice, Comparison, EpisodeCredit
from sweet.types import Episode, PolicyVersion, Speaker, StopReason, TaskKind, TaskRow
from ui import compare_results, compare_view, compare_vote, designs
from ui.compare_live import Duels
from ui.compare_view import Duo, Side
from ui.conversation import reference_card
from ui.play import hidden_details
from ui.session import CompareView
from ui.wire import SKIP

VOTER_COOKIE = "studio-voter"
STUDIO = "studio"
"""Who records that a side failed: nobody's opinion."""
_VOTER = re.compile(r"[0-9a-f]{16,64}")
_SCORABLE = (StopReason.ANSWERED, StopReason.TURN_LIMIT)


class Shown(NamedTuple):
    """The outputs of an open comparison; what a handler does not name stays as it is."""

    view: Any = SKIP
    setup: Any = SKIP
    stage: Any = SKIP
    head: Any = SKIP
    turns: Any = SKIP
    live: Any = SKIP
    pages: Any = SKIP
    composer: Any = SKIP
    says: Any = SKIP
    send: Any = SKIP
    stop: Any = SKIP
    again: Any = SKIP
    finish: Any = SKIP
    result: Any = SKIP
    alike: Any = SKIP
    reason: Any = SKIP
    ballot: Any = SKIP
    revealed: Any = SKIP
    repeat: Any = SKIP
    following: Any = SKIP
    aside: Any = SKIP
    reference: Any = SKIP


def shown(
    duels: Duels, comparison: Comparison, request: gr.Request, due: bool | None = None
) -> Shown:
    """The whole page of a comparison, as the log and this browser's vote have it.

    `due` None: as the episodes say.
    """
    services = duels.services
    row = services.store.task_row(comparison.task_id)
    if due is None:
        both = episodes_of(duels, comparison)
        due = duels.is_running(comparison.id) or any(_can_move(e, row) for e in both)
    duo = duo_of(services, comparison, voter_of(request), is_playing=due)
    decided = not due and (duo.is_over or bool(duo.failed))
    page = Shown(
        view=CompareView(comparison.id, due),
        setup=gr.update(visible=False),
        stage=gr.update(visible=True),
        head=compare_view.head(duo, row.task),
        turns=compare_view.transcript(duo),
        pages=pages(services, duo, row, knows=decided or _person_plays(duo)),
        stop=button("Stop", visible=False),
    )
    return page._replace(
        **_playing(duo, row, due=due, decided=decided),
        **(_ended(services, duo, row) if decided else _NOT_ENDED),
    )


def _playing(duo: Duo, row: TaskRow, *, due: bool, decided: bool) -> dict[str, Any]:
    """What is there to play on with."""
    episodes = [side.episode for side in duo.sides]
    person = not decided and _person_plays(duo)
    told = person and row.task.kind is TaskKind.BACKEND  # a page that is wanted stands with theirs
    can_send = not due and any(map(waits_for_person, episodes))
    label = "" if due or duo.failed else _again_label(episodes, row)
    return {
        "live": compare_view.waiting_for(duo) if person and not due else "",
        "composer": gr.update(visible=person),
        "send": button(compare_view.send_label(duo), interactive=can_send),
        "again": button(label, visible=bool(label)),
        "finish": button("End both", visible=not decided and not duo.is_over),
        "aside": gr.update(visible=told and row.hidden is not None),
        "reference": reference_card(row.hidden, hidden_details(row)) if told else "",
    }


_NOT_ENDED = {
    "result": "",
    "alike": "",
    "reason": gr.update(visible=False),
    "ballot": "",
    "revealed": "",
    "repeat": gr.update(visible=False),
    "following": gr.update(visible=False),
}


def _ended(services: Services, duo: Duo, row: TaskRow) -> dict[str, Any]:
    """What came of it, the vote, and what follows."""
    made = compare_view.state(duo)
    if row.task.kind is TaskKind.BACKEND:
        left, right = (side.episode for side in duo.sides)
        made += compare_results.functions(left, right, times=duo.shows_figures)
    differ = duo.comparison.left_policy != duo.comparison.right_policy
    on = duo.shows_figures and differ
    return {
        "result": f'<section class="made" aria-label="What they made">{made}</section>',
        "alike": "",
        "reason": gr.update(visible=not duo.failed and duo.vote is None),
        "ballot": compare_vote.ballot(duo),
        "revealed": compare_vote.revealed(duo),
        "repeat": button("Play this task again", visible=on),
        "following": button("Next task", visible=on and row.task.source != OWN),
    }


def pages(services: Services, duo: Duo, row: TaskRow, *, knows: bool) -> str:
    """Both web pages in their versions, live; the wanted one where it may be known. "" for code."""
    if row.task.kind is not TaskKind.FRONTEND:
        return ""
    panels = [
        designs.panel(
            services,
            side.episode,
            key=f"{duo.comparison.id}-{letter}",
            label=f"Side {letter}",
            wanted=knows,
        )
        for letter, side in zip(compare_view.LETTERS, duo.sides, strict=True)
    ]
    target = designs.wanted_alone(services, row.hidden) if knows else ""
    both = "".join(f'<div class="side">{panel}</div>' for panel in panels)
    return f'<div class="duo both-pages">{both}</div>{target}' if any(panels) else target


def alike(services: Services, duo: Duo) -> str:
    """How like the wanted page each version of both is; drawing them takes a while."""
    found = [designs.figures(services, side.episode) for side in duo.sides]
    if not any(found):
        return ""
    return "".join(
        f'<div class="side"><h4 class="side-mark">Side {letter}</h4>{figures}</div>'
        for letter, figures in zip(compare_view.LETTERS, found, strict=True)
        if figures
    )


def _person_plays(duo: Duo) -> bool:
    """Whether a person has, or had, the collaborator's seat."""
    return any(side.episode.collaborator == PERSON for side in duo.sides)


def duo_of(services: Services, comparison: Comparison, voter: str, *, is_playing: bool) -> Duo:
    """The comparison in the eyes of a browser; that a side failed is recorded now."""
    store = services.store
    episodes = [store.episode(comparison.left), store.episode(comparison.right)]
    named = named_sides(services, episodes)
    votes = store.votes(comparison.id)
    failed = any(e.stop_reason is StopReason.FAILED for e in episodes)
    if failed and not is_playing and not any(v.choice is Choice.FAILED for v in votes):
        record = (comparison.id, Choice.FAILED, STUDIO)
        votes.append(store.vote(*record, side_named=any(named)))
    vote = next((v for v in votes if v.voter == voter), None)
    if failed:  # one that was taken up again since, and did not fail, is voted on
        vote = vote or next((v for v in votes if v.choice is Choice.FAILED), None)
    sides = [
        Side(e, told, _credit(services, e) if vote else None)
        for e, told in zip(episodes, named, strict=True)
    ]
    kind = store.task(comparison.task_id).kind
    return Duo(comparison, (sides[0], sides[1]), vote, tuple(votes), kind)


def _credit(services: Services, episode: Episode) -> EpisodeCredit | None:
    """What the latest critic said of an episode; None where none did."""
    latest = next(iter(services.store.critics(episode.id)), None)
    return services.store.credit(episode.id, latest) if latest else None


def named_sides(services: Services, episodes: Sequence[Episode]) -> list[bool]:
    """Whether each side said its own name."""
    return [_names_itself(services, episode) for episode in episodes]


def _names_itself(services: Services, episode: Episode) -> bool:
    try:
        version = services.registry.version(episode.policy_id)
    except PolicyError:  # of another log, or gone since
        version = PolicyVersion(episode.policy_id, episode.policy_id)
    return any(names_itself(version, turn.action.raw) for turn in episode.turns)


def setup() -> Shown:
    """The page without a comparison: the ways to begin one."""
    return Shown(
        view=CompareView(),
        setup=gr.update(visible=True),
        stage=gr.update(visible=False),
        head='<span data-address=""></span>',
        turns="",
        live="",
        pages="",
        result="",
        alike="",
        ballot="",
        revealed="",
        reference="",
        aside=gr.update(visible=False),
    )


def fresh(page: Shown) -> Shown:
    """A page that was not open before: nothing is written in its fields."""
    return page._replace(says="", reason=page.reason | {"value": ""})


def voter_of(request: gr.Request) -> str:
    """The browser's own name, which says nothing about its person."""
    found = str(dict(request.cookies or {}).get(VOTER_COOKIE, ""))
    known = _VOTER.fullmatch(found)
    return f"browser {found}" if known else f"session {request.session_hash}"


def waits_for_person(episode: Episode) -> bool:
    """Whether it is the move of the person in the collaborator's seat."""
    return episode.collaborator == PERSON and next_speaker(episode) is Speaker.COLLABORATOR


def _can_move(episode: Episode, row: TaskRow) -> bool:
    """Whether a model has something to say, or the evaluator something that it has not tried."""
    if episode.stop_reason is None:
        return not waits_for_person(episode)
    return episode.stop_reason in _SCORABLE and row.hidden is not None and not episode.evaluation


def _again_label(episodes: Sequence[Episode], row: TaskRow) -> str:
    """What can be done again, in words; "" for nothing."""
    if any(e.stop_reason is None and not waits_for_person(e) for e in episodes):
        return "Let them go on"
    failed = any(e.evaluation and e.evaluation.error for e in episodes)
    return "Score again" if failed and row.hidden is not None else ""


def button(label: str, **state: bool) -> Any:
    """A button's new state, always with its label: one that was hidden has forgotten it."""
    return gr.update(value=label, **state)


def episodes_of(duels: Duels, comparison: Comparison) -> list[Episode]:
    """Both sides as they are in the log, the left one first."""
    store = duels.services.store
    return [store.episode(comparison.left), store.episode(comparison.right)]


def opened(duels: Duels, view: CompareView) -> Comparison:
    """The open comparison. Raises: TaskDataError where none is, StoreError."""
    if view.comparison_id is None:
        raise TaskDataError("No comparison is open. Start one, or open one by its link.")
    return duels.services.store.comparison(view.comparison_id)

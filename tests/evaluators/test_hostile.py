"""Hostile programs get what they must and leave nothing; a sandbox with a hole is found out."""

from __future__ import annotations

import pytest

from evaluators.sandbox import Level, Sandbox, values
from evaluators.sandbox.levels import LAYERS
from tests.evaluators.conftest import offered_levels
from tests.evaluators.hostile import CHEATS, NOT_PROGRAMS, PAYLOADS, SYSTEM, TASK, Payload
from tests.evaluators.suite import failures

NAMES = [p.name for p in PAYLOADS]


def chosen(*names: str) -> list[Payload]:
    return [p for p in PAYLOADS if p.name in names]


def test_there_are_at_least_85_and_each_is_named_once() -> None:
    assert len(NAMES) >= 85
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("level", list(offered_levels()))
def test_every_hostile_program_gets_its_verdict_and_leaves_nothing(level: Level) -> None:
    with Sandbox.start(level=level, workers=2) as sandbox:
        assert sandbox.level is level
        assert failures(sandbox, PAYLOADS) == []


def weakened(level: Level, *holes: str) -> Sandbox:
    """A sandbox without some of its layers, as no start() would give it."""
    layers = tuple(n for n in LAYERS[level] if n not in holes)
    return Sandbox(level, layers, workers=2)


@pytest.mark.skipif(Level.KERNEL not in offered_levels(), reason="no Landlock and seccomp here")
@pytest.mark.parametrize(
    ("holes", "names"),
    [
        (("seccomp",), ("udp", "unix_socket", "traces_its_parent", "survives_its_parent")),
        (("landlock", "seccomp"), ("reads_a_secret_file", "writes_a_file", "tcp")),
        (("rlimits",), ("memory_bomb",)),
    ],
)
def test_a_weakened_sandbox_fails_the_suite(holes: tuple[str, ...], names: tuple[str, ...]) -> None:
    with weakened(Level.KERNEL) as whole:
        assert failures(whole, chosen(*names)) == []
    with weakened(Level.KERNEL, *holes) as sandbox:
        assert failures(sandbox, chosen(*names)) != []


def test_a_comparison_that_trusts_the_program_fails_the_suite(monkeypatch) -> None:
    cheats = chosen("true_for_everything", "string_of_the_number", "tuple_of_the_number")
    with Sandbox.start(allow_unsafe_exec=True) as sandbox:
        assert failures(sandbox, cheats) == []
        monkeypatch.setattr(values, "same", lambda a, b: str(a) in str(b) or b is True)
        assert len(failures(sandbox, cheats)) >= len(cheats)


def test_the_published_mode_gives_no_hostile_program_a_score(compat) -> None:
    right_by_equality = {"complex_number"}  # complex(3) == 3
    for payload in [*CHEATS, *NOT_PROGRAMS, *SYSTEM[:6]]:
        if payload.name in right_by_equality:
            continue
        evaluation = compat.score(TASK, payload.code.replace("{{", "{").replace("}}", "}"))
        assert evaluation.reward is not None, payload.name
        assert evaluation.reward.value == 0, payload.name

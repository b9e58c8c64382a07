"""Errors, each named after the boundary it crossed, and the one place that classifies them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class SweetError(Exception):
    """A failure told to a person: what failed, the value, what is accepted, what next."""


class ConfigError(SweetError):
    """A setting or a command-line argument is wrong."""


class TaskDataError(SweetError):
    """A task file or row is wrong."""


class PolicyError(SweetError):
    """The agent's model could not answer."""


class SimulatorError(SweetError):
    """The simulated collaborator could not answer."""


class EvaluatorError(SweetError):
    """Scoring could not be done."""


class SandboxError(EvaluatorError):
    """The sandbox could not be had, or died."""


class RenderError(EvaluatorError):
    """A page could not be drawn."""


class StoreError(SweetError):
    """The database could not be read or written."""


class TrainingError(SweetError):
    """A training step could not be done."""


@contextmanager
def boundary(error: type[SweetError], what: str) -> Iterator[None]:
    """Turn whatever is raised inside into `error`, with `what` failed in front.

    A SweetError passes as it is: it was classified nearer to its cause.
    """
    try:
        yield
    except SweetError:
        raise
    except Exception as e:
        raise error(f"{what}: {type(e).__name__}: {e}") from e

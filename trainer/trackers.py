"""A round's numbers in TensorBoard, Weights & Biases or Trackio as well, where that is asked for.

The library is imported then and not before; it is none of the studio's own requirements.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sweet.errors import ConfigError, TrainingError, boundary

PROJECT = "sweet-studio"
_LIBRARIES = {
    "tensorboard": ("tensorboard", "tensorboardX"),
    "trackio": ("trackio",),
    "wandb": ("wandb",),
}


def check_tracker(name: str) -> None:
    """Raises: ConfigError where the library of `name` is not installed."""
    libraries = _LIBRARIES.get(name, ())
    if libraries and not any(map(find_spec, libraries)):
        raise ConfigError(
            f"--report-to is {name!r}, but {name} is not installed. Install it with "
            f"`uv pip install {name}` (or `pip install {name}`), or leave --report-to out: a "
            "round's numbers are in its log either way."
        )


class Tracker:
    """One round's run there; what fails there is said once and never ends a round."""

    def __init__(self, name: str, round_id: str, folder: Path, settings: Mapping[str, Any]) -> None:
        """Raises: TrainingError where the library can't begin."""
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS

        self.name = name
        made = LOGGER_TYPE_TO_CLASS[name]
        with boundary(TrainingError, f"--report-to {name} can't begin"):
            if made.requires_logging_directory:
                self._run = made(round_id, folder)
            else:
                self._run = made(PROJECT, name=round_id)
            self._run.start()
            self._run.store_init_configuration(dict(settings))

    def log(self, stage: str, step: int, numbers: Mapping[str, float]) -> None:
        """Pass on what an update gave, as `stage/name`."""
        named = {f"{stage}/{name}": value for name, value in numbers.items()}
        if self._run is None:
            return
        try:
            if self._run.requires_logging_directory:
                self._run.log(named, step=step)
            else:  # these count by themselves, and refuse a step that is lower than the last
                self._run.log({**named, f"{stage}/step": step})
        except Exception:
            logging.getLogger(__name__).warning("%s takes no more:", self.name, exc_info=True)
            self._run = None

    def finish(self) -> None:
        """Let it write what it still holds."""
        if self._run is None:
            return
        try:
            self._run.finish()
        except Exception:
            logging.getLogger(__name__).warning("%s did not finish:", self.name, exc_info=True)

"""Numbers of a round in other tools: Accelerate's own trackers, with a small library."""

from __future__ import annotations

import importlib
import json
import sys

import pytest

from sweet.errors import ConfigError, TrainingError
from sweet.services import Services
from tests.trainer.studio import log_episodes, quick, settings, tiny_model
from trainer.round import run_round
from trainer.settings import RoundSettings
from trainer.trackers import Tracker, check_tracker

# As much of tensorboardX as Accelerate's tracker calls; it writes a line a call.
LIBRARY = """
import json, pathlib
class SummaryWriter:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = (self.folder / "calls.jsonl").open("a")
    def add_hparams(self, values, metric_dict):
        self.file.write(json.dumps(["settings", values]) + "\\n")
    def add_scalar(self, name, value, global_step=None):
        if FULL: raise OSError("no space left")
        self.file.write(json.dumps([name, value, global_step]) + "\\n")
    def flush(self):
        self.file.flush()
    def close(self):
        self.file.close()
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Installs the small library; `full` makes it fail at each number."""

    def install(full: bool = False) -> None:
        folder = tmp_path / "library"
        folder.mkdir()
        (folder / "tensorboardX.py").write_text(f"FULL = {full}\n{LIBRARY}")
        monkeypatch.syspath_prepend(str(folder))
        importlib.invalidate_caches()

    yield install
    sys.modules.pop("tensorboardX", None)


@pytest.mark.parametrize("name", ["tensorboard", "trackio", "wandb"])
def test_a_library_that_is_not_installed_is_named_before_anything_begins(name, monkeypatch):
    monkeypatch.setattr("trainer.trackers.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=rf"{name} is not installed.*pip install {name}"):
        check_tracker(name)


def test_none_needs_no_library():
    check_tracker(RoundSettings().report_to)


def test_a_round_s_numbers_go_to_the_library_too(tmp_path, library):
    library()
    with Services(settings(tmp_path / "data", tiny_model(tmp_path / "model"))) as services:
        log_episodes(services)
        done = run_round(services, quick(algorithm="rft", policy_epochs=1, report_to="tensorboard"))
        metrics = services.store.metrics(done.id)
    lines = (tmp_path / "data" / "rounds" / "tensorboard" / done.id / "calls.jsonl").read_text()
    first, *others = map(json.loads, lines.splitlines())
    assert first[0] == "settings" and first[1]["algorithm"] == "rft"
    assert others == [[f"{m.stage}/{m.name}", m.value, m.step] for m in metrics]


def test_a_library_that_fails_ends_no_round(tmp_path, library, caplog):
    library(full=True)
    tracker = Tracker("tensorboard", "r0001", tmp_path, {})
    for step in (1, 2):
        tracker.log("policy", step, {"loss": 0.5})
    tracker.finish()
    assert [r.getMessage() for r in caplog.records] == ["tensorboard takes no more:"]


def test_a_library_that_can_t_begin_says_why(tmp_path, library):
    library()
    (tmp_path / "r0001").write_text("in the way")
    with pytest.raises(TrainingError, match="--report-to tensorboard can't begin"):
        Tracker("tensorboard", "r0001", tmp_path, {})

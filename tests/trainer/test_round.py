"""Whole rounds on a tiny model: real training, real sandbox, real files."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sweet.errors import ConfigError, TrainingError
from sweet.services import Services
from sweet.store import RoundState
from sweet.types import EpisodeFilter, Task, TaskKind, TaskRow
from tests.trainer.studio import (
    log_episode,
    log_episodes,
    quick,
    settings,
    tiny_model,
    train_rows,
)
from trainer.__main__ import main
from trainer.evaluate import verdict
from trainer.round import run_round
from trainer.settings import RoundSettings
from trainer.workbench import only_round

ROOT = Path(__file__).parents[2]
PAUSED = """
import os, sys, signal
import trainer.fit as fit
saved = fit._save
def save_and_die(path, weights, optimizer, epochs):
    saved(path, weights, optimizer, epochs)
    if path.name == sys.argv[1] and len(epochs) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
fit._save = save_and_die
from pathlib import Path
from sweet.services import Services
from tests.trainer.studio import quick, settings
from trainer.round import run_round
with Services(settings(Path(sys.argv[2]), Path(sys.argv[3]))) as services:
    run_round(services, quick(policy_epochs=2))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def services(tmp_path, model):
    with Services(settings(tmp_path / "data", model)) as opened:
        yield opened


def results(services: Services, round_id: str) -> dict[str, dict]:
    """What each stage gave, without times and the episodes' random ids."""
    found = {}
    for path in sorted((services.settings.data / "rounds" / round_id).glob("[0-9]*.json")):
        result = json.loads(path.read_text())
        del result["seconds"]
        episodes = result.pop("episodes", None)
        if path.name == "05-rank.json":
            result["ranked"] = sorted(json.dumps(turns) for turns in episodes.values())
        found[path.name] = result
    return found


def test_a_round_of_sweet_rl_goes_from_the_log_to_a_version(services):
    log_episodes(services)
    before = services.default_policy()
    done = run_round(services, quick())
    assert (done.state, done.version_id, done.is_promoted) == (RoundState.DONE, "v0001", False)
    names = "collect pairs critic candidates rank policy evaluate register".split()
    assert [name[3:-5] for name in results(services, done.id)] == names
    manifest = services.registry.manifest("v0001")
    assert manifest.version.parent_id == before and manifest.round_id == "r0001"
    assert manifest.settings["critic_epochs"] == 2 and manifest.figures["compared"] == 2
    assert services.default_policy() == before  # nothing was gained: the parent goes on
    assert "not promoted" in manifest.version.note
    metrics = services.store.metrics(done.id)
    assert {m.stage for m in metrics} == {"critic", "policy"}
    explained = (ROOT / "docs" / "metrics.md").read_text()
    assert [m.name for m in metrics if f"`{m.name}`" not in explained] == []
    first = next(m.value for m in metrics if (m.stage, m.name) == ("policy", "margin"))
    assert first == pytest.approx(0, abs=1e-5)
    logged = [one.episode for one in services.store.iter_episodes()]
    assert len(logged) == 4  # validation is not in the log
    assert all(turn.advantage is not None for e in logged for turn in e.turns)
    credits = [services.store.credit(e.id, f"round {done.id}") for e in logged]
    assert [list(c.advantages.values()) for c in credits] == [
        [turn.advantage for turn in e.turns] for e in logged
    ]
    turns = [turn for c in credits for turn in c.candidates.values()]
    assert sum(bool(c.candidates) for c in credits) == 3  # policy_least
    assert all(1 <= sum(c.drawn for c in turn) <= 4 for turn in turns)
    pairs = results(services, done.id)["05-rank.json"]["pairs"]
    assert sum(c.chosen for t in turns for c in t) == pairs > 0
    assert services.policy("v0001").id == "v0001"


@pytest.mark.parametrize(
    ("algorithm", "stages"),
    [
        ("sweet-nohidden", "collect pairs critic candidates rank policy evaluate register"),
        ("sweet-untrained", "collect candidates rank policy evaluate register"),
        ("mtdpo", "collect pairs policy evaluate register"),
        ("rft", "collect policy evaluate register"),
    ],
)
def test_each_algorithm_has_its_stages(services, algorithm, stages):
    log_episodes(services)
    done = run_round(services, quick(algorithm=algorithm, policy_epochs=1))
    assert [name[3:-5] for name in results(services, done.id)] == stages.split()
    assert done.version_id == "v0001"


def test_a_second_round_starts_from_the_version_of_the_first(services):
    log_episodes(services)
    first = run_round(services, quick(algorithm="rft", policy_epochs=1)).version_id
    done = run_round(services, quick(policy=first))
    manifest = services.registry.manifest(str(done.version_id))
    assert manifest.version.parent_id == first
    assert manifest.version.base_model == services.registry.version(first).base_model
    assert {p.name for p in Path(manifest.version.adapter_path).iterdir() if p.is_dir()} == set()


@pytest.mark.parametrize("checkpoint", ["critic.pt", "policy.pt"])
def test_a_killed_round_resumes_and_ends_with_the_same_figures(
    services, tmp_path, model, checkpoint
):
    log_episodes(services)
    services.close()
    command = [sys.executable, "-c", PAUSED, checkpoint, str(services.settings.data), str(model)]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with Services(services.settings) as again:
        assert again.store.round("r0001").state is RoundState.LOST
        resumed = run_round(again, resume="r0001")
        undisturbed = run_round(again, quick(policy_epochs=2))
        one, two = results(again, resumed.id), results(again, undisturbed.id)
        assert one.pop("08-register.json")["version"] == "v0001"
        assert two.pop("08-register.json")["version"] == "v0002"
        assert one == two
        digests = [again.registry.manifest(v).sha256 for v in ("v0001", "v0002")]
        assert len({d["adapter_model.safetensors"] for d in digests}) == 1
        numbers = [
            [(m.stage, m.step, m.name, m.value) for m in again.store.metrics(r)]
            for r in ("r0001", "r0002")
        ]
        assert numbers[0] == numbers[1]
        with pytest.raises(Exception, match="nothing to resume"):
            run_round(again, resume="r0001")


def test_a_round_killed_after_it_registered_makes_no_second_version(services):
    log_episodes(services)
    done = run_round(services, quick(algorithm="rft", policy_epochs=1))
    (services.settings.data / "rounds" / done.id / "04-register.json").unlink()
    services.store._set_round(done.id, "ended_at = NULL, process_id = 0")
    assert run_round(services, resume=done.id).version_id == done.version_id
    assert [v.id for v in services.policies() if v.adapter_path] == ["v0001"]


def test_a_round_whose_folder_was_deleted_keeps_its_number(services):
    for _ in range(2):
        with pytest.raises(TrainingError, match="Too few"):
            run_round(services, quick())
        shutil.rmtree(services.settings.data / "rounds" / services.store.rounds()[0].id)
    assert [r.id for r in services.store.rounds()] == ["r0002", "r0001"]


def test_fresh_episodes_are_played_into_the_log_and_learned_from(services):
    with pytest.raises(TrainingError, match=r"reward"):
        run_round(services, quick(fresh_tasks=2, use_log=False))
    page = services.store.search(EpisodeFilter(task_set="mini-backend/train"))
    assert page.count == 4
    assert services.store.round("r0001").state is RoundState.FAILED
    (batch,) = services.store.batches()
    assert batch.kind == "round r0001" and batch.finished == 4


def test_a_second_round_is_refused_while_one_runs(services):
    log_episodes(services)
    code = (
        "import sys; from pathlib import Path\n"
        "from sweet.services import Services\n"
        "from tests.trainer.studio import settings\n"
        "from trainer.workbench import Workbench, only_round\n"
        "from trainer.settings import RoundSettings\n"
        "with Services(settings(Path(sys.argv[1]), Path(sys.argv[2]))) as s, only_round(s):\n"
        "    Workbench.new(s, RoundSettings().starting_from('p'))\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    model = services.settings.agent.model
    command = [sys.executable, "-c", code, str(services.settings.data), model]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout and other.stdin
        assert other.stdout.readline() == "held\n"
        with pytest.raises(TrainingError, match=r"Another round is running: r0001 \(sweet from p"):
            run_round(services, quick())
        other.stdin.close()
    assert [r.id for r in services.store.rounds()] == ["r0001"]
    with only_round(services):
        pass  # free again


@pytest.mark.parametrize(
    ("rewards", "changes", "message"),
    [
        ((), {}, "Too few episodes: there is none"),
        ((None, None), {}, "Left out: 4 no reward"),
        ((1.0,), {}, "No two of the 2 scored episodes are of the same task"),
        ((1.0, 1.0), {}, "All 4 scored episodes have the same reward, 1"),
        ((0.0, 0.0), {"algorithm": "rft"}, "no success to repeat"),
        ((1.0, 0.0), {"critic_lr": 1e30}, "no number any more"),
        ((1.0, 0.0), {"from_policy": "nobody"}, "Too few episodes"),
    ],
)
def test_what_can_t_be_learned_from_is_said_and_changes_nothing(
    services, rewards, changes, message
):
    log_episodes(services, rewards)
    before = [one.episode for one in services.store.iter_episodes()]
    served = services.default_policy()
    with pytest.raises(TrainingError, match=message):
        run_round(services, quick(**changes))
    assert [one.episode for one in services.store.iter_episodes()] == before
    assert services.default_policy() == served
    assert [v.id for v in services.policies() if v.adapter_path] == []
    round = services.store.round("r0001")
    assert round.state is RoundState.FAILED and message[:8] in str(round.error)


def test_tasks_for_measuring_and_tasks_without_hidden_information_are_left_out(services):
    held = TaskRow(Task("held", TaskKind.BACKEND, "d", "test", "x"), train_rows()[0].hidden)
    own = TaskRow(Task("own", TaskKind.BACKEND, "d", "own", "own"), None)
    services.store.add_tasks([held, own])
    log_episode(services, held, 0, 1.0)
    log_episode(services, own, 0, 1.0)
    with pytest.raises(TrainingError, match=r"1 no hidden information.*sweet-nohidden"):
        run_round(services, quick())
    log_episodes(services)
    done = run_round(services, quick(algorithm="mtdpo", policy_epochs=1))
    collected = results(services, done.id)["01-collect.json"]
    assert collected["chosen"] == 5  # the own task's has a reward, and no critic has to read
    assert collected["left_out"] == {"task held out for measuring": 1}
    with pytest.raises(TrainingError, match="is for measuring"):
        run_round(services, quick(fresh_tasks=2, fresh_set="mini-backend/validation"))


def compared(gain: float | None, low: float = -1.0) -> dict:
    ci = None if gain is None else [low, 1.0]
    return {"gain": gain, "gain_ci95": ci, "compared": 0 if gain is None else 100}


@pytest.mark.parametrize(
    ("found", "rule", "promoted"),
    [
        (compared(0.05), {}, True),
        (compared(0.0), {}, False),
        (compared(-0.1), {}, False),
        (compared(0.05), {"promote_margin": 0.05}, False),
        (compared(0.05), {"promote": "never"}, False),
        (compared(0.05, low=-0.01), {"promote": "certain"}, False),
        (compared(0.05, low=0.01), {"promote": "certain"}, True),
        (compared(None), {}, False),
    ],
)
def test_the_rule_says_what_is_promoted_and_why(found, rule, promoted):
    is_better, why = verdict(found, RoundSettings(**rule))
    assert is_better is promoted
    assert why.startswith("promoted" if promoted else "not promoted")


def test_a_child_that_beats_its_parent_is_served_from_then_on(services, monkeypatch):
    log_episodes(services)
    better = {"parent": {}, "child": {}, **compared(0.2)}
    monkeypatch.setattr("trainer.round.compare", lambda bench: better)
    done = run_round(services, quick(algorithm="rft", policy_epochs=1))
    assert done.is_promoted is True
    assert services.default_policy() == done.version_id == "v0001"
    assert services.registry.rollback() is None


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("algorithm", "ppo"),
        ("credit", "x"),
        ("critic_lr", -1.0),
        ("critic_lr", float("nan")),
        ("candidates", 1),
        ("policy_share", 1.5),
        ("fresh_per_task", 1),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_accepted(setting, value):
    with pytest.raises(ConfigError, match=f"--{setting.replace('_', '-')} is .*must be"):
        RoundSettings(**{setting: value})


def test_web_pages_have_defaults_of_their_own_unless_one_is_given():
    functions, pages = RoundSettings(), RoundSettings(tasks="frontend")
    assert (functions.credit, functions.critic_beta, functions.critic_epochs) == ("turn_mean", 1, 4)
    assert (pages.credit, pages.critic_beta, pages.critic_epochs) == ("turn_sum", 0.1, 1)
    assert pages.changed() == {"tasks": "frontend"}
    given = RoundSettings(tasks="frontend", credit="turn_mean", critic_nll=0.0, fresh_set="")
    assert given.changed() == {"tasks": "frontend", "credit": "turn_mean", "critic_nll": 0.0}
    assert given.fresh_set == "mini-frontend/train"
    assert RoundSettings(**given.changed()) == given


def test_the_command_runs_a_round_and_refuses_what_it_can_t(tmp_path, model, monkeypatch, capsys):
    for name, value in (("DATA", tmp_path), ("AGENT__MODEL", model), ("AGENT__MAX_TOKENS", 8)):
        monkeypatch.setenv(f"SWEET_{name}", str(value))
    monkeypatch.setenv("SWEET_MAX_TURNS", "2")
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert main(["round", "--algorithm", "ppo"]) == 2
        assert main(["round", "--resume", "r0009"]) == 2
        assert main(["round", "--resume", "r0001", "--seed", "1"]) == 2
        assert main(["round"]) == 2
        told = capsys.readouterr().err
        assert "no round 'r0009'" in told and "leave out --seed" in told
        assert "Too few episodes" in told
        with Services(settings(tmp_path, model)) as services:
            log_episodes(services)
        options = ["--algorithm", "rft", "--policy-epochs", "1", "--validation-n", "2"]
        assert main(["round", "--json", "--lora-rank", "2", "--device", "cpu", *options]) == 0
    finally:
        signal.signal(signal.SIGTERM, handler)
    value = json.loads(capsys.readouterr().out)
    assert (value["version_id"], value["state"]) == ("v0001", "done")
    assert value["settings"]["lora_rank"] == 2

"""Rounds with a value head and with a judge, and a whole model whose round is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweet.errors import ConfigError, TrainingError
from sweet.services import Services
from sweet.settings import JudgeSettings
from tests.sweet.engines.server import refuses, says, serving
from tests.trainer.critics.test_judge import judging
from tests.trainer.studio import log_episodes, quick, settings, tiny_model
from trainer.round import run_round

ROOT = Path(__file__).parents[2]
WHOLE = {"algorithm": "sweet-value", "tuning": "full", "critic_lr": 1e-3, "policy_epochs": 2}
KILLED = """
import json, os, signal, sys
from pathlib import Path
import trainer.fit as fit
saved = fit._save
def save_and_die(path, weights, optimizer, epochs):
    saved(path, weights, optimizer, epochs)
    if path.name == sys.argv[1] and len(epochs) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
fit._save = save_and_die
from sweet.services import Services
from tests.trainer.studio import quick, settings
from trainer.round import run_round
with Services(settings(Path(sys.argv[2]), Path(sys.argv[3]))) as services:
    run_round(services, quick(**json.loads(sys.argv[4])))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


def result(folder: Path, round_id: str, stage: str) -> dict[str, Any]:
    (path,) = (folder / "rounds" / round_id).glob(f"[0-9]*-{stage}.json")
    found = json.loads(path.read_text())
    del found["seconds"]
    return found


@pytest.mark.parametrize("checkpoint", ["critic.pt", "policy.pt"])
def test_a_killed_round_of_a_value_head_on_a_whole_model_ends_the_same(tmp_path, model, checkpoint):
    with Services(settings(tmp_path, model)) as services:
        log_episodes(services)
    command = [sys.executable, "-c", KILLED, checkpoint, str(tmp_path), str(model)]
    killed = subprocess.run([*command, json.dumps(WHOLE)], cwd=ROOT, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with Services(settings(tmp_path, model)) as services:
        run_round(services, resume="r0001")
        run_round(services, quick(**WHOLE))
        for stage in ("critic", "rank", "policy", "evaluate"):
            one, two = (result(tmp_path, r, stage) for r in ("r0001", "r0002"))
            assert one == two
        digests = [services.registry.manifest(v).sha256 for v in ("v0001", "v0002")]
        assert digests[0] == digests[1] and "model.safetensors" in digests[0]
        assert "value_head.safetensors" not in digests[0]  # the critic's, not the policy's
        assert (tmp_path / "rounds" / "r0001" / "critic" / "value_head.safetensors").is_file()
        logged = [one.episode for one in services.store.iter_episodes()]
        assert all(turn.advantage is not None for e in logged for turn in e.turns)


def with_judge(folder: Path, model: Path, url: str) -> Services:
    judge = JudgeSettings(model="small", base_url=url)
    return Services(settings(folder, model).model_copy(update={"judge": judge}))


def test_a_judge_s_scores_make_the_pairs_and_unusable_ones_make_none(tmp_path, model):
    asked = judging(lambda m: "fine" if len(m) % 3 == 0 else f"Well.\nSCORE: {len(m) % 11}")
    with serving(asked) as server, with_judge(tmp_path, model, server.base_url) as services:
        log_episodes(services)
        run_round(services, quick(algorithm="sweet-judge", candidates=8, validation_n=1))
        ranked = result(tmp_path, "r0001", "rank")
        turns_of = ranked["episodes"].values()
        scores = [s for turns in turns_of for turn in turns for s in turn["scores"]]
        assert ranked["without_score"] == scores.count(None)
        assert {None} != set(scores) and set(scores) <= {None, *range(-5, 6)}
        for turns in turns_of:
            for turn in turns:
                for chosen, rejected in turn["pairs"]:
                    assert turn["scores"][chosen] > turn["scores"][rejected]
        stages = [p.name[3:-5] for p in sorted((tmp_path / "rounds" / "r0001").glob("0*.json"))]
        assert stages == "collect candidates rank policy evaluate register".split()
        keys = [json.loads(x)[0] for x in (tmp_path / "rounds/r0001/judge.jsonl").open()]
        assert len(keys) == len(set(keys)) == len(server.asked)


def test_too_few_scores_make_no_pairs_and_the_round_says_so(tmp_path, model):
    with serving(says("no idea")) as server, with_judge(tmp_path, model, server.base_url) as s:
        log_episodes(s)
        with pytest.raises(TrainingError, match="No turn has two candidates"):
            run_round(s, quick(algorithm="sweet-judge"))
        ranked = result(tmp_path, "r0001", "rank")
        assert ranked["pairs"] == 0 and ranked["with_advantages"] == 0
        assert all(
            turn.advantage is None for e in s.store.iter_episodes() for turn in e.episode.turns
        )


def test_a_judge_that_is_gone_ends_the_round_which_goes_on_when_it_is_back(tmp_path, model):
    with serving(refuses(401)) as server, with_judge(tmp_path, model, server.base_url) as services:
        log_episodes(services)
        with pytest.raises(TrainingError, match=r"answered none of .* calls.*resume"):
            run_round(services, quick(algorithm="sweet-judge", validation_n=1))
    back = judging(lambda m: f"SCORE: {len(m) % 11}")
    with serving(back) as server, with_judge(tmp_path, model, server.base_url) as services:
        assert run_round(services, resume="r0001").version_id == "v0001"


def test_without_a_judge_no_round_begins_and_none_goes_on(tmp_path, model):
    with serving(refuses(401)) as server, with_judge(tmp_path, model, server.base_url) as services:
        log_episodes(services)
        with pytest.raises(TrainingError):
            run_round(services, quick(algorithm="sweet-judge"))
    with Services(settings(tmp_path, model)) as services:
        for again in ({"resume": "r0001"}, {"settings": quick(algorithm="sweet-judge")}):
            with pytest.raises(ConfigError, match=r"No judge is configured.*SWEET_JUDGE__MODEL"):
                run_round(services, **again)
        assert [r.id for r in services.store.rounds()] == ["r0001"]

"""Full fine-tuning: where it starts, what it saves, how it is resumed, and that it is served."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest
import torch

from sweet.services import Services
from sweet.settings import ModelSettings, Settings
from sweet.types import Observation, PolicyVersion, TaskKind
from tests.fakes import task_row
from tests.sweet.engines.server import says as answers
from tests.sweet.engines.server import serving
from tests.trainer.studio import log_episodes, quick, settings, tiny_model
from tests.trainer.test_pairs import episode
from trainer.candidates import Candidate
from trainer.critics.ratios import Critic, CriticSettings
from trainer.fit import FitSettings
from trainer.learner import Learner, load_learner
from trainer.pairs import episode_pairs
from trainer.policy import PolicySettings, fit_policy, pair_tree
from trainer.round import run_round
from trainer.settings import RoundSettings
from trainer.tree import sequence_logps

ROW = task_row()
ROWS = {ROW.task.id: ROW}
EPISODES = [episode(f"e{i}", reward, ROW.task.id) for i, reward in enumerate((1.0, 0.0, 0.0))]
IDS = [[1, 20, 30, 40, 50]]


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> str:
    return str(tiny_model(tmp_path_factory.mktemp("model")))


def learner(source: str, parent: str | None = None, trained: Path | None = None) -> Learner:
    return load_learner(source, parent, rank=2, seed=0, device="cpu", trained=trained, whole=True)


def fitted(source: str, folder: Path, report=lambda *_: None, parent=None):
    """A critic and each epoch's numbers."""
    made = Critic(learner(source, parent), "plain", CriticSettings(nll_coefficient=0.0))
    how = FitSettings(lr=1e-3, epochs=2, batch=2, seed=1)
    pairs = episode_pairs(EPISODES, ROWS)
    numbers = made.fit(pairs, ROWS, how, checkpoint=folder / "c.pt", report=report)
    return made, numbers


def logps(one: Learner) -> torch.Tensor:
    with torch.no_grad():
        return sequence_logps(one.model, IDS)


def test_every_weight_is_trained_from_margin_0_and_loss_ln_2(source, tmp_path):
    seen = []
    made, numbers = fitted(source, tmp_path, lambda *update: seen.append(update[2]))
    assert seen[0]["margin"] == pytest.approx(0, abs=1e-5)
    assert seen[0]["loss"] == pytest.approx(math.log(2), abs=1e-5)
    assert numbers[-1]["margin"] > numbers[0]["margin"]
    before = dict(learner(source).model.named_parameters())
    moved = [not torch.equal(p, before[n]) for n, p in made.learner.model.named_parameters()]
    assert moved and all(moved)


def test_the_policy_s_step_begins_at_ln_2_as_well(source, tmp_path):
    one, seen = learner(source), []
    turns = [[(Candidate("Which?"), Candidate("I guess"))], [(Candidate("Now?"), Candidate("3"))]]
    tree = pair_tree(one, "plain", ROW, EPISODES[0], turns)
    assert tree
    fit_policy(
        one,
        [tree],
        PolicySettings(0.1, 0.0),
        FitSettings(lr=1e-3, epochs=3, batch=8),
        checkpoint=tmp_path / "p.pt",
        report=lambda step, total, numbers: seen.append(numbers),
    )
    assert seen[0]["margin"] == pytest.approx(0, abs=1e-5)
    assert seen[0]["loss"] == pytest.approx(math.log(2), abs=1e-5)
    assert seen[-1]["margin"] > 0


def test_the_start_comes_back_and_goes_again(source, tmp_path):
    made, _ = fitted(source, tmp_path)
    after = logps(made.learner)
    with made.learner.at_start():
        assert torch.equal(logps(made.learner), logps(learner(source)))
    assert torch.equal(logps(made.learner), after)
    with pytest.raises(RuntimeError), made.learner.at_start():
        raise RuntimeError
    assert torch.equal(logps(made.learner), after)
    best, worse, _ = made.advantages(ROWS, EPISODES)
    assert sum(best.values()) > sum(worse.values())


def test_what_is_saved_is_a_model_of_its_own(source, tmp_path):
    made, _ = fitted(source, tmp_path)
    folder = made.learner.save(tmp_path / "critic")
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
        p.name for p in folder.iterdir()
    }
    assert torch.equal(logps(learner(str(folder))), logps(made.learner))
    again = learner(source, trained=folder)
    assert torch.equal(logps(again), logps(made.learner))
    with again.at_start():
        assert torch.equal(logps(again), logps(learner(source)))


def test_a_parent_s_adapter_is_merged_into_the_start(source, tmp_path):
    adapted = load_learner(source, None, rank=2, seed=0, device="cpu")
    with torch.no_grad():
        for name, weight in adapted.model.named_parameters():
            if "lora_B" in name:
                weight.fill_(0.02)
    parent = str(adapted.save(tmp_path / "parent"))
    assert torch.allclose(logps(learner(source, parent)), logps(adapted), atol=1e-4)
    assert not torch.allclose(logps(learner(source)), logps(adapted), atol=1e-2)
    made, numbers = fitted(source, tmp_path, parent=parent)
    with made.learner.at_start():
        assert torch.allclose(logps(made.learner), logps(adapted), atol=1e-4)
    assert numbers[0]["loss"] < 0.75


def test_a_run_that_was_killed_between_epochs_ends_with_the_same_weights(source, tmp_path):
    whole, numbers = fitted(source, tmp_path)
    (tmp_path / "b").mkdir()

    def break_off(step, total, values):
        if step > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(source, tmp_path / "b", break_off)
    resumed, again = fitted(source, tmp_path / "b")
    assert again == numbers
    pairs = zip(whole.learner.weights, resumed.learner.weights, strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def says(services: Services, version: str) -> str:
    seen = Observation(TaskKind.BACKEND, "Add a fee.", turns_left=2)
    drawn = services.policy(version).draw(seen, seed=3)
    return asyncio.run(drawn).text


def test_a_version_is_served_and_the_next_rounds_start_from_it(source, tmp_path):
    changes = {"validation_n": 1, "policy_epochs": 1, "policy_lr": 3e-3}
    with Services(settings(tmp_path, Path(source))) as services:
        log_episodes(services)
        base = services.default_policy()
        first = run_round(services, quick(tuning="full", critic_lr=1e-3, **changes))
        version = services.registry.verified(str(first.version_id))
        folder = tmp_path / "policies" / "v0001"
        assert (version.model_path, version.adapter_path) == (str(folder), None)
        assert version.base_model == source
        assert (folder / "model.safetensors").is_file()
        assert says(services, "v0001") == says(services, "v0001") != says(services, base)
        # an adapter on the whole model, and then a whole model with that adapter merged in
        run_round(services, quick(algorithm="rft", policy="v0001", **changes))
        second = services.registry.verified("v0002")
        assert second.model_path == str(folder) and second.adapter_path
        assert says(services, "v0002") != says(services, "v0001")
        run_round(services, quick(algorithm="rft", tuning="full", policy="v0002", **changes))
        assert services.registry.version("v0003").model_path == str(tmp_path / "policies" / "v0003")
        assert says(services, "v0003")


def test_a_server_is_asked_for_a_whole_model_by_its_version(tmp_path, source):
    with serving(answers("Which?")) as server:
        agent = ModelSettings(model="small", base_url=server.base_url)
        with Services(Settings(data=tmp_path, agent=agent)) as services:
            folder = str(tmp_path / "policies" / "v0007")
            seat = services.seated(PolicyVersion("v0007", "small", model_path=folder))
            seen = Observation(TaskKind.BACKEND, "Add a fee.", turns_left=2)
            assert asyncio.run(seat.draw(seen, seed=1)).text == "Which?"
        assert server.asked[-1][2]["model"] == "v0007"


def test_rates_are_the_tuning_s_own_unless_given():
    assert RoundSettings().critic_training == (1e-3, 4, 8)
    assert RoundSettings(algorithm="rft").policy_training == (1e-3, 4, 32)
    whole = RoundSettings(tuning="full", algorithm="mtdpo")
    assert (whole.critic_training[0], whole.policy_training) == (2e-7, (2e-7, 4, 8))
    assert RoundSettings(tuning="full", critic_lr=1e-5).critic_training[0] == 1e-5

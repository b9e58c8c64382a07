"""Rounds on votes and on imported pairs: real training on a tiny model."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from sweet.errors import TrainingError
from sweet.exchange import export_preferences, import_episodes
from sweet.services import Services
from sweet.store import Choice
from sweet.types import Episode, Feedback, TaskRow
from tests.trainer.studio import log_episodes, quick, settings, tiny_model, train_rows
from tests.trainer.test_people import GOOD, answer, begin, own_task, result, say
from trainer.preferences import preference_pairs
from trainer.preview import preview
from trainer.round import run_round


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def services(tmp_path, model):
    with Services(settings(tmp_path / "data", model)) as opened:
        yield opened


def voted(services: Services, better: Episode, worse: Episode, *voters: str, **more) -> None:
    comparison = services.store.start_comparison(better.id, worse.id)
    side = Choice.LEFT if comparison.left == better.id else Choice.RIGHT
    for voter in voters or ("ann",):
        services.store.vote(comparison.id, side, voter, **more)


def two_episodes(services: Services, row: TaskRow, *texts: str) -> list[Episode]:
    """Unscored episodes of a task that differ in their first message alone."""
    services.store.add_tasks([row])
    return [
        answer(services, say(services, begin(services, row, seed), text), GOOD, None)
        for seed, text in enumerate(texts, start=20)
    ]


def test_votes_alone_make_a_round_of_pairs_of_episodes_and_of_turns(services):
    one, other = two_episodes(services, train_rows()[0], "How much is it?", "Hm?")
    voted(services, one, other)
    found = preview(services, quick())
    assert (found.pairs_by_source, found.turn_pairs_by_source) == ({"vote": 1}, {"vote": 1})
    assert (found.episodes, found.outcome.n, found.outcome.value) == (2, 0, None)
    assert found.problem == ""
    run_round(services, quick())
    collected = result(services, "collect")
    assert collected["by_source"] == {"vote": 2} and collected["success_rate"] is None
    assert collected["people"] == {"turn": {"vote": 1}, "trajectory": {"vote": 1}}
    pairs = result(services, "pairs")
    assert (pairs["by_source"], pairs["episodes"]) == ({"vote": 1}, [[one.id, other.id]])
    counted = result(services, "policy")["by_source"]
    assert counted["vote"] == 1 and counted["human"] == 0 and counted["critic"] > 0


def test_votes_have_a_weight_of_their_own_and_0_leaves_them_out(services):
    log_episodes(services)
    one, other = two_episodes(services, train_rows()[0], "How much is it?", "Hm?")
    voted(services, one, other)
    assert preview(services, quick(vote_pairs=0.0)).pairs_by_source == {"outcome": 2}
    how = {"policy_epochs": 1, "policy_batch": 1000, "policy_nll": 0.0, "vote_pairs": 0.25}
    run_round(services, quick(algorithm="mtdpo", **how))
    assert result(services, "pairs")["by_source"] == {"outcome": 2, "vote": 1}
    (epoch,) = result(services, "policy")["epochs"]
    assert epoch["loss"] == pytest.approx(math.log(2) * 2.25 / 3, abs=1e-5)


def test_only_blind_votes_count_where_that_is_asked(services):
    one, other = two_episodes(services, train_rows()[0], "How much is it?", "Hm?")
    voted(services, one, other, side_named=True)
    assert preview(services, quick()).pairs == 1
    assert preview(services, quick(blind_votes=True)).pairs == 0
    voted(services, one, other, "bob")
    assert preview(services, quick(blind_votes=True)).pairs == 1


def test_votes_that_can_t_be_learned_from_are_counted_with_the_reason(services):
    own = services.own_task("Make fee(x).")
    held = TaskRow(replace(train_rows()[0].task, id="held", split="test"), train_rows()[0].hidden)
    for row in (own, held):
        one, other = two_episodes(services, row, "How much is it?", "Hm?")
        voted(services, one, other)
    found = preview(services, quick())
    assert found.people_left_out == {"no hidden information": 1, "task held out for measuring": 2}
    assert found.turn_pairs == 1  # a turn needs no critic that reads
    whole = preview(services, quick(algorithm="mtdpo"))
    assert (whole.pairs, whole.turn_pairs) == (1, 0)
    assert whole.people_left_out == {"task held out for measuring": 1}
    assert preview(services, quick(from_tasks="own")).people_left_out == {
        "no hidden information": 1
    }


def test_what_was_said_of_a_turn_outright_counts_more_than_a_vote_on_the_whole(services):
    one, other = two_episodes(services, train_rows()[0], "How much is it?", "Hm?")
    for episode, rating in ((one, 1.0), (other, -1.0)):
        services.store.add_feedback(Feedback(episode.id, 0, rating))
    voted(services, other, one)
    found = preview(services, quick())
    assert found.turn_pairs_by_source == {"human": 1} and found.pairs_by_source == {"vote": 1}


def test_pairs_of_turns_alone_teach_the_policy_or_the_way_to_that_is_said(services):
    own_task(services, (None, None))
    with pytest.raises(TrainingError, match=r"made 1 pair of turns.*--algorithm turns"):
        run_round(services, quick(algorithm="sweet-nohidden"))
    assert "--algorithm turns" in preview(services, quick()).problem
    found = preview(services, quick(algorithm="turns", fresh_tasks=5))
    assert (found.episodes, found.pairs, found.turn_pairs, found.fresh) == (0, 0, 1, 0)
    assert found.problem == ""
    done = run_round(services, quick(algorithm="turns", fresh_tasks=5, policy_lr=1e-2))
    assert done.version_id == "v0001"
    learned = result(services, "policy", done.id)
    assert learned["by_source"] == {"critic": 0, "human": 1}
    assert "gradient_norm" in learned and learned["gradient_norm"] > 0
    with pytest.raises(TrainingError, match=r"no pair of turns.*Retry or rewrite"):
        run_round(services, quick(algorithm="turns", human_pairs=0.0))


def test_scored_episodes_without_a_pair_say_that_votes_would_help(services):
    log_episodes(services, (1.0, 1.0))
    with pytest.raises(TrainingError, match=r"same reward, 1.*Votes on two episodes"):
        run_round(services, quick())


def imported(services: Services, tmp_path: Path, *lines: dict) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert import_episodes(services.store, path).added == len(lines)


def line(prompt: list[str], chosen: list[str], rejected: list[str], **more) -> dict:
    """A pair in TRL's shape; who speaks alternates, the person first in the prompt."""

    def messages(texts: list[str], first: int) -> list[dict]:
        roles = ("user", "assistant")
        return [{"role": roles[(first + n) % 2], "content": t} for n, t in enumerate(texts)]

    sides = {"chosen": messages(chosen, 1), "rejected": messages(rejected, 1)}
    return {"prompt": messages(prompt, 0), **sides, **more}


def test_imported_pairs_teach_without_an_episode_of_this_log(services, tmp_path):
    deep = ["Make fee(x).", "For whom?", "For all."]
    imported(
        services,
        tmp_path,
        line(deep, ["How much is it?"], ["Hm?"]),
        line(["Make fee(x)."], ["How much?", "Five.", "Fine."], ["Hm?", "What?", "Eh."]),
    )
    found = preview(services, quick(algorithm="turns"))
    assert found.turn_pairs_by_source == {"imported": 1}
    run_round(services, quick(algorithm="turns"))
    assert result(services, "policy")["by_source"]["imported"] == 1
    run_round(services, quick(algorithm="mtdpo", policy_epochs=1))
    assert result(services, "pairs", "r0002")["by_source"] == {"imported": 1}
    assert preview(services, quick(algorithm="turns", imported_pairs=0.0)).turn_pairs == 0
    assert preview(services, quick(algorithm="turns", from_collaborator="person")).turn_pairs == 0
    assert "Too few episodes" in preview(services, quick()).problem


def test_an_imported_pair_of_another_log_s_task_is_not_taken_for_this_log_s(services, tmp_path):
    log_episodes(services)
    row = train_rows()[0]
    whole = ["How much?", "Five.", "Fine."], ["Hm?", "What?", "Eh."]
    same = line([row.task.description], *whole, task_id=row.task.id)
    other = line(["Something else."], *whole, task_id=row.task.id)
    imported(services, tmp_path, same, other)
    found = preview(services, quick())
    assert found.pairs_by_source == {"outcome": 2, "imported": 1}
    assert found.people_left_out == {"no hidden information": 1}
    assert preview(services, quick(algorithm="mtdpo")).pairs_by_source["imported"] == 2


def test_an_imported_pair_about_a_task_for_measuring_is_left_out_whatever_its_id(
    services, tmp_path
):
    task = replace(train_rows()[0].task, id="held", split="test", description="Held out.")
    services.store.add_tasks([TaskRow(task, None)])
    imported(services, tmp_path, line(["Held out."], ["A?"], ["B?"]), line(["x"], ["A?"], ["B?"]))
    found = preview(services, quick(algorithm="turns"))
    assert found.turn_pairs == 1
    assert found.people_left_out == {"task held out for measuring": 1}


def test_pairs_that_the_log_makes_itself_are_not_counted_again_when_imported(services, tmp_path):
    one, other = two_episodes(services, train_rows()[0], "How much is it?", "Hm?")
    voted(services, one, other)
    log_episodes(services)
    path = tmp_path / "pairs.jsonl"
    assert export_preferences(preference_pairs(services.store), path) == 4
    assert import_episodes(services.store, path).added == 4  # the import did not look
    found = preview(services, quick())
    assert found.pairs_by_source == {"outcome": 2, "vote": 1}
    assert found.turn_pairs_by_source == {"vote": 1}


def test_a_resumed_round_learns_from_the_votes_that_it_began_with(services, tmp_path):
    one, other = two_episodes(services, train_rows()[0], "How much is it?", "Hm?")
    voted(services, one, other)
    done = run_round(services, quick(algorithm="mtdpo", policy_epochs=1))
    first = result(services, "policy")
    folder = services.settings.data / "rounds" / done.id
    for path in folder.glob("0[2-9]-*.json"):
        path.unlink()
    (folder / "policy.pt").unlink(missing_ok=True)
    services.store._set_round(done.id, "ended_at = NULL, process_id = 0")
    voted(services, other, one, "bob", "cid")
    imported(services, tmp_path, line(["Make."], ["A?", "b", "C."], ["D?", "e", "F."]))
    run_round(services, resume=done.id)
    assert result(services, "policy")["epochs"] == first["epochs"]
    assert result(services, "pairs")["episodes"] == [[one.id, other.id]]

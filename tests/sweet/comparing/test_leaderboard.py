from __future__ import annotations

import pytest

from evaluators.figures import Figure, mean, rate
from evaluators.preference import Met
from sweet.comparing.leaderboard import Row, leaderboard, over_rounds, sorted_rows, turn_budgets
from sweet.comparing.paper import PAPER
from sweet.errors import ConfigError
from sweet.store import Choice, EpisodeStore, Voter
from sweet.types import EpisodeFilter, Evaluation, Reward, StopReason, TaskKind, Verdict
from tests.sweet.store.samples import TASK, answers, asks, evaluation, finished, task_row


@pytest.fixture
def store(tmp_path):
    with EpisodeStore.open(tmp_path / "sweet.db") as opened:
        opened.add_tasks([task_row(1), task_row(2, split="train")])
        yield opened


def played(store, policy: str, value: float, turns: int = 2, task_id: str = TASK.id, **more):
    """A scored episode of a policy, answered in its last turn."""
    episode = store.start_episode(task_id, policy, "scripted", 7, more.pop("max_turns", 10))
    for index in range(turns - 1):
        store.append_action(episode.id, index, asks(f"Question {index}?"))
        store.append_reply(episode.id, index, "five")
    store.append_action(episode.id, turns - 1, answers())
    store.finish(episode.id, StopReason.ANSWERED, answers().artifact)
    return store.add_evaluation(episode.id, more.get("scored") or evaluation(value, value))


def voted(store, winner: str, loser: str, task_id: str = TASK.id, **more):
    """A vote of one policy over another."""
    ids = [played(store, policy, 1.0, task_id=task_id).id for policy in (winner, loser)]
    comparison = store.start_comparison(*ids, is_blind=more.pop("is_blind", True))
    side = Choice.LEFT if comparison.left_policy == winner else Choice.RIGHT
    return store.vote(comparison.id, more.pop("choice", side), more.pop("voter", "ann"), **more)


def row_of(board, policy: str, task_set: str = "mini-backend/test"):
    (row,) = [r for r in board.rows if (r.policy_id, r.task_set) == (policy, task_set)]
    return row


def test_every_figure_has_its_n_and_its_interval(store):
    for value in (1.0, 1.0, 0.0, 1.0):
        played(store, "v1", value, turns=3)
    row = row_of(leaderboard(store), "v1")
    assert (row.n, row.evaluator) == (4, "backend-fixed")
    assert row.success == rate(3, 4)
    assert (row.tests_passed.value, row.tests_passed.n) == (0.75, 4)
    assert (row.turns.value, row.turns.low) == (3.0, 3.0)
    assert (row.cosine.value, row.cosine.n, row.win_rate.n) == (None, 0, 0)


def test_tokens_that_are_not_known_are_not_counted_as_none(store):
    played(store, "v1", 1.0)  # its final answer has no usage
    episode = store.start_episode(TASK.id, "v1", "scripted", 7)
    store.append_action(episode.id, 0, asks())
    store.append_reply(episode.id, 0, "five")
    store.finish(episode.id, StopReason.TURN_LIMIT)
    store.add_evaluation(episode.id, evaluation(0.0))
    row = row_of(leaderboard(store), "v1")
    assert (row.tokens.value, row.tokens.n, row.n) == (15.0, 1, 2)


def test_evaluators_and_task_sets_are_never_mixed(store):
    played(store, "v1", 1.0)
    played(store, "v1", 0.0, task_id="task-2")
    compat = Evaluation(Reward(0.0, {"tests_passed": 0.5}, "backend-compat"), Verdict.WRONG)
    played(store, "v1", 0.0, scored=compat)
    rows = leaderboard(store).rows
    assert {(r.task_set, r.evaluator, r.success.value) for r in rows} == {
        ("mini-backend/test", "backend-fixed", 1.0),
        ("mini-backend/train", "backend-fixed", 0.0),
        ("mini-backend/test", "backend-compat", 0.0),
    }


def test_only_a_policy_s_own_scored_work_counts(store):
    played(store, "embedded", 1.0)
    first = finished(store, "five", value=0.0)
    retried = store.fork(first.id, 1)  # the first is replaced now
    store.append_action(retried.id, 1, answers())
    store.finish(retried.id, StopReason.ANSWERED, "x")
    store.add_evaluation(retried.id, evaluation(1.0))
    unscored = finished(store)
    store.add_evaluation(unscored.id, Evaluation(None, Verdict.INFRA, error="sandbox died"))
    store.start_episode(TASK.id, "embedded", "person", 1)
    assert row_of(leaderboard(store), "embedded").n == 1


def test_pages_have_no_success_and_their_own_figures(store):
    for cosine in (0.5, 0.7):
        page = Evaluation(Reward(cosine, {"cosine": cosine, "visual": 0.25}, "clip"), Verdict.WRONG)
        played(store, "v1", cosine, scored=page)
    row = row_of(leaderboard(store), "v1")
    assert (row.cosine.value, row.visual.value, row.cosine.n) == (pytest.approx(0.6), 0.25, 2)


def test_votes_move_win_rates_and_strengths(store):
    before = leaderboard(store)
    assert before.rows == ()
    for _ in range(3):
        voted(store, "v2", "v1")
    assert row_of(leaderboard(store), "v2").win_rate.value == 1.0
    voted(store, "v1", "v2")
    board = leaderboard(store)
    assert (row_of(board, "v2").win_rate.value, row_of(board, "v2").win_rate.n) == (0.75, 4)
    assert board.people.wins["v2", "v1"] == Met(3, 0, 1)
    strengths = board.people.strengths
    assert strengths["v2"].value == pytest.approx(0.5493, abs=1e-4)  # half of log 3
    assert board.people.left_side.n == board.people.votes == 4


def test_skipped_votes_are_no_opinion_and_both_bad_is_a_tie(store):
    voted(store, "v1", "v2", choice=Choice.SKIP)
    voted(store, "v1", "v2", choice=Choice.BOTH_BAD)
    board = leaderboard(store)
    assert board.people.wins["v1", "v2"] == Met(ties=1)
    assert row_of(board, "v1").win_rate.n == 1


def test_people_and_judge_are_counted_apart_and_their_agreement_is_told(store):
    agreed, contested = voted(store, "v1", "v2"), voted(store, "v1", "v2")
    other = {Choice.LEFT: Choice.RIGHT, Choice.RIGHT: Choice.LEFT}
    judge = {"voter": "judge:m", "by": Voter.JUDGE}
    for vote, choice in ((agreed, agreed.choice), (contested, other[contested.choice])):
        store.vote(vote.comparison.id, choice, **judge)
    voted(store, "v2", "v1", **judge)  # no person voted there
    board = leaderboard(store)
    assert (board.people.votes, board.judge.votes) == (2, 3)
    assert (board.agreed.value, board.agreed.n) == (0.5, 2)
    row = row_of(board, "v1")
    assert (row.win_rate.value, row.judge_win_rate.value) == (1.0, pytest.approx(1 / 3))


def test_only_blind_votes_if_wished(store):
    voted(store, "v1", "v2")
    voted(store, "v2", "v1", is_blind=False)
    voted(store, "v2", "v1", side_named=True)
    assert leaderboard(store).people.wins["v1", "v2"] == Met(1, 0, 2)
    assert leaderboard(store, blind_only=True).people.wins["v1", "v2"] == Met(1, 0, 0)


def test_filters_choose_what_is_counted(store):
    voted(store, "v1", "v2")
    voted(store, "v2", "v1", task_id="task-2")
    board = leaderboard(store, EpisodeFilter(task_set="mini-backend/train"))
    assert {(r.policy_id, r.win_rate.value) for r in board.rows} == {("v1", 0.0), ("v2", 1.0)}
    one = leaderboard(store, EpisodeFilter(policy_id="v1"))
    assert {row.policy_id for row in one.rows} == {"v1"}
    assert row_of(one, "v1").win_rate.n == 1


def test_what_is_unknown_is_listed_set_by_set_with_the_best_first():
    pages = [
        Row(name, task_set, "visual", 4, visual=mean([value] * 4))
        for name, task_set, value in (("a", "x", 0.4), ("b", "x", 0.8), ("c", "w", 0.6))
    ]
    unscored = Row("d", "x", "visual", 0)
    found = [row.policy_id for row in sorted_rows([unscored, *pages], "success desc")]
    assert found == ["c", "b", "a", "d"]


def test_rows_are_sorted_with_the_unknown_last(store):
    played(store, "low", 0.0)
    played(store, "high", 1.0)
    page = Evaluation(Reward(0.5, {"cosine": 0.5}, "clip"), Verdict.WRONG)
    played(store, "page", 0.5, scored=page)
    for sort, expected in (
        ("success", ["high", "low"]),
        ("success asc", ["low", "high"]),
        ("cosine desc", ["page"]),
        ("policy_id asc", ["high", "low", "page"]),
    ):
        found = [row.policy_id for row in leaderboard(store, sort=sort).rows]
        assert [policy for policy in found if policy in expected] == expected
        assert found[: len(expected)] == expected or sort.startswith("success")
    for wrong in ("loss", "success up", ""):
        with pytest.raises(ConfigError, match="Cannot sort by"):
            leaderboard(store, sort=wrong)


def test_success_by_turn_budget_counts_what_was_solved_by_then(store):
    for value, turns in ((1.0, 1), (1.0, 3), (0.0, 2)):
        played(store, "v1", value, turns=turns, max_turns=4)
    played(store, "v1", 1.0, turns=2, max_turns=2)
    (budgets,) = turn_budgets(store).values()
    assert [(f.value, f.n) for f in budgets] == [(0.25, 4), (0.5, 4), (2 / 3, 3), (2 / 3, 3)]
    assert turn_budgets(store, EpisodeFilter(policy_id="none")) == {}


def test_success_over_rounds_is_what_their_validation_found(store):
    settings = {"validation_set": "mini-backend/validation"}
    figures = {
        "parent": {"n": 100, "success_rate": 0.3, "success_ci95": [0.22, 0.4]},
        "child": {"n": 0, "success_rate": None, "success_ci95": None},
        "compared": 100, "gain": 0.05, "gain_ci95": [-0.02, 0.12],
    }  # fmt: skip
    for number in (1, 2):
        store.start_round(f"r{number}", "sweet", "embedded", settings)
        done = {"version_id": f"v000{number}", "is_promoted": True}
        store.end_round(f"r{number}", **done, figures=figures)
    store.start_round("r3", "sweet", "v0002", settings)  # not done
    first, second = over_rounds(store)
    assert (first.round_id, second.version_id) == ("r1", "v0002")
    assert (first.parent.value, first.parent.low, first.parent.n) == (0.3, 0.22, 100)
    assert (first.version.value, first.version.n, first.gain.n) == (None, 0, 100)
    assert first.task_set == "mini-backend/validation"


def test_of_rounds_on_web_pages_the_mean_reward_is_told_with_its_evaluator(store):
    settings = {"tasks": "frontend", "validation_set": "mini-frontend/validation"}
    side = {"n": 10, "evaluator": "visual", "success_rate": 0.1, "success_ci95": [0.0, 0.4],
            "reward": 0.45, "reward_ci95": [0.4, 0.5]}  # fmt: skip
    unknown = {"n": 10, "evaluator": "visual", "success_rate": 0.1, "reward": 0.7}
    store.start_round("r1", "sweet", "embedded", settings)
    figures = {"parent": side, "child": unknown, "compared": 10, "gain": 0.25}
    store.end_round("r1", version_id="v0001", is_promoted=False, figures=figures)
    (found,) = over_rounds(store)
    assert (found.kind, found.evaluator) == (TaskKind.FRONTEND, "visual")
    assert found.parent == Figure(0.45, 0.4, 0.5, 10)
    assert found.version == Figure(0.7, None, None, 10)
    assert found.gain == Figure(0.25, None, None, 10)


def test_a_board_is_json_without_loss(store):
    voted(store, "v1", "v2")
    value = leaderboard(store).as_json()
    assert value["people"]["wins"][0]["win_rate"]["n"] == 1
    assert value["rows"][0]["success"].keys() == {"value", "low", "high", "n"}


def test_the_paper_s_rows_are_those_of_its_table():
    rows = {row.method: row for row in PAPER}
    best = rows["Llama-3.1-8B + SWEET-RL"]
    assert (best.tests_passed, best.success, best.cosine, best.win_rate) == (56.8, 40.4, 77.7, 48.2)
    assert rows["SWEET-RL with a value head"].cosine is None
    assert len(rows) == len(PAPER) == 17

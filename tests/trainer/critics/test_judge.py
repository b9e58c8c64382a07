"""A judge behind a real HTTP server: strict scores, none made up, nothing asked twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sweet.engines import EndpointEngine
from sweet.errors import ConfigError, TrainingError
from sweet.prompts.judge_backend import messages, parse_score
from sweet.services import Services
from sweet.settings import JudgeSettings, Settings
from sweet.types import Exchange, Observation, Sampling, TaskKind
from tests.fakes import hidden_of, task_row
from tests.sweet.engines.server import Handler, Server, refuses, says, serving
from tests.trainer.test_pairs import episode
from trainer.candidates import Candidate
from trainer.critics.judge import JudgeCritic

ROW = task_row()
ONE = episode("e", 1.0, ROW.task.id)
SAID = [[Candidate("Which fee?"), Candidate("Nonsense?")], [Candidate("Now?")]]


def judging(score: Callable[[str], str]) -> Callable[[Handler, dict[str, Any]], None]:
    """A server's answer that depends on the message to be scored."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        asked = body["messages"][-1]["content"]
        message = asked.split("<message>\n")[1].split("\n</message>")[0]
        says(score(message))(handler, body)

    return answer


def judge(server: Server, memo=None) -> JudgeCritic:
    engine = EndpointEngine(server.base_url, "small", retries=0)
    return JudgeCritic("small", engine, Sampling(temperature=0.0), memo)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("It asks for the fee.\nSCORE: 7", 7),
        ("SCORE: 0", 0),
        ("Good.\n\n  SCORE: 10  \n", 10),
        ("<think>SCORE: 2</think>\nFine.\nSCORE: 9", 9),
        ("", None),
        ("7", None),
        ("Score: 7", None),
        ("SCORE: 11", None),
        ("SCORE: -1", None),
        ("SCORE: 7.5", None),
        ("SCORE: 7/10", None),
        ("SCORE: ٧", None),
        ("SCORE: 7\nSCORE: 3", None),
        ("Score: 4\nSCORE: 7", None),
        ("SCORE: 7\nbecause it asks", None),
        ("SCORE: seven", None),
        ("<think>it is good. SCORE: 7", None),
    ],
)
def test_a_score_is_read_strictly(text, score):
    assert parse_score(text) == score


def test_the_judge_sees_reference_dialogue_and_message_but_no_test_call():
    hidden = replace(hidden_of(ROW), test_calls=("f(123456)",))
    seen = Observation(TaskKind.BACKEND, "Add {a} fee.", (Exchange("Which?", "5."),), 3)
    text = "\n".join(m.content for m in messages(seen, "Now {this}?", hidden))
    for part in (hidden.reference, "Add {a} fee.", "Which?", "5.", "Now {this}?", "included: 3"):
        assert part in text
    assert "123456" not in text


def test_every_candidate_gets_the_score_of_its_own_reply():
    with serving(judging(lambda m: f"So.\nSCORE: {len(m) % 11}")) as server:
        assert judge(server).scores(ROW, ONE, SAID) == [[5.0, 4.0], [-1.0]]
        assert len(server.asked) == 3
        assert all(
            hidden_of(ROW).reference in b["messages"][0]["content"] for _, _, b in server.asked
        )


def test_an_unusable_reply_is_no_score():
    usable = judging(lambda m: "I like it." if m == "Nonsense?" else "SCORE: 6")
    with serving(usable) as server:
        assert judge(server).scores(ROW, ONE, SAID) == [[1, None], [1]]


def test_a_reply_that_was_cut_is_no_score():
    with serving(says("SCORE: 1", finish="length")) as server:
        assert judge(server).scores(ROW, ONE, SAID) == [[None, None], [None]]


def test_the_same_message_is_asked_about_once():
    same = [Candidate("Which?"), Candidate("Which?", 2, is_ended=False)]
    with serving(says("SCORE: 1")) as server:
        assert judge(server).scores(ROW, ONE, [same, []]) == [[-4, -4], []]
        assert len(server.asked) == 1


def test_a_failed_call_is_no_score_and_only_failed_ones_are_an_error():
    with serving(refuses(400), says("SCORE: 6")) as server:
        scores = judge(server).scores(ROW, ONE, SAID)
        assert sorted(s is None for turn in scores for s in turn) == [False, False, True]
    none = pytest.raises(TrainingError, match=r"judge:small answered none of 3 calls.*API key")
    with serving(refuses(401)) as server, none:
        judge(server).scores(ROW, ONE, SAID)


def test_what_was_asked_once_is_not_asked_again(tmp_path):
    with serving(judging(lambda m: "no" if m == "Now?" else "SCORE: 6")) as server:
        first = judge(server, tmp_path / "judge.jsonl").scores(ROW, ONE, SAID)
        with (tmp_path / "judge.jsonl").open("a") as file:
            file.write('["half')  # as a kill leaves it
        again = judge(server, tmp_path / "judge.jsonl")
        assert again.scores(ROW, ONE, SAID) == first == [[1, 1], [None]]
        assert len(server.asked) == 3
        other = replace(ROW, hidden=replace(hidden_of(ROW), reference="def f(x): return 9"))
        again.scores(other, ONE, SAID)
        assert len(server.asked) == 6
    lines = (tmp_path / "judge.jsonl").read_text().splitlines()
    assert [json.loads(line)[1] for line in lines].count(None) == 2


def test_logged_turns_are_scored_and_those_without_a_score_left_out():
    last = ONE.turns[-1].action.raw
    with serving(judging(lambda m: "?" if m == last else "SCORE: 3")) as server:
        assert judge(server).advantages({ROW.task.id: ROW}, [ONE]) == [{0: -2}]
    with serving(says("no idea")) as server:
        assert judge(server).advantages({ROW.task.id: ROW}, [ONE]) == [None]


def test_without_hidden_information_there_is_nothing_to_judge_by():
    with serving(says("SCORE: 3")) as server:
        with pytest.raises(TrainingError, match="no hidden information"):
            judge(server).scores(replace(ROW, hidden=None), ONE, SAID)
        assert server.asked == []


def test_no_judge_is_a_clear_error_and_half_of_one_too(tmp_path):
    missing = pytest.raises(ConfigError, match="SWEET_JUDGE__MODEL")
    with Services(Settings(data=tmp_path)) as services, missing:
        services.judge()
    half = JudgeSettings(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ConfigError, match="SWEET_JUDGE__MODEL"):
        Services(Settings(data=tmp_path, judge=half))
    assert JudgeSettings().sampling.temperature == 0

"""Votes and preference pairs, out and in; cards and the hub; files larger than memory may be."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from base64 import b64decode
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sweet.errors import ConfigError
from sweet.exchange import (
    card_of,
    export_episodes,
    export_preferences,
    export_votes,
    import_episodes,
    imported_preferences,
    preference_ids,
    push,
    write_card,
)
from sweet.store import Choice, Voter
from sweet.types import (
    Action,
    EpisodeFilter,
    Exchange,
    Observation,
    PairLevel,
    PairSource,
    PreferencePair,
    StopReason,
    TaskKind,
    Turn,
)
from tests.sweet.store.samples import finished, talked

ROOT = Path(__file__).parents[2]
VOTES = ["votes.jsonl", "votes.parquet"]
PAIRS = ["pairs.jsonl", "pairs.parquet"]


def fill(store) -> None:
    """Votes of every choice, by people and a judge, blind and not."""
    for number, choice in enumerate(c for c in Choice if c is not Choice.FAILED):
        one, two = finished(store, "five"), finished(store, "six", "no idea 🤷", value=0.0)
        comparison = store.start_comparison(one.id, two.id, is_blind=number % 2 == 0)
        store.vote(comparison.id, choice, "ann", reason="line\u2028break", side_named=number == 2)
        store.vote(comparison.id, Choice.TIE, "judge:m", by=Voter.JUDGE)
    failed = talked(store, "seven")
    store.finish(failed.id, StopReason.FAILED, error="HTTP 503")
    broken = store.start_comparison(failed.id, finished(store).id)
    store.vote(broken.id, Choice.FAILED, "bob", reason="HTTP 503")


@pytest.mark.parametrize("name", VOTES)
def test_votes_go_out_and_come_back_equal_with_their_episodes(store, other, tmp_path, name):
    fill(store)
    path = tmp_path / name
    assert export_votes(store, EpisodeFilter(), path) == 11
    done = import_episodes(other, path)
    assert (done.added, done.known, done.problems) == (11, 0, ())
    assert list(other.iter_votes()) == list(store.iter_votes())
    ids = {vote.comparison.left for vote in store.iter_votes()}
    assert all(other.episode(id) == store.episode(id) for id in ids)
    again = import_episodes(other, path)
    assert (again.added, again.known) == (0, 11)
    assert import_episodes(store, path).known == 11


def test_only_votes_that_the_filter_lets_through_are_exported(store, tmp_path):
    fill(store)
    assert export_votes(store, EpisodeFilter(task_set="none"), tmp_path / "v.jsonl") == 0
    assert (tmp_path / "v.jsonl").read_text() == ""
    assert export_votes(store, EpisodeFilter(outcome="error"), tmp_path / "v.jsonl") == 1


def test_bad_votes_are_named_and_the_rest_is_kept(store, other, tmp_path):
    fill(store)
    path = tmp_path / "votes.jsonl"
    export_votes(store, EpisodeFilter(), path)
    good = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    first = good[0]
    bad = {
        "choice": first | {"choice": "A", "comparison": "b1"},
        "voter": first | {"voter": " "},
        "by": first | {"by": "robot", "comparison": "b2"},
        "version": first | {"version": 9},
        "left: ": first | {"left": {"id": "x"}, "comparison": "b3"},
        "right": {k: v for k, v in first.items() if k != "right"},
        "itself": first | {"right": first["left"], "comparison": "b4"},
        "no date": first | {"created_at": "soon", "comparison": "b5"},
    }
    contrary = first | {"choice": "right" if first["choice"] != "right" else "left"}
    lines = [*bad.values(), *good, contrary]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    done = import_episodes(other, path)
    assert (done.added, done.bad) == (len(good), len(bad) + 1)
    for (told, _), problem in zip(bad.items(), done.problems, strict=False):
        assert told in problem.what
    assert done.problems[-1].line == len(lines)
    assert "another choice" in done.problems[-1].what
    assert list(other.iter_votes()) == list(store.iter_votes())


def said(text: str) -> tuple[Turn, ...]:
    return (Turn(0, Action(text, text, is_final=False)),)


def pair(chosen: str = "Per kilogram?", rejected: str = "What?", **changed) -> PreferencePair:
    seen = Observation(TaskKind.BACKEND, "Write fee(kg).", (Exchange("Which unit?", "kg"),), 8)
    given: dict[str, Any] = {
        "chosen": said(chosen),
        "rejected": said(rejected),
        "task_id": "task-1",
        "level": PairLevel.TURN,
        "observation": seen,
        "scores": (1.0, -1.0),
        "source": PairSource.HUMAN,
        "episode_ids": ("e1", None),
    }
    return PreferencePair(**(given | changed))


def whole_pair() -> PreferencePair:
    answer = "I WANT TO ANSWER:\ndef fee(kg): return 5 * kg"
    asked = Turn(0, Action("How much?", "How much?", is_final=False), "five")
    final = Turn(1, Action(answer, "", True, "def fee(kg): return 5 * kg"))
    guess = Turn(0, Action(answer.replace("5", "3"), "", True, "def fee(kg): return 3 * kg"))
    seen = Observation(TaskKind.BACKEND, "Write fee(kg).")
    return replace(
        pair(level=PairLevel.TRAJECTORY, source=PairSource.OUTCOME, observation=seen),
        chosen=(asked, final),
        rejected=(guess,),
        scores=(1.0, 0.0),
    )


def whole_pairs() -> list[PreferencePair]:
    return [pair(), whole_pair()]


@pytest.mark.parametrize("name", PAIRS)
def test_preferences_go_out_in_trl_s_shape_and_come_back_equal(store, other, tmp_path, name):
    path = tmp_path / name
    assert export_preferences(whole_pairs(), path) == 2
    done = import_episodes(other, path)
    assert (done.added, done.known, done.problems) == (2, 0, ())
    assert import_episodes(other, path).known == 2
    found = list(imported_preferences(other))
    assert found == whole_pairs()
    assert export_preferences(found, tmp_path / "again.jsonl") == 2


def test_a_line_is_what_trl_reads(tmp_path):
    path = tmp_path / "pairs.jsonl"
    export_preferences(whole_pairs(), path)
    turn, whole = [json.loads(line) for line in path.read_text().splitlines()]
    assert turn["prompt"] == [
        {"role": "user", "content": "Write fee(kg)."},
        {"role": "assistant", "content": "Which unit?"},
        {"role": "user", "content": "kg"},
    ]
    assert turn["chosen"] == [{"role": "assistant", "content": "Per kilogram?"}]
    assert [m["role"] for m in whole["chosen"]] == ["assistant", "user", "assistant"]
    assert (whole["level"], whole["source"]) == ("trajectory", "outcome")


def test_pairs_that_are_equal_or_say_nothing_are_not_exported(tmp_path):
    pairs = [pair(), pair(), pair("same", "same"), pair("", "What?")]
    assert export_preferences(pairs, tmp_path / "p.jsonl") == 1


def test_pairs_that_the_log_makes_by_itself_are_known(store, tmp_path):
    path = tmp_path / "pairs.jsonl"
    export_preferences(whole_pairs(), path)
    done = import_episodes(store, path, lambda: preference_ids([pair()]))
    assert (done.added, done.known) == (1, 1)


def test_pairs_of_other_people_s_making_are_taken_too(other, tmp_path):
    line = {
        "prompt": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Add."}],
        "chosen": [{"role": "assistant", "content": "Of ints?"}],
        "rejected": [{"role": "assistant", "content": "No."}],
    }
    path = tmp_path / "trl.jsonl"
    path.write_text(json.dumps(line))
    assert import_episodes(other, path).added == 1
    (found,) = imported_preferences(other)
    assert (found.level, found.source) == (PairLevel.TURN, PairSource.HUMAN)
    assert found.observation.description == "Add."


def test_bad_pairs_are_named_and_the_rest_is_kept(other, tmp_path):
    said = [{"role": "assistant", "content": "Hm?"}]
    good = {"prompt": [{"role": "user", "content": "Add."}], "chosen": said,
            "rejected": [{"role": "assistant", "content": "No."}]}  # fmt: skip
    bad = {
        "prompt has no message": good | {"prompt": []},
        "prompt.0.role": good | {"prompt": said},
        "does not end with": good | {"prompt": [*good["prompt"], *said]},
        "chosen has no message": good | {"chosen": []},
        "chosen.0.role": good | {"chosen": good["prompt"]},
        "rejected.1.role": good | {"rejected": [*said, *said]},
        "rejected.0.content": good | {"rejected": [{"role": "assistant", "content": " "}]},
        "the same": good | {"rejected": said},
        "chosen: Input should be a valid list": good | {"chosen": "Hm?"},
        "level": good | {"level": "word"},
    }
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [*bad.values(), good]))
    done = import_episodes(other, path)
    assert (done.added, done.bad) == (1, len(bad))
    for (told, _), problem in zip(bad.items(), done.problems, strict=True):
        assert told in problem.what


def test_all_shapes_in_one_file_are_told_apart(store, other, tmp_path):
    fill(store)
    texts = []
    export_votes(store, EpisodeFilter(), tmp_path / "v.jsonl")
    export_preferences(whole_pairs(), tmp_path / "p.jsonl")
    for format in ("episodes", "colbench"):
        export_episodes(store, EpisodeFilter(), tmp_path / f"{format}.jsonl", format)
    for name in ("v", "p", "episodes", "colbench"):
        texts.append((tmp_path / f"{name}.jsonl").read_text(encoding="utf-8"))
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text("".join(texts), encoding="utf-8")
    done = import_episodes(other, mixed)
    assert done.bad == 0
    assert len(list(other.iter_votes())) == 11
    assert len(list(imported_preferences(other))) == 2


# Cards and the hub


def test_a_card_says_what_is_in_the_file_and_how_to_read_it(tmp_path):
    path = tmp_path / "pairs.parquet"
    wanted = EpisodeFilter(task_set="mini-backend/train", outcome="success")
    card = write_card(path, "preferences", 1234, wanted)
    text = card.read_text()
    assert card.name == "README.md"
    assert text.startswith("---\n")
    assert "load_dataset('parquet', data_files='pairs.parquet'" in text
    assert "1,234" in text
    assert 'task_set = "mini-backend/train", outcome = "success"' in text
    for kind in ("episodes", "colbench", "votes"):
        assert "all of the log" in card_of(tmp_path / "x.jsonl", kind, 0, EpisodeFilter())


def test_without_a_token_it_is_told_how_to_have_one(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(ConfigError, match=r"HF_TOKEN"):
        push(tmp_path / "x.jsonl", "card", "me/mine")
    for wrong in ("mine", "/mine", "me/", "a/b/c"):
        with pytest.raises(ConfigError, match="your-name/your-dataset"):
            push(tmp_path / "x.jsonl", "card", wrong)


def test_a_hub_that_cannot_be_reached_is_told(tmp_path):
    (tmp_path / "x.jsonl").write_text("{}\n")
    code = (
        "import sys; from pathlib import Path; from sweet.exchange import push\n"
        f"push(Path({str(tmp_path / 'x.jsonl')!r}), 'card', 'me/mine')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"HF_TOKEN": "hf_x", "HF_ENDPOINT": "http://127.0.0.1:9", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 1
    assert "StoreError: Cannot push" in done.stderr
    assert "http://127.0.0.1:9" in done.stderr


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as one push needs; keeps what was asked of it."""

    asked: list[tuple[str, bytes]] = []  # noqa: RUF012  # one server a test

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append((self.path, body))
        answers: dict[str, Any] = {
            "create": {"url": "https://huggingface.co/datasets/me/mine", "id": "me/mine"},
            "validate-yaml": {"errors": [], "warnings": []},
            "main": {
                "commitUrl": "https://huggingface.co/datasets/me/mine/commit/abc",
                "commitOid": "abc",
            },
        }
        answer = answers[self.path.rsplit("/", 1)[-1]]
        if "preupload" in self.path:
            names = [file["path"] for file in json.loads(body)["files"]]
            answer = {"files": [{"path": name, "uploadMode": "regular", "shouldIgnore": False}
                                for name in names]}  # fmt: skip
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Silent."""


def test_a_push_brings_file_and_card_into_a_private_repository(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n')
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    code = (
        "from pathlib import Path; from sweet.exchange import push\n"
        f"print(push(Path({str(tmp_path / 'x.jsonl')!r}), '---\\n---\\n# Card', 'me/mine'))"
    )
    place = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            capture_output=True,
            text=True,
            env={"HF_TOKEN": "hf_x", "HF_ENDPOINT": place, "PATH": "/usr/bin:/bin"},
        )
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("/commit/abc")
    asked = dict(Hub.asked)
    assert json.loads(asked["/api/repos/create"])["visibility"] == "private"
    lines = asked["/api/datasets/me/mine/commit/main"].splitlines()
    files = {line["value"]["path"]: b64decode(line["value"]["content"])
             for line in map(json.loads, lines) if line["key"] == "file"}  # fmt: skip
    assert files == {"x.jsonl": b'{"a": 1}\n', "README.md": b"---\n---\n# Card"}


# Large files

MEASURED = """
import resource, sys
from pathlib import Path
from sweet.exchange import import_episodes
from sweet.store import EpisodeStore
with EpisodeStore.open(sys.argv[1]) as store:
    done = import_episodes(store, Path(sys.argv[2]))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
status = Path("/proc/self/status")
if status.exists():  # ru_maxrss has the parent's peak in it, from before its exec
    peak = next(row for row in status.read_text().splitlines() if "VmHWM" in row).split()[1]
print(done.added, done.known, done.bad, peak)
"""


def test_a_large_file_of_colbench_is_read_as_a_stream(tmp_path):
    """Tens of MB in the shape of its 436 MB of offline episodes: memory does not grow with them."""
    path = tmp_path / "colbench_code_offline_15k_llama8b.jsonl"
    filler = "x = 1  # " + "lorem ipsum " * 600 + "\n"
    with path.open("w") as file:
        for number in range(500):
            code = f"def f{number}(a):\n    return a + {number}\n"
            answer = f"I WANT TO ANSWER:\n{filler}{code}"
            history = [
                {"role": "user", "content": f"Write f{number}."},
                {"role": "assistant", "content": "How?", "input": filler * 10, "output": "How?"},
                {"role": "user", "content": "By adding."},
                {"role": "assistant", "content": answer, "input": filler, "output": answer},
            ]
            task = {"problem_description": f"Write f{number}.", "ground_truth": code,
                    "test_cases": {"test1": f"f{number}(1)"}}  # fmt: skip
            line = {"task": task, "dialogue_history": history, "answer": filler + code}
            file.write(json.dumps(line | {"reward": number % 2}) + "\n")
            if number % 100 == 0:
                file.write('{"task": "broken\n')
    assert path.stat().st_size > 40e6
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path / "big.db"), str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    added, known, bad, peak = map(int, done.stdout.split())
    assert (added, known, bad) == (500, 0, 5)
    kilobyte = 1 if sys.platform == "darwin" else 1024
    assert peak * kilobyte < 300e6

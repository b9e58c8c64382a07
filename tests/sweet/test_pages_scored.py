"""Web pages through the command line and comparisons: imported, played, scored, compared."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluators.frontend import VISUAL, Clip, FrontendEvaluator, WeightsMissing
from sweet.comparing.compare import ComparePlan, play_both, so_far
from sweet.comparing.leaderboard import leaderboard
from sweet.policy import EnginePolicy
from sweet.services import Services
from sweet.settings import ClipSettings, Settings
from sweet.types import ANSWER_MARK, Sampling, TaskKind
from tests.fakes import FakeEngine, FakeRenderer
from tests.sweet.conftest import Run
from tests.sweet.engines.server import Handler, says, serving


def page(heading: str, color: str = "green") -> str:
    return (
        f'<html>\n<body>\n<h1 style="background: {color}">{heading}</h1>\n'
        f"<p>Everything about {heading.lower()}.</p>\n</body>\n</html>"
    )


WANTED = {f"A page about {name}.": page(name) for name in ("Tomatoes", "Beets", "Peas")}
NAMES = list(WANTED)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("SWEET_")]:
        if name != "SWEET_CHROMIUM":
            monkeypatch.delenv(name)
    monkeypatch.setenv("SWEET_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SWEET_CLIP__MODEL", "")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    rows = [{"problem_description": d, "ground_truth": html} for d, html in WANTED.items()]
    return lines(tmp_path / "test.jsonl", rows)


def drawing(handler: Handler, body: dict[str, Any]) -> None:
    """Shows a page in the wrong colour first, then gives the wanted one."""
    said = [m for m in body["messages"] if m["role"] != "system"]
    html = next(html for wish, html in WANTED.items() if wish in said[0]["content"])
    last = f"{ANSWER_MARK}\n```html\n{html}\n```"
    says(last if len(said) > 2 else html.replace("green", "red"))(handler, body)


def test_answers_are_scored_in_their_order(run: Run, tasks: Path, tmp_path: Path) -> None:
    given = [
        {"task_index": 1, "answer": WANTED[NAMES[1]], "variant": "same"},
        {"task_index": 0, "answer": f"```html\n{WANTED[NAMES[1]]}\n```"},
        {"task_index": 0, "answer": "I can't draw."},
        {"task_index": 9, "answer": page("Peas")},
    ]
    answers = lines(tmp_path / "answers.jsonl", given)
    code, rows, err = run("score", "--kind", "frontend", "--tasks", tasks, "--answers", answers)
    assert code == 0
    assert [row["task_index"] for row in rows] == [1, 0, 0, 9]
    assert [row["score"] is None for row in rows] == [False, False, False, True]
    assert (rows[0]["score"], rows[0]["visual"], rows[0]["passed"]) == (1, 1, True)
    assert 0 < rows[1]["score"] < 1 and rows[1]["text"] < 1
    assert (rows[2]["score"], rows[2]["verdict"]) == (0, "load")
    assert "names no task" in rows[3]["error"]
    assert all(row["cosine"] is None for row in rows)
    assert {row["evaluator"] for row in rows[:3]} == {VISUAL}
    assert "visual similarity" in err and "SWEET_CLIP__MODEL" in err


def test_a_set_that_was_imported_is_played_and_scored(
    run: Run, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("tasks", "import", tasks)[0] == 0
    stored = [{"task_index": i, "answer": html} for i, html in enumerate(WANTED.values())]
    stored[0]["answer"] = page("Turnips", "blue")
    pages = lines(tmp_path / "pages.jsonl", stored)
    with serving(drawing) as server:
        monkeypatch.setenv("SWEET_AGENT__MODEL", "small")
        monkeypatch.setenv("SWEET_AGENT__BASE_URL", server.base_url)
        code, value, err = run(
            "evaluate",
            "--tasks",
            "colbench-frontend/test",
            "-n",
            3,
            "--concurrency",
            1,
            "--against",
            pages,
        )
    assert code == 0, err
    assert (value["n"], value["evaluator"], value["without_reward"]) == (3, VISUAL, 0), err
    assert (value["visual"], value["visual_n"], value["visual_ci95"]) == (1, 3, [1, 1])
    assert (value["cosine"], value["cosine_n"], value["success_rate"]) == (None, 0, None)
    assert (value["wins"], value["ties"], value["losses"]) == (1, 2, 0)
    assert value["win_rate"] == pytest.approx(2 / 3, abs=1e-6)
    low, high = value["win_ci95"]
    assert 0 < low < 2 / 3 < high <= 1


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"task_index": 3, "answer": "x"}, "names no task of the set"),
        ({"task_index": 0, "answer": None}, "no text"),
    ],
)
def test_stored_answers_that_fit_no_task_are_refused_before_anything_is_played(
    run: Run, tasks: Path, tmp_path: Path, row: dict[str, Any], said: str
) -> None:
    pages = lines(tmp_path / "pages.jsonl", [row])
    code, _, err = run("evaluate", "--tasks", f"file:{tasks}", "--against", pages)
    assert code == 2 and said in err


# Two evaluators


class Studio(Services):
    """Services whose policies answer at once, with or without the heading; pages are not drawn."""

    def __init__(self, folder: Path, clip: Clip | None = None) -> None:
        super().__init__(Settings(data=folder, clip=ClipSettings(model="")))
        self._pages = FrontendEvaluator(FakeRenderer(), lambda: clip or self._missing())

    def _missing(self) -> Clip:
        raise WeightsMissing("none")

    def policy(self, policy_id: str) -> EnginePolicy:
        def answer(messages, sampling) -> str:
            html = next(html for wish, html in WANTED.items() if wish in messages[0].content)
            drawn = html if policy_id == "right" else "<html><body>Soon</body></html>"
            return f"{ANSWER_MARK}\n{drawn}"

        return EnginePolicy(policy_id, FakeEngine(answer), Sampling(), "plain")


class Same(Clip):
    """CLIP for which pages are alike or not at all."""

    def __init__(self) -> None:
        super().__init__("clip:same", None, lambda picture: picture)

    def cosine(self, one: bytes, other: bytes) -> float:
        return 1.0 if one == other else 0.5


@pytest.fixture
def plan(tasks: Path) -> Iterator[ComparePlan]:
    yield ComparePlan(f"file:{tasks}", "right", "wrong", 3)


def test_pages_are_compared_by_the_evaluator_of_now(tmp_path: Path, plan: ComparePlan) -> None:
    with Studio(tmp_path / "data") as studio:
        seen = asyncio.run(play_both(studio, plan))
        again = asyncio.run(play_both(studio, plan))
    assert (seen.evaluator, seen.met.wins, seen.played, again.played) == (VISUAL, 3, 6, 0)
    assert seen.visual.value is not None and seen.visual.value > 0
    assert seen.cosine.n == 0
    with Studio(tmp_path / "data", Same()) as studio:
        by_clip = asyncio.run(play_both(studio, plan))
        board = leaderboard(studio.store, sort="reward desc")
        later = so_far(studio, plan)
    assert (by_clip.evaluator, by_clip.met.wins, by_clip.played) == ("clip:same", 3, 6)
    assert (by_clip.cosine.value, by_clip.cosine.n) == (0.5, 3)
    assert later.as_json()["evaluator"] == "clip:same" and later.missing == 0
    rows = {(row.policy_id, row.evaluator): row for row in board.rows}
    assert set(rows) == {(p, e) for p in ("right", "wrong") for e in (VISUAL, "clip:same")}
    assert rows["wrong", "clip:same"].cosine.value == 0.5
    assert rows["wrong", VISUAL].cosine.n == 0


def test_services_score_pages_by_their_kind(tmp_path: Path) -> None:
    with Services(Settings(data=tmp_path, clip=ClipSettings(model=""))) as services:
        scorer = services.frontend_evaluator()
        assert services.evaluator(TaskKind.FRONTEND) is scorer
        assert (scorer.name, "SWEET_CLIP__MODEL" in scorer.why_visual) == (VISUAL, True)

"""Rewards of web pages: CLIP by a small real model, its absence, and whose fault a failure is."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evaluators.frontend import (
    Clip,
    FrontendEvaluator,
    WeightsMissing,
    evaluator,
    open_clip_model,
    weights,
)
from evaluators.render import Renderer
from sweet.errors import ConfigError, EvaluatorError, RenderError
from sweet.parsing import MAX_PAGE_BYTES
from sweet.settings import ClipSettings
from sweet.types import (
    Box,
    Episode,
    HiddenInfo,
    Rendering,
    StopReason,
    Task,
    TaskKind,
    TaskRow,
    Verdict,
)
from tests.contracts import EvaluatorContract

TASK = Task("t", TaskKind.FRONTEND, "A red page.", "test", "mini-frontend")
RED = "<html><body class='red'>Tomatoes and beets</body></html>"
BLUE = "<html><body class='blue'>Tomatoes and beets</body></html>"
WANTED = HiddenInfo(RED)
COLORS = {"red": "#ff0000", "blue": "#0000ff", "green": "#00ff00"}
CONFIG = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16},
    "text_cfg": {"context_length": 8, "vocab_size": 64, "width": 32, "heads": 2, "layers": 1},
}


class Painter:
    """Draws a page as one line of text on the colour it names; fails where it is told to."""

    def __init__(self) -> None:
        self.drawn: list[str] = []

    def render(self, html: str, *, width: int = 1280) -> Rendering:
        self.drawn.append(html)
        if "hang" in html:
            raise RenderError("The page could not be drawn: it took over 4 s to load.")
        color = next((code for name, code in COLORS.items() if name in html), "#ffffff")
        text = html.split(">")[2].split("<")[0] if html.count(">") > 2 else html
        box = Box("p", text, 0, 0, 400, 40, "#000000", color, 16, False, "left")
        return Rendering(picture(color), width, 720, (box,))


def picture(color: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (64, 48), color).save(file, "PNG")
    return file.getvalue()


def no_weights() -> Clip:
    raise WeightsMissing("The hub does not answer.")


def episode(artifact: str | None) -> Episode:
    stop = StopReason.ANSWERED if artifact is not None else StopReason.TURN_LIMIT
    return Episode("e", TASK.id, "p", "scripted", 1, artifact=artifact, stop_reason=stop)


@pytest.fixture
def painter() -> Painter:
    return Painter()


@pytest.fixture
def visual(painter: Painter) -> Iterator[FrontendEvaluator]:
    opened = FrontendEvaluator(painter, no_weights)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> ClipSettings:
    """A small model of open_clip's own making, with its weights in a file."""
    import open_clip
    import torch

    folder = tmp_path_factory.mktemp("clip")
    (folder / "Sweet-Tiny.json").write_text(json.dumps(CONFIG))
    open_clip.add_model_config(folder)
    torch.manual_seed(1)
    torch.save(open_clip.create_model("Sweet-Tiny").state_dict(), folder / "tiny.pt")
    return ClipSettings(model="Sweet-Tiny", pretrained="", weights=str(folder / "tiny.pt"))


@pytest.fixture(scope="module")
def clip(small: ClipSettings) -> Clip:
    return open_clip_model(small)


class TestTheEvaluator(EvaluatorContract):
    row = TaskRow(TASK, WANTED)
    right = RED
    wrong = BLUE

    @pytest.fixture(autouse=True)
    def open(self, visual: FrontendEvaluator) -> None:
        self.visual = visual

    def make(self) -> FrontendEvaluator:
        return self.visual


# CLIP


def test_a_picture_with_itself_has_cosine_1_and_another_one_less(clip: Clip) -> None:
    red, blue = picture("#ff0000"), picture("#0000ff")
    assert clip.cosine(red, red) == 1
    assert clip.cosine(red, blue) < 0.999
    assert clip.cosine(red, blue) == clip.cosine(blue, red)


def test_embeddings_are_those_of_the_model_the_file_and_the_transforms(
    clip: Clip, small: ClipSettings
) -> None:
    import open_clip
    import torch

    model, _, transform = open_clip.create_model_and_transforms("Sweet-Tiny", small.weights)
    png = picture("#00ff00")
    with torch.no_grad():
        batch = transform(Image.open(io.BytesIO(png))).unsqueeze(0)
        expected = model.eval().encode_image(batch, normalize=True)[0].numpy()
    assert clip.embeddings([png])[0] == pytest.approx(expected, abs=1e-5)


def test_a_file_of_weights_is_told_from_others_by_its_content(
    small: ClipSettings, tmp_path: Path
) -> None:
    name = weights.evaluator_name(small)
    assert name.startswith("clip:Sweet-Tiny/tiny@")
    other = tmp_path / "tiny.pt"
    other.write_bytes(Path(small.weights).read_bytes() + b"more")
    assert weights.evaluator_name(replace_weights(small, other)) != name
    assert weights.evaluator_name(ClipSettings()) == "clip:ViT-B-32/openai"


def replace_weights(settings: ClipSettings, path: Path) -> ClipSettings:
    return settings.model_copy(update={"weights": str(path)})


def test_openai_s_weights_get_the_activation_they_were_made_with() -> None:
    tag = weights.tag_settings(ClipSettings())
    assert tag["quick_gelu"] is True
    assert weights.HUB_REPOS["ViT-B-32", "openai"] == tag["hf_hub"].rstrip("/")


class Counting:
    """A model that remembers how many pictures each pass had."""

    def __init__(self, clip: Clip) -> None:
        self.passes: list[int] = []
        self._forward = clip._forward
        self.first_began, self.may_go = threading.Event(), threading.Event()

    def __call__(self, pngs: list[bytes]) -> np.ndarray:
        self.passes.append(len(pngs))
        if len(self.passes) == 1:
            self.first_began.set()
            self.may_go.wait(30)
        return self._forward(pngs)


def test_pictures_asked_for_together_go_through_together_and_none_twice(
    small: ClipSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = open_clip_model(small)
    counting = Counting(clip)
    monkeypatch.setattr(clip, "_forward", counting)
    pngs = [picture(f"#0000{i:02x}") for i in range(7)]
    with ThreadPoolExecutor(7) as pool:
        first = pool.submit(clip.embeddings, pngs[:1])
        assert counting.first_began.wait(30)
        others = [pool.submit(clip.embeddings, [png]) for png in pngs[1:]]
        while len(clip._waiting) < 7:
            threading.Event().wait(0.01)
        counting.may_go.set()
        found = [first.result(), *(other.result() for other in others)]
    assert counting.passes == [1, 6]
    again = clip.embeddings(pngs)
    assert counting.passes == [1, 6]
    assert all((one[0] == two).all() for one, two in zip(found, again, strict=True))


def test_a_picture_that_is_none_fails_alone(clip: Clip) -> None:
    with pytest.raises(EvaluatorError, match="could not embed"):
        clip.embeddings([b"no picture"])
    assert clip.cosine(picture("#ff00ff"), picture("#ff00ff")) == 1


def test_the_reward_is_clip_s_cosine_with_the_visual_parts_beside(
    painter: Painter, clip: Clip
) -> None:
    scorer = FrontendEvaluator(painter, lambda: clip)
    same, other = scorer.score(WANTED, RED).reward, scorer.score(WANTED, BLUE).reward
    none = scorer.score(WANTED, None).reward
    scorer.close()
    assert same and other and none
    assert {r.evaluator for r in (same, other, none)} == {clip.name}
    assert same.value == same.components["cosine"] == same.components["visual"] == 1
    assert other.value == other.components["cosine"] < 1
    assert other.components["color"] < 1 == other.components["text"]
    assert none.value == none.components["cosine"] == none.components["visual"] == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"weights": "/no/such/file.pt"}, "no such file"),
        ({"model": "ViT-X-999", "weights": __file__}, "no such model"),
        ({"pretrained": "nobody"}, "has no such weights"),
    ],
)
def test_wrong_settings_are_an_error_and_no_reason_to_do_without(
    wrong: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        open_clip_model(ClipSettings(**wrong))


def test_a_file_that_is_no_checkpoint_is_an_error_that_says_what_to_do(
    small: ClipSettings, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.pt"
    broken.write_bytes(b"nothing")
    with pytest.raises(EvaluatorError, match="SWEET_CLIP__WEIGHTS"):
        open_clip_model(replace_weights(small, broken))


def test_a_hub_that_is_not_reached_is_missing_weights(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(weights, "cached_weights", lambda settings: None)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(WeightsMissing, match="hf download timm/vit_base_patch32"):
        open_clip_model(ClipSettings())
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(WeightsMissing, match="HF_HUB_OFFLINE"):
        open_clip_model(ClipSettings())
    with pytest.raises(WeightsMissing, match="SWEET_CLIP__MODEL"):
        open_clip_model(ClipSettings(model=""))


# Without CLIP


def test_without_weights_every_reward_is_visual_and_says_so(visual: FrontendEvaluator) -> None:
    assert (visual.name, visual.why_visual) == ("visual", "The hub does not answer.")
    same, other = visual.score(WANTED, RED).reward, visual.score(WANTED, BLUE).reward
    assert same and other
    assert (same.value, same.evaluator) == (1, "visual")
    assert other.value == other.components["visual"] < 1
    assert "cosine" not in same.components
    assert set(same.components) == {
        "visual", "blocks", "text", "position", "color", "size", "layout"
    }  # fmt: skip


def test_weights_are_looked_for_once(painter: Painter) -> None:
    asked = []

    def missing() -> Clip:
        asked.append(1)
        raise WeightsMissing("not here")

    scorer = FrontendEvaluator(painter, missing)
    for _ in range(3):
        scorer.score(WANTED, RED)
    scorer.close()
    assert asked == [1]


def test_an_agent_without_an_answer_gets_0(visual: FrontendEvaluator, painter: Painter) -> None:
    found = asyncio.run(visual(TASK, WANTED, episode(None)))
    assert found.reward and found.reward.value == 0
    assert found.verdict is Verdict.LOAD and found.error is None
    assert painter.drawn == []


@pytest.mark.parametrize(
    ("answer", "verdict", "why"),
    [
        ("", Verdict.LOAD, "no answer"),
        ("I could not do it.", Verdict.LOAD, "no <html>"),
        ("<html>" + "x" * MAX_PAGE_BYTES + "</html>", Verdict.TOO_BIG, "bytes"),
    ],
)
def test_an_answer_that_is_no_page_gets_0_with_the_reason(
    visual: FrontendEvaluator, answer: str, verdict: Verdict, why: str
) -> None:
    found = visual.score(WANTED, answer)
    assert found.reward and found.reward.value == 0
    assert found.verdict is verdict
    assert found.reward.components["visual"] == 0
    assert any(why in test.reason for test in found.tests)


@pytest.mark.parametrize(
    "answer",
    [
        RED,
        f"Here it is:\n```html\n{RED}\n```\nI hope you like it.",
        f"<think>red?</think>{RED}",
        "<body class='red'>Tomatoes and beets</body>",
        "```html\n<body class='red'>Tomatoes and beets</body>\n```",
        "<html><body class='red'>Tomatoes and beets",
    ],
)
def test_a_page_is_found_however_it_is_laid_out(answer: str) -> None:
    html, verdict, _ = evaluator.page_of_answer(answer)
    assert html is not None and html.startswith("<") and "Tomatoes" in html
    assert verdict is Verdict.PASS
    assert "```" not in html and "think" not in html


def test_half_a_character_is_no_failure(visual: FrontendEvaluator) -> None:
    found = visual.score(WANTED, RED.replace("beets", "\ud83d"))
    assert found.reward and 0 < found.reward.value < 1


def test_a_page_that_could_not_be_drawn_has_no_reward(visual: FrontendEvaluator) -> None:
    for reference, answer in ((RED, "<html>hang</html>"), ("<html>hang</html>", RED)):
        found = visual.score(HiddenInfo(reference), answer)
        assert found.reward is None and found.verdict is Verdict.INFRA
        assert found.error and "4 s" in found.error
    assert visual.score(HiddenInfo(" "), RED).error == (
        "The task has no page to compare an answer with."
    )


def test_a_model_that_can_t_be_loaded_gives_no_reward_and_no_other_evaluator(
    painter: Painter,
) -> None:
    def broken() -> Clip:
        raise EvaluatorError("clip:x could not be loaded")

    scorer = FrontendEvaluator(painter, broken)
    found = scorer.score(WANTED, RED)
    scorer.close()
    assert found.reward is None and "could not be loaded" in str(found.error)


def test_a_reference_is_drawn_once(visual: FrontendEvaluator, painter: Painter) -> None:
    for color in ("red", "blue", "green"):
        visual.score(WANTED, RED.replace("red", color))
    assert painter.drawn.count(RED) == 2  # as the wanted page, and as an answer


def test_rows_of_answers_come_out_in_their_order(visual: FrontendEvaluator) -> None:
    given = [{"task_index": i % 2, "answer": a, "more": 1} for i, a in enumerate([RED, BLUE] * 12)]
    given += [{"task_index": 7, "answer": RED}, {"task_index": 0, "answer": 3}]
    given += [{"task_index": 0, "answer": None}, {"task_index": 0, "answer": "<html>hang</html>"}]
    rows = list(visual.score_rows([WANTED, HiddenInfo(BLUE)], given))
    assert [row["task_index"] for row in rows] == [g["task_index"] for g in given]
    assert all(row["score"] == row["visual"] == 1 for row in rows[:24])
    assert {row["evaluator"] for row in rows[:24]} == {"visual"}
    assert [row["score"] for row in rows[24:]] == [None, None, 0, None]
    assert [row["verdict"] for row in rows[24:]] == ["infra", "infra", "load", "infra"]
    assert all(row["cosine"] is None for row in rows)
    assert all(row["error"] for row in rows if row["score"] is None)
    json.dumps(rows, allow_nan=False)


# With the real browser


def test_real_pages_are_scored_in_the_browser() -> None:
    page = (
        '<html><body style="margin:0"><h1 style="background:#10b981">Green garden</h1>'
        "<p>We plant trees and hedges.</p><p>We mow your lawn.</p></body></html>"
    )
    others = {
        "itself": page,
        "blue": page.replace("#10b981", "#1d4ed8"),
        "half": page.replace("<p>We mow your lawn.</p>", ""),
        "blank": "<html><body></body></html>",
        "broken": "<html><body><div style=",
    }
    with Renderer() as renderer:
        scorer = FrontendEvaluator(renderer, no_weights)
        found = {name: scorer.score(HiddenInfo(page), html) for name, html in others.items()}
        scorer.close()
    values = {name: one.reward.value for name, one in found.items() if one.reward}
    assert values["itself"] == 1
    assert 1 > values["blue"] > values["half"] > 0.3
    assert values["blank"] == values["broken"] == 0

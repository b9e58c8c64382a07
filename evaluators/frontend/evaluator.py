"""From an answer to a reward: CLIP's cosine of two pages' pictures, or their visual similarity.

As in arXiv:2503.15478, section 3, the reward is the cosine of the two pictures' CLIP embeddings.
Where CLIP's weights can't be had it is the visual similarity of `evaluators/visual.py`. Which of
the two it was is the reward's evaluator, `clip:MODEL/WEIGHTS` or `visual`: figures of one are
never put together with the other's. One evaluator stays with one of the two for as long as it
lives.

An agent that made no page gets 0. A page that could not be drawn gets no reward: a browser that
gave up does not say whose fault it was.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from evaluators.frontend.clip import Clip
from evaluators.frontend.weights import WeightsMissing
from evaluators.visual import NOTHING, Similarity, similarity
from sweet.errors import EvaluatorError, SweetError, boundary
from sweet.parsing import MAX_PAGE_BYTES, page_in, spoken
from sweet.types import (
    DrawsPages,
    Episode,
    Evaluation,
    HiddenInfo,
    Rendering,
    Reward,
    Task,
    TestResult,
    Verdict,
)

VISUAL = "visual"
AT_ONCE = 4
KEPT_REFERENCES = 64  # pictures of up to some hundred kilobytes

_FENCE = re.compile(r"(?:```|~~~)[ \t]*\w*[ \t]*\n(.*?)(?:\n[ \t]*(?:```|~~~)|\Z)", re.DOTALL)
_STARTS_AS_PAGE = re.compile(r"\s*<(?:!doctype|!--|[a-z][a-z0-9-]*[\s>/])", re.IGNORECASE)


class FrontendEvaluator:
    """Scores web pages. Safe from any thread; `await` it from asyncio, close it when done."""

    def __init__(self, renderer: DrawsPages, clip: Callable[[], Clip]) -> None:
        """`clip` loads the model; called once, by the first page. WeightsMissing: do without."""
        self._renderer = renderer
        self._open_clip = clip
        self._clip: Clip | None = None
        self._why_visual: str | None = None
        self._references: OrderedDict[str, Rendering] = OrderedDict()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="pages")

    async def __call__(self, task: Task, hidden: HiddenInfo, episode: Episode) -> Evaluation:
        """The evaluation of `episode.artifact`; without one the reward is 0."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.score, hidden, episode.artifact)

    @property
    def name(self) -> str:
        """What rewards say gave them. Raises: EvaluatorError, ConfigError where CLIP is wrong."""
        clip = self._ready()
        return clip.name if clip else VISUAL

    @property
    def why_visual(self) -> str:
        """Why there is no CLIP; empty where there is. Raises: as `name`."""
        return "" if self._ready() else self._why_visual or ""

    def score(self, hidden: HiddenInfo, answer: str | None) -> Evaluation:
        """The evaluation of one answer. A failed scoring is a value without a reward."""
        try:
            clip = self._ready()
            html, verdict, why = page_of_answer(answer)
            if html is None:
                return _evaluation(NOTHING, 0.0 if clip else None, clip, verdict, why)
            wanted = self._reference(hidden.reference)
            with boundary(EvaluatorError, "The page could not be drawn"):
                drawn = self._renderer.render(html)
            with boundary(EvaluatorError, "The pages could not be compared"):
                found = similarity(wanted, drawn)
                cosine = clip.cosine(wanted.png, drawn.png) if clip else None
        except SweetError as e:
            return Evaluation(None, Verdict.INFRA, error=str(e))
        return _evaluation(found, cosine, clip)

    def score_rows(
        self, tasks: Sequence[HiddenInfo], rows: Iterable[Mapping[str, object]]
    ) -> Iterator[dict[str, object]]:
        """`{task_index, score, passed, verdict, …}` for each row `{task_index, answer}`, in order.

        With the evaluator's name, `cosine` (None without CLIP), `visual` and its parts; all are
        None, with an `error`, where the scoring itself failed.
        """
        waiting = []
        for row in rows:
            waiting.append((row.get("task_index"), self._threads.submit(self._row, tasks, row)))
            if len(waiting) > 4 * AT_ONCE:
                index, future = waiting.pop(0)
                yield as_row(index, future.result())
        for index, future in waiting:
            yield as_row(index, future.result())

    def _row(self, tasks: Sequence[HiddenInfo], row: Mapping[str, object]) -> Evaluation:
        index, answer = row.get("task_index"), row.get("answer")
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(tasks):
            wrong = f"task_index {index!r} names no task: there are {len(tasks)}, from 0 on"
        elif answer is not None and not isinstance(answer, str):
            wrong = f"the answer is {type(answer).__name__}, not text"
        else:
            return self.score(tasks[index], answer)
        return Evaluation(None, Verdict.INFRA, error=wrong)

    def close(self) -> None:
        """Give the threads back. The renderer belongs to whoever started it."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ready(self) -> Clip | None:
        with self._lock:
            if self._clip is None and self._why_visual is None:
                try:
                    self._clip = self._open_clip()
                except WeightsMissing as e:
                    self._why_visual = str(e)
            return self._clip

    def _reference(self, html: str) -> Rendering:
        """The wanted page as it looks; it is drawn once."""
        if not html.strip():
            raise EvaluatorError("The task has no page to compare an answer with.")
        with self._lock:
            found = self._references.get(html)
        if found is None:
            with boundary(EvaluatorError, "The wanted page could not be drawn"):
                found = self._renderer.render(html)
            with self._lock:
                self._references[html] = found
                while len(self._references) > KEPT_REFERENCES:
                    self._references.popitem(last=False)
        return found


def page_of_answer(answer: str | None) -> tuple[str | None, Verdict, str]:
    """The page in an answer as HTML; else None, with what is wrong with it and why.

    A whole document stands before everything else in the answer. Without one, an answer that is
    HTML all the same, in a fence or not, is drawn as a browser draws it.
    """
    if answer is None or not answer.strip():
        return None, Verdict.LOAD, "There is no answer."
    found = page_in(answer)
    html = found.html
    if html is None:
        said = spoken(answer)
        fenced = [block for block in _FENCE.findall(said) if _STARTS_AS_PAGE.match(block)]
        html = fenced[-1] if fenced else said
        if not _STARTS_AS_PAGE.match(html):
            return None, Verdict.LOAD, found.why
    size = len(html.encode(errors="replace"))
    if size > MAX_PAGE_BYTES:
        why = f"The page has {size:,} bytes; the most is {MAX_PAGE_BYTES:,}."
        return None, Verdict.TOO_BIG, why
    return html.encode(errors="replace").decode(), Verdict.PASS, ""


def _evaluation(
    found: Similarity,
    cosine: float | None,
    clip: Clip | None,
    verdict: Verdict | None = None,
    why: str = "",
) -> Evaluation:
    parts = {VISUAL: found.overall, **found.parts()}
    value = found.overall
    if cosine is not None:
        value = parts["cosine"] = max(0.0, cosine)  # below 0 is as far as can be
    verdict = verdict or (Verdict.PASS if value >= 1 else Verdict.WRONG)
    tests = (TestResult("the page", None, None, verdict, reason=why),) if why else ()
    reward = Reward(value, parts, clip.name if clip else VISUAL)
    return Evaluation(reward, verdict, tests)


def as_row(task_index: object, evaluation: Evaluation) -> dict[str, object]:
    """A line of `python -m sweet score --kind frontend`."""
    row: dict[str, object] = {"task_index": task_index, "score": None, "passed": None}
    row |= {"verdict": str(evaluation.verdict), "evaluator": None, "cosine": None, "visual": None}
    reward = evaluation.reward
    if reward is None:
        return row | {"error": evaluation.error}
    row |= {"score": reward.value, "passed": reward.value >= 1, "evaluator": reward.evaluator}
    row |= reward.components
    if evaluation.tests:
        row["reason"] = evaluation.tests[0].reason
    return row

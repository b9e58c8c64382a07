"""The end of an episode → HTML: what became of it, the tests, a person's grade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sweet.types import Episode, Evaluation, Feedback, Reward, StopReason, TestResult, Verdict
from ui.format import NA, duration, esc, field_text, notice, number, outcome, percent, pill

VERDICTS: Mapping[Verdict, tuple[str, str]] = {
    Verdict.PASS: ("pass", "✓ pass"),
    Verdict.WRONG: ("wrong", "✗ wrong"),
    Verdict.TIMEOUT: ("timeout", "◷ time-out"),
    Verdict.CRASH: ("wrong", "✗ crash"),
    Verdict.LOAD: ("wrong", "✗ does not load"),
    Verdict.MISSING: ("wrong", "✗ no such function"),
    Verdict.TOO_BIG: ("wrong", "✗ too big"),
    Verdict.NOT_DATA: ("wrong", "✗ not plain data"),
    Verdict.INFRA: ("none", "○ not scored"),
}

_EXPLAINED = {
    StopReason.TURN_LIMIT: (
        "The turns are used up",
        "The agent never gave its answer, so there is nothing to test.",
    ),
    StopReason.STOPPED: (
        "Stopped",
        "What was said is kept in the log. There is no reward.",
    ),
}

_GRADES = (("good", "Good", 1.0), ("partly", "Partly", 0.0), ("bad", "Bad", -1.0))


def result(
    episode: Episode,
    said: Feedback | None = None,
    *,
    rate: bool = False,
    forks: Sequence[str] = (),
) -> str:
    """What became of an episode; "" while it goes on. `rate` adds the form for a grade."""
    if episode.stop_reason is None:
        return ""
    reward = episode.reward.value if episode.reward else None
    grade = said.rating if said else None
    kind, words = outcome(episode.stop_reason, reward, grade, graded=is_graded(episode))
    parts = [f'<div class="outcome"><h2>Result</h2>{pill(kind, words)}{_score(episode)}</div>']
    if episode.stop_reason is StopReason.REPLACED:
        parts.append(_replaced(forks))
    elif episode.stop_reason is StopReason.TURN_LIMIT and episode.artifact:
        parts.append(notice("The turns are used up", "The last version of the page counts."))
    elif explained := _EXPLAINED.get(episode.stop_reason):
        parts.append(notice(*explained))
    if episode.error:
        parts.append(notice("The turn failed", episode.error, "error"))
    if episode.evaluation:
        parts.append(evaluation(episode.evaluation))
    if rate:
        parts.append(_grade_form(said, scored=reward is not None))
    elif said and (said.comment or said.rating is not None):
        parts.append(_grade(said))
    return f'<section class="result" aria-label="Result">{"".join(parts)}</section>'


def is_graded(episode: Episode) -> bool:
    """Whether the reward says how alike two pages look, not whether tests pass."""
    return episode.reward is not None and "tests_passed" not in episode.reward.components


def evaluation(found: Evaluation) -> str:
    """The table of tests, and where they were run; for a web page, the parts of its reward."""
    if found.error:
        hint = f"{found.error} There is no reward; this is no fault of the answer."
        return notice("Scoring failed", hint, "error")
    rows = "".join(_test_row(i, test) for i, test in enumerate(found.tests, start=1))
    if not rows:
        return _parts(found.reward) if found.reward else ""
    heads = ("#", "Call", "Expected", "Got", "Time", "Verdict")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    level = esc(found.sandbox_level or NA)
    return (
        '<h3>Tests</h3><div class="scroll" tabindex="0" role="region" aria-label="Tests">'
        f'<table class="tests"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<p class="meta">Run in the sandbox at level “{level}”.</p>'
    )


def _parts(reward: Reward) -> str:
    """What a reward is made of, and what gave it."""
    facts = "".join(
        f"<div><dt>{esc(name.replace('_', ' '))}</dt><dd>{number(value)}</dd></div>"
        for name, value in reward.components.items()
    )
    by = f'<p class="meta">Scored by the evaluator “{esc(reward.evaluator)}”.</p>'
    return f'<dl class="facts">{facts}</dl>{by}' if facts else by


def _test_row(i: int, test: TestResult) -> str:
    kind, words = VERDICTS[test.verdict]
    reason = f'<span class="meta">{esc(test.reason)}</span>' if test.reason else ""
    cells = (
        ("Test", str(i)),
        ("Call", f"<code>{esc(test.call)}</code>"),
        ("Expected", _value(test.expected)),
        ("Got", _value(test.got)),
        ("Time", duration(test.duration_ms)),
        ("Verdict", f"<div>{pill(kind, words)}{reason}</div>"),
    )
    return "<tr>" + "".join(f'<td data-label="{n}">{text}</td>' for n, text in cells) + "</tr>"


def _value(text: str | None) -> str:
    return NA if text is None else f"<code>{esc(text)}</code>"


def _score(episode: Episode) -> str:
    if episode.reward is None:
        return f'<span class="meta">reward {NA}</span>'
    reward = number(episode.reward.value)
    if is_graded(episode):
        return f'<span class="meta">reward {reward}</span>'
    passed = percent(episode.reward.components.get("tests_passed"))
    return f'<span class="meta">reward {reward} · tests passed {passed}</span>'


def _replaced(forks: Sequence[str]) -> str:
    links = ", ".join(f'<a href="sessions?episode={esc(id)}">{esc(id)}</a>' for id in forks)
    where = f" It went on in {links}." if links else ""
    return (
        '<div class="notice"><strong>This version was replaced</strong>'
        f"<p>A turn was edited or retried.{where}</p></div>"
    )


def _grade(said: Feedback) -> str:
    name = next((name for _, name, value in _GRADES if value == said.rating), NA)
    return f'<p class="said">A person’s grade: {pill("none", name)} <q>{esc(said.comment)}</q></p>'


def _grade_form(said: Feedback | None, scored: bool) -> str:
    lead = "Do you agree with the score?" if scored else "Nothing was scored, so your word counts."
    radios = "".join(
        f'<label class="check"><input type="radio" name="rating" value="{key}"'
        f"{' checked' if said and said.rating == value else ''}>{name}</label>"
        for key, name, value in _GRADES
    )
    comment = field_text(said.comment) if said else ""
    return (
        '<form data-action="rate" class="grade"><h3>Is this what you wanted?</h3>'
        f'<p class="meta">{lead}</p><fieldset><legend>Grade</legend>{radios}</fieldset>'
        f'<label>Comment<textarea name="comment" rows="2" maxlength="2000">{comment}</textarea>'
        '</label><button type="submit" class="primary">Save grade</button></form>'
    )

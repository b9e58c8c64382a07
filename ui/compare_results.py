"""What two sides made → HTML: their code and their tests beside each other, what differs marked.

A difference has a sign and a word, never a colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from sweet.types import Episode, Evaluation, TestResult
from ui.format import MAX_SHOWN_CHARS, NA, code_lines, duration, esc, notice, pill
from ui.results import VERDICTS

MAX_DIFF_LINES = 1000
"""Of a side; beyond them lines are not matched, since that takes time with their square."""

_Row = tuple[int | None, int | None, bool]
"""Which line of each side stands in a row, and whether they are the same."""


def functions(left: Episode, right: Episode, *, times: bool) -> str:
    """The code of both sides and the tests of both; `times` adds how long each test took."""
    return code_beside(left.artifact, right.artifact) + tests_beside(
        left.evaluation, right.evaluation, times=times
    )


def code_beside(left: str | None, right: str | None) -> str:
    """Both sources, line beside line; lines that the other side does not have are marked."""
    if left is None and right is None:
        return notice("No answer", "Neither side gave code.")
    sources = [None if a is None else a[:MAX_SHOWN_CHARS].splitlines() for a in (left, right)]
    rows = _matched(sources[0] or [], sources[1] or [])
    differ = sum(not same for _, _, same in rows)
    known = all(source is not None for source in sources)
    count = f'<p class="meta" role="status">{_counted(differ, "line")}</p>' if known else ""
    panes = "".join(
        _pane(letter, artifact, [(row[i], row[2]) for row in rows])
        for i, (letter, artifact) in enumerate((("A", left), ("B", right)))
    )
    return f'<h3>Code</h3>{count}<div class="duo">{panes}</div>'


def _matched(left: Sequence[str], right: Sequence[str]) -> list[_Row]:
    """Rows of lines that belong together."""
    a, b = [line.rstrip() for line in left], [line.rstrip() for line in right]
    if max(len(a), len(b)) > MAX_DIFF_LINES:
        both = range(max(len(a), len(b)))
        return [(_at(i, a), _at(i, b), i < min(len(a), len(b)) and a[i] == b[i]) for i in both]
    rows: list[_Row] = []
    for tag, a1, a2, b1, b2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for i in range(max(a2 - a1, b2 - b1)):
            at_a, at_b = a1 + i, b1 + i
            rows.append((at_a if at_a < a2 else None, at_b if at_b < b2 else None, tag == "equal"))
    return rows


def _at(i: int, lines: Sequence[str]) -> int | None:
    return i if i < len(lines) else None


def _pane(letter: str, artifact: str | None, rows: Sequence[tuple[int | None, bool]]) -> str:
    title = f'<h4 class="side-mark">Side {letter}</h4>'
    if artifact is None:
        none = notice("No answer", "This side gave no code.")
        return f'<div class="side" data-side="{letter}">{title}{none}</div>'
    lines = code_lines(artifact)
    body = "".join(_line(lines, at, same) for at, same in rows)
    cut = lines[-1] if len(artifact) > MAX_SHOWN_CHARS else ""
    return (
        f'<div class="side" data-side="{letter}">{title}<div class="code">'
        f'<pre class="beside" tabindex="0" aria-label="Code of side {letter}"><code>{body}{cut}'
        "</code></pre></div></div>"
    )


def _line(lines: Sequence[str], at: int | None, same: bool) -> str:
    if at is None or at >= len(lines):
        return '<span class="row gap"> \n</span>'
    if same:
        return f'<span class="row">{lines[at]}\n</span>'
    return f'<span class="row differs" title="differs">{lines[at]}\n</span>'


# Tests


def tests_beside(left: Evaluation | None, right: Evaluation | None, *, times: bool) -> str:
    """One table of both sides' tests: rows in which they came to something else are marked."""
    tests = [list(found.tests) if found else [] for found in (left, right)]
    failures = _scoring_failures(left, right)
    if not any(tests):
        return failures
    pairs = _paired(*tests)
    differ = sum(_differs(*pair) for pair in pairs)
    rows = "".join(_test_row(i, *pair, times) for i, pair in enumerate(pairs, start=1))
    heads = ("#", "Call", "Expected", "Side A got", "Side B got", "The same?")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        f'{failures}<h3>Tests</h3><p class="meta" role="status">{_counted(differ, "test")}</p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Tests of both sides">'
        f'<table class="tests both"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        "</div>"
    )


def _scoring_failures(left: Evaluation | None, right: Evaluation | None) -> str:
    return "".join(
        notice(f"Scoring side {letter} failed", f"{found.error} There is no reward.", "error")
        for letter, found in (("A", left), ("B", right))
        if found and found.error
    )


def _paired(
    left: Sequence[TestResult], right: Sequence[TestResult]
) -> list[tuple[TestResult | None, TestResult | None]]:
    """The results of one call beside each other; a call that only one side has stands alone."""
    if [t.call for t in left] == [t.call for t in right]:
        return list(zip(left, right, strict=True))
    others = {t.call: t for t in right}
    both = [(t, others.pop(t.call, None)) for t in left]
    return [*both, *((None, t) for t in others.values())]


def _differs(left: TestResult | None, right: TestResult | None) -> bool:
    if left is None or right is None:
        return True
    return (left.verdict, left.got) != (right.verdict, right.got)


def _test_row(i: int, left: TestResult | None, right: TestResult | None, times: bool) -> str:
    differs = _differs(left, right)
    known = left or right
    assert known is not None  # a pair has one at least
    cells = (
        ("Test", str(i)),
        ("Call", f"<code>{esc(known.call)}</code>"),
        ("Expected", NA if known.expected is None else f"<code>{esc(known.expected)}</code>"),
        ("A", _got(left, times)),
        ("B", _got(right, times)),
        ("The same?", pill("timeout", "≠ differs") if differs else pill("none", "= same")),
    )
    marked = ' class="differs"' if differs else ""
    tds = "".join(f'<td data-label="{name}">{text}</td>' for name, text in cells)
    return f"<tr{marked}>{tds}</tr>"


def _got(test: TestResult | None, times: bool) -> str:
    if test is None:
        return NA
    kind, words = VERDICTS[test.verdict]
    got = "" if test.got is None else f"<code>{esc(test.got)}</code> "
    took = f'<span class="meta">{duration(test.duration_ms)}</span>' if times else ""
    reason = f'<span class="meta">{esc(test.reason)}</span>' if test.reason else ""
    return f"<div>{got}{pill(kind, words)}{took}{reason}</div>"


def _counted(differ: int, what: str) -> str:
    if not differ:
        return f"No {what} differs."
    return f"{differ} {what}{' differs' if differ == 1 else 's differ'}."

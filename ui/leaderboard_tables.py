"""The leaderboard → an HTML table: versions, and the paper's rows beneath.

No figure stands without its n. Text is escaped by `ui.format` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from sweet.comparing.leaderboard import Row
from sweet.comparing.standings import Standings, paper_rows
from ui.figures import Shows, figure, share, similarity
from ui.format import NA, esc, notice
from ui.session import BOARD_COLUMNS, BoardView, LogView


def turns(value: float) -> str:
    """A mean number of turns."""
    return f"{value:.2f}"


def tokens(value: float) -> str:
    """A mean number of tokens."""
    return f"{value:,.0f}"


_SHOWS: dict[str, Shows] = {
    "success": share,
    "tests_passed": share,
    "cosine": similarity,
    "visual": similarity,
    "win_rate": share,
    "judge_win_rate": share,
    "turns": turns,
    "tokens": tokens,
}
_WORDS = {
    "text": "with the words",
    "task_set": "task set",
    "task_id": "task",
    "policy_id": "version",
    "since": "from",
    "batch_id": "batch",
}
_FIRST = (("policy_id",), ("task_set", "evaluator"), ("n",))
"""The columns before the figures; the evaluator stands below the task set."""
_EXPLAINED = (
    "<p>A row is a version on a task set by one evaluator; two evaluators, or two task sets, are "
    "never put together. Only a version’s own scored work counts. n is of how many a figure is; "
    "below it is its 95 % interval.</p>"
    "<p><b>Success</b>: all tests passed, of backend tasks (Wilson interval). <b>Win rate</b>: "
    "people’s votes against all other versions, a tie as half a win; <b>judge</b>: the same of "
    "the judge’s verdicts. <b>Cosine</b>, <b>Visual</b>: similarity to the page that was wanted. "
    "<b>Tokens</b>: read and written by the agent in an episode, over the episodes where all are "
    "known. Their intervals are bootstraps of the mean.</p>"
)


def table(found: Standings, view: BoardView, versions: Sequence[str] = ()) -> str:
    """All versions as a table that can be sorted, the paper's rows beneath if asked for.

    Of `versions` those are named that have no row, where no filter has left them out.
    """
    address = f'<span data-address="{esc(view.query)}"></span>'
    rows = found.board.rows
    figures = _known(rows, view)
    if not rows:
        nothing = _nothing(view)
        return address + nothing + (_framed((), view, figures) if view.paper else "")
    seen = {row.policy_id for row in rows}
    unseen = [name for name in versions if name not in seen] if _has_no_filter(view) else []
    words = f"{len(rows):,} row{'' if len(rows) == 1 else 's'}{_only(view)}"
    count = f'<p class="meta" role="status">{words}</p>'
    return (
        f"{address}{count}{_framed(rows, view, figures)}"
        f"{_without_figure(figures)}{_unseen(unseen)}"
        '<details class="explained"><summary>What do these figures mean?</summary>'
        f"{_EXPLAINED}</details>"
    )


def _only(view: BoardView) -> str:
    """What is left out, in words: the filters may be folded away."""
    asked = {_WORDS.get(name, name): value for name, value in asdict(view.wanted).items() if value}
    asked |= {"evaluator": view.evaluator} if view.evaluator else {}
    told = [f"{name} {esc(value)}" for name, value in asked.items()]
    told += ["votes of who could not know"] if view.blind_only else []
    return f", only: {', '.join(told)}" if told else ""


def _has_no_filter(view: BoardView) -> bool:
    return view.wanted == BoardView().wanted and not view.evaluator


def _unseen(names: Sequence[str]) -> str:
    if not names:
        return ""
    told = ", ".join(map(esc, names))
    return f'<p class="meta">Without a scored episode or a vote: {told}</p>'


def _nothing(view: BoardView) -> str:
    if not _has_no_filter(view):
        return notice("Nothing matches", "Change or clear the filters.")
    return notice(
        "Nothing to rank yet",
        "A version appears here with its first scored episode or its first vote: play one in "
        "Collaborate, or start some in Watch.",
    )


def _known(rows: Sequence[Row], view: BoardView) -> list[str]:
    """The figures that any row has, the paper's included, and the one that was asked to sort by."""
    every = [*rows, *(paper_rows() if view.paper else ())]
    sorted_by = "" if view.sort == BoardView().sort else view.sort.split()[0]

    def is_known(column: str) -> bool:
        found = [getattr(row, column) for row in every]
        return any(one.n or one.value is not None for one in found)

    return [column for column in _SHOWS if is_known(column) or column == sorted_by]


def _without_figure(known: Sequence[str]) -> str:
    missing = ", ".join(BOARD_COLUMNS[column] for column in _SHOWS if column not in known)
    return f'<p class="meta">n/a in every row, so not shown: {missing}</p>' if missing else ""


def _framed(rows: Sequence[Row], view: BoardView, figures: Sequence[str]) -> str:
    heads = [*_FIRST, *((column,) for column in figures)]
    head = "".join(
        f'<th scope="col"{_sorted_state(columns, view.sort)}>'
        f"{''.join(_sort_button(column, view.sort) for column in columns)}</th>"
        for columns in heads
    )
    body = "".join(_row(row, view, figures) for row in rows)
    paper = _paper(figures) if view.paper else ""
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Versions">'
        f'<table class="log board"><thead><tr>{head}</tr></thead><tbody>{body}</tbody>{paper}'
        "</table></div>"
    )


def _sorted_state(columns: Sequence[str], sort: str) -> str:
    by, _, way = sort.partition(" ")
    return f' aria-sort="{way}ending"' if by in columns else ""


def _sort_button(column: str, sort: str) -> str:
    by, _, way = sort.partition(" ")
    other = "asc" if by == column and way == "desc" else "desc"
    mark = {"asc": " ↑", "desc": " ↓"}[way] if by == column else ""
    return (
        f'<button type="button" data-action="sort" data-key="sort-{column}" '
        f'data-sort="{column} {other}">{BOARD_COLUMNS[column]}{mark}</button>'
    )


def _row(row: Row, view: BoardView, figures: Sequence[str]) -> str:
    wanted = replace(view.wanted, policy_id=row.policy_id, task_set=row.task_set)
    link = (
        f'<a href="sessions?{esc(LogView(wanted).query)}" '
        f'aria-label="Sessions of {esc(row.policy_id)} on {esc(row.task_set)}">Sessions</a>'
    )
    return _tr(row, link, f"{row.n:,}", figures)


def _tr(row: Row, below: str, n: str, figures: Sequence[str]) -> str:
    cells = "".join(
        f'<td class="figure" data-label="{BOARD_COLUMNS[column]}">'
        f"{figure(getattr(row, column), _SHOWS[column])}</td>"
        for column in figures
    )
    return (
        f'<tr><th scope="row">{esc(row.policy_id)} <span class="meta">{below}</span></th>'
        f'<td class="where" data-label="">{esc(row.task_set)} '
        f'<span class="meta">{esc(row.evaluator or NA)}</span></td>'
        f'<td data-label="n">{n}</td>{cells}</tr>'
    )


def _paper(figures: Sequence[str]) -> str:
    told = "the paper’s, not measured here"
    width = len(_FIRST) + len(figures)
    body = "".join(_tr(row, told, NA, figures) for row in paper_rows())
    return (
        f'<tbody class="paper"><tr><th scope="rowgroup" colspan="{width}">The paper’s rows '
        '(arXiv:2503.15478), <strong>not measured here</strong> <span class="meta">other models, '
        "ColBench’s own tasks; n is its number of test tasks, win rates are against GPT-4o’s "
        f"pages, and it gives no intervals</span></th></tr>{body}</tbody>"
    )

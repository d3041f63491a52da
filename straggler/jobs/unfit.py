"""Rows on which a job fails even without disorder, so that no answer to them can be right."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from straggler.jobs.report import describe_row
from straggler.jobs.rows import Input, Row, special

Failure: TypeAlias = Callable[[Sequence[Row]], str]
"""Function that returns why the job fails on rows, or an empty text."""


def find_failure(inputs: Sequence[Input], rows: Iterable[Row], failure: Failure) -> str:
    """Return why a job fails, and on which row; an empty text if it does not.

    Plain rows are tried first: the row that is named has what the others lack.
    """
    tried = covering(sorted(rows, key=special))
    reason = failure(tried)
    if not reason:
        return ""
    few = _failing(tried, failure)[:1] or tried[:2]
    return f"{reason}, such as on {'; '.join(describe_row(row, inputs) for row in few)}"


def covering(rows: Iterable[Row]) -> list[Row]:
    """Return the first rows that have every value of every column."""
    seen: set[tuple[int, int, str]] = set()
    chosen: list[Row] = []
    for row in rows:
        values = {(row.source, n, repr(value)) for n, value in enumerate(row.values)}
        if not values <= seen or not chosen:
            seen |= values
            chosen.append(row)
    return chosen


def _failing(rows: Sequence[Row], failure: Failure) -> list[Row]:
    """Return the rows on which a job fails alone."""
    if not rows or not failure(rows):
        return []
    half = len(rows) // 2
    return [*_failing(rows[:half], failure), *_failing(rows[half:], failure)] if half else [*rows]

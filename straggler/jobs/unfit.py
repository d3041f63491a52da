"""Values on which a job fails: found once, named, and kept out of all streams.

A job that fails on a null has no right answer to a stream with one. The other streams still have
one, and a user wants to know which column it was.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from straggler.jobs.report import describe_row
from straggler.jobs.rows import Input, Row, special, text_of
from straggler.jobs.streams import Stream, copied

TRIES = 16
"""Number of rows among which one is searched on which the job does not fail."""
Failure: TypeAlias = Callable[[Sequence[Row]], str]
"""Function that returns why the job fails on rows, or an empty text."""


class Unfit(NamedTuple):
    """A value of a column on which a job fails."""

    source: int
    place: int
    """Number of the column among those besides the event time."""
    text: str
    """The value as a text that no other value has."""
    instead: Any
    """A value on which the job does not fail."""
    sentence: str


def find_unfit(
    inputs: Sequence[Input], rows: Iterable[Row], failure: Failure
) -> tuple[tuple[Unfit, ...], str]:
    """Return the values on which a job fails, and a sentence if it fails on more than these.

    Each value is tried in a row on which the job does not fail otherwise.
    """
    rows = sorted(rows, key=special)
    tried = covering(rows)
    if not failure(tried):
        return (), ""
    found: list[Unfit] = []
    for source, of in enumerate(inputs):
        mine = [row for row in tried if row.source == source]
        others = [row for row in rows if row.source == source]
        right = next((row for row in others[:TRIES] if not failure([row])), None)
        for place, column in enumerate(of.others if right else ()):
            assert right is not None
            values = {repr(row.values[place]): row.values[place] for row in mine}
            alone = [_with(right, place, value) for value in values.values()]
            for row in _failing(alone, failure):
                value = row.values[place]
                shown = "an empty text" if value == "" else text_of(value)
                advice = "say NOT NULL in the schema" if value is None else "give columns="
                sentence = (
                    f"{failure([row])}, where {column.name} is {shown}; {advice} if that cannot be"
                )
                found.append(Unfit(source, place, repr(value), right.values[place], sentence))
    tried = [fitted(row, found) for row in tried]
    if reason := failure(tried):
        few = [*islice(_failing(tried, failure), 1)] or tried[:2]
        shown = "; ".join(describe_row(row, inputs) for row in few)
        return tuple(found), f"{reason}, such as on {shown}"
    return tuple(found), ""


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


def _failing(rows: Sequence[Row], failure: Failure) -> Iterator[Row]:
    """Yield the rows on which a job fails alone, each after as few calls as halves need."""
    if not rows or not failure(rows):
        return
    half = len(rows) // 2
    if not half:
        yield from rows
        return
    yield from _failing(rows[:half], failure)
    yield from _failing(rows[half:], failure)


def _with(row: Row, place: int, value: Any) -> Row:
    return row._replace(values=(*row.values[:place], value, *row.values[place + 1 :]))


def fitted(row: Row, unfit: Sequence[Unfit]) -> Row:
    """Return a row with other values in the place of those on which the job fails."""
    for each in unfit:
        if each.source == row.source and repr(row.values[each.place]) == each.text:
            row = _with(row, each.place, each.instead)
    return row


def fitted_stream(stream: Stream, unfit: Sequence[Unfit], inputs: Sequence[Input]) -> Stream:
    """Return a stream without the values on which the job fails."""
    return copied(stream.map(lambda row: fitted(row, unfit)), inputs) if unfit else stream

"""The place of each row of a dirty stream, from the cells of its file alone."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

SIZE_S, SLIDE_S = 10, 5
NEAR_S = 2
"""Largest distance of the times of a pair."""
LATENESS_S = 20
BAD_NUMBERS = (
    *("NaN", "Infinity", "-Infinity", "", "abc"),
    *("1e999", "1,5", "0x10", "9007199254740993"),
)
BAD_TIMES = ("", "yesterday", "4e18", "400000000000", "-99999999999", "9000000000")
"""Texts that are no times, times of no year, and one far ahead of every arrival."""
Window = tuple[str, int]
"""Device and start in microseconds."""
Pair = tuple[str, str]


class Row(NamedTuple):
    """A row of a CSV file."""

    side: str
    source_id: str
    device: str
    at: str
    v: str

    @property
    def fault(self) -> str | None:
        """The first column for which the row cannot land."""
        bad = {"at": self.at in BAD_TIMES, "device": not self.device, "id": not self.source_id}
        return next((name for name, is_bad in bad.items() if is_bad), None)

    @property
    def has_number(self) -> bool:
        """Return whether the value is a finite number."""
        return self.v not in BAD_NUMBERS

    @property
    def number(self) -> Fraction:
        """The value."""
        return Fraction(self.v)

    @property
    def content(self) -> tuple[object, ...]:
        """The values of the row: a number is the same in other digits."""
        return (*self[:-1], self.number if self.has_number else self.v)


class Counted(NamedTuple):
    """The rows that the answer of a window counts, and those that it lacks."""

    value: Fraction | None
    rows: int
    refused: int


def comes_again(rows: Iterable[Row]) -> Iterator[tuple[Row, bool]]:
    """Yield rows whose identity was there before, and whether their content is another one."""
    first: dict[str, Row] = {}
    for row in rows:
        if row.source_id in first:
            yield row, first[row.source_id].content != row.content
        else:
            first[row.source_id] = row


def windows(rows: Sequence[Row], *, keeps_contents: bool) -> Mapping[Window, Counted]:
    """Return all windows of rows that land.

    With ``keeps_contents`` a row that comes again with other content is missed in its windows.
    """
    accepted: dict[Window, dict[str, Fraction]] = defaultdict(dict)
    lacking = Counter[Window]()
    finite = [row for row in rows if row.has_number]
    lacks = [row for row in rows if not row.has_number]
    if keeps_contents:
        lacks += [row for row, is_other in comes_again(finite) if is_other]
    for row in lacks:
        lacking.update(_windows_of(row))
    for row in finite:
        for window in _windows_of(row):
            accepted[window].setdefault(row.source_id, row.number)
    return {
        each: Counted(
            sum(accepted[each].values(), Fraction(0)) if each in accepted else None,
            len(accepted.get(each, ())),
            lacking[each],
        )
        for each in {*accepted, *lacking}
    }


def _windows_of(row: Row) -> Iterator[Window]:
    at = int(row.at)
    for start in range(at - at % SLIDE_S, at - SIZE_S, -SLIDE_S):
        yield row.device, start * 1_000_000


def late(rows: Iterable[tuple[object, Row]]) -> list[bool]:
    """Return for each row whether it lies too far behind the latest admitted one of its stream."""
    latest: dict[object, int] = {}
    found = []
    for stream, row in rows:
        at = int(row.at)
        found.append(at < latest.get(stream, at) - LATENESS_S)
        if not found[-1]:
            latest[stream] = max(at, latest.get(stream, at))
    return found


def pairs(rows: Iterable[Row]) -> list[Pair]:
    """Return the identities of all pairs of rows of both sides that one key has."""
    sides: dict[str, dict[str, dict[str, int]]] = {"R": defaultdict(dict), "S": defaultdict(dict)}
    for row in rows:
        sides[row.side][row.device].setdefault(row.source_id, int(row.at))
    return [
        (r, s)
        for device, own in sides["R"].items()
        for (r, r_at), (s, s_at) in product(own.items(), sides["S"][device].items())
        if abs(r_at - s_at) <= NEAR_S
    ]


def sums(rows: Iterable[Row]) -> Mapping[Window, Fraction]:
    """Return the sums of windows that follow each other, each identity once."""
    once: dict[str, Row] = {}
    for row in rows:
        once.setdefault(row.source_id, row)
    found: dict[Window, Fraction] = defaultdict(Fraction)
    for row in once.values():
        start = int(row.at) // SIZE_S * SIZE_S * 1_000_000
        found[row.device, start] += row.number
    return found

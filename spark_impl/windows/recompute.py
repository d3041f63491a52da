"""Exact answers of chosen windows from rows of the history.

Rules of this file:

* Rows of all tasks are worked on together: a *place* is one combination of grouping columns, task
  and key, and everything is computed for all places at once.
* :func:`select` looks at every row on its own, :func:`evaluate` needs all rows of a place; between
  the two, rows may travel to other machines.
* What one place gives does not depend on others, so places may be dealt out to threads.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from spark_impl.runtime.arrays import Bools, Floats, Ints
from spark_impl.windows import correlation
from spark_impl.windows import panes as pane_math
from spark_impl.windows.asked import Asked
from spark_impl.windows.blocks import combined
from spark_impl.windows.extents import Stretch
from spark_impl.windows.pieces import Piece, span_us

Who: TypeAlias = tuple[Any, ...]
"""Values of the grouping columns, then the task."""

_STRETCHES = 16


class Wanted(NamedTuple):
    """Windows to recompute."""

    asked: Asked
    by: tuple[str, ...]
    places: list[tuple[Any, ...]]
    """Values of ``by`` and the key, of every place."""
    limit: Ints
    """Last arrival, for every place, that its task has processed."""
    windows: Ints
    """The distinct indices of all wanted windows, increasing."""
    wanted: Ints
    """place * len(windows) + position in ``windows``, increasing."""
    pairs: Ints
    """For every wanted window of a place, the pending pairs that ask for it."""


class Tuples(NamedTuple):
    """Rows of the history that lie in wanted windows; columns of equal length."""

    place: Ints
    seq: Ints
    source_id: Ints
    event_time_us: Ints
    value: Floats

    def take(self, which: Any) -> "Tuples":
        """The rows at some positions, under a mask, or of a slice."""
        return Tuples._make(column[which] for column in self)


class Found(NamedTuple):
    """Recomputed windows; columns of equal length."""

    place: Ints
    j: Ints
    value: Any
    n: Ints
    deliveries: Ints
    """Rows of the history in the window, those of a tuple that came again included."""
    rows: Ints
    """Rows of the history that the place needed, at its first window, else 0."""
    correlated: Ints
    """1 where the figures of delay and value follow, else 0."""
    cross: Ints
    delay_spread: Ints
    value_spread: Ints


def wanted(
    asked: Asked, by: Sequence[str], pending: pa.Table, limits: Mapping[Who, int]
) -> tuple[Wanted, Ints]:
    """The windows of some pending pairs, and the place of every row of ``pending``."""
    place, places = combined(pending, [*by, "key"])
    first = pending.column("start_us").to_numpy() // asked.slide_us
    row, j = pane_math.expand(first, first + pending.column("windows").to_numpy() - 1)
    windows, position = pane_math.compact(j)
    limit = np.array([limits[values[:-1]] for values in places], np.int64)
    chosen, pairs = np.unique(place[row] * len(windows) + position, return_counts=True)
    return Wanted(asked, tuple(by), places, limit, windows, chosen, pairs), place


def select(want: Wanted, piece: Piece, mine: Bools | None = None) -> Tuples:
    """The rows that lie in a wanted window of their place, ``mine`` masks some places."""
    number = {values: place for place, values in enumerate(want.places)}
    known = [number.get(values, -1) for values in piece.places]
    place = np.array(known, np.int64)[piece.place]
    size_us, slide_us, span = want.asked.size_us, want.asked.slide_us, span_us(want.asked)
    first = (piece.span * span - size_us) // slide_us + 1
    hit = _is_hit(want, place, first, ((piece.span + 1) * span - 1) // slide_us)
    hit &= place >= 0
    if mine is not None:
        hit &= mine[place]
    rows = np.repeat(hit, piece.size)
    near = Tuples(
        np.repeat(place[hit], piece.size[hit]),
        piece.seq[rows],
        piece.source_id[rows],
        piece.event_time_us[rows],
        piece.value[rows],
    )
    good = _in_wanted(want, near)
    if piece.last_seq > want.limit.min(initial=piece.last_seq):
        good &= near.seq <= want.limit[near.place]
    return near if good.all() else near.take(good)


def _in_wanted(want: Wanted, rows: Tuples) -> Bools:
    """Whether each row lies in a wanted window of its place; looked up once a pane."""
    spec = want.asked.windows
    pane = rows.event_time_us // spec.pane_us
    pane, place, position = pane_math.by_window(pane, rows.place, max(len(want.places), 1))
    first = (pane * spec.pane_us - spec.size_us) // spec.slide_us + 1
    return _is_hit(want, place, first, pane * spec.pane_us // spec.slide_us)[position]


def _is_hit(want: Wanted, place: Ints, first: Ints, last: Ints) -> Bools:
    """Whether one of the windows ``first .. last`` of a place is wanted."""
    size = len(want.windows)
    lo = np.searchsorted(want.windows, first)
    hi = np.searchsorted(want.windows, last, side="right") - 1
    nearest = np.searchsorted(want.wanted, place * size + lo)
    inside: Bools = nearest < len(want.wanted)
    inside &= want.wanted[np.minimum(nearest, len(want.wanted) - 1)] <= place * size + hi
    return inside


def joined(parts: Sequence[Tuples]) -> Tuples:
    """The rows of all parts, in their order."""
    none = np.empty(0, np.int64)
    nothing = Tuples(none, none, none, none, np.empty(0))
    columns = zip(nothing, *parts, strict=True)
    return Tuples._make(np.concatenate(column) for column in columns)


def evaluate(want: Wanted, rows: Tuples) -> Found:
    """Answers of the wanted windows from all selected rows of some places."""
    asked, spec = want.asked, want.asked.windows
    n_places = len(want.places)
    needed = np.bincount(rows.place, minlength=n_places)
    rows, again = _first_deliveries(want, rows)
    lo = np.maximum((rows.event_time_us - spec.size_us) // spec.slide_us + 1, want.windows[0])
    panes = pane_math.fill(asked, rows.place, rows.event_time_us, rows.value, lo, n_places)
    found = pane_math.answers(asked, panes, int(want.windows[-1]) + 1, n_places)
    hit = np.isin(_codes(want, found.key, found.j), want.wanted)
    place, j = found.key[hit], found.j[hit]
    count = np.zeros(len(place), np.int64)
    present, first = np.unique(place, return_index=True)
    count[first] = needed[present]
    figures = _correlations(want, rows, place, j)
    n = found.n[hit]
    deliveries = n + _per_window(want, again)[_positions(want, place, j)]
    return Found(place, j, found.value[hit], n, deliveries, count, *figures)


def _codes(want: Wanted, place: Ints, j: Ints) -> Ints:
    """Windows of places numbered as in ``want.wanted``, -1 where the index is not among them."""
    position = np.minimum(np.searchsorted(want.windows, j), len(want.windows) - 1)
    return np.where(want.windows[position] == j, place * len(want.windows) + position, -1)


def _positions(want: Wanted, place: Ints, j: Ints) -> Ints:
    """Where windows of places stand in ``want.wanted``, -1 for those that are not wanted."""
    codes = _codes(want, place, j)
    nearest = np.minimum(np.searchsorted(want.wanted, codes), len(want.wanted) - 1)
    return np.where(want.wanted[nearest] == codes, nearest, -1)


def _per_window(want: Wanted, rows: Tuples) -> Ints:
    """How many of some rows lie in every wanted window."""
    spec, ts = want.asked.windows, rows.event_time_us
    row, j = pane_math.expand((ts - spec.size_us) // spec.slide_us + 1, ts // spec.slide_us)
    position = _positions(want, rows.place[row], j)
    return np.bincount(position[position >= 0], minlength=len(want.wanted))


def _correlations(want: Wanted, rows: Tuples, place: Ints, j: Ints) -> list[Ints]:
    """Columns of :class:`Found` from ``correlated`` on, for some windows of places."""
    if not want.asked.correlates:
        return [np.zeros(len(j), np.int64) for _ in range(4)]
    recorded = correlation.recorded(want.asked, rows.event_time_us)
    which, owner, position = pane_math.by_window(recorded, rows.place, max(len(want.places), 1))
    rows = rows.take((_positions(want, owner, which) >= 0)[position])
    figures = correlation.figures(want.asked, rows.place, rows.seq, rows.event_time_us, rows.value)
    _, here, there = np.intersect1d(
        _codes(want, place, j), _codes(want, figures.place, figures.j), return_indices=True
    )
    columns = []
    for known in (1, figures.cross, figures.delay_spread, figures.value_spread):
        column = np.zeros(len(j), np.int64)
        column[here] = known if isinstance(known, int) else known[there]
        columns.append(column)
    return columns


def _first_deliveries(want: Wanted, rows: Tuples) -> tuple[Tuples, Tuples]:
    """Every identity once in its task, the delivery that arrived first; and the other rows."""
    ids = np.sort(rows.source_id)
    if not np.any(ids[1:] == ids[:-1]):
        return rows, rows.take(slice(0, 0))
    tasks = {values[:-1]: number for number, values in enumerate(want.places)}
    task = np.array([tasks[values[:-1]] for values in want.places], np.int64)[rows.place]
    order = np.lexsort((rows.seq, rows.source_id, task))
    task, ids = task[order], rows.source_id[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (task[1:] != task[:-1]) | (ids[1:] != ids[:-1])
    return rows.take(np.sort(order[first])), rows.take(np.sort(order[~first]))


def to_table(want: Wanted, found: Found, schema: pa.Schema) -> pa.Table:
    """Revisions and correlations as rows of the store, all columns except ``revision``."""
    columns: dict[str, Any] = {
        name: pa.array([values[i] for values in want.places], schema.field(name).type).take(
            pa.array(found.place)
        )
        for i, name in enumerate((*want.by, "key"))
    }
    columns["start_us"] = found.j * want.asked.slide_us
    columns["value"] = found.value
    for name in ("n", "cross", "delay_spread", "value_spread"):
        columns[name] = getattr(found, name)
    return pa.table(columns)


def of_wanted(want: Wanted, found: Found, column: Ints) -> Ints:
    """A column of :class:`Found` for every wanted window, 0 where the history holds nothing."""
    out = np.zeros(len(want.wanted), np.int64)
    out[_positions(want, found.place, found.j)] = column
    return out


def _known_places(want: Wanted, rows: pa.Table) -> Ints:
    """The place of every row of the store, -1 where no window is wanted."""
    number = {values: place for place, values in enumerate(want.places)}
    codes, values = combined(rows, [*want.by, "key"])
    return np.array([*(number.get(value, -1) for value in values), -1], np.int64)[codes]


def greatest(want: Wanted, rows: pa.Table, column: str) -> Ints:
    """For every wanted window the greatest number in rows of the store about it, at least 0."""
    j = rows.column("start_us").to_numpy() // want.asked.slide_us
    position = _positions(want, _known_places(want, rows), j)
    known = position >= 0
    out = np.zeros(len(want.wanted), np.int64)
    np.maximum.at(out, position[known], rows.column(column).to_numpy()[known])
    return out


def pairs_of(want: Wanted, pairs: pa.Table) -> Ints:
    """For every wanted window how many of some pairs of the store are about it."""
    first = pairs.column("start_us").to_numpy() // want.asked.slide_us
    row, j = pane_math.expand(first, first + pairs.column("windows").to_numpy() - 1)
    position = _positions(want, _known_places(want, pairs)[row], j)
    return np.bincount(position[position >= 0], minlength=len(want.wanted))


def revision_numbers(want: Wanted, found: Found, earlier: pa.Table) -> Ints:
    """For every recomputed window one more than its highest revision in ``earlier``."""
    highest = greatest(want, earlier, "revision")
    numbers: Ints = highest[_positions(want, found.place, found.j)] + 1
    return numbers


def window_of(want: Wanted, position: int) -> str:
    """The wanted window at a position, in words."""
    place, j = divmod(int(want.wanted[position]), len(want.windows))
    start = int(want.windows[j]) * want.asked.slide_us
    who = zip((*want.by, "key"), want.places[place], strict=True)
    named = ", ".join(f"{name} {value!r}" for name, value in who)
    return f"the window [{start}, {start + want.asked.size_us}) of {named}"


def stretches_us(want: Wanted) -> list[Stretch]:
    """Stretches of time that hold all wanted windows, in order, with the widest gaps left out.

    A window far from the others must not make a correction read all that lies between.
    """
    spec = want.asked.windows
    start = want.windows * spec.slide_us
    end = start + spec.size_us
    gap = start[1:] - end[:-1]
    widest = np.sort(np.argsort(gap, kind="stable")[::-1][: _STRETCHES - 1])
    cuts = widest[gap[widest] > 0]
    starts, ends = np.append(start[:1], start[cuts + 1]), np.append(end[cuts], end[-1:])
    return list(zip(starts.tolist(), ends.tolist(), strict=True))

"""Exact answers of requested windows from the rows of a history.

Rules of this file:

* Rows of all tasks are processed together. A *place* is one combination of grouping columns, task
  and key; everything is computed for all places at once.
* :func:`select` looks at every row on its own, :func:`evaluate` needs all rows of a place. Between
  the two, rows may travel to other machines.
* Places do not depend on each other, so they may be dealt out to threads.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_impl.runtime.arrays import Bools, Column, Floats, Ints
from spark_impl.windows import panes as pane_math
from spark_impl.windows.arrival_files import number_combinations
from spark_impl.windows.room import WindowSettings
from spark_impl.windows.row_groups import Piece, Place, TimeRange, span_us
from spark_impl.windows.store import TaskId

_TIME_RANGES = 16


class WindowRequest(NamedTuple):
    """Windows to recompute."""

    settings: WindowSettings
    by: tuple[str, ...]
    """The grouping columns and ``task``."""
    places: list[Place]
    limit: Ints
    """The last arrival that the task has processed, for every place."""
    windows: Ints
    """The distinct indices of all requested windows, increasing."""
    codes: Ints
    """Place * len(windows) + position in ``windows`` of every requested window, increasing."""
    pairs: Ints
    """Number of pending pairs of every requested window."""


class Tuples(NamedTuple):
    """Rows of the history that lie in requested windows; columns of equal length."""

    place: Ints
    seq: Ints
    source_id: Ints
    event_time_us: Ints
    value: Floats

    def take(self, rows: Ints | Bools | slice) -> "Tuples":
        """Return the rows at some positions, under a mask, or of a slice."""
        return Tuples._make(column[rows] for column in self)


class WindowAnswers(NamedTuple):
    """Recomputed windows; columns of equal length."""

    place: Ints
    j: Ints
    value: Floats
    n: Ints
    deliveries: Ints
    """Rows of the history in the window, redeliveries included."""
    rows: Ints
    """At a place's first window the rows of the history that the place needed, else 0."""


def request_windows(
    settings: WindowSettings, by: Sequence[str], pending: pa.Table, limits: Mapping[TaskId, int]
) -> tuple[WindowRequest, Ints]:
    """Return the windows of some pending pairs, and the place of every row of ``pending``."""
    place, places = number_combinations(pending, [*by, "key"])
    first = pending.column("start_us").to_numpy() // settings.slide_us
    row, j = pane_math.expand(first, first + pending.column("windows").to_numpy() - 1)
    windows, position = pane_math.compact(j)
    limit = np.array([limits[values[:-1]] for values in places], np.int64)
    codes, pairs = np.unique(place[row] * len(windows) + position, return_counts=True)
    return WindowRequest(settings, tuple(by), places, limit, windows, codes, pairs), place


def select(request: WindowRequest, piece: Piece, mine: Bools | None = None) -> Tuples:
    """Return the rows in requested windows of their place; ``mine`` restricts the places."""
    number = {values: place for place, values in enumerate(request.places)}
    known = [number.get(values, -1) for values in piece.places]
    place = np.array(known, np.int64)[piece.place]
    size_us, slide_us = request.settings.size_us, request.settings.slide_us
    span = span_us(request.settings)
    first = (piece.span * span - size_us) // slide_us + 1
    hit = _is_hit(request, place, first, ((piece.span + 1) * span - 1) // slide_us)
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
    good = _in_requested(request, near) & (near.seq <= request.limit[near.place])
    return near if good.all() else near.take(good)  # a copy takes as long as the rest


def _in_requested(request: WindowRequest, rows: Tuples) -> Bools:
    """Return whether each row lies in a requested window of its place; one lookup a pane."""
    spec = request.settings.windows
    pane = rows.event_time_us // spec.pane_us
    pane, place, position = pane_math.group_by_window(pane, rows.place, len(request.places))
    first = (pane * spec.pane_us - spec.size_us) // spec.slide_us + 1
    return _is_hit(request, place, first, pane * spec.pane_us // spec.slide_us)[position]


def _is_hit(request: WindowRequest, place: Ints, first: Ints, last: Ints) -> Bools:
    """Return whether one of the windows ``first .. last`` of each place is requested."""
    size = len(request.windows)
    lo = np.searchsorted(request.windows, first)
    hi = np.searchsorted(request.windows, last, side="right") - 1
    nearest = np.searchsorted(request.codes, place * size + lo)
    inside: Bools = nearest < len(request.codes)
    inside &= request.codes[np.minimum(nearest, len(request.codes) - 1)] <= place * size + hi
    return inside


def concatenate(parts: Sequence[Tuples]) -> Tuples:
    """Return the rows of all parts, in their order."""
    none = np.empty(0, np.int64)
    no_rows = Tuples(none, none, none, none, np.empty(0))
    columns = zip(no_rows, *parts, strict=True)
    return Tuples._make(np.concatenate(column) for column in columns)


def evaluate(request: WindowRequest, rows: Tuples) -> WindowAnswers:
    """Return the answers of the requested windows from all selected rows of some places."""
    settings, spec = request.settings, request.settings.windows
    n_places = len(request.places)
    needed = np.bincount(rows.place, minlength=n_places)
    rows, again = _first_deliveries(request, rows)
    lo = np.maximum((rows.event_time_us - spec.size_us) // spec.slide_us + 1, request.windows[0])
    panes = pane_math.fill(settings, rows.place, rows.event_time_us, rows.value, lo, n_places)
    every = pane_math.answers(settings, panes, int(request.windows[-1]) + 1, n_places)
    hit = np.isin(_codes(request, every.key, every.j), request.codes)
    place, j = every.key[hit], every.j[hit]
    count = np.zeros(len(place), np.int64)
    present, first = np.unique(place, return_index=True)
    count[first] = needed[present]
    n = every.n[hit]
    deliveries = n + _rows_per_window(request, again)[_positions(request, place, j)]
    return WindowAnswers(place, j, every.value[hit], n, deliveries, count)


def _codes(request: WindowRequest, place: Ints, j: Ints) -> Ints:
    """Return windows of places as codes, -1 if no place has a requested window of that index."""
    position = np.minimum(np.searchsorted(request.windows, j), len(request.windows) - 1)
    return np.where(request.windows[position] == j, place * len(request.windows) + position, -1)


def _positions(request: WindowRequest, place: Ints, j: Ints) -> Ints:
    """Return the positions of windows in ``request.codes``, -1 if they are not requested."""
    codes = _codes(request, place, j)
    nearest = np.minimum(np.searchsorted(request.codes, codes), len(request.codes) - 1)
    return np.where(request.codes[nearest] == codes, nearest, -1)


def _rows_per_window(request: WindowRequest, rows: Tuples) -> Ints:
    """Return the number of rows in every requested window."""
    spec, ts = request.settings.windows, rows.event_time_us
    row, j = pane_math.expand((ts - spec.size_us) // spec.slide_us + 1, ts // spec.slide_us)
    position = _positions(request, rows.place[row], j)
    return np.bincount(position[position >= 0], minlength=len(request.codes))


def _first_deliveries(request: WindowRequest, rows: Tuples) -> tuple[Tuples, Tuples]:
    """Return the first delivery of every identity in its task, and all other rows."""
    ids = np.sort(rows.source_id)
    if not np.any(ids[1:] == ids[:-1]):
        return rows, rows.take(slice(0, 0))
    tasks = {values[:-1]: number for number, values in enumerate(request.places)}
    task = np.array([tasks[values[:-1]] for values in request.places], np.int64)[rows.place]
    order = np.lexsort((rows.seq, rows.source_id, task))
    task, ids = task[order], rows.source_id[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (task[1:] != task[:-1]) | (ids[1:] != ids[:-1])
    return rows.take(np.sort(order[first])), rows.take(np.sort(order[~first]))


def to_table(request: WindowRequest, answers: WindowAnswers, schema: pa.Schema) -> pa.Table:
    """Return revisions as rows of the store, without the column ``revision``."""
    columns: dict[str, pa.Array | Column] = {
        name: pa.array([values[i] for values in request.places], schema.field(name).type).take(
            pa.array(answers.place)
        )
        for i, name in enumerate((*request.by, "key"))
    }
    columns["start_us"] = answers.j * request.settings.slide_us
    columns["value"] = answers.value
    columns["n"] = answers.n
    return pa.table(columns)


def per_request(request: WindowRequest, answers: WindowAnswers, column: Ints) -> Ints:
    """Return a column of the answers for every requested window, 0 without rows in the history."""
    out = np.zeros(len(request.codes), np.int64)
    out[_positions(request, answers.place, answers.j)] = column
    return out


def _known_places(request: WindowRequest, rows: pa.Table) -> Ints:
    """Return the place of every row of the store, -1 if none of its windows is requested."""
    number = {values: place for place, values in enumerate(request.places)}
    codes, values = number_combinations(rows, [*request.by, "key"])
    return np.array([*(number.get(value, -1) for value in values), -1], np.int64)[codes]


def greatest(request: WindowRequest, rows: pa.Table, column: str) -> Ints:
    """Return the greatest number in the store's rows of every requested window, at least 0."""
    j = rows.column("start_us").to_numpy() // request.settings.slide_us
    position = _positions(request, _known_places(request, rows), j)
    known = position >= 0
    out = np.zeros(len(request.codes), np.int64)
    np.maximum.at(out, position[known], rows.column(column).to_numpy()[known])
    return out


def count_pairs(request: WindowRequest, pairs: pa.Table) -> Ints:
    """Return the number of some pairs of the store in every requested window."""
    first = pairs.column("start_us").to_numpy() // request.settings.slide_us
    row, j = pane_math.expand(first, first + pairs.column("windows").to_numpy() - 1)
    position = _positions(request, _known_places(request, pairs)[row], j)
    return np.bincount(position[position >= 0], minlength=len(request.codes))


def revision_numbers(request: WindowRequest, answers: WindowAnswers, earlier: pa.Table) -> Ints:
    """Return one more than the highest revision in ``earlier``, for every recomputed window."""
    highest = greatest(request, earlier, "revision")
    numbers: Ints = highest[_positions(request, answers.place, answers.j)] + 1
    return numbers


def describe_window(request: WindowRequest, position: int) -> str:
    """Return the requested window at a position, in words."""
    place, j = divmod(int(request.codes[position]), len(request.windows))
    start = int(request.windows[j]) * request.settings.slide_us
    who = zip((*request.by, "key"), request.places[place], strict=True)
    named = ", ".join(f"{name} {value!r}" for name, value in who)
    return f"the window [{start}, {start + request.settings.size_us}) of {named}"


def time_ranges_us(request: WindowRequest) -> list[TimeRange]:
    """Return ranges of time that cover all requested windows, without the widest gaps between them.

    A window far from the others must not make a correction read everything between them.
    """
    spec = request.settings.windows
    start = request.windows * spec.slide_us
    end = start + spec.size_us
    gap = start[1:] - end[:-1]
    widest = np.sort(np.argsort(gap, kind="stable")[::-1][: _TIME_RANGES - 1])
    cuts = widest[gap[widest] > 0]
    starts, ends = np.append(start[:1], start[cuts + 1]), np.append(end[cuts], end[-1:])
    return list(zip(starts.tolist(), ends.tolist(), strict=True))

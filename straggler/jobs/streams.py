"""Streams for a job: probes around windows and lateness, and streams through a simulated network.

A stream is a list of data micro-batches with faults between them. What Spark may do with a row
follows from the order: a row is in time if it is later than everything in earlier micro-batches
of its input, less the lateness.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from hypothesis import strategies as st

from model.vocabulary import Event
from sim.kernel.log import simulate_arrivals
from sim.kernel.source import IDS_PER_SOURCE
from straggler.jobs.rows import Input, Row, keys_of
from straggler.strategies.networks import SEEDS, plans, sources

MILLISECOND_US = 1_000
"""Unit of Spark's watermarks."""
SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
BASE_US = 20_454 * DAY_US
"""Event time around which streams lie: 2026-01-01, a boundary of all usual windows."""
ROWS_MAX = 12
"""Most rows of a drawn stream."""
LATE_MAX = 4
"""Most late rows of a stream, each of which may be kept or dropped."""
CUTS = (3, 2, 3, 1)
"""Numbers of data micro-batches: more cost time, and find no more."""
RESTART, LOST_COMMIT, KILLED = "restart", "lost commit", "killed"


class Fault(NamedTuple):
    """A fault of the query, around a data micro-batch."""

    kind: str
    """``restart``: a stop after it; ``lost commit``: the driver dies between the sink's write and
    the commit; ``killed``: the driver dies before the write."""
    batch: int
    """Number of the data micro-batch, from 0."""
    skips: int = 0
    """1: the micro-batch without data that follows it, in which the watermark moves."""


Part: TypeAlias = tuple[tuple[Row, ...], tuple[Fault, ...]]


class Stream(NamedTuple):
    """Rows in their data micro-batches, and faults."""

    batches: tuple[tuple[Row, ...], ...]
    faults: tuple[Fault, ...] = ()

    @property
    def rows(self) -> list[Row]:
        """All rows, in order of arrival."""
        return [row for batch in self.batches for row in batch]

    @property
    def parts(self) -> list[Part]:
        """The rows of each data micro-batch, and the faults around it."""
        return [
            (rows, tuple([each for each in self.faults if each.batch == n]))
            for n, rows in enumerate(self.batches)
        ]

    def map(self, change: Callable[[Row], Row]) -> "Stream":
        """Return the stream with changed rows."""
        return self._replace(batches=tuple([tuple(map(change, each)) for each in self.batches]))


class Times(NamedTuple):
    """Lengths of time that matter to a job."""

    lateness_us: tuple[int | None, ...]
    """Lateness of each input; ``None``: without limit, because nothing is dropped."""
    lengths_us: tuple[int, ...]
    """Lengths of windows, gaps and intervals."""
    odd_us: tuple[int, ...] = ()
    """Event times at which clocks change."""
    latest_us: int = BASE_US
    """Latest event time of a recording, if it is later than those of drawn streams."""
    clocks: tuple[int, ...] = ()
    """Clock of each input, by the first input that has it; without clocks, each has its own."""

    @property
    def window_us(self) -> int:
        """A length of time in which rows meet: the shortest window."""
        return min(self.lengths_us, default=60 * SECOND_US)

    @property
    def reach_us(self) -> int:
        """The longest length of time."""
        return max((0, *self.lengths_us, *[us or 0 for us in self.lateness_us]))

    @property
    def far_us(self) -> int:
        """An event time beyond those of all streams and their windows."""
        return max((BASE_US, self.latest_us, *self.odd_us)) + 400 * DAY_US + 200 * self.reach_us


def split(stream: Stream, times: Times) -> tuple[list[Row], list[Row], list[int]]:
    """Return the rows in time, those that Spark may drop, and the positions of the latter."""
    latest: dict[int, int] = {}
    in_time, late, positions = [], [], []
    at = 0
    for batch in stream.batches:
        before = dict(latest)
        for row in batch:
            limit = times.lateness_us[row.source]
            clock = times.clocks[row.source] if times.clocks else row.source
            if limit is not None and clock in before and row.time_us <= before[clock] - limit:
                late.append(row)
                positions.append(at)
            else:
                in_time.append(row)
            latest[clock] = max(latest.get(clock, row.time_us), row.time_us)
            at += 1
    return in_time, late, positions


# ------------------------------------------------------------------------------------- probes


class Values:
    """Values of the rows of probes, by input: plain ones, which many filters let pass."""

    def __init__(self, inputs: Sequence[Input], drawn: Sequence[Sequence[tuple[Any, ...]]]) -> None:
        self.inputs, self._drawn = inputs, drawn
        self._numbers: dict[tuple[int, int, int], int] = {}

    def row(self, source: int, time_us: int, nth: int = 0) -> Row:
        """Return a row of an input at a time; it is equal to that of an equal call alone."""
        pool = self._drawn[source]
        values = pool[nth % len(pool)]
        number = self._numbers.setdefault((source, time_us, nth), len(self._numbers))
        return Row(source, time_us, numbered(self.inputs[source], values, number))

    def map(self, change: Callable[[Row], Row]) -> "Values":
        """Return values in which each one is changed."""
        pools = [
            [change(Row(source, BASE_US, values)).values for values in pool]
            for source, pool in enumerate(self._drawn)
        ]
        return Values(self.inputs, pools)


def numbered(of: Input, values: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    """Return values with a number in the first identifying column that can have one."""
    for n, each in enumerate(of.others):
        if each.name in of.identity and each.name not in of.given and keys_of(each.dataType):
            label = f"r{number}" if isinstance(keys_of(each.dataType)[0], str) else number % 100
            return (*values[:n], label, *values[n + 1 :])
    return values


def probes(times: Times, values: Values) -> Iterator[Stream]:
    """Yield streams that hit the edges of lateness and windows, the likeliest to fail first."""
    window_us = times.window_us
    limits_us = [us for us in times.lateness_us if us]
    # A window that ends at BASE_US has closed here, if the job waits a millisecond less.
    starts_us = [BASE_US + max(1, us - MILLISECOND_US) for us in limits_us]
    starts_us += [BASE_US + us // 2 for us in limits_us]
    starts_us += [BASE_US, BASE_US + window_us // 2, BASE_US - 1]
    almost = [partial(_almost_late, times, values, at) for at in dict.fromkeys(starts_us)]
    yield almost[0]()
    yield _edges(times, values)
    yield _late(times, values)
    yield _closing(times, values)
    yield from (make() for make in almost[1:5])
    first = _almost_late(times, values, BASE_US + window_us // 2)
    yield first._replace(faults=(Fault(LOST_COMMIT, 0), Fault(LOST_COMMIT, 1, 1)))
    yield first._replace(faults=(Fault(LOST_COMMIT, 2), Fault(RESTART, 1)))
    yield _edges(times, values)._replace(faults=(Fault(LOST_COMMIT, 0, 1), Fault(KILLED, 1)))
    for source in range(len(values.inputs) if len(values.inputs) > 1 else 0):
        yield _idle(times, values, source)
    for at in times.odd_us:
        yield _almost_late(times, values, at)


def _each(values: Values, time_us: int, nth: int = 0) -> list[Row]:
    return [values.row(source, time_us, nth) for source in range(len(values.inputs))]


def _lateness(times: Times, source: int) -> int:
    limit = times.lateness_us[source]
    return times.window_us if limit is None else limit


def _almost_late(times: Times, values: Values, at_us: int) -> Stream:
    """Return a stream whose last rows are just in time."""
    last = []
    for source in range(len(values.inputs)):
        limit_us = _lateness(times, source)
        moments = dict.fromkeys((at_us - limit_us + 1, at_us - limit_us // 2, at_us - 1))
        last += [values.row(source, us, n) for n, us in enumerate(moments) if us > at_us - limit_us]
    return Stream((tuple(_each(values, at_us)), tuple(_each(values, at_us, 1)), tuple(last)))


def _late(times: Times, values: Values) -> Stream:
    """Return a stream whose last rows are too late by a microsecond, and by a window."""
    at_us = BASE_US + times.window_us // 2
    last = []
    for source in range(len(values.inputs)):
        limit_us = _lateness(times, source)
        moments = (at_us - limit_us, at_us - limit_us - 1, at_us - limit_us - times.window_us)
        most = 3 if len(values.inputs) == 1 else 1
        last += [values.row(source, us, n) for n, us in enumerate(moments[-most:])]
    first = [*_each(values, at_us - times.window_us // 4), *_each(values, at_us, 1)]
    return Stream((tuple(first), tuple(last)))


def _edges(times: Times, values: Values) -> Stream:
    """Return a stream with equal times, and rows at both sides of the edges of a window."""
    window_us = times.window_us
    first = [row for n in (0, 0, 1) for row in _each(values, BASE_US, n)]
    moments = (BASE_US - 1, BASE_US + 1, BASE_US + window_us - 1, BASE_US + window_us)
    second = [row for n, us in enumerate(moments) for row in _each(values, us, n)]
    return Stream((tuple(first[: ROWS_MAX // 2]), tuple(second[:ROWS_MAX])))


def _closing(times: Times, values: Values) -> Stream:
    """Return a stream whose last rows close a window, and whose commits are lost then."""
    after_us = BASE_US + 3 * times.window_us + times.reach_us
    batches = (tuple(_each(values, BASE_US)), tuple(_each(values, after_us, 1)))
    return Stream(batches, (Fault(LOST_COMMIT, 0), Fault(LOST_COMMIT, 1, 1)))


def _idle(times: Times, values: Values, source: int) -> Stream:
    """Return a stream in which one input has rows early, and then none."""
    window_us, others = times.window_us, [n for n in range(len(values.inputs)) if n != source]
    first = _each(values, BASE_US)
    later = [values.row(n, BASE_US + window_us // 4, n) for n in others]
    last = [values.row(n, BASE_US + 3 * window_us, n + 1) for n in others]
    return Stream((tuple(first), tuple(later), tuple(last)))


def growing(times: Times, values: Values, number: int) -> Stream:
    """Return rows twice, far apart, with others between that move the watermark on.

    Each input has this number of rows in each micro-batch.
    """
    window_us = times.window_us
    middle_us = BASE_US + (times.far_us - BASE_US) // (2 * DAY_US) * DAY_US

    def rows(at_us: int, step_us: int) -> tuple[Row, ...]:
        return tuple([row for n in range(number) for row in _each(values, at_us + n * step_us, n)])

    return Stream(
        (
            rows(BASE_US, window_us // 2),
            rows(middle_us, 0),
            rows(middle_us + 10 * DAY_US + times.reach_us, window_us // 2),
        )
    )


# ------------------------------------------------------------------------------- drawn streams


Recorded: TypeAlias = Sequence[Sequence[Row]]
"""Recorded rows of each input, in order of event time."""


@st.composite
def streams(
    draw: st.DrawFn,
    inputs: tuple[Input, ...],
    times: Times,
    recorded: Recorded = (),
    places: Sequence[Sequence[Sequence[int]]] = (),
) -> Stream:
    """Draw a stream whose order of arrival and micro-batches a simulated network decides.

    Recorded rows take the place of drawn ones, and arrive as late as these. Those of each input
    begin at one of its places, which are lists of alike ones; without places, at any row.
    """
    lags = [us for us in times.lateness_us if us] or [times.window_us]
    scale_us = max(96, draw(st.sampled_from([min(lags), *lags, times.window_us])))
    events, epoch_us = draw(arrivals(scale_us, max(len(inputs), draw(st.integers(1, 2)))))
    grain_us = draw(st.sampled_from([1, 1, scale_us // 8 or 1, times.window_us // 2 or 1]))
    alike = [draw(st.sampled_from(of)) for of in places or [[range(len(r))] for r in recorded]]
    starts = [of[draw(st.integers(0, 90)) * len(of) // 91] for of in alike]
    known: dict[int, Row] = {}
    counts = [0] * len(inputs)
    arrived: list[tuple[int, Row]] = []
    for event in events[: ROWS_MAX + 2]:
        source = event.source_id // IDS_PER_SOURCE % len(inputs)
        time_us = (event.event_time_us - epoch_us) // grain_us * grain_us
        lag_us = event.arrival_us - event.event_time_us
        if event.source_id in known:  # a redelivery
            if inputs[source].identity:
                row = known[event.source_id]
                arrived.append((row.time_us + lag_us, row))
            continue
        if recorded:
            rows = recorded[source]
            row = rows[(starts[source] + counts[source]) % len(rows)]
            counts[source] += 1
        else:
            row = Row(source, BASE_US + time_us, draw(inputs[source].values()))
        known[event.source_id] = row
        arrived.append((row.time_us + lag_us, row))
    arrived.sort(key=lambda each: each[0])
    stream = copied(Stream(tuple(cut(arrived, draw(st.sampled_from(CUTS))))), inputs)
    *_, late = split(stream, times)
    stream = without(stream, late[LATE_MAX:])  # which changes no watermark
    return stream._replace(faults=tuple(draw(faults(len(stream.batches)))))


@st.composite
def arrivals(draw: st.DrawFn, scale_us: int, number: int) -> tuple[Sequence[Event], int]:
    """Draw the arrivals of some sources through a simulated network, and when it starts."""
    most = max(2, ROWS_MAX // number)
    sent = [
        replace(each, events=draw(st.integers(2, most)))
        for each in draw(st.lists(sources(scale_us // 2), min_size=number, max_size=number))
    ]
    seed = draw(SEEDS)
    plan = draw(plans(2 * scale_us, tuple(sent), seed))  # lags beyond the lateness
    return simulate_arrivals(plan, seed).events, plan.epoch_us


def without(stream: Stream, positions: Collection[int]) -> Stream:
    """Return a stream without the rows at some positions."""
    kept, at = [], 0
    for rows, some in stream.parts:
        kept.append((tuple([r for n, r in enumerate(rows, at) if n not in positions]), some))
        at += len(rows)
    return joined(kept)


def joined(parts: Sequence[Part]) -> Stream:
    """Return the stream of its parts, without empty micro-batches."""
    full = [part for part in parts if part[0]]
    return Stream(
        tuple([rows for rows, _ in full]),
        tuple([fault._replace(batch=n) for n, (_, each) in enumerate(full) for fault in each]),
    )


def cut(arrived: Sequence[tuple[int, Row]], number: int) -> Iterator[tuple[Row, ...]]:
    """Yield the rows of each of these equally long micro-batches that has any."""
    if not arrived:
        return
    first_us = arrived[0][0]
    length_us = (arrived[-1][0] - first_us) // number + 1
    for nth in range(number):
        rows = tuple([row for at, row in arrived if (at - first_us) // length_us == nth])
        if rows:
            yield rows


def faults(batches: int) -> st.SearchStrategy[list[Fault]]:
    """Draw faults, in two of three streams."""
    one = st.builds(
        Fault,
        st.sampled_from([LOST_COMMIT, LOST_COMMIT, RESTART, KILLED]),
        st.integers(0, max(0, batches - 1)),
        st.integers(0, 1),
    )
    return st.lists(one, max_size=2, unique_by=lambda fault: fault.batch)


def copied(stream: Stream, inputs: Sequence[Input]) -> Stream:
    """Return the stream with rows that agree in the identifying columns as copies of the first.

    A copy comes from the input of the first, also if inputs are united.
    """
    first: dict[str, Row] = {}

    def of(row: Row) -> Row:
        where = inputs[row.source]
        if not where.identity:
            return row
        names = [each.name for each in where.others]
        cells = [
            row.time_us if name == where.event_time else row.values[names.index(name)]
            for name in where.identity
        ]
        return first.setdefault(repr((not where.is_united and row.source, cells)), row)

    return stream.map(of)


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return rows by event time, and those of equal times by their texts."""
    return sorted(rows, key=lambda row: (row.time_us, row.text))

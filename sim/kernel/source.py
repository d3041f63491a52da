"""Sources: tuples and their departures are drawn in arrays before the run, then sent in time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np
import simpy

from model.vocabulary.settings import require
from sim.kernel.disorder import Disturbance, IntArray, disturb, present
from sim.kernel.distributions import AnyArray, Constant, Distribution, FloatArray, draw_us
from sim.kernel.faults import Duplicate, Fault
from sim.kernel.link import Place
from sim.kernel.seeds import Seeds

IDS_PER_SOURCE = 1_000_000_000
"""Tuple ``n`` of source ``s`` has the identity ``s * IDS_PER_SOURCE + n``."""
EXACT = 2**53
"""Largest whole number up to which all whole numbers are exact as floats."""
ONE_SECOND = Constant(1_000_000)
NO_DELAY = Constant(0)


@dataclass(frozen=True, slots=True)
class Source:
    """A source of tuples with integer values."""

    events: int
    interval: Distribution = ONE_SECOND
    """Time between successive event times; exponential: a Poisson process."""
    start_us: int = 0
    """Event time of the first tuple, counted from the start of the run."""
    delay: Distribution = NO_DELAY
    """Time from the event until the source sends, without the time on links."""
    delay_by_value_us: float = 0.0
    """Further delay for each unit of the value: a larger message takes longer."""
    in_order: bool = False
    """True if a tuple waits until those before it are sent, so that a delay holds up the rest."""
    keys: tuple[str, ...] = ("a",)
    zipf: float = 0.0
    """Key number i (from 1) has a share proportional to i^-zipf; 0: all keys alike."""
    in_turn: bool = False
    """True if tuples take the keys in their order, over and over, instead of drawing them."""
    low: int = 1
    """Smallest value."""
    high: int = 100
    """Largest value, included."""
    bits: int = 800
    """Size of a tuple on a link."""
    place: Place | None = None
    """Location of the source; ``None``: at its receiver, without a link in between."""

    def __post_init__(self) -> None:
        good = 0 <= self.events < IDS_PER_SOURCE
        require(good, "Source.events", self.events, f"between 0 and {IDS_PER_SOURCE - 1}")
        require(self.start_us >= 0, "Source.start_us", self.start_us, "at least 0")
        require(len(self.keys) > 0, "Source.keys", self.keys, "at least one key")
        good = 0 <= self.delay_by_value_us < inf
        label = "Source.delay_by_value_us"
        require(good, label, self.delay_by_value_us, "finite and at least 0")
        # A negative value would have a negative delay.
        good = self.delay_by_value_us == 0 or self.low >= 0
        require(good, "Source.low", self.low, "at least 0 if a value delays its tuple")
        require(self.zipf >= 0, "Source.zipf", self.zipf, "at least 0")
        require(abs(self.low) <= EXACT, "Source.low", self.low, f"within +-{EXACT}")
        good = self.low <= self.high <= EXACT
        require(good, "Source.high", self.high, f"between low, {self.low}, and {EXACT}")
        require(self.bits >= 0, "Source.bits", self.bits, "at least 0")


class Row(NamedTuple):
    """One tuple of a recorded trace; times in microseconds since the epoch."""

    event_time_us: int
    arrival_us: int
    key: str
    value: float
    source_id: int | None = None
    """Identity; ``None``: the number of the row."""
    stream: str | None = None
    """The stream, in rooms with several; ``None``: that of the source."""
    more: tuple[str | float | int | bool | None, ...] = ()
    """Values of the further columns of its stream."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A source that replays a recorded trace: each tuple is sent when it was recorded to arrive."""

    rows: tuple[Row, ...]
    bits: int = 800
    place: Place | None = None

    def __post_init__(self) -> None:
        good = len(self.rows) < IDS_PER_SOURCE
        require(good, "Recording.rows", len(self.rows), f"fewer than {IDS_PER_SOURCE}")
        require(self.bits >= 0, "Recording.bits", self.bits, "at least 0")


AnySource: TypeAlias = Source | Recording


# ----------------------------------------------------------------------------------- departures


class Departures(NamedTuple):
    """Tuples in the order in which a source sends them, as columns."""

    leave_us: FloatArray
    """Kernel time."""
    source_ids: IntArray
    keys: AnyArray
    """Strings."""
    event_us: IntArray
    """Microseconds since 1970."""
    values: FloatArray
    streams: AnyArray
    """Strings."""
    more: AnyArray
    """Tuples: values of further columns."""

    def select(self, rows: IntArray) -> "Departures":
        """Return these rows, in this order."""
        columns: list[AnyArray] = [column[rows] for column in self]
        return Departures(*columns)


class Sent(NamedTuple):
    """The tuples that a source sends in a run."""

    departures: Departures
    created: int
    duplicated: int
    last_us: int
    """Last event time of the source (kernel time, us), gaps included; -1 without tuples."""


def departures_of(
    source: AnySource,
    number: int,
    stream: str,
    first_id: int,
    epoch_us: int,
    disturbances: Sequence[Disturbance],
    faults: Iterable[Fault],
    seeds: Seeds,
) -> Sent:
    """Draw all tuples that a source sends, duplicates included.

    ``number`` names the source, ``first_id`` is the identity of its first tuple.
    """
    if isinstance(source, Recording):
        made = _recorded(source, stream, first_id)
    else:
        made = _created(source, f"source-{number}", stream, first_id, epoch_us, seeds)
    event_us = made.event_us - epoch_us
    delays_us = disturb(number, made.leave_us, event_us, disturbances, seeds)
    # Clocks of a recording may disagree, but no tuple can be sent before the run starts.
    leave_us = np.maximum(0.0, event_us + delays_us)
    numbers = np.flatnonzero(present(number, event_us, disturbances))
    leave_us = leave_us[numbers]
    if isinstance(source, Source) and source.in_order:
        leave_us = np.maximum.accumulate(leave_us)
    copies, after_us = [], []
    for fault in faults:
        if isinstance(fault, Duplicate) and fault.source == f"source-{number}":
            found = np.flatnonzero(numbers == fault.nth)
            copies += found.tolist()
            after_us += [fault.after_us] * len(found)
    rows = np.append(np.arange(len(numbers)), np.array(copies, dtype=np.int64))
    leave_us = leave_us[rows] + np.append(np.zeros(len(numbers)), after_us)
    order = np.argsort(leave_us, kind="stable")
    departures = made.select(numbers[rows[order]])._replace(leave_us=leave_us[order])
    return Sent(departures, len(numbers), len(copies), int(event_us.max(initial=-1)))


def _recorded(source: Recording, stream: str, first_id: int) -> Departures:
    """Return the tuples of a recording, with their delays in place of when they leave."""
    rows = source.rows
    absolute_us = np.array([row.event_time_us for row in rows], dtype=np.int64)
    arrival_us = np.array([row.arrival_us for row in rows], dtype=np.int64)
    ids = [n + first_id if row.source_id is None else row.source_id for n, row in enumerate(rows)]
    streams = [stream if row.stream is None else row.stream for row in rows]
    return Departures(
        (arrival_us - absolute_us).astype(np.float64),
        np.array(ids, dtype=np.int64),
        np.array([row.key for row in rows], dtype=object),
        absolute_us,
        np.array([row.value for row in rows], dtype=np.float64),
        np.array(streams, dtype=object),
        _as_objects([row.more for row in rows]),
    )


def _created(
    source: Source, name: str, stream: str, first_id: int, epoch_us: int, seeds: Seeds
) -> Departures:
    """Draw the tuples of a source, with their ordinary delays in place of when they leave."""
    n = source.events
    intervals = draw_us(source.interval, seeds, f"{name}/interval", max(0, n - 1))
    event_us = source.start_us + np.rint(np.append(0.0, np.cumsum(intervals))[:n]).astype(np.int64)
    values = _values(source, seeds, name)
    keys = np.array(source.keys, dtype=object)
    return Departures(
        draw_us(source.delay, seeds, f"{name}/delay", n) + source.delay_by_value_us * values,
        first_id + np.arange(n),
        keys[_keys(source, seeds, name)],
        epoch_us + event_us,
        values,
        np.full(n, stream, dtype=object),
        _as_objects([()] * n),
    )


def _keys(source: Source, seeds: Seeds, name: str) -> IntArray:
    """Draw the number of each tuple's key."""
    n = len(source.keys)
    if n == 1 or source.in_turn:
        return np.arange(source.events) % n
    shares = np.arange(1, n + 1, dtype=np.float64) ** -source.zipf
    bounds = np.cumsum(shares / shares.sum())[:-1]
    uniform = seeds.stream(f"{name}/keys").random(source.events)
    return np.searchsorted(bounds, uniform, side="right")


def _as_objects(rows: Sequence[object]) -> AnyArray:
    """Return an array whose elements are tuples, of which NumPy would make a table."""
    found = np.empty(len(rows), dtype=object)
    found[:] = rows
    return found


def _values(source: Source, seeds: Seeds, name: str) -> FloatArray:
    """Draw the values, which are whole numbers, as floats."""
    if source.low == source.high:
        return np.full(source.events, source.low, dtype=np.float64)
    stream = seeds.stream(f"{name}/values")
    return stream.integers(source.low, source.high, source.events, endpoint=True).astype(np.float64)


# ------------------------------------------------------------------------------------ the process


class Tuple(NamedTuple):
    """A tuple on its way to the log."""

    source_id: int
    key: str
    event_time_us: int
    value: float
    stream: str
    more: tuple[str | float | int | bool | None, ...]
    bits: int


Send: TypeAlias = Callable[[Tuple], object]
"""A function that takes a tuple."""


class Feeder:
    """Sends the tuples of a source at their times."""

    def __init__(
        self, env: simpy.Environment, departures: Departures, bits: int, send: Send
    ) -> None:
        self._env = env
        columns = [column.tolist() for column in departures[1:]]
        tuples = map(Tuple._make, zip(*columns, repeat(bits), strict=False))
        self._left = zip(departures.leave_us.tolist(), tuples, strict=True)
        self._send = send
        self._tuple: Tuple

    def wait(self) -> None:
        """Schedule the next tuple, if there is one."""
        departure = next(self._left, None)
        if departure is not None:
            leave_us, self._tuple = departure
            # The clock adds up floats, and may be a little past the time.
            delay_us = leave_us - self._env.now
            wake = simpy.Timeout(self._env, delay_us if delay_us > 0.0 else 0.0)
            wake.callbacks.append(self._leave)

    def _leave(self, _: simpy.Event) -> None:
        self._send(self._tuple)
        self.wait()

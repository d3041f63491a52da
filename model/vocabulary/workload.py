"""Workloads, the input of every producer of a trace, and the events in them."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite, isnan
from pathlib import Path
from typing import Any, NamedTuple

from model.vocabulary.settings import JsonObject, PlainData, is_int, one_of, require

VERSION = 1
ISO = "iso"
TIME_UNITS = ("us", "ms", "s", "ns", ISO)
"""Units of times in files of users: numbers since 1970, or texts of ISO 8601."""


class Event(NamedTuple):
    """One arrival of one tuple of the stream.

    Arrivals with the same ``source_id`` in the same task are deliveries of the same tuple: the
    first one counts, the others are redeliveries.

    Examples:
        >>> event = Event(0, 7, "a", event_time_us=1_000, value=2.5, arrival_us=1_200)
    """

    seq: int
    """Position in arrival order, 0..n-1."""
    source_id: int
    """Identity of the tuple, given by its source (a signed 64-bit integer)."""
    key: str
    """Key by which rows are grouped."""
    event_time_us: int
    """Event time, microseconds since the epoch."""
    value: float
    """Value that is aggregated or compared."""
    arrival_us: int
    """Arrival time, microseconds since the epoch; it never decreases with ``seq``."""
    stream: str = ""
    """Stream of the event, in rooms with several streams (``join``: ``"R"``, ``"S"``)."""
    more: tuple[str | float | int | bool | None, ...] = ()
    """Values of the columns that the query gives the stream (``join``), ``None`` if missing."""


def without_redeliveries(events: Sequence[Event]) -> tuple[Event, ...]:
    """Return the first delivery of every tuple, numbered anew."""
    first = {(event.stream, event.source_id): event for event in reversed(events)}
    kept = sorted(first.values(), key=lambda event: event.seq)
    return tuple([event._replace(seq=seq) for seq, event in enumerate(kept)])


NOT_FINITE = ("NaN", "Infinity", "-Infinity")
"""Texts in files for values that JSON has no numbers for."""
_VALUE, _MORE = map(Event._fields.index, ("value", "more"))


def _row(event: Event) -> list[PlainData]:
    row: list[PlainData] = list(event)
    row[_VALUE] = _finite_or_text(event.value)
    row[_MORE:] = [[*map(_finite_or_text, event.more)]] if event.more else []
    return row


def _finite_or_text(value: PlainData) -> PlainData:
    if not isinstance(value, float) or isfinite(value):
        return value
    return "NaN" if isnan(value) else NOT_FINITE[1 + (value < 0)]


def _event(row: list[PlainData], numbers: Mapping[PlainData, Collection[int]]) -> Event:
    try:
        event = Event(*row)
    except TypeError as error:
        msg = f"{row!r} is no arrival; it must be a list of {', '.join(Event._fields)}"
        raise ValueError(msg) from error
    if len(row) > _MORE:
        if not isinstance(row[_MORE], list | tuple):
            msg = f"more is {row[_MORE]!r} in {row!r}; it must be a list of values"
            raise ValueError(msg)
        # A text may read "NaN" as well: only numbers are not finite.
        at = numbers.get(event.stream, ())
        more = [_number(each) if n in at else each for n, each in enumerate(row[_MORE])]
        event = event._replace(more=tuple(more))
    value: PlainData = event.value
    return event._replace(value=float(value)) if value in NOT_FINITE else event


def _number(value: PlainData) -> PlainData:
    # JSON of other languages writes 1 for 1.0; beyond 2^53 an integer is no float.
    return float(value) if value in NOT_FINITE or is_int(value) else value


def _number_columns(config: JsonObject) -> dict[PlainData, Collection[int]]:
    """Return the positions in ``Event.more`` of columns of numbers, by stream."""
    return {
        stream: {
            n
            for n, column in enumerate(config.get(f"{stream.lower()}_columns", ()))
            if list(column)[1:] == ["number"]
        }
        for stream in "RS"
    }


class Fault(NamedTuple):
    """One fault, as data.

    Examples:
        >>> fault = Fault("restart", at=0)
    """

    kind: str
    """``restart``: after a batch, the process stops and starts again from its durable state;
    ``kill``: the same without warning, in the middle of the batch."""
    at: int
    """Number of the batch."""
    target: str = ""
    """Process that is struck, if there are several."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Arrivals with their micro-batches, the query's configuration, faults and a seed.

    Examples:
        >>> config = SlackConfig.of(size="1 second", slide="1 second").to_json()
        >>> workload = Workload("slack", (event,), config, faults=(fault,))
        >>> len([*workload.batches()])
        1
    """

    room: str
    """Room that judges the query, such as ``"slack"``."""
    arrivals: tuple[Event, ...]
    """The rows of the stream, in order of arrival."""
    config: JsonObject
    """Configuration of the room as plain data, such as ``SlackConfig.to_json`` returns."""
    cuts: tuple[int, ...] = ()
    """Increasing positions in ``arrivals``: batch 0 is ``arrivals[:cuts[0]]``, the last batch ends
    where the arrivals end."""
    faults: tuple[Fault, ...] = ()
    """Faults that strike the system."""
    seed: int = 0
    """Seed of what is drawn while the workload runs."""
    flush: bool = True
    """True to flush the stream after the last batch; the flush is a batch of its own."""
    name: str = field(default="workload", compare=False)
    """Name in reports; workloads that differ in it only are equal."""
    time_unit: str = field(default=ISO, compare=False)
    """Unit in which reports write times, that of the input: ``"us"``, ``"ms"``, ``"s"``, ``"ns"``
    or ``"iso"``. The times of the workload itself are microseconds."""

    def __post_init__(self) -> None:
        bounds = (0, *self.cuts, len(self.arrivals))
        if any(left > right for left, right in pairwise(bounds)):
            msg = f"cuts {self.cuts} do not increase within 0..{len(self.arrivals)}"
            raise ValueError(msg)
        require(self.time_unit in TIME_UNITS, "time_unit", self.time_unit, one_of(TIME_UNITS))

    def batches(self) -> Iterator[tuple[Event, ...]]:
        """Yield the micro-batches in order, without empty ones, as a stream engine does."""
        for left, right in pairwise((0, *self.cuts, len(self.arrivals))):
            if left < right:
                yield self.arrivals[left:right]

    def with_(self, **changes: Any) -> "Workload":
        """Return a copy with some fields replaced."""
        return replace(self, **changes)

    def to_json(self) -> dict[str, PlainData]:
        """Return plain data for ``json.dump``; :meth:`from_json` reads it back."""
        return {
            "version": VERSION,
            "room": self.room,
            "name": self.name,
            "seed": self.seed,
            "config": dict(self.config),
            "cuts": list(self.cuts),
            "faults": [list(fault) for fault in self.faults],
            "flush": self.flush,
            **({} if self.time_unit == ISO else {"time_unit": self.time_unit}),
            "arrivals": [_row(event) for event in self.arrivals],
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> "Workload":
        """Read the output of :meth:`to_json`; raise ``ValueError`` for other data."""
        if data.get("version") != VERSION:
            msg = f"workload version {data.get('version')!r} is not {VERSION}"
            raise ValueError(msg)
        try:
            config = dict(data["config"])
            numbers = _number_columns(config)
            return cls(
                room=str(data["room"]),
                name=str(data["name"]),
                seed=int(data["seed"]),
                config=config,
                cuts=tuple(data["cuts"]),
                faults=tuple(Fault(*fault) for fault in data["faults"]),
                flush=bool(data["flush"]),
                time_unit=data.get("time_unit", ISO),
                arrivals=tuple(_event(row, numbers) for row in data["arrivals"]),
            )
        except (KeyError, TypeError, OverflowError) as error:
            msg = f"not a workload: {error}"
            raise ValueError(msg) from error

    def write(self, path: Path) -> None:
        """Write JSON with one line per arrival, so that a person can read and edit it."""
        data = self.to_json()
        arrivals = data.pop("arrivals")
        head = json.dumps(data, indent=1, ensure_ascii=False)[:-2]
        rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in arrivals)
        path.write_text(f'{head},\n "arrivals": [\n  {rows}\n ]\n}}\n', encoding="utf-8")

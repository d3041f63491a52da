"""Facts that the plan of a job tells: lateness, lengths of windows, keys of its answers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

from straggler.jobs.rows import EPOCH, Input
from straggler.jobs.streams import SECOND_US, Times

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INPUT_COLUMN = "straggler_input"
"""Column of the number of an input, while several are one source."""
_UNITS_US = {
    "month": 31 * 86_400 * SECOND_US,
    "week": 7 * 86_400 * SECOND_US,
    "day": 86_400 * SECOND_US,
    "hour": 3_600 * SECOND_US,
    "minute": 60 * SECOND_US,
    "second": SECOND_US,
    "millisecond": 1_000,
    "microsecond": 1,
}
_AMOUNT = re.compile(
    r"(-?\d+(?:\.\d+)?) (month|week|day|hour|minute|second|millisecond|microsecond)"
)
_WATERMARK = re.compile(r"EventTimeWatermark [^,]*, .*, ([^,]+)$")
_PANE_US = re.compile(r"[%+] (\d{3,})\)")
_INTERVAL = re.compile(r"INTERVAL '(-?)(?:(\d+) )?([\d:.]+)' (\w+)(?: TO (\w+))?")
_DUPLICATES = re.compile(r"Deduplicate(?:WithinWatermark)? \[([^\]]*)\]")
_STATEFUL = ("Aggregate", "Join", "Deduplicate", "MapGroupsWithState", "TransformWithState")
_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Shape:
    """Facts about a job."""

    times: Times
    duplicates: tuple[str, ...]
    """Columns by which the job drops duplicates."""
    groups: tuple[str, ...]
    """Columns of the answer that the last aggregation groups by."""
    needs_rocks: bool
    """Whether an operator keeps its state in RocksDB alone."""
    has_state: bool
    has_watermark: bool
    divides: bool = False
    """Whether a row may count in several answers, some of which drop it: sliding windows."""
    is_chain: bool = False
    """Whether an aggregation follows another one."""


def shape_of(frame: "DataFrame", inputs: tuple[Input, ...], lateness_us: int | None) -> Shape:
    """Return the facts about a job from its streaming frame."""
    plan = frame._jdf.queryExecution().analyzed()
    text = str(plan.toString())
    delays = _delays(text, len(inputs))
    lateness = tuple(
        [delays.get(n) if lateness_us is None else lateness_us for n in range(len(inputs))]
    )
    if not delays and lateness_us is None:
        lateness = (None,) * len(inputs)
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone", "UTC")
    odd = tuple(_odd_times(text, inputs, zone or "UTC"))
    keys = [name for found in _DUPLICATES.findall(text) for name in re.findall(r"(\w+)#", found)]
    return Shape(
        Times(lateness, tuple(sorted(set(_lengths(text)))), odd),
        tuple(dict.fromkeys(keys)),
        tuple(_groups(plan, frame)),
        "TransformWithState" in text,
        any(f"{word} " in text or f"{word}\n" in text for word in _STATEFUL) or "WithState" in text,
        bool(delays),
        "Expand [" in text or "Generate " in text,
        len(re.findall(r"Aggregate \[", text)) > 1,
    )


def parse_us(text: str) -> int | None:
    """Return a length of time that Spark wrote; ``None`` if there is none in the text."""
    found = _AMOUNT.findall(text)
    return sum(round(float(n) * _UNITS_US[unit]) for n, unit in found) if found else None


def _delays(text: str, inputs: int) -> dict[int, int]:
    """Return the strictest delay of the watermarks of each input that has any."""
    open_: list[tuple[int, int]] = []
    delays: dict[int, int] = {}
    for line in text.splitlines():
        depth = len(re.match(r"[ :+\-~']*", line)[0])  # type: ignore[index]  # always matches
        open_ = [each for each in open_ if each[0] < depth]
        if found := _WATERMARK.search(line):
            open_.append((depth, parse_us(found[1]) or 0))
        if "StreamingRelation" in line or (INPUT_COLUMN in line and "Filter" in line):
            number = re.search(rf"{INPUT_COLUMN}#\d+L? = (\d+)", line)
            if inputs > 1 and number is None:
                continue
            source = int(number[1]) if number else 0
            for _, delay in open_:
                delays[source] = min(delay, delays.get(source, delay))
    return delays


def _lengths(text: str) -> Iterator[int]:
    """Yield lengths of windows, gaps and intervals (us)."""
    for line in text.splitlines():
        if "EventTimeWatermark" in line:
            continue
        yield from (int(found) for found in _PANE_US.findall(line))
        for found in re.findall(r"cast\((.{1,60}?) as interval\)", line):
            yield from filter(None, [parse_us(found)])
        for _sign, days, clock, first, last in _INTERVAL.findall(line):
            if us := _interval_us(int(days or 0), clock, first, last):
                yield us


def _interval_us(days: int, clock: str, first: str, last: str) -> int:
    order = ["DAY", "HOUR", "MINUTE", "SECOND"]
    if first not in order:
        return 0
    parts = [float(part) for part in clock.split(":")]
    has_days = first == "DAY" and (bool(days) or (last != "" and ":" in clock))
    start = order.index(first) + has_days
    us = days * _UNITS_US["day"]
    for unit, part in zip(order[start:], parts, strict=False):
        us += round(part * _UNITS_US[unit.lower()])
    return us


def _groups(plan: Any, frame: "DataFrame") -> Iterator[str]:
    """Yield the columns of the answer that the last aggregation groups by."""
    node = plan
    while node.nodeName() != "Aggregate":
        if node.children().size() != 1:
            return
        node = node.children().apply(0)
    jvm: Any = frame.sparkSession._jvm
    helper = jvm.org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
    found = node.aggregateExpressions()
    for n in range(found.size()):
        each = found.apply(n)
        if not helper.containsAggregate(each) and each.name() in frame.columns:
            yield each.name()


def _odd_times(text: str, inputs: tuple[Input, ...], zone: str) -> Iterator[int]:
    """Yield event times at which clocks change, in the zones that the job may mean (us)."""
    zones = [zone, *re.findall(r"\b[A-Z][a-z]+/[A-Z][\w]+\b", text)]
    known = available_timezones()
    for name in dict.fromkeys(each for each in zones if each in known and each != "UTC"):
        for change in _changes(ZoneInfo(name)):
            if any(each.is_ntz for each in inputs):
                local = change.astimezone(ZoneInfo(name)).replace(tzinfo=UTC)
                for moment in (local, local + timedelta(hours=1)):
                    yield (moment - EPOCH) // timedelta(microseconds=1)
            else:
                yield (change - EPOCH) // timedelta(microseconds=1)


def _changes(zone: ZoneInfo) -> Iterator[datetime]:
    """Yield the hours of a year in which the clocks of a zone change."""
    before = _YEAR.astimezone(zone).utcoffset()
    for hour in range(1, 366 * 24):
        moment = _YEAR + timedelta(hours=hour)
        if (now := moment.astimezone(zone).utcoffset()) != before:
            before = now
            yield moment

"""Facts that the plan of a job tells: lateness, lengths of windows, keys of its answers."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

from straggler.jobs.operators import Operator, java_keys, name_of
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
_PANE_US = re.compile(r"[%+] (\d{3,})\)")
_INTERVAL = re.compile(r"INTERVAL '(-?)(?:(\d+) )?([\d:.]+)' (\w+)(?: TO (\w+))?")
_STATEFUL = re.compile("Aggregate|Join|Deduplicate.*|.*WithState.*")
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
    """Whether an aggregation follows another one, or rows make sessions."""


def shape_of(frame: "DataFrame", inputs: tuple[Input, ...], lateness_us: int | None) -> Shape:
    """Return the facts about a job from its streaming frame."""
    plan = frame._jdf.queryExecution().analyzed()
    text = str(plan.toString())
    operators = [*Operator(plan).walk()]
    names = Counter(each.name for each in operators)
    delays = _delays(operators[-1])
    lateness = tuple(
        [delays.get(n) if lateness_us is None else lateness_us for n in range(len(inputs))]
    )
    if not delays and lateness_us is None:
        lateness = (None,) * len(inputs)
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone", "UTC")
    odd = tuple(_odd_times(text, inputs, zone or "UTC"))
    has_sessions = "session_window" in text  # a late row may follow one that has closed
    dropping = [each for each in operators if each.name.startswith("Deduplicate")]
    return Shape(
        Times(lateness, tuple(sorted(set(_lengths(text)))), odd),
        tuple(dict.fromkeys(name_of(key) for each in dropping for key in java_keys(each))),
        tuple(_groups(plan, frame)),
        any("TransformWithState" in name for name in names),
        any(map(_STATEFUL.fullmatch, names)),
        bool(delays),
        has_sessions or names["Expand"] + names["Generate"] > 0,
        has_sessions or names["Aggregate"] > 1,
    )


def parse_us(text: str) -> int | None:
    """Return a length of time that Spark wrote; ``None`` if there is none in the text."""
    found = _AMOUNT.findall(text)
    return sum(round(float(n) * _UNITS_US[unit]) for n, unit in found) if found else None


def _delays(node: Operator, above_us: tuple[int, ...] = ()) -> dict[int, int]:
    """Return the strictest delay of the watermarks above each input that has any."""
    if node.name == "EventTimeWatermark":
        above_us += (parse_us(str(node.java.delay().toString())) or 0,)
    number = _input_of(node)
    if number is None and node.children:
        below = [delay for child in node.children for delay in _delays(child, above_us).items()]
        return {source: min(us for s, us in below if s == source) for source, _ in below}
    return {number or 0: min(above_us)} if above_us and node.is_streaming else {}


def _input_of(node: Operator) -> int | None:
    """Return the number of the input whose rows a filter takes out of the source of all inputs."""
    read = [each for each in node.expressions() if node.name == "Filter"]
    parts = {each.name: each for expression in read for each in expression.walk()}
    named = parts.get("AttributeReference")
    if named is None or named.fields["name"] != INPUT_COLUMN:
        return None
    return int(parts["Literal"].fields["value"])


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

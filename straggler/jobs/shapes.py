"""Facts that the plan of a job tells: lateness, lengths of windows, keys of its answers."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, available_timezones

from model.vocabulary.durations import parse_duration_us
from straggler.errors import UsageError
from straggler.jobs import APPEND, COMPLETE, UPDATE
from straggler.jobs.operators import (
    Expression,
    Operator,
    answer_keys,
    delay_us,
    filtered_watermarks,
    optimised,
    source_names,
)
from straggler.jobs.rows import EPOCH, INPUT_COLUMN, Input
from straggler.jobs.streams import Times

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUTER = {"LeftOuter": (1,), "RightOuter": (0,), "FullOuter": (0, 1)}
"""Sides of an outer join that are null without a match."""
SHORTEST_US = 100
"""Shortest window (us)."""
_REPLACING = re.compile("Aggregate|Distinct|.*WithState.*")
_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Shape:
    """Facts about a job, and how its answers are compared."""

    times: Times
    mode: str = APPEND
    """Output mode: in update mode, a later answer may take the place of an earlier one."""
    keys: tuple[str, ...] | None = ()
    """Columns whose last answer counts in update mode, and ``None`` if they are not known."""
    duplicates: tuple[str, ...] = ()
    """Columns of the inputs by which the job drops duplicates, under their names there."""
    is_united: bool = False
    """True if it drops those of several inputs at once."""
    needs_rocks: bool = False
    """True if an operator keeps its state in RocksDB alone."""
    has_watermark: bool = True
    divides: bool = False
    """True if a row may count in several answers, some of which drop it: sliding windows."""
    is_chain: bool = False
    """True if an aggregation follows another one, or rows make sessions, which late rows split."""
    is_filtered: bool = False
    """True if a filter decides which rows move a watermark; Spark moves most filters before it."""
    filtered: tuple[str, ...] = ()
    """Columns of the inputs on whose values it depends which rows the job keeps."""
    matches: tuple[tuple[tuple[int, ...], ...], ...] = ()
    """Places of answers that are null without a match, by outer join and side."""

    @property
    def is_flushed(self) -> bool:
        """Return whether rows in the far future have to move a watermark on."""
        return self.has_watermark and self.mode != COMPLETE

    @property
    def is_weak(self) -> bool:
        """Return whether nobody knows which answer replaces which, so that none can be too many."""
        return self.mode == UPDATE and self.keys is None


def shape_of(
    frame: "DataFrame",
    inputs: tuple[Input, ...],
    mode: str,
    *,
    lateness_us: int | None,
    upsert: Sequence[str],
) -> Shape:
    """Return the facts about a job from its streaming frame."""
    plan = Operator(frame._jdf.queryExecution().analyzed())
    text = str(plan.java.toString())
    operators = [*plan.walk()]
    names = Counter(each.name for each in operators)
    found = _watermarks(plan)
    watermarks = [found.get(n, (None, n)) for n in range(len(inputs))]
    lateness = tuple([us if lateness_us is None else lateness_us for us, _ in watermarks])
    clocks = tuple([clock for _, clock in watermarks])
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone", "UTC")
    odd = tuple(_odd_times(text, inputs, zone or "UTC"))
    has_sessions = "session_window" in text  # a late row may follow one that has closed
    dropping = [each for each in operators if each.name.startswith("Deduplicate")]
    if mode == UPDATE and not (upsert or any(map(_REPLACING.fullmatch, names))):
        mode = APPEND
    keys = _replaced_by(plan, upsert, frame.columns) if mode == UPDATE else ()
    return Shape(
        Times(lateness, tuple(sorted(set(_lengths(operators)))), odd, clocks=clocks),
        mode,
        keys,
        tuple(dict.fromkeys(name for each in dropping for name in source_names(plan, each))),
        is_united=any(below.name == "Union" for each in dropping for below in each.walk()),
        needs_rocks=any("TransformWithState" in name for name in names),
        has_watermark=any(us is not None for us, _ in watermarks),
        divides=has_sessions or names["Expand"] + names["Generate"] > 0,
        is_chain=has_sessions or names["Aggregate"] + names["Distinct"] > 1,
        is_filtered=bool(filtered_watermarks(optimised(frame), is_optimised=True)),
        filtered=tuple(dict.fromkeys(_filtered(operators, inputs))),
        matches=tuple(_matches(plan)),
    )


def _matches(plan: Operator) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield, of each outer join, the places of answers that are null without a match, by side.

    A join whose matches a filter may leave out is left out, and one of which answers show nothing.
    """
    places = {number: n for n, number in enumerate(plan.outputs())}
    filters = [each for each in plan.walk() if each.name == "Filter"]
    for node in plan.walk():
        kind = str(node.java.joinType().toString()) if node.name == "Join" else ""
        if kind not in OUTER:
            continue
        sides = [set(node.children[n].outputs()) for n in OUTER[kind]]
        above = [each for each in filters if node in each.walk()]
        is_filtered = any(each.expressions()[0].reads() & set().union(*sides) for each in above)
        shown = [tuple(sorted(places[n] for n in side & places.keys())) for side in sides]
        if all(shown) and not is_filtered:
            yield tuple(shown)


def _filtered(operators: Iterable[Operator], inputs: tuple[Input, ...]) -> Iterator[str]:
    """Yield the columns of the inputs, besides event times, that filters and joins read."""
    known = {column.name for each in inputs for column in each.others}
    for node in operators:
        for expression in node.expressions() if node.name in ("Filter", "Join") else ():
            for each in expression.walk():
                if each.name == "AttributeReference" and each.fields["name"] in known:
                    yield each.fields["name"]


def _replaced_by(
    plan: Operator, upsert: Sequence[str], columns: Sequence[str]
) -> tuple[str, ...] | None:
    """Return the columns by which later answers replace earlier ones; ``None`` if not known."""
    for name in upsert:
        if name not in columns:
            raise UsageError(f"upsert names {name!r}, which is no column of the answers")
    return tuple(upsert) or answer_keys(plan)


def _watermarks(node: Operator) -> dict[int, tuple[int | None, int]]:
    """Return the strictest delay above each input, ``None`` without a watermark, and its clock.

    Inputs below one watermark have one clock, named by the first of them: rows of each one make
    rows of the others late.
    """
    number = _input_of(node)
    found: dict[int, tuple[int | None, int]] = {}
    if number is not None or not node.children:
        return {number or 0: (None, number or 0)} if node.is_streaming else {}
    for child in node.children:
        for source, (us, clock) in _watermarks(child).items():
            known_us = found.get(source, (None, 0))[0]
            if source not in found or (us is not None and (known_us is None or us < known_us)):
                found[source] = us, clock
    if node.name == "EventTimeWatermark":
        own_us, clock = delay_us(node), min(found, default=0)
        for source, (us, _) in found.items():
            if us is None or own_us <= us:
                found[source] = own_us, clock
    return found


def _input_of(node: Operator) -> int | None:
    """Return the number of the input whose rows a filter takes out of the source of all inputs."""
    read = [each for each in node.expressions() if node.name == "Filter"]
    parts = {each.name: each for expression in read for each in expression.walk()}
    named = parts.get("AttributeReference")
    if named is None or named.fields["name"] != INPUT_COLUMN:
        return None
    return int(parts["Literal"].fields["value"])


def _lengths(operators: Iterable[Operator]) -> Iterator[int]:
    """Yield lengths of windows, gaps and intervals (us)."""
    for node in operators:
        for expression in node.expressions() if node.name != "EventTimeWatermark" else ():
            for each in expression.walk():
                kind = str(each.fields.get("dataType"))
                if each.name in ("Add", "Remainder"):  # of times, in windows
                    yield from (us for us in map(_long, each.children) if us >= SHORTEST_US)
                elif each.name == "Literal" and re.match("interval (day|hour|minute|sec)", kind):
                    yield from filter(None, [abs(int(each.fields["value"] or 0))])
                elif each.name == "Cast" and kind == "interval":
                    for literal in each.walk():
                        with suppress(ValueError):  # another text
                            yield parse_duration_us(str(literal.fields.get("value")))


def _long(literal: Expression) -> int:
    """Return the value of a long integer, and 0 for another expression."""
    is_long = literal.name == "Literal" and literal.fields["dataType"] == "long"
    return int(literal.fields["value"] or 0) if is_long else 0


def _odd_times(text: str, inputs: tuple[Input, ...], zone: str) -> Iterator[int]:
    """Yield event times at which clocks change, in the zones that the job may mean (us)."""
    zones = [zone, *re.findall(r"\b[A-Z][a-z]+/[A-Z][\w]+\b", text)]
    known = available_timezones()
    for name in dict.fromkeys(each for each in zones if each in known and each != "UTC"):
        for change in _changes(ZoneInfo(name)):
            if any(each.is_ntz for each in inputs):
                local = change.replace(tzinfo=UTC)
                for moment in (local, local + timedelta(hours=1)):
                    yield (moment - EPOCH) // timedelta(microseconds=1)
            else:
                yield (change - EPOCH) // timedelta(microseconds=1)


def _changes(zone: ZoneInfo) -> list[datetime]:
    """Return the hours of a year in which the clocks of a zone change."""
    hours = [(_YEAR + timedelta(hours=n)).astimezone(zone) for n in range(366 * 24)]
    return [now for before, now in pairwise(hours) if before.utcoffset() != now.utcoffset()]

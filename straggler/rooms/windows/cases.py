"""Cases of rooms that answer windows: inputs, queries, and how answers are compared."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import isfinite
from typing import NamedTuple

from model.checking import diff
from model.checking.diff import Difference
from model.vocabulary import Event, Trace, Workload
from model.vocabulary.settings import JsonObject
from model.windows.evidence import has_exact_sums
from straggler.inputs import inputs
from straggler.inputs.columns import Columns
from straggler.inputs.tables import Recording
from straggler.options import Arguments
from straggler.rooms import Case, SkippedInput
from straggler.rooms.windows.queries import BATCHES, ConfigT
from straggler.wiring import cases_of, make_case

DEFAULT_INPUTS = ("flights", "umts", "iot_umts")
TOLERANCE = 1e-9
"""Relative tolerance of sums that float64 rounds."""
SUMMED = ("sum", "avg")
"""Aggregates that float64 may round, and in which values may cancel; all others are exact."""
NONE_LATE = "no row came after its window was answered"
Queries = Callable[[Arguments, str, Recording], Iterator[tuple[ConfigT, str]]]
"""Function that yields the queries for an input, as the options say, each with its title."""


def cases(
    room: str, queries: Queries[ConfigT], args: Arguments, columns: Columns
) -> Iterator[Case | SkippedInput]:
    """Yield one case for every query on every input that the options select."""
    needs_values = set(args.aggregate or ()) != {"count"}
    columns = replace(columns, needs_values=needs_values)

    def read(name: str) -> Iterator[Case]:
        recording = inputs.load(name, args.seed, columns)
        for config, title in queries(args, name, recording):
            yield make_case(room, recording, config, title, args, batches=BATCHES)

    return cases_of(args, DEFAULT_INPUTS, read)


def streams(
    room: str, config: JsonObject, times_us: range, values: Sequence[float]
) -> Iterator[Workload]:
    """Yield all streams of a tuple for each value or fewer, each in a micro-batch of its own."""
    for length in range(1, len(values) + 1):
        for event_times_us in product(times_us, repeat=length):
            rows = enumerate(zip(event_times_us, values, strict=False))
            events = [Event(n, n, "", us, value, times_us.stop + n) for n, (us, value) in rows]
            yield Workload(room, tuple(events), config, tuple(range(1, length)))


def is_in_order(case: Case) -> bool:
    """Return whether no event arrives after one with a later event time."""
    pairs = pairwise(case.workload.arrivals)
    return all(one.event_time_us <= other.event_time_us for one, other in pairs)


def tasks_hint(case: Case) -> str:
    """Return that tasks have watermarks of their own, if there are several; else nothing."""
    tasks = case.workload.config.get("tasks", 1)
    return f"; each of the {tasks:,} tasks has its own watermark" if tasks > 1 else ""


class Agreement(NamedTuple):
    """Rule by which the steps of a room are compared."""

    words: tuple[type, ...]
    identity: Mapping[str, tuple[str, ...]]
    """Identifying fields, by kind of step."""

    def compare(
        self,
        workload: Workload,
        expected: Trace,
        observed: Trace,
        step_types: Collection[type],
        ignore: Collection[str],
    ) -> Difference:
        """Compare steps exactly; inexact sums may differ within the tolerance.

        See docs/slack.md, section 3.
        """
        values = [event.value for event in workload.arrivals if isfinite(event.value)]
        chosen = [word for word in self.words if word in step_types]
        is_summed = workload.config.get("aggregate", "sum") in SUMMED
        return diff.compare(
            expected,
            observed,
            chosen,
            identity=self.identity,
            ignore=ignore,
            rel_tol=TOLERANCE if is_summed and not has_exact_sums(values) else None,
            scales={"value": max(map(abs, values), default=0.0)},
        )

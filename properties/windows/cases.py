"""Cases of rooms that answer windows: inputs, micro-batches and queries, and when two agree."""

import argparse
from collections.abc import Callable, Collection, Iterator, Mapping
from math import isfinite
from typing import NamedTuple, TypeVar

from model.checking import diff
from model.checking.diff import Difference
from model.vocabulary import Trace, Workload
from model.windows.evidence import has_exact_sums
from properties.data import inputs
from properties.data.tables import Columns, Recording, cuts_into
from properties.judging.predictions import Predictor
from properties.rooms import Case, SkippedInput
from properties.windows.queries import BATCHES, Config

DEFAULT_INPUTS = ("flights", "umts", "iot_umts")
TOLERANCE = 1e-9
SUMMED = ("sum", "avg")
"""Aggregates in which values may cancel."""
PREDICTOR = Predictor(
    "p50_window_latency_us",
    "p99_window_latency_us",
    "from the end of a window, by the sources' clock, to its first answer",
    ("utilisation_",),
)
ConfigT = TypeVar("ConfigT", bound=Config)
Queries = Callable[[argparse.Namespace, str, Recording], Iterator[tuple[ConfigT, str]]]
"""The queries that the options ask of an input, each with its title."""


def cases(
    room: str, queries: Queries[ConfigT], args: argparse.Namespace, columns: Columns
) -> Iterator[Case | SkippedInput]:
    """One case for every query on every input that the options ask for."""
    for name in args.input or DEFAULT_INPUTS:
        asked_for = bool(args.input)
        if not asked_for and name in inputs.PUBLISHED and name not in inputs.recordings_by_name():
            yield SkippedInput(name, inputs.missing_recording(name))
            continue
        recording = inputs.load(name, args.seed, columns)
        cuts = cuts_into(len(recording.events), args.batches or BATCHES)
        for config, title in queries(args, name, recording):
            workload = Workload(
                room,
                recording.events,
                config.to_json(),
                cuts,
                seed=args.seed,
                name=f"{recording.name}, {title}",
            )
            yield Case(recording.name, recording.label, title, workload, recording.in_order)


class Agreement(NamedTuple):
    """How steps of a room are compared."""

    step_types: tuple[type, ...]
    identity: Mapping[str, tuple[str, ...]]
    """Fields that tell one step of a kind from another."""

    def compare(
        self, workload: Workload, expected: Trace, observed: Trace, step_types: Collection[type]
    ) -> Difference:
        """Exactly, except where sums of the values are not exact (docs/slack.md, section 3)."""
        values = [event.value for event in workload.arrivals if isfinite(event.value)]
        chosen = [word for word in self.step_types if word in step_types]
        is_summed = workload.config.get("aggregate", "sum") in SUMMED
        return diff.compare(
            expected,
            observed,
            chosen,
            identity=self.identity,
            rel_tol=None if has_exact_sums(values) else TOLERANCE,
            scales={"value": max(map(abs, values), default=0.0)} if is_summed else {},
        )

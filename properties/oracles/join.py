"""Nested loop over a join with decisions: the oracle of "every pair is joined exactly once".

Rules of this file:

* The oracle imports nothing of ours but oracles. It reads a workload as plain JSON, and follows
  docs/join.md, sections 1, 2 and 14.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from math import inf, isfinite
from typing import Any

from properties.oracles.hashing import GOLDEN, MASK, mix
from properties.oracles.windows import matches

SHED = "shed, because utilisation was too high"
LATE = "event time lies below the watermark of the stream"
NOT_FINITE = "value is not a finite number"
Row = Sequence[Any]
"""An arrival: seq, identity, key, event time, value, arrival time, stream, values of columns."""


def compare_pairs_with_nested_loop(
    workload: Mapping[str, Any], steps: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[str]:
    """Return the pairs and rejections that a trace has more or less often than they are due.

    ``steps`` are those of the trace, by their kind. Without a flush a pair may be missing.
    """
    expected = NestedLoop(workload)
    matches = Counter((each["query"], each["r_id"], each["s_id"]) for each in steps["match"])
    rejected = Counter(
        (each["stream"], each["seq"], each["source_id"], each["reason"])
        for each in steps["rejected"]
    )
    due = expected.pairs if workload["flush"] else expected.pairs & matches
    return [
        *compare_counts("pair", due, matches),
        *compare_counts("rejection", Counter(expected.rejected), rejected),
    ]


def compare_counts(what: str, expected: Counter[Any], found: Counter[Any]) -> list[str]:
    """Return a sentence for each thing that is there more or less often than it is due."""
    return [
        f"{what} {each} is there {found[each]} times, due {expected[each]} times"
        for each in sorted((expected - found) | (found - expected), key=repr)
    ]


def split_mix(number: int) -> float:
    """Return output ``number`` of SplitMix64 from state 0, as a number in [0, 1)."""
    return (mix((number + 1) * GOLDEN & MASK) >> 11) / 2**53


class NestedLoop:
    """The admitted tuples of a workload, the rejected arrivals, and the pairs."""

    def __init__(self, workload: Mapping[str, Any]) -> None:
        config = workload["config"]
        self.decisions: list[list[Any]] = sorted(config.get("decisions", []))
        self.lateness_us = config["lateness_us"]
        self.watermark_us: dict[str, float] = {"R": -inf, "S": -inf}
        self.idle_after_us = config.get("idle_after_us")
        self.came_us: dict[str, float] = {"R": -inf, "S": -inf}
        self.mark_us: dict[str, float] = {}
        self.known: set[tuple[str, int]] = set()
        self.columns = {each: config.get(f"{each.lower()}_columns", ()) for each in "RS"}
        self.tuples: dict[str, list[tuple[dict[str, Any], int]]] = {"R": [], "S": []}
        self.rejected: list[tuple[str, int, int, str]] = []
        for epoch, batch in enumerate(batches_of(workload)):
            self.raise_floors()
            accepted = {row[6] for row in batch if self.take(epoch, row)}
            self.set_marks(accepted)
        self.pairs = Counter(self._pairs(config))

    def share(self, epoch: int) -> float:
        """Return the share of arrivals that an epoch sheds."""
        return float([0, *(share for first, _, _, share in self.decisions if first <= epoch)][-1])

    def raise_floors(self) -> None:
        """Raise the watermark of each idle stream, which the other stream has left behind."""
        if self.idle_after_us is None:
            return
        for stream, other in ("RS", "SR"):
            came_us = self.came_us[other]
            if came_us - self.mark_us.get(stream, inf) > self.idle_after_us:
                self.move_watermark(stream, came_us - self.idle_after_us)

    def set_marks(self, accepted: Collection[str]) -> None:
        """Note for each stream that showed life, or has no mark, how far the other one has come."""
        for stream, other in ("RS", "SR"):
            if self.came_us[other] > -inf and (stream in accepted or stream not in self.mark_us):
                self.mark_us[stream] = self.came_us[other]

    def take(self, epoch: int, row: Row) -> bool:
        """Shed, reject or admit an arrival; return whether it is a sign of life."""
        seq, identity, key, event_us, value, _, stream, *more = row
        number = float(value)  # "NaN" and "Infinity" are texts in JSON
        reason = ""
        if split_mix(2 * seq + (stream == "S")) < self.share(epoch):
            reason = SHED
        elif not isfinite(number):
            reason = NOT_FINITE
        elif event_us < self.watermark_us[stream]:
            reason = LATE
        if reason:
            self.rejected.append((stream, seq, identity, reason))
        elif (stream, identity) not in self.known:
            self.known.add((stream, identity))
            self.came_us[stream] = max(self.came_us[stream], event_us)
            self.move_watermark(stream, event_us)
            found = {"source_id": identity, "key": key, "event_time": event_us, "value": number}
            for (name, kind), cell in zip(self.columns[stream], *more, strict=True):
                number = float(cell) if kind == "number" and cell is not None else cell
                found[name] = None if number != number else number  # NaN is missing, too
            self.tuples[stream].append((found, epoch))
        return reason not in (SHED, NOT_FINITE)

    def move_watermark(self, stream: str, event_us: float) -> None:
        """Let the watermark of a stream follow an event time."""
        if self.lateness_us is not None:
            self.watermark_us[stream] = max(self.watermark_us[stream], event_us - self.lateness_us)

    def _pairs(self, config: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
        spans = {name: (first, last) for name, first, last in config["epochs"]}
        for name, predicate in config["queries"]:
            first, last = spans.get(name, (0, None))
            end = inf if last is None else last
            r, s = (
                [each for each, epoch in self.tuples[stream] if first <= epoch <= end]
                for stream in "RS"
            )
            for one, other in product(r, s):
                distance_us = abs(one["event_time"] - other["event_time"])
                if distance_us <= config["window_us"] and matches(predicate, one, other):
                    yield name, one["source_id"], other["source_id"]


def batches_of(workload: Mapping[str, Any]) -> list[list[Row]]:
    """Return the micro-batches of a workload, without empty ones."""
    rows = workload["arrivals"]
    bounds = [0, *workload["cuts"], len(rows)]
    parts = [rows[bounds[n] : bounds[n + 1]] for n in range(len(bounds) - 1)]
    return [part for part in parts if part]

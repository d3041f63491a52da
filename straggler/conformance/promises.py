"""Promises that engines are asked for, with the queries and streams that put them to the test.

Rules of this file:

* A promise says what a user relies on, not how our pipelines work. Engines are asked for it with
  the settings under which their documentation gives it.
* A promise judges answers (``straggler/conformance/judgements.py``).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from model.vocabulary import JoinConfig, Trace, Workload
from model.vocabulary.grouping import Route
from model.vocabulary.join import Match, Rejected
from model.vocabulary.settings import PlainData
from model.vocabulary.trace import kind_of
from model.vocabulary.windows import Final, Late, Result
from straggler.conformance.judgements import (
    Answered,
    Judged,
    differs,
    differs_in_steps,
    is_unbalanced,
    loses_pairs,
    loses_windows,
)
from straggler.judging.levels import ANSWERS, STEPS, Scope
from straggler.rooms import find_room

NEVER_US = 1_000_000_000
"""Lateness that no drawn tuple exceeds (us)."""

Values = Mapping[str, Sequence[PlainData]]


class Promise(NamedTuple):
    """A column of the page."""

    title: str
    question: str
    """Sentence that says what is promised."""
    room: str
    step_types: tuple[type, ...]
    """Step classes that an adapter has to record."""
    settings: Values
    """Values of settings, whatever the engine can express."""
    guards: tuple[str, ...]
    """Cases that have to occur, or nothing was put to the test."""
    judge: Callable[[Answered], Judged]

    @property
    def scope(self) -> Scope:
        """The part of a trace that is judged."""
        level = STEPS if self.room == "grouping" else ANSWERS
        return Scope.of(find_room(self.room), ",".join(map(kind_of, self.step_types)), level)


# -------------------------------------------------------------------------------------- guards


def count_cases(workload: Workload, expected: Trace) -> dict[str, int]:
    """Return how often each interesting case occurs in a workload and in its reference."""
    arrivals = workload.arrivals
    times_us = {(event.stream, event.source_id): event.event_time_us for event in arrivals}
    at = Counter((stream, time_us) for (stream, _), time_us in times_us.items())
    counts = {
        "workloads": 1,
        "tuples": len(times_us),
        "out of order": sum(_out_of_order(workload)),
        "redeliveries": len(arrivals) - len(times_us),
        "equal times": sum(number for number in at.values() if number > 1),
    }
    if workload.room == "slack":
        edges = _edges(workload)
        counts |= {
            "on a boundary": sum(event.event_time_us in edges for event in arrivals),
            "late pairs": len(expected.of(Late)),
            "windows": len(expected.of(Final)),
        }
    if workload.room == "grouping":
        share = len(arrivals) / workload.config["instances"]
        tuples = Counter(event.key for event in arrivals)
        counts["heavy keys"] = sum(number > share for number in tuples.values())
    if workload.room == "join":
        counts |= _count_pairs(workload, expected)
    return counts


def _out_of_order(workload: Workload) -> Iterator[bool]:
    latest_us: dict[str, int] = {}
    for event in workload.arrivals:
        before_us = latest_us.get(event.stream, event.event_time_us)
        yield event.event_time_us < before_us
        latest_us[event.stream] = max(before_us, event.event_time_us)


def _edges(workload: Workload) -> set[int]:
    """Return the event times at which a window starts or ends."""
    size_us, slide_us = workload.config["size_us"], workload.config["slide_us"]
    return {
        event.event_time_us
        for event in workload.arrivals
        if event.event_time_us % slide_us == 0 or (event.event_time_us - size_us) % slide_us == 0
    }


def _count_pairs(workload: Workload, expected: Trace) -> dict[str, int]:
    window_us = JoinConfig.from_json(workload.config).window_us
    at_us = {(event.stream, event.source_id): event.event_time_us for event in workload.arrivals}
    apart_us = [
        abs(at_us["R", match.r_id] - at_us["S", match.s_id]) for match in expected.of(Match)
    ]
    return {
        "on a boundary": sum(distance_us == window_us for distance_us in apart_us),
        "rejected": len(expected.of(Rejected)),
        "matches": len(apart_us),
    }


# -------------------------------------------------------------------------------------- promises

_WINDOWS: Values = {
    "control": ["fixed"],
    "max_slack_us": [None],
    "tasks": [1],
    "dedup": [True],
    "lambda_thr": [0.5],
    "method": ["normal"],
}
_SEEN = ("out of order", "redeliveries", "equal times", "on a boundary")
_JOIN: Values = {"epochs": [[]], "workers": [2]}

PROMISES: Mapping[str, Promise] = {
    "windows-exact": Promise(
        "windows end exact",
        "When the stream has ended, and nothing was later than allowed, every window has one"
        " answer: the aggregate of all its tuples, each counted once.",
        "slack",
        (Final,),
        {**_WINDOWS, "fixed_slack_us": [NEVER_US]},
        (*_SEEN, "windows"),
        differs,
    ),
    "in-time": Promise(
        "nothing in time is dropped",
        "Whatever arrives within the declared lateness is in the answer of its window, once.",
        "slack",
        (Final,),
        {**_WINDOWS, "fixed_slack_us": [0, 2_000, 7_000, 20_000]},
        (*_SEEN, "windows", "late pairs"),
        loses_windows,
    ),
    "late-reported": Promise(
        "late data is reported",
        "The first answer of a window holds exactly the tuples that came before the watermark, with"
        " the declared lateness, reached its end. Every later one is reported as late for that"
        " window, and nothing else is.",
        "slack",
        (Result, Late),
        {**_WINDOWS, "fixed_slack_us": [0, 2_000, 7_000, 20_000]},
        (*_SEEN, "windows", "late pairs"),
        differs_in_steps,
    ),
    "pairs-once": Promise(
        "each pair exactly once",
        "A join within a time window finds every pair that its condition asks for, once.",
        "join",
        (Match,),
        {**_JOIN, "lateness_us": [None]},
        (*_SEEN, "matches"),
        differs,
    ),
    "pairs-in-time": Promise(
        "no pair in time is lost",
        "With a bounded lateness, a join still finds every pair of tuples that came in time, once.",
        "join",
        (Match,),
        {**_JOIN, "lateness_us": [0, 8_000, 128_000]},
        (*_SEEN, "matches", "rejected"),
        loses_pairs,
    ),
    "balance": Promise(
        "imbalance stays O(1)",
        "However long a stream with skewed keys is, the fullest of n equal instances stays a few"
        " tuples above what a fluid would give it.",
        "grouping",
        (Route,),
        {"policy": ["tag"], "senders": [1]},
        ("tuples", "heavy keys"),
        is_unbalanced,
    ),
}
"""Promises by name, in the order of the columns."""

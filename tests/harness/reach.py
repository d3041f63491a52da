"""A pytest plugin: records what the drawn cases of each room reach on real Spark.

``--record-reach FILE`` writes, for every room, how often the cases that its claims count occurred
in Spark's own traces. Without it nothing is counted.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import pytest

from model.vocabulary import SlackConfig, Trace, Workload
from model.vocabulary.join import Forward, Receive
from model.vocabulary.slack import Judged
from model.vocabulary.windows import Final
from straggler.conformance.promises import count_cases
from straggler.rooms import find_room
from tests.harness.reached_cases import (
    LARGE,
    LARGE_PARTIAL,
    PARTIAL,
    count_partial,
    count_script_cases,
)

NOTHING = Trace("spark", ())
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
"""Shares of the windows whose sizes are recorded: that of the smallest, ..., of the largest."""
_listeners: list[Callable[[Mapping[str, Workload], Mapping[str, Trace], Trace], None]] = []


class Rule(NamedTuple):
    """The settings of a query that decide what its windows require."""

    aggregate: str
    method: str
    sampling: str
    control: str


class Reach(NamedTuple):
    """Numbers of what the cases of one room reached on Spark."""

    cases: int
    regions: Mapping[str, int]
    """Occurrences of each interesting case, by its name; 0 if Spark never met it."""
    window_tuples: Sequence[int]
    """Tuples of a window at each of :data:`SHARES`; empty in rooms without answers of windows."""
    rules: Sequence[tuple[Rule, Mapping[str, int]]]
    """Queries of room ``slack`` by their rule, with their cases, windows and required parts."""


def note_traces(
    cases: Mapping[str, Workload], traces: Mapping[str, Trace], shared: Trace = NOTHING
) -> None:
    """Tell a recorder, if there is one, what Spark recorded for some cases, and for all together.

    Raise ``KeyError`` if a recorder listens and a case has no trace.
    """
    for listen in _listeners:
        listen(cases, traces, shared)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--record-reach``."""
    parser.addoption("--record-reach", type=Path, help="write what the cases reach on Spark")


def pytest_configure(config: pytest.Config) -> None:
    """Start to record."""
    if config.option.record_reach:
        config.pluginmanager.register(Recorder(config.option.record_reach))


class Recorder:
    """Counter of what Spark met, by room."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._lock = Lock()  # Packs of one promise run side by side.
        self._cases = Counter[str]()
        self._regions: dict[str, Counter[str]] = defaultdict(Counter)
        self._sizes: dict[str, Counter[int]] = defaultdict(Counter)
        self._rules: dict[Rule, Counter[str]] = defaultdict(Counter)

    def pytest_sessionstart(self) -> None:
        """Listen to all runs on Spark."""
        _listeners.append(self.note)

    def note(
        self, cases: Mapping[str, Workload], traces: Mapping[str, Trace], shared: Trace
    ) -> None:
        """Count what some cases reached."""
        with self._lock:
            self._note(cases, traces, shared)

    def _note(
        self, cases: Mapping[str, Workload], traces: Mapping[str, Trace], shared: Trace
    ) -> None:
        for name, case in cases.items():
            trace = traces[name]
            self._cases[case.room] += 1
            self._sizes[case.room].update(step.n for step in trace.of(Final))
            counts = {**count_cases(case, trace), **find_room(case.room).check(case, trace).guards}
            own = {**self._judged(case, trace), **_messages(case, trace), **_scripts(case, trace)}
            self._add(case.room, {**counts, **own})
        first = next(iter(cases.values()))
        self._add(first.room, _messages(first, shared))

    def _add(self, room: str, counts: Mapping[str, int]) -> None:
        for name, count in counts.items():
            self._regions[room][name] += int(count)

    def _judged(self, case: Workload, trace: Trace) -> dict[str, int]:
        """Count the judged windows of a query with an adaptive slack, also by its rule."""
        if case.room != "slack":
            return {}
        config = SlackConfig.from_json(case.config)
        counts = {
            "judged windows": len(trace.of(Judged)),
            PARTIAL: count_partial(trace),
            LARGE_PARTIAL: count_partial(trace, LARGE),
        }
        method = method_of(config.method, config.lambda_thr)
        rule = Rule(config.aggregate, method, config.sampling, config.control)
        self._rules[rule].update({"cases": 1, **counts})
        return counts

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        _listeners.remove(self.note)
        write(self._target, {room: self._reach(room) for room in sorted(self._cases)})

    def _reach(self, room: str) -> Reach:
        regions = dict(sorted(self._regions[room].items()))
        rules = sorted(self._rules.items()) if room == "slack" else []
        return Reach(self._cases[room], regions, quantiles(self._sizes[room]), rules)


def method_of(method: str, lambda_thr: float | None) -> str:
    """Return the method that finds the required coverage, or ``lambda_thr`` if it is given."""
    return method if lambda_thr is None else "lambda_thr"


def _messages(case: Workload, trace: Trace) -> dict[str, int]:
    """Count what the workers of a chain sent each other."""
    if case.room != "join":
        return {}
    copies = sum(step.copies for step in trace.of(Receive))
    return {"forwarded blocks": len(trace.of(Forward)), "copies met": copies}


def _scripts(case: Workload, trace: Trace) -> dict[str, int]:
    """Count what scripts computed, and the arrivals that they may get wrong."""
    return count_script_cases(case, trace) if case.room == "script" else {}


def quantiles(sizes: Mapping[int, int]) -> list[int]:
    """Return the size at each of :data:`SHARES`, given the number of windows of every size."""
    ordered: Iterable[int] = Counter(sizes).elements()
    every = sorted(ordered)
    return [every[round(share * (len(every) - 1))] for share in SHARES] if every else []


def write(path: Path, found: Mapping[str, Reach]) -> None:
    """Write what the cases of each room reached, as JSON."""
    plain = {room: reach._asdict() for room, reach in found.items()}
    path.write_text(json.dumps(plain, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> dict[str, Reach]:
    """Read what the cases of each room reached."""
    stored: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return {
        room: Reach(**{**each, "rules": [(Rule(*rule), counts) for rule, counts in each["rules"]]})
        for room, each in stored.items()
    }

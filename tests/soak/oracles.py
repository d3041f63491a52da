"""Answers that the rooms owe, recomputed from all deliveries in plain Python.

Rules of this file:

* It imports the standard library and :mod:`properties.oracles`, and nothing of ours.
* An oracle lives as long as the store that it checks. It remembers what it saw, so an answer that
  disappears again is lost, whatever comes later.
* Before the end of a stream some answers may be missing. What is there must be right, and what the
  room says is complete must be complete.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import inf, sqrt
from typing import Any, NamedTuple

from properties.oracles.join import NestedLoop
from properties.oracles.promises import tuples_of
from properties.oracles.windows import AGGREGATES

WINDOWS = {"slack": ("sum", 1_000_000, 200_000), "watermark": ("median", 500_000, 200_000)}
"""Aggregate, size and slide (us) of the windowed rooms; windows of ``watermark`` have no key."""
JOIN: Mapping[str, Any] = {
    "window_us": 200_000,
    "lateness_us": 100_000,
    "queries": [
        ["near", ["band", "value", 1]],
        ["same", ["and", ["equi", "key"], ["ineq", "value", "<", "value"]]],
    ],
    "epochs": [],
}
SCRIPT_LATENESS_US = 50_000
SCRIPT = """
spread = stddev("A", 400, 200)
most = max(union("B", spread), 600, 300)
mean = avg("B", 400, 400)
total = sum(mean, "A")
ratio = "A" / spread
seldom = count("C", 2_000, 500)
"""

LOST, TWICE, WRONG = "lost", "twice", "wrong"


class Arrival(NamedTuple):
    """One delivery of a tuple; ``place`` is its stream or site."""

    seq: int
    identity: int
    key: str
    ts: int
    value: float
    place: str


class Finding(NamedTuple):
    """Something that a room answered and should not have, or should have and did not."""

    kind: str
    what: str


Observed = Mapping[str, Any]
"""Content of a store as a driver read it, in JSON."""
Pairs = list[tuple[int, float]]
"""A stream of a script: stamps (us) and values."""


def repeated(kind: str, rows: Iterable[Any]) -> list[Finding]:
    """Return a finding for everything that is there more than once."""
    return [Finding(TWICE, f"{kind} {row}") for row, n in Counter(rows).items() if n > 1]


class Oracle:
    """Checks one life of a room."""

    def __init__(self, room: str) -> None:
        self.room = room
        self.checked = 0
        """Number of answers that the last check compared."""

    def check(
        self, arrivals: Sequence[Arrival], observed: Observed, *, ended: bool
    ) -> list[Finding]:
        """Compare what was observed after all arrivals; ``ended``: and after a flush."""
        raise NotImplementedError


class WindowsOracle(Oracle):
    """Windows with corrections: exact where they say so, never gone, all there after a flush."""

    def __init__(self, room: str) -> None:
        super().__init__(room)
        self._seen: dict[tuple[str, str, int], tuple[int, int, int]] = {}

    def check(
        self, arrivals: Sequence[Arrival], observed: Observed, *, ended: bool
    ) -> list[Finding]:
        """Compare the answers of ``results`` and those that the sink holds."""
        aggregate, size_us, slide_us = WINDOWS[self.room]
        config = {"size_us": size_us, "slide_us": slide_us, "keyed": self.room == "slack"}
        by_place: dict[str, list[Any]] = defaultdict(list)
        for each in arrivals:
            by_place[each.place].append((*each[:5], each.ts, ""))
        expected = {
            (place, key, start_us): (AGGREGATES[aggregate]([*values.values()]), len(values))
            for place, deliveries in by_place.items()
            for (_, start_us, key), values in tuples_of(
                {"config": config, "arrivals": deliveries, "cuts": []}
            ).of.items()
        }
        rows = {(place, key, start): rest for place, key, start, *rest in observed["rows"]}
        found = repeated("window", [tuple(each[:3]) for each in observed["rows"]])
        found += [Finding(LOST, f"window {each} was there") for each in self._seen.keys() - rows]
        self._seen |= {
            each: (n, revision, first) for each, (_, n, revision, first, _) in rows.items()
        }
        for window, (value, n, revision, first, state) in rows.items():
            what = f"window {window} is {value} of {n} ({state}, revision {revision})"
            if window not in expected:
                found.append(Finding(WRONG, f"{what}, but has no tuple"))
                continue
            due, most = expected[window]
            if state == "exact" and (value, n) != (due, most):
                kind = LOST if n < most else TWICE if n > most else WRONG
                found.append(Finding(kind, f"{what}, not {due} of {most}"))
            elif max(n, first) > most or (ended and state != "exact"):
                found.append(Finding(TWICE if n > most else LOST, f"{what}, of {most}"))
        if ended:
            found += [Finding(LOST, f"window {each}") for each in expected.keys() - rows.keys()]
        found += self._check_sink(rows, observed["handed"])
        self.checked = len(rows)
        return found

    @staticmethod
    def _check_sink(rows: Mapping[Any, Any], handed: Iterable[Sequence[Any]]) -> list[Finding]:
        """Compare the latest answers in the sink with those of ``results``."""
        latest: dict[Any, Any] = {}
        for place, key, start, value, n, revision in handed:
            window = place, key, start
            latest[window] = max(latest.get(window, (-1,)), (revision, n, value))
        stored = {window: (revision, n, value) for window, (value, n, revision, *_) in rows.items()}
        return [
            Finding(LOST, f"window {each}: the sink has {latest.get(each)}, not {stored.get(each)}")
            for each in stored.keys() | latest.keys()
            if stored.get(each) != latest.get(each)
        ]


class JoinOracle(Oracle):
    """A nested loop over admitted tuples; each pair exactly once."""

    def __init__(self, room: str) -> None:
        super().__init__(room)
        self._seen: set[tuple[str, int, int]] = set()

    def check(
        self, arrivals: Sequence[Arrival], observed: Observed, *, ended: bool
    ) -> list[Finding]:
        """Compare the pairs of ``results`` and those that the sink holds."""
        shed = {(stream, seq) for stream, seq in observed["shed"]}
        rows = [
            (each.seq, each.identity, each.key, each.ts, each.value, 0, each.place)
            for each in arrivals
            if (each.place, each.seq) not in shed
        ]
        admitted = NestedLoop({"config": JOIN, "arrivals": rows, "cuts": []})
        times_us = {
            (stream, each["source_id"]): each["event_time"]
            for stream, tuples in admitted.tuples.items()
            for each, _ in tuples
        }
        expected = {
            (query, r, s): max(times_us["R", r], times_us["S", s]) for query, r, s in admitted.pairs
        }
        pairs = [(query, r, s) for query, r, s in observed["rows"]]
        there = set(pairs)
        handed = [(query, r, s) for query, r, s in observed["handed"]]
        until_us = inf if ended else observed["complete_us"]
        due = {pair for pair, ts in expected.items() if ts < until_us}
        found = repeated("pair", pairs) + repeated("pair in the sink", handed)
        found += [Finding(WRONG, f"pair {each}") for each in there - expected.keys()]
        found += [Finding(LOST, f"pair {each}") for each in (due | self._seen) - there]
        found += [Finding(LOST, f"pair {each} in the sink") for each in there - set(handed)]
        found += [Finding(WRONG, f"pair {each} in the sink") for each in set(handed) - there]
        self._seen |= there
        self.checked = len(pairs)
        return found


class GroupingOracle(Oracle):
    """Every delivery is counted once for its key, in the rows and in the states of instances."""

    def check(
        self, arrivals: Sequence[Arrival], observed: Observed, *, ended: bool
    ) -> list[Finding]:
        """Compare the counts of all micro-batches, and the states after the last one."""
        expected = Counter(each.key for each in arrivals)
        seqs = [seq for seqs in observed["handed"].values() for seq in seqs]
        found = repeated("row", seqs)
        found += [Finding(LOST, f"row {each}") for each in set(range(len(arrivals))) - {*seqs}]
        counted = Counter(dict(observed["states"]))
        for key in expected.keys() | counted.keys():
            if expected[key] != counted[key]:
                kind = LOST if counted[key] < expected[key] else TWICE
                what = f"states have {counted[key]} of the {expected[key]} rows of key {key}"
                found.append(Finding(kind, what))
        self.checked = len(seqs)
        return found


class ScriptOracle(Oracle):
    """Every statement of :data:`SCRIPT`, evaluated naively."""

    def __init__(self, room: str) -> None:
        super().__init__(room)
        self._seen: set[tuple[str, int, float]] = set()

    def check(
        self, arrivals: Sequence[Arrival], observed: Observed, *, ended: bool
    ) -> list[Finding]:
        """Compare the results with those of all admitted tuples."""
        expected = {
            (name, ts, value)
            for name, pairs in evaluate_script(admit_readings(arrivals)).items()
            for ts, value in pairs
        }
        rows = [(name, ts, value) for name, ts, value in observed["rows"]]
        handed = [(name, ts, value) for name, ts, value in observed["handed"]]
        there, known_us = set(rows), inf if ended else observed["known_us"]
        due = {each for each in expected if each[1] < known_us}
        found = repeated("result", [each[:2] for each in rows])
        found += repeated("result in the sink", [each[:2] for each in handed])
        found += [Finding(WRONG, f"result {each}") for each in there - expected]
        found += [Finding(LOST, f"result {each}") for each in (due | self._seen) - there]
        found += [Finding(LOST, f"result {each} in the sink") for each in there ^ set(handed)]
        self._seen |= there
        self.checked = len(rows)
        return found


def admit_readings(arrivals: Iterable[Arrival]) -> dict[str, Pairs]:
    """Return the tuples of each sensor that are not late, each once."""
    latest_us: dict[str, int] = {}
    known: set[tuple[str, int]] = set()
    admitted: dict[str, Pairs] = defaultdict(list)
    for each in arrivals:
        if each.ts < max(0, latest_us.get(each.key, 0) - SCRIPT_LATENESS_US):
            continue
        latest_us[each.key] = max(latest_us.get(each.key, 0), each.ts)
        if (each.key, each.identity) not in known:
            known.add((each.key, each.identity))
            admitted[each.key].append((each.ts, each.value))
    return admitted


def evaluate_script(sensors: Mapping[str, Pairs]) -> dict[str, Pairs]:
    """Return the results of each statement of :data:`SCRIPT`."""
    a, b, c = (sensors.get(name, []) for name in "ABC")
    spread = fold(_stddev, a, 400, 200)
    mean = fold(
        lambda values: float(Fraction(sum(map(Fraction, values)), len(values))), b, 400, 400
    )
    return {
        "spread": spread,
        "most": fold(max, b + spread, 600, 300),
        "mean": mean,
        "total": combine(lambda x, y: float(Fraction(x) + Fraction(y)), mean, a),
        "ratio": combine(lambda x, y: x / y if y else None, a, spread),
        "seldom": fold(lambda values: float(len(values)), c, 2_000, 500),
    }


def fold(
    aggregate: Callable[[list[float]], float], pairs: Pairs, length_ms: int, slide_ms: int
) -> Pairs:
    """Return the aggregate of every window, stamped a millisecond before its end."""
    length_us, slide_us = 1_000 * length_ms, 1_000 * slide_ms
    windows: dict[int, list[float]] = defaultdict(list)
    for ts, value in pairs:
        for end in range((ts // slide_us + 1) * slide_us, ts + length_us + 1, slide_us):
            windows[end].append(value)
    return [(end - 1_000, aggregate(values)) for end, values in sorted(windows.items())]


def combine(of: Callable[[float, float], float | None], left: Pairs, right: Pairs) -> Pairs:
    """Return the results of an operation on the latest values of two streams."""
    made, latest = [], {}
    events = sorted(
        [(ts, 0, value) for ts, value in left] + [(ts, 1, value) for ts, value in right]
    )
    for at, (ts, side, value) in enumerate(events):
        latest[side] = value  # of several values with one stamp, the greatest comes last
        is_last = at + 1 == len(events) or events[at + 1][0] > ts
        if is_last and len(latest) == 2:
            result = of(latest[0], latest[1])
            if result is not None:
                made.append((ts, result))
    return made


def _stddev(values: list[float]) -> float:
    n, exact = len(values), [Fraction(each) for each in values]
    total = sum(exact, Fraction())
    return sqrt((n * sum(each * each for each in exact) - total * total) / (n * n))


ORACLES: Mapping[str, Callable[[str], Oracle]] = {
    "slack": WindowsOracle,
    "watermark": WindowsOracle,
    "script": ScriptOracle,
    "grouping": GroupingOracle,
    "join": JoinOracle,
    "join-load": JoinOracle,
}
"""The oracle of each kind of query."""

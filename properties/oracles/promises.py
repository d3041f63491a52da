"""Promises about routes and windows, judged from plain data alone.

The oracle of pairs is ``join``, that of rows ``accounts``. Rules of this file:

* An oracle imports nothing of ours but oracles.
* A workload is what its JSON holds, and a step of a trace is a dictionary of its fields.
* Tuples, tasks, windows, routes and shares are counted from the arrivals by the pages of the rooms.
  The trace contributes only what an engine decides: which pairs of a tuple and a window were late.
  If the wait is fixed, or as long as the largest delay, that is counted, too.
* Every function returns sentences; none means that the promise was kept.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, inf, isfinite, log2
from statistics import fmean
from typing import Any, NamedTuple

from properties.oracles.hashing import signed_hash
from properties.oracles.join import batches_of, compare_counts
from properties.oracles.router import Excess, Router
from properties.oracles.windows import AGGREGATES

Workload = Mapping[str, Any]
Steps = Mapping[str, Sequence[Mapping[str, Any]]]
"""Steps of a trace by their kind, such as ``match``, each with its fields."""
Window = tuple[int, int, str]
"""Task, start (us) and key."""


def wrong_routes(expected: Router, steps: Steps) -> list[str]:
    """Compare routes, heavy keys and answers with those of a router by definition."""
    routes = Counter((each["seq"], each["sender"], each["instance"]) for each in steps["route"])
    heavy = Counter(
        (each["window"], each["key"], each["counted"], tuple(each["candidates"]))
        for each in steps["heavy"]
    )
    answers = Counter(
        (each["window"], each["key"], each["n"], each["total"]) for each in steps["answer"]
    )
    return [
        *compare_counts("route", Counter(expected.routes), routes),
        *compare_counts("heavy key", Counter(expected.heavy), heavy),
        *compare_counts("answer", Counter(expected.answers()), answers),
    ]


def unbalanced(windows: Mapping[int, Sequence[Excess]]) -> list[str]:
    """Judge the windows of routers, by their number of instances: each size, and the growth.

    A size is allowed what section 7 of docs/grouping.md derives. A doubling of the instances adds
    at most one tuple, because the share of speed that is h + 1 tuples above is that of h squared.
    """
    means = {n: fmean(each.above for each in windows[n]) for n in sorted(windows)}
    found = []
    for n, above in means.items():
        limit = fmean(each.allowed for each in windows[n])
        if above > limit:
            found.append(
                f"{n} instances are {above:.2f} tuples above a fluid for every sender, on average"
                f" over {len(windows[n])} windows; {limit:g} are allowed"
            )
    for few, many in pairwise(means):
        doublings = log2(many / few)
        if means[many] - means[few] > doublings:
            found.append(
                f"imbalance grows from {means[few]:.2f} tuples above a fluid with {few} instances"
                f" to {means[many]:.2f} with {many}; {doublings:g} more are allowed"
            )
    return found


# ----------------------------------------------------------------------------------- windows


class Tuples(NamedTuple):
    """The tuples that a task accepts of a workload of windows, each once."""

    of: Mapping[Window, Mapping[int, float]]
    """Values by identity, of every window with a tuple."""
    batch_of: Mapping[tuple[int, int], int]
    """Micro-batch of the first delivery, by task and identity."""
    repeated: frozenset[tuple[int, int]]
    """Task and identity of the tuples that were delivered again."""
    incomplete: frozenset[Window]
    """Windows of arrivals that a task refuses."""


def tuples_of(workload: Workload) -> Tuples:
    """Return the tuples of each window, by the arrivals alone."""
    config = workload["config"]
    found: dict[Window, dict[int, float]] = {}
    batch_of: dict[tuple[int, int], int] = {}
    repeated, incomplete = set(), set()
    for batch, rows in enumerate(batches_of(workload)):
        for _, identity, key, event_us, value, *_ in rows:
            number = float(value)  # texts stand for values that are not finite
            task = signed_hash(key) % config.get("tasks", 1)
            name = key if config.get("keyed", True) else ""
            held = [(task, start_us, name) for start_us in _starts_us(config, event_us)]
            if not isfinite(number):
                incomplete.update(held)
                continue
            if (task, identity) in batch_of:
                repeated.add((task, identity))
                continue
            batch_of[task, identity] = batch
            for window in held:
                found.setdefault(window, {})[identity] = number
    return Tuples(found, batch_of, frozenset(repeated), frozenset(incomplete))


def _starts_us(config: Mapping[str, Any], event_us: int) -> range:
    """Return the starts of the windows to which a tuple belongs, the last one first."""
    last_us = event_us // config["slide_us"] * config["slide_us"]
    return range(last_us, event_us - config["size_us"], -config["slide_us"])


def due_late_pairs(workload: Workload) -> Mapping[Window, set[int]]:
    """Return the late tuples of each window if the wait does not depend on a controller."""
    config = workload["config"]
    size_us = config["size_us"]
    feedback_us = size_us if config.get("feedback_us") is None else config["feedback_us"]
    clocks: dict[int, _Clock] = defaultdict(_Clock)
    found: dict[Window, set[int]] = defaultdict(set)
    for rows in batches_of(workload):
        for _, identity, key, event_us, value, *_ in rows:
            if not isfinite(float(value)):
                continue
            task = signed_hash(key) % config.get("tasks", 1)
            clock = clocks[task]
            known_until_us = clock.known_until_us.get(identity, -inf)
            if config.get("dedup", True) and known_until_us > clock.watermark_us:
                continue
            starts_us = _starts_us(config, event_us)
            clock.known_until_us[identity] = starts_us.start + size_us + feedback_us
            clock.advance(event_us, config)
            for start_us in starts_us:
                if start_us + size_us <= clock.watermark_us:
                    found[task, start_us, key if config.get("keyed", True) else ""].add(identity)
    return found


class _Clock:
    """Clock of a task (us), by section 2 of docs/slack.md."""

    def __init__(self) -> None:
        self.latest_us = -inf
        self.largest_delay_us = 0.0
        self.watermark_us = -inf
        self.known_until_us: dict[int, float] = {}
        """Watermark from which an identity is forgotten."""

    def advance(self, event_us: int, config: Mapping[str, Any]) -> None:
        """Move the watermark when a tuple arrives."""
        self.latest_us = max(self.latest_us, event_us)
        self.largest_delay_us = max(self.largest_delay_us, self.latest_us - event_us)
        is_fixed = config["control"] == "fixed"
        wait_us = config.get("fixed_slack_us", 0) if is_fixed else self.largest_delay_us
        if config.get("max_slack_us") is not None:
            wait_us = min(wait_us, config["max_slack_us"])
        self.watermark_us = max(self.watermark_us, self.latest_us - wait_us)


def wrong_windows(workload: Workload, steps: Steps) -> list[str]:
    """Compare first and, if there are any, last answers of all windows with a dictionary."""
    tuples = tuples_of(workload)
    found = [*_wrong_first_answers(workload, tuples, steps)]
    if workload["room"] == "slack" and workload["config"].get("control") in ("fixed", "max"):
        due, late = due_late_pairs(workload), late_pairs(steps)
        found += [
            f"tuples {sorted(late[window])} are late for window {window}, not {sorted(due[window])}"
            for window in due.keys() | late.keys()
            if due[window] != late[window]
        ]
    if workload["flush"] and steps["final"]:
        corrects = workload["room"] == "slack" or workload["config"].get("corrections", False)
        # Without corrections a window is not exact while tuples are late for it, either.
        inexact = tuples.incomplete | ({} if corrects else late_pairs(steps)).keys()
        expected = Counter(
            (window, aggregate_of(workload, values), len(values), window not in inexact)
            for window, values in tuples.of.items()
        )
        finals = Counter(
            (_window_of(each), each["value"], each["n"], each["exact"]) for each in steps["final"]
        )
        found += compare_counts("final answer", expected, finals)
    return found


def _wrong_first_answers(workload: Workload, tuples: Tuples, steps: Steps) -> Iterator[str]:
    """Yield the first answers that do not hold exactly what arrived and was not late."""
    late = late_pairs(steps)
    answers = answers_by_window(steps["result"])
    for window in late.keys() - tuples.of.keys():
        yield f"window {window} has late tuples, but none at all"
    for window in answers.keys() | tuples.of.keys():
        found = answers.get(window, [])
        values = tuples.of.get(window, {})
        if strange := late[window] - values.keys():
            yield f"tuples {strange} are late for window {window}, to which they do not belong"
        if any((window[0], identity) in tuples.repeated for identity in late[window]):
            continue  # the trace does not show which delivery was late
        kept = {each: value for each, value in values.items() if each not in late[window]}
        is_due = kept and (found or workload["flush"])
        expected = [(aggregate_of(workload, kept), len(kept))] if is_due else []
        if [(each["value"], each["n_rcv"]) for each in found] != expected:
            yield f"window {window} was answered by {found}, but its tuples give {expected}"
        for each in found:
            later = [i for i in kept if tuples.batch_of[window[0], i] > each["batch"]]
            if later:
                yield f"window {window} holds tuples {later}, which had not arrived"


def late_pairs(steps: Steps) -> Mapping[Window, set[int]]:
    """Return the identities of the tuples that were late, by window."""
    found: dict[Window, set[int]] = defaultdict(set)
    for each in steps["late"]:
        found[_window_of(each)].add(each["source_id"])
    return found


def answers_by_window(rows: Iterable[Mapping[str, Any]]) -> dict[Window, list[Mapping[str, Any]]]:
    """Return the answers of each window."""
    found: dict[Window, list[Mapping[str, Any]]] = {}
    for each in rows:
        found.setdefault(_window_of(each), []).append(each)
    return found


def _window_of(step: Mapping[str, Any]) -> Window:
    return step["task"], step["start_us"], step["key"]


def aggregate_of(workload: Workload, values: Mapping[int, float]) -> float:
    """Return the aggregate of the values of a window."""
    config = workload["config"]
    found = sorted(values.values())
    aggregate = config.get("aggregate", "sum")
    if aggregate == "quantile":
        return found[ceil(Fraction(str(config.get("q", 0.5))) * len(found)) - 1]
    return AGGREGATES[aggregate](found)

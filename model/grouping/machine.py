"""Machine of room ``grouping``, and its run: senders route and learn, instances aggregate.

Source: docs/grouping.md; section 6 for the aggregates.

Rules of this file:

* The machine only connects the parts: routers choose, summaries count, rules make tables, instances
  aggregate.
* A sender routes its tuples one by one. The keys of a micro-batch enter its summary together, when
  its part of the micro-batch ends.
* The state of the senders is a value that depends on their tuples alone. No route depends on a
  restart or a replay, so a run ignores faults.
* A run has no times: every micro-batch is routed and served at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import isfinite
from typing import NamedTuple

from model.grouping.rules import (
    RULES,
    Learnt,
    begin_window,
    enter_batch,
    first_table,
    initial_state,
    rebalance,
    route,
)
from model.grouping.state import Rules, SenderState, Summary, Table
from model.vocabulary import Event, GroupingConfig, Step, System, Trace, Workload
from model.vocabulary.grouping import REASON_NOT_FINITE, Answer, Heavy, Partial, Rejected, Route


class Aggregate(NamedTuple):
    """Partial aggregate of one or more values."""

    n: int
    total: float
    least: float
    greatest: float
    distinct: frozenset[float]
    top: tuple[float, ...]
    """The largest values, largest first."""


def aggregate(values: Sequence[float], top: int) -> Aggregate:
    """Aggregate the values that one instance got, in their order."""
    descending = sorted(values, reverse=True)
    return Aggregate(
        len(values),
        sum(values),
        min(values),
        descending[0],
        frozenset(values),
        tuple(descending[:top]),
    )


def merge_aggregates(partials: Iterable[Aggregate], top: int) -> Aggregate:
    """Merge partial aggregates, in the order of their instances."""
    merged, *others = partials
    for other in others:
        merged = _merge_two(merged, other, top)
    return merged


def _merge_two(a: Aggregate, b: Aggregate, top: int) -> Aggregate:
    return Aggregate(
        a.n + b.n,
        a.total + b.total,
        min(a.least, b.least),
        max(a.greatest, b.greatest),
        a.distinct | b.distinct,
        tuple(sorted(a.top + b.top, reverse=True)[:top]),
    )


class Saved(NamedTuple):
    """The state of all senders, as a value."""

    table: Table
    tuples: int
    """Number of tuples routed in the current window."""
    states: tuple[SenderState, ...]
    summaries: tuple[Summary, ...]
    parts: tuple[tuple[str, ...], ...]
    """Keys that each sender has routed in the current micro-batch."""


class Machine:
    """The senders of a stream, and the instances behind them."""

    def __init__(self, config: GroupingConfig, rules: Rules = RULES) -> None:
        self.config = config
        self._table = first_table(config, rules)
        self._tuples = 0
        self._states = [initial_state(config)] * config.senders
        self._summaries: list[Summary] = [{} for _ in self._states]
        self._parts: list[list[str]] = [[] for _ in self._states]
        self._got: dict[tuple[int, int, str], list[tuple[int, float]]] = defaultdict(list)
        """(``seq``, value) of each tuple that an instance got, by window, instance and key."""

    # ------------------------------------------------------------------------------- the senders

    def route(self, sender: int, key: str) -> int:
        """Route the next tuple of a sender; return its instance."""
        instance, self._states[sender] = route(self._table, self._states[sender], key)
        self._parts[sender].append(key)
        self._tuples += 1
        return instance

    def end_batch(self, sender: int) -> None:
        """End a sender's part of a micro-batch: its keys enter the sender's summary."""
        keys, self._parts[sender] = self._parts[sender], []
        if keys:
            before = self._summaries[sender]
            self._summaries[sender] = enter_batch(self.config, self._table.rules, before, keys)

    def is_full(self, tuples: int) -> bool:
        """Return whether a window of so many tuples ends with its micro-batch."""
        return tuples >= self.config.window_tuples

    def rebalance(self, times_us: tuple[int, ...], tiers: tuple[int, ...]) -> Sequence[Heavy]:
        """Begin a window with these times and distances; return its heavy keys."""
        buckets = [state.buckets for state in self._states]
        learnt = Learnt(self._tuples, self._summaries, buckets)
        self._table = rebalance(self._table, learnt, times_us, tiers)
        self._states = [begin_window(self._table, state) for state in self._states]
        self._summaries = [{} for _ in self._states]
        self._tuples = 0
        table = self._table
        return [
            Heavy(table.window, key, *each, table.tuples, tuple(sorted(table.candidates(key))))
            for key, each in table.heavy.items()
        ]

    def saved(self) -> Saved:
        """Return the state of the senders; no fault changes the state of an instance."""
        parts = tuple(map(tuple, self._parts))
        return Saved(self._table, self._tuples, tuple(self._states), tuple(self._summaries), parts)

    def restore(self, saved: object) -> None:
        """Let the senders continue from a result of :meth:`saved`."""
        assert isinstance(saved, Saved)
        self._table, self._tuples, states, summaries, parts = saved
        self._states, self._summaries = list(states), list(summaries)
        self._parts = list(map(list, parts))

    # ----------------------------------------------------------------------------- the instances

    def serve(self, instance: int, window: int, event: Event) -> Sequence[Step]:
        """Let an instance take in a tuple of a window; return the steps that it causes at once."""
        if not isfinite(event.value):
            return (Rejected(event.seq, REASON_NOT_FINITE),)
        self._got[window, instance, event.key].append((event.seq, event.value))
        return ()

    def results(self) -> Iterator[Step]:
        """Yield the partial aggregates, and the answers that they merge to.

        Values are added in order of arrival, whatever the order in which they were served.
        """
        top = self.config.top
        partials = defaultdict(list)
        for (window, instance, key), got in sorted(self._got.items()):
            part = aggregate([value for _, value in sorted(got)], top)
            partials[window, key].append(part)
            yield Partial(window, instance, key, *part[:4])
        for (window, key), parts in partials.items():
            answer = merge_aggregates(parts, top)
            yield Answer(window, key, *answer[:4], len(answer.distinct), answer.top)


PRODUCER = "model"


def run(workload: Workload, rules: Rules = RULES) -> Trace:
    """Return the reference trace of a workload.

    Raises ``ValueError`` with one sentence if the configuration is invalid.
    """
    config = GroupingConfig.from_json(workload.config)
    machine, steps = Machine(config, rules), list[Step]()
    window = tuples = 0
    for number, arrivals in enumerate(workload.batches()):
        if machine.is_full(tuples):
            steps += machine.rebalance(config.times_of(number), config.tiers_of(number))
            window, tuples = window + 1, 0
        for event, chosen in zip(arrivals, routes(machine, arrivals), strict=True):
            steps.append(chosen)
            steps += machine.serve(chosen.instance, window, event)
        tuples += len(arrivals)
    return Trace(PRODUCER, [*steps, *machine.results()])


def routes(machine: Machine, arrivals: Sequence[Event]) -> list[Route]:
    """Let each sender route its part of a micro-batch; return the routes by ``seq``."""
    senders = machine.config.senders
    parts: dict[int, list[Event]] = defaultdict(list)
    for event in arrivals:
        parts[event.seq % senders].append(event)
    found = []
    for sender, part in parts.items():
        found += [Route(event.seq, sender, machine.route(sender, event.key)) for event in part]
        machine.end_batch(sender)
    return sorted(found)


def system(rules: Rules) -> System:
    """Return a System that follows these rules."""
    return partial(run, rules=rules)


def make_system() -> System:
    """Return the reference as a System."""
    return system(RULES)

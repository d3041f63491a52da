"""Evidence of the claims: a workload, its windows, and a trace of it.

Source: docs/grouping.md, sections 1 and 4.

Rules of this file:

* Windows, senders and frequencies come from the workload, by counting. Heavy keys, and their
  candidates, are those that the trace names.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from model.checking.accounts import Accounts, CountedAnswer, Place, settle
from model.grouping.state import counters
from model.vocabulary import Event, GroupingConfig, Trace, Workload
from model.vocabulary.grouping import Answer, Heavy, Rejected, Route

PLACES = (Place.REFUSED, Place.ANSWERED)
"""Places that a row can have in this room."""


@dataclass(frozen=True, slots=True)
class Window:
    """The tuples between two rebalances."""

    number: int
    first_batch: int
    arrivals: tuple[Event, ...]

    @property
    def frequencies(self) -> Counter[str]:
        """Number of tuples, by key."""
        return Counter(event.key for event in self.arrivals)


def windows_of(workload: Workload, config: GroupingConfig) -> tuple[Window, ...]:
    """Return the windows of a workload; a window ends with the micro-batch that fills it."""
    found: list[Window] = []
    held: list[Event] = []
    first = 0
    for number, batch in enumerate(workload.batches()):
        held.extend(batch)
        if len(held) >= config.window_tuples:
            found.append(Window(len(found), first, tuple(held)))
            held, first = [], number + 1
    return (*found, Window(len(found), first, tuple(held))) if held else tuple(found)


@dataclass(frozen=True)
class Evidence:
    """A workload, its windows, and a trace of it."""

    config: GroupingConfig
    windows: tuple[Window, ...]
    trace: Trace
    routes: dict[int, list[Route]]
    """Routes of the trace, by arrival."""
    heavy: dict[int, list[Heavy]]
    """Heavy keys that the trace names, by window."""

    @cached_property
    def accounts(self) -> Accounts:
        """The accounts of all arrivals; an answer counts the arrivals of its window and key."""
        refused = {each.seq for each in self.trace.of(Rejected)}
        placed = [(each.seq, Place.REFUSED) for each in self.trace.of(Rejected)]
        counted = {(each.window, each.key): each.n for each in self.trace.of(Answer)}
        rows: dict[tuple[int, str], list[int]] = {place: [] for place in counted}
        for window in self.windows:
            for event in window.arrivals:
                if event.seq not in refused:
                    rows.setdefault((window.number, event.key), []).append(event.seq)
                    placed.append((event.seq, Place.ANSWERED))
        answers = [
            CountedAnswer(f"key {key!r} in window {number}", found, counted.get((number, key), 0))
            for (number, key), found in rows.items()
        ]
        arrivals = [event for window in self.windows for event in window.arrivals]
        return settle(arrivals, placed, answers)

    def sender(self, event: Event) -> int:
        """Return the sender that an arrival comes to."""
        return event.seq % self.config.senders

    def full_summaries(self) -> int:
        """Count how often a sender saw more keys in a window than a summary has counters."""
        k = counters(self.config)
        return sum(
            len({event.key for event in window.arrivals if self.sender(event) == sender}) > k
            for window in self.windows
            for sender in range(self.config.senders)
        )

    def instance(self, event: Event) -> int | None:
        """Return the instance of an arrival; ``None`` unless it went to exactly one that exists."""
        routes = self.routes.get(event.seq, [])
        known = len(routes) == 1 and 0 <= routes[0].instance < self.config.instances
        return routes[0].instance if known else None

    def counts(self, window: Window) -> tuple[int, ...]:
        """Return the number of tuples of a window at each instance."""
        found = Counter(self.instance(event) for event in window.arrivals)
        return tuple([found[i] for i in range(self.config.instances)])

    def places(self, window: Window) -> dict[str, set[int]]:
        """Return the instances to which tuples went, by key of a window."""
        places: dict[str, set[int]] = {}
        for event in window.arrivals:
            at = self.instance(event)
            places.setdefault(event.key, set()).update(() if at is None else (at,))
        return places


def evidence_of(workload: Workload, trace: Trace) -> Evidence:
    """Collect the evidence of a trace.

    Raises ``ValueError`` with one sentence if the configuration is invalid.
    """
    config = GroupingConfig.from_json(workload.config)
    routes: dict[int, list[Route]] = {}
    for route in trace.of(Route):
        routes.setdefault(route.seq, []).append(route)
    heavy: dict[int, list[Heavy]] = {}
    for named in trace.of(Heavy):
        heavy.setdefault(named.window, []).append(named)
    return Evidence(config, windows_of(workload, config), trace, routes, heavy)

"""A workload through senders and instances, window by window (docs/grouping.md, as a whole).

Rules of this file:

* It only carries things from one part to the next: routers choose, summaries count, rules make
  tables, instances aggregate.
* All that senders know are values, and the same tuples make the same of them: a restart or a kill
  goes on from there, so faults need nothing here.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from math import isfinite

from model.grouping import router
from model.grouping.aggregate import aggregate, merge
from model.grouping.rules import RULES, Learnt, entered, first_table, rebalance
from model.grouping.summary import Summary
from model.grouping.table import Rules, Table
from model.vocabulary import Event, GroupingConfig, Step, System, Trace, Workload
from model.vocabulary.grouping import REASON_NOT_FINITE, Answer, Heavy, Partial, Rejected, Route

PRODUCER = "model"


class Run:
    """Senders on their way through a workload."""

    def __init__(self, config: GroupingConfig, rules: Rules) -> None:
        self.config = config
        self.table = first_table(config, rules)
        self.states = [router.initial(config, sender) for sender in range(config.senders)]
        self.summaries: list[Summary] = [{} for _ in self.states]
        self.tuples = 0
        """Of the window."""
        self.values: dict[int, dict[int, dict[str, list[float]]]] = defaultdict(_by_two)
        """By window, instance and key."""
        self.steps: list[Step] = []

    def batch(self, arrivals: Sequence[Event], number: int) -> Sequence[int]:
        """Route a micro-batch, in a new window if the last one is full; where its tuples go."""
        if self.tuples >= self.config.window_tuples:
            self._rebalance(number)
        seqs = [event.seq for event in arrivals]
        senders = [seq % self.config.senders for seq in seqs]
        keys = [event.key for event in arrivals]
        where = self._routed(keys, senders)
        self.steps.extend(map(Route, seqs, senders, where))
        values = self.values[self.table.window]
        for event, key, instance in zip(arrivals, keys, where, strict=True):
            if isfinite(event.value):
                values[instance][key].append(event.value)
            else:
                self.steps.append(Rejected(event.seq, REASON_NOT_FINITE))
        self.tuples += len(arrivals)
        return where

    def _routed(self, keys: Sequence[str], senders: Sequence[int]) -> Sequence[int]:
        """Where the tuples of a micro-batch go, each by its sender."""
        if len(self.states) == 1:
            return self._routed_by(0, keys)
        parts: dict[int, list[str]] = defaultdict(list)
        for key, sender in zip(keys, senders, strict=True):
            parts[sender].append(key)
        where = {sender: iter(self._routed_by(sender, parts[sender])) for sender in parts}
        return [next(where[sender]) for sender in senders]

    def _routed_by(self, sender: int, keys: Sequence[str]) -> Sequence[int]:
        """Let a sender route and count its part of a micro-batch; where its tuples go."""
        where, self.states[sender] = router.route_all(self.table, self.states[sender], keys)
        before = self.summaries[sender]
        self.summaries[sender] = entered(self.config, self.table.rules, before, keys)
        return where

    def _rebalance(self, batch: int) -> None:
        buckets = [state.buckets for state in self.states]
        self.table = rebalance(self.table, Learnt(self.tuples, self.summaries, buckets), batch)
        self.states = [router.started(self.table, state) for state in self.states]
        self.summaries = [{} for _ in self.states]
        self.tuples = 0
        self.steps.extend(heavy_steps(self.table))

    def results(self) -> Iterator[Step]:
        """Partial aggregates, and the answers."""
        top = self.config.top
        for window, instances in self.values.items():
            partials = defaultdict(list)
            for instance in sorted(instances):
                for key, values in sorted(instances[instance].items()):
                    part = aggregate(values, top)
                    partials[key].append(part)
                    yield Partial(window, instance, key, *part[:4])
            for key, parts in sorted(partials.items()):
                answer = merge(parts, top)
                yield Answer(window, key, *answer[:4], len(answer.distinct), answer.top)


def _by_two() -> dict[int, dict[str, list[float]]]:
    return defaultdict(partial(defaultdict, list))


def heavy_steps(table: Table) -> Iterator[Heavy]:
    """The heavy keys of a window."""
    for key, (counted, error) in table.heavy.items():
        candidates = tuple(sorted(table.candidates(key)))
        yield Heavy(table.window, key, counted, error, table.tuples, candidates)


def run(workload: Workload, rules: Rules = RULES) -> Trace:
    """The reference trace of a workload.

    Raises ``ValueError`` with one sentence for a configuration that cannot be.
    """
    under_way = Run(GroupingConfig.from_json(workload.config), rules)
    for number, arrivals in enumerate(workload.batches()):
        under_way.batch(arrivals, number)
    return Trace(PRODUCER, [*under_way.steps, *under_way.results()])


def system(rules: Rules) -> System:
    """A System that follows these rules."""

    def run_with_rules(workload: Workload, /) -> Trace:
        return run(workload, rules)

    return run_with_rules


def make_system() -> System:
    """The reference as a System."""
    return system(RULES)

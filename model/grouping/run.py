"""A workload through senders and instances, window by window (docs/grouping.md, as a whole).

Rules of this file:

* It only carries things from one part to the next: routers choose, summaries count, rules make
  tables, instances aggregate.
* All that senders know are values, and the same tuples make the same of them: a restart or a kill
  goes on from there, so faults need nothing here.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
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
        self.values: dict[tuple[int, str, int], list[float]] = defaultdict(list)
        """By window, key and instance."""
        self.steps: list[Step] = []

    def batch(self, arrivals: Sequence[Event], number: int) -> None:
        """Route a micro-batch, in a new window if the last one is full."""
        if self.tuples >= self.config.window_tuples:
            self._rebalance(number)
        senders, steps, window, values = (
            self.config.senders,
            self.steps,
            self.table.window,
            self.values,
        )
        where = [self._routed(sender, arrivals) for sender in range(senders)]
        for event in arrivals:
            sender = event.seq % senders
            instance = next(where[sender])
            steps.append(Route(event.seq, sender, instance))
            if isfinite(event.value):
                values[window, event.key, instance].append(event.value)
            else:
                steps.append(Rejected(event.seq, REASON_NOT_FINITE))
        self.tuples += len(arrivals)

    def _routed(self, sender: int, arrivals: Sequence[Event]) -> Iterator[int]:
        """Let a sender route and count its part of a micro-batch; where its tuples go."""
        senders = self.config.senders
        keys = [event.key for event in arrivals if event.seq % senders == sender]
        where, self.states[sender] = router.route_all(self.table, self.states[sender], keys)
        before = self.summaries[sender]
        self.summaries[sender] = entered(self.config, self.table.rules, before, keys)
        return iter(where)

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
        partials = defaultdict(list)
        for (window, key, instance), values in sorted(self.values.items()):
            partial = aggregate(values, top)
            partials[window, key].append(partial)
            yield Partial(window, instance, key, *partial[:4])
        for (window, key), parts in partials.items():
            answer = merge(parts, top)
            yield Answer(window, key, *answer[:4], len(answer.distinct), answer.top)


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

"""A workload through senders and instances, window by window (docs/grouping.md, as a whole).

Rules of this file:

* Times are left out: every micro-batch is routed and served at once. The machine decides the rest.
* Faults need nothing here, for the machine goes on after a restart or a kill as if there were none.
"""

from collections import defaultdict
from collections.abc import Sequence

from model.grouping.machine import Machine
from model.grouping.rules import RULES
from model.grouping.table import Rules
from model.vocabulary import Event, GroupingConfig, Step, System, Trace, Workload
from model.vocabulary.grouping import Route

PRODUCER = "model"


def run(workload: Workload, rules: Rules = RULES) -> Trace:
    """Return the reference trace of a workload.

    Raises ``ValueError`` with one sentence for a configuration that cannot be.
    """
    config = GroupingConfig.from_json(workload.config)
    machine, steps = Machine(config, rules), list[Step]()
    window = tuples = 0
    for number, arrivals in enumerate(workload.batches()):
        if machine.is_full(tuples):
            steps += machine.rebalance(config.times_of(number))
            window, tuples = window + 1, 0
        for event, route in zip(arrivals, routes(machine, arrivals), strict=True):
            steps.append(route)
            steps += machine.serve(route.instance, window, event)
        tuples += len(arrivals)
    return Trace(PRODUCER, [*steps, *machine.results()])


def routes(machine: Machine, arrivals: Sequence[Event]) -> list[Route]:
    """Route a micro-batch: every sender its part of it."""
    senders = machine.config.senders
    parts: dict[int, list[Event]] = defaultdict(list)
    for event in arrivals:
        parts[event.seq % senders].append(event)
    found = []
    for sender, part in parts.items():
        where = machine.route_all(sender, [event.key for event in part])
        machine.end_batch(sender)
        found += [Route(event.seq, sender, at) for event, at in zip(part, where, strict=True)]
    return sorted(found)


def system(rules: Rules) -> System:
    """Return a System that follows these rules."""

    def run_with_rules(workload: Workload, /) -> Trace:
        return run(workload, rules)

    return run_with_rules


def make_system() -> System:
    """Return the reference as a System."""
    return system(RULES)

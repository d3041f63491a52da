"""Conversion of several workloads into one for a chain, and of its trace into one trace each.

A chain on Spark takes about half a second an epoch, whatever the epoch holds. Workloads that share
a chain share its epochs, so that much happens in each.

Rules of this file:

* :func:`pack_together` keeps workloads apart: the last epoch of one is the first epoch of the
  next, and their event times are further apart than the window and any lateness. No tuple of one
  matches a tuple of another, and no watermark of one makes a tuple of the next late.
* :func:`one_after_another` mixes them: it makes one long stream of many short ones.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, chain, islice, pairwise

from model.vocabulary import Event, Fault, JoinConfig, Workload
from model.vocabulary.join import And, Decision, Equi
from model.vocabulary.join_load import LoadRules
from sim.kernel.source import IDS_PER_SOURCE
from straggler.rooms.join.load_curves import LoadCurve, follow, load_rules
from straggler.strategies import collect
from straggler.strategies.join import SCALE_US, cases, configs

GAP_US = 1_000_000
IDS_A_CASE = 1 << 40
"""Identities of workload ``n`` of :func:`pack_together` start at ``n`` times this."""
EPOCHS = 3
CASES_A_CHAIN = 6
CURVES_A_CHAIN = 16
CURVE_EPOCHS = 3
AGAIN = 4
"""Arrivals of an epoch that come once more in the next one."""
LATENESS_US = (0, 16 * SCALE_US, SCALE_US)
"""Lateness of a chain that follows load curves, in turn."""
_IDS_A_PART = 8 * IDS_PER_SOURCE
"""Identities of part ``n`` of :func:`one_after_another` start at ``n`` times this."""

# --------------------------------------------------------------------------------- kept apart


def pack_together(workloads: Sequence[Workload]) -> Workload:
    """Return one flushed workload with the arrivals of all, which share one configuration."""
    config = JoinConfig.from_json(workloads[0].config)
    apart_us = config.window_us + (config.lateness_us or 0) + GAP_US
    events: list[Event] = []
    cuts: list[int] = []
    faults: set[Fault] = set()
    start_us = 0
    for number, workload in enumerate(workloads):
        assert workload.config == workloads[0].config, workload.config
        faults |= {fault._replace(at=fault.at + len(cuts)) for fault in workload.faults}
        cuts += [len(events) + cut for cut in inner_cuts(workload)]
        shift_us = start_us - min((e.event_time_us for e in workload.arrivals), default=0)
        moved = [
            _moved(event, number * IDS_A_CASE, len(events), shift_us) for event in workload.arrivals
        ]
        events += moved
        times_us = chain.from_iterable((e.event_time_us, e.arrival_us) for e in moved)
        start_us = max(times_us, default=start_us) + apart_us
    return workloads[0].with_(
        arrivals=tuple(events), cuts=tuple(cuts), faults=tuple(sorted(faults)), flush=True
    )


def inner_cuts(workload: Workload) -> list[int]:
    """Return the cuts between two micro-batches that are not empty."""
    return [cut for cut in sorted({*workload.cuts}) if 0 < cut < len(workload.arrivals)]


def _moved(event: Event, ids: int, first: int, shift_us: int) -> Event:
    """Return an event with its identity, position and times moved up."""
    return event._replace(
        seq=first + event.seq,
        source_id=event.source_id + ids,
        event_time_us=event.event_time_us + shift_us,
        arrival_us=event.arrival_us + shift_us,
    )


# -------------------------------------------------------------------------------- one long stream


def one_after_another(parts: Sequence[Workload]) -> Workload:
    """Return all arrivals for the chain of the first workload, in a few epochs and a flush."""
    events: list[Event] = []
    shift_us = 0
    for number, part in enumerate(parts):
        first = len(events)
        events += [_moved(e, number * _IDS_A_PART, first, shift_us) for e in part.arrivals]
        last_us = max((event.arrival_us for event in events), default=0)
        shift_us = last_us // SCALE_US * SCALE_US
    cuts = tuple(len(events) * epoch // EPOCHS for epoch in range(1, EPOCHS))
    return parts[0].with_(arrivals=tuple(events), cuts=cuts, flush=True)


def loaded_chains(curves: int, seed: int) -> list[Workload]:
    """Return workloads for chains that follow so many load curves, a few chains in all.

    The curves of a chain follow each other. The more load, the more arrivals an epoch has; the last
    arrivals of each epoch come once more in the next one, whether they were shed or not. Drivers
    are killed in epochs of all kinds.
    """
    starts = range(0, curves, CURVES_A_CHAIN)
    count = len(starts)
    # Hypothesis often repeats a draw, and begins with simple ones.
    different = list(dict.fromkeys(collect(load_rules(), 6 * curves, seed)))
    drawn = [
        _curve(different[len(different) * number // curves], number, seed)
        for number in range(curves)
    ]
    parts = collect(cases(decided=False), 3 * curves, seed)
    shapes = collect(configs(), 2 * count, seed)[count:]
    return [
        _loaded(
            drawn[first : first + CURVES_A_CHAIN],
            parts[number::count],
            replace(shapes[number], lateness_us=LATENESS_US[number % len(LATENESS_US)]),
            seed,
        )
        for number, first in enumerate(starts)
    ]


def _curve(rules: LoadRules, number: int, seed: int) -> LoadCurve:
    """Return a load curve; two of three have rules that shed, every other one reacts at once."""
    choose = random.Random(f"{seed} {number}")
    rules = replace(rules, shed=("linear", "quadratic", "no")[number % 3])
    if number % 2:
        rules = replace(rules, out_after_us=0, in_after_us=0)
    workers = choose.randint(1, 4)
    # From nothing to more than the workers can do, so that utilisation reaches every threshold.
    loads = [workers * choose.uniform(0.0, 1.25) for _ in range(CURVE_EPOCHS)]
    if number % 3 == 0:  # begins with more than the workers can do, and sheds at once
        rules = replace(rules, tau0=0.25, tau1=0.7, tau2=0.8, base=0.1, smoothing=1.0)
        loads[0] = rules.least * 1.5 if workers < rules.least else workers * 1.5
    return LoadCurve(rules, workers, tuple(loads))


def _loaded(
    curves: Sequence[LoadCurve], parts: Sequence[Workload], shape: JoinConfig, seed: int
) -> Workload:
    """Return a workload whose epochs have as many arrivals as the loads of the curves ask for."""
    choose = random.Random(seed)
    whole = iter(one_after_another(parts).arrivals)
    events: list[Event] = []
    cuts: list[int] = []
    decisions: list[Decision] = []
    for curve in curves:
        first = len(cuts)
        followed = list(follow(curve.rules, curve.workers, curve.loads))[:-1]
        decisions += [each._replace(epoch=first + each.epoch) for each in followed]
        for load in curve.loads:
            again = events[-AGAIN:]
            events += [*again, *islice(whole, 4 + int(2 * load))]
            cuts.append(len(events))
    times_us = accumulate((event.arrival_us for event in events), max)
    arrivals = tuple(
        event._replace(seq=seq, arrival_us=at_us)
        for seq, (event, at_us) in enumerate(zip(events, times_us, strict=True))
    )
    changed = [
        after.epoch for before, after in pairwise(decisions) if before.workers != after.workers
    ]
    killed = {*changed[::4], *choose.sample(range(len(cuts)), len(cuts) // 12)}
    config = replace(
        shape,
        queries=(("all", And()), ("same", Equi("key"))),
        window_us=SCALE_US,
        epochs=(),
        decisions=tuple(decisions),
    )
    return Workload(
        "join",
        arrivals,
        config.to_json(),
        tuple(cuts[:-1]),
        tuple(Fault("kill", epoch) for epoch in sorted(killed)),
        seed,
    )


def long_case(workers: int, seed: int, epochs: int = EPOCHS) -> Workload:
    """Return two long streams for a chain with small blocks and several queries."""
    config = JoinConfig(
        window_us=SCALE_US,
        queries=(("all", And()), ("same", Equi("key")), ("first", And()), ("later", And())),
        workers=workers,
        block_size=2,
        lateness_us=16 * SCALE_US,
        epochs=(("first", 0, 0), ("later", 1, None)),
    )
    parts = collect(cases(decided=False), 2 * CASES_A_CHAIN, seed)
    case = one_after_another(parts)
    cuts = tuple(len(case.arrivals) * epoch // epochs for epoch in range(1, epochs))
    return case.with_(config=config.to_json(), cuts=cuts, name=f"long {seed}")

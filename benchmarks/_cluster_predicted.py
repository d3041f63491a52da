"""Predictions of the benchmark of a cluster, by SimPy, from a calibration."""

from dataclasses import replace
from math import sqrt
from typing import NamedTuple

import numpy as np

from benchmarks._cluster_cells import (
    BATCHES,
    COMPARISON_US,
    JOIN_KEYS,
    SECOND_US,
    START_US,
    TIMES_US,
    WINDOW_S,
    JoinCell,
    grouping_config,
    grouping_keys,
    join_config,
    join_epochs,
)
from model.vocabulary import Event
from model.vocabulary.join import Match
from sim.calibration import Calibration
from sim.grouping.room import simulate as simulate_grouping
from sim.join import simulate as simulate_join
from sim.join.tuning import ChainTuning, Costs, as_on_spark
from sim.kernel.distributions import Constant
from sim.kernel.link import Place, Tiers
from sim.kernel.plan import Cluster, Plan, Worker, replay

LOAD = 0.7
"""Rate of the stream at which latency is compared, divided by the predicted saturation."""
APART_US = 1_000 * SECOND_US
"""Simulated time from one micro-batch to the next: each begins when the one before is done."""
FLOWS = {2: 1, 4: 2, 6: 4}
"""Most neighbours that one host sends to at once, by the number of workers on three hosts."""
LOG_PLACE = Place(node=1_000)


class Times(NamedTuple):
    """Times of micro-batches (s), and of each the arrival times (s) of what came out in it."""

    spent_s: list[float]
    due_s: list[list[float]]


def predict_grouping(found: Calibration, policy: str) -> list[float]:
    """Return the time of each micro-batch (s): its start, and the makespan of its tuples."""
    keys, events, cuts, seq = grouping_keys(), list[Event](), list[int](), 0
    spent_s = []
    for number, size in enumerate(BATCHES):
        at_us = START_US + number * APART_US
        for _ in range(size):
            events.append(Event(seq, seq, keys[seq], at_us, 0.0, at_us, ""))
            seq += 1
        cuts.append(seq)
        plan = _grouping_plan(found, events, cuts)
        run = simulate_grouping(plan, grouping_config(policy), 0)
        makespan_us = float(run.summary["duration_us"]) - number * APART_US
        spent_s.append((found.typical("batch_us") + makespan_us) / SECOND_US)
    return spent_s


def _grouping_plan(found: Calibration, events: list[Event], cuts: list[int]) -> Plan:
    fastest_us = min(TIMES_US)
    workers = [
        Worker(fastest_us / time_us, place=Place(node=n)) for n, time_us in enumerate(TIMES_US)
    ]
    plan = replay(events, "cells", cuts[:-1])
    return replace(
        plan,
        cluster=Cluster(tuple(workers), Constant(float(fastest_us))),
        tiers=Tiers(rack=found.link),
        log_place=LOG_PLACE,
    )


def predict_join(found: Calibration, cell: JoinCell) -> Times:
    """Return the times of the epochs of a chain, and the pairs of each."""
    events, cuts = list[Event](), list[int]()
    for number, table in enumerate(join_epochs(cell)):
        at_us = START_US + number * APART_US
        events += [
            Event(
                row["seq"],
                row["source_id"],
                row["key"],
                row["event_time_us"],
                row["value"],
                at_us,
                row["stream"],
            )
            for row in table.to_pylist()
        ]
        cuts.append(len(events))
    config = join_config(cell)
    work_us = found.typical("message_us"), COMPARISON_US, found.typical("result_us")
    costs = Costs(*work_us, header_bytes=round(found.message_bytes))
    link = found.link._replace(bandwidth_mbps=found.link.bandwidth_mbps / FLOWS[cell.workers])
    plan = replace(
        replay(events, "cells", cuts[:-1]),
        cluster=Cluster(
            tuple([Worker(place=Place(node=n)) for n in range(cell.workers)]),
            Constant(found.typical("tuple_us")),
            round(found.tuple_bytes),
        ),
        tuning=as_on_spark(ChainTuning(costs), config, cell.rate_hz),
        tiers=Tiers(rack=link),
        log_place=LOG_PLACE,
    )
    run = simulate_join(plan, config, 0)
    spent_s = [
        (commit_us - number * APART_US + found.typical("epoch_us")) / SECOND_US
        for number, commit_us in enumerate(run.commits_us[: len(cell.epochs_s)])
    ]
    pairs: list[list[int]] = [[] for _ in cell.epochs_s]
    for match in run.trace.of(Match):
        if match.batch < len(cell.epochs_s):
            pairs[match.batch].append(max(2 * match.r_id, 2 * match.s_id + 1))
    return Times(spent_s, later_s(cell, pairs))


def join_epochs_hz(cell: JoinCell, times: Times) -> float:
    """Return tuples a second of the epochs after the first one, while they run."""
    return cell.rate_hz * sum(cell.epochs_s[1:]) / sum(times.spent_s[1:])


def later_s(cell: JoinCell, pairs: list[list[int]]) -> list[list[float]]:
    """Return when the later tuples of pairs came (s), which are named by their ``seq``."""
    return [[seq / cell.rate_hz for seq in own] for own in pairs]


def find_rate(found: Calibration, workers: int, block_size: int) -> float:
    """Return the predicted saturation of a chain: the rate that it joins at that rate."""
    rate_hz = 0.7 * ideal_hz(workers)
    for _ in range(2):
        cell = JoinCell(workers, block_size, rate_hz)
        # The rate at which a backlog is joined falls as its own rate rises.
        rate_hz = sqrt(rate_hz * join_epochs_hz(cell, predict_join(found, cell)))
    return rate_hz


def ideal_hz(workers: int) -> float:
    """Return the rate at which comparisons alone keep all workers busy."""
    return sqrt(2 * workers * JOIN_KEYS / (WINDOW_S * COMPARISON_US / SECOND_US))


def ends_s(lengths_s: list[float], spent_s: list[float]) -> list[float]:
    """Return when each micro-batch ends; it starts when it is complete and the one before is done.

    ``lengths_s`` are the times in which they arrive, one after the other, from 0 on.
    """
    found, complete_s, free_s = [], 0.0, 0.0
    for length_s, each_s in zip(lengths_s, spent_s, strict=True):
        complete_s += length_s
        free_s = max(complete_s, free_s) + each_s
        found.append(free_s)
    return found


def join_latencies_s(cell: JoinCell, times: Times) -> tuple[float, float]:
    """Return the latency (p50, p99) of the pairs whose later tuple came in the second epoch."""
    ends = ends_s(list(cell.epochs_s), times.spent_s)
    first_s, last_s = cell.epochs_s[0], sum(cell.epochs_s[:2])
    found = [
        end_s - due_s
        for end_s, own in zip(ends, times.due_s, strict=True)
        for due_s in own
        if first_s <= due_s < last_s
    ]
    p50, p99 = np.percentile(found, (50, 99)).tolist()
    return p50, p99


def grouping_saturation_hz(spent_s: list[float]) -> float:
    """Return tuples a second of micro-batches that follow one another."""
    return sum(BATCHES[1:]) / sum(spent_s[1:])


def grouping_latencies_s(rate_hz: float, spent_s: list[float]) -> tuple[float, float]:
    """Return the latency (p50, p99) of tuples that come at a rate, until their micro-batch ends."""
    ends = ends_s([size / rate_hz for size in BATCHES], spent_s)
    found, seq = [], 0
    for size, end_s in zip(BATCHES, ends, strict=True):
        if seq:
            found.append(end_s - (np.arange(seq, seq + size) + 1) / rate_hz)
        seq += size
    p50, p99 = np.percentile(np.concatenate(found), (50, 99)).tolist()
    return p50, p99

"""Simulated runs of a planned chain, made short.

Source: docs/cluster.md, section "Planning".

Rules of this file:

* Runs are scaled: a shorter window, and tuples that stand for several. Work, bytes and messages a
  second stay those of the demand.
* Epochs are as on Spark: all arrivals of one are there when it starts, and overdue tuples go on at
  its end.
"""

from dataclasses import replace
from math import ceil
from typing import NamedTuple

import numpy as np

from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import STREAMS, Equi
from sim.join.demand import SECOND_US, Demand, Hardware
from sim.join.room import ChainRun, simulate
from sim.join.scenarios import key_names
from sim.join.tuning import ChainTuning, Costs, as_on_spark
from sim.kernel.distributions import Constant, Exponential, FloatArray
from sim.kernel.link import Place, Tiers
from sim.kernel.plan import EPOCH_2020_US, Cluster, Plan, Worker, replay
from sim.kernel.source import Source
from sim.kernel.trigger import At

TUPLES = 60_000
"""About the most simulated tuples of a run."""
TUPLES_MIN = 2_000
BLOCKS_A_WORKER = 16
WINDOWS, SETTLED = 4, 2
"""Windows of a run, and those after which figures count.

The first window fills the stores. Pairs of its last tuples come out in the second one."""
CANDIDATES = 4
"""Pairs a simulated tuple, each as costly as all of those that it stands for."""
HINTS_A_WINDOW = 1_000
P50, P99 = 50, 99
APART_US = 10_000 * SECOND_US
"""Simulated time from one epoch to the next, which begins when the one before is done."""


class Scale(NamedTuple):
    """The size of a simulated run."""

    window_us: int
    tuples: int
    """Number of tuples for which one stands."""
    length_us: float


def scale_of(demand: Demand, workers: int, block_size: int) -> Scale:
    """Return the scale at which a chain is simulated."""
    full_us = BLOCKS_A_WORKER * workers * block_size / demand.rate_hz * SECOND_US
    window_us = min(demand.window_us, max(SECOND_US, ceil(full_us)))
    length_us = max(WINDOWS * window_us, TUPLES_MIN / demand.rate_hz * SECOND_US)
    wanted = ceil(demand.rate_hz * length_us / SECOND_US / TUPLES)
    tuples = 1
    while tuples < wanted and 4 * tuples < block_size:
        tuples *= 2
    return Scale(window_us, tuples, length_us)


def simulate_scaled(
    demand: Demand, hardware: Hardware, workers: int, block_size: int, scale: Scale, seed: int
) -> ChainRun:
    """Simulate a chain at a scale."""
    rate_hz = demand.rate_hz / scale.tuples
    source = Source(
        events=max(1, round(rate_hz / 2 * scale.length_us / SECOND_US)),
        interval=Exponential(2 * SECOND_US / rate_hz),
        keys=_keys(demand, scale),
    )
    plan = Plan((source, source), trigger=At(()), name="plan, simulated")
    plan = _on_hardware(plan, demand, hardware, workers, scale)
    return simulate(plan, _config(workers, block_size, scale), seed)


def epoch_share(
    demand: Demand, hardware: Hardware, workers: int, block_size: int, scale: Scale, seed: int
) -> float:
    """Return the part of its length that an epoch takes beside its start, as on Spark.

    The epoch before fills a window. Neighbours wait for each other more than where arrivals come
    one by one, most with large blocks.
    """
    rate_hz, keys = demand.rate_hz / scale.tuples, _keys(demand, scale)
    length_us = min(hardware.epoch_length_us, WINDOWS * scale.window_us)
    first = ceil(rate_hz * scale.window_us / SECOND_US)
    tuples = first + ceil(rate_hz * length_us / SECOND_US)
    drawn = np.random.default_rng(seed).integers(len(keys), size=tuples).tolist()
    events = [
        Event(
            seq,
            seq // 2,
            keys[drawn[seq]],
            EPOCH_2020_US + round(seq * SECOND_US / rate_hz),
            0.0,
            EPOCH_2020_US + APART_US * (seq >= first),
            STREAMS[seq % 2],
        )
        for seq in range(tuples)
    ]
    plan = _on_hardware(replay(events, "plan, an epoch", [first]), demand, hardware, workers, scale)
    config = _config(workers, block_size, scale)
    assert isinstance(plan.tuning, ChainTuning)
    tuning = as_on_spark(plan.tuning, config, rate_hz, scale.tuples)
    run = simulate(replace(plan, tuning=tuning), config, seed)
    return float(run.commits_us[1] - APART_US) / length_us


def _keys(demand: Demand, scale: Scale) -> tuple[str, ...]:
    """Return so many keys that a tuple has few candidates."""
    rate_hz, window_s = demand.rate_hz / scale.tuples, scale.window_us / SECOND_US
    return tuple(key_names(max(1, round(rate_hz * window_s / 2 / CANDIDATES))))


def _on_hardware(
    plan: Plan, demand: Demand, hardware: Hardware, workers: int, scale: Scale
) -> Plan:
    """Return a plan on the hardware, whose candidates cost what the demand's pairs do."""
    k, costs, usual = scale.tuples, hardware.costs, ChainTuning()
    rate_hz, window_s = demand.rate_hz / k, scale.window_us / SECOND_US
    simulated_hz = (rate_hz / 2) ** 2 * 2 * window_s / len(_keys(demand, scale))
    pair_us = (costs.comparison_us + costs.result_us) * demand.pairs_hz / simulated_hz
    return replace(
        plan,
        cluster=Cluster(
            tuple([Worker(hardware.speed, place=Place(node=n)) for n in range(workers)]),
            Constant(k * hardware.tuple_us),
            k * hardware.tuple_bytes,
        ),
        tuning=ChainTuning(
            Costs(costs.message_us, pair_us, 0.0, header_bytes=costs.header_bytes),
            intake_tuples=max(1, usual.intake_tuples // k),
            hint_us=max(usual.hint_us, scale.window_us // HINTS_A_WINDOW),
        ),
        tiers=Tiers(rack=hardware.link),
    )


def _config(workers: int, block_size: int, scale: Scale) -> JoinConfig:
    return JoinConfig(
        scale.window_us,
        (("join", Equi("key")),),
        workers=workers,
        block_size=max(1, block_size // scale.tuples),
        lateness_us=0,
    )


def busiest_share(run: ChainRun, scale: Scale) -> float:
    """Return the share of the time in which the busiest worker works, once the run has settled."""
    time_us = run.series["time_us"]
    rows = (time_us > SETTLED * scale.window_us) & (time_us <= scale.length_us)
    columns = [column for name, column in run.series.items() if name.startswith("utilisation_")]
    return max(float(column[rows].mean()) for column in columns)


def settled_latencies_us(run: ChainRun, scale: Scale) -> FloatArray:
    """Return the latency (p50, p99) of pairs that neither the start nor the flush has shortened."""
    first_us, last_us = SETTLED * scale.window_us, scale.length_us - scale.window_us
    is_settled = (first_us < run.due_us) & (run.due_us < last_us)
    found: FloatArray = np.percentile(run.latencies_us[is_settled], (P50, P99))
    return found

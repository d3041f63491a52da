"""Simulate a join of micro-batches, D-Stream, a rival of the join chain.

Source: M. Zaharia et al., "Discretized streams: fault-tolerant streaming computation at scale",
SOSP 2013, used as in the comparison of S2J: each batch of two streams is joined by itself, on
equal keys. Pairs whose tuples are in different batches are missed.

Rules of this file:

* A batch is a job of two stages, map and reduce, each with a task on every worker. A stage begins
  when all tasks of the previous stage are over; a job begins when its batch is complete and the
  previous job is over.
* Tuples are spread evenly over the map tasks; a reduce task gets all tuples of its keys. Keys are
  dealt to the reduce tasks in turn, the most frequent first, which favours the rival over a hash.
* A task takes as long as a worker of the chain takes for a message and its tuples; a reduce task
  also compares the tuples of equal keys.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Annotated, NamedTuple

import numpy as np
import simpy

from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import STREAMS, R
from model.vocabulary.settings import Setting, Settings
from sim.join.tuning import ChainTuning
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray, iterate_samples, mean_us
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Plan
from sim.kernel.seeds import Seeds


@dataclass(frozen=True, slots=True)
class BatchSettings(Settings):
    """Settings of a join of micro-batches."""

    batch_us: Annotated[int, Setting("length of a batch", above=0)] = 1_000_000
    job_us: Annotated[float, Setting("time to start a job", at_least=0)] = 0.0


class Counts(NamedTuple):
    """Tuples, comparisons and pairs found by a reduce task; arrays of shape (batches, workers)."""

    tuples: IntArray
    comparisons: IntArray
    found: IntArray
    owed: int
    """Number of pairs within the window, whether or not they are in one batch."""


class BatchRun(NamedTuple):
    """The jobs of a run; times are microseconds since the start of the run."""

    counts: Counts
    over_us: list[float]
    """Time at which each job was over."""
    span_us: float
    """Time of the last arrival."""

    @property
    def lag_us(self) -> float:
        """Time from the last arrival until all jobs were over."""
        return self.over_us[-1] - self.span_us if self.over_us else 0.0


def simulate_batches(plan: Plan, config: JoinConfig, batches: BatchSettings, seed: int) -> BatchRun:
    """Join the two streams of a plan batch by batch, on equal keys, on the workers of a query."""
    events = simulate_arrivals(plan, seed, STREAMS).events
    arrival_us = np.array([event.arrival_us for event in events], dtype=np.int64) - plan.epoch_us
    counts = count(events, arrival_us // batches.batch_us, config)
    env, over_us = simpy.Environment(), list[float]()
    env.process(_run_jobs(env, plan, counts, batches, Seeds(seed), over_us))
    env.run()
    return BatchRun(counts, over_us, float(arrival_us.max(initial=0)))


def count(events: Sequence[Event], batch: IntArray, config: JoinConfig) -> Counts:
    """Count tuples, comparisons and pairs; ``batch`` holds the batch number of each event."""
    keys = np.array([event.key for event in events], dtype=object)
    names, number, counts = np.unique(keys, return_inverse=True, return_counts=True)
    task = np.empty(len(names), dtype=np.int64)
    task[np.argsort(-counts, kind="stable")] = np.arange(len(names)) % config.workers
    event_us = np.array([event.event_time_us for event in events], dtype=np.int64)
    is_r = np.array([event.stream == R for event in events], dtype=np.bool_)
    shape = (int(batch.max(initial=-1)) + 1, config.workers)
    tuples, comparisons, found = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    np.add.at(tuples, (batch, task[number]), 1)
    owed = 0
    for key, at in enumerate(task):
        r, s = (np.flatnonzero((number == key) & side) for side in (is_r, ~is_r))
        is_pair = np.abs(event_us[r][:, None] - event_us[s][None, :]) <= config.window_us
        is_met = batch[r][:, None] == batch[s][None, :]
        owed += int(is_pair.sum())
        np.add.at(comparisons[:, at], batch[r][is_met.nonzero()[0]], 1)
        np.add.at(found[:, at], batch[r][(is_met & is_pair).nonzero()[0]], 1)
    return Counts(tuples, comparisons, found, owed)


def _run_jobs(
    env: simpy.Environment,
    plan: Plan,
    counts: Counts,
    batches: BatchSettings,
    seeds: Seeds,
    over_us: list[float],
) -> Generator[simpy.Event]:
    """Run a job for each batch, one after the other; append the end of each to ``over_us``."""
    m, cluster, costs = counts.tuples.shape[1], plan.cluster, plan.tuned(ChainTuning()).costs
    speeds = [cluster.worker(number).speed for number in range(m)]
    factors = iterate_samples(costs.work_factor, seeds.stream("tasks"))
    tuple_us, tuple_bits = mean_us(cluster.service), 8 * cluster.tuple_bytes
    tier = plan.way(cluster.worker(0).place, cluster.worker(1).place)

    def stage(tuples: FloatArray | IntArray, work_us: FloatArray) -> simpy.Event:
        """Return the event that a stage has ended; each tuple's work has its own factor."""
        ends = []
        for speed, n, work in zip(speeds, tuples.tolist(), work_us.tolist(), strict=True):
            factor = fmean(islice(factors, max(1, round(n))))
            ends.append(env.timeout((costs.message_us + work) * factor / speed))
        return env.all_of(ends)

    for job, (tuples, compared, found) in enumerate(zip(*counts[:3], strict=True)):
        until_complete_us = max(0.0, (job + 1) * batches.batch_us - env.now)
        yield env.timeout(until_complete_us + batches.job_us)
        share = tuples.sum() / m
        yield stage(np.full(m, share), np.full(m, tuple_us * share))
        if tier is not None and m > 1:
            # A reduce task's worker already has its share of the tuples.
            yield env.timeout(tier.travel_us(tuple_bits * int(tuples.max()) * (m - 1) / m))
        work_us = tuple_us * tuples + costs.comparison_us * compared
        yield stage(tuples, work_us + costs.result_us * found)
        over_us.append(float(env.now))

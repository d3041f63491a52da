"""The smallest chain that keeps up with a demand, found by short simulated runs.

Source: docs/cluster.md, section "Planning".

Rules of this file:

* Runs are scaled (:mod:`sim.join.scaled`).
* What no chain can avoid is computed, not simulated: a lower bound of the work, the bytes on a
  link, and the time until the tuples of a pair pass each other.
"""

from collections.abc import Callable
from functools import cache, partial
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from model.vocabulary.settings import require
from sim.join.demand import BUSY_MAX, EPOCHS_A_START, SECOND_US, Demand, Hardware
from sim.join.scaled import (
    P50,
    P99,
    busiest_share,
    epoch_share,
    scale_of,
    settled_latencies_us,
    simulate_scaled,
)
from sim.kernel.distributions import FloatArray

BLOCK_SIZES = (256, 64, 16, 4)
WORKERS_MAX = 64
EPOCH_MAX = 0.7
"""Largest part of its length that a simulated epoch may take beside its start, a tenth. On Spark,
neighbours wait for each other for longer: epochs took up to 30% longer than simulated ones."""
LAG_MAX = 0.05
"""Longest time after the last arrival, as a share of the run."""


class Trial(NamedTuple):
    """A chain that was tried. Shares are of the time; 1 is always busy."""

    workers: int
    block_size: int
    busiest: float
    """Share in which the busiest worker is busy; if it was not simulated, the least possible."""
    links: float
    """Share in which a link is busy."""
    p50_us: float | None
    """Latency; ``None`` if the chain does not keep up."""
    p99_us: float | None
    lacks: str
    """The reason why the chain fails; empty if it does not."""


class Found(NamedTuple):
    """The smallest chain, and the next smaller one, if any."""

    chain: Trial
    smaller: Trial | None


class NoChain(ValueError):  # noqa: N818 (an answer, not a bug)
    """No chain does what was asked; the message is one sentence with the reason."""


def find_chain(demand: Demand, hardware: Hardware, seed: int) -> Found:
    """Return the smallest chain that keeps up with a demand and is in time.

    Raise :class:`NoChain` if there is none, and ``ValueError`` with one sentence for a latency that
    no pair can have.
    """
    least_us = hardware.link.latency_us
    good = demand.latency_us > least_us
    require(good, "latency_us", demand.latency_us, f"more than the link's, {least_us:g} us")

    @cache
    def trial(workers: int, block_size: int) -> Trial:
        return try_chain(demand, hardware, workers, block_size, seed)

    fewest = ceil(least_work(demand, hardware) / hardware.busy_max)
    alone = trial(1, BLOCK_SIZES[0])
    passing_us = float(passing_times_us(2, demand.window_us)[1])  # hardly less than in any chain
    if alone.lacks and passing_us > demand.latency_us:
        seconds = f"{passing_us / SECOND_US:,.3g} s"
        msg = f"no chain does this: one worker {alone.lacks}, and in a longer chain the tuples of"
        raise NoChain(f"{msg} a pair pass each other after up to {seconds} (p99)")
    best: Trial | None = None
    failed = alone
    for block_size in BLOCK_SIZES:
        if best is None:
            found = _smallest(partial(trial, block_size=block_size))
            best, failed = (found, failed) if not found.lacks else (None, found)
        # Smaller blocks keep stores more even, so they may need fewer workers.
        while best is not None and best.workers > fewest:
            found = trial(best.workers - 1, block_size)
            if found.lacks:
                break
            best = found
    if best is not None:
        smaller = trial(best.workers - 1, best.block_size) if best.workers > 1 else None
        return Found(best, smaller)
    lacks = f"a chain of {failed.workers} workers with blocks of {failed.block_size} {failed.lacks}"
    msg = f"no chain does this: one worker {alone.lacks}, and {lacks}"
    raise NoChain(msg)


def _smallest(trial: Callable[[int], Trial]) -> Trial:
    """Return the smallest chain that keeps up, or the trial that shows that there is none.

    The number of workers is doubled until a chain keeps up, then halved in between. The search ends
    at a doubling that does not relieve the busiest worker: then no number will do.
    """
    failing, now, busiest = 0, 1, inf
    while (found := trial(now)).p99_us is None:
        is_full = found.links > BUSY_MAX or now == WORKERS_MAX or found.busiest >= busiest
        if is_full and now > 1:
            return found
        failing, busiest, now = now, found.busiest, min(2 * now, WORKERS_MAX)
    while now - failing > 1:
        middle = (failing + now) // 2
        tried = trial(middle)
        failing, now, found = (
            (middle, now, found) if tried.p99_us is None else (failing, middle, tried)
        )
    return found


def try_chain(
    demand: Demand, hardware: Hardware, workers: int, block_size: int, seed: int
) -> Trial:
    """Judge a chain, by a simulated run if nothing simpler decides."""
    links = link_share(demand, hardware, block_size) if workers > 1 else 0.0
    least = least_work(demand, hardware) / workers
    passing_us = passing_times_us(workers, demand.window_us)
    added_us = hardware.epoch_latency_us
    if links > BUSY_MAX:
        lacks = f"would fill {links:.0%} of each link"
        return Trial(workers, block_size, least, links, None, None, lacks)
    if least > hardware.busy_max:
        lacks = f"would be busy for {least:.0%} of the time with tuples and pairs alone"
        return Trial(workers, block_size, least, links, None, None, lacks)
    scale = scale_of(demand, workers, block_size)
    run = simulate_scaled(demand, hardware, workers, block_size, scale, seed)
    busiest, lag = busiest_share(run, scale), run.lag_us / scale.length_us
    if busiest > hardware.busy_max or lag > LAG_MAX:
        lacks = f"has a worker that is busy for {busiest:.0%} of the time"
        if busiest <= hardware.busy_max:
            lacks = f"falls behind by {lag:.0%} of the time"
        return Trial(workers, block_size, busiest, links, None, None, lacks)
    if hardware.epoch_us and workers > 1:
        share = epoch_share(demand, hardware, workers, block_size, scale, seed)
        if share > EPOCH_MAX:
            lacks = f"has epochs that take {share + 1 / EPOCHS_A_START:.0%} of their length"
            return Trial(workers, block_size, busiest, links, None, None, lacks)
    beyond_us = settled_latencies_us(run, scale) - passing_times_us(workers, scale.window_us)
    p50_us, p99_us = (passing_us + beyond_us.clip(0) + added_us).tolist()
    lacks = ""
    if p99_us > demand.latency_us:
        lacks = f"has a latency (p99) of {p99_us / SECOND_US:,.3g} s"
    return Trial(workers, block_size, busiest, links, p50_us, p99_us, lacks)


# ------------------------------------------------------------------------------- closed forms


def least_work(demand: Demand, hardware: Hardware) -> float:
    """Return the work that no chain avoids, in workers: tuples come and go, pairs are compared."""
    costs = hardware.costs
    pair_us = costs.comparison_us + costs.result_us
    work_us = 2 * hardware.tuple_us * demand.rate_hz + pair_us * demand.pairs_hz
    return work_us / SECOND_US / hardware.speed


def link_share(demand: Demand, hardware: Hardware, block_size: int) -> float:
    """Return the share of a link's bandwidth that blocks one way and acknowledgements take."""
    header = 2 * hardware.costs.header_bytes / block_size
    bits_hz = 8 * demand.rate_hz / 2 * (hardware.tuple_bytes + header)
    return bits_hz / SECOND_US / hardware.link.bandwidth_mbps


def passing_times_us(workers: int, window_us: float) -> FloatArray:
    """Return how long a pair waits until its tuples pass each other (p50, p99), if stores are even.

    A worker holds a tuple for W/m, the unit of time here. A tuple of age t is ``floor(t)`` workers
    from where it entered, so tuples of ages a + t and t have passed if these add up to m - 1. The
    age a of the earlier tuple at the arrival of the later one is uniform.
    """
    ages = (np.arange(10_000) + 0.5) / 10_000 * workers
    waits = np.full(len(ages), inf)
    for n in range(workers):  # while the later tuple is n workers from where it entered
        wait = np.maximum(n, workers - 1 - n - ages)
        waits = np.where(wait < n + 1, np.minimum(waits, wait), waits)
    found: FloatArray = np.percentile(waits, (P50, P99)) * window_us / workers
    return found

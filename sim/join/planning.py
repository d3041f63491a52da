"""The smallest chain that keeps up with a demand, found by short simulated runs.

Source: docs/cluster.md, section "Planning".

Rules of this file:

* Runs are scaled: a shorter window, and tuples that stand for several. Work, bytes and messages a
  second stay those of the demand.
* What no chain can avoid is computed, not simulated: a lower bound of the work, the bytes on a
  link, and the time until the tuples of a pair pass each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from math import ceil, inf
from typing import Annotated, NamedTuple

import numpy as np

from model.vocabulary import JoinConfig
from model.vocabulary.join import Equi
from model.vocabulary.settings import Setting, Settings, require
from sim.calibration import Calibration
from sim.join.room import ChainRun, simulate
from sim.join.scenarios import key_names
from sim.join.tuning import ORDINARY, ChainTuning, Costs
from sim.kernel.distributions import Constant, Exponential, FloatArray
from sim.kernel.link import Place, Tier, Tiers
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.source import Source
from sim.kernel.trigger import At

BLOCK_SIZES = (256, 64, 16, 4)
WORKERS_MAX = 64
BUSY_MAX = 0.95
"""Largest share of the time for which a worker or a link may be busy."""
LAG_MAX = 0.05
"""Longest time after the last arrival, as a share of the run."""
SECOND_US = 1_000_000
EPOCHS_A_START = 10
"""An epoch is this many times as long as its start."""
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


@dataclass(frozen=True, slots=True)
class Demand(Settings):
    """The task of a chain; ``ValueError`` with one sentence for an impossible value."""

    rate_hz: Annotated[
        float, Setting("tuples a second of both streams together", above=0, at_most=1_000_000)
    ]
    window_us: Annotated[int, Setting("length of the window", above=0)]
    latency_us: Annotated[
        int, Setting("largest latency of a pair, from the arrival of its later tuple", above=0)
    ]
    selectivity: Annotated[
        float,
        Setting("share of the pairs within the window that the index selects", above=0, at_most=1),
    ] = 0.0001

    @property
    def pairs_hz(self) -> float:
        """Pairs a second that the index selects; the streams have equal rates."""
        window_s = self.window_us / SECOND_US
        return (self.rate_hz / 2) ** 2 * 2 * window_s * self.selectivity


class Hardware(NamedTuple):
    """Costs of a worker of speed 1, and the link between two neighbours."""

    link: Tier
    tuple_us: float = 0.2
    costs: Costs = ORDINARY
    epoch_us: float = 0.0
    """Time that the start and the end of an epoch take; 0: the whole stream is one epoch."""
    speed: float = 1.0
    """Speed of the slowest worker, by which all are planned."""
    tuple_bytes: int = 100

    @property
    def busy_max(self) -> float:
        """Largest share of the time that is left for work."""
        return BUSY_MAX * (1 - 1 / EPOCHS_A_START if self.epoch_us else 1)

    @property
    def epoch_length_us(self) -> float:
        """Time from one epoch to the next; 0 if the whole stream is one."""
        return EPOCHS_A_START * self.epoch_us

    @property
    def epoch_latency_us(self) -> tuple[float, float]:
        """Time that epochs add to a latency (p50, p99): until the next start, then to the end."""
        length_us = self.epoch_length_us
        busy_us = self.epoch_us + self.busy_max * length_us
        return 0.50 * length_us + busy_us, 0.99 * length_us + busy_us


def hardware_of(found: Calibration, bandwidth_mbps: float | None = None) -> Hardware:
    """Return the hardware of a calibration, perhaps with links of another bandwidth."""
    costs = Costs(
        found.typical("message_us"),
        found.typical("comparison_us"),
        found.typical("result_us"),
        header_bytes=round(found.message_bytes),
    )
    link = found.link
    if bandwidth_mbps is not None:
        link = link._replace(bandwidth_mbps=bandwidth_mbps)
    return Hardware(
        link,
        found.typical("tuple_us"),
        costs,
        found.typical("epoch_us"),
        min(found.speeds),
        round(found.tuple_bytes),
    )


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
    beyond_us = _latencies_us(run, scale) - passing_times_us(workers, scale.window_us)
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


# --------------------------------------------------------------------------------- scaled runs


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
    k, costs = scale.tuples, hardware.costs
    rate_hz, window_s = demand.rate_hz / k, scale.window_us / SECOND_US
    keys = max(1, round(rate_hz * window_s / 2 / CANDIDATES))
    simulated_hz = (rate_hz / 2) ** 2 * 2 * window_s / keys
    pair_us = (costs.comparison_us + costs.result_us) * demand.pairs_hz / simulated_hz
    source = Source(
        events=max(1, round(rate_hz / 2 * scale.length_us / SECOND_US)),
        interval=Exponential(2 * SECOND_US / rate_hz),
        keys=key_names(keys),
    )
    usual = ChainTuning()
    plan = Plan(
        (source, source),
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
        trigger=At(()),
        name="plan, simulated",
    )
    config = JoinConfig(
        scale.window_us,
        (("join", Equi("key")),),
        workers=workers,
        block_size=max(1, block_size // k),
        lateness_us=0,
    )
    return simulate(plan, config, seed)


def busiest_share(run: ChainRun, scale: Scale) -> float:
    """Return the share of the time in which the busiest worker works, once the run has settled."""
    time_us = run.series["time_us"]
    rows = (time_us > SETTLED * scale.window_us) & (time_us <= scale.length_us)
    columns = [column for name, column in run.series.items() if name.startswith("utilisation_")]
    return max(float(column[rows].mean()) for column in columns)


def _latencies_us(run: ChainRun, scale: Scale) -> FloatArray:
    """Return the latency (p50, p99) of pairs that neither the start nor the flush has shortened."""
    first_us, last_us = SETTLED * scale.window_us, scale.length_us - scale.window_us
    is_settled = (first_us < run.due_us) & (run.due_us < last_us)
    found: FloatArray = np.percentile(run.latencies_us[is_settled], (P50, P99))
    return found

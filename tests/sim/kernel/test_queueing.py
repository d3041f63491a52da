"""Validation of the simulator: queues and links whose behaviour theory knows.

Every queue is built from the parts that the rooms use: a Poisson source, the log, a link, a
worker. Means are compared by batch means at confidence 0.999: a correct simulator would fail any
one comparison for about one seed in 1,000; the seeds are fixed. Each interval must also be narrow,
or the comparison would show nothing, and planted mistakes must be noticed.

Formulas, where nothing else is said: L. Kleinrock, "Queueing Systems, Volume 1: Theory". How many
customers it takes: W. Whitt, "Planning queueing simulations", Management Science 35(11), 1989.
"""

from functools import cache
from math import exp, inf

import numpy as np
import pytest
import simpy
from numpy.typing import ArrayLike

from model.vocabulary import Event
from sim.kernel.distributions import (
    Constant,
    Distribution,
    Exponential,
    iterate_samples,
)
from sim.kernel.link import Link, Place, Tier, Tiers
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Plan, Worker
from sim.kernel.run import run
from sim.kernel.seeds import Seeds
from sim.kernel.source import Source, Tuple
from sim.kernel.station import Station
from sim.kernel.trigger import Every
from sim.sweep.statistics import Interval, mean_interval

CONFIDENCE = 0.999
BATCHES = 30
WARM_UP = 5_000
SERVICE_US = 10_000.0
"""Mean service time; so long that a source may round event times to microseconds."""
MARKOV, DETERMINISTIC = Exponential(SERVICE_US), Constant(SERVICE_US)
LATENCY_US = 30_000.0
HOUR_US = 3_600_000_000


class Queue:
    """A room: one worker behind the log; what it did with each customer."""

    def __init__(
        self, env: simpy.Environment, seeds: Seeds, worker: Worker, service: Distribution
    ) -> None:
        self.env = env
        self.station = Station[int](env, worker, self._serve)
        self.workers = {"worker-0": self.station}
        self.links: dict[str, Link[int]] = {}
        self.is_lost: list[bool] = []
        self.work_us: list[float] = []
        self.wait_us: list[float] = []
        """Waiting time of each customer, in order of service."""
        rng = None if isinstance(service, Constant) else seeds.stream("service")
        self._works = iterate_samples(service, rng)

    def admits(self, _: Tuple) -> bool:
        worker = self.station.worker
        places = inf if worker.queue_limit is None else 1 + worker.queue_limit
        self.work_us.append(next(self._works))
        self.is_lost.append(self.station.inside.value >= places)
        return not self.is_lost[-1]

    def arrive(self, _: Event) -> None:
        self.station.offer(len(self.work_us), self.work_us[-1])

    def _serve(self, _: int, arrived_us: float, started_us: float) -> None:
        self.wait_us.append(started_us - arrived_us)

    def end_batch(self) -> None:
        """Do nothing: there are no micro-batches here."""

    flush = end_batch

    def check(self) -> None:
        self.station.check()

    def wait(self) -> Interval:
        """Return the mean wait."""
        return interval(self.wait_us)


def poisson(load: float, customers: int) -> Source:
    """Return a Poisson process that keeps a server busy for a share of the time."""
    return Source(customers, Exponential(SERVICE_US / load), high=1)


def queue(
    load: float,
    customers: int,
    seed: int,
    worker: Worker | None = None,
    service: Distribution = MARKOV,
) -> Queue:
    """Run customers through a worker; the load is meant for speed 1."""
    worker = worker or Worker()
    plan = Plan((poisson(load, customers),), trigger=Every(HOUR_US))
    return run(plan, seed, lambda env, seeds: Queue(env, seeds, worker, service))[0]


def interval(values: ArrayLike) -> Interval:
    """Return the mean of values in order of time, without the warm-up."""
    return batch_means(np.asarray(values, dtype=float)[WARM_UP:])


def batch_means(samples: ArrayLike) -> Interval:
    """Return the mean of a correlated, stationary series by batch means.

    Batches must be much longer than the correlation. Source: A. M. Law and W. D. Kelton,
    "Simulation Modeling and Analysis", the chapter on output analysis for a single system.
    """
    values = np.asarray(samples, dtype=np.float64)
    length = len(values) // BATCHES
    batches = values[len(values) - length * BATCHES :].reshape(BATCHES, length)
    return mean_interval(batches.mean(axis=1), CONFIDENCE)


def assert_mean(found: Interval, theory: float, narrow: float) -> None:
    assert found.low <= theory <= found.high, (found, theory)
    assert found.high - found.low < 2 * narrow * theory, (found, theory)


# -------------------------------------------------------------------------------------- theory


def mm_wait_us(load: float) -> float:
    """Return the mean wait in M/M/1."""
    return load * SERVICE_US / (1 - load)


def md1_wait_us(load: float) -> float:
    """Return the mean wait in M/D/1 (Pollaczek and Khinchine)."""
    return SERVICE_US * load / (2 * (1 - load))


def mm1k_lost(load: float, places: int) -> float:
    """Return the share of customers lost in M/M/1/K, where K counts the one in service."""
    return (1 - load) * load**places / (1 - load ** (places + 1))


# --------------------------------------------------------------------------------------- queues


@cache
def mm1() -> Queue:
    """Return a run that several tests look at."""
    return queue(0.7, 200_000, seed=1)


def test_mm1() -> None:
    assert_mean(mm1().wait(), mm_wait_us(0.7), narrow=0.08)
    assert_mean(queue(0.5, 100_000, seed=1).wait(), mm_wait_us(0.5), narrow=0.08)


def test_waits_of_mm1_have_their_distribution() -> None:
    """P(wait > t) = load exp(-(1 - load) t / service)."""
    waits_us = np.array(mm1().wait_us)
    for services, narrow in ((0, 0.02), (2, 0.05), (8, 0.3)):
        share = 0.7 * exp(-0.3 * services)
        assert_mean(interval(waits_us > services * SERVICE_US), share, narrow)


@pytest.mark.parametrize("load", [0.7, pytest.param(0.5, marks=pytest.mark.long)])
def test_md1(load: float) -> None:
    found = queue(load, 80_000, seed=2, service=DETERMINISTIC).wait()
    assert_mean(found, md1_wait_us(load), narrow=0.08)


@pytest.mark.parametrize("places", [1, 4, pytest.param(2, marks=pytest.mark.long)])
def test_loss_where_few_can_wait(places: int) -> None:
    worker = Worker(queue_limit=places - 1, when_full="drop")
    found = queue(0.8, 80_000, seed=6, worker=worker)
    assert_mean(interval(found.is_lost), mm1k_lost(0.8, places), narrow=0.08)
    assert found.station.served == len(found.is_lost) - sum(found.is_lost)


# ------------------------------------------------------------------------------- links, tandems


def test_a_link_is_a_queue_with_its_bandwidth_as_server() -> None:
    """Poisson messages of one size meet M/D/1, and then the latency."""
    load, customers = 0.7, 80_000
    tiers = Tiers(rack=Tier(LATENCY_US, 0.08))  # 800 bits in 10,000 us
    source = Source(customers, Exponential(SERVICE_US / load), bits=800, place=Place(node=1))
    events = simulate_arrivals(Plan((source,), tiers=tiers), 7).events
    took_us = np.array([event.arrival_us - event.event_time_us for event in events])
    found = interval(took_us - SERVICE_US - LATENCY_US)
    assert_mean(found, md1_wait_us(load), narrow=0.08)


class Tandem(Queue):
    """A room: a worker, a link, and another worker; how long customers took to the second."""

    def __init__(self, env: simpy.Environment, seeds: Seeds) -> None:
        super().__init__(env, seeds, Worker(), Exponential(1.2 * SERVICE_US))
        self.took_us: list[float] = []
        self.first = Station[float](env, Worker(), self._send)
        self.link = Link[float](env, Tier(LATENCY_US, 1e9), self._receive)
        self._first_works = iterate_samples(MARKOV, seeds.stream("first"))

    def admits(self, _: Tuple) -> bool:
        return True

    def arrive(self, _: Event) -> None:
        self.first.offer(self.env.now, next(self._first_works))

    def _send(self, came_us: float, _arrived_us: float, _started_us: float) -> None:
        self.link.send(came_us, 800)

    def _receive(self, came_us: float) -> None:
        self.took_us.append(self.env.now - came_us)
        self.work_us.append(next(self._works))
        self.station.offer(len(self.work_us), self.work_us[-1])


def test_a_tandem_of_two_queues_with_a_link_between() -> None:
    """A worker at load 0.5, a link that nothing waits for, and a worker at load 0.6.

    The output of M/M/1 is Poisson, so that the second queue waits as if it were the first. Source:
    P. J. Burke, "The output of a queuing system", Operations Research 4(6), 1956.
    """
    plan = Plan((poisson(0.5, 110_000),), trigger=Every(HOUR_US))
    tandem, _ = run(plan, 8, Tandem)
    assert_mean(interval(tandem.took_us), SERVICE_US / (1 - 0.5) + LATENCY_US, narrow=0.03)
    assert_mean(tandem.wait(), 1.2 * mm_wait_us(0.6), narrow=0.1)


def test_utilisation_law() -> None:
    for found, speed in ((mm1(), 1.0), (queue(0.35, 50_000, 9, Worker(0.5)), 0.5)):
        station, end_us = found.station, found.station.inside.changed_us
        busy_us = station.busy.mean(end_us) * end_us
        # As an identity, of the work that there was; and as a law, of the work to be expected.
        assert busy_us == pytest.approx(sum(found.work_us) / speed, rel=1e-9)
        grid_us = np.linspace(0.0, end_us, BATCHES + 1)[1:]
        share = batch_means(station.busy.means(grid_us))
        assert_mean(share, 0.7, narrow=0.04)


# ------------------------------------------------------------------------------ planted mistakes


def test_a_worker_that_is_a_little_slow_is_noticed() -> None:
    slow = queue(0.7, 200_000, seed=1, worker=Worker(1 / 1.03)).wait()
    assert slow.low > mm_wait_us(0.7)


def test_one_place_too_many_is_noticed() -> None:
    worker = Worker(queue_limit=4, when_full="drop")
    found = queue(0.8, 50_000, seed=6, worker=worker)
    assert interval(found.is_lost).high < mm1k_lost(0.8, 4)

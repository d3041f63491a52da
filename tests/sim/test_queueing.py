"""Validation of the simulator: queues and links whose behaviour theory knows.

Mean waits are compared by batch means at confidence 0.999: a correct simulator would fail any one
comparison for about one seed in 1,000; the seeds are fixed. Each interval must also be narrow, or
the comparison would show nothing. Formulas: L. Kleinrock, "Queueing Systems, Volume 1: Theory".
"""

from math import factorial

import numpy as np
import pytest
import simpy

from sim.kernel.distributions import Constant, Distribution, Exponential, endless
from sim.kernel.seeds import Seeds
from sim.kernel.station import Station, Worker
from sim.statistics import Interval, batch_means, clopper_pearson

CONFIDENCE = 0.999
SERVICE_US = 10.0
CUSTOMERS = 200_000
WARM_UP = 5_000


class Queue:
    """A station fed by a Poisson process at the given utilisation."""

    def __init__(
        self,
        service: Distribution,
        utilisation: float,
        seed: int,
        servers: int = 1,
        queue_limit: int | None = None,
        customers: int = CUSTOMERS,
    ) -> None:
        self.customers = customers
        seeds = Seeds(seed)
        self.env = simpy.Environment()
        self.waits_us: list[float] = []
        worker = Worker(service, servers=servers, queue_limit=queue_limit, when_full="drop")
        self.station: Station[int] = Station(self.env, worker, self.done, seeds.stream("service"))
        mean_interval_us = SERVICE_US / (utilisation * servers)
        self.intervals = endless(Exponential(mean_interval_us), seeds.stream("arrivals"))
        self.next()
        self.env.run()
        self.station.check()

    def next(self) -> None:
        simpy.Timeout(self.env, next(self.intervals)).callbacks.append(self.arrive)

    def arrive(self, _: simpy.Event) -> None:
        self.station.offer(0)
        if self.station.offered < self.customers:
            self.next()

    def done(self, _: int, arrived_us: float, started_us: float) -> None:
        self.waits_us.append(started_us - arrived_us)

    def wait(self) -> Interval:
        return batch_means(self.waits_us[WARM_UP:], CONFIDENCE, batches=30)


def erlang_b(load: float, servers: int) -> float:
    """Share of customers lost when nobody can wait."""
    terms = [load**n / factorial(n) for n in range(servers + 1)]
    return terms[-1] / sum(terms)


def erlang_c(load: float, servers: int) -> float:
    """Share of customers that have to wait."""
    lost = erlang_b(load, servers)
    return lost / (1 - load / servers * (1 - lost))


def test_erlang_formulas_on_known_values() -> None:
    assert erlang_b(1.0, 1) == 0.5
    assert erlang_c(0.7, 1) == pytest.approx(0.7)
    assert erlang_c(1.0, 2) == pytest.approx(1 / 3)


def assert_wait(queue: Queue, theory_us: float) -> None:
    interval = queue.wait()
    assert interval.contains(theory_us), (interval, theory_us)
    assert interval.half_width < 0.1 * theory_us, (interval, theory_us)


@pytest.mark.parametrize("utilisation", [0.5, 0.8])
def test_mm1(utilisation: float) -> None:
    # At 0.8 the standard error of the mean of n waits is 445/sqrt(n) us (W. Whitt, "Planning
    # queueing simulations", Management Science 35(11), 1989): n must be larger than elsewhere.
    queue = Queue(Exponential(SERVICE_US), utilisation, seed=1, customers=2 * CUSTOMERS)
    assert_wait(queue, SERVICE_US * utilisation / (1 - utilisation))


@pytest.mark.parametrize("utilisation", [0.5, 0.8])
def test_md1(utilisation: float) -> None:
    queue = Queue(Constant(SERVICE_US), utilisation, seed=2)
    assert_wait(queue, SERVICE_US * utilisation / (2 * (1 - utilisation)))


@pytest.mark.parametrize("servers", [2, 5])
def test_mmc(servers: int) -> None:
    queue = Queue(Exponential(SERVICE_US), 0.8, seed=3, servers=servers)
    theory_us = erlang_c(0.8 * servers, servers) * SERVICE_US / (servers * (1 - 0.8))
    assert_wait(queue, theory_us)


def test_loss_without_a_queue() -> None:
    queue = Queue(Exponential(SERVICE_US), 0.8, seed=4, servers=3, queue_limit=0)
    # Losses come in clusters; in batches their correlation does not matter.
    station = queue.station
    lost = erlang_b(0.8 * 3, 3)
    observed = station.dropped / station.offered
    # Clopper-Pearson would hold for independent losses; three times its width covers clusters.
    half_width = 3 * clopper_pearson(station.dropped, station.offered, CONFIDENCE).half_width
    assert abs(observed - lost) < half_width < 0.05 * lost


@pytest.mark.parametrize("servers", [1, 4])
def test_utilisation_law(servers: int) -> None:
    queue = Queue(Exponential(SERVICE_US), 0.7, seed=5, servers=servers)
    throughput_per_us = queue.station.served / queue.env.now
    # U = X * S / c. The mean of 200,000 exponential services is within 1% (4.5 standard errors),
    # and so is that of the intervals.
    law = throughput_per_us * SERVICE_US / servers
    assert queue.station.utilisation() == pytest.approx(law, rel=0.01)
    assert queue.station.utilisation() == pytest.approx(0.7, rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_little_from_both_sides(seed: int) -> None:
    """L measured over time against lambda * W measured per customer; all have left."""
    queue = Queue(Constant(SERVICE_US), 0.6, seed=10 + seed)
    served = queue.station.served
    mean_stay_us = float(np.mean(queue.waits_us)) + SERVICE_US
    expected = served / queue.env.now * mean_stay_us
    assert queue.station.inside.mean(queue.env.now) == pytest.approx(expected, rel=1e-9)


def test_a_wrong_simulator_would_be_noticed() -> None:
    """The intervals tell M/M/1 from M/D/1 and from a worker that is 3% slow."""

    def wait(service: Distribution) -> Interval:
        return Queue(service, 0.8, seed=1, customers=2 * CUSTOMERS).wait()

    right, slow = wait(Exponential(SERVICE_US)), wait(Exponential(1.03 * SERVICE_US))
    deterministic = wait(Constant(SERVICE_US))
    theory_us = SERVICE_US * 0.8 / 0.2
    assert right.contains(theory_us)
    assert not slow.contains(theory_us)
    assert not deterministic.contains(theory_us)

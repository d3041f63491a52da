"""Promises of docs/grouping.md on the model; in time, TAG read literally breaks them.

Arrivals come from simulated networks (``straggler/strategies/grouping.py``). For promises about
probabilities, keys are drawn independently (``straggler/rooms/grouping/draws.py``).
"""

from functools import cache
from itertools import product
from math import log2
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.grouping import balance, balance_claims
from model.vocabulary import Event, GroupingConfig, System, Workload
from model.vocabulary.grouping import POLICIES, Answer, Rejected
from properties import profiles
from properties.promised import Reached, promised
from sim.grouping import TimedRun, simulate
from sim.grouping.cluster import GroupingTuning
from sim.grouping.instances import times_us
from sim.kernel.distributions import Exponential
from sim.kernel.link import HERE
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.recorder import Summary
from sim.kernel.source import Recording, Row, Source
from sim.kernel.trigger import EveryTuples
from straggler.judging.judge import broken_sentences
from straggler.rooms.grouping.draws import (
    Draws,
    limits,
    slope,
    stream,
    weighted,
)
from straggler.strategies.grouping import TIMES_US, cases
from straggler.strategies.streams import SEEDS

DELTA = 1e-9
"""Probability that the upper bound fails in any window."""
FAILURE = 1e-3
"""Probability that a confidence limit of a mean is wrong."""


def seeds(seed: int) -> range:
    """Return the seeds of repetitions."""
    return range(seed, seed + profiles.choose(5, nightly=10))


@given(case=cases(), policy=st.sampled_from(POLICIES), seed=SEEDS)
def test_answers_do_not_depend_on_routes(
    system: System, case: Workload, policy: str, seed: int
) -> None:
    other = case.with_(config={**case.config, "policy": policy, "hash_seed": seed, "senders": 4})
    one, another = system(case), system(other)
    assert one.of(Answer) == another.of(Answer)
    assert one.of(Rejected) == another.of(Rejected)


# ------------------------------------------------------------------------------ promise 5: bounds


@st.composite
def drawn_streams(draw: st.DrawFn) -> tuple[Workload, dict[str, int]]:
    """Draw keys with weights, and one router for which the bound holds."""
    n = draw(st.integers(1, 6))
    heavy = draw(st.lists(st.integers(1, 99), min_size=1, max_size=8))
    light = draw(st.integers(0, 60))
    weights = {f"k{number}": weight for number, weight in enumerate([*heavy, *[1] * light])}
    policy = draw(st.sampled_from(["tag", "tag", "tag-literal", "pkg", "shuffle"]))
    by_time = policy.startswith("tag")
    times_us = tuple(draw(st.lists(TIMES_US, min_size=n, max_size=n))) if by_time else (1,) * n
    window_tuples = draw(st.sampled_from([50, 500, 1_500]))
    config = GroupingConfig(
        n, policy, ((0, times_us),), window_tuples=window_tuples, hash_seed=draw(SEEDS)
    )
    # Other policies keep their loads; the bound holds for loads that start at 0.
    keys = weighted(weights, window_tuples * (2 if by_time else 1), draw(SEEDS))
    return stream(keys, config), weights


@promised("unequal times", "less than all at the slowest", "near to the least", examples=20)
@given(case=drawn_streams())
def test_work_is_within_the_bounds(
    system: System, reached: Reached, case: tuple[Workload, dict[str, int]]
) -> None:
    workload, weights = case
    trace = system(workload)
    broken = broken_sentences(balance_claims.check(workload, trace, weights, DELTA))
    assert not broken, "\n".join(broken)
    # The bound says something: less than all tuples at the slowest instance, even less than twice
    # what candidates allow.
    for each in balance_claims.balances(workload, trace, weights, DELTA):
        if len(set(each.times_us)) > 1:
            most = sum(each.counts) * max(each.times_us)
            reached.add({"unequal times": 1, "less than all at the slowest": each.bound < most})
            reached.add({"near to the least": each.bound < 2 * each.least_work})


# ------------------------------------------------------------------------------ promise 5: growth

SIZES = (4, 8, 16, 32, 64, 128)
EACH = 100
"""Tuples of a window, for each instance."""
TOLERANCE = 0.1
"""Largest change of rho from the shortest to the longest window of a sweep."""


def drawn(n: int, policy: str = "tag", exponent: float = 1.0) -> Draws:
    """Return streams with hot keys; half of the instances are ten times slower."""
    keys = profiles.choose(1_000, nightly=5_000)
    return Draws(
        n,
        policy,
        slow=n // 2,
        exponent=exponent,
        keys=keys,
        window_tuples=profiles.choose(2, nightly=4) * EACH * n,
        windows=profiles.choose(2, nightly=3),
    )


DAILY = ((4, 1.0), (16, 0.0), (128, 1.0))
"""Sizes and exponents of every day; the others come at night."""


def nightly(*values: object) -> Any:
    """Return parameters of a night."""
    return pytest.param(*values, marks=pytest.mark.long)


@pytest.mark.parametrize(
    ("n", "exponent"),
    [*DAILY, *(nightly(*each) for each in product(SIZES, (0.0, 1.0)) if each not in DAILY)],
)
def test_the_makespan_is_that_of_a_fluid_but_for_two_tuples(
    system: System, seed: int, n: int, exponent: float
) -> None:
    draws = drawn(n, exponent=exponent)
    assert balance.tuples_above(draws.times_us) == 2
    workload = draws.workload(seed)
    trace = system(workload)
    verdict = balance_claims.check_closeness(workload, trace)
    assert verdict.outcome is Outcome.HOLDS, (verdict.sentence, verdict.witness)
    # The cost of candidates grows with n, up to 0.04: instances have fewer light keys each.
    for each in balance_claims.closeness(workload, trace):
        assert each.rho_of_candidates < 0.05


def test_rho_does_not_grow_with_tuples(system: System, seed: int) -> None:
    # In shorter windows a large key may be taken for a light one, and be left with two slow ones.
    sizes = [2**e for e in range(10, profiles.choose(14, nightly=17))]
    found = []
    for repetition in seeds(seed):
        rhos = [Draws(16, slow=8, window_tuples=m).rho(system, repetition) for m in sizes]
        found.append(slope([log2(m) for m in sizes], rhos))
    _, upper = limits(found, FAILURE)
    growth = upper * (len(sizes) - 1)
    assert growth < TOLERANCE, f"rho grows by up to {growth:g} (failure {FAILURE:g})"


# -------------------------------------------------------------------------- in time, read literally


def repetitions(seed: int, usual: int = 5) -> range:
    """Return the seeds of repetitions: ``usual`` of them, more in profile ``nightly``."""
    return range(seed, seed + profiles.choose(usual, nightly=20))


class Stream(NamedTuple):
    """Light keys in two windows, of which the second one is promised to be balanced.

    Half of the instances are ten times slower. Everything is there at the start: senders stand
    still only where instances do.
    """

    n: int
    window_tuples: int
    keys: int = 5_000

    @property
    def cluster(self) -> Cluster:
        """The instances, fast ones first."""
        slow = self.n // 2
        fast = Worker(queue_limit=10, place=HERE)
        workers = (fast,) * (self.n - slow) + (Worker(0.1, queue_limit=10, place=HERE),) * slow
        return Cluster(workers, Exponential(100.0))

    @property
    def times_us(self) -> tuple[int, ...]:
        """Mean time of a tuple, by instance."""
        return times_us(Plan((), cluster=self.cluster), self.n)

    @property
    def tuple_more(self) -> float:
        """Increase of rho by one more tuple at the slowest instance."""
        return max(self.times_us) * balance.total_speed(self.times_us) / self.window_tuples

    def run(self, seed: int, policy: str = "tag") -> TimedRun:
        """Run the windows."""
        arrivals = _arrivals(self.keys, 2 * self.window_tuples, seed)
        rows = [Row(e.event_time_us, e.arrival_us, e.key, e.value) for e in arrivals]
        plan = Plan(
            (Recording(tuple(rows)),),
            cluster=self.cluster,
            tuning=GroupingTuning(measured=False),
            trigger=EveryTuples(self.window_tuples),
            epoch_us=arrivals[-1].arrival_us,
        )
        config = GroupingConfig(
            self.n,
            policy,
            ((0, self.times_us),),
            window_tuples=self.window_tuples,
            hash_seed=seed,
        )
        return simulate(plan, config, seed)


@cache
def _arrivals(keys: int, tuples: int, seed: int) -> tuple[Event, ...]:
    """Simulate a network that disorders arrivals; they are the same for all policies."""
    source = Source(
        tuples,
        Exponential(10.0),
        delay=Exponential(200.0),
        keys=tuple([f"k{rank}" for rank in range(keys)]),
        zipf=0.0,
    )
    return simulate_arrivals(Plan((source,)), seed).events


@pytest.mark.parametrize("n", [16, *(pytest.param(n, marks=pytest.mark.long) for n in (4, 64))])
def test_uniform_candidates_keep_fast_instances_waiting(seed: int, n: int) -> None:
    stream = Stream(n, profiles.choose(2_000, nightly=4_000))
    theory = balance.rho_of_uniform_pairs(n, n // 2, 10, light_share=1.0)
    literal = [stream.run(each, "tag-literal").summary for each in repetitions(seed)]
    corrected = [stream.run(each).summary for each in repetitions(seed)]
    lower, _ = limits([float(each["mean_rho"]) for each in literal], 10 * FAILURE)
    # The formula is for many keys; of these no more come than a window has tuples.
    assert lower + 1 > 0.8 * (theory + 1), (n, theory, literal)
    assert max(float(each["mean_rho"]) for each in corrected) < 2.5 * stream.tuple_more
    # A makespan is a throughput: 1 / (1 + rho) of the fluid's. The formula tells both apart.
    bound = 1 / (0.8 * (theory + 1))
    assert max(map(share, literal)) < bound < min(map(share, corrected))


def share(summary: Summary) -> float:
    """Return the throughput as a share of that of a fluid."""
    return float(summary["served_hz"]) / float(summary["ideal_hz"])

"""The promise of quality (docs/slack.md, 7.3) as a probability.

P(error >= eps) <= delta for windows after the warm-up. A test here passes only if that is shown: if
the upper limit lies below delta. The limits of all tests of a family together fail with probability
``FAILURE`` at most: so often a false promise would pass and, for the lower limits, so often a true
one would be called broken.

Neighbouring windows are no independent trials: they share tuples, and a controller has a memory.
Windows are counted in blocks of :data:`BLOCK_LENGTHS` window lengths.
"""

from dataclasses import replace
from functools import cache
from itertools import product
from math import ceil, floor, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from model.slack import run
from model.vocabulary import Event, SlackConfig, Workload
from model.vocabulary.slack import Judged
from model.vocabulary.windows import Late
from properties.profiles import choose
from sim.kernel.log import simulate_arrivals
from sim.kernel.source import Source
from sim.scenarios import PROCESSES, SECOND_US
from tests.properties.first_answers import first_errors, warm_up
from tests.sim.disorder import DEPENDENT, INDEPENDENT

Flags: TypeAlias = NDArray[np.bool_]

FAILURE = 0.01
"""Largest probability that any limit of the table fails."""
QUERY = SlackConfig(
    10 * SECOND_US,
    2 * SECOND_US,
    q=0.9,
    keyed=False,
    # A burst makes tuples five seconds late on average: it must be seen before the judgement.
    feedback_us=20 * SECOND_US,
)
AGGREGATES = ("sum", "count", "avg", "median", "quantile")
PROMISES = list(product(INDEPENDENT, AGGREGATES))
"""Every process whose values do not depend on delay, with every aggregate."""

BLOCK_LENGTHS = 20
"""Window lengths in a block. Two blocks share tuples of at most a twentieth of a block.

In every process the correlation between two windows ten lengths apart was below 0.03 in absolute
value (27,000 windows). That of neighbouring blocks was negative or within the noise of 0.1, because
the controller makes up for misses; so the limits are too wide rather than too close."""
ENOUGH = 50_000
"""Number of tuples that show a badly broken promise."""
SHORTER = 2 / 3
"""Share of a stream that is enough for all aggregates but counts: their errors are rarer. It leaves
fewer windows than the table of the guide has, and wider limits, which fail no more often."""


class Found(NamedTuple):
    """Figures of one run after its warm-up."""

    low: float
    """Lower limit of the probability that a first answer is wrong."""
    high: float
    late: int
    misses: int
    """Judged windows that missed their requirement, by what the judgement knew."""


def limits_of(happened: Flags, config: SlackConfig, failure: float) -> tuple[float, float]:
    """Return limits of the probability that something happens to a window, from a long run.

    Each of them fails with probability ``failure``. They are Student-t limits over blocks. These
    assume means that are nearly normal, which means of rare events are not: so neither limit is
    closer than the Clopper-Pearson limit of as many independent windows as do not overlap.
    """
    overlap = ceil(config.size_us / config.slide_us)
    length = BLOCK_LENGTHS * overlap
    blocks = happened[: len(happened) // length * length].reshape(-1, length)
    assert len(blocks) >= 10, "there are too few windows"
    means = blocks.mean(axis=1)
    share, trials = means.mean(), blocks.size // overlap
    half = stats.t.isf(failure, len(means) - 1) * means.std(ddof=1) / sqrt(len(means))
    fewest, most = floor(share * trials), ceil(share * trials)
    rare_low = stats.beta.ppf(failure, fewest, trials - fewest + 1) if fewest else 0.0
    rare_high = stats.beta.isf(failure, most + 1, trials - most) if most < trials else 1.0
    return min(share - half, rare_low), max(share + half, rare_high)


@cache
def arrivals(process: str, tuples: int, seed: int) -> tuple[Event, ...]:
    """Return ``tuples`` arrivals of a disorder process (:mod:`sim.scenarios`)."""
    plan = PROCESSES[process](seed)
    sources = tuple(replace(s, events=tuples) for s in plan.sources if isinstance(s, Source))
    return simulate_arrivals(replace(plan, sources=sources), seed).events


def found(events: tuple[Event, ...], config: SlackConfig, failure: float) -> Found:
    workload = Workload("slack", events, config.to_json())
    trace = run(workload)
    skipped = warm_up(config)
    errors = first_errors(workload, trace)[skipped:]
    judged = sorted(trace.of(Judged), key=lambda step: step.order)[skipped:]
    return Found(
        *limits_of(errors >= config.eps, config, failure),
        len(trace.of(Late)),
        sum(step.miss for step in judged),
    )


def long_enough(process: str, aggregate: str, seed: int) -> tuple[Event, ...]:
    """Return enough arrivals to see whether the promise is kept for an aggregate."""
    events = arrivals(process, choose(120_000, nightly=400_000), seed)
    return events if aggregate == "count" else events[: int(len(events) * SHORTER)]


DAILY = {("exponential", "sum"), ("pareto-1.2", "count"), ("burst-train", "quantile")}
"""Pairs of every day; at night there are all pairs."""


@pytest.mark.parametrize(
    ("process", "aggregate"),
    [pytest.param(*pair, marks=() if pair in DAILY else pytest.mark.long) for pair in PROMISES],
)
def test_first_answers_are_as_good_as_promised(process: str, aggregate: str, seed: int) -> None:
    query = replace(QUERY, aggregate=aggregate)
    shown = found(long_enough(process, aggregate, seed), query, FAILURE / len(PROMISES))
    assert shown.high <= QUERY.delta, shown
    assert shown.late, "undetermined: nothing was late"
    assert shown.misses or (process, aggregate) not in DAILY, "undetermined: nothing was missed"


# -------------------------------------------------------------------- when delay follows value


@pytest.mark.parametrize(
    "aggregate",
    ["median", *(pytest.param(each, marks=pytest.mark.long) for each in ("avg", "quantile"))],
)
def test_delays_that_follow_values_break_the_promise(aggregate: str, seed: int) -> None:
    query = replace(QUERY, aggregate=aggregate)
    shown = found(arrivals(DEPENDENT, ENOUGH, seed), query, FAILURE)
    assert shown.low > query.delta, shown

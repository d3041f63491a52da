"""The promise of quality (docs/slack.md, 7.3) as a probability.

P(error >= eps) <= delta for windows after the warm-up. A test here passes only if that is shown: if
the upper limit lies below delta. The limits of all tests of a family together fail with probability
``FAILURE`` at most: so often a false promise would pass and, for the lower limits, so often a true
one would be called broken.
"""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import pytest

from model.checking.claims import Outcome
from model.slack import run
from model.vocabulary import Event, SlackConfig, Workload
from model.vocabulary.windows import Late
from properties.profiles import choose
from sim.scenarios import DEPENDENT
from straggler.rooms.slack.promise import (
    FAILURE,
    PROMISES,
    QUERY,
    Share,
    bonferroni,
    first_errors,
    measured_misses,
    share_of,
    stream,
    warm_up,
)

ENOUGH = 50_000
"""Number of tuples that show a badly broken promise."""
SHORTER = 2 / 3
"""Share of a stream that is enough for all aggregates but counts: their errors are rarer. It leaves
fewer windows than the table of the guide has, and wider limits, which fail no more often."""


class Found(NamedTuple):
    """Figures of one run after its warm-up."""

    wrong: Share
    late: int
    misses: int
    """Measured at the judgement."""


@cache
def arrivals(process: str, tuples: int, seed: int) -> tuple[Event, ...]:
    return stream(process, tuples, seed)


def found(events: tuple[Event, ...], config: SlackConfig, failure: float) -> Found:
    workload = Workload("slack", events, config.to_json())
    trace = run(workload)
    skipped = warm_up(config)
    errors = first_errors(workload, trace)[skipped:]
    return Found(
        wrong=share_of(errors >= config.eps, config, failure),
        late=len(trace.of(Late)),
        misses=int(measured_misses(trace)[skipped:].sum()),
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
    shown = found(long_enough(process, aggregate, seed), query, bonferroni(FAILURE, PROMISES))
    assert shown.wrong.at_most(QUERY.delta) is Outcome.HOLDS, shown.wrong.sentence(QUERY.delta)
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
    assert shown.wrong.at_most(query.delta) is Outcome.BROKEN, shown.wrong.sentence(query.delta)

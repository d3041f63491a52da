"""The promise of quality (docs/slack.md, 7.3) as a probability, and the published law without it.

P(error >= eps) <= delta for windows after the warm-up. A test here passes only if that is shown: if
the upper limit lies below delta. The limits of all tests of a family together fail with probability
``FAILURE`` at most: so often a false promise would pass and, for the lower limits, so often a true
one would be called broken.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import fsum
from typing import NamedTuple, TypeAlias

import pytest

from model.checking.claims import Outcome
from model.slack import make_system
from model.slack.assumption import (
    CONTRADICTED,
    NOT_CONTRADICTED,
    UNTESTED,
    Assumption,
    status_of,
)
from model.vocabulary import Event, SlackConfig, Trace, Workload
from model.vocabulary.slack import Judged
from model.vocabulary.windows import Correlation, Late
from properties.profiles import choose
from sim.scenarios import DEPENDENT, SECOND_US
from straggler.rooms.slack.promise import (
    FAILURE,
    PROMISES,
    QUERY,
    Share,
    bonferroni,
    first_answers,
    measured_misses,
    share_of,
    stream,
    warm_up,
)
from straggler.rooms.slack.published_law import QUERY as LAW
from straggler.rooms.slack.published_law import observe

System: TypeAlias = Callable[[Workload], Trace]
"""A System that a cache can remember."""

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
    assumption: Assumption


@cache
def arrivals(process: str, tuples: int, seed: int) -> tuple[Event, ...]:
    return stream(process, tuples, seed)


def run(events: tuple[Event, ...], config: SlackConfig, system: System) -> tuple[Workload, Trace]:
    workload = Workload("slack", events, config.to_json())
    return workload, system(workload)


def found(events: tuple[Event, ...], config: SlackConfig, system: System, failure: float) -> Found:
    workload, trace = run(events, config, system)
    skipped = warm_up(config)
    answers = first_answers(workload, trace).after(skipped)
    return Found(
        wrong=share_of(answers.wrong(config), config, failure),
        late=len(trace.of(Late)),
        misses=int(measured_misses(trace)[skipped:].sum()),
        assumption=status_of(trace.of(Correlation)),
    )


@cache
def as_promised(process: str, aggregate: str, system: System, seed: int) -> Found:
    query = replace(QUERY, aggregate=aggregate)
    events = long_enough(process, aggregate, seed)
    return found(events, query, system, bonferroni(FAILURE, PROMISES))


def long_enough(process: str, aggregate: str, seed: int) -> tuple[Event, ...]:
    """Return enough arrivals to see whether the promise is kept for an aggregate."""
    events = arrivals(process, choose(120_000, nightly=400_000), seed)
    return events if aggregate == "count" else events[: int(len(events) * SHORTER)]


DAILY = {
    ("exponential", "sum"),
    ("mixture", "median"),
    ("pareto-2.5", "count"),
    ("pareto-1.2", "count"),
    ("burst-train", "quantile"),
    ("regimes", "avg"),
}
"""A pair for each process, in which each aggregate occurs; at night there are all pairs."""


@pytest.mark.parametrize(
    ("process", "aggregate"),
    [pytest.param(*pair, marks=() if pair in DAILY else pytest.mark.long) for pair in PROMISES],
)
def test_first_answers_are_as_good_as_promised(
    process: str, aggregate: str, system: System, seed: int
) -> None:
    shown = as_promised(process, aggregate, system, seed)
    assert shown.wrong.at_most(QUERY.delta) is Outcome.HOLDS, shown.wrong.sentence(QUERY.delta)
    assert shown.late, "undetermined: nothing was late"
    assert shown.misses or (process, aggregate) not in DAILY, "undetermined: nothing was missed"
    # The interval is one of 99.9%: one seed in 1,000 fails here although nothing is wrong.
    assert shown.assumption.status == NOT_CONTRADICTED, shown.assumption


# ----------------------------------------------------------------- measured and true misses


@pytest.mark.parametrize("feedback_s", [5, 60])
def test_misses_as_measured_are_at_most_the_true_ones(feedback_s: int, seed: int) -> None:
    # The error of a count is the share that is missing: it is eps or more in a true miss.
    query = replace(QUERY, aggregate="count", feedback_us=feedback_s * SECOND_US)
    workload, trace = run(arrivals("burst-train", ENOUGH, seed), query, make_system())
    true = first_answers(workload, trace).wrong(query)
    # Some windows at the end are judged by the flush only, and so is what was measured of them.
    measured = measured_misses(trace)[: len(true)]
    assert not (measured & ~true).any()
    if feedback_s == 60:  # longer than any tuple is late
        assert (measured == true).all()
    else:
        assert measured.sum() < true.sum()


# -------------------------------------------------------------------- when delay follows value

ROBUST = ("median", "avg", "quantile", "sum")
AT_NIGHT_BUT_MEDIAN = [
    ROBUST[0],
    *(pytest.param(name, marks=pytest.mark.long) for name in ROBUST[1:]),
]


@pytest.mark.parametrize("aggregate", AT_NIGHT_BUT_MEDIAN[:3])
def test_delays_that_follow_values_break_the_promise_with_a_warning(
    aggregate: str, seed: int
) -> None:
    query = replace(QUERY, aggregate=aggregate)
    shown = found(arrivals(DEPENDENT, ENOUGH, seed), query, make_system(), FAILURE)
    assert shown.wrong.at_most(query.delta) is Outcome.BROKEN, shown.wrong.sentence(query.delta)
    assert shown.assumption.status == CONTRADICTED
    assert shown.assumption.low is not None
    assert shown.assumption.low > 0


@pytest.mark.parametrize("aggregate", AT_NIGHT_BUT_MEDIAN)
def test_adversarial_sampling_keeps_the_promise_when_delay_follows_value(
    aggregate: str, seed: int
) -> None:
    query = replace(QUERY, aggregate=aggregate, sampling="adversarial")
    events = long_enough(DEPENDENT, aggregate, seed)
    shown = found(events, query, make_system(), bonferroni(FAILURE, ROBUST))
    assert shown.wrong.at_most(query.delta) is Outcome.HOLDS, shown.wrong.sentence(query.delta)
    assert shown.misses


def test_after_a_few_windows_nothing_is_said(seed: int) -> None:
    query = replace(QUERY, control="fixed")
    _, trace = run(arrivals(DEPENDENT, 1_500, seed), query, make_system())
    assumption = status_of(trace.of(Correlation))
    assert 0 < assumption.windows < 20
    assert assumption.status == UNTESTED


# ----------------------------------------------------------------------------- the published law

LAW_TUPLES, LAW_FAILURE = 60_000, 0.01
REFUTED = [
    ("exponential", "pd"),
    ("exponential", "pd-clamped"),
    ("mixture", "pd"),
    ("mixture", "pd-clamped"),
    ("regimes", "pd"),
]
"""(process, control) pairs for which the published law misses its aim by far.

On the heavier tails a few long delays keep it waiting for long.
"""


@pytest.mark.parametrize(
    ("process", "control"),
    [*REFUTED[:2], *(pytest.param(*each, marks=pytest.mark.long) for each in REFUTED[2:])],
)
def test_the_published_law_breaks_the_promise(process: str, control: str, seed: int) -> None:
    config = replace(LAW, control=control)
    workload, trace = observe(stream(process, LAW_TUPLES, seed), config)
    wrong = first_answers(workload, trace).after(warm_up(config)).wrong(config)
    share = share_of(wrong, config, bonferroni(LAW_FAILURE, REFUTED))
    assert share.at_most(config.delta) is Outcome.BROKEN, share.sentence(config.delta)
    assert errors_add_up(trace, config)


def errors_add_up(trace: Trace, config: SlackConfig) -> bool:
    """Return whether sum(err) is (alpha - alpha_1 - kd * err - clipped) / kp at every step."""
    alpha, err, clipped, errors = 1.0, 0.0, 0.0, list[float]()
    for step in sorted(trace.of(Judged), key=lambda step: step.order):
        before, n = err, step.n_rcv + step.n_late
        err = step.n_req / n - step.n_rcv / n
        errors.append(err)
        clipped += step.alpha - (alpha + config.kp * err + config.kd * (err - before))
        alpha = step.alpha
        steered = (alpha - 1.0 - config.kd * err - clipped) / config.kp
        if fsum(errors) != pytest.approx(steered, abs=1e-6):
            return False
    # Only a clamp may add to what the law says.
    return bool(errors) and (config.control != "pd" or abs(clipped) < 1e-6)

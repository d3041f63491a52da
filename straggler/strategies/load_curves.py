"""Hypothesis strategies: rules of load, load curves, and the decisions of a chain.

Rules of this file:

1. A load is given as the number of workers that it keeps busy; all workers share it.
2. An epoch takes one unit of time, and rules react within a few epochs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from hypothesis import strategies as st

from model.join.control import decide, start
from model.vocabulary import JoinConfig
from model.vocabulary.join import Decision
from model.vocabulary.join_load import BLOCK_SIZES, SHEDDING, LoadRules, Measured

UNIT_US = 1_000
"""Elapsed time of an epoch (us)."""

LIMITS_OF_WORKERS = st.tuples(st.integers(1, 3), st.integers(0, 4)).map(
    lambda drawn: (drawn[0], sum(drawn))
)
"""Fewest and most workers."""
THRESHOLDS = st.sampled_from([(0.25, 0.8, 0.8), (0.3, 0.75, 0.9), (0.1, 0.5, 1.0), (0.4, 1.0, 1.0)])
"""Values of tau0, tau1 and tau2."""


@st.composite
def load_rules(draw: st.DrawFn) -> LoadRules:
    """Draw rules that react within a few epochs."""
    (least, most), (tau0, tau1, tau2) = draw(LIMITS_OF_WORKERS), draw(THRESHOLDS)
    return LoadRules(
        tau0,
        tau1,
        tau2,
        out_after_us=draw(st.sampled_from([0, UNIT_US, 3 * UNIT_US])),
        in_after_us=draw(st.sampled_from([0, UNIT_US, 3 * UNIT_US])),
        least=least,
        most=most,
        capacity=draw(st.sampled_from([1, 8, 1_000])),
        blocks=draw(st.sampled_from(BLOCK_SIZES)),
        shed=draw(st.sampled_from(list(SHEDDING))),
        base=draw(st.sampled_from([0.0, 0.1, tau2])),
        margin=draw(st.sampled_from([0.0, 0.05, 2.0])),
        smoothing=draw(st.sampled_from([0.1, 0.5, 1.0])),
        block_size=draw(st.sampled_from([1, 3, 64])),
    )


LEVELS = (2.0, 0.0, 0.625, 0.875, 0.9375, 1.125, 1.75, 1.9375, 2.375, 2.75, 3.5, 3.75, 4.5, 8.0)
"""Loads (workers); for any number of workers, one or more lies between tau1 and full use."""


@st.composite
def loads(draw: st.DrawFn, most: int) -> list[float]:
    """Draw the load (workers) of each of at most ``most`` epochs, which rises, falls and jumps."""
    levels = st.tuples(st.sampled_from(LEVELS), st.integers(1, 4))
    course = draw(st.lists(levels, min_size=1, max_size=most))
    return [load for load, epochs in course for _ in range(epochs)][:most]


def follow(rules: LoadRules, workers: int, curve: Sequence[float]) -> Iterator[Decision]:
    """Yield the decisions of the model's controller at the start and after each epoch of a load."""
    state = start(rules, workers)
    yield Decision(0, state.workers, rules.block_size, state.share)
    for epoch, load in enumerate(curve):
        m = state.workers
        # The first workers are busier than the last ones, as at the ends of a chain.
        shares = [load / m * (1.25 - 0.5 * n / max(1, m - 1)) for n in range(m)]
        busy_us = tuple(int(UNIT_US * max(0.0, share)) for share in shares)
        state, decision = decide(rules, state, Measured(epoch, UNIT_US, busy_us))
        yield decision


class Course(NamedTuple):
    """Rules, the number of workers at the start, and what was measured epoch by epoch."""

    rules: LoadRules
    workers: int
    measured: tuple[Measured, ...]


@st.composite
def courses(draw: st.DrawFn) -> Course:
    """Draw measurements on a load curve, with a number of workers that no controller chooses.

    Two curves of three begin with more than all workers can do: one under rules that go on
    shedding, the other under rules that add workers.
    """
    rules, workers, measured = draw(load_rules()), draw(st.integers(1, 9)), list[Measured]()
    curve, trouble = draw(loads(24)), draw(st.sampled_from(["none", "sheds", "grows"]))
    if trouble != "none":
        curve = [max(LEVELS)] * 3 + curve
        rules = replace(rules, out_after_us=0, most=rules.least + 4)
    if trouble == "sheds":
        shed = draw(st.sampled_from(["linear", "quadratic"]))
        margin, smoothing = draw(st.sampled_from([(2.0, rules.smoothing), (0.05, 1.0)]))
        rules = replace(rules, shed=shed, base=0.1, margin=margin, smoothing=smoothing)
        rules = replace(rules, most=rules.least)
    for epoch, load in enumerate(curve):
        elapsed_us = draw(st.sampled_from([1, 7, UNIT_US, UNIT_US, UNIT_US, 3 * UNIT_US]))
        m = draw(st.sampled_from([1, 2, 3, 5]))
        if draw(st.sampled_from([False, False, True])):
            last = max(0.0, rules.tau1 - rules.margin)
            limit = draw(st.sampled_from([rules.tau0, rules.tau1, rules.tau2, last]))
            measured.append(Measured(epoch, UNIT_US, (round(limit * UNIT_US),) * m))
            continue
        spread = st.floats(0.5, 1.5, allow_subnormal=False)
        busy_us = tuple(int(elapsed_us * load / 4 * draw(spread)) for _ in range(m))
        measured.append(Measured(epoch, elapsed_us, busy_us))
    return Course(rules, workers, tuple(measured))


AT_THRESHOLDS = Course(
    LoadRules(
        0.25,
        0.8,
        0.9,
        out_after_us=2 * UNIT_US,
        in_after_us=2 * UNIT_US,
        most=9,
        shed="linear",
        base=0.1,
        smoothing=1.0,
    ),
    2,
    tuple(
        Measured(epoch, UNIT_US, (busy_us,))
        for epoch, busy_us in enumerate([800, 900, 780, 750, 250, *[901] * 3, *[249] * 3])
    ),
)
"""Utilisations at tau1, at tau2, a margin below tau1 and at tau0, and just beyond for a while."""


@st.composite
def controlled_decisions(draw: st.DrawFn, config: JoinConfig) -> tuple[Decision, ...]:
    """Draw the decisions of the model's controller on a load curve."""
    rules = replace(draw(load_rules()), block_size=config.block_size)
    return tuple(follow(rules, config.workers, draw(loads(4))))


SHARES = st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0])


@st.composite
def arbitrary_decisions(draw: st.DrawFn) -> tuple[Decision, ...]:
    """Draw decisions without a controller: any number of workers may follow any other."""
    epochs = sorted(draw(st.sets(st.integers(0, 3), min_size=1, max_size=4)))
    sizes = st.sampled_from([1, 2, 5, 1_000])
    return tuple(
        Decision(epoch, draw(st.integers(1, 5)), draw(sizes), draw(SHARES)) for epoch in epochs
    )


def decisions(config: JoinConfig) -> st.SearchStrategy[tuple[Decision, ...]]:
    """Draw decisions of a run, or none."""
    return st.one_of(st.just(()), arbitrary_decisions(), controlled_decisions(config))

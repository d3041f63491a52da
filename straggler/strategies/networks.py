"""Hypothesis strategies: sources and their routes to the log, with disturbances and faults.

Rules of this file:

1. A plan is small, and scaled to the query: intervals are shorter than a window, delays as long as
   several, so that late tuples are the rule.
2. No tuple is lost for good: lost messages are sent again. So two plans with the same sources have
   the same tuples. ``strategies/clusters`` draws plans in which tuples are missing.
3. No integer is drawn from 100 or more: Hypothesis mixes constants of all loaded modules into wide
   ranges, so that the same seed would draw other values in another process.
4. Strategies are built once per scale, because building one takes longer than drawing from it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from hypothesis import strategies as st

from sim.kernel.disorder import Burst, Disturbance, Regime
from sim.kernel.distributions import (
    Constant,
    Distribution,
    Exponential,
    Lognormal,
    Mixture,
    Pareto,
    Uniform,
)
from sim.kernel.faults import Congest, Duplicate, Fault, Lose, Replay
from sim.kernel.link import HERE, QUIET, Noise, Place
from sim.kernel.log import last_event_times
from sim.kernel.plan import Plan
from sim.kernel.source import Source

STEPS = 96
SEEDS = st.integers(0, 99)
EVENTS_MAX = 24
"""Most tuples of one source: few, so that a person can read a failing case."""
PLACES = st.sampled_from([None, HERE, Place(0, 0, 1), Place(0, 1), Place(1)])
"""No link, or one of any tier to the log."""


def upto(limit_us: int, above: int = 0) -> st.SearchStrategy[int]:
    """Draw a time from ``above`` to about ``limit_us``, in equal steps."""
    return st.integers(0, STEPS).map(lambda step: above + limit_us * step // STEPS)


# ------------------------------------------------------------------------------------- sources


@cache
def delays(scale_us: int) -> st.SearchStrategy[Distribution]:
    """Draw delays from none to several windows, with light and heavy tails."""
    return st.sampled_from(
        [
            Constant(0),
            Uniform(0, scale_us / 4),
            Uniform(0, scale_us),
            Uniform(0, 4 * scale_us),
            Exponential(scale_us / 8),
            Exponential(scale_us),
            Lognormal(scale_us / 8, 1.0),
            Lognormal(scale_us, 1.0),
            Pareto(scale_us / 8, 1.1),
            Pareto(scale_us / 4, 2.0),
            Mixture(0.05, Constant(3 * scale_us)),
            Mixture(0.3, Constant(3 * scale_us)),
        ]
    )


class Way(NamedTuple):
    """Route of the tuples of a source to the log."""

    delay: Distribution
    in_order: bool
    place: Place | None


@cache
def ways(scale_us: int) -> st.SearchStrategy[Way]:
    """Draw a delay, and a place in the network or none."""
    return st.builds(Way, delays(scale_us), st.booleans(), PLACES)


@cache
def sources(scale_us: int) -> st.SearchStrategy[Source]:
    """Draw the tuples of one source: intervals from a sixth of a window to a whole one."""
    means_us = [scale_us // 6 or 1, scale_us // 2 or 1, scale_us]
    intervals = [kind(mean_us) for mean_us in means_us for kind in (Constant, Exponential)]
    return st.builds(
        Source,
        events=st.integers(6, EVENTS_MAX),
        interval=st.sampled_from(intervals),
        start_us=upto(scale_us),
        keys=st.sampled_from([("a",), ("b",), ("a", "b"), ("ä", ""), ("a", "b", "c")]),
        low=st.just(0),
        high=st.sampled_from([1, 100]),
        bits=st.sampled_from([0, 800]),
    )


@cache
def disturbances(scale_us: int, sources: int) -> st.SearchStrategy[Disturbance]:
    """Draw bursts and changes of regime."""
    times_us = upto(8 * scale_us)
    lengths_us = upto(4 * scale_us, above=1)
    some = st.sampled_from([None, *range(sources)])
    again = st.sampled_from([None, 5 * scale_us])
    return st.one_of(
        st.builds(
            Burst, times_us, lengths_us, st.sampled_from([0.3, 1.0]), delays(scale_us), some, again
        ),
        st.builds(Regime, times_us, delays(scale_us), some),
    )


def _moved(disturbance: Disturbance, last_us: Sequence[int]) -> Disturbance:
    """Return a disturbance that starts while tuples are sent."""
    if not isinstance(disturbance, Burst):
        return disturbance
    last = max(last_us) if disturbance.source is None else last_us[disturbance.source]
    return disturbance._replace(start_us=disturbance.start_us % (last + 1))


# -------------------------------------------------------------------------------------- faults


class Targets(NamedTuple):
    """Parts of a plan that faults may name."""

    sources: tuple[str, ...]
    links: tuple[str, ...]
    retries: bool
    """True if links resend what they lose."""


@cache
def faults(scale_us: int, targets: Targets) -> st.SearchStrategy[Fault]:
    """Draw a redelivery, or a fault of a link; nothing is lost for good."""
    at_us = upto(8 * scale_us)
    for_us = upto(4 * scale_us, above=1)
    nth = st.integers(0, EVENTS_MAX)
    kinds: list[st.SearchStrategy[Fault]] = [
        st.builds(Duplicate, st.sampled_from(targets.sources), nth, at_us)
    ]
    if targets.links:
        links, shares = st.sampled_from(targets.links), st.sampled_from([0.0, 0.01, 0.3])
        kinds.append(st.builds(Congest, links, at_us, for_us, shares))
        kinds.append(st.builds(Replay, links, nth, at_us))
        if targets.retries:
            kinds.append(st.builds(Lose, links, nth))
    return st.one_of(kinds)


# --------------------------------------------------------------------- the way to the log


@cache
def noises(scale_us: int) -> st.SearchStrategy[Noise]:
    """Draw the noise of links to the log; mostly none."""
    retry_us, again = scale_us / 4, Exponential(scale_us / 4)
    return st.sampled_from(
        [QUIET, QUIET, Noise(retry_us=retry_us), Noise(0.1, retry_us, 0.1, again)]
    )


def targets_of(sent: Sequence[Source], *, retries: bool) -> Targets:
    """Return the names of sources and links, as plans give them."""
    links = [f"source-{n}>log" for n, source in enumerate(sent) if source.place is not None]
    return Targets(tuple([f"source-{n}" for n in range(len(sent))]), tuple(links), retries)


@st.composite
def plans(
    draw: st.DrawFn, scale_us: int, sent: tuple[Source, ...], seed: int | None = None
) -> Plan:
    """Draw routes to the log for the tuples of these sources, with disturbances and faults.

    ``seed`` is that of the run; without it, bursts start before the first tuple of a source.
    """
    travelling = tuple([replace(each, **draw(ways(scale_us))._asdict()) for each in sent])
    noise = draw(noises(scale_us))
    calm = Plan(travelling, noise=noise)
    drawn = draw(st.lists(disturbances(scale_us, len(sent)), max_size=2))
    last_us = [each.start_us for each in sent] if seed is None else last_event_times(calm, seed)
    targets = targets_of(travelling, retries=noise.retry_us is not None)
    return replace(
        calm,
        disturbances=tuple([_moved(each, last_us) for each in drawn]),
        faults=tuple(draw(st.lists(faults(scale_us, targets), max_size=3))),
    )

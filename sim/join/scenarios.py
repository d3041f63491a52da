"""Pairs of streams for room ``join``. All simulated.

Even sources belong to R, odd ones to S. Values are whole numbers, uniform from 1 to
:data:`HIGHEST_VALUE`, and independent of everything.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from sim.kernel.distributions import Constant, Exponential
from sim.kernel.plan import Plan
from sim.kernel.source import Source

SECOND_US = 1_000_000
HIGHEST_VALUE = 10_000
KEYS = tuple("abcdefgh")
DELAY = Exponential(SECOND_US / 50)


class Rates(NamedTuple):
    """Rates of the two streams, and their duration."""

    r_hz: float
    s_hz: float
    seconds: float
    amplitude: float = 0.5
    """Share of its mean by which a rate rises and falls in waves."""
    wave_us: int = 10 * SECOND_US
    """Time from one wave to the next."""


def key_names(count: int) -> tuple[str, ...]:
    """Return names of so many keys."""
    return (*KEYS[:count], *[f"k{number}" for number in range(len(KEYS), count)])


def _source(
    rate_hz: float,
    start_s: float,
    seconds: float,
    is_regular: bool = False,
) -> Source:
    mean_us = SECOND_US / rate_hz
    return Source(
        events=round(rate_hz * seconds),
        interval=Constant(mean_us) if is_regular else Exponential(mean_us),
        start_us=round(start_s * SECOND_US),
        delay=DELAY,
        keys=KEYS,
        zipf=1.0,
        high=HIGHEST_VALUE,
    )


def steady(rates: Rates) -> Plan:
    """Return two Poisson streams with a little disorder."""
    r_hz, s_hz, seconds, *_ = rates
    sources = (_source(r_hz, 0, seconds), _source(s_hz, 0, seconds))
    return Plan(sources, name="steady, simulated")


def bursts(rates: Rates) -> Plan:
    """Return :func:`steady` streams with five times the rate in two twentieths of the time."""
    r_hz, s_hz, seconds, *_ = rates
    sources = list(steady(rates).sources)
    for start in (0.3, 0.7):
        for rate_hz in (r_hz, s_hz):
            sources.append(_source(4 * rate_hz, start * seconds, seconds / 20))
    return Plan(tuple(sources), name="bursts, simulated")


def doubling(rates: Rates) -> Plan:
    """Return two regular streams with twice the rate in the second quarter of the time."""
    r_hz, s_hz, seconds, *_ = rates
    spans = ((0.0, 1.0), (0.25, 0.25))
    sources = [
        _source(rate_hz, start * seconds, share * seconds, is_regular=True)
        for start, share in spans
        for rate_hz in (r_hz, s_hz)
    ]
    return Plan(tuple(sources), name="doubling, simulated")


def case(rates: Rates) -> Plan:
    """Return two regular streams with a burst, a long rise and a fall, at shares of the time.

    The rate rises to 1.75 times its size from 2/9 to 2.5/9, and to 2.15 times from 3/9 to 5/9; then
    it falls to 0.9 times.
    """
    spans = ((0.0, 9.0, 0.9), (0.0, 5.0, 0.1), (2.0, 0.5, 0.75), (3.0, 2.0, 1.15))
    sources = [
        _source(
            factor * rate_hz,
            start / 9 * rates.seconds,
            length / 9 * rates.seconds,
            is_regular=True,
        )
        for start, length, factor in spans
        for rate_hz in (rates.r_hz, rates.s_hz)
    ]
    return Plan(tuple(sources), name="case study, simulated")


def waves(rates: Rates) -> Plan:
    """Return two regular streams whose rates alternate around their means."""
    half_s = rates.wave_us / 2 / SECOND_US
    halves = max(1, round(rates.seconds / half_s))
    sources = [
        _source(rate_hz * (1 + sign * rates.amplitude), at * half_s, half_s, is_regular=True)
        for at in range(halves)
        for sign in ((1, -1)[at % 2],)
        for rate_hz in (rates.r_hz, rates.s_hz)
    ]
    return Plan(tuple(sources), name="waves, simulated")


SCENARIOS: Mapping[str, Callable[[Rates], Plan]] = {
    "steady": steady,
    "bursts": bursts,
    "doubling": doubling,
    "case": case,
    "waves": waves,
}

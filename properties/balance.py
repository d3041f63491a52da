"""The upper bound of docs/grouping.md, section 7: balance, if keys are drawn independently.

Source: the bound is an exponential potential, as in Talwar and Wieder, "Balanced Allocations: the
Weighted Case".

Rules of this file:

* The bound judges every window by itself: its candidates and times are fixed before its tuples
  come. The distribution of the keys must be known, so that nobody but a property can judge it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, expm1, log, log1p
from typing import TypeAlias

from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from model.checking.claims import SHOWN, Outcome, Verdict
from model.grouping import balance
from model.grouping.balance_claims import table_of
from model.grouping.evidence import Evidence, Window, evidence_of
from model.grouping.state import Table
from model.vocabulary import Event, Trace, Workload

UPPER = "no instance has more work than the bound allows"
TIMED = ("tag", "tag-literal")
"""Policies whose loads are times, and 0 at the start of a window."""

Weights: TypeAlias = Mapping[str, int] | Callable[[Event], Mapping[str, int]]
"""Weights with which keys are drawn: the same for all tuples, or by the source of a tuple. The
bound sums the expected cost of each tuple, so tuples may have different weights.
"""


@dataclass(frozen=True, slots=True)
class Balance:
    """The spread of a window's tuples over the instances."""

    window: int
    counts: tuple[int, ...]
    """Tuples at each instance."""
    work: int
    """Largest work of an instance (us)."""
    bound: float
    """Work that this router may give any instance, except with probability delta."""


def balances(
    workload: Workload, trace: Trace, weights: Weights, delta: float
) -> tuple[Balance, ...]:
    """Return the balance of every window, in order, if keys are drawn with these weights.

    Raises ``ValueError`` if the bound does not apply: for several senders, and for policies that
    do not balance times.
    """
    seen = evidence_of(workload, trace)
    if seen.config.senders > 1:
        msg = f"senders is {seen.config.senders}; the bound is for one"
        raise ValueError(msg)
    if seen.config.policy not in TIMED:
        msg = f"policy is {seen.config.policy!r}; the bound is for {' and '.join(TIMED)}"
        raise ValueError(msg)
    return tuple(_balance(seen, window, weights, delta) for window in seen.windows)


def _balance(seen: Evidence, window: Window, weights: Weights, delta: float) -> Balance:
    table = table_of(seen, window, seen.config)
    times_us = table.times_us
    counts, m = seen.counts(window), len(window.arrivals)
    work_us = sum(
        tuples * balance.least_time_us(_shares(drawn, table), times_us)
        for drawn, tuples in _drawn(window, weights)
    )
    return Balance(
        window.number,
        counts,
        max(balance.work_us(counts, times_us)),
        largest_work_us(work_us / m, m, times_us, delta),
    )


def _drawn(window: Window, weights: Weights) -> list[tuple[Mapping[str, int], int]]:
    """Return the distributions from which a window's tuples are drawn, with numbers of tuples."""
    if isinstance(weights, Mapping):
        return [(weights, len(window.arrivals))]
    found = [weights(event) for event in window.arrivals]
    times = Counter(map(id, found))
    return [(each, times[number]) for number, each in {id(each): each for each in found}.items()]


def _shares(weights: Mapping[str, int], table: Table) -> balance.Masses:
    """Return the shares of keys with the same candidates."""
    total = sum(weights.values())
    sets = ((frozenset(table.candidates(key)), each / total) for key, each in weights.items())
    return balance.masses(sets)


def check(workload: Workload, trace: Trace, weights: Weights, delta: float) -> Verdict:
    """Judge the bound. A right router breaks it with probability delta a window."""
    found = balances(workload, trace, weights, delta)
    against = tuple(
        f"In window {each.window} an instance has the work {each.work}; more than "
        f"{each.bound:.0f} has probability {delta:g} (counts {each.counts})."
        for each in found
        if each.work > each.bound
    )
    if against:
        return Verdict(UPPER, Outcome.BROKEN, against[0], against[:SHOWN])
    return Verdict(UPPER, Outcome.HOLDS, f"No work is above the bound (windows: {len(found):,}).")


def largest_work_us(lambda_us: float, m: int, times_us: Sequence[int], delta: float) -> float:
    """Return the bound that max l_i exceeds with probability delta at most.

    The bound holds for m tuples whose keys are drawn independently, one sender, loads that start at
    0 and count times, and candidates that are fixed before the draws. ``lambda_us`` is lambda* of
    the key shares.
    """

    def bound_us(log_a: float) -> float:
        return _bound_us(exp(log_a), lambda_us, m, times_us, delta)

    # Every a gives a bound. The best a lies between far less than one over the largest possible
    # work and the largest a that does not overflow.
    lowest, highest = log(1e-4 / (max(times_us) * (m + 1))), log(500 / max(times_us))
    found = minimize_scalar(bound_us, bounds=(lowest, highest), method="bounded")
    return float(found.fun)


def _bound_us(a: float, lambda_us: float, m: int, times_us: Sequence[int], delta: float) -> float:
    """Return the bound for one a > 0."""
    largest = a * max(times_us)
    growth = lambda_us * m * expm1(largest) / largest
    terms = [_log_expm1(largest) - _log_expm1(a * time_us) for time_us in times_us]
    return growth + (float(logsumexp(terms)) - log(delta)) / a


def _log_expm1(x: float) -> float:
    """Return ln(e^x - 1) without overflow, and without cancellation near 0."""
    return x + log1p(-exp(-x)) if x > 1 else log(expm1(x))

"""Balance of a window: imbalance, its least possible value, and its largest probable value.

Source: docs/grouping.md, section 7. The upper bound is an exponential potential, as in Talwar and
Wieder, "Balanced Allocations: the Weighted Case".

Rules of this file:

* Keys matter by their candidate sets alone: keys with the same candidates are one, with the sum of
  their shares (or counts).
* Time is in microseconds, speed in tuples a microsecond, shares are numbers that sum to 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from math import exp, expm1, log, log1p

import numpy as np
from scipy.optimize import linprog, minimize_scalar
from scipy.sparse import coo_array
from scipy.special import logsumexp

Masses = Mapping[frozenset[int], float]
"""Share or count of the tuples, by set of candidates."""


# ------------------------------------------------------------------------------------- imbalance


def work_us(counts: Sequence[int], times_us: Sequence[int]) -> list[int]:
    """Return l_i, the time that each instance is busy with its tuples."""
    return [count * time_us for count, time_us in zip(counts, times_us, strict=True)]


def imbalance(counts: Sequence[int], times_us: Sequence[int]) -> float:
    """Return I, as the sources report it: the excess of the largest work over the mean."""
    work = work_us(counts, times_us)
    return max(work) * len(work) / sum(work) - 1


def rho(counts: Sequence[int], times_us: Sequence[int]) -> float:
    """Return the excess of the makespan over that of a fluid, which a promise bounds."""
    return max(work_us(counts, times_us)) * total_speed(times_us) / sum(counts) - 1


def total_speed(times_us: Sequence[int]) -> float:
    """Return S, the sum of all speeds."""
    return sum(1 / time_us for time_us in times_us)


# -------------------------------------------------------------------------------- what must be


def masses(candidates: Iterable[tuple[frozenset[int], float]]) -> Masses:
    """Return the sum of the masses of keys with the same candidates."""
    summed: dict[frozenset[int], float] = {}
    for instances, mass in candidates:
        summed[instances] = summed.get(instances, 0.0) + mass
    return summed


def least_time_us(given: Masses, times_us: Sequence[int]) -> float:
    """Return lambda*: split every mass so that the largest work is least, by a linear programme.

    With counts for masses, no router has a smaller makespan.
    """
    pairs = [(row, i) for row, instances in enumerate(given) for i in sorted(instances)]
    rows, columns = np.array([row for row, _ in pairs]), np.array([i for _, i in pairs])
    parts, n = len(pairs), len(times_us)
    ones = np.ones(parts)
    # Unknowns: the part of each mass at each candidate, then lambda.
    whole = coo_array((ones, (rows, np.arange(parts))), shape=(len(given), parts + 1))
    times = np.array(times_us, dtype=np.float64)
    work = coo_array(
        (
            np.concatenate([times[columns], -np.ones(n)]),
            (
                np.concatenate([columns, np.arange(n)]),
                np.concatenate([np.arange(parts), np.full(n, parts)]),
            ),
        ),
        shape=(n, parts + 1),
    )
    found = linprog(
        np.append(np.zeros(parts), 1.0),
        A_ub=work.tocsr(),
        b_ub=np.zeros(n),
        A_eq=whole.tocsr(),
        b_eq=np.array(list(given.values())),
    )
    return float(found.fun)


# ------------------------------------------------------------------------------- what may be


def largest_work_us(lambda_us: float, m: int, times_us: Sequence[int], delta: float) -> float:
    """Return the bound that max l_i exceeds with probability delta at most.

    The bound holds for m tuples whose keys are drawn independently, one sender, loads that start at
    0 and count times, and candidates that are fixed before the draws. ``lambda_us`` is lambda* of
    the key shares.
    """

    def bound_us(log_a: float) -> float:
        a = exp(log_a)
        largest = a * max(times_us)
        growth = lambda_us * m * expm1(largest) / largest
        terms = [_log_expm1(largest) - _log_expm1(a * time_us) for time_us in times_us]
        return growth + (float(logsumexp(terms)) - log(delta)) / a

    # Every a gives a bound. The best a lies between far less than one over the largest possible
    # work and the largest a that does not overflow.
    lowest, highest = log(1e-4 / (max(times_us) * (m + 1))), log(500 / max(times_us))
    found = minimize_scalar(bound_us, bounds=(lowest, highest), method="bounded")
    return float(found.fun)


def _log_expm1(x: float) -> float:
    """Return ln(e^x - 1) without overflow, and without cancellation near 0."""
    return x + log1p(-exp(-x)) if x > 1 else log(expm1(x))


def tuples_above(times_us: Sequence[int]) -> int:
    """Return how many tuples of the slowest instance the makespan may be above that of a fluid.

    With two candidates drawn by speed, a tuple goes to an instance that is more than h tuples above
    only if both candidates are. So the share of the speed that is above is squared with every h. It
    ends when it is less than the share of a single instance (docs/grouping.md, section 7).
    """
    slowest_us = max(times_us)
    least_share = 1 / (total_speed(times_us) * slowest_us)
    # A tuple raises quicker instances by less than half of that: their share falls much faster.
    slow_speed = sum(1 / time_us for time_us in times_us if 2 * time_us > slowest_us)
    share = min(0.5, slow_speed / total_speed(times_us))
    return next(h for h in count(2) if share ** (2**h) <= least_share * (1 + 1e-9))

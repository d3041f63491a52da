"""Required coverage of sums and averages from the values themselves (docs/slack.md, section 5).

Source: Serfling 1974 and Hoeffding 1963 for sampling without replacement; Bernstein's inequality.

Rules of this file:

* Sums are float64 sums from left to right (``cumsum``, never ``sum``), over values sorted from
  the largest down, so that an independent implementation gets the same result.
* If a figure leaves float64, nothing is known: all N tuples are required.
"""

from collections.abc import Sequence
from math import ceil, isfinite, log

import numpy as np
from numpy.typing import NDArray

STRICT = 1 - 1e-9
"""Factor by which a loss that equals eps on paper is a failure, however it is rounded."""

Floats = NDArray[np.float64]


def rigorous_sum(values: Sequence[float], eps: float, d: float) -> int:
    """Return how many values >= 0 suffice with probability 1 - d, by the best of three bounds."""
    largest = _sorted(values)
    total = largest.size
    with np.errstate(over="ignore", invalid="ignore"):
        lost, squares = np.cumsum(largest), np.cumsum(largest * largest)[-1]
    if not (isfinite(lost[-1]) and isfinite(squares)):
        return total
    mean = lost[-1] / total
    variance = max(0.0, squares / total - mean * mean)
    limit = eps * lost[-1] * STRICT
    m = np.arange(1, total + 1)
    # It is a failure if the mean of the m missing values lies t above the mean of all.
    t = limit / m - mean
    serfling = (1 - (m - 1) / total) * (largest[0] - largest[-1]) ** 2
    bernstein = 2 * (variance + (largest[0] - mean) * t / 3)
    needed = log(1 / d)
    passed = (lost < limit) | (
        (t > 0)
        & (
            ((serfling > 0) & (2 * m * t * t >= needed * serfling))
            | ((bernstein > 0) & (m * t * t >= needed * bernstein))
        )
    )
    return int(total - (m[passed][-1] if passed.any() else 0))


def rigorous_average(values: Sequence[float], eps: float, d: float) -> int:
    """Return how many tuples suffice with probability 1 - d, by Serfling on either side."""
    largest = _sorted(values)
    total = largest.size
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        mean = np.cumsum(largest)[-1] / total
        width = largest[0] - largest[-1]
        squared = mean * mean
        g = log(2 / d) * (width * width) / (2 * eps * eps * squared)
    if not isfinite(squared) or not isfinite(g):
        return total
    required: int = ceil(g * (total + 1) / (total + g) - 1e-9)
    return min(total, max(1, required))


def _sorted(values: Sequence[float]) -> Floats:
    """Return the values from the largest down."""
    return np.sort(np.asarray(values, dtype=np.float64))[::-1]

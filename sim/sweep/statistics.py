"""Confidence intervals of simulation output."""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from model.vocabulary.settings import require


class Interval(NamedTuple):
    """An estimate with its two-sided confidence limits."""

    estimate: float
    low: float
    high: float


def mean_interval(samples: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the mean of independent samples with Student-t limits.

    Source: A. M. Law and W. D. Kelton, "Simulation Modeling and Analysis", the chapter on basic
    probability and statistics.

    Raise ``ValueError`` for fewer than two samples.
    """
    values: NDArray[np.float64] = np.asarray(samples, dtype=np.float64)
    require(0 < confidence < 1, "confidence", confidence, "between 0 and 1, both excluded")
    require(len(values) >= 2, "the number of samples", len(values), "at least 2")
    centre = float(values.mean())
    quantile = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1))
    half = quantile * float(values.std(ddof=1)) / sqrt(len(values))
    return Interval(centre, centre - half, centre + half)

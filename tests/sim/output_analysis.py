"""Analysis of a single long run, for tests that hold the kernel to queueing theory."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model.vocabulary.settings import require
from sim.sweep.statistics import Interval, mean_interval


def batch_means(samples: ArrayLike, confidence: float = 0.95, batches: int = 20) -> Interval:
    """Return the mean of a correlated, stationary series (without its warm-up), by batch means.

    Batches must be much longer than the correlation. Source: A. M. Law and W. D. Kelton,
    "Simulation Modeling and Analysis", the chapter on output analysis for a single system.

    Raise ``ValueError`` for fewer samples than batches, or fewer than two batches.
    """
    values: NDArray[np.float64] = np.asarray(samples, dtype=np.float64)
    require(batches >= 2, "batches", batches, "at least 2")
    require(len(values) >= batches, "the number of samples", len(values), f"at least {batches}")
    length = len(values) // batches
    return mean_interval(
        values[len(values) - length * batches :].reshape(batches, length).mean(axis=1), confidence
    )

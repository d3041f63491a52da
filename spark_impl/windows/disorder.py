"""The disorder of micro-clusters and the wait that follows (docs/watermark.md, sections 1 and 2).

Rules of this file:

* Two arrivals are out of order when the earlier one has the larger event time.
* An event time that enters a cluster adds its pairs with those present. One that leaves removes
  its own pairs. All other pairs keep their count.
"""

import numpy as np

from spark_impl.runtime.arrays import Ints


def count_inversions(k: int, cluster: Ints, inv: int, times: Ints) -> Ints:
    """Return the pairs out of order in the last ``k`` event times, after each of some arrivals.

    ``cluster`` holds the last ``k`` event times before them, fewer at the beginning of a stream.
    ``inv`` is its number of pairs out of order. Takes time O(k) per arrival.
    """
    every = np.concatenate((cluster, times))
    size = len(every)
    enters = np.zeros(size, np.min_scalar_type(min(k, size)))  # M = 0 allows any k
    leaves = np.zeros_like(enters)
    for distance in range(1, min(k, size)):
        wrong = (every[:-distance] > every[distance:]).view(np.uint8)
        enters[distance:] += wrong
        leaves[:-distance] += wrong
    change = enters[len(cluster) :].astype(np.int64)
    leaving = max(size - k, 0)
    change[len(change) - leaving :] -= leaves[:leaving]
    return inv + np.cumsum(change)


def wait_us(reading: str, longest_us: int, inv: Ints, n: Ints) -> Ints:
    """Return the wait that follows from pairs out of order (``inv``) and event times (``n``)."""
    pairs = np.maximum(n * (n - 1) // 2, 1)
    if reading == "fixed":
        return np.full(len(inv), longest_us, np.int64)
    if reading == "literal":
        return np.where(n > 1, longest_us * (pairs - inv) // pairs, 0)
    share = 2 if reading == "scaled" else 1
    disordered = np.minimum(share * longest_us * inv // pairs, longest_us)
    return np.where(n > 1, disordered, longest_us)


def cluster_sizes(k: int, before: int, more: int) -> Ints:
    """Return the size of a cluster after each of ``more`` arrivals; ``before`` is its size now."""
    return np.minimum(np.arange(before + 1, before + more + 1), min(k, before + more))

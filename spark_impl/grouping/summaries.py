"""Space-Saving summaries that are merged, never updated tuple by tuple (docs/grouping.md, 4)."""

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_impl.runtime.arrays import Ints


class Summary(NamedTuple):
    """Counters of keys, the largest first; of :func:`exact` counts in any order."""

    keys: pa.StringArray
    counts: Ints
    """At least the true frequency."""
    errors: Ints
    """By how much it may be too large."""
    tuples: int
    """N, all that were counted."""
    floor: int
    """What a key that is not here may have been counted at most."""


EMPTY = Summary(pa.array([], pa.string()), np.empty(0, np.int64), np.empty(0, np.int64), 0, 0)


def capacity(eps: float) -> int:
    """Counters that keep the error within a share of ``eps``."""
    return ceil(1 / eps)


def exact(keys: pa.DictionaryArray) -> Summary:
    """All keys of a micro-batch, counted; every key of the dictionary occurs."""
    counts = np.bincount(keys.indices.to_numpy(), minlength=len(keys.dictionary))
    return Summary(keys.dictionary, counts, np.zeros_like(counts), len(keys), 0)


def merged(one: Summary, other: Summary, size: int) -> Summary:
    """Both together, in at most ``size`` counters."""
    keys = pc.unique(pa.concat_arrays([one.keys, other.keys]))
    counts, errors = np.zeros((2, len(keys)), np.int64)
    for each in (one, other):
        # A last row for the keys that it does not have.
        where = pc.index_in(keys, value_set=each.keys).fill_null(len(each.keys)).to_numpy()
        counts += np.append(each.counts, each.floor)[where]
        errors += np.append(each.errors, each.floor)[where]
    table = pa.table({"count": counts, "key": keys})
    largest_first = [("count", "descending"), ("key", "ascending")]
    kept = pc.select_k_unstable(table, size, largest_first).to_numpy()
    floor = int(counts[kept[-1]]) if len(kept) == size else 0
    tuples = one.tuples + other.tuples
    return Summary(keys.take(kept), counts[kept], errors[kept], tuples, floor)


def merged_all(summaries: Iterable[Summary], size: int) -> Summary:
    """All of them, from left to right."""
    result: Summary | None = None
    for each in summaries:
        result = each if result is None else merged(result, each, size)
    return EMPTY if result is None else result

"""Keys: their hashes, their counts, and the table of heavy ones (docs/grouping.md, 2 to 4).

A text is hashed once. Everything else is arithmetic on arrays of unsigned 64-bit integers, which
wrap around. Counts are Space-Saving summaries, which are merged, never updated tuple by tuple.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import ceil
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from model.vocabulary import GroupingConfig
from spark_impl.runtime.arrays import Floats, Ints, Unsigned

_STEP = 0x9E3779B97F4A7C15
_MODULUS = 1 << 64
_AT_ONCE = 1 << 20
"""Most numbers in a table of hashes."""


def base_hashes(keys: Sequence[str], seed: int) -> Unsigned:
    """Return the hash of each key that all its other hashes are derived from."""
    digest = xxhash.xxh64_intdigest
    return np.array([digest(key.encode("utf-8"), seed) for key in keys], np.uint64)


def hash_numbered(base: Unsigned, number: int) -> Unsigned:
    """Return ``h(k, number)`` for every key."""
    bits = base + np.uint64(number * _STEP % _MODULUS)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def hash_modulo(base: Unsigned, number: int, places: int) -> Ints:
    """Return ``h(k, number) mod places`` for every key."""
    return (hash_numbered(base, number) % np.uint64(places)).astype(np.int64)


def hash_unit(base: Unsigned, number: int) -> Floats:
    """Return ``u(k, number)`` for every key: above 0, at most 1."""
    return ((hash_numbered(base, number) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def candidate_pairs(base: Unsigned, instances: int) -> Ints:
    """Return ``first`` and ``second`` of every key as two columns; as one for a single instance."""
    first = hash_modulo(base, 1, instances)
    if instances == 1:
        return first[:, np.newaxis]
    second = (first + 1 + hash_modulo(base, 2, instances - 1)) % instances
    return np.stack((first, second), axis=1)


def rendezvous_order(base: Unsigned, times: Sequence[int], length: int) -> Ints:
    """Return the first ``length`` instances of each key's weighted rendezvous order, as columns."""
    rows = max(1, _AT_ONCE // len(times))
    parts = [
        _leading_block(base[start : start + rows], times, length)
        for start in range(0, len(base), rows)
    ]
    return np.concatenate(parts) if parts else np.empty((0, length), np.int64)


def _leading_block(base: Unsigned, times: Sequence[int], length: int) -> Ints:
    scores = np.stack(
        [-np.log(hash_unit(base, place + 1)) * time for place, time in enumerate(times)], axis=1
    )
    if 2 * length < len(times):
        # Few of many: repeat the search for the least score; argmin takes the first of equals.
        found = np.empty((len(base), length), np.int64)
        for column in range(length):
            found[:, column] = scores.argmin(axis=1)
            np.put_along_axis(scores, found[:, column : column + 1], np.inf, axis=1)
        return found
    return np.argsort(scores, axis=1, kind="stable")[:, :length]


class Summary(NamedTuple):
    """Counters of keys, the largest first; those of :func:`count_exactly` have any order."""

    keys: pa.StringArray
    counts: Ints
    """Upper bounds of the true frequencies."""
    errors: Ints
    """Upper bounds of the excess of each count."""
    tuples: int
    """N, the number of all counted tuples."""
    floor: int
    """Upper bound of the frequency of every key that is not here."""


EMPTY = Summary(pa.array([], pa.string()), np.empty(0, np.int64), np.empty(0, np.int64), 0, 0)


def summary_capacity(eps: float) -> int:
    """Return the number of counters that keep the error within a share of ``eps``."""
    return ceil(1 / eps)


def count_exactly(keys: pa.DictionaryArray) -> Summary:
    """Count all keys of a micro-batch; every key of the dictionary occurs."""
    counts = np.bincount(keys.indices.to_numpy(), minlength=len(keys.dictionary))
    return Summary(keys.dictionary, counts, np.zeros_like(counts), len(keys), 0)


def merge(one: Summary, other: Summary, size: int) -> Summary:
    """Merge two summaries into at most ``size`` counters."""
    keys = pc.unique(pa.concat_arrays([one.keys, other.keys]))
    counts, errors = np.zeros((2, len(keys)), np.int64)
    for each in (one, other):
        # The appended element is for keys that the summary does not have.
        where = pc.index_in(keys, value_set=each.keys).fill_null(len(each.keys)).to_numpy()
        counts += np.append(each.counts, each.floor)[where]
        errors += np.append(each.errors, each.floor)[where]
    table = pa.table({"count": counts, "key": keys})
    largest_first = [("count", "descending"), ("key", "ascending")]
    kept = pc.select_k_unstable(table, size, largest_first).to_numpy()
    floor = int(counts[kept[-1]]) if len(kept) == size else 0
    tuples = one.tuples + other.tuples
    return Summary(keys.take(kept), counts[kept], errors[kept], tuples, floor)


def merge_all(summaries: Iterable[Summary], size: int) -> Summary:
    """Merge all summaries, from left to right."""
    result: Summary | None = None
    for each in summaries:
        result = each if result is None else merge(result, each, size)
    return EMPTY if result is None else result


class HeavyKey(NamedTuple):
    """A key above the threshold."""

    counted: int
    error: int


class Table(NamedTuple):
    """The heavy keys and the times of a window: all that routers need to know of it."""

    window: int
    times: tuple[int, ...]
    heavy: dict[str, HeavyKey]
    tuples: int
    """N, the number of tuples in the window before."""
    placed: dict[str, int] | None = None
    """The instance of each key that was heavy when the map was made (``dkg`` only)."""
    buckets: tuple[int, ...] | None = None
    """The instance of each bucket; ``None`` before the first map (``dkg`` only)."""
    tiers: tuple[int, ...] = ()
    """The distances of a window after the first of a stream (``nag-dynamic``)."""

    @property
    def speed(self) -> float:
        """S, the sum of the speeds of all instances, added by index."""
        return list(accumulate(1 / time for time in self.times))[-1]


def find_heavy_keys(config: GroupingConfig, summary: Summary) -> dict[str, HeavyKey]:
    """Return the keys above the threshold, those with the largest counts first."""
    rows = zip(summary.keys.to_pylist(), summary.counts, summary.errors, strict=True)
    least = config.theta_share * summary.tuples
    return {
        key: HeavyKey(int(counted), int(error)) for key, counted, error in rows if counted > least
    }


def place_buckets(
    config: GroupingConfig, heavy: dict[str, HeavyKey], buckets: Sequence[int]
) -> tuple[dict[str, int], tuple[int, ...]]:
    """Place heavy keys and buckets for ``dkg``: the largest first, each where the load is least."""
    weights = list(buckets)
    own = hash_modulo(base_hashes(list(heavy), config.hash_seed), 3, len(weights))
    for (_, key), bucket in zip(heavy.items(), own.tolist(), strict=True):
        weights[bucket] -= key.counted
    items = [(-key.counted, 0, name, 0) for name, key in heavy.items()]
    items += [(-max(0, weight), 1, "", number) for number, weight in enumerate(weights)]
    loads = [0] * config.instances
    found: dict[str, int] = {}
    places = [0] * len(weights)
    for negative, is_bucket, name, number in sorted(items):
        place = loads.index(min(loads))
        loads[place] -= negative
        if is_bucket:
            places[number] = place
        else:
            found[name] = place
    return found, tuple(places)

"""From tuples to panes, from panes to window answers, with array operations only.

Rules of this file:

* A tuple counts for a run of windows ``lo .. last``: the windows that contain it and are still
  open. Everything here works on such runs, so no step depends on how many windows a tuple has.
* The last window of a pane is the last window of each of its tuples.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from spark_impl.runtime.arrays import Floats, Ints, Records
from spark_impl.windows.asked import Asked
from spark_impl.windows.records import PANE, records

RANK_AGGREGATES = ("median", "quantile")
_PAIRS_AT_ONCE = 4_000_000


class Answers(NamedTuple):
    """Aggregates of some windows, ordered by window, then key; columns of equal length."""

    j: Ints
    key: Ints
    n: Ints
    value: Floats


def compact(codes: Ints) -> tuple[Ints, Ints]:
    """The distinct codes in increasing order, and for every code its position among them."""
    if not len(codes):
        return codes, codes
    least = codes.min()
    span = int(codes.max()) - int(least) + 1
    if span > 4 * len(codes) + 1024:
        distinct, position = np.unique(codes, return_inverse=True)
        return distinct, position
    offset = codes - least
    present = np.zeros(span, np.bool_)
    present[offset] = True
    return np.flatnonzero(present) + least, (np.cumsum(present) - 1)[offset]


def stable_order(codes: Ints, size: int) -> Ints:
    """Stable order of codes below ``size``; numpy sorts 16 bits by radix, a multiple faster."""
    return np.argsort(codes.astype(np.uint16) if size < 1 << 16 else codes, kind="stable")


def expand(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """All j with ``lo <= j <= hi`` of every row: (row, j), rows in order; empty runs allowed."""
    count = np.maximum(hi - lo + 1, 0)
    row = np.repeat(np.arange(len(lo)), count)
    before = np.cumsum(count) - count
    return row, np.arange(len(row)) - before[row] + lo[row]


def by_window(j: Ints, key: Ints, n_keys: int) -> tuple[Ints, Ints, Ints]:
    """Distinct (window, key) in that order, and for every row its position among them."""
    if not len(j):
        return j, key, j
    least = j.min()
    if (int(j.max()) - int(least) + 1) * n_keys < 1 << 62:
        codes, position = compact((j - least) * n_keys + key)
        return codes // n_keys + least, codes % n_keys, position
    distinct, rank = np.unique(j, return_inverse=True)  # windows aeons apart
    codes, position = compact(rank * n_keys + key)
    return distinct[codes // n_keys], codes % n_keys, position


def fill(asked: Asked, key: Ints, ts: Ints, value: Floats, lo: Ints, n_keys: int) -> Records:
    """Panes of tuples that count for the windows from ``lo`` on (at least one each)."""
    spec = asked.windows
    pane = ts // spec.pane_us
    if asked.aggregate in RANK_AGGREGATES:
        return records(PANE, len(ts), key=key, pane=pane, lo=lo, n=1, acc=value)
    first = (ts - spec.size_us) // spec.slide_us + 1
    runs = -(-spec.size_us // spec.slide_us) + 1  # lo - first lies below this
    panes, keys_and_runs, position = by_window(pane, (lo - first) * n_keys + key, runs * n_keys)
    firsts = (panes * spec.pane_us - spec.size_us) // spec.slide_us + 1
    n = np.bincount(position, minlength=len(panes))
    return records(
        PANE,
        len(panes),
        key=keys_and_runs % n_keys,
        pane=panes,
        lo=firsts + keys_and_runs // n_keys,
        n=n,
        acc=_combine(asked, position, value, len(panes)),
    )


def merge(asked: Asked, panes: Records, n_keys: int) -> Records:
    """The same panes with one record for each (pane, key, lo); rank aggregates keep all values."""
    if asked.aggregate in RANK_AGGREGATES or not len(panes):
        return panes
    order = np.lexsort((panes["lo"], panes["key"], panes["pane"]))
    panes = panes[order]
    new = np.ones(len(panes), np.bool_)
    new[1:] = np.any([panes[c][1:] != panes[c][:-1] for c in ("pane", "key", "lo")], axis=0)
    position = np.cumsum(new) - 1
    out = panes[new]
    out["n"] = np.bincount(position, weights=panes["n"])
    out["acc"] = _combine(asked, position, panes["acc"], len(out))
    return out


def last_window(asked: Asked, panes: Records) -> Ints:
    """The last window of every pane."""
    spec = asked.windows
    last: Ints = panes["pane"] * spec.pane_us // spec.slide_us
    return last


def answers(asked: Asked, panes: Records, before: int, n_keys: int) -> Answers:
    """Answers of all windows below ``before`` that have tuples."""
    lo = panes["lo"]
    hi = np.minimum(last_window(asked, panes), before - 1)
    if not len(lo):
        return Answers(lo, lo, lo, panes["acc"])
    least, most = int(lo.min()), int(hi.max())
    pairs = int(np.maximum(hi - lo + 1, 0).sum())
    if pairs <= _PAIRS_AT_ONCE or least == most:
        return _answers(asked, panes, lo, hi, n_keys)
    middle = (least + most) // 2  # too many pairs for one go: early windows, then late ones
    early = answers(asked, panes, middle + 1, n_keys)
    rest = panes[hi > middle]
    rest["lo"] = np.maximum(rest["lo"], middle + 1)
    late = answers(asked, rest, before, n_keys)
    return Answers(*(np.concatenate(both) for both in zip(early, late, strict=True)))


def _answers(asked: Asked, panes: Records, lo: Ints, hi: Ints, n_keys: int) -> Answers:
    row, each_j = expand(lo, hi)
    j, key, position = by_window(each_j, panes["key"][row], n_keys)
    n = np.bincount(position, weights=panes["n"][row], minlength=len(j)).astype(np.int64)
    if asked.aggregate in RANK_AGGREGATES:
        value = _ranked(asked, position, panes["acc"][row], n)
    elif asked.aggregate == "count":
        value = n.astype(np.float64)
    else:
        value = _combine(asked, position, panes["acc"][row], len(j))
        if asked.aggregate == "avg":
            value = value / n
    return Answers(j, key, n, value)


def _combine(asked: Asked, position: Ints, value: Floats, size: int) -> Floats:
    """Sum, minimum or maximum of the values at each position."""
    if asked.aggregate in ("min", "max"):
        pick, neutral = (np.minimum, np.inf) if asked.aggregate == "min" else (np.maximum, -np.inf)
        out = np.full(size, neutral)
        pick.at(out, position, value)
        return out
    if asked.aggregate == "count":
        return np.zeros(size)
    return np.asarray(np.bincount(position, weights=value, minlength=size), np.float64)


def _ranked(asked: Asked, position: Ints, value: Floats, n: Ints) -> Floats:
    """Of every window's values the one of rank ceil(q * n)."""
    q = Fraction(repr(asked.q)) if asked.aggregate == "quantile" else Fraction(1, 2)
    order = np.lexsort((value, position))
    rank = np.array([-(-q.numerator * size // q.denominator) for size in n.tolist()], np.int64)
    picked: Floats = value[order][np.cumsum(n) - n + rank - 1]
    return picked

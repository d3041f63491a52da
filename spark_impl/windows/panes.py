"""Computes panes from tuples and window answers from panes, with array operations only.

Rules of this file:

* A tuple counts for a run of windows ``lo .. last``: the windows that contain it and are still
  open. All functions work on runs, so no step depends on the number of windows of a tuple.
* The last window of a pane is the last window of each of its tuples.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from spark_impl.runtime.arrays import Floats, Ints, Records
from spark_impl.windows.records import PANE, fill_records
from spark_impl.windows.room import WindowSettings

RANK_AGGREGATES = ("median", "quantile")
_EXTREMES = {"min": (np.minimum, np.inf), "max": (np.maximum, -np.inf)}
PAIRS_AT_ONCE = 4_000_000
_FEW = 24
"""Most codes that a loop numbers faster than numpy, each call of which takes microseconds."""


class Answers(NamedTuple):
    """The aggregates of windows, ordered by window, then key; columns of equal length."""

    j: Ints
    key: Ints
    n: Ints
    value: Floats


def compact(codes: Ints) -> tuple[Ints, Ints]:
    """Return the distinct codes, increasing, and the position of every code among them."""
    if len(codes) <= _FEW:
        listed = codes.tolist()
        number = {code: place for place, code in enumerate(sorted({*listed}))}
        return np.array([*number], np.int64), np.array([number[code] for code in listed], np.int64)
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
    """Return the stable order of codes below ``size``; numpy sorts 16 bits fast, by radix."""
    return np.argsort(codes.astype(np.min_scalar_type(size)), kind="stable")


def expand(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """Return all (row, j) with ``lo <= j <= hi``, rows in order; runs may be empty."""
    count = np.maximum(hi - lo + 1, 0)
    row = np.repeat(np.arange(len(lo)), count)
    before = np.cumsum(count) - count
    return row, np.arange(len(row)) - before[row] + lo[row]


def group_by_window(j: Ints, key: Ints, n_keys: int) -> tuple[Ints, Ints, Ints]:
    """Return the distinct (window, key) in that order, and every row's position among them."""
    if not len(j):
        return j, key, j
    least = j.min()
    if (int(j.max()) - int(least) + 1) * n_keys < 1 << 62:
        codes, position = compact((j - least) * n_keys + key)
        return codes // n_keys + least, codes % n_keys, position
    distinct, rank = np.unique(j, return_inverse=True)  # windows aeons apart
    codes, position = compact(rank * n_keys + key)
    return distinct[codes // n_keys], codes % n_keys, position


def fill(
    settings: WindowSettings, key: Ints, ts: Ints, value: Floats, lo: Ints, n_keys: int
) -> Records:
    """Return the panes of tuples that count for the windows from ``lo`` on, at least one each."""
    spec = settings.windows
    pane = ts // spec.pane_us
    if settings.aggregate in RANK_AGGREGATES:
        return fill_records(PANE, len(ts), key=key, pane=pane, lo=lo, n=1, acc=value)
    first = (ts - spec.size_us) // spec.slide_us + 1
    runs = -(-spec.size_us // spec.slide_us) + 1  # lo - first lies below this
    panes, runs_and_keys, position = group_by_window(
        pane, (lo - first) * n_keys + key, runs * n_keys
    )
    firsts = (panes * spec.pane_us - spec.size_us) // spec.slide_us + 1
    n = np.bincount(position, minlength=len(panes))
    return fill_records(
        PANE,
        len(panes),
        key=runs_and_keys % n_keys,
        pane=panes,
        lo=firsts + runs_and_keys // n_keys,
        n=n,
        acc=_combine(settings, position, value, len(panes)),
    )


def merge(settings: WindowSettings, panes: Records, n_keys: int) -> Records:
    """Merge panes to one record for each (pane, key, lo); rank aggregates keep all values."""
    if settings.aggregate in RANK_AGGREGATES or not len(panes):
        return panes
    order = np.lexsort((panes["lo"], panes["key"], panes["pane"]))
    panes = panes[order]
    new = np.ones(len(panes), np.bool_)
    new[1:] = np.any([panes[c][1:] != panes[c][:-1] for c in ("pane", "key", "lo")], axis=0)
    position = np.cumsum(new) - 1
    out = panes[new]
    out["n"] = np.bincount(position, weights=panes["n"])
    out["acc"] = _combine(settings, position, panes["acc"], len(out))
    return out


def last_window(settings: WindowSettings, panes: Records) -> Ints:
    """Return the last window of every pane."""
    spec = settings.windows
    last: Ints = panes["pane"] * spec.pane_us // spec.slide_us
    return last


def answers(settings: WindowSettings, panes: Records, before: int, n_keys: int) -> Answers:
    """Return the answers of all windows below ``before`` that have tuples."""
    lo = panes["lo"]
    hi = np.minimum(last_window(settings, panes), before - 1)
    if not len(lo):
        return Answers(lo, lo, lo, panes["acc"])
    least, most = int(lo.min()), int(hi.max())
    pairs = int(np.maximum(hi - lo + 1, 0).sum())
    if pairs <= PAIRS_AT_ONCE or least == most:
        return _answers(settings, panes, lo, hi, n_keys)
    middle = (least + most) // 2  # too many pairs at once: early windows, then late ones
    early = answers(settings, panes, middle + 1, n_keys)
    rest = panes[hi > middle]
    rest["lo"] = np.maximum(rest["lo"], middle + 1)
    late = answers(settings, rest, before, n_keys)
    return Answers(*(np.concatenate(both) for both in zip(early, late, strict=True)))


def _answers(settings: WindowSettings, panes: Records, lo: Ints, hi: Ints, n_keys: int) -> Answers:
    row, each_j = expand(lo, hi)
    j, key, position = group_by_window(each_j, panes["key"][row], n_keys)
    n = np.bincount(position, weights=panes["n"][row], minlength=len(j)).astype(np.int64)
    if settings.aggregate in RANK_AGGREGATES:
        value = _ranked(settings, position, panes["acc"][row], n)
    elif settings.aggregate == "count":
        value = n.astype(np.float64)
    else:  # another aggregate than these is refused by _combine
        value = _combine(settings, position, panes["acc"][row], len(j))
        if settings.aggregate == "avg":
            value = value / n
    return Answers(j, key, n, value)


def _combine(settings: WindowSettings, position: Ints, value: Floats, size: int) -> Floats:
    """Return what an aggregate keeps of the values at each position: 0 for counts.

    That is their minimum or maximum, and their sum for sums and averages. Raise ``ValueError`` for
    an aggregate that is none of these.
    """
    if settings.aggregate in _EXTREMES:
        pick, neutral = _EXTREMES[settings.aggregate]
        out = np.full(size, neutral)
        pick.at(out, position, value)
        return out
    if settings.aggregate == "count":
        return np.zeros(size)
    if settings.aggregate in ("sum", "avg"):
        return np.asarray(np.bincount(position, weights=value, minlength=size), np.float64)
    msg = f"there is no aggregate {settings.aggregate!r}"
    raise ValueError(msg)


def _ranked(settings: WindowSettings, position: Ints, value: Floats, n: Ints) -> Floats:
    """Return the value of rank ceil(q * n) of every window."""
    q = {"median": Fraction(1, 2), "quantile": Fraction(repr(settings.q))}[settings.aggregate]
    order = np.lexsort((value, position))
    rank = np.array([-(-q.numerator * size // q.denominator) for size in n.tolist()], np.int64)
    picked: Floats = value[order][np.cumsum(n) - n + rank - 1]
    return picked

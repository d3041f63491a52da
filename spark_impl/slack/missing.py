"""The required tuples of sums and averages, from the values in a window (docs/slack.md, section 5).

Rules of this file:

* A block is a matrix with a row for each of some windows: its values, largest first, then zeros.
  Column ``i`` stands for the case that the ``i + 1`` largest values are missing.
* Sums are cumulative, from left to right; no other order of addition is used.
"""

from collections.abc import Iterator
from functools import lru_cache
from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.random import PCG64, Generator

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Bools, Floats, Ints

SAMPLE = 1024
"""Most tuples of a window that the permutation method uses; a larger window is sampled."""
_CONFIDENCE = 0.95
_ROUNDING = 1e-9
_CELLS = 1 << 20
_CELLS_PERMUTED = 1 << 23
_STEPS_AT_ONCE = 4


class _Block(NamedTuple):
    """Windows of similar size."""

    which: Ints
    """Positions of these windows among all windows."""
    n: Ints
    values: Floats
    inside: Bools

    @property
    def last(self) -> Floats:
        """The smallest value of each window."""
        smallest: Floats = self.values[np.arange(len(self.n)), self.n - 1]
        return smallest


def required_tuples(
    config: SlackConfig, d: float, total: Ints, values: Floats, task: int, order: int
) -> Ints:
    """Return n_req of consecutive windows.

    ``values`` holds the values of the first window, largest first, then those of the next.
    ``total`` is the number of values of each, at least 1. The first window is judgement ``order``
    of the task.
    """
    out = total.copy()
    width = SAMPLE * ceil(10 / d) if config.method == "permutation" else 0
    for block in _blocks(total, values, width):
        with np.errstate(all="ignore"):
            if config.sampling == "adversarial":
                adversarial = {"sum": _adversarial_sum, "avg": _adversarial_avg}
                n_req = adversarial[config.aggregate](block, config.eps)
            elif config.method == "permutation":
                n_req = _permuted_sum(block, config.eps, d, task, order)
            else:
                rigorous = {"sum": _rigorous_sum, "avg": _rigorous_avg}
                n_req = rigorous[config.aggregate](block, config.eps, d)
        out[block.which] = np.clip(n_req, 0, block.n)
    return out


def _blocks(total: Ints, values: Floats, row_cost: int) -> Iterator[_Block]:
    """Yield all windows in blocks of similar size."""
    start = np.cumsum(total) - total
    by_size = np.argsort(total, kind="stable")[::-1]
    first = 0
    while first < len(by_size):
        width = int(total[by_size[first]])
        cost = max(width, 64) if not row_cost else row_cost * max(min(width, SAMPLE), 64) // SAMPLE
        limit = _CELLS_PERMUTED if row_cost else _CELLS
        which = by_size[first : first + max(1, limit // cost)]
        which = which[2 * total[which] + 64 > width]  # a small window would be mostly padding
        n = total[which]
        column = np.arange(width)
        inside = column < n[:, None]
        index = np.minimum(start[which][:, None] + column, len(values) - 1)
        yield _Block(which, n, np.where(inside, values[index], 0.0), inside)
        first += len(which)


def _limit(e: float, whole: Floats) -> Floats:
    """Return the limit that a loss must stay below, less a margin for rounding."""
    return e * whole * (1 - _ROUNDING)


def _adversarial_sum(block: _Block, e: float) -> Ints:
    missing = np.cumsum(block.values, axis=1)
    whole = missing[:, -1:]
    m = (missing < _limit(e, whole)).sum(axis=1)
    return np.where(np.isfinite(whole[:, 0]), block.n - m, block.n)


def _adversarial_avg(block: _Block, e: float) -> Ints:
    n, (rows, width) = block.n[:, None], block.values.shape
    column = np.arange(width)
    from_end = np.maximum(n - 1 - column, 0)
    rising = np.where(block.inside, np.take_along_axis(block.values, from_end, axis=1), 0.0)
    largest, smallest = np.cumsum(block.values, axis=1), np.cumsum(rising, axis=1)
    whole = largest[:, -1:]
    mean = whole / n
    good = block.inside.copy()
    for missing in (largest, smallest):
        before = np.concatenate((np.zeros((rows, 1)), missing[:, :-1]), axis=1)
        good &= np.abs((whole - before) / (n - column) - mean) < _limit(e, np.abs(mean))
    m = np.minimum.accumulate(good, axis=1).sum(axis=1) - 1
    finite = np.isfinite(largest[:, -1]) & np.isfinite(smallest[:, -1])
    return np.where(finite, block.n - m, block.n)


def _rigorous_sum(block: _Block, e: float, d: float) -> Ints:
    n, goal = block.n[:, None], log(1 / d)
    missing = np.cumsum(block.values, axis=1)
    whole = missing[:, -1:]
    squares = np.cumsum(block.values * block.values, axis=1)[:, -1:]
    mean = whole / n
    var = np.maximum(0.0, squares / n - mean * mean)
    largest, smallest = block.values[:, :1], block.last[:, None]
    m = np.arange(1, block.values.shape[1] + 1)
    limit = _limit(e, whole)
    t = limit / m - mean
    spread = largest - smallest
    serfling = (1 - (m - 1) / n) * (spread * spread)
    bernstein = 2 * (var + (largest - mean) * t / 3)
    passed = (serfling != 0) & (2 * m * (t * t) / serfling >= goal)
    passed |= (bernstein != 0) & (m * (t * t) / bernstein >= goal)
    passed = block.inside & ((missing < limit) | ((t > 0) & passed))
    most = (passed * m).max(axis=1)
    finite = np.isfinite(whole[:, 0]) & np.isfinite(squares[:, 0])
    return np.where(finite, block.n - most, block.n)


def _rigorous_avg(block: _Block, e: float, d: float) -> Ints:
    n = block.n
    mean = np.cumsum(block.values, axis=1)[:, -1] / n
    spread = block.values[:, 0] - block.last
    squared = mean * mean
    g = log(2 / d) * (spread * spread) / (2 * (e * e) * squared)
    needed = np.ceil(g * (n + 1) / (n + g) - _ROUNDING)
    needed = np.where(np.isfinite(needed) & np.isfinite(squared) & (mean != 0), needed, n)
    return np.maximum(needed, 1).astype(np.int64)


def _permuted_sum(block: _Block, e: float, d: float, task: int, order: int) -> Ints:
    repeats = ceil(10 / d)
    size = np.minimum(block.n, SAMPLE)
    column = np.arange(int(size.max()))
    place = np.minimum(column * block.n[:, None] // size[:, None], block.n[:, None] - 1)
    sample = np.take_along_axis(block.values, place, axis=1)
    sample[column >= size[:, None]] = 0.0
    whole = np.cumsum(sample, axis=1)[:, -1]
    dice = [Generator(PCG64([task, order + which])) for which in block.which.tolist()]
    m = _survived(sample, size, _limit(e, whole), dice, repeats, _failures_allowed(repeats, d))
    return np.where(np.isfinite(whole), block.n - m * block.n // size, block.n)


@lru_cache
def _failures_allowed(repeats: int, d: float) -> int:
    """Return the most failures whose upper confidence limit of the probability is at most d."""
    # Imported here because it is slow to import and few queries need it.
    from scipy.special import betainc

    failures = np.arange(
        repeats
    )  # if every repeat fails, the probability may be 1, which is above d
    at_most = betainc(repeats - failures, failures + 1, 1 - d)
    return int((at_most <= 1 - _CONFIDENCE).sum()) - 1


def _survived(
    sample: Floats, size: Ints, limit: Floats, dice: list[Generator], repeats: int, allowed: int
) -> Ints:
    """Return the most missing tuples at which at most ``allowed`` permutations reach their limit.

    Permutation r of window b is row ``b * repeats + r`` of ``order``. Step i swaps its position i
    with a later one, and position i is not read again.
    """
    windows, width = sample.shape
    order = np.tile(np.arange(width, dtype=np.int16), (windows * repeats, 1)).reshape(-1)
    row = np.arange(windows * repeats) * width
    own = np.repeat(np.arange(windows) * width, repeats)
    flat, missing = sample.reshape(-1), np.zeros(windows * repeats)
    survived = np.full(windows, -1)
    for i in range(width):
        if i % _STEPS_AT_ONCE == 0:
            draws = np.stack([each.random((_STEPS_AT_ONCE, repeats)) for each in dice], axis=1)
        left = np.maximum(size - i, 1)[:, None]
        other = row + i + np.floor(draws[i % _STEPS_AT_ONCE] * left).astype(np.int64).reshape(-1)
        picked = order[other]
        order[other] = order[row + i]
        missing += flat[own + picked]
        failed = (missing.reshape(windows, repeats) >= limit[:, None]).sum(axis=1)
        survived[(survived < 0) & (failed > allowed)] = i
        if survived.min() >= 0:
            break
    return survived

"""The required tuples of sums and averages, from the values in a window (docs/slack.md, section 5).

Rules of this file:

* A block is a matrix with a row for each of some windows: its values, largest first, then zeros.
  Column ``i`` stands for the case that the ``i + 1`` largest values are missing.
* Sums are cumulative, from left to right; no other order of addition is used.
"""

from collections.abc import Iterator
from math import log
from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Bools, Floats, Ints

_ROUNDING = 1e-9
_CELLS = 1 << 20


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


def required_tuples(config: SlackConfig, d: float, total: Ints, values: Floats) -> Ints:
    """Return n_req of consecutive windows.

    ``values`` holds the values of the first window, largest first, then those of the next.
    ``total`` is the number of values of each, at least 1.
    """
    out = total.copy()
    for block in _blocks(total, values):
        with np.errstate(all="ignore"):
            rigorous = {"sum": _rigorous_sum, "avg": _rigorous_avg}
            n_req = rigorous[config.aggregate](block, config.eps, d)
        out[block.which] = n_req
    return out


def _blocks(total: Ints, values: Floats) -> Iterator[_Block]:
    """Yield all windows in blocks of similar size."""
    start = np.cumsum(total) - total
    by_size = np.argsort(total, kind="stable")[::-1]
    first = 0
    while first < len(by_size):
        width = int(total[by_size[first]])
        which = by_size[first : first + max(1, _CELLS // max(width, 64))]
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

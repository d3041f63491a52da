"""Required coverage (docs/slack.md, 5) of windows whose subsets are too many to be counted.

Rules of this file:

1. No formula of section 5 is used, and no cv, rank or bound. The tests put tuples in a random
   order, and compare the answer of the first n with that of all.
2. The tests compare the Clopper-Pearson limit of a probability, never its observed value. All
   limits of this file together fail with probability ``FAILURE`` at most.
3. Methods that section 5 calls "always enough" have to keep d. Normal forms promise nothing here;
   ``test_promise.py`` bounds how often answers that they required are wrong.
"""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from model.slack.requirement import (
    WindowFacts,
    requirement_of,
)
from model.vocabulary import SlackConfig
from properties.profiles import choose

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FAILURE = 1e-6
LIMITS = 5_000
"""Upper bound of the number of limits that are computed."""
AT_ONCE = 1_000_000
"""Numbers in a block of random orders."""

TOTALS = (30, 200, 1_000)
EPSILONS = (0.05, 0.2)
LEVELS = (0.05, 0.01)

VALUES: Mapping[str, Callable[[np.random.Generator, int], Floats]] = {
    "equal": lambda _rng, n: np.full(n, 4.0),
    "uniform": lambda rng, n: rng.uniform(0, 1, n),
    "0 or 1": lambda rng, n: (rng.random(n) < 0.3).astype(float),
    "exponential": lambda rng, n: rng.exponential(1, n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1.5, n),
    "Pareto 1.2": lambda rng, n: rng.pareto(1.2, n) + 1,
    "one giant": lambda _rng, n: np.append(np.ones(n - 1), float(n)),
}


class Window(NamedTuple):
    """A window of the grid, and the error that its first answer should stay below."""

    kind: str
    total: int
    eps: float
    average: bool
    seed: int

    @property
    def rng(self) -> np.random.Generator:
        """Generator of the values, and after them of the orders."""
        return np.random.default_rng([self.seed, self.total, list(VALUES).index(self.kind)])

    @property
    def values(self) -> Floats:
        """Values of the window; the same at every call."""
        return VALUES[self.kind](self.rng, self.total)

    def known(self, order: int = 0) -> WindowFacts:
        """Return the facts that are known when this window is judged."""
        values = self.values
        cv_squared = float(values.var() / values.mean() ** 2)
        return WindowFacts(self.total, cv_squared, values.tolist(), (0, order))


def grid(seed: int, average: bool) -> list[Window]:
    return [Window(*cell, average, seed) for cell in product(VALUES, TOTALS, EPSILONS)]


def config(window: Window, d: float, method: str) -> SlackConfig:
    aggregate = "avg" if window.average else "sum"
    # Only control conformal splits delta; for all others d is delta.
    return SlackConfig.from_json(
        {
            "size_us": 1,
            "slide_us": 1,
            "aggregate": aggregate,
            "control": "max",
            "eps": window.eps,
            "delta": d,
            "method": method,
        }
    )


@cache
def _failures(kind: str, total: int, seed: int, subsets: int) -> Mapping[tuple[bool, float], Ints]:
    """Count the random orders whose first n tuples give an answer that is eps or more off.

    The keys are (average, eps), the elements n = 1..N-1. All N tuples have no error.
    """
    window = Window(kind, total, 0.0, False, seed)
    rng, values = window.rng, window.values
    left = np.arange(1, total)
    failed = {case: np.zeros(total - 1, np.int64) for case in product((False, True), EPSILONS)}
    rows = max(1, AT_ONCE // total)
    for first in range(0, subsets, rows):
        tiled = np.tile(values, (min(rows, subsets - first), 1))
        sums = np.cumsum(rng.permuted(tiled, axis=1), axis=1)[:, :-1]
        off_by = {
            False: abs(sums - values.sum()) / values.sum(),
            True: abs(sums / left - values.mean()) / values.mean(),
        }
        for average, eps in failed:
            # An error of eps is a failure, also if it is rounded to less.
            is_off = off_by[average] >= eps * (1 - 1e-12)
            failed[average, eps] += np.count_nonzero(is_off, axis=0)
    return failed


def failures(window: Window, n: int, subsets: int) -> int:
    """Count the random subsets of n tuples whose answer is eps or more off."""
    if n in (0, window.total):
        return subsets if n == 0 else 0
    failed = _failures(window.kind, window.total, window.seed, subsets)
    return int(failed[window.average, window.eps][n - 1])


def at_least(failed: int, of: int) -> float:
    """Return the lower Clopper-Pearson limit of a probability."""
    return float(stats.beta.ppf(FAILURE / LIMITS, failed, of - failed + 1)) if failed else 0.0


@pytest.mark.parametrize("average", [False, True])
def test_rigorous_bounds_are_always_enough(seed: int, average: bool) -> None:
    subsets, partial = choose(4_000, nightly=50_000), 0
    for window, d in product(grid(seed, average), LEVELS):
        n_req = requirement_of(config(window, d, "rigorous"))(window.known())
        failed = failures(window, n_req, subsets)
        assert at_least(failed, subsets) <= d, (window, d, n_req, failed, subsets)
        partial += n_req < window.total
    assert partial > 20, "undetermined: nearly everything is needed"


def test_permutations_are_enough_with_the_confidence_that_is_stated(seed: int) -> None:
    """At most 5% of the judgements may require so few tuples that they fail more often than d."""
    judgements, subsets, unsure = 40, choose(4_000, nightly=50_000), 0
    windows = [window for window in grid(seed, average=False) if window.total <= 200]
    for window, d in product(windows, LEVELS):
        required = requirement_of(config(window, d, "permutation"))
        n_reqs = [required(window.known(order)) for order in range(judgements)]
        failed = {n: failures(window, n, subsets) for n in set(n_reqs)}
        unsure += sum(at_least(failed[n], subsets) > d for n in n_reqs)
    of = judgements * len(windows) * len(LEVELS)
    assert at_least(unsure, of) <= 0.05, f"{unsure} of {of} judgements require too little"

"""Statistics of simulation output: what a run may be said to show, and with what error."""

from collections.abc import Iterable, Sequence
from enum import Enum
from math import log, sqrt
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
    confidence: float

    def contains(self, value: float) -> bool:
        """Whether ``value`` lies within the limits, ends included."""
        return self.low <= value <= self.high

    @property
    def half_width(self) -> float:
        """Half the distance of the limits."""
        return (self.high - self.low) / 2


def warm_up_cut(samples: ArrayLike, group: int = 5) -> int:
    """How many samples to drop from the front so that the start of the run does not bias a mean.

    MSER-5: averages over groups of ``group`` samples; the cut minimises the squared standard error
    of what remains, searched over the first half. Source: K. P. White, "An effective truncation
    heuristic for bias reduction in simulation output", Simulation 69(6), 1997. A cut at the end of
    the searched half means that the run is too short.

    Raises ``ValueError`` for fewer than two groups.
    """
    values = np.asarray(samples, dtype=np.float64)
    groups = len(values) // group
    require(groups >= 2, "the number of samples", len(values), f"at least {2 * group}")
    means = values[: groups * group].reshape(groups, group).mean(axis=1)
    # Sums over the tail means[d:] for every d at once. Centring keeps the squares from cancelling.
    centred = means - means.mean()
    left = np.arange(groups, 0, -1)
    totals = np.cumsum(centred[::-1])[::-1]
    squares = np.cumsum((centred**2)[::-1])[::-1]
    error = (squares - totals**2 / left) / left**2
    return int(np.argmin(error[: groups // 2 + 1])) * group


def mean_interval(samples: ArrayLike, confidence: float = 0.95) -> Interval:
    """Mean of independent samples with Student-t limits.

    Source: A. M. Law and W. D. Kelton, "Simulation Modeling and Analysis", the chapter on basic
    probability and statistics.

    Raises ``ValueError`` for fewer than two samples.
    """
    values: NDArray[np.float64] = np.asarray(samples, dtype=np.float64)
    _require_confidence(confidence)
    require(len(values) >= 2, "the number of samples", len(values), "at least 2")
    centre = float(values.mean())
    quantile = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1))
    half = quantile * float(values.std(ddof=1)) / sqrt(len(values))
    return Interval(centre, centre - half, centre + half, confidence)


def batch_means(samples: ArrayLike, confidence: float = 0.95, batches: int = 20) -> Interval:
    """Mean of a correlated, stationary series (drop the warm-up first), by batch means.

    Batches must be much longer than the correlation. Source: A. M. Law and W. D. Kelton,
    "Simulation Modeling and Analysis", the chapter on output analysis for a single system.

    Raises ``ValueError`` for fewer samples than batches, or fewer than two batches.
    """
    values: NDArray[np.float64] = np.asarray(samples, dtype=np.float64)
    _require_confidence(confidence)
    require(batches >= 2, "batches", batches, "at least 2")
    require(len(values) >= batches, "the number of samples", len(values), f"at least {batches}")
    length = len(values) // batches
    return mean_interval(
        values[len(values) - length * batches :].reshape(batches, length).mean(axis=1), confidence
    )


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Exact limits of a probability; they cover it at least as often as ``confidence`` says.

    Source: C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated
    in the case of the binomial", Biometrika 26(4), 1934.
    """
    _require_confidence(confidence)
    require(trials > 0, "trials", trials, "above 0")
    require(0 <= successes <= trials, "successes", successes, f"between 0 and {trials}")
    tail = (1 - confidence) / 2
    failures = trials - successes
    low = float(stats.beta.ppf(tail, successes, failures + 1)) if successes else 0.0
    high = float(stats.beta.isf(tail, successes + 1, failures)) if failures else 1.0
    return Interval(successes / trials, low, high, confidence)


class Decision(Enum):
    """What a sequential test concluded."""

    LOW = "low"
    """The probability is at most p0."""
    HIGH = "high"
    """The probability is at least p1."""
    UNDECIDED = "undecided"
    """The outcomes ran out first."""


class SequentialResult(NamedTuple):
    """Decision of a sequential test and the number of outcomes it took."""

    decision: Decision
    trials: int
    successes: int


def sequential_test(
    outcomes: Iterable[bool], *, p0: float, p1: float, alpha: float, beta: float
) -> SequentialResult:
    """Wald's sequential probability ratio test of p <= p0 against p >= p1.

    Outcomes are taken lazily, so a generator that simulates stops when the matter is decided.
    P(HIGH | p0) <= alpha/(1-beta) and P(LOW | p1) <= beta/(1-alpha), whatever overshoots.
    Source: A. Wald, "Sequential tests of statistical hypotheses", Annals of Mathematical
    Statistics 16(2), 1945.
    """
    require(0 < p0 < 1, "p0", p0, "between 0 and 1, both excluded")
    require(p0 < p1 < 1, "p1", p1, f"between p0 = {p0} and 1, both excluded")
    require(0 < alpha < 1, "alpha", alpha, "between 0 and 1, both excluded")
    require(0 < beta < 1 - alpha, "beta", beta, f"between 0 and 1 - alpha = {1 - alpha}")
    accept_high, accept_low = log((1 - beta) / alpha), log(beta / (1 - alpha))
    on_success, on_failure = log(p1 / p0), log((1 - p1) / (1 - p0))
    ratio, trials, successes = 0.0, 0, 0
    for success in outcomes:
        trials += 1
        successes += success
        ratio += on_success if success else on_failure
        if ratio >= accept_high:
            return SequentialResult(Decision.HIGH, trials, successes)
        if ratio <= accept_low:
            return SequentialResult(Decision.LOW, trials, successes)
    return SequentialResult(Decision.UNDECIDED, trials, successes)


def slope(x: Sequence[float], y: Sequence[float], confidence: float = 0.95) -> Interval:
    """Slope of the least-squares line of ``y`` over ``x`` with Student-t limits.

    Assumes independent errors of equal variance. Source: N. R. Draper and H. Smith, "Applied
    Regression Analysis", the chapter on fitting a straight line.

    Raises ``ValueError`` for fewer than three points or a constant ``x``.
    """
    _require_confidence(confidence)
    require(len(x) == len(y), "the number of y values", len(y), f"that of x values, {len(x)}")
    require(len(x) >= 3, "the number of points", len(x), "at least 3")
    require(len(set(x)) > 1, "x", tuple(x), "of at least two different values")
    fit = stats.linregress(x, y)
    half = float(stats.t.ppf((1 + confidence) / 2, len(x) - 2)) * float(fit.stderr)
    return Interval(float(fit.slope), float(fit.slope) - half, float(fit.slope) + half, confidence)


def _require_confidence(confidence: float) -> None:
    require(0 < confidence < 1, "confidence", confidence, "between 0 and 1, both excluded")

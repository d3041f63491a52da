from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from sim.statistics import (
    Decision,
    Interval,
    batch_means,
    clopper_pearson,
    sequential_test,
    slope,
    warm_up_cut,
)


def test_interval() -> None:
    interval = Interval(2.0, 1.0, 3.0, 0.95)
    assert interval.half_width == 1.0
    assert interval.contains(1.0)
    assert not interval.contains(3.1)


def test_warm_up_is_cut_and_little_else() -> None:
    rng = np.random.default_rng(1)
    steady = rng.normal(10.0, 1.0, 2_000)
    warming = steady + 20.0 * np.exp(-np.arange(2_000) / 50.0)
    assert warm_up_cut(steady) < 200
    assert 100 <= warm_up_cut(warming) <= 500
    assert warm_up_cut(np.full(20, 3.0)) == 0
    with pytest.raises(ValueError, match=r"number of samples is 9; it must be at least 10"):
        warm_up_cut(range(9))


def autoregressive(rng: np.random.Generator, n: int) -> list[float]:
    values, value = [], 0.0
    for noise in rng.normal(0.0, 1.0, n).tolist():
        value = 0.8 * value + noise
        values.append(value)
    return values


def test_batch_means_cover_the_mean_of_a_correlated_series() -> None:
    rng = np.random.default_rng(2)
    runs = 400
    hits = sum(batch_means(autoregressive(rng, 2_000), 0.9).contains(0.0) for _ in range(runs))
    # The coverage must be compatible with 0.9; a correct method fails for one seed in 1,000.
    assert clopper_pearson(hits, runs, 0.999).contains(0.9)


def test_batch_means_leave_out_what_does_not_fill_a_batch() -> None:
    interval = batch_means([100.0, 1.0, 3.0, 1.0, 3.0], batches=2)
    assert interval == Interval(2.0, 2.0, 2.0, 0.95)


@pytest.mark.parametrize(("trials", "p"), [(1, 0.3), (10, 0.02), (50, 0.5), (40, 0.97)])
def test_clopper_pearson_covers_exactly(trials: int, p: float) -> None:
    intervals = [clopper_pearson(successes, trials) for successes in range(trials + 1)]
    masses = stats.binom.pmf(np.arange(trials + 1), trials, p)
    covered = [interval.contains(p) for interval in intervals]
    assert sum(masses[covered]) >= 0.95


def test_clopper_pearson_ends() -> None:
    assert clopper_pearson(0, 10).low == 0.0
    assert clopper_pearson(10, 10).high == 1.0
    assert clopper_pearson(0, 10).high == pytest.approx(1 - 0.025 ** (1 / 10))


def coins(p: float, rng: np.random.Generator) -> Iterator[bool]:
    while True:
        yield bool(rng.random() < p)


@pytest.mark.parametrize(("p", "right"), [(0.05, Decision.LOW), (0.15, Decision.HIGH)])
def test_sequential_test_errs_as_rarely_as_it_says(p: float, right: Decision) -> None:
    rng = np.random.default_rng(3)
    runs, alpha, beta = 500, 0.05, 0.05
    results = [
        sequential_test(coins(p, rng), p0=0.05, p1=0.15, alpha=alpha, beta=beta)
        for _ in range(runs)
    ]
    wrong = sum(result.decision is not right for result in results)
    # P(error) <= .05/.95; a correct test fails here for fewer than one seed in 1,000.
    assert clopper_pearson(wrong, runs, 0.998).low <= 0.05 / 0.95
    assert all(result.trials < 2_000 for result in results)


def test_sequential_test_takes_no_more_than_it_needs() -> None:
    outcomes = iter([True] * 100)
    result = sequential_test(outcomes, p0=0.1, p1=0.9, alpha=0.01, beta=0.01)
    assert (result.decision, result.trials, result.successes) == (Decision.HIGH, 3, 3)
    assert len(list(outcomes)) == 97


def test_sequential_test_may_stay_undecided() -> None:
    result = sequential_test([True, False], p0=0.1, p1=0.9, alpha=0.01, beta=0.01)
    assert (result.decision, result.trials) == (Decision.UNDECIDED, 2)


def test_slope() -> None:
    exact = slope([1, 2, 3, 4], [3, 5, 7, 9])
    assert exact.estimate == exact.low == exact.high == pytest.approx(2.0)
    rng = np.random.default_rng(4)
    x = np.arange(20.0)
    noise = [rng.normal(0, 5, 20) for _ in range(400)]
    hits = sum(slope(x.tolist(), (0.5 * x + e).tolist(), 0.9).contains(0.5) for e in noise)
    # A correct method fails for one seed in 1,000.
    assert clopper_pearson(hits, 400, 0.999).contains(0.9)


def test_bad_values_are_named() -> None:
    with pytest.raises(ValueError, match="confidence is 1; it must be"):
        batch_means([1, 2, 3], confidence=1)
    with pytest.raises(ValueError, match="batches is 1; it must be"):
        batch_means([1, 2, 3], batches=1)
    with pytest.raises(ValueError, match="number of samples is 3; it must be"):
        batch_means([1, 2, 3])
    with pytest.raises(ValueError, match="successes is 4; it must be between 0 and 3"):
        clopper_pearson(4, 3)
    with pytest.raises(ValueError, match="trials is 0; it must be"):
        clopper_pearson(0, 0)
    with pytest.raises(ValueError, match=r"p1 is 0.1; it must be"):
        sequential_test([], p0=0.2, p1=0.1, alpha=0.1, beta=0.1)
    with pytest.raises(ValueError, match=r"beta is 0.95; it must be"):
        sequential_test([], p0=0.1, p1=0.2, alpha=0.1, beta=0.95)
    with pytest.raises(ValueError, match="number of points is 2; it must be"):
        slope([1, 2], [1, 2])
    with pytest.raises(ValueError, match="number of y values is 2; it must be"):
        slope([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="two different values"):
        slope([1, 1, 1], [1, 2, 3])

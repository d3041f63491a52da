import numpy as np
import pytest
from scipy import stats

from sim.sweep.statistics import Interval, clopper_pearson, mean_interval
from tests.sim.output_analysis import batch_means


def test_an_interval_contains_its_limits() -> None:
    interval = Interval(2.0, 1.0, 3.0, 0.95)
    assert interval.half_width == 1.0
    assert interval.contains(1.0)
    assert not interval.contains(3.1)


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


def test_clopper_pearson_ends_at_0_and_1() -> None:
    assert clopper_pearson(0, 10).low == 0.0
    assert clopper_pearson(10, 10).high == 1.0
    assert clopper_pearson(0, 10).high == pytest.approx(1 - 0.025 ** (1 / 10))


def test_bad_values_are_named() -> None:
    with pytest.raises(ValueError, match="confidence is 1; it must be"):
        mean_interval([1, 2, 3], confidence=1)
    with pytest.raises(ValueError, match="number of samples is 1; it must be"):
        mean_interval([1])
    with pytest.raises(ValueError, match="batches is 1; it must be"):
        batch_means([1, 2, 3], batches=1)
    with pytest.raises(ValueError, match="number of samples is 3; it must be"):
        batch_means([1, 2, 3])
    with pytest.raises(ValueError, match="successes is 4; it must be between 0 and 3"):
        clopper_pearson(4, 3)
    with pytest.raises(ValueError, match="trials is 0; it must be"):
        clopper_pearson(0, 0)

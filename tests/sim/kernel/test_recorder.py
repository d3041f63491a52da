"""Levels over time, and the digest of a run."""

import numpy as np
import pytest

from model.vocabulary import Trace, Workload
from sim.kernel.recorder import Level, Series, Summary, digest_of


def steps() -> Level:
    """Return a level: 0 until 10, 2 until 20, 5 until 22, then 0."""
    level = Level()
    level.set(2.0, 10.0)
    level.set(5.0, 20.0)
    level.set(0.0, 22.0)
    return level


def test_a_level_is_weighted_by_time() -> None:
    level = steps()
    assert level.integral_us(40.0) == 30.0
    assert level.mean(40.0) == 0.75
    assert level.peak == 5.0
    assert level.value == 0.0
    assert level.changed_us == 22.0


def test_a_level_that_never_changes() -> None:
    level = Level(3.0)
    assert (level.mean(0.0), level.mean(8.0)) == (0.0, 3.0)
    assert level.integral_us([0.0, 2.0]).tolist() == [0.0, 6.0]
    assert level.at([0.0, 9.0]).tolist() == [3.0, 3.0]
    assert (level.peak, level.changed_us) == (3.0, 0.0)


def test_a_level_is_looked_at_just_before_a_moment() -> None:
    level = steps()
    assert level.at([0.0, 10.0, 10.1, 20.0, 22.0, 22.1]).tolist() == [0, 0, 2, 2, 5, 0]
    assert level.at(15.0) == 2.0


def test_several_changes_at_once_leave_the_last_one() -> None:
    level = Level()
    for value in (1.0, 9.0, 4.0):
        level.set(value, 5.0)
    assert level.at([5.0, 6.0]).tolist() == [0.0, 4.0]
    assert level.integral_us(7.0) == 8.0
    assert level.peak == 4.0  # 9 did not last


def test_the_current_value_counts_as_a_peak() -> None:
    level = Level()
    level.set(7.0, 5.0)
    assert level.peak == 7.0


def test_integrals_before_between_and_after_the_changes() -> None:
    times_us = [0.0, 5.0, 10.0, 15.0, 20.0, 21.0, 22.0, 30.0]
    assert steps().integral_us(times_us).tolist() == [0, 0, 0, 10, 20, 25, 30, 30]


def test_means_over_intervals_add_up_to_the_integral() -> None:
    grid_us = np.array([10.0, 15.0, 21.0, 21.0, 40.0])
    means = steps().means(grid_us)
    assert means[[0, 1, 2, 4]].tolist() == pytest.approx([0.0, 2.0, 15 / 6, 5 / 19])
    assert np.isnan(means[3])  # an interval without length
    lengths_us = np.diff(grid_us, prepend=0.0)
    assert np.nansum(means * lengths_us) == pytest.approx(30.0)


def test_a_digest_depends_on_everything_that_a_run_gave() -> None:
    trace, workload = Trace("sim", ()), Workload("slack", (), {})
    summary: Summary = {"arrivals": 1, "input": "x"}
    series: Series = {"time_us": np.array([1.0])}
    digest = digest_of(trace, workload, summary, series)
    assert len(digest) == 64
    assert digest == digest_of(trace, workload, dict(summary), {"time_us": np.array([1.0])})
    others = (
        digest_of(trace, workload.with_(seed=1), summary, series),
        digest_of(trace, workload, {"arrivals": "1", "input": "x"}, series),
        digest_of(trace, workload, {"arrivals": 1, "input": "y"}, series),
        digest_of(trace, workload, summary, {"time_us": np.array([2.0])}),
        digest_of(trace, workload, summary, {"time": np.array([1.0])}),
    )
    assert len({digest, *others}) == 6

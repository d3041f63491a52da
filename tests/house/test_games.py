"""The curves of HPM's figures, on a run without Spark."""

import pytest

from benchmarks.games import GAME, points
from sim.slack import from_settings


def test_curves_end_where_the_run_says() -> None:
    timed = from_settings({**GAME, "messages": "30000", "control": "pd"}, 0)
    found = points(timed.workload, timed.trace)
    assert len(found) == len(timed.workload.cuts) + 1 > 1
    last = found[-1]
    first_error = float(timed.summary["mean_first_error"])
    assert last.first_percent == pytest.approx(100 - 100 * first_error)
    assert last.first_percent < last.in_force_percent <= 100
    assert 0 < last.latency_s < last.at_s

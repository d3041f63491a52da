"""Rows on which a job fails: the one is shown that a user has to look at."""

from collections.abc import Callable, Sequence

import pytest
from pyspark.sql import types as sql

from straggler.jobs.rows import Input, Row
from straggler.jobs.streams import BASE_US
from straggler.jobs.unfit import find_failure

SCHEMA = sql.StructType().add("device", "string").add("at", "timestamp").add("watts", "double")
INPUT = Input("input", SCHEMA, "at")
DEVICES, WATTS = (None, "", "a", "b"), (None, -0.0, 1.0, 2.0)
ROWS = [Row(0, BASE_US + n, (d, w)) for n, d in enumerate(DEVICES) for w in WATTS]


def failing(wrong: Callable[[Row], bool]) -> Callable[[Sequence[Row]], str]:
    return lambda rows: "it raised X" if any(map(wrong, rows)) else ""


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        (lambda _: False, ""),
        (lambda row: row.values[1] is None, "watts=null"),
        (lambda row: row.values[0] == "", "device= "),
        (lambda row: row.values[1] == 2, "watts=2"),
        (lambda _: True, "at=2026-01-01 00:00:00.000002 device=a watts=1"),
    ],
)
def test_a_row_is_shown_on_which_the_job_fails(wrong: Callable[[Row], bool], shown: str) -> None:
    found = find_failure([INPUT], ROWS, failing(wrong))
    assert bool(found) == bool(shown)
    assert shown in found


def test_a_job_that_fails_on_two_rows_together_is_told_both() -> None:
    found = find_failure([INPUT], ROWS, lambda rows: "it raised X" if len(rows) > 1 else "")
    assert found.count("device=") == 2

"""Values on which a job fails: found, named, and kept out of the other streams."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as sql

from straggler.jobs.rows import Input, Row
from straggler.jobs.streams import BASE_US
from straggler.jobs.unfit import find_unfit, fitted

SCHEMA = sql.StructType().add("device", "string").add("at", "timestamp").add("watts", "double")
INPUT = Input("input", SCHEMA, "at")
DEVICES, WATTS = (None, "", "a", "b"), (None, -0.0, 1.0, 2.0)
ROWS = [Row(0, BASE_US + n, (d, w)) for n, d in enumerate(DEVICES) for w in WATTS]


def failing(wrong: Callable[[Row], bool]) -> Callable[[Sequence[Row]], str]:
    return lambda rows: "it raised X" if any(map(wrong, rows)) else ""


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda row: row.values[1] is None, "where watts is null; say NOT NULL"),
        (lambda row: row.values[0] == "", "where device is an empty text; give columns="),
        (lambda row: row.values[1] == 2, "where watts is 2; give columns="),
    ],
)
def test_the_column_is_named_whose_values_a_job_cannot_take(
    wrong: Callable[[Row], bool], words: str
) -> None:
    (found,), problem = find_unfit([INPUT], ROWS, failing(wrong))
    assert not problem
    assert words in found.sentence
    assert not any(wrong(fitted(row, [found])) for row in ROWS)


@given(st.sets(st.sampled_from(DEVICES), max_size=3), st.sets(st.sampled_from(WATTS), max_size=3))
def test_all_values_are_found_on_which_a_job_fails(
    devices: set[str | None], watts: set[float | None]
) -> None:
    failure = failing(lambda row: row.values[0] in devices or row.values[1] in watts)
    found, problem = find_unfit([INPUT], ROWS, failure)
    assert not problem
    assert not failure([fitted(row, found) for row in ROWS])
    assert len(found) == len(devices) + len(watts)


def test_a_job_that_fails_on_every_row_is_told_one_of_them() -> None:
    found, problem = find_unfit([INPUT], ROWS, failing(lambda _: True))
    assert not found
    assert problem == "it raised X, such as on at=2026-01-01 00:00:00.000002 device=a watts=1"


def test_one_row_of_many_is_found_in_few_calls() -> None:
    calls: list[int] = []

    def failure(rows: Sequence[Row]) -> str:
        calls.append(len(rows))
        return "it raised X"

    rows = [Row(0, BASE_US + n, (str(n), float(n))) for n in range(64)]
    _, problem = find_unfit([INPUT], rows, failure)
    assert "device=0" in problem
    assert len(calls) < 32


def test_a_job_that_fails_on_two_rows_together_is_told_both() -> None:
    _, problem = find_unfit([INPUT], ROWS, lambda rows: "it raised X" if len(rows) > 1 else "")
    assert problem.count("device=") == 2


def test_a_null_is_another_value_than_the_text_that_looks_like_it() -> None:
    rows = [Row(0, BASE_US, (device, 1.0)) for device in ("null", None, "a")]
    found, problem = find_unfit([INPUT], rows, failing(lambda row: row.values[0] is None))
    assert not problem
    assert [each.sentence.partition("where ")[2] for each in found] == [
        "device is null; say NOT NULL in the schema if that cannot be"
    ]
    assert fitted(rows[0], found) == rows[0]

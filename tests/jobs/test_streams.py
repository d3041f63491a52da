"""Streams for jobs: which rows are in time, probes, drawn streams, and smaller ones."""

import math
import os
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.configuration import storage_directory
from pyspark.sql import types as sql

from straggler.jobs.rows import Input, Row, strata_of
from straggler.jobs.shrinking import shrink
from straggler.jobs.streams import (
    BASE_US,
    LOST_COMMIT,
    ROWS_MAX,
    SECOND_US,
    Fault,
    Stream,
    Times,
    Values,
    copied,
    probes,
    split,
    streams,
)
from straggler.strategies.examples import collect

SCHEMA = sql.StructType(
    [
        sql.StructField("device", sql.StringType()),
        sql.StructField("at", sql.TimestampType()),
        sql.StructField("watts", sql.DoubleType()),
    ]
)
INPUT = Input("input", SCHEMA, "at", keys=("device",))
TIMES = Times((10 * SECOND_US,), (60 * SECOND_US,))


def row(seconds: float, device: str = "a", source: int = 0) -> Row:
    return Row(source, BASE_US + round(seconds * SECOND_US), (device, 1.0))


def test_a_row_is_late_if_earlier_batches_are_ahead_by_the_lateness() -> None:
    stream = Stream(((row(0), row(100)), (row(90), row(90.000001), row(0)), (row(200),)))
    in_time, late, positions = split(stream, TIMES)
    assert late == [row(90), row(0)]
    assert positions == [2, 4]
    assert in_time == [row(0), row(100), row(90.000001), row(200)]


def test_no_row_is_late_without_a_watermark_or_before_any_row_of_its_input() -> None:
    stream = Stream(((row(100),), (row(0),)))
    assert not split(stream, Times((None,), ()))[1]
    other = Stream(((row(100),), (row(0, source=1),)))
    assert not split(other, Times((0, 0), ()))[1]


def test_rows_of_an_input_make_those_of_another_one_late_below_one_watermark() -> None:
    stream = Stream(((row(100),), (row(0, source=1), row(100, source=1))))
    assert split(stream, Times((0, 0), (), clocks=(0, 0)))[1] == [*stream.batches[1]]


def test_a_copy_of_a_row_may_be_late_though_the_row_was_not() -> None:
    again = row(0)
    stream = Stream(((again,), (row(100),), (again,)))
    assert split(stream, Times((0,), ()))[2] == [2]


def test_probes_have_rows_that_are_just_in_time_and_rows_that_are_just_late() -> None:
    found = list(probes(TIMES, Values([INPUT], [[("a", 1.0), ("b", 2.0)]])))
    nearest = []
    for stream in found:
        latest = max(each.time_us for each in stream.batches[0])
        nearest += [(each.time_us) - latest for each in stream.batches[-1]]
    assert -10 * SECOND_US + 1 in nearest
    assert -10 * SECOND_US in nearest
    assert all(len(stream.rows) <= ROWS_MAX for stream in found)
    assert any(fault.kind == LOST_COMMIT for stream in found for fault in stream.faults)


def test_drawn_streams_are_the_same_for_a_seed_and_have_late_rows_and_faults() -> None:
    strategy = streams((INPUT,), TIMES)
    drawn = [stream for seed in (7, 8, 9) for stream in collect(strategy, 100, seed)]
    assert drawn[:100] == collect(strategy, 100, 7) or "nan" in repr(drawn)
    late = [split(stream, TIMES)[1] for stream in drawn]
    assert sum(map(bool, late)) > 15
    assert max(map(len, late)) <= 4
    assert sum(bool(stream.faults) for stream in drawn) > 60
    assert {len(stream.batches) for stream in drawn} >= {1, 2, 3}


def test_a_draw_leaves_no_folder_of_hypothesis() -> None:
    def home() -> object:
        return storage_directory(intent_to_write=False).home_directory

    before = home()
    assert str(collect(st.builds(home), 1, 0)[0]) == os.devnull
    assert home() == before


def test_recorded_rows_take_the_place_of_drawn_ones() -> None:
    recorded = [[row(n, "recorded") for n in range(30)]]
    for stream in collect(streams((INPUT,), TIMES, recorded), 20, 1):
        assert all(each in recorded[0] for each in stream.rows)


def test_streams_of_a_recording_begin_at_its_rare_rows() -> None:
    rows = [Row(0, BASE_US + n, ("a", 1.0)) for n in range(2000)]
    rows[700], rows[1200] = (rows[n]._replace(values=("a", None)) for n in (700, 1200))
    rows[1500] = rows[1500]._replace(values=("a", math.nan), time_us=rows[1501].time_us)
    special, equal, every = strata_of(rows)
    assert [special, equal] == [[[700, 1200], [1500]], [[1500]]]
    drawn = collect(streams((INPUT,), TIMES, [rows], [special]), 20, 1)
    begun = [{rows.index(each) for each in stream.rows} for stream in drawn]
    assert all(each & {700, 1200, 1500} for each in begun)
    assert strata_of(rows[:5]) == [[[0, 1, 2, 3, 4]]] * 3
    assert len(every[0]) == 2000


def test_rows_that_agree_in_what_identifies_them_are_copies() -> None:
    identified = Input("input", SCHEMA, "at", identity=("device",))
    stream = Stream(((row(0), row(1, "b")), (row(7),)))
    assert copied(stream, [identified]).rows == [row(0), row(1, "b"), row(0)]
    two = Stream(((row(0), row(7)._replace(source=1)),))
    assert copied(two, [identified] * 2) == two
    assert copied(two, [replace(identified, is_united=True)] * 2).rows == [row(0), row(0)]


def test_shrinking_keeps_what_fails_alone() -> None:
    stream = Stream(
        (tuple(row(n) for n in range(5)), tuple(row(n, "b") for n in range(6))),
        (Fault(LOST_COMMIT, 1, 1),),
    )

    def first_failing(chosen: Sequence[Stream]) -> int | None:
        for n, each in enumerate(chosen):
            times = [one.time_us for one in each.rows]
            if row(3).time_us in times and times.count(row(4).time_us) == 2:
                return n
        return None

    small = shrink(stream, first_failing, runs_max=200)
    assert len(small.rows) == 3
    assert len(small.batches) == 1
    assert not small.faults


def test_a_smaller_stream_has_no_two_rows_of_one_identity() -> None:
    """Rows of one device would be copies, which these are not."""
    stream, inputs = Stream(((row(0, "a"), row(1, "b")),)), (replace(INPUT, identity=("device",)),)
    small = shrink(
        stream,
        lambda chosen: next((n for n, each in enumerate(chosen) if len(each.rows) == 2), None),
        is_possible=lambda each: copied(each, inputs) == each,
    )
    assert {each.values[0] for each in small.rows} == {"a", "b"}

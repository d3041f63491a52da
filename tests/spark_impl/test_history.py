"""The rows that corrections read from a history, on the driver and on the workers."""

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from model.vocabulary import SlackConfig
from spark_impl.runtime.histories import COLUMNS, file_of
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.slack.query import SLACK
from spark_impl.windows import history, recompute
from spark_impl.windows.blocks import pack_files
from spark_impl.windows.history import History
from spark_impl.windows.recompute import WindowAnswers, WindowRequest
from spark_impl.windows.row_groups import Footers
from spark_impl.windows.store import WindowStore

ASKED = SLACK.settings(SlackConfig(size_us=10, slide_us=5, tasks=2))
GROUPS = (pa.field("site", pa.string()),)


def write(folder: Path, number: int, times: list[int], group_size: int = 100) -> Location:
    """Write a file of a history with redeliveries and mixed keys and sites; return it."""
    draw = random.Random(str(number))
    first = 1000 * number
    rows = [
        {
            "site": draw.choice("xy"),
            "seq": first + i,
            "source_id": first + i - (i % 7 == 0 and i > 0),
            "key": draw.choice("aß"),
            "event_time_us": ts,
            "value": float(draw.randrange(9)),
            "arrival_us": 0,
        }
        for i, ts in enumerate(times)
    ]
    schema = pa.schema([*GROUPS, *(pa.field(*each) for each in COLUMNS.items())])
    file = file_of(locate(folder), number)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file.path, row_group_size=group_size)
    return file


def wanted(starts: list[int], limit: int = 1 << 60) -> WindowRequest:
    """Request all windows that begin at some times, for all sites, tasks and keys."""
    store = WindowStore(locate("nowhere"), GROUPS, room=SLACK)
    pairs = [
        {"site": site, "task": task, "key": key, "start_us": start, "source_id": 0, "windows": 1}
        for site in "xy"
        for task, key in ((0, "a"), (1, "ß"), (0, "ß"), (1, "a"))
        for start in starts
    ]
    table = pa.Table.from_pylist(pairs, schema=store.schema("pending"))
    limits = {(site, task): limit for site in "xy" for task in (0, 1)}
    return recompute.request_windows(ASKED, store.by, table, limits)[0]


def test_time_ranges_leave_out_gaps_between_windows() -> None:
    assert recompute.time_ranges_us(wanted([0, 5, 10])) == [(0, 20)]
    assert recompute.time_ranges_us(wanted([0, 10])) == [(0, 20)]
    assert recompute.time_ranges_us(wanted([0, 15, -100])) == [(-100, -90), (0, 10), (15, 25)]


def test_time_ranges_are_few_and_hold_all_windows() -> None:
    starts = [i * i * 5 for i in range(2, 60)]
    ranges = recompute.time_ranges_us(wanted(starts))
    assert len(ranges) == 16
    assert all(any(a <= start < start + 10 <= b for a, b in ranges) for start in starts)
    gaps = [after - end for (_, end), (after, _) in pairwise(ranges)]
    assert min(gaps) > 300, "the widest gaps are left out"


def test_footers_tell_which_row_groups_overlap(tmp_path: Path) -> None:
    file = write(tmp_path, 1, list(range(100)), group_size=10)
    found = Footers("event_time_us").overlapping([file], [(15, 21), (95, 200)])
    (groups,) = found.values()
    assert [(group.least, group.most, group.rows) for group in groups] == [
        (10, 19, 10),
        (20, 29, 10),
        (90, 99, 10),
    ]
    assert not Footers("event_time_us").overlapping([file], [(100, 200)])


def test_correction_reads_only_row_groups_that_overlap(tmp_path: Path) -> None:
    write(tmp_path, 1, list(range(100)), group_size=10)
    write(tmp_path, 2, list(range(1000, 1100)))
    write(tmp_path, 3, list(range(2000, 2100)), group_size=50)
    found, rows = History(None, ASKED, locate(tmp_path), GROUPS).recompute(wanted([40, 2050]))  # type: ignore[arg-type]  # no session is needed
    assert rows == 10 + 50
    assert found.rows.sum() == 20  # two windows of ten, redeliveries included
    assert sorted(set(found.j.tolist())) == [8, 410]


def in_order(found: WindowAnswers) -> list[tuple[float, ...]]:
    return sorted(zip(*(column.tolist() for column in found), strict=True))


def test_workers_find_what_the_driver_finds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(1)
    for number in range(5):
        times = [100 * number + draw.randrange(-60, 160) for _ in range(400)]
        write(tmp_path, number, times, group_size=150)
    want = wanted([0, 5, 10, 120, 125, 130, 300, 430], limit=4200)
    reader = History(spark, ASKED, locate(tmp_path), GROUPS)
    on_driver, rows = reader.recompute(want)
    monkeypatch.setattr(history, "ROWS_ON_DRIVER", rows - 1)
    on_workers, same_rows = reader.recompute(want)
    assert in_order(on_workers) == in_order(on_driver)
    assert same_rows == rows
    assert on_driver.correlated.sum() > 10
    assert np.any(on_driver.cross != 0)


def test_a_leaf_of_a_struct_is_not_taken_for_the_column_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "1.parquet"
    raw = pa.array([{"event_time_us": 10**15}] * 2)
    pq.write_table(pa.table({"raw": raw, "event_time_us": [3, 20]}), path)
    (groups,) = Footers("event_time_us").overlapping([locate(path)], [(0, 10)]).values()
    assert [(group.least, group.most) for group in groups] == [(3, 20)]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"value": None}, "2.parquet has no column 'value'; its columns are site, seq,"),
        ({"value": pa.array(["1"])}, "'value' of .*2.parquet holds string; it must hold numbers"),
        ({"site": pa.array([1])}, "'site' of .*2.parquet holds int64; it must hold text"),
    ],
)
def test_later_file_of_a_history_is_checked_too(
    tmp_path: Path, changes: dict[str, pa.Array | None], sentence: str
) -> None:
    first = write(tmp_path, 1, [1])
    table = pq.read_table(first.path)
    for name, column in changes.items():
        place = table.schema.get_field_index(name)
        table = table.remove_column(place)
        if column is not None:
            table = table.add_column(place, name, column)
    second = file_of(first.parent, 2)
    pq.write_table(table, second.path)
    paths = pa.RecordBatch.from_pydict({"path": [str(first), str(second)]})
    packed = pack_files([paths], first.parent / "control", GROUPS, ASKED, [0, 1])
    assert next(packed).num_rows == 1
    with pytest.raises(InputProblem, match=sentence):
        next(packed)

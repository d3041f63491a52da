"""The share of a task in a file equals the blocks that it would get."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from model.vocabulary import SlackConfig, WatermarkConfig
from spark_impl.runtime.histories import COLUMNS
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.slack.query import SLACK
from spark_impl.watermark.query import WATERMARK
from spark_impl.windows import arrival_files
from spark_impl.windows.arrival_files import FileShares
from spark_impl.windows.blocks import decode, pack_files
from spark_impl.windows.records import Rows

TASKS = 3
ASKED = SLACK.settings(SlackConfig(10, 5, tasks=TASKS))
WITH_CLOCK = SLACK.settings(SlackConfig(10, 5, tasks=TASKS, max_future_us=5))
UPSTREAM = WATERMARK.settings(WatermarkConfig(10, 10, 5, tasks=TASKS, upstreams=2))
KEYS = ("a", "b", "c", "d", "", "é")
BEYOND = 1 << 62


def columns(draw: random.Random, size: int, flawed: bool) -> dict[str, list[Any]]:
    """Return random arrivals, not always in order, if ``flawed`` with NULLs and far times."""
    seq = list(range(size))
    if draw.random() < 0.5:
        draw.shuffle(seq)
    found: dict[str, list[Any]] = {
        "seq": seq,
        "source_id": [draw.randrange(9) for _ in seq],
        "key": [draw.choice(KEYS) for _ in seq],
        "event_time_us": [draw.randrange(-50, 50) for _ in seq],
        "value": [draw.randrange(9) / 4 for _ in seq],
        "arrival_us": [draw.randrange(50) for _ in seq],
    }
    if flawed:
        for _ in range(draw.randrange(4)):
            found[draw.choice([*COLUMNS])][draw.randrange(size)] = None
        if draw.random() < 0.3:
            found["event_time_us"][draw.randrange(size)] = draw.choice((-BEYOND, BEYOND))
    return found


def write(path: Path, found: dict[str, list[Any]], draw: random.Random) -> None:
    """Write a file of some row groups, with columns of any type that a history may have."""
    kinds: dict[str, pa.DataType] = dict(COLUMNS)
    if draw.random() < 0.5:
        kinds["key"] = draw.choice((pa.large_string(), pa.dictionary(pa.int32(), pa.string())))
        kinds["arrival_us"] = pa.int32()
    table = pa.table(
        {name: pa.array(each, kinds.get(name, pa.float64())) for name, each in found.items()}
    )
    pq.write_table(table, path, row_group_size=draw.choice((4, 100)))


def as_packed(asked: Any, path: Path, control: Location) -> list[tuple[tuple[str, ...], Rows]]:
    """Return the input of every task if arrivals travel as blocks."""
    names = pa.RecordBatch.from_pydict({"path": [f"file://{path}"]})
    given: list[list[bytes]] = [[] for _ in range(TASKS)]
    for batch in pack_files([names], control, (), asked, range(TASKS)):
        for row in batch.to_pylist():
            given[row["task_slot"]].append(row["block"])
    return [decode(each) for each in given]


def in_words(keys: tuple[str, ...], rows: Rows) -> list[tuple[Any, ...]]:
    """Return arrivals as tuples, with keys instead of their numbers."""
    texts = [keys[code] for code in rows.key.tolist()]
    return list(
        zip(texts, *(column.tolist() for column in rows._replace(key=rows.seq)), strict=True)
    )


@pytest.mark.parametrize("asked", [ASKED, WITH_CLOCK, UPSTREAM])
@pytest.mark.parametrize("at_once", [3, 1000])
def test_share_is_what_blocks_would_bring(
    asked: Any, at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival_files, "ROWS_AT_ONCE", at_once)
    control, draw = locate(tmp_path / "control"), random.Random(at_once)
    flaws, moved, tasks = set(), False, set()
    for number in range(60):
        path = tmp_path / f"{number}.parquet"
        found = columns(draw, draw.randrange(1, 12), flawed=number % 2 == 1)
        write(path, found, draw)
        mine = FileShares(asked, control)
        for task, (keys, rows) in enumerate(as_packed(asked, path, control)):
            given = mine.read(task, [f"file://{path}"])
            assert in_words(given.keys, given.rows) == in_words(keys, rows)
            assert sorted(given.keys) == sorted(keys)
            assert not given.flush
            flaws |= set(rows.flaw.tolist())
            tasks |= {task} if len(rows.seq) else set()
        moved |= found["seq"] != list(range(len(found["seq"])))
    assert flaws >= {0, 1, 2, 3, 4, 5, 6, 8}, "every column was NULL, and a time was too far"
    assert tasks == set(range(TASKS))
    assert moved


@pytest.mark.parametrize("value", ["value_watts", None])
def test_a_query_reads_no_values_but_its_own(value: str | None, tmp_path: Path) -> None:
    control, draw, flaws = locate(tmp_path / "control"), random.Random(7), set()
    asked = replace(ASKED, value=value)
    for number in range(40):
        alone, several = tmp_path / f"{number}.parquet", tmp_path / f"{number} several.parquet"
        found = columns(draw, draw.randrange(1, 12), flawed=number % 2 == 1)
        values = found.pop("value")
        others = [draw.choice((None, 1.5)) for _ in values]
        write(several, {"value_celsius": others, **found, "value_watts": values}, draw)
        write(alone, {**found, "value": [1.0] * len(values) if value is None else values}, draw)
        wanted = [in_words(*each) for each in as_packed(ASKED, alone, control)]
        assert [in_words(*each) for each in as_packed(asked, several, control)] == wanted
        mine = FileShares(asked, control)
        shares = [mine.read(task, [str(several)]) for task in range(TASKS)]
        assert [in_words(each.keys, each.rows) for each in shares] == wanted
        flaws |= {flaw for each in shares for flaw in each.rows.flaw.tolist()}
    assert (5 in flaws) == (value is not None), "no value was NULL"


def test_file_is_read_once_for_all_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "1.parquet"
    write(path, columns(random.Random(1), 9, flawed=False), random.Random(1))
    mine = FileShares(ASKED, locate(tmp_path / "control"))
    first = mine.read(0, [str(path)])
    path.unlink()
    sizes = [len(mine.read(task, [str(path)]).rows.seq) for task in range(TASKS)]
    assert sizes[0] == len(first.rows.seq)
    assert sum(sizes) == 9


def test_request_to_flush_reaches_the_tasks_that_it_names(tmp_path: Path) -> None:
    path = tmp_path / "control" / "00000001-flush.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"task": pa.array([0, 2], pa.int32())}), path)
    control = locate(path.parent)
    given = [FileShares(ASKED, control).read(task, [f"file://{path}"]) for task in range(TASKS)]
    assert [each.flush for each in given] == [True, False, True]
    assert all(not len(each.rows.seq) and not each.keys for each in given)


def test_later_file_without_a_column(tmp_path: Path) -> None:
    found = columns(random.Random(1), 9, flawed=False)
    del found["arrival_us"]
    write(tmp_path / "1.parquet", found, random.Random(1))
    with pytest.raises(
        InputProblem, match=r"1.parquet has no column 'arrival_us'; its columns are"
    ):
        FileShares(ASKED, locate(tmp_path / "control")).read(0, [str(tmp_path / "1.parquet")])

"""Histories and stores that are merged read like those that are not."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from model.vocabulary import SlackConfig
from spark_impl.runtime import histories, tables
from spark_impl.runtime.histories import append, compact, file_of, numbers, open_piece
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.stores import require_view
from spark_impl.runtime.systems import lose_commit
from spark_impl.slack import SlackQuery, progress, results

FILES = 14
FEW = 8
"""Number of files of histories that Spark reads; two times three of them are merged."""
ROWS = 60
SECOND_US = 1_000_000
CONFIG = SlackConfig(size_us=SECOND_US, slide_us=SECOND_US, tasks=2)


def arrivals(number: int) -> pa.Table:
    """Return a file in which every fifth tuple is up to three seconds late."""
    random = np.random.default_rng(number)
    seq = np.arange(number * ROWS, (number + 1) * ROWS)
    delay_us = random.integers(0, 3 * SECOND_US, ROWS) * (random.random(ROWS) < 0.2)
    return pa.table(
        {
            "seq": seq,
            "source_id": seq,
            "key": [f"key-{at % 5}" for at in range(ROWS)],
            "event_time_us": seq * 20_000 - delay_us,
            "value": np.ones(ROWS),
            "arrival_us": seq * 20_000,
        }
    )


def make_history(folder: Path, files: int, *, is_merged: bool = False) -> Path:
    for number in range(files):
        append(folder, arrivals(number))
        if is_merged:
            compact(locate(folder))
    return folder


def answers(spark: SparkSession, store: Path) -> list[tuple[object, ...]]:
    rows = results(spark, store).drop("assumption_status").collect()
    return sorted(tuple(row) for row in rows)


@pytest.fixture
def merges_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "MERGED", 3)
    monkeypatch.setattr(tables, "TIDIED", 3)


@pytest.mark.usefixtures("merges_three")
def test_every_number_of_a_merged_history_can_be_read(tmp_path: Path) -> None:
    history = locate(make_history(tmp_path / "history", FILES, is_merged=True))
    assert_complete(history)
    merged = [file.name for file in history.children(r".*-.*\.parquet")]
    assert merged[:2] == ["00000000-00000002.parquet", "00000003-00000005.parquet"]
    assert len(history.children()) <= FILES // 3 + 3 * 3, "files of merged hundreds are removed"


@pytest.mark.usefixtures("merges_three")
def test_files_with_other_columns_are_not_merged(tmp_path: Path) -> None:
    for number in range(8):
        rows = arrivals(number)
        append(tmp_path, rows.append_column("more", rows.column("seq")) if number == 4 else rows)
    compact(locate(tmp_path))
    assert [path.name for path in tmp_path.glob("*-*")] == ["00000000-00000002.parquet"]
    for number in range(8, FILES):
        append(tmp_path, arrivals(number))
    compact(locate(tmp_path))
    assert (tmp_path / "00000006-00000008.parquet").exists()
    assert_complete(locate(tmp_path))


@pytest.mark.usefixtures("merges_three")
def test_history_that_begins_in_the_middle_of_a_merged_file(tmp_path: Path) -> None:
    append(tmp_path, arrivals(0))
    (tmp_path / "00000000.parquet").rename(tmp_path / "00000001.parquet")
    for number in range(2, FILES):
        append(tmp_path, arrivals(number))
        compact(locate(tmp_path))
    assert (tmp_path / "00000003-00000005.parquet").exists()
    assert numbers(locate(tmp_path)) == range(1, FILES)


def assert_complete(history: Location) -> None:
    """Assert that every file can be read, merged or not."""
    assert numbers(history) == range(FILES)
    for number in range(FILES):
        piece = open_piece(file_of(history, number))
        rows = piece.file.read_row_groups([*piece.groups])
        assert rows.column("seq").equals(arrivals(number).column("seq"))


def test_a_gap_is_named(tmp_path: Path) -> None:
    for number in range(3):
        append(tmp_path, arrivals(number))
    (tmp_path / "00000001.parquet").unlink()
    with pytest.raises(InputProblem, match=r"00000001.parquet is missing, but 00000002.parquet is"):
        numbers(locate(tmp_path))


@pytest.mark.usefixtures("merges_three")
def test_merging_changes_no_answer(spark: SparkSession, tmp_path: Path) -> None:
    plain = make_history(tmp_path / "plain", FEW)
    merged = make_history(tmp_path / "merged", FEW, is_merged=True)
    query = SlackQuery(spark, CONFIG, merged, tmp_path / "store")
    query.run_available()
    lose_commit(tmp_path / "store")
    again = SlackQuery(spark, CONFIG, merged, tmp_path / "store")
    again.flush()
    merged_parts = [*(tmp_path / "store" / "kind=result").glob("part-*")]
    assert merged_parts, "nothing of the store was merged"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "TIDIED", 100)
        other = SlackQuery(spark, CONFIG, plain, tmp_path / "other")
        other.flush()
    assert answers(spark, tmp_path / "store") == answers(spark, tmp_path / "other")
    assert again.store.read_all("late").num_rows == other.store.read_all("late").num_rows > 0


def test_progress_describes_the_last_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    history = make_history(tmp_path / "history", FEW)
    query = SlackQuery(spark, CONFIG, history, tmp_path / "store")
    before = progress(tmp_path / "store")
    assert (before.batch, before.tasks, before.watermark_us) == (-1, 0, None)
    query.run_available()
    seen = progress(tmp_path / "store")
    store, view = query.store, require_view(query.store.root)
    assert seen.batch == FEW - 1
    assert seen.tasks == CONFIG.tasks
    moved = store.read_kind(view, "progress", seen.batch).to_pylist()
    assert seen.slack_us == max(row["slack_us"] for row in moved)
    assert seen.watermark_us == min(row["wm_us"] for row in moved)
    late = store.read_kind(view, "late", seen.batch).to_pylist()
    assert seen.late_pairs == sum(row["windows"] for row in late)
    assert 0 <= seen.late_share <= 1
    query.flush()
    assert progress(tmp_path / "store").pending_pairs == 0

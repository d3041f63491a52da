"""Windows over a streaming DataFrame in one expression: answers, folders, resumption, refusals."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import straggler
from spark_impl.over import Stream

ROWS = [("a", 3, 1.0), ("a", 12, 2.0), ("b", 1, 4.0)]


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Callable[[], Stream]:
    """Return a function that begins a query over a folder of CSV files."""
    (tmp_path / "in").mkdir()
    schema = "device string, at string, watts string"

    def begin() -> Stream:
        lines = spark.readStream.schema(schema).csv(str(tmp_path / "in"))
        return straggler.over(lines, event_time="at", key="device", time_unit="s")

    return begin


def add(folder: Path, name: str, rows: Sequence[tuple[str, int, float]]) -> None:
    """Write a file of the source."""
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (folder / "in" / name).write_text(text, encoding="utf-8")


def values(found: DataFrame) -> dict[tuple[str, int], float]:
    """Return the value of each window, by its key and its start in seconds."""
    return {(row.key, row.start_us // 1_000_000): row.value for row in found.collect()}


def test_a_sum_over_a_stream_is_stored_and_resumed(
    source: Callable[[], Stream], tmp_path: Path
) -> None:
    add(tmp_path, "1.csv", ROWS)
    query = source().window("10 seconds").sum("watts").store_in(tmp_path / "kept")
    query.run_available()
    assert query.progress().batch >= 0
    add(tmp_path, "2.csv", [("a", 4, 8.0)])
    again = source().window("10 seconds").sum("watts").store_in(tmp_path / "kept")
    again.flush()
    assert values(again.results()) == {("a", 0): 9.0, ("a", 10): 2.0, ("b", 0): 4.0}
    folders = sorted(path.name for path in (tmp_path / "kept").iterdir() if path.is_dir())
    assert folders == ["answers", "checkpoints", "history"]
    with pytest.raises(straggler.InputProblem, match="its size_us is 10000000, not 5000000"):
        source().window("5 seconds").sum("watts").store_in(tmp_path / "kept")


@pytest.mark.long
def test_a_longest_wait_makes_it_a_query_of_room_watermark(
    source: Callable[[], Stream], tmp_path: Path
) -> None:
    add(tmp_path, "1.csv", ROWS)
    windows = source().window("10 seconds", "5 seconds", max_wait="1 minute", corrections=True)
    query = windows.count().store_in(tmp_path / "kept", checkpoint=tmp_path / "spark")
    running = query.start()
    try:
        for each in running:
            each.processAllAvailable()
        assert all(each.isActive for each in running)
    finally:
        for each in running:
            each.stop()
    query.flush()
    assert sum(values(query.results()).values()) == 6
    assert not (tmp_path / "kept" / "checkpoints").exists()


def test_a_mistake_is_one_sentence_and_writes_nothing(
    spark: SparkSession, source: Callable[[], Stream], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="size is 10; it must be a text such as '6 hours'"):
        source().window(10).sum("watts")
    with pytest.raises(ValueError, match="unknown setting 'k'"):
        source().window("10 seconds", k=5).sum("watts")
    with pytest.raises(straggler.InputProblem, match="volts"):
        source().window("10 seconds").sum("volts").store_in(tmp_path / "kept")
    table = spark.createDataFrame([(1, 1.0)], "at long, watts double")
    begun = straggler.over(table, event_time="at").window("10 seconds").sum("watts")
    with pytest.raises(straggler.InputProblem, match=r"read it with spark\.readStream"):
        begun.store_in(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()

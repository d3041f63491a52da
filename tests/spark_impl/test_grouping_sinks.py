"""Work as the sink of a stream: every row exactly once, by the number of the micro-batch."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_impl.grouping import Grouping, GroupingProblem, MicroBatch
from spark_impl.runtime.histories import append
from spark_impl.runtime.storage import InputProblem
from spark_impl.runtime.tables import TableWriter
from tests.spark_impl.test_grouping_query import skewed
from tests.spark_impl.test_grouping_streams import SCHEMA, failing, table_of

PART = 40


class Sink:
    """Overwrites a folder for every micro-batch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[int] = []

    def __call__(self, rows: DataFrame, batch: MicroBatch) -> None:
        self.calls.append(batch.number)
        rows.write.mode("overwrite").parquet(str(self.folder / str(batch.number)))

    def written(self) -> dict[int, list[int]]:
        """Return the numbers of the arrivals, by micro-batch."""
        return {
            int(folder.name): sorted(pq.read_table(folder).column("seq").to_pylist())
            for folder in self.folder.iterdir()
        }


def run(spark: SparkSession, folder: Path, sink: Sink, condition: str = "true") -> None:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    rows = reader.parquet(str(folder / "in")).where(condition)
    grouping = Grouping(3, senders=2, window_tuples=50)
    grouping.stream(
        rows, "key", folder / "store", sink, "seq", spark_checkpoint=folder / "checkpoint"
    ).run_available()


def parts(count: int) -> dict[int, list[int]]:
    return {number: list(range(PART * number, PART * (number + 1))) for number in range(count)}


def test_a_sink_that_overwrites_by_number_has_every_row_once_after_crashes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = skewed(4, 3 * PART)
    sink = Sink(tmp_path / "out")
    append(tmp_path / "in", table_of(events[:PART]))
    run(spark, tmp_path, sink)
    for after in (False, True):  # before the store's commit, and between it and that of Spark
        append(tmp_path / "in", table_of(events[PART * (1 + after) : PART * (2 + after)]))
        with monkeypatch.context() as patch:
            patch.setattr(TableWriter, "commit", failing(TableWriter.commit, 1, after))
            with pytest.raises(GroupingProblem):
                run(spark, tmp_path, sink)
        assert sink.written() == parts(2), "the same rows again, and none that came later"
    run(spark, tmp_path, sink)
    assert sink.calls == [0, 1, 1, 1, 2]
    assert sink.written() == parts(3)
    assert (tmp_path / "checkpoint" / "commits").is_dir()
    assert not (tmp_path / "store" / "_checkpoint").exists()


def test_a_micro_batch_without_rows_leaves_its_number_to_the_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    events = skewed(4, 3 * PART)
    sink = Sink(tmp_path / "out")
    for number in range(3):
        append(tmp_path / "in", table_of(events[PART * number : PART * (number + 1)]))
        run(spark, tmp_path, sink, f"seq >= {2 * PART}")
    assert sink.calls == [0, 0, 0]
    assert sink.written() == {0: parts(3)[2]}


def test_a_checkpoint_does_not_go_with_another_store(spark: SparkSession, tmp_path: Path) -> None:
    sink = Sink(tmp_path / "out")
    append(tmp_path / "in", table_of(skewed(4, PART)))
    run(spark, tmp_path, sink)
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    with pytest.raises(InputProblem, match=r"has done micro-batch 0, but .* has never seen it"):
        run(spark, tmp_path, sink)  # although nothing is new in the source
    assert sink.calls == [0]


def test_a_checkpoint_that_was_lost_after_one_micro_batch_is_missed(
    spark: SparkSession, tmp_path: Path
) -> None:
    events = skewed(4, 2 * PART)
    sink = Sink(tmp_path / "out")
    append(tmp_path / "in", table_of(events[:PART]))
    run(spark, tmp_path, sink)
    (tmp_path / "checkpoint").rename(tmp_path / "elsewhere")
    append(tmp_path / "in", table_of(events[PART:]))
    with pytest.raises(
        InputProblem, match=r"/checkpoint is not the checkpoint of .* micro-batch 0$"
    ):
        run(spark, tmp_path, sink)
    assert sink.calls == [0]

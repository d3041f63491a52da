"""Files of tasks that the driver does not find stop a stream; nothing is lost silently."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import GroupingConfig
from spark_impl.grouping import MicroBatch, at_instances
from spark_impl.grouping.query import Spreader
from spark_impl.grouping.store import INSTANCE, SENDER
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import require_view
from tests.harness.unshared_stores import FOUND, count, read_all
from tests.spark_impl.test_grouping_query import skewed
from tests.spark_impl.test_grouping_streams import COLUMNS, table_of

CONFIG = GroupingConfig(3, senders=2, window_tuples=50)
SENTENCE = "the driver and all workers have to reach one folder under this address"


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(table_of(skewed(2, 60)))


def remove(store: Path, pattern: str, batch: int) -> None:
    """Remove the files of a micro-batch that match a pattern such as ``sender/*-1-*``."""
    found = [*store.glob(f"kind={pattern}")]
    (file,) = [each for each in found if each.name.startswith(f"{batch:08d}-")]
    file.unlink()


def position_of(spreader: Spreader) -> tuple[int, int]:
    standing = spreader.standing()
    return standing.batch, standing.routed


@pytest.mark.parametrize("file", ["sender/*-1-*", "instance/*-2-*"])
def test_a_missing_file_of_this_micro_batch_stops_the_stream(
    file: str, rows: DataFrame, tmp_path: Path
) -> None:
    spreader = Spreader(CONFIG, COLUMNS, locate(tmp_path))

    def work(rows: DataFrame, batch: MicroBatch) -> None:
        read_all(rows, batch)
        remove(tmp_path, file, 1)

    spreader.advance(rows, read_all, 0)
    with pytest.raises(InputProblem, match=f"lacks kind={file[:6]}.*, which was .* {SENTENCE}"):
        spreader.advance(rows, work, 1)
    assert position_of(spreader) == (1, 60)
    spreader.advance(rows, read_all, 1)
    assert position_of(spreader) == (2, 120)


@pytest.mark.fails_tasks
@pytest.mark.parametrize("file", ["sender/*-0-*", "instance/*-0-*"])
def test_a_missing_file_of_the_previous_micro_batch_stops_the_stream(
    file: str, rows: DataFrame, tmp_path: Path
) -> None:
    spreader = Spreader(CONFIG, COLUMNS, locate(tmp_path))
    spreader.advance(rows, read_all, 0)
    remove(tmp_path, file, 0)
    for work in (read_all, lambda _rows, _batch: None):
        with pytest.raises(Exception, match=f"lacks kind={file[:6]}.*, which was .* {SENTENCE}"):
            spreader.advance(rows, work, 1)
    assert position_of(spreader) == (1, 60)


def test_a_sender_with_an_older_state_is_noticed(rows: DataFrame, tmp_path: Path) -> None:
    spreader = Spreader(CONFIG, COLUMNS, locate(tmp_path))

    def work(rows: DataFrame, batch: MicroBatch) -> None:
        read_all(rows, batch)
        before = batch.store.states(require_view(batch.store.root), SENDER, 0)[1]
        older = batch.store.write_sender(1, 1, batch.store.load_sender(before))
        newer = batch.reports.files(SENDER, batch.store.root)[1][0]
        newer.write_bytes(older.read_bytes())

    spreader.advance(rows, read_all, 0)
    with pytest.raises(InputProblem, match=f"has 30 of the 60 tuples routed .*{SENTENCE}"):
        spreader.advance(rows, work, 1)
    assert position_of(spreader) == (1, 60)


def test_tuples_that_do_not_reach_their_instance_are_noticed(
    rows: DataFrame, tmp_path: Path
) -> None:
    spreader = Spreader(CONFIG, COLUMNS, locate(tmp_path))

    def some(rows: DataFrame, batch: MicroBatch) -> None:
        at_instances(rows.where(F.col("seq") < 50), batch, count, FOUND).collect()

    def none(rows: DataFrame, batch: MicroBatch) -> None:
        at_instances(rows, batch, count, FOUND)

    with pytest.raises(InputProblem, match="the instances got 50 of the 60 tuples of micro"):
        spreader.advance(rows, some, 0)
    with pytest.raises(InputProblem, match="the output of only 0 of 3 instances was read to its"):
        spreader.advance(rows, none, 0)
    assert position_of(spreader) == (0, 0)


def test_fewer_partitions_than_senders_lose_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"key": [f"k{number % 9}" for number in range(40)]})
    spreader = Spreader(GroupingConfig(2, senders=5), COLUMNS._replace(seq=None), locate(tmp_path))
    for number in range(2):
        rows = spark.createDataFrame(table).coalesce(2)
        spreader.advance(rows, read_all, number)
    assert position_of(spreader) == (2, 80)
    files = spreader.store.states(require_view(locate(tmp_path)), INSTANCE, 1)
    held = [spreader.store.load_worked(files[each]).state for each in range(2)]
    assert sum(each.column("n")[0].as_py() for each in held if each is not None) == 80

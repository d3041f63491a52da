"""Files of tasks that the driver does not find stop a stream; nothing is lost silently."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import GroupingConfig
from spark_impl.grouping import MicroBatch, at_instances
from spark_impl.grouping.query import Spreader
from spark_impl.runtime import locks
from spark_impl.runtime.storage import InputProblem, locate
from tests.harness.unshared_stores import FOUND, count, read_all
from tests.spark_impl.test_grouping_query import skewed
from tests.spark_impl.test_grouping_streams import COLUMNS, table_of

CONFIG = GroupingConfig(3, senders=2, window_tuples=50)
SENTENCE = "the driver and all workers have to reach one folder under this address"


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(table_of(skewed(2, 60)))


def position_of(spreader: Spreader) -> tuple[int, int]:
    standing = spreader.standing()
    return standing.batch, standing.routed


@pytest.mark.parametrize("file", ["sender-1", "instance-2"])
def test_a_missing_file_of_this_micro_batch_stops_the_stream(
    file: str, rows: DataFrame, tmp_path: Path
) -> None:
    spreader = Spreader(CONFIG, COLUMNS, locate(tmp_path))

    def work(rows: DataFrame, batch: MicroBatch) -> None:
        read_all(rows, batch)
        (tmp_path / "batches" / "1" / f"{file}.arrow").unlink()

    spreader.advance(rows, read_all, 0)
    with pytest.raises(InputProblem, match=f"lacks 1/{file}.arrow, which has .* {SENTENCE}"):
        spreader.advance(rows, work, 1)
    assert position_of(spreader) == (1, 60)
    spreader.advance(rows, read_all, 1)
    assert position_of(spreader) == (2, 120)


@pytest.mark.fails_tasks
@pytest.mark.parametrize("file", ["sender-0", "instance-0"])
def test_a_missing_file_of_the_previous_micro_batch_stops_the_stream(
    file: str, rows: DataFrame, tmp_path: Path
) -> None:
    spreader = Spreader(CONFIG, COLUMNS, locate(tmp_path))
    spreader.advance(rows, read_all, 0)
    (tmp_path / "batches" / "0" / f"{file}.arrow").unlink()
    for work in (read_all, lambda _rows, _batch: None):
        with pytest.raises(Exception, match=f"lacks 0/{file}.arrow, which has .* {SENTENCE}"):
            spreader.advance(rows, work, 1)
    assert position_of(spreader) == (1, 60)


def test_a_sender_with_an_older_state_is_noticed(rows: DataFrame, tmp_path: Path) -> None:
    spreader = Spreader(CONFIG, COLUMNS, locate(tmp_path))

    def work(rows: DataFrame, batch: MicroBatch) -> None:
        read_all(rows, batch)
        batch.store.write_sender(1, 1, batch.store.load_sender(0, 1))

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
    held = [spreader.store.load_worked(1, each).state for each in range(2)]
    assert sum(each.column("n")[0].as_py() for each in held if each is not None) == 80


class LostLease:
    """A lock that another process may hold by now."""

    is_held = False

    def release(self) -> None:
        """Do nothing."""


def test_a_lock_that_was_lost_ends_the_micro_batch(
    rows: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spreader = Spreader(CONFIG, COLUMNS, locate(tmp_path))
    monkeypatch.setattr(locks, "lock", lambda _root: LostLease())
    with pytest.raises(InputProblem, match=r"was not kept locked during micro-batch 0$"):
        spreader.advance(rows, lambda _rows, _batch: None, 0)
    assert position_of(spreader) == (0, 0)

"""Stores of streams that are spread: one writer, one source, one configuration, any file system."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import GroupingConfig
from spark_impl.grouping import Grouping, MicroBatch
from spark_impl.grouping.query import Spreader
from spark_impl.grouping.store import GroupingStore, Worked
from spark_impl.runtime.storage import InputProblem, Location, locate
from tests.spark_impl.test_grouping_query import skewed
from tests.spark_impl.test_grouping_streams import COLUMNS, TOTALS, table_of


def test_of_two_streams_the_second_one_stops(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame(table_of(skewed(1, 10)))
    spreader = Spreader(GroupingConfig(2), COLUMNS, locate(tmp_path / "store"))

    def be_overtaken(_rows: DataFrame, _batch: MicroBatch) -> None:
        other = Spreader(GroupingConfig(2), COLUMNS, locate(tmp_path / "store"))
        other.advance(rows, lambda _rows, _batch: None, 0)

    with pytest.raises(InputProblem, match="has micro-batch 0 already: another query has"):
        spreader.advance(rows, be_overtaken, 0)
    assert spreader.standing().routed == 10


def test_a_store_goes_with_one_source(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame(table_of(skewed(1, 10)))
    spreader = Spreader(GroupingConfig(2), COLUMNS, locate(tmp_path / "store"))
    numbers: list[int] = []

    def advance(number: int, condition: str = "true") -> None:
        spreader.advance(
            rows.where(condition), lambda _rows, batch: numbers.append(batch.number), number
        )

    with pytest.raises(InputProblem, match=r"^the source has done micro-batch 0, but .* never"):
        advance(1)
    for number in (0, 1, 1):
        advance(number)
    for number in (2, 2, 3):
        advance(number, "seq < 0")
    advance(4)
    for number, sentence in ((3, "at micro-batch 3, .* already at 4"), (6, "done micro-batch 5, ")):
        with pytest.raises(InputProblem, match=f"^the source .*{sentence}"):
            advance(number)
    assert numbers == [0, 1, 1, 2, 2, 2, 2]
    assert spreader.standing().routed == 30


def test_a_folder_that_is_no_store_of_this_stream_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("string(value) AS key")
    Grouping(2).stream(stream, "key", tmp_path / "store", lambda _rows, _batch: None)
    with pytest.raises(InputProblem, match="belongs to another stream"):
        Grouping(3).stream(stream, "key", tmp_path / "store", lambda _rows, _batch: None)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(InputProblem, match="neither an empty folder nor the store"):
        Grouping(3).stream(stream, "key", tmp_path / "other", lambda _rows, _batch: None)
    # A run that is killed while it creates a store leaves such a folder, so it is ours.
    (tmp_path / "begun" / "_delta_log").mkdir(parents=True)
    Grouping(3).stream(stream, "key", tmp_path / "begun", lambda _rows, _batch: None)
    (tmp_path / "plain").touch()
    with pytest.raises(InputProblem, match="plain is neither an empty folder"):
        Grouping(3).stream(stream, "key", tmp_path / "plain", lambda _rows, _batch: None)
    with pytest.raises(InputProblem, match=r"plain/below cannot be written"):
        Grouping(3).stream(stream, "key", tmp_path / "plain" / "below", lambda _rows, _batch: None)


def test_a_missing_state_differs_from_an_empty_one(place: Location) -> None:
    store = GroupingStore(place / "store")
    for state in (None, pa.table({}), TOTALS.empty_table()):
        file = store.write_worked(0, 1, Worked(3, 70, state))
        found = store.load_worked(file)
        assert (found.tuples, found.busy_us) == store.spent(file) == (3, 70)
        assert (found.state is None) == (state is None)
        if state is not None:
            assert found.state is not None
            assert found.state.schema.equals(state.schema)
    file.remove()
    with pytest.raises(InputProblem, match=r"store\S* lacks kind=instance/\S*, which was written"):
        store.load_worked(file)

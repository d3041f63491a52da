"""A store goes on over its own history only, whatever its address is."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary.join import Equi
from spark_impl.grouping import Grouping
from spark_impl.join import ChainJoin, from_history
from spark_impl.retention import drop_before
from spark_impl.runtime import tables
from spark_impl.runtime.histories import append, history_schema
from spark_impl.runtime.provenance import identity_of, note_history, require_history
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import require_view
from spark_impl.runtime.tables import TableWriter
from spark_impl.script import ScriptQuery
from spark_impl.slack import SlackQuery
from spark_impl.watermark import WatermarkQuery
from tests.spark_impl.test_query import FIXED
from tests.spark_impl.test_script_query import CONFIG as SCRIPTS
from tests.spark_impl.test_watermark_query import TUMBLING

Run = Callable[[SparkSession, Path, Path], None]


def add(history: Path, first: int) -> Path:
    """Add a file of both streams to a history."""
    schema = history_schema(pa.field("stream", pa.string()))
    rows = [
        {
            "stream": "RS"[seq % 2],
            "seq": seq,
            "source_id": seq,
            "key": "a",
            "event_time_us": seq * 1_000_000,
            "value": 1.0,
            "arrival_us": seq * 1_000_000,
        }
        for seq in range(first, first + 4)
    ]
    append(history, pa.Table.from_pylist(rows, schema))
    return history


def run_slack(spark: SparkSession, history: Path, store: Path) -> None:
    SlackQuery(spark, FIXED, history, store).run_available()


def run_watermark(spark: SparkSession, history: Path, store: Path) -> None:
    WatermarkQuery(spark, TUMBLING, history, store).run_available()


def run_script(spark: SparkSession, history: Path, store: Path) -> None:
    ScriptQuery(spark, SCRIPTS, history, store).run_available()


def run_join(spark: SparkSession, history: Path, store: Path) -> None:
    r, s = from_history(spark, history)
    ChainJoin(2, 10, Equi("value")).stream(r, s, store).run_available()


def run_grouping(spark: SparkSession, history: Path, store: Path) -> None:
    def work(rows: DataFrame, batch: Any) -> None:
        rows.write.format("noop").mode("append").save()

    rows = from_history(spark, history)[0]
    Grouping(2, "tag").stream(rows, "key", store, work).run_available()


RUNS = [run_slack, run_watermark, run_script, run_join, run_grouping]


def content(store: Path) -> dict[str, bytes]:
    """Return what is in a store."""
    found = {str(path.relative_to(store)): path for path in store.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if "_empty" not in name}


@pytest.mark.parametrize("run", RUNS)
def test_a_store_is_refused_over_another_history(
    spark: SparkSession, tmp_path: Path, run: Run
) -> None:
    own, foreign, store = tmp_path / "own", add(tmp_path / "foreign", 0), tmp_path / "store"
    run(spark, add(own, 0), store)
    noted, before = require_view(locate(store)).history, content(store)
    assert noted is not None
    assert noted == {"id": identity_of(locate(own)), "address": str(own)}
    run(spark, foreign, tmp_path / "another")
    for other in (foreign, add(tmp_path / "unread", 0)):
        sentence = (
            f"^{store} belongs to the history {noted['id']} at {own}, not to {other}, which is"
            f" {identity_of(locate(other)) or 'a history without an id'}: give it its own history"
        )
        with pytest.raises(InputProblem, match=sentence):
            run(spark, other, store)
    assert content(store) == before
    with pytest.raises(InputProblem, match=f"belongs to the history .* at {own}, not to {foreign}"):
        drop_before(add(foreign, 4), 1, readers=[store])
    add(own, 4)
    run(spark, own, store)
    assert content(store).keys() > before.keys()


def writer_of(root: Path) -> TableWriter:
    tables.create(locate(root), pa.schema([("kind", pa.string())]), {"version": 1})
    return TableWriter(locate(root))


def test_a_history_keeps_its_id_wherever_it_is(tmp_path: Path) -> None:
    history, writer = locate(add(tmp_path / "history", 0)), writer_of(tmp_path / "store")
    note_history(writer, history)
    moved = tmp_path / "moved"
    shutil.copytree(history.path, moved)
    add(moved, 4)
    require_history(writer.view, locate(moved))
    (moved / "_history.json").unlink()
    with pytest.raises(InputProblem, match="which is a history without an id"):
        require_history(writer.view, locate(moved))


def test_a_history_without_files_has_no_id_until_a_run_finds_some(tmp_path: Path) -> None:
    history, writer = locate(tmp_path / "history"), writer_of(tmp_path / "store")
    history.make()
    note_history(writer, history)
    assert writer.view.history is None
    assert not history.children()
    add(tmp_path / "history", 0)
    note_history(writer, history)
    require_history(writer.view, history)
    noted = require_view(locate(tmp_path / "store")).history
    assert noted is not None
    assert noted["id"] == identity_of(history)


def test_a_landed_history_has_the_id_of_its_landing(tmp_path: Path) -> None:
    history = locate(tmp_path / "history")
    (history / "_landing.json").write_bytes(b'{"landing": "17"}')
    assert identity_of(history) == "17"
    for damaged in (b"", b"[]", b"{}", b'{"landing": 17}', b"\xff"):
        (history / "_landing.json").write_bytes(damaged)
        assert identity_of(history) is None

"""Cells of the benchmark of a cluster, as they run on Spark: `python -m ... MASTER FOLDER CELLS`.

The driver of the cluster runs this module. It measures a calibration and then each cell, and writes
what it has found to the folder, which all hosts share. Work is emulated: workers sleep.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import GroupingConfig, JoinConfig
from model.vocabulary.join import STREAMS, Equi
from spark_impl.grouping import MicroBatch, at_instances
from spark_impl.grouping.query import Spreader
from spark_impl.grouping.tasks import Columns
from spark_impl.join.chain import Chain
from spark_impl.join.store import MATCHES
from spark_impl.join.task import Options
from spark_impl.runtime.session import session
from spark_impl.runtime.storage import locate

START_US = 1_700_000_000_000_000
SECOND_US = 1_000_000
# Room grouping.
INSTANCES = 6
TIMES_US = (1_000, 1_000, 1_000, 4_000, 4_000, 4_000)
BATCHES = (600, 4_000, 4_000)
"""Tuples of each micro-batch; the first one finds hot keys."""
ZIPF, KEYS = 1.5, 1_000
FOUND = pa.schema([("tuples", pa.int64())])
# Room join.
JOIN_KEYS = 512
WINDOW_S = 1.0
EPOCHS_S = (1.0, 1.5, 1.5)
"""Length of each epoch in event time; the first one fills the window."""
COMPARISON_US = 500
CREDIT = 51


class JoinCell(NamedTuple):
    """A chain, and the rate of both streams together."""

    workers: int
    block_size: int
    rate_hz: float
    epochs_s: Sequence[float] = EPOCHS_S

    @property
    def name(self) -> str:
        """Name of the cell in the table."""
        return f"{self.workers}, {self.block_size}"


def grouping_config(policy: str) -> GroupingConfig:
    """Return the configuration of a policy; senders know the times of the instances."""
    times = ((0, TIMES_US),)
    return GroupingConfig(INSTANCES, policy, times_us=times, window_tuples=BATCHES[0])


def grouping_keys() -> list[str]:
    """Return the keys of all tuples, by Zipf's law."""
    weights = np.arange(1, KEYS + 1) ** -ZIPF
    ranks = np.random.default_rng(1).choice(KEYS, size=sum(BATCHES), p=weights / weights.sum())
    return [f"key-{rank}" for rank in ranks.tolist()]


def join_config(cell: JoinCell) -> JoinConfig:
    """Return the configuration of a chain."""
    return JoinConfig(
        round(WINDOW_S * SECOND_US),
        (("join", Equi("key")),),
        workers=cell.workers,
        block_size=cell.block_size,
        credit=CREDIT,
        lateness_us=0,
    )


def join_epochs(cell: JoinCell) -> list[pa.Table]:
    """Return the arrivals of each epoch; the two streams take turns."""
    rate_hz = cell.rate_hz
    tuples = [round(rate_hz * length_s) for length_s in cell.epochs_s]
    seq = np.arange(sum(tuples))
    keys = np.random.default_rng(1).integers(JOIN_KEYS, size=len(seq))
    whole = pa.table(
        {
            "stream": pa.array(STREAMS).take(pa.array(seq % 2)),
            "seq": seq,
            "source_id": seq // 2,
            "key": pa.array([f"key-{each}" for each in range(JOIN_KEYS)]).take(pa.array(keys)),
            "event_time_us": START_US + (seq * (SECOND_US / rate_hz)).astype(np.int64),
            "value": np.zeros(len(seq)),
        }
    )
    ends = np.cumsum(tuples).tolist()
    return [whole.slice(end - size, size) for end, size in zip(ends, tuples, strict=True)]


# -------------------------------------------------------------------------------- on Spark


def run_grouping(spark: SparkSession, folder: Path, policy: str) -> list[float]:
    """Return the time of each micro-batch (s)."""
    config, keys = grouping_config(policy), grouping_keys()
    spreader = Spreader(config, Columns("key", "seq"), locate(folder / "store"))
    seq, spent_s = 0, []
    for number, size in enumerate(BATCHES):
        ids = np.arange(seq, seq + size)
        table = pa.table({"seq": ids, "key": keys[seq : seq + size]})
        rows = _written(spark, table, folder / f"{number}.parquet")
        begun_s = time.perf_counter()
        spreader.advance(rows, _work, number)
        spent_s.append(time.perf_counter() - begun_s)
        seq += size
    return spent_s


def _work(rows: DataFrame, batch: MicroBatch) -> tuple[int, ...]:
    done = at_instances(rows, batch, _sleep, FOUND).collect()
    assert len(done) == INSTANCES
    return TIMES_US


def _sleep(rows: pa.Table, _state: pa.Table | None) -> tuple[pa.Table, None]:
    if len(rows):
        instance = rows.column("instance")[0].as_py()
        time.sleep(len(rows) * TIMES_US[instance] / SECOND_US)
    return pa.table({"tuples": [len(rows)]}, FOUND), None


def run_join(spark: SparkSession, folder: Path, cell: JoinCell) -> dict[str, object]:
    """Return the time of each epoch (s), and the pairs that came out in it, by their later tuple.

    A tuple is named by its ``seq``.
    """
    options = Options(comparison_us=COMPARISON_US)
    chain = Chain(spark, join_config(cell), folder / "store", options=options)
    spent_s, compared = [], []
    for number, table in enumerate(join_epochs(cell)):
        rows = _written(spark, table, folder / f"{number}.parquet")
        begun_s = time.perf_counter()
        done = chain.advance(rows)
        spent_s.append(time.perf_counter() - begun_s)
        compared.append(sum(each.compared for each in done))
    pairs = []
    for epoch in range(len(cell.epochs_s)):
        found = chain.store.at().read_kind(MATCHES, epoch)
        r, s = (2 * found.column(name).to_numpy() for name in ("r_id", "s_id"))
        pairs.append(np.maximum(r, s + 1).tolist())
    return {"spent_s": spent_s, "compared": compared, "pairs": pairs}


def _written(spark: SparkSession, table: pa.Table, file: Path) -> DataFrame:
    """Return a table that workers read from the shared folder, not from the driver."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file)
    return spark.read.parquet(str(file))


def main(master: str, place: str, wanted: str) -> None:
    """Measure cells and write them to the folder."""
    folder = Path(place)
    cells = json.loads(wanted)
    with session(master) as spark:
        if cells.get("calibrate"):
            # Not at the top: workers import this module.
            from straggler.calibrating import calibrate

            found = calibrate(spark, folder / "calibration", 0, COMPARISON_US)
            (folder / "calibration.json").write_text(json.dumps(found.to_json()), "utf-8")
            _wait_for(folder / "cells.json")
            cells = json.loads((folder / "cells.json").read_text("utf-8"))
        results: dict[str, object] = {}
        run_grouping(spark, folder / "warm", "shuffle")
        for policy in cells.get("grouping", ()):
            results[policy] = run_grouping(spark, folder / policy, policy)
            _note(folder, results)
        for each in cells.get("join", ()):
            cell = JoinCell(*each)
            results[cell.name] = run_join(spark, folder / f"join-{cell.name}", cell)
            _note(folder, results)


def _note(folder: Path, results: dict[str, object]) -> None:
    (folder / "results.json").write_text(json.dumps(results), "utf-8")


def _wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])

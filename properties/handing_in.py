"""Hand dirty rows to a landing and to queries of all rooms.

Every query is opened and run. When new rows have landed, it is asked which rows wait, is made to
forget its last commit as by a kill, and is opened again.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import ScriptConfig, WatermarkConfig
from model.vocabulary.join_load import LoadRules
from model.vocabulary.script.tree import Arithmetic, Sensor, Statement, Window, Workflow
from properties.dirty_rows import BAD_DEVICE, DEVICES, PACKS, SECOND_US, TEXT, Types, read, write
from properties.oracles import accounts as oracle
from properties.oracles.accounts import Row
from spark_impl import join, script, watermark
from spark_impl.aggregates import count, sum_
from spark_impl.grouping import Grouping, at_instances
from spark_impl.join import ChainJoin, from_history
from spark_impl.landed import LandedQueries
from spark_impl.over import over
from spark_impl.retention import drop_before
from spark_impl.runtime.accounts import Ledger, ledger
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.storage import InputProblem
from spark_impl.runtime.systems import lose_commit
from spark_impl.script import ScriptQuery
from spark_impl.watermark import WatermarkQuery
from spark_impl.windows.waiting import UNCORRECTED

WAITING: Mapping[str, Any] = {"watermark": watermark, "script": script, "join": join}
"""Rooms whose rows may wait, with one store each."""
ANSWERS = ("sum_v", "count")  # of room ``slack``
NEVER_US = 1 << 60
TEXTS: Mapping[str, Any] = {side: {"source_text": "text"} for side in ("r_columns", "s_columns")}
SELECT = ("r.source_text", "s.source_text")
COLUMNS: dict[str, Any] = {"event_time": "at", "key": "device", "source_id": "id", "time_unit": "s"}


class Halfway(NamedTuple):
    """Statements of a store before the last file was read."""

    counted: Ledger
    listed: list[dict[str, Any]]
    """Rows that wait."""
    told: Any
    """Progress of the room."""
    chain: join.Status
    """The queries of room ``join``."""


class Doors(NamedTuple):
    """All rows that were handed in, and where a user finds them again."""

    spark: SparkSession
    folder: Path
    """Folder of the stores ``watermark``, ``script``, ``join`` and ``grouping``."""
    landed: LandedQueries
    """Two queries of room ``slack``, for each side, with a landing of their own."""
    landing: Landing
    """The landing of the two sides, from which the stores were computed."""
    spread: Counter[int]
    """Arrival numbers that instances of room ``grouping`` have seen, with their counts."""
    joined: Counter[Any]
    """Pairs that a sink of room ``join`` was handed, with their epochs."""
    rows: list[Row]
    """All rows that were handed in."""
    halfway: Mapping[str, Halfway]
    """Statements of some stores, by room."""


def hand_in(
    spark: SparkSession, folder: Path, files: Sequence[Sequence[Row]], typed: Types
) -> Doors:
    """Hand in the rows of files, a micro-batch for each; then end all streams.

    ``typed`` are the types of the times and numbers of side S.
    """
    types = {"all": TEXT, "R": TEXT, "S": typed}
    batches: dict[int, Counter[int]] = {}
    epochs: dict[int, Counter[Any]] = {}
    halfway: Mapping[str, Halfway] = {}
    for number, rows in enumerate(files):
        write(folder / "all", number, rows, TEXT)
        for turn, side in enumerate("RS"):
            mine = [row for row in rows if row.side == side]
            write(folder / side, 2 * number + turn, mine, types[side])
        is_last = number == len(files) - 1
        streams = {name: read(spark, folder / name, each) for name, each in types.items()}
        if number:
            lose_commit(folder / "landing")
            (folder / "landing" / "_landed.json").unlink()  # the last file is written anew
            for name in ("old/a", "young/a", "young/b"):  # what killed workers have left
                path = folder / "history/_scratch" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
                for each in (path, path.parent)[name == "young/b" :]:
                    os.utime(each, (1_000, 1_000))
        sides = {side: streams[side] for side in "RS"}
        places = folder / "history", folder / "landing"
        landing = Landing(sides, *places, value="v", **COLUMNS)
        landing.run_available()
        if number:
            halfway = _ask_halfway(spark, folder)
        runs = _open(spark, streams["all"], folder, batches, epochs)
        if number:
            assert join.withdraw(folder / "join", "early") == 1
            assert join.submit(folder / "join", "later", "key", select=SELECT) == 1
        with ThreadPoolExecutor(len(runs)) as pool:
            for done in [pool.submit(_run, query, is_last) for query in runs.values()]:
                done.result()
    handed = [row for rows in files for row in rows]
    seen, joined = batches[max(batches)], sum(epochs.values(), Counter())
    return Doors(spark, folder, runs["slack"], landing, seen, joined, handed, halfway)


def _ask_halfway(spark: SparkSession, folder: Path) -> Mapping[str, Halfway]:
    """Return what stores say while rows wait; then let their queries forget the last commit.

    A history whose file a correction needs is not shortened.
    """

    def ask(room: Any) -> Halfway:
        store = folder / room.__name__.rpartition(".")[2]
        listed, told = rows_of(room.pending(spark, store)), room.progress(store)
        return Halfway(ledger(store), listed, told, join.status(folder / "join"))

    with ThreadPoolExecutor(len(WAITING)) as pool:
        found = dict(zip(WAITING, pool.map(ask, WAITING.values()), strict=True))
    if any(row["reason"] == UNCORRECTED for row in found["watermark"].listed):
        with pytest.raises(InputProblem, match="wait for a correction"):
            drop_before(folder / "history", 1, readers=[folder / "watermark"])
    stores = [folder / f"{each}/_checkpoint" for each in (*WAITING, "grouping")]
    for checkpoint in (*stores, *(each.parent for each in folder.glob("landed/**/commits"))):
        lose_commit(checkpoint)
    return found


def _open(
    spark: SparkSession,
    stream: DataFrame,
    folder: Path,
    batches: dict[int, Counter[int]],
    epochs: dict[int, Counter[Any]],
) -> dict[str, Any]:
    """Open a query of each room, by its name; two of them hand on what they have."""
    size, slide = f"{oracle.SIZE_S} seconds", f"{oracle.SLIDE_S} seconds"
    begun = over(stream, arrival="came", group_columns=["side"], **COLUMNS)
    windows = begun.window(size, slide, tasks=2, dedup=True, delta=0.2, eps=0.1)
    wait_us, size_us = oracle.LATENESS_S * SECOND_US, oracle.SIZE_S * SECOND_US
    config = WatermarkConfig(
        *(size_us, oracle.SLIDE_S * SECOND_US, wait_us),
        corrections=True,
        gamma_us=NEVER_US,  # so that late rows wait for a correction halfway
        max_age_us=NEVER_US,
        tasks=2,
    )
    every = oracle.SIZE_S * 1_000
    names = [f"p{pack}{device}" for pack in range(PACKS - 1) for device in (*DEVICES, BAD_DEVICE)]
    totals = [Statement(f"sum_{name}", Window("sum", Sensor(name), every, every)) for name in names]
    # What a sensor sent waits for one that sends nothing, also below its own watermark.
    silent = f"p{PACKS}"
    gaps = [
        Statement(f"gap_{name}", Arithmetic("-", Sensor(name), Sensor(silent))) for name in names
    ]
    sensors = tuple((name, 3_600) for name in (*names, silent))
    script = ScriptConfig((Workflow("hall", (*totals, *gaps)),), sensors, lateness_us=wait_us)
    history = folder / "history"
    named: dict[str, Any] = {"load": LoadRules(), "history": True, "lateness_us": wait_us, **TEXTS}
    same_key: dict[str, Any] = {
        "text": 'key and s.source_text != ""',
        "function": lambda r, s: r.key == s.key,
        "early": "key",
    }
    chain = ChainJoin((2, 3), oracle.NEAR_S * SECOND_US, same_key, **named)

    def work(rows: pa.Table, before: pa.Table | None) -> tuple[pa.Table, pa.Table]:
        own = rows.select(["seq"])
        seen = own if before is None else pa.concat_tables([before, own])
        return seen, seen

    def keep(rows: DataFrame, batch: Any) -> None:
        seen = at_instances(rows, batch, work, pa.schema([("seq", pa.int64())]))
        batches[batch.number] = Counter(seen.toArrow().column("seq").to_pylist())

    def hand_on(pairs: DataFrame, epoch: int) -> None:
        found = pairs.select("query", "r_id", "s_id").toArrow().to_pylist()
        epochs[epoch] = Counter((*pair.values(), epoch) for pair in found)

    return {
        "slack": windows.agg(sum_("v"), count()).store_in(folder / "landed"),
        "watermark": WatermarkQuery(spark, config, history, folder / "watermark"),
        "script": ScriptQuery(spark, script, history, folder / "script"),
        "join": chain.stream(*from_history(spark, history, **TEXTS), folder / "join", hand_on),
        "grouping": Grouping(instances=2, senders=2).stream(
            from_history(spark, history)[0], "key", folder / "grouping", keep, "seq", value="value"
        ),
    }


def _run(query: Any, is_last: bool) -> None:
    run: Callable[[], None] = query.run_available
    if is_last:
        run = getattr(query, "flush", run)  # room ``grouping`` has no flush
    run()


def rows_of(table: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries."""
    return list(table.toArrow().to_pylist())

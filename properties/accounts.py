"""Hand dirty rows to a landing and to queries of all rooms, and account for each row.

Every query is opened and run. When new rows have landed, it is asked which rows wait, is made to
forget its last commit as by a kill, and is opened again.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import ScriptConfig, WatermarkConfig
from model.vocabulary.join import Equi
from model.vocabulary.script.tree import Sensor, Statement, Window, Workflow
from properties.dirty_rows import (
    BAD_DEVICE,
    DEVICES,
    PACKS,
    SECOND_US,
    TEXT,
    Types,
    read,
    write,
)
from properties.oracles import accounts as oracle
from properties.oracles.accounts import BAD_NUMBERS, Row
from spark_impl import grouping, join, script, watermark
from spark_impl.grouping import Grouping
from spark_impl.join import ChainJoin, from_history
from spark_impl.landed import LandedQuery
from spark_impl.over import over
from spark_impl.retention import drop_before
from spark_impl.runtime.accounts import Ledger, ledger
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.storage import InputProblem
from spark_impl.runtime.waiting import NOT_READ
from spark_impl.script import ScriptQuery
from spark_impl.watermark import WatermarkQuery
from spark_impl.windows.waiting import UNCORRECTED

UNREAD = tuple(each for each in BAD_NUMBERS if each not in ("NaN", "Infinity", "-Infinity"))
"""Cells that land as NULL."""
STATES = ("exact", "incomplete")
WAITING: Mapping[str, Any] = {"watermark": watermark, "script": script, "join": join}
"""Rooms whose rows may wait, with one store each."""
LATE, NOT_FINITE = "event time lies below the watermark", "value is not a finite number"
COLUMNS = {"event_time": "at", "key": "device", "source_id": "id", "time_unit": "s"}


class Doors(NamedTuple):
    """All rows that were handed in, and where a user finds them again."""

    spark: SparkSession
    folder: Path
    """Folder of the stores ``watermark``, ``script``, ``join`` and ``grouping``."""
    landed: LandedQuery
    """A query of room ``slack``, with a landing of its own."""
    landing: Landing
    """The landing of the two sides, from which the stores were computed."""
    spread: Counter[int]
    """Arrival numbers that the sink of room ``grouping`` got, with their counts."""
    rows: list[Row]
    """All rows that were handed in."""
    halfway: Mapping[str, tuple[Ledger, list[dict[str, Any]]]]
    """Ledger and list of waiting rows of some stores, before the last file was read."""


def hand_in(
    spark: SparkSession, folder: Path, files: Sequence[Sequence[Row]], typed: Types
) -> Doors:
    """Hand in the rows of files, a micro-batch for each; then end all streams.

    ``typed`` are the types of the times and numbers of side S.
    """
    types = {"all": TEXT, "R": TEXT, "S": typed}
    batches: dict[int, Counter[int]] = {}
    halfway: dict[str, tuple[Ledger, list[dict[str, Any]]]] = {}
    for number, rows in enumerate(files):
        write(folder / "all", number, rows, TEXT)
        for turn, side in enumerate("RS"):
            mine = [row for row in rows if row.side == side]
            write(folder / side, 2 * number + turn, mine, types[side])
        is_last = number == len(files) - 1
        streams = {name: read(spark, folder / name, each) for name, each in types.items()}
        if number:
            _forget(folder / "landing")
        landing = _land(streams, folder)
        landing.run_available()
        if number:
            halfway = _ask_halfway(spark, folder)
        runs = _open(spark, streams["all"], folder, batches)
        with ThreadPoolExecutor(len(runs)) as pool:
            for done in [pool.submit(_run, query, is_last) for query in runs.values()]:
                done.result()
    spread = sum(batches.values(), Counter[int]())
    handed = [row for rows in files for row in rows]
    return Doors(spark, folder, runs["slack"], landing, spread, handed, halfway)


def _ask_halfway(
    spark: SparkSession, folder: Path
) -> dict[str, tuple[Ledger, list[dict[str, Any]]]]:
    """Return what stores say of rows that wait; then let their queries forget the last commit.

    A history whose file a correction needs is not shortened.
    """

    def ask(room: Any) -> tuple[Ledger, list[dict[str, Any]]]:
        store = folder / room.__name__.rpartition(".")[2]
        return ledger(store), _rows_of(room.pending(spark, store))

    with ThreadPoolExecutor(len(WAITING)) as pool:
        found = dict(zip(WAITING, pool.map(ask, WAITING.values()), strict=True))
    if any(row["reason"] == UNCORRECTED for row in found["watermark"][1]):
        with pytest.raises(InputProblem, match="wait for a correction"):
            drop_before(folder / "history", 1, readers=[folder / "watermark"])
    stores = [f"{each}/_checkpoint" for each in (*WAITING, "grouping")]
    for checkpoint in (*stores, "landed/checkpoints/landing", "landed/checkpoints/answers"):
        _forget(folder / checkpoint)
    return found


def _forget(checkpoint: Path) -> None:
    """Let Spark repeat the last micro-batch of a checkpoint, as after a kill before its commit."""
    last = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    for path in (checkpoint / "commits").glob(f"*{last}*"):
        path.unlink()


def _land(streams: Mapping[str, DataFrame], folder: Path) -> Landing:
    sides = {side: streams[side] for side in "RS"}
    places = folder / "history", folder / "landing"
    return Landing(sides, *places, value="v", **COLUMNS)


def _open(
    spark: SparkSession, stream: DataFrame, folder: Path, batches: dict[int, Counter[int]]
) -> dict[str, Any]:
    """Open a query of each room, by its name."""
    size, slide = f"{oracle.SIZE_S} seconds", f"{oracle.SLIDE_S} seconds"
    begun = over(stream, **COLUMNS)
    windows = begun.window(size, slide, tasks=2, dedup=True, delta=0.2, eps=0.1)
    wait_us, size_us = oracle.LATENESS_S * SECOND_US, oracle.SIZE_S * SECOND_US
    config = WatermarkConfig(
        size_us, oracle.SLIDE_S * SECOND_US, wait_us, corrections=True, tasks=2, dedup=True
    )
    every = oracle.SIZE_S * 1_000
    names = [f"p{pack}{device}" for pack in range(PACKS) for device in (*DEVICES, BAD_DEVICE)]
    totals = [Statement(f"sum_{name}", Window("sum", Sensor(name), every, every)) for name in names]
    sensors = tuple((name, 3_600) for name in names)
    script = ScriptConfig((Workflow("hall", tuple(totals)),), sensors, lateness_us=wait_us)
    history = folder / "history"
    chain = ChainJoin(2, oracle.NEAR_S * SECOND_US, Equi("key"), lateness_us=wait_us)

    def keep(rows: DataFrame, batch: Any) -> None:
        batches[batch.number] = Counter(rows.toArrow().column("seq").to_pylist())

    return {
        "slack": windows.sum("v").store_in(folder / "landed"),
        "watermark": WatermarkQuery(spark, config, history, folder / "watermark"),
        "script": ScriptQuery(spark, script, history, folder / "script"),
        "join": chain.stream(*from_history(spark, history), folder / "join"),
        "grouping": Grouping(instances=2, senders=2).stream(
            from_history(spark, history)[0], "key", folder / "grouping", keep, "seq", value="value"
        ),
    }


def _run(query: Any, is_last: bool) -> None:
    run: Callable[[], None] = query.run_available
    if is_last:
        run = getattr(query, "flush", run)  # room ``grouping`` has no flush
    run()


# -------------------------------------------------------------------------------------- judgement


def unaccounted(
    doors: Doors, files: Sequence[Sequence[Row]], counts: Counter[str]
) -> Iterator[str]:
    """Yield a sentence for each place with missing or additional rows; count the cases."""
    handed = doors.rows
    by_side = [row for file in files for side in "RS" for row in file if row.side == side]
    landed, read = ([row for row in rows if row.fault is None] for rows in (handed, by_side))
    again = list(oracle.comes_again(landed))
    counts["rows"] += len(handed)
    counts["rows that did not land"] += len(handed) - len(landed)
    typed = [row for row in handed if row.side == "S"]
    counts["typed times that did not land"] += sum(row.fault == "at" for row in typed)
    counts["typed cells without a number"] += sum(not row.has_number for row in typed)
    counts["rows that came again"] += len(again)
    counts["rows that came again with other content"] += sum(other for _, other in again)
    counts["numbers in other digits"] += sum("e+" in row.v and not other for row, other in again)
    yield from _set_aside(doors.landing, by_side, read)
    yield from _of_slack(doors.landed, handed, landed, counts)
    yield from _ledger(doors, "landed/answers", sum(not row.has_number for row in landed))
    yield from _of_watermark(doors, read, counts)
    yield from _of_script(doors, read, counts)
    yield from _of_join(doors, read, counts)
    yield from _spread(doors, read)
    first = [row for side in "RS" for row in files[0] if row.side == side and row.fault is None]
    yield from _wait(doors, read, len(first), counts)
    yield from _shorten(doors)


def _wait(doors: Doors, read: Sequence[Row], first: int, counts: Counter[str]) -> Iterator[str]:
    """Judge the rows that waited when ``first`` rows had been read, and the others had landed."""
    for room, (counted, listed) in doors.halfway.items():
        unread = [row for row in listed if row["reason"] == NOT_READ]
        due = ((seq, read[seq].device, int(read[seq].at)) for seq in range(first, len(read)))
        found = ((row["seq"], row["key"], row["event_time_us"] // SECOND_US) for row in unread)
        yield from _differ(f"the rows that {room} has not read", found, due)
        if not counted.balances or counted.pending != len(listed):
            yield f"{len(listed)} rows wait in room {room}: {counted}"
        counts["rows that a query had not read"] += len(unread)
        counts["rows that waited for answers"] += len(listed) - len(unread)
        counts["rows that waited for a correction"] += sum(
            row["reason"] == UNCORRECTED for row in listed
        )


def _shorten(doors: Doors) -> Iterator[str]:
    """Remove the first file of the history, which all have read; no store is another room's."""
    history, rooms = doors.folder / "history", {**WAITING, "grouping": grouping}
    stores = [doors.folder / room for room in rooms]
    with pytest.raises(InputProblem, match=r"^number is 3; it can be at most 2, because"):
        drop_before(history, 3, readers=stores)
    last = sorted(history.glob("*.parquet"))[1:]
    if drop_before(history, 1, readers=stores) != 1 or sorted(history.glob("*.parquet")) != last:
        yield f"{history} has {sorted(history.glob('*.parquet'))}"
    for room, other in permutations(rooms, 2):
        with pytest.raises(InputProblem, match=f"{other}.* (is not the store|belongs to a query)"):
            rooms[room].rejected(doors.spark, doors.folder / other)


def _differ(what: str, found: Iterable[object], expected: Iterable[object]) -> Iterator[str]:
    """Yield what is found less often, or more often, than expected."""
    here, there = Counter(iter(found)), Counter(iter(expected))
    for verb, more in (("missing", there - here), ("too many", here - there)):
        if more:
            yield f"{what}: {more.total()} {verb}, such as {next(iter(more))}"


def _rows_of(table: DataFrame) -> list[dict[str, Any]]:
    return list(table.drop("window").toArrow().to_pylist())


def _cells(row: str) -> tuple[str, ...]:
    """Return the cells of a row that a list shows."""
    found = json.loads(row)
    return (found["id"] or "", found["device"] or "", *json.loads(found["origin"]))


def _own(row: Row) -> tuple[str, ...]:
    return row.source_id, row.device, row.at, row.v


def _set_aside(landing: Landing, handed: Sequence[Row], read: Sequence[Row]) -> Iterator[str]:
    """Compare the list of a landing: rows that did not land, and cells without a number."""
    listed = [row for row in _rows_of(landing.rejected()) if row["reason"]]
    found = ((*_cells(each["row"]), each["column"], each["seq"]) for each in listed)
    unread = [(seq, row) for seq, row in enumerate(read) if row.v in UNREAD]
    expected: list[tuple[object, ...]] = [(*_own(row), "v", seq) for seq, row in unread]
    expected += [(*_own(row), row.fault, None) for row in handed if row.fault]
    yield from _differ("the list of the landing", found, expected)


def _of_slack(
    landed: LandedQuery, handed: Sequence[Row], read: Sequence[Row], counts: Counter[str]
) -> Iterator[str]:
    """Judge a query together with its landing."""
    yield from _windows(landed.results(), oracle.windows(read, keeps_contents=True), counts)
    finite = [row for row in read if row.has_number]
    expected: list[tuple[object, ...]] = [(*_own(row), row.fault) for row in handed if row.fault]
    expected += [(seq, "v") for seq, row in enumerate(read) if not row.has_number]
    refused = len(expected)
    expected += [(row.source_id, "id") for row, other in oracle.comes_again(finite) if other]
    listed = [row for row in _rows_of(landed.rejected()) if row["reason"]]
    found = [
        (*_cells(row["row"]), row["column"])
        if row["stage"] == "landing"
        else (row["seq" if row["column"] == "v" else "text"], row["column"])
        for row in listed
    ]
    yield from _differ("the list of slack", found, expected)
    yield from _differ("the count of slack", [landed.progress().rejected], [refused])
    counts["rows refused by a query"] += sum(row["stage"] == "query" for row in listed)


def _ledger(doors: Doors, store: str, refused: int, late: int = 0) -> Iterator[str]:
    """Compare the ledger of a store whose query has ended and has refused ``refused`` rows."""
    found = ledger(doors.folder / store)
    refused += sum(row.fault is not None for row in doors.rows)
    listed = sum(sum(reasons.values()) for reasons in found.refused.values())
    if not found.balances or found.pending:
        yield f"the ledger of {store} does not balance, or has not ended: {found}"
    yield from _differ(
        f"the ledger of {store}",
        [(found.read, listed, found.late)],
        [(len(doors.rows), refused, late)],
    )


def _windows(
    results: DataFrame, expected: Mapping[oracle.Window, oracle.Counted], counts: Counter[str]
) -> Iterator[str]:
    """Judge the answers of a query that has ended."""
    rows = _rows_of(results)
    found = []
    for row in rows:
        value = None if row["value"] is None else Fraction(row["value"])
        answer = value, row["n"], row["n_refused"], row["state"]
        found.append(((row["key"], row["start_us"]), answer))
    states = {key: (*each, STATES[bool(each.refused)]) for key, each in expected.items()}
    yield from _differ("the answers of windows", found, states.items())
    counts["corrected windows"] += sum(bool(row["revision"]) for row in rows)
    for each in expected.values():
        counts["windows that lack rows"] += bool(each.rows and each.refused)
        counts["windows of which all was refused"] += not each.rows
        counts["sums of 0"] += each.value == 0


def _of_watermark(doors: Doors, read: Sequence[Row], counts: Counter[str]) -> Iterator[str]:
    store = doors.folder / "watermark"
    expected = oracle.windows(read, keeps_contents=False)
    yield from _windows(watermark.results(doors.spark, store), expected, counts)
    found = [row["seq"] for row in _rows_of(watermark.rejected(doors.spark, store))]
    lacks = [seq for seq, row in enumerate(read) if not row.has_number]
    yield from _differ("the list of watermark", found, lacks)
    yield from _ledger(doors, "watermark", len(lacks))


def _admitted(
    room: str, listed: DataFrame, read: Sequence[Row], stream: Callable[[Row], object]
) -> tuple[list[Row], int, list[str]]:
    """Compare a list with the rows that are late in their stream, or without a number.

    Return the other rows, the number of late ones, and the differences.
    """
    finite = {seq: row for seq, row in enumerate(read) if row.has_number}
    is_late = oracle.late((stream(row), row) for row in finite.values())
    late = {seq for seq, each in zip(finite, is_late, strict=True) if each}
    expected = [(seq, NOT_FINITE) for seq in range(len(read)) if seq not in finite]
    expected += [(seq, LATE) for seq in late]
    found = [(row["seq"], re.sub(" of the .*", "", row["reason"])) for row in _rows_of(listed)]
    admitted = [row for seq, row in finite.items() if seq not in late]
    return admitted, len(late), list(_differ(f"the list of {room}", found, expected))


def _of_script(doors: Doors, read: Sequence[Row], counts: Counter[str]) -> Iterator[str]:
    store = doors.folder / "script"
    listed = script.rejected(doors.spark, store)
    admitted, late, differences = _admitted("script", listed, read, lambda row: row.device)
    yield from differences
    since_us = oracle.SIZE_S * SECOND_US - 1_000
    found = [
        ((row["name"].removeprefix("sum_"), row["ts_us"] - since_us), Fraction(row["value"]))
        for row in _rows_of(script.results(doors.spark, store))
    ]
    yield from _differ("the results of scripts", found, oracle.sums(admitted).items())
    yield from _ledger(doors, "script", sum(not row.has_number for row in read), late)
    counts["rows late for a script"] += late


def _of_join(doors: Doors, read: Sequence[Row], counts: Counter[str]) -> Iterator[str]:
    store = doors.folder / "join"
    listed = join.rejected(doors.spark, store)
    admitted, late, differences = _admitted("join", listed, read, lambda row: row.side)
    yield from differences
    names = _rows_of(doors.landing.identities())
    text = {row["source_id"]: row["source_text"] for row in names}
    pairs = _rows_of(join.results(doors.spark, store))
    found = [(text[row["r_id"]], text[row["s_id"]]) for row in pairs]
    yield from _differ("the pairs", found, oracle.pairs(admitted))
    yield from _ledger(doors, "join", sum(not row.has_number for row in read), late)
    counts["rows late for a chain"] += late
    counts["pairs"] += len(found)


def _spread(doors: Doors, read: Sequence[Row]) -> Iterator[str]:
    """Judge room ``grouping``; a row without a number is routed like any other."""
    mine = {seq: row for seq, row in enumerate(read) if row.side == "R"}
    listed = _rows_of(grouping.rejected(doors.spark, doors.folder / "grouping"))
    lacks = [seq for seq, row in mine.items() if not row.has_number]
    yield from _differ("the list of grouping", [row["seq"] for row in listed], lacks)
    yield from _ledger(doors, "grouping", len(lacks))
    yield from _differ("what is spread", doors.spread.elements(), mine)

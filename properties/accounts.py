"""Account for each of the rows that were handed in: it is in an answer or in a list."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from model.vocabulary.join import END_US
from properties.dirty_rows import BELOW, PACKS, SECOND_US
from properties.handing_in import ANSWERS, SELECT, WAITING, Doors, rows_of
from properties.oracles import accounts as oracle
from properties.oracles.accounts import BAD_NUMBERS, Row
from properties.oracles.hashing import signed_hash
from properties.oracles.router import Router
from spark_impl import grouping, join, script, watermark
from spark_impl.landed import LandedQueries
from spark_impl.retention import drop_before
from spark_impl.runtime.accounts import ledger
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.storage import InputProblem
from spark_impl.runtime.waiting import NOT_READ
from spark_impl.windows.waiting import UNCORRECTED

UNREAD = tuple(each for each in BAD_NUMBERS if each not in ("NaN", "Infinity", "-Infinity"))
"""Cells that land as NULL."""
UNASKED = f"p{PACKS - 1}"  # of which no script asks
STATES = ("exact", "incomplete")
ROOMS: Mapping[str, Any] = {**WAITING, "grouping": grouping}
LATE, NOT_FINITE = "event time lies below the watermark", "value is not a finite number"


def unaccounted(
    doors: Doors, files: Sequence[Sequence[Row]], counts: Counter[str]
) -> Iterator[str]:
    """Yield a sentence for each place with missing or additional rows; count the cases."""
    handed = doors.rows
    by_side = [row for file in files for side in "RS" for row in file if row.side == side]
    backwards = [row for file in files for row in reversed(file)]
    landed, read = ([row for row in rows if row.fault is None] for rows in (backwards, by_side))
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
    yield from _ledger(doors, "landed/answers/sum_v", sum(not row.has_number for row in landed))
    yield from _ledger(doors, "landed/answers/count", 0)
    yield from _of_watermark(doors, read, counts)
    yield from _of_script(doors, read, counts)
    first = [row for side in "RS" for row in files[0] if row.side == side and row.fault is None]
    yield from _of_join(doors, read, len(first), counts)
    yield from _spread(doors, read)
    yield from _wait(doors, read, len(first), counts)
    yield from _shorten(doors)


def _wait(doors: Doors, read: Sequence[Row], first: int, counts: Counter[str]) -> Iterator[str]:
    """Judge the rows that waited when ``first`` rows had been read, and the others had landed."""
    for room, (counted, listed, told, _) in doors.halfway.items():
        unread = [row for row in listed if row["reason"] == NOT_READ]
        due = ((seq, read[seq].device, int(read[seq].at)) for seq in range(first, len(read)))
        found = ((row["seq"], row["key"], row["event_time_us"] // SECOND_US) for row in unread)
        yield from _differ(f"the rows that {room} has not read", found, due)
        if not counted.balances or counted.pending != len(listed):
            yield f"{len(listed)} rows wait in room {room}: {counted}"
        if room != "script":  # some of its sensors send nothing
            yield from _clocks(room, told, listed, read[:first])
        counts["rows that a query had not read"] += len(unread)
        counts["rows that waited for answers"] += len(listed) - len(unread)
        counts["rows that waited for a correction"] += sum(
            row["reason"] == UNCORRECTED for row in listed
        )


def _clocks(
    room: str, told: Any, listed: Sequence[Mapping[str, Any]], read: Sequence[Row]
) -> Iterator[str]:
    """Judge what a room said of its clocks, and of late pairs, when it had read some rows."""
    latest_us = Counter[object]()
    for row in (each for each in read if each.has_number):
        clock = row.side if room == "join" else signed_hash(row.device) % 2
        latest_us[clock] = max(latest_us[clock], int(row.at) * SECOND_US)
    wm_us = {each: us - oracle.LATENESS_S * SECOND_US for each, us in latest_us.items()}
    if room == "join":
        held = [row for row in listed if row["reason"] != NOT_READ]
        own = [[row["event_time_us"] for row in held if row["stream"] == side] for side in "RS"]
        complete_us = min(*wm_us.values(), max(min(each, default=END_US) for each in own))
        due = complete_us, min("RS", key=wm_us.__getitem__), *(wm_us[side] for side in "RS")
        found = told.complete_us, told.held_by, *told.watermarks_us.values()
        yield from _differ("the clocks of a chain", [found], [due])
    elif not min(wm_us.values()) <= told.watermark_us <= min(latest_us.values()):
        yield f"the lowest watermark is {told.watermark_us}, above {wm_us}"
    elif told.held_by not in ("task 0", "task 1"):
        yield f"the watermark of room {room} is held back by {told.held_by}"
    elif told.late_share * (told.pairs + told.late_pairs) != pytest.approx(told.late_pairs):
        yield f"the share of late pairs is {told.late_share}: {told}"


def _shorten(doors: Doors) -> Iterator[str]:
    """Judge which files are left out, the removal of a file, and whose store each room reads."""
    unread = [*doors.folder.glob("[RS]/_*.parquet"), *doors.folder.glob(f"[RS]/{BELOW}/*")]
    left_out = (Path(each.file) for each in doors.landing.left_out())
    yield from _differ("the files that are left out", left_out, unread)
    left = doors.folder / "history/_scratch"
    yield from _differ("what landings have left", left.iterdir(), [left / "young"])
    history, stores = doors.folder / "history", [doors.folder / room for room in ROOMS]
    with pytest.raises(InputProblem, match=r"^number is 3; it can be at most 1, because"):
        drop_before(history, 3, readers=stores)
    last = sorted(history.glob("*.parquet"))[1:]
    try:
        dropped = drop_before(history, 1, readers=stores)
    except InputProblem as problem:  # all differences are told, not the last one alone
        yield f"a history whose queries have ended cannot be shortened: {problem}"
    else:
        if dropped != 1 or sorted(history.glob("*.parquet")) != last:
            yield f"{history} has {sorted(history.glob('*.parquet'))}"
    for room, other in permutations(ROOMS, 2):
        with pytest.raises(InputProblem, match=f"/{other} "):
            ROOMS[room].rejected(doors.spark, doors.folder / other)


def _differ(what: str, found: Iterable[object], expected: Iterable[object]) -> Iterator[str]:
    """Yield what is found less often, or more often, than expected."""
    here, there = Counter(iter(found)), Counter(iter(expected))
    for verb, more in (("missing", there - here), ("too many", here - there)):
        if more:
            yield f"{what}: {more.total()} {verb}, such as {next(iter(more))}"


def _known(listed: DataFrame) -> Iterator[tuple[object, ...]]:
    """Yield arrival number, key and event time in seconds of each row of a list."""
    for row in rows_of(listed):
        yield row["seq"], row["key"], row["event_time_us"] // SECOND_US


def _due(read: Mapping[int, Row]) -> Iterator[tuple[object, ...]]:
    """Yield what a list has to say of the rows without a number."""
    for seq, row in read.items():
        if not row.has_number:
            yield seq, row.device, int(row.at)


def _cells(row: str) -> tuple[str, ...]:
    """Return the cells of a row that a list shows."""
    found = json.loads(row)
    return (found["id"] or "", found["device"] or "", *json.loads(found["origin"]))


def _own(row: Row) -> tuple[str, ...]:
    return row.source_id, row.device, row.at, row.v


def _set_aside(landing: Landing, handed: Sequence[Row], read: Sequence[Row]) -> Iterator[str]:
    """Compare the list of a landing: rows that did not land, and cells without a number."""
    listed = [row for row in rows_of(landing.rejected()) if row["reason"]]
    found = ((*_cells(each["row"]), each["column"], each["seq"]) for each in listed)
    unread = [(seq, row) for seq, row in enumerate(read) if row.v in UNREAD]
    expected: list[tuple[object, ...]] = [(*_own(row), "v", seq) for seq, row in unread]
    expected += [(*_own(row), row.fault, None) for row in handed if row.fault]
    yield from _differ("the list of the landing", found, expected)


def _of_slack(
    landed: LandedQueries, handed: Sequence[Row], read: Sequence[Row], counts: Counter[str]
) -> Iterator[str]:
    """Judge queries together with their landing."""
    answers = rows_of(landed.results())
    ones = [row._replace(v="1") for row in read]
    for (name, rows), side in product(zip(ANSWERS, (read, ones), strict=True), "RS"):
        own = [{**each, **each[name]} for each in answers if each["side"] == side and each[name]]
        mine = [row for row in rows if row.side == side]
        yield from _windows(own, oracle.windows(mine, keeps_contents=True), counts)
    finite = [row for row in read if row.has_number]
    out: list[tuple[object, ...]] = [(None, row.fault, *_own(row)) for row in handed if row.fault]
    refused = [(ANSWERS[0], "v", seq) for seq, row in enumerate(read) if not row.has_number]
    again = (row.source_id for row, is_other in oracle.comes_again(finite) if is_other)
    expected = [*out, *refused, *((ANSWERS[0], "id", each) for each in again)]
    listed = [row for row in rows_of(landed.rejected()) if row["reason"]]
    found = []
    for row in listed:
        known = (row["seq" if row["column"] == "v" else "text"],)
        cells = _cells(row["row"]) if row["stage"] == "landing" else known
        found.append((row["aggregate"], row["column"], *cells))
    yield from _differ("the list of slack", found, expected)
    told, due = landed.progress().values(), (len(out) + len(refused), len(out))
    yield from _differ("the counts of slack", [tuple(each.rejected for each in told)], [due])
    counts["rows refused by a query"] += sum(row["stage"] == "query" for row in listed)


def _ledger(doors: Doors, store: str, refused: int, **places: int) -> Iterator[str]:
    """Compare the ledger of a store whose query has ended and has refused ``refused`` rows."""
    found = ledger(doors.folder / store)
    due = {"late": 0, "shed": 0, "unasked": 0, "dropped": 0, **places}
    if store in ROOMS:
        told = ROOMS[store].progress(doors.folder / store)
        total = told.rejected if isinstance(told.rejected, int) else sum(told.rejected.values())
        in_places = sum(told.rows.values()) - told.rows.get("read", 0)
        shown = total, told.rows.get("read", 0)
        yield from _differ(
            f"the progress of {store}", [shown], [(refused + due["late"], in_places)]
        )
    refused += sum(row.fault is not None for row in doors.rows)
    listed = sum(sum(reasons.values()) for reasons in found.refused.values())
    if not found.balances or found.pending:
        yield f"the ledger of {store} does not balance, or has not ended: {found}"
    yield from _differ(
        f"the ledger of {store}",
        [
            ("read", found.read),
            ("refused", listed),
            *((name, getattr(found, name)) for name in due),
        ],
        [("read", len(doors.rows)), ("refused", refused), *due.items()],
    )


def _windows(
    rows: list[Any], expected: Mapping[oracle.Window, oracle.Counted], counts: Counter[str]
) -> Iterator[str]:
    """Judge the answers of a query that has ended."""
    found = []
    for row in rows:
        value = None if row["value"] is None else Fraction(row["value"])
        answer = value, row["n"], row["n_refused"], row["state"]
        found.append(((row["key"], row["start_us"]), answer))
    states = {key: (*each, STATES[bool(each.refused)]) for key, each in expected.items()}
    yield from _differ("the answers of windows", found, states.items())
    told = {(row["start_us"], row["end_us"], *row["window"].values()) for row in rows}
    ends_us = [(us, us + oracle.SIZE_S * SECOND_US) for us in {us for us, *_ in told}]
    due = [(*us, *(datetime.fromtimestamp(each / SECOND_US, UTC) for each in us)) for us in ends_us]
    yield from _differ("the ends of windows", told, due)
    counts["corrected windows"] += sum(bool(row["revision"]) for row in rows)
    for each in expected.values():
        counts["windows that lack rows"] += bool(each.rows and each.refused)
        counts["windows of which all was refused"] += not each.rows
        counts["sums of 0"] += each.value == 0


def _of_watermark(doors: Doors, read: Sequence[Row], counts: Counter[str]) -> Iterator[str]:
    store = doors.folder / "watermark"
    expected = oracle.windows(read, keeps_contents=False)
    yield from _windows(rows_of(watermark.results(doors.spark, store)), expected, counts)
    lacks = list(_due(dict(enumerate(read))))
    found = _known(watermark.rejected(doors.spark, store))
    yield from _differ("the list of watermark", found, lacks)
    yield from _ledger(doors, "watermark", len(lacks))


def _admitted(
    room: str, listed: DataFrame, read: Mapping[int, Row], stream: str
) -> tuple[list[Row], dict[str, int], list[str]]:
    """Compare a list with the rows that are late in their stream, or without a number.

    Return the other rows, the numbers of late ones and of those that came again, and differences.
    """
    finite = {seq: row for seq, row in read.items() if row.has_number}
    is_late = oracle.late((getattr(row, stream), row) for row in finite.values())
    late = {seq for seq, each in zip(finite, is_late, strict=True) if each}
    expected = [(seq, NOT_FINITE) for seq in read if seq not in finite]
    expected += [(seq, LATE) for seq in late]
    found = [(row["seq"], re.sub(" of the .*", "", row["reason"])) for row in rows_of(listed)]
    admitted = [row for seq, row in finite.items() if seq not in late]
    again = len(admitted) - len({row.source_id for row in admitted})
    places = {"late": len(late), "redelivered": again}
    return admitted, places, list(_differ(f"the list of {room}", found, expected))


def _of_script(doors: Doors, read: Sequence[Row], counts: Counter[str]) -> Iterator[str]:
    store = doors.folder / "script"
    listed = script.rejected(doors.spark, store)
    asked = {seq: row for seq, row in enumerate(read) if not row.device.startswith(UNASKED)}
    admitted, places, differences = _admitted("script", listed, asked, "device")
    places["unasked"] = counts["rows of no script"] = len(read) - len(asked)
    yield from differences
    since_us = oracle.SIZE_S * SECOND_US - 1_000
    found = [
        ((row["name"].removeprefix("sum_"), row["ts_us"] - since_us), Fraction(row["value"]))
        for row in rows_of(script.results(doors.spark, store))
        if row["name"].startswith("sum_")
    ]
    yield from _differ("the results of scripts", found, oracle.sums(admitted).items())
    yield from _ledger(doors, "script", sum(not row.has_number for row in asked.values()), **places)
    counts["rows late for a script"] += places["late"]


def _of_join(doors: Doors, read: Sequence[Row], first: int, counts: Counter[str]) -> Iterator[str]:
    """Judge a chain, one of whose queries was withdrawn when it had read ``first`` rows."""
    store = doors.folder / "join"
    listed = join.rejected(doors.spark, store)
    admitted, places, differences = _admitted("join", listed, dict(enumerate(read)), "side")
    yield from differences
    pairs = rows_of(join.results(doors.spark, store, select=SELECT))
    found = [(row["query"], row["r_source_text"], row["s_source_text"]) for row in pairs]
    told = [(row["query"], row["r_id"], row["s_id"], row["epoch"]) for row in pairs]
    yield from _differ("the pairs that a sink was handed", doors.joined.elements(), told)
    one = (tuple(row.values()) for row in rows_of(join.results(doors.spark, store, query="early")))
    yield from _differ("the pairs of a query", one, (each for each in told if each[0] == "early"))
    before = {id(row) for row in read[:first]}
    early = [row for row in admitted if id(row) in before]
    known = {row.source_id for row in early}
    later = [row for row in admitted if row.source_id not in known]
    queries = {"text": admitted, "function": admitted, "early": early, "later": later}
    due = [(name, *pair) for name, rows in queries.items() for pair in oracle.pairs(rows)]
    yield from _differ("the pairs", found, due)
    late = sum(row.has_number for row in read[:first]) - len(early)
    yield from _asked(doors, queries, [late, places["late"] - late])
    yield from _ledger(doors, "join", sum(not row.has_number for row in read), **places)
    counts["rows late for a chain"] += places["late"]
    counts["pairs"] += len(found)


def _asked(doors: Doors, queries: Mapping[str, list[Row]], late: list[int]) -> Iterator[str]:
    """Judge what a chain tells other processes; ``late`` are the late rows of each file."""
    store, (_, listed, told, halfway) = doors.folder / "join", doors.halfway["join"]
    texts = {"text": 'key and s.source_text != ""', "function": "a function"}
    at_once = Counter(query for query, *_, epoch in doors.joined.elements() if epoch == 0)
    waits = sum(row["reason"] != NOT_READ for row in listed)
    end, due = join.status(store), list[object]([(0, 1, False), (2, 3, True)])
    for name, rows in queries.items():
        own, pairs, is_later = (name, texts.get(name, "key")), oracle.pairs(rows), name == "later"
        if not is_later:
            due.append((*own, (), 0, None, told.complete_us, at_once[name], late[0], 0, waits))
        first, last = {"early": (0, 0), "later": (1, None)}.get(name, (0, None))
        came = sum(late[first : 2 if last is None else last + 1])
        due.append((*own, SELECT[: 2 * is_later], first, last, END_US, len(pairs), came, 0, 0))
        answers = join.answers(store, name, select=None if is_later else SELECT, complete=first < 1)
        again = join.ask(store, "key", first_epoch=first, last_epoch=last, select=SELECT)
        for table in (answers, again):
            found = (tuple(row.values())[2:] for row in table.to_pylist())
            yield from _differ(f"the pairs of {name} without Spark", found, pairs)
    queries_told = [halfway[:3], end[:3], *halfway.queries, *end.queries]
    yield from _differ("the queries of a chain", queries_told, due)
    assert not join.ask(store, "key", first_epoch=2).num_rows, "a flush reads no row"


def _spread(doors: Doors, read: Sequence[Row]) -> Iterator[str]:
    """Judge room ``grouping``; a row without a number is routed like any other."""
    mine = {seq: row for seq, row in enumerate(read) if row.side == "R"}
    lacks = list(_due(mine))
    listed = grouping.rejected(doors.spark, doors.folder / "grouping")
    yield from _differ("the list of grouping", _known(listed), lacks)
    yield from _ledger(doors, "grouping", len(lacks), unasked=len(read) - len(mine))
    yield from _differ("what is spread", doors.spread.elements(), mine)
    history = doors.spark.read.parquet(f"{doors.folder}/history")
    rows = history.selectExpr("seq", "right(key, 1) AS key").coalesce(1).sortWithinPartitions("seq")
    hot = [(seq, None, row.device[-1], None, 0.0) for seq, row in enumerate(read)]
    config = {"instances": 4, "times_us": [(0, (4, 1, 2, 1))], "window_tuples": len(hot)}
    router = Router({"config": config, "arrivals": [*hot, *hot], "cuts": [len(hot)]})
    spread = grouping.Grouping(4, times_us=(4, 1, 2, 1)).spread(rows, "key")
    found = rows_of(spread.selectExpr("seq", "instance", "spark_partition_id()"))
    due = ((seq, at, at) for seq, _, at in router.routes[len(hot) :])
    yield from _differ("what is spread at once", (tuple(row.values()) for row in found), due)

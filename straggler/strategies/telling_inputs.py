"""Rows, files and stores that can just be used, the nearest that cannot, and the reason."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf, nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from model.vocabulary import Event, GroupingConfig, ScriptConfig, SlackConfig, WatermarkConfig
from model.vocabulary.script.tree import Sensor, Statement, Window, Workflow
from spark_impl.aggregates import Aggregation, avg, count, quantile
from spark_impl.grouping import store as grouping
from spark_impl.over import Stream, over
from spark_impl.retention import drop_before
from spark_impl.runtime.histories import (
    COLUMNS,
    VALUE,
    append,
    file_of,
    numbers,
    open_piece,
    read_parquet,
    write_parquet,
)
from spark_impl.runtime.history_chain import note_landed, note_of_next, require_landed
from spark_impl.runtime.left_out import Source, look_at
from spark_impl.runtime.limits import Limits
from spark_impl.runtime.provenance import note_history, open_history
from spark_impl.runtime.sources import HistoryReader
from spark_impl.runtime.storage import Location, locate
from spark_impl.runtime.stores import claim
from spark_impl.runtime.tables import TableWriter
from spark_impl.script import compile_plan
from spark_impl.script import store as script
from spark_impl.script.router import Router
from spark_impl.slack import SLACK
from spark_impl.watermark import WATERMARK
from spark_impl.windows import store as windows
from spark_impl.windows.history import check_source
from straggler.strategies.telling_accounts import COUNTED, OF_ACCOUNTS
from straggler.strategies.telling_join_inputs import OF_INPUTS, READ
from straggler.strategies.telling_joins import JOINED, OF_QUERIES
from straggler.strategies.telling_requests import OF_REQUESTS, REQUESTED
from straggler.strategies.telling_storage import OF_STORAGE, STORED, flip

DAY_MS = 86_400_000
END_US = 1 << 61
ROWS = pa.schema([("seq", pa.int64())])
FIRST, LAST = 5, 7
"""Numbers of the files of a history."""
GROUPS = (pa.field("g", pa.string()),)
TENS = SlackConfig(size_us=10, slide_us=10)
FIVES = SlackConfig(size_us=10, slide_us=5)
LATER = WatermarkConfig(size_us=10, slide_us=10, max_wait_us=3)
Change = Callable[[Location], object]


def _script(length_ms: int = 4, lateness_us: int = 0) -> ScriptConfig:
    total = Statement("s", Window("sum", Sensor("a"), length_ms, 2))
    return ScriptConfig(
        (Workflow("w", (total,)),), (("a", 1),), lateness_us=lateness_us, idle_after_us=9
    )


# ------------------------------------------------------------------------------------------ rows


def _route(own: Mapping[str, object]) -> None:
    """Route two rows of a sensor to the worker that needs them, the second one changed."""
    rows = [Event(number, number, "a", number, 1.0, number)._asdict() for number in range(2)]
    table = pa.Table.from_pylist([rows[0], {**rows[1], **own}], pa.schema([*COLUMNS.items()]))
    router = Router(compile_plan(_script()))
    router.blocks(router.asked(table))
    router.clock(table)


def _aggregate(aggregations: Sequence[Aggregation]) -> None:
    stream: Stream = over(None, event_time="at", group_columns=["site"])  # type: ignore[arg-type]  # no row is read
    stream.window("1 hour").agg(*aggregations)


# ----------------------------------------------------------------------------------------- files


@contextmanager
def _history() -> Iterator[tuple[Location, HistoryReader, Any]]:
    """Yield a landed history with a reader, and the offset behind its first file."""
    with TemporaryDirectory() as folder:
        history = locate(folder) / "history"
        (history / "_landing.json").write_bytes(b'{"landing": "own"}')
        reader = HistoryReader(history, history / "_control", is_mixed=False)
        offset = reader.initialOffset()  # before there is a file
        for number in range(FIRST, LAST + 1):
            _write(number)(history)
        yield history, reader, reader.read(offset)[1]


def _write(number: int, identity: str | None = "own", row: int = 0) -> Change:
    """Return a change that writes a file behind the one before it."""

    def write(history: Location) -> None:
        note = note_of_next(history, number, identity)
        rows = pa.table([[row]], ROWS).replace_schema_metadata(note)
        write_parquet(rows, file_of(history, number))

    return write


def _remove(*gone: int) -> Change:
    """Return a change that removes some files."""

    def remove(history: Location) -> None:
        for number in gone:
            file_of(history, number).remove()

    return remove


def _swap(history: Location) -> None:
    one, other = (file_of(history, number) for number in (LAST - 1, LAST))
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


def _rewrite(edit: Callable[[bytes], bytes]) -> Change:
    """Return a change of the last file's bytes."""

    def rewrite(history: Location) -> None:
        file = file_of(history, LAST)
        file.write_bytes(edit(file.read_bytes()))

    return rewrite


def _follow(change: Change) -> None:
    """Read the first file of a history, change the history, and read the others."""
    with _history() as (history, reader, first):
        change(history)
        offset = first
        for _ in range(FIRST + 1, LAST + 1):
            files, offset = reader.read(offset)
            for (file,) in files:
                read_parquet([locate(file)], ROWS)


def _stream(change: Change) -> None:
    """Change a history, and read its last file in parts."""
    with _history() as (history, *_):
        change(history)
        list(open_piece(file_of(history, LAST)).batches(9, ROWS.names))


def _land(change: Change) -> None:
    """Note the last file of a landing, change its history, and go on."""
    with _history() as (history, *_):
        checkpoint = history / "_checkpoint"
        note_landed(checkpoint, file_of(history, LAST))
        change(history)
        require_landed(history, checkpoint, numbers(history).stop - 1)


def _shorten(number: int) -> None:
    with _history() as (history, *_):
        dropped = drop_before(history, number, readers=())
        assert dropped == number
        assert numbers(history) == range(number, LAST + 1)


def _leave_out(own: Mapping[str, Any]) -> None:
    """Look at a file of 1970 as Spark's file source does; raise the reason to leave it out."""
    options: dict[str, Any] = {
        "pattern": None,
        "is_recursive": False,
        "max_age_ms": 7 * DAY_MS,
        **own,
    }
    name, path, known = (options.pop(each, "") for each in ("name", "path", "known"))
    with TemporaryDirectory() as folder:
        file = Path(folder, name or "a.csv")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (0, 0))
        read = {} if known == "" else {str(file): known}
        read = read or {f"{folder}/newest": 7 * DAY_MS}
        for each in look_at(f"{folder}{path}", Source([], **options), read):
            raise ValueError(each.reason)


def _check(changed: Mapping[str, pa.DataType | None], *groups: str, value: str = VALUE) -> None:
    """Check a history of which some columns have another type, or are not there."""
    kinds = {**COLUMNS, "g": pa.string(), **changed}
    columns = {name: pa.nulls(1, kind) for name, kind in kinds.items() if kind is not None}
    with TemporaryDirectory() as folder:
        history = append(folder, pa.table(columns)).parent
        check_source(history, ["n"], groups, value)


def _note(name: str) -> None:
    """Let a query read a history, and then a history of a name."""
    with TemporaryDirectory() as folder:
        store = grouping.open_store(locate(folder) / "store", GroupingConfig(instances=2))
        for each in ("one", name):
            append(locate(folder) / each, pa.table({"seq": [0]}))
            note_history(TableWriter(store.root, locate(folder) / each))


def _begin(checkpoint: str, value: str) -> None:
    """Begin a history, and go on with a checkpoint and a setting."""
    with TemporaryDirectory() as folder:
        history, first = locate(folder) / "history", locate(folder) / "first"
        open_history(history, first, {"value": "v"}, is_planned=False)
        open_history(history, locate(folder) / checkpoint, {"value": value}, is_planned=True)


# ---------------------------------------------------------------------------------------- stores


def _open_windows(config: Any = TENS, groups: Sequence[pa.Field] = GROUPS, **more: Any) -> Change:
    room: Any = SLACK if isinstance(config, SlackConfig) else WATERMARK

    def opening(root: Location) -> None:
        windows.open_store(root, room, config, groups, **more)
        windows.load_store(root, room)

    return opening


def _open_script(*settings: int) -> Change:
    def opening(root: Location) -> None:
        script.open_store(script.ScriptStore(root), _script(*settings))
        script.load_store(root)

    return opening


def _open_grouping(instances: int) -> Change:
    return lambda root: grouping.open_store(root, GroupingConfig(instances=instances))


def _claim(**own: object) -> Change:
    """Return an opening of a store as another version of Straggler writes it."""
    config: Any = {**TENS.to_json(), **own}
    identity: Any = {"version": config.pop("version", windows.VERSION), "room": "slack"}
    identity |= {"config": config, "group_columns": [["g", "string"]], "value": "value"}
    return lambda root: claim(windows.WindowStore(root, GROUPS, room=SLACK), identity)


def _load(root: Location) -> None:
    windows.load_store(root, SLACK)


def _reopen(openings: tuple[Change, Change]) -> None:
    """Let two queries open one store, one after the other."""
    with TemporaryDirectory() as folder:
        for opening in openings:
            opening(locate(folder) / "store")


OPENED: Mapping[str, Callable[[Any], object]] = {
    "routed": _route,
    "aggregated": _aggregate,
    "followed": _follow,
    "streamed": _stream,
    "landed": _land,
    "limited": lambda limit: Limits(refused=1, late=limit),
    "located": locate,
    "left out": _leave_out,
    "shortened": _shorten,
    "checked": lambda given: _check(*given),
    "valued": lambda value: _check({"v": pa.float64()}, value=value),
    "noted": _note,
    "begun": lambda given: _begin(*given),
    "reopened": _reopen,
    **COUNTED,
    **JOINED,
    **READ,
    **REQUESTED,
    **STORED,
}
_OURS, _OLD, _SUMS, _TWO = _open_windows(), _claim(), _open_script(4), _open_grouping(2)
_COUNTS = _open_windows(value=None)
NEAREST_INPUTS: Sequence[tuple[str, Any, Any, str]] = (
    ("routed", {"value": None}, {"source_id": None}, "source_id of sensor 'a' is NULL in some row"),
    ("routed", {"key": None}, {"seq": None}, "seq of sensor 'a' is NULL in some row"),
    ("routed", {"event_time_us": 0}, {"event_time_us": -1}, "'a' is -1; it must be from 0"),
    ("routed", {"event_time_us": END_US - 1}, {"event_time_us": END_US}, "to below 2^61"),
    ("routed", {"arrival_us": END_US - 1}, {"arrival_us": END_US}, "must lie between -2^61 and"),
    ("routed", {"arrival_us": 1 - END_US}, {"arrival_us": -END_US}, "must lie between -2^61 and"),
    *(
        ("limited", good, bad, f"max_late is {bad!r}; it must be a share")
        for good, bads in ((0.99, (nan, inf, 1.5)), (None, (True, "0.1")), (0.0, [-0.1]), (0, [-1]))
        for bad in bads
    ),
    ("limited", 1, 1.0, "max_late is 1.0; it must be a share"),
    *(
        (
            "located",
            f"{good}://b/c",
            f"{bad}://b/c",
            f"{bad}://b/c is not on a supported file system",
        )
        for good, bad in (("s3", "gs"), ("s3a", "http"), ("s3", "dbfs"), ("s3", "hdfs"))
    ),
    ("aggregated", [quantile("w", q=0.5)], [quantile("w", q=2).alias("low")], "'low': q is 2"),
    ("aggregated", [count(), avg("w")], [avg("w"), avg("W")], "differ from those of the other"),
    ("aggregated", [avg("w").alias("é1")], [avg("w").alias("a b")], "consist of letters"),
    ("aggregated", [avg("w").alias("at")], [avg("w").alias("KEY")], "differ from the other col"),
    ("aggregated", [avg("w").alias("at")], [avg("w").alias("Site")], "differ from the other col"),
    ("aggregated", [avg("w").alias("at")], [avg("w").alias("window")], "differ from the other "),
    ("aggregated", [count(gamma_us=0)], [count(tasks=1)], "'count' sets tasks; windows, tasks"),
    ("aggregated", [count(gamma_us=0)], [count(size="5 s")], "'count' sets size; windows, tasks"),
    ("aggregated", [count()], [count(aggregate="sum")], "sets aggregate; it is count"),
    ("aggregated", [count()], [], "agg() has no aggregate"),
    ("aggregated", [count(gamma_us=0)], [count(k=5)], "aggregate 'count': unknown setting 'k'"),
    ("followed", _remove(FIRST), _remove(LAST - 1), "00000006.parquet is to be read next and is"),
    ("followed", _remove(FIRST), _remove(LAST), "00000007.parquet is to be read next and is miss"),
    ("followed", _write(FIRST), _write(FIRST, row=1), "00000005.parquet is not the file that was"),
    ("followed", _write(LAST, row=1), _write(LAST - 1, row=1), "00000007.parquet follows another"),
    ("followed", _write(LAST), _write(LAST, "other"), "a file of another history, other: 00000007"),
    ("followed", _write(LAST), _write(LAST, None), "that its landing has not written: 00000007"),
    ("followed", _remove(), _swap, "has number 7 of a landing as 00000006.parquet"),
    ("followed", _rewrite(bytes), _rewrite(lambda each: each[:-1]), "is not a Parquet file"),
    ("followed", _rewrite(bytes), _rewrite(flip), "cannot be read"),
    ("streamed", _rewrite(bytes), _rewrite(flip), "CRC checksum verification failed"),
    ("landed", _remove(FIRST), _remove(LAST - 1), "00000006.parquet is missing, but 00000007.parq"),
    ("landed", _remove(FIRST), _remove(LAST), "its landing has written another 00000007.parquet"),
    ("landed", _write(LAST), _write(LAST, row=1), "has written another 00000007.parquet"),
    ("landed", _write(LAST + 1), _write(LAST + 1, "other"), "of another history, other: 00000008"),
    ("left out", {"name": "x_.csv"}, {"name": "_x.csv"}, "is hidden: its name begins with _"),
    (
        "left out",
        {"name": "x=1/a"},
        {"name": "x=1/y/a"},
        "lies in a folder below, and recursiveFile",
    ),
    ("left out", {"name": "x/a", "is_recursive": True}, {"name": ".a"}, "is hidden"),
    ("left out", {"name": "x/a", "path": "/*"}, {"name": "xy/_a", "path": "/x*"}, "is hidden"),
    (
        "left out",
        {"name": "x/a", "path": "/{x,y}/[ab]"},
        {"name": "x/_", "path": "/{y,x}"},
        "hidden",
    ),
    ("left out", {"name": "x/_", "path": "/z"}, {"name": "x/_", "path": "/[^z]"}, "is hidden"),
    ("left out", {"pattern": "{b,a}.c*"}, {"pattern": "{b,a}.d"}, "not match pathGlobFilter, '{b"),
    ("left out", {}, {"max_age_ms": 7 * DAY_MS - 1}, "is older than maxFileAge, 7 days, beside"),
    (
        "left out",
        {"known": 0},
        {"known": 1, "max_age_ms": 0},
        "was rewritten under the name of a file that was read",
    ),
    ("shortened", LAST, LAST + 1, "number is 8; it can be at most 7, because"),
    ("checked", ({}, "g"), ({}, "h"), "has no column 'h'; its columns are seq, source_id, key"),
    ("checked", ({"g": pa.int8()}, "g"), ({"g": pa.float64()}, "g"), "must hold text or integers"),
    ("checked", ({"m": pa.string()}, "m"), ({"N": pa.string()}, "N"), "be called 'N', which is a"),
    ("checked", ({"seq": pa.int32()},), ({"seq": pa.float64()},), "it must hold integers"),
    ("checked", ({"arrival_us": pa.int64()},), ({"arrival_us": None},), "no column 'arrival_us'"),
    ("checked", ({"key": pa.large_string()},), ({"key": pa.int64()},), "it must hold text"),
    ("checked", ({"value": pa.int64()},), ({"value": pa.string()},), "it must hold numbers"),
    ("valued", "v", "seq", "value is 'seq', which is a column of another meaning"),
    ("noted", "one", "two", "belongs to the history"),
    ("begun", ("first", "v"), ("first", "w"), "was landed with value = 'v', not 'w'"),
    ("begun", ("first", "v"), ("second", "v"), "was not landed with the checkpoint"),
    ("reopened", (_OURS, _OURS), (_OURS, _open_windows(LATER)), "of room 'slack', not 'watermark'"),
    ("reopened", (_OLD, _load), (_OLD, _open_windows(FIVES)), "query: its slide_us is 10, not 5"),
    ("reopened", (_OLD, _OURS), (_OLD, _open_windows(groups=())), "[['g', 'string']], not []"),
    ("reopened", (_COUNTS, _load), (_COUNTS, _OURS), "its value is None, not 'value'"),
    ("reopened", (_OLD, _load), (_claim(colour="red"), _load), "by a query of another version"),
    ("reopened", (_OLD, _load), (_claim(version=1), _load), "by version 1 of the store, not"),
    ("reopened", (_SUMS, _SUMS), (_SUMS, _open_script(8)), "its workflow 'w' is not the same"),
    ("reopened", (_SUMS, _SUMS), (_SUMS, _open_script(4, 1)), "its lateness_us is 0, not 1"),
    ("reopened", (_TWO, _TWO), (_TWO, _open_grouping(3)), "its instances is 2, not 3"),
    (
        "reopened",
        (_OLD, _load),
        (lambda root: (root / "a").write_bytes(b""), _OURS),
        "is neither an empty folder nor the store of a q",
    ),
    ("reopened", (_OLD, _load), (_load, _load), "is not the store of a query"),
    *OF_ACCOUNTS,
    *OF_QUERIES,
    *OF_STORAGE,
    *OF_INPUTS,
    *OF_REQUESTS,
)
"""Actions: what each can be done with, what it cannot be done with, and why."""

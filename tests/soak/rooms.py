"""Rooms as their users open them in a soak: input, queries with a sink, what users read.

A file of the input appears under its name when it is complete. All deliveries are remembered.
Queries announce their micro-batches, corrections and resizes, and wait at the gate of their folder
(:mod:`tests.harness.announcements`).
"""

import json
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.query import StreamingQuery

from model.vocabulary import ScriptConfig, SlackConfig, WatermarkConfig
from model.vocabulary.join import REASON_SHED
from model.vocabulary.join_load import Measured
from model.vocabulary.join_predicates import predicate_from_json
from spark_impl import join, script, slack, watermark
from spark_impl.grouping import Grouping, GroupingStream, MicroBatch, at_instances
from spark_impl.runtime.histories import append
from straggler.rooms.script.language import parse
from tests.harness import drivers
from tests.harness.announcements import announced, reach, say
from tests.soak import oracles
from tests.soak.oracles import Arrival

BEGIN_US = 1_000_000_000
MANY = 30
"""Tuples of a file, on average."""
DAY_S = 86_400
PLACES = {
    "slack": ("",),
    "watermark": ("north", "south"),
    "script": ("",),
    "grouping": ("",),
    "join": ("R", "S"),
    "join-load": ("R", "S"),
}
"""Values of the column that parts the stream of a room: sites, or the streams of a join."""
FROM_FILES = ("slack", "grouping")
"""Rooms that read JSON files; others read a history."""
COLUMN = {"watermark": "site", "join": "stream", "join-load": "stream"}
SITE = "site"
INSTANCES = 3
ANSWER = ("key", "start_us", "value", "n", "revision")
CONFIGS: dict[str, Any] = {
    "slack": SlackConfig(
        *oracles.WINDOWS["slack"][1:],
        aggregate=oracles.WINDOWS["slack"][0],
        tasks=2,
        max_slack_us=20_000,
        gamma_us=1_000_000,
    ),
    "watermark": WatermarkConfig(
        *oracles.WINDOWS["watermark"][1:],
        100_000,
        k=8,
        aggregate=oracles.WINDOWS["watermark"][0],
        keyed=False,
        tasks=1,
        corrections=True,
        gamma_us=1_000_000,
    ),
}
LOAD = join.LoadRules(
    tau0=0.2, tau1=0.5, tau2=0.6, out_after_us=0, in_after_us=0, shed="linear", blocks="adaptive"
)


def pretend(measured: Measured) -> Measured:
    """Return measurements of a load that rises and falls, which the soak itself is too small for.

    Every few epochs the chain then changes its workers, or sheds some arrivals.
    """
    tau = (0.05, 0.4, 0.9, 0.7, 0.1, 0.55)[measured.epoch % 6]
    busy_us = int(tau * measured.elapsed_us)
    return measured._replace(busy_us=tuple(busy_us for _ in measured.busy_us))


class Feeder:
    """Writes the input of one life of a room into ``folder``."""

    def __init__(self, room: str, folder: Path, random: Random) -> None:
        self.room = room
        self.arrivals: list[Arrival] = []
        """All deliveries, in the order of arrival."""
        self._folder = folder
        self._random = random
        self._now_us = BEGIN_US
        self._files = 0
        self._identities = 0
        folder.mkdir(parents=True, exist_ok=True)

    def feed(self, *, again: bool = False, jump: bool = False) -> None:
        """Write a file.

        With ``again`` it also holds tuples of earlier files, and is in no order. With ``jump`` the
        clocks of sources jump by up to three seconds ahead, or half a second back, and that of the
        file by up to two days.
        """
        draw = self._random
        if jump:
            self._now_us = max(0, self._now_us + draw.randint(-500_000, 3_000_000))
        tuples = [self._draw_tuple() for _ in range(draw.randint(MANY // 2, 3 * MANY // 2))]
        if again and self.arrivals:
            tuples += draw.sample(self.arrivals, min(len(self.arrivals), 2 * MANY))
            draw.shuffle(tuples)
        first = len(self.arrivals)
        rows = [each._replace(seq=first + at) for at, each in enumerate(tuples)]
        file = self._write(rows)
        # Only after the file was written: a disk may be full.
        self.arrivals += rows
        if jump:
            at_s = file.stat().st_mtime + draw.randint(-2 * DAY_S, 2 * DAY_S)
            os.utime(file, (at_s, at_s))

    def _draw_tuple(self) -> Arrival:
        draw = self._random
        self._now_us += draw.randint(1_000, 20_000)
        spread_us = draw.choice((0, 0, 20_000, 150_000, 1_000_000))
        self._identities += 1
        keys = "AABBC" if self.room == "script" else "aaaaabbcd"
        return Arrival(
            seq=0,
            identity=self._identities,
            key=draw.choice(keys),
            ts=max(0, self._now_us - draw.randint(0, spread_us)),
            value=float(draw.randint(0, 20)),
            place=draw.choice(PLACES[self.room]),
        )

    def _write(self, rows: list[Arrival]) -> Path:
        if self.room not in FROM_FILES:
            return Path(append(self._folder, self._table(rows)).path)
        name = f"{self._files:08d}.json"
        hidden, file = self._folder / f".{name}", self._folder / name
        lines = (json.dumps(each._asdict()) + "\n" for each in rows)
        hidden.write_text("".join(lines), encoding="utf-8")
        hidden.rename(file)
        self._files += 1
        return file

    def _table(self, rows: list[Arrival]) -> pa.Table:
        arrival_us = self._now_us + 10_000_000 * 1_000
        columns = {
            "seq": pa.array([each.seq for each in rows], pa.int64()),
            "source_id": pa.array([each.identity for each in rows], pa.int64()),
            "key": pa.array([each.key for each in rows], pa.string()),
            "event_time_us": pa.array([each.ts for each in rows], pa.int64()),
            "value": pa.array([each.value for each in rows], pa.float64()),
            "arrival_us": pa.array([arrival_us for _ in rows], pa.int64()),
        }
        if self.room in COLUMN:
            columns[COLUMN[self.room]] = pa.array([each.place for each in rows], pa.string())
        return pa.table(columns)


class Opened(NamedTuple):
    """The queries of a room."""

    start: Sequence[Callable[[str], StreamingQuery]]
    """In the order in which rows pass them."""
    flush: Callable[[], None]
    observe: Callable[[], dict[str, Any]]


class Handed:
    """A sink that writes the rows of a micro-batch into a file, and replaces that file."""

    def __init__(self, folder: Path, columns: Sequence[str]) -> None:
        self._folder = folder
        self._columns = columns
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Write the rows of a micro-batch."""
        self.write(batch, [list(row) for row in rows.select(*self._columns).collect()])

    def write(self, batch: int, content: Any) -> None:
        """Write the content for a micro-batch."""
        say(f"sink {batch}")
        reach("before the sink")
        scratch = self._folder / f".{batch}"
        scratch.write_text(json.dumps(content), encoding="utf-8")
        scratch.replace(self._folder / f"{batch}.json")
        reach("after the sink")

    def read(self) -> list[Any]:
        """Return the content of all files, in the order of micro-batches."""
        files = sorted(self._folder.glob("[0-9]*.json"), key=lambda file: int(file.stem))
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]

    def read_rows(self) -> list[Any]:
        """Return the rows of all files."""
        return [row for rows in self.read() for row in rows]


class CorrectingQuery(drivers.AnnouncedQuery):
    """The windowed query, which also announces that it reads the history for a correction."""

    def announce_corrections(self) -> None:
        """Announce corrections from now on."""
        recompute = self._history.recompute

        def announce(request: Any) -> Any:
            say("correcting")
            reach("correcting")
            return recompute(request)

        vars(self._history)["recompute"] = announce


class ResizedStream(drivers.AnnouncedStream):
    """The join, which also announces that an epoch begins with another number of workers."""

    def _epoch(self, rows: DataFrame, batch: int) -> None:
        chain = self._chain
        decision = chain._decision
        workers = chain.config.workers if decision is None else decision.workers
        if chain._last is not None and chain._last.config.workers != workers:
            say(f"resizing {chain._last.config.workers} {workers}")
            reach("resizing")
        super()._epoch(rows, batch)


class AnnouncedGrouping(GroupingStream):
    """The stream of room grouping, with a line before and after each micro-batch."""

    def _batch(self, rows: DataFrame, number: int) -> None:
        with announced(number):
            super()._batch(rows, number)


def open_windows(spark: SparkSession, room: str, disk: Path) -> Opened:
    """Open a windowed query; that of room slack reads a history that is being landed."""
    landings = [open_landing(spark, disk)] if room == "slack" else []
    sites = [] if landings else [SITE]
    handed = Handed(disk / "handed", [*sites, *ANSWER])
    history = disk / ("history" if landings else "in")
    query = CorrectingQuery(
        spark,
        CONFIGS[room],
        history,
        disk / "store",
        sites,
        sink=handed,
        room=drivers.PIPELINES[room],
    )
    query.announce_corrections()
    read: Any = {"slack": slack.results, "watermark": watermark.results}[room]

    def observe() -> dict[str, Any]:
        found = read(spark, disk / "store").select(*sites, *ANSWER, "n_rcv", "state")
        blank = [] if sites else [""]
        return {
            "rows": [[*blank, *row] for row in found.collect()],
            "handed": [blank + row for row in handed.read_rows()],
        }

    def flush() -> None:
        for landing in landings:
            landing.run_available()
        query.flush()

    return Opened([*(each.start for each in landings), query.start], flush, observe)


def open_landing(spark: SparkSession, disk: Path) -> drivers.AnnouncedLanding:
    """Open the landing of JSON files."""
    lines = spark.readStream.schema("identity long, key string, ts long, value double")
    return drivers.AnnouncedLanding(
        lines.option("maxFilesPerTrigger", 2).json(str(disk / "in")),
        disk / "history",
        disk / "landing",
        event_time="ts",
        value="value",
        key="key",
        source_id="identity",
        time_unit="us",
    )


def open_script(spark: SparkSession, disk: Path) -> Opened:
    """Open the query of scripts."""
    config = ScriptConfig(
        (parse(oracles.SCRIPT, "soak"),),
        (("A", 10_000), ("B", 10_000), ("C", 100)),
        workers=2,
        lateness_us=oracles.SCRIPT_LATENESS_US,
        cap_percent=100,
    )
    columns = ["name", "ts_us", "value"]
    handed = Handed(disk / "handed", columns)
    query = drivers.AnnouncedScripts(spark, config, disk / "in", disk / "store", sink=handed)

    def observe() -> dict[str, Any]:
        rows = script.results(spark, disk / "store").select(*columns).collect()
        return {
            "rows": [list(row) for row in rows],
            "handed": handed.read_rows(),
            "known_us": script.progress(disk / "store").known_until_us,
        }

    return Opened([query.start], query.flush, observe)


def open_grouping(spark: SparkSession, disk: Path) -> Opened:
    """Open a stream whose work counts the rows of each key, in states and in a sink."""
    handed = Handed(disk / "handed", ())
    counts = pa.schema([("key", pa.string()), ("seen", pa.int64()), ("seqs", pa.list_(pa.int64()))])

    def count(rows: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
        held = [] if state is None else state.to_pylist()
        before = {row["key"]: row["seen"] for row in held}
        seqs: dict[str, list[int]] = {key: [] for key in before}
        for key, seq in zip(rows["key"].to_pylist(), rows["seq"].to_pylist(), strict=True):
            seqs.setdefault(key, []).append(seq)
        after = {key: before.get(key, 0) + len(own) for key, own in seqs.items()}
        table = pa.table([[*seqs], [*after.values()], [*seqs.values()]], schema=counts)
        return table, table.select(["key", "seen"])

    def work(rows: DataFrame, batch: MicroBatch) -> None:
        found = at_instances(rows, batch, count, counts).collect()
        handed.write(batch.number, [list(row) for row in found])

    lines = spark.readStream.schema("seq long, key string, value double")
    rows = lines.option("maxFilesPerTrigger", 2).json(str(disk / "in"))
    opened = Grouping(INSTANCES, senders=2, window_tuples=50).stream(
        rows, "key", disk / "store", work, "seq"
    )
    stream = AnnouncedGrouping(opened._spreader, opened._checkpoint, opened._rows, opened._work)

    def observe() -> dict[str, Any]:
        batches = handed.read()
        states: dict[str, int] = {}
        for key, seen, _ in batches[-1] if batches else []:
            states[key] = states.get(key, 0) + seen
        seqs = {at: [seq for *_, own in rows for seq in own] for at, rows in enumerate(batches)}
        return {"handed": seqs, "states": [*states.items()]}

    return Opened([stream.start], stream.run_available, observe)


def open_join(spark: SparkSession, room: str, disk: Path, workers: int) -> Opened:
    """Open a chain; that of ``join-load`` has one to three workers, as its load asks for."""
    follows = room == "join-load"
    chain = join.ChainJoin(
        (1, 3) if follows else workers,
        oracles.JOIN["window_us"],
        {name: predicate_from_json(each) for name, each in oracles.JOIN["queries"]},
        block_size=8,
        lateness_us=oracles.JOIN["lateness_us"],
        load=LOAD if follows else None,
        patience_s=10,
    )
    columns = ["query", "r_id", "s_id"]
    handed = Handed(disk / "handed", columns)
    plain = chain.stream(*join.from_history(spark, disk / "in"), disk / "store")
    stream = ResizedStream(plain._chain, plain._rows, handed, plain._checkpoint)
    if follows:
        measure = plain._chain._measure
        setattr(plain._chain, "_measure", lambda *given: pretend(measure(*given)))  # noqa: B010 (mypy protects it)

    def observe() -> dict[str, Any]:
        store = disk / "store"
        refused = join.rejected(spark, store).where(F.col("reason") == REASON_SHED)
        shed = refused.select("stream", "seq").collect() if follows else []
        workers = [each.config.workers for each in join.snapshots(store)]
        return {
            "resizes": sum(left != right for left, right in pairwise(workers)),
            "rows": [list(row) for row in join.results(spark, store).select(*columns).collect()],
            "handed": handed.read_rows(),
            "shed": [list(row) for row in shed],
            "complete_us": join.progress(store).complete_us,
        }

    return Opened([stream.start], stream.flush, observe)


def open_room(spark: SparkSession, given: dict[str, Any]) -> Opened:
    """Open the queries of a room on the disk of a folder."""
    room, disk = given["room"], Path(given["folder"]) / "disk"
    if room in oracles.WINDOWS:
        return open_windows(spark, room, disk)
    if room == "script":
        return open_script(spark, disk)
    if room == "grouping":
        return open_grouping(spark, disk)
    return open_join(spark, room, disk, given["workers"])

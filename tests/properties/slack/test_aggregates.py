"""Each of several aggregates of one expression keeps the promises of its room (docs/slack.md, 8).

Drawn streams get a second column. In either column some values are missing or no numbers. What an
aggregate computes has to equal what the model computes from the tuples that have its value.
"""

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from model.vocabulary import Event, SlackConfig, Trace, WatermarkConfig, Workload
from model.vocabulary.windows import REASON_NOT_FINITE, Correction, Final, Late, Rejected
from properties import profiles, stream_packs
from properties.stream_packs import WINDOWED
from spark_impl.landed import LandedQueries
from spark_impl.over import Aggregates, over
from spark_impl.runtime.histories import files_of
from spark_impl.runtime.storage import locate
from spark_impl.windows.system import read_trace
from straggler.rooms import find_room
from straggler.strategies.streams import ROOMS, configs

CASES, PACKS = profiles.choose(24, nightly=100), profiles.choose(1, nightly=8)
SCHEMA = pa.schema(
    [
        ("case_id", pa.string()),
        ("source_id", pa.int64()),
        ("key", pa.string()),
        ("at", pa.int64()),
        ("watts", pa.float64()),
        ("celsius", pa.float64()),
    ]
)
COLUMNS: Mapping[str, str | None] = {
    "power": "watts",
    "warmth": "celsius",
    "peak": "celsius",
    "rows": None,
}
"""Column of each aggregate; None counts rows."""
Config: TypeAlias = SlackConfig | WatermarkConfig
CELSIUS = (0.5, 2.0, 7.25, -4.0, None, math.nan)
"""Values of the second column."""


class Row(NamedTuple):
    """A tuple of the stream, and its values by column."""

    event: Event
    values: Mapping[str, float | None]

    def value(self, column: str | None) -> float | None:
        """Return the value that an aggregate of a column reads."""
        return 1.0 if column is None else self.values[column]


class Pack(NamedTuple):
    """Streams that several aggregates read."""

    configs: Mapping[str, Config]
    """Configuration of each aggregate, by its name."""
    streams: Mapping[str, Sequence[Sequence[Row]]]
    """The micro-batches of each stream, by the name of the case."""

    @property
    def batches(self) -> int:
        """Number of micro-batches of the longest stream."""
        return max(map(len, self.streams.values()))


def draw_configs(seed: int) -> dict[str, Config]:
    """Draw a query of each aggregate; all have the same windows and tasks."""
    first, *others = (
        stream_packs.collect(configs([name]), 12, seed)[-1] for name in ("sum", "avg", "count")
    )
    same: dict[str, Any] = {
        "size_us": first.size_us,
        "slide_us": first.slide_us,
        "tasks": first.tasks,
        "keyed": first.keyed,
        "gamma_us": first.gamma_us,
    }
    slack = [replace(each, **same, max_future_us=None, dedup=True) for each in (first, *others)]
    peak = WatermarkConfig(
        max_wait_us=first.size_us, k=4, aggregate="max", corrections=True, **same
    )
    return dict(zip(COLUMNS, (slack[0], slack[1], peak, slack[2]), strict=True))


def draw_pack(seed: int) -> Pack:
    """Draw queries and streams; some values of both columns are missing or no numbers."""
    chosen = draw_configs(seed)
    power = chosen["power"]
    cases = stream_packs.draw_pack(power, CASES, seed).cases
    most = max(len(case.arrivals) for case in cases.values())
    faults = st.tuples(st.sampled_from([0, 0, 0, 1, 2]), st.sampled_from(CELSIUS))
    drawn = stream_packs.collect(st.lists(faults, min_size=most, max_size=most), CASES, seed)
    streams = {}
    for (name, case), pairs in zip(cases.items(), drawn, strict=True):
        values: dict[int, Mapping[str, float | None]] = {}
        for event, (fault, celsius) in zip(case.arrivals, pairs, strict=False):
            watts = (event.value, None, math.nan)[fault]
            values.setdefault(event.source_id, {"watts": watts, "celsius": celsius})
        batches = [[Row(each, values[each.source_id]) for each in own] for own in case.batches()]
        streams[name] = batches
    return Pack(chosen, streams)


def write_batch(folder: Path, pack: Pack, number: int) -> None:
    """Write the file of a micro-batch of all streams."""
    rows = [
        {
            "case_id": name,
            "source_id": row.event.source_id,
            "key": row.event.key,
            "at": row.event.event_time_us,
            **row.values,
        }
        for name, batches in pack.streams.items()
        for row in (batches[number] if number < len(batches) else ())
    ]
    path = folder / f"{number}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path)
    os.utime(path, (1_000 + number, 1_000 + number))


def open_queries(spark: SparkSession, folder: Path, pack: Pack) -> LandedQueries:
    schema = "case_id string, source_id long, key string, at long, watts double, celsius double"
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    stream = over(
        source.parquet(str(folder / "in")),
        event_time="at",
        key="key",
        source_id="source_id",
        group_columns=["case_id"],
        time_unit="us",
    )
    return Aggregates(stream, pack.configs, COLUMNS).store_in(folder / "kept")


def run(spark: SparkSession, folder: Path, pack: Pack) -> LandedQueries:
    """Run everything; the queries restart in the middle, and one of them is killed there."""
    (folder / "in").mkdir()
    for number in range(pack.batches):
        write_batch(folder / "in", pack, number)
        if not number:
            open_queries(spark, folder, pack).run_available()
            commits = folder / "kept" / "checkpoints" / "answers" / "warmth" / "commits"
            for path in (commits / "0", commits / ".0.crc"):
                path.unlink(missing_ok=True)  # killed just before Spark committed
    found = open_queries(spark, folder, pack)
    found.flush()
    return found


def projections(pack: Pack, name: str) -> dict[str, Workload]:
    """Return the workload of an aggregate in each stream; a missing value is NaN."""
    config, column = pack.configs[name], COLUMNS[name]
    found = {}
    for case, batches in pack.streams.items():
        events: list[Event] = []
        cuts = []
        for batch in batches:
            for row in batch:
                value = row.value(column)
                plain = math.nan if value is None else value
                events.append(row.event._replace(seq=len(events), value=plain))
            cuts.append(len(events))
        found[case] = Workload(
            ROOMS[type(config)], tuple(events), config.to_json(), tuple(cuts[:-1]), name=case
        )
    return found


def renumbered(pack: Pack, name: str, history: pa.Table, traces: Mapping[str, Trace]) -> Any:
    """Return the traces with the numbers that arrivals and micro-batches have in projections."""
    for case, trace in traces.items():
        batch_of: dict[int, int] = {}
        for number, batch in enumerate(pack.streams[case]):
            if batch:
                batch_of[number] = len(batch_of)
        batch_of[pack.batches] = len(batch_of)  # the flush
        numbers = history.filter(pa.compute.equal(history["case_id"], case))["seq"].to_pylist()
        seq_of = {number: seq for seq, number in enumerate(numbers)}
        steps = []
        for step in trace.steps():
            moved: Any = step  # all steps are named tuples
            if isinstance(step, Rejected) and step.reason == "value is NULL":
                moved = step._replace(reason=REASON_NOT_FINITE)
            for field, by in {"batch": batch_of, "seq": seq_of}.items():
                if field in moved._fields:
                    moved = moved._replace(**{field: by[getattr(moved, field)]})
            steps.append(moved)
        yield case, Trace("spark", steps)


@pytest.fixture(scope="module")
def seen() -> Counter[tuple[str, str]]:
    """Count the packs in which a query had each kind of step."""
    return Counter()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(PACKS))
def test_each_aggregate_equals_the_model_on_the_tuples_that_have_its_value(
    number: int, spark: SparkSession, tmp_path: Path, seed: int, seen: Counter[tuple[str, str]]
) -> None:
    pack = draw_pack(seed + number)
    running = run(spark, tmp_path, pack)
    files = files_of(locate(tmp_path / "kept" / "history"))
    history = pa.concat_tables([pq.read_table(file.path) for file in files])
    assert [*history.column_names].count("value_celsius") == 1
    batches = dict.fromkeys(pack.streams, pack.batches)
    finals: dict[str, set[Any]] = {}
    for name, config in pack.configs.items():
        room = find_room(ROOMS[type(config)])
        query = running.queries[name]
        found = read_trace(WINDOWED[room.name], spark, query.store.root, batches)
        traces = dict(renumbered(pack, name, history, found))
        cases = projections(pack, name)
        assert stream_packs.list_failing(room, cases, traces) == {}, name
        finals[name] = {(case, *step) for case, t in traces.items() for step in t.of(Final)}
        for kind in (Late, Correction, Final):
            seen[name, kind.__name__] += any(trace.of(kind) for trace in traces.values())
    assert_joined(running, finals)


def test_packs_held_late_tuples_and_corrections_of_every_query(
    seen: Counter[tuple[str, str]],
) -> None:
    assert seen, "undetermined: no pack was run"
    assert all(seen.values()), seen


def assert_joined(running: LandedQueries, finals: Mapping[str, set[Any]]) -> None:
    """Check that the joined results hold the answers of each aggregate, and no others."""
    rows = running.results().drop("window").toArrow().to_pylist()
    windows = [(row["case_id"], row["task"], row["start_us"], row["key"]) for row in rows]
    assert len(windows) == len(set(windows))
    for name, wanted in finals.items():
        here = zip(windows, (row[name] for row in rows), strict=True)
        found = {
            (*window, own["value"], own["n"], own["revision"], own["state"] == "exact")
            for window, own in here
            if own is not None and own["revision"] is not None
        }
        assert found == wanted
        assert len(found) < len(rows) or name == "rows", "no answer was missing"

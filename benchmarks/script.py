"""Scripts on Spark: gain of sharing and of placement, and speed on real networks.

*Compiling*: 1,024 workflows of three windows, each over two of 1,000 sensors drawn at random, for
four workers: seconds from trees to a plan.

*Shared against one by one*: the same workflows over the stream of these sensors (20 to 100 Hz),
windows of a minute every half a minute. ``shared`` is one query for all of them. ``one by one`` are
16 queries of Spark's own windows, one for each of the first 16 workflows, all at once on the same
cores; the time of more queries would grow at least in proportion. Rates are tuples read a second,
times workflows answered.

*Bytes*: those of the blocks that travel to four workers, compared with sending every sensor to the
hash of its name and on to the workers that need it. Two sets of workflows: the printed
set (docs/script.md, section 10; 16 sensors, 8 of them shared by a union), over 20 sets of names,
and the 1,024 workflows.

*End to end*: the weather of 2013, 27 sensors, with the twelve scripts for it, and three minutes of
a bridge under load, seven series, if the recording is there: tuples a second from files to results,
including the start of the queries.

*Lines*: the first script of docs/script.md, and the same in PySpark. Both run here, and agree.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks._script_input import SCRIPT, SECOND_US, Network, by_hand, lines, native
from benchmarks._windows import in_a_folder
from model.vocabulary import ScriptConfig
from model.vocabulary.script import tree
from spark_impl.runtime.histories import append, history_schema
from spark_impl.runtime.session import session
from spark_impl.script import Plan, ScriptQuery, compile_plan, results
from spark_impl.script.router import Router
from straggler.inputs.inputs import recordings_by_name
from straggler.rooms.script import inputs
from straggler.rooms.script.language import parse

ROWS, FILES = 500_000, 2
"""Size of the measured stream; one more file warms up."""
ONE_BY_ONE = 16
GOAL = 10.0
YEAR_HOURS = 8_760
EXAMPLES = Path(inputs.__file__).parent / "examples"
BRIDGE = """\
strain = stddev("{0}", 1_000, 500)
mean = avg("{0}", 1_000, 500)
range = max("{0}", 10_000, 1_000) - min("{0}", 10_000, 1_000)
rough = strain / mean
"""
"""Script for every series of the bridge."""


def measure() -> dict[str, float]:
    """Return all figures; rates are in tuples a second."""
    figures = compiling() | bytes_sent()
    with session(long_running=True) as spark:
        figures |= in_a_folder(partial(side_by_side, spark))
        figures |= in_a_folder(partial(weather, spark))
        figures |= in_a_folder(partial(bridge, spark))
    return figures


def compiling() -> dict[str, float]:
    """Return the median time of five compilations, and the number of computations."""
    config, took = Network().config(workers=4), []
    for _ in range(5):
        begun = time.perf_counter()
        plan = compile_plan(config)
        took.append(time.perf_counter() - begun)
    return {
        "compiling 1,024 workflows, s": statistics.median(took),
        "computations written": plan.graph.written,
        "computations made": len(plan.graph.computed),
    }


def bytes_sent() -> dict[str, float]:
    """Return the share of bytes saved compared with hashing; 0.2 is a fifth less."""
    drawn = Network(sensors=16, workflows=0, hz=(1, 1))
    shares = [less(compile_plan(printed(drawn, seed)), drawn, 20_000) for seed in range(20)]
    large = Network()
    plan = compile_plan(large.config(workers=4))
    return {
        "bytes less than by hash, printed set": statistics.mean(shares),
        "bytes less than by hash, 1,024 workflows": less(plan, large, 100_000),
        "largest load by even share, 1,024 workflows": 4
        * max(plan.placement.loads)
        / sum(plan.graph.per_hour.values()),
    }


def printed(network: Network, seed: int) -> ScriptConfig:
    """Return 16 equal sensors on 4 workers, a window each, and one over the union of 8 of them."""
    names = [f"{seed}-{name}" for name in network.names]
    sources: list[tree.Expression] = [tree.Sensor(name) for name in names]
    sources.append(tree.Union(tuple(sources[:8])))
    statements = tuple(
        tree.Statement(f"s{number}", tree.Window("avg", source, 60_000, 30_000))
        for number, source in enumerate(sources)
    )
    return ScriptConfig(
        (tree.Workflow("w", statements),), tuple((name, 3_600) for name in names), workers=4
    )


def less(plan: Plan, network: Network, rows: int) -> float:
    """Return the share of bytes that the blocks of a stream save compared with hashing."""
    table = next(network.files(rows))
    by_number = dict(zip(network.names, sorted(plan.graph.per_hour), strict=True))
    keys = pa.array([by_number[name] for name in table.column("key").to_pylist()])
    table = table.set_column(table.schema.get_field_index("key"), "key", keys)
    ours, theirs = (
        sum(map(len, Router(each).blocks(table).values()))
        for each in (plan, replace(plan, placement=plan.baseline))
    )
    return 1 - ours / theirs


def side_by_side(spark: SparkSession, place: Path) -> dict[str, float]:
    """Compare one query for 1,024 workflows with 16 queries for 16."""
    network = Network()
    shared = place / "shared"

    def one_query() -> list[StreamingQuery]:
        return [ScriptQuery(spark, network.config(workers=2), shared, place / "store").start()]

    def one_by_one() -> list[StreamingQuery]:
        return [
            started(spark, place / f"native-{number}", network, place / "apart", pairs)
            for number, pairs in enumerate(network.drawn()[:ONE_BY_ONE])
        ]

    shared_s = seconds(shared, one_query, network)
    apart_s = seconds(place / "apart", one_by_one, network)
    rate, rate_apart = (ROWS * FILES / each for each in (shared_s, apart_s))
    return {
        "shared, 1,024 workflows": rate,
        "one by one, 16 workflows": rate_apart,
        "shared, times workflows": rate * network.workflows,
        "one by one, times workflows": rate_apart * ONE_BY_ONE,
        "shared / one by one": rate * network.workflows / (rate_apart * ONE_BY_ONE),
        "goal of the ratio": GOAL,
    }


def started(
    spark: SparkSession,
    own: Path,
    network: Network,
    history: Path,
    pairs: list[tuple[str, ...]],
) -> StreamingQuery:
    """Start Spark's own query for one workflow, with Spark's default settings."""
    rows = (
        spark.readStream.schema("key string, event_time_us long, value double")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(history))
    )
    return (
        native(rows, network, pairs)
        .writeStream.outputMode("append")
        .format("parquet")
        .option("path", str(own / "answers"))
        .option("checkpointLocation", str(own / "checkpoint"))
        .start()
    )


def seconds(history: Path, start: Callable[[], list[StreamingQuery]], network: Network) -> float:
    """Measure the time in which running queries read new files, after a warm-up file (s)."""
    tables = network.files(ROWS)
    append(history, next(tables))
    queries = start()
    for query in queries:
        query.processAllAvailable()
    for table in islice(tables, FILES):
        append(history, table)
    begun = time.perf_counter()
    for query in queries:
        query.processAllAvailable()
    took = time.perf_counter() - begun
    for query in queries:
        query.stop()
    return took


def weather(spark: SparkSession, place: Path) -> dict[str, float]:
    """Measure a year of weather: twelve scripts, and the first script compared with PySpark."""
    known = inputs.load_sensors("weather")
    events = inputs.weather_events(YEAR_HOURS)
    rows = pa.Table.from_pylist([event._asdict() for event in events], schema=history_schema())
    flows = tuple(
        parse(path.read_text(encoding="utf-8"), path.stem, known)
        for path in sorted(EXAMPLES.glob("*.script"))
    )
    found = end_to_end(spark, place / "weather", flows, known, rows, 3_600 * SECOND_US)
    first = ScriptConfig((parse(SCRIPT, "first", known),), tuple(known.items()))
    ScriptQuery(spark, first, place / "weather", place / "first", files=12).flush()
    ours = {(row.name, row.ts_us): row.value for row in results(spark, place / "first").collect()}
    theirs = by_hand(spark, str(place / "weather")).collect()
    apart = max(abs(ours[row.name, row.ts_us] - row.value) for row in theirs)
    assert len(ours) == len(theirs) > YEAR_HOURS, "they do not have the same results"
    assert apart < 1e-9, f"they are {apart} apart"
    script, python = lines()
    return {**found, "lines of the script": script, "lines of PySpark": python}


def bridge(spark: SparkSession, place: Path) -> dict[str, float]:
    """Measure the series of the bridge, with a script for each."""
    path = recordings_by_name().get("munich_bridge")
    if path is None:
        return {}
    table = pq.read_table(path)
    hz = dict(zip(table.column("key").to_pylist(), table.column("hz").to_pylist(), strict=True))
    known = {name: round(3_600 * each) for name, each in sorted(hz.items())}
    flows = tuple(parse(BRIDGE.format(name), name.replace("-", "_"), known) for name in known)
    seq = table.column("seq")
    rows = pa.table(
        [seq, seq, *(table.column(name) for name in ("key", "event_time", "value", "event_time"))],
        schema=history_schema(),
    )
    return end_to_end(spark, place / "bridge", flows, known, rows, SECOND_US)


def end_to_end(
    spark: SparkSession,
    history: Path,
    flows: tuple[tree.Workflow, ...],
    known: Mapping[str, int],
    rows: pa.Table,
    lateness_us: int,
) -> dict[str, float]:
    """Measure the time from files to results: twelve files in four micro-batches, then the end."""
    size = -(-rows.num_rows // 12)
    for start in range(0, rows.num_rows, size):
        append(history, rows.slice(start, size))
    config = ScriptConfig(flows, tuple(known.items()), workers=2, lateness_us=lateness_us)
    store = history.with_name(f"{history.name}-store")
    begun = time.perf_counter()
    ScriptQuery(spark, config, history, store, files=3).flush()
    took = time.perf_counter() - begun
    return {
        f"{history.name}: tuples": rows.num_rows,
        f"{history.name}: results": results(spark, store).count(),
        f"{history.name}: seconds": took,
        f"{history.name}: tuples a second": rows.num_rows / took,
    }

"""Apache Flink behind the judge's protocol: windows of PyFlink, and interval joins of Flink SQL.

Rules of this file:

* A declared watermark follows each row at once: the automatic interval is 0. Flink's watermark t
  says that nothing up to t comes any more, so it lies 1 ms below that of the workload.
* `feedback_us` is the allowed lateness. What a window fires last is its final answer.
* Times are counted from a boundary of windows before the first arrival: timestamps end in 9999.
* Flink counts a redelivery again, so a window keeps each identity once.
"""

import json
import os
import statistics
import sys

# The interpreter inside Flink's Java process finds its packages by these.
os.environ["PYTHONPATH"] = next(path for path in sys.path if path.endswith("site-packages"))
os.environ.setdefault("JVM_ARGS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

from pyflink.common import Configuration, Row, Time, Types
from pyflink.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import SlidingEventTimeWindows
from pyflink.java_gateway import get_gateway
from pyflink.table import Schema, StreamTableEnvironment

NEVER_US = 10**12
AGGREGATES = {"sum": sum, "count": len, "avg": statistics.fmean, "min": min, "max": max}
SOURCE, KEY, AT, VALUE, STREAM = 1, 2, 3, 4, 6
NAMES = ("id", "k", "at", "v")
JAVA = get_gateway().jvm.org.apache.flink
_builder = JAVA.runtime.minicluster.MiniClusterConfiguration.Builder().withRandomPorts()
CLUSTER = JAVA.runtime.minicluster.MiniCluster(_builder.setNumSlotsPerTaskManager(4).build())
CLUSTER.start()  # It serves all workloads.


def types():
    """Return the types of a row; a type that was used cannot be sent to a worker."""
    return [Types.LONG(), Types.STRING(), Types.LONG(), Types.DOUBLE()]


def interval(us):
    """Return a length of time as a literal of SQL."""
    minutes, ms = divmod(us // 1000, 60_000)
    clock = f"{minutes // 1440} {minutes // 60 % 24:02}:{minutes % 60:02}:{ms / 1000:06.3f}"
    return f"INTERVAL '{clock}' DAY TO SECOND(3)"


def table_environment():
    """Return an environment of a single task, and its tables."""
    settings = Configuration().set_string("python.execution-mode", "thread")
    settings.set_string("python.executable", sys.executable).set_string("parallelism.default", "1")
    address = CLUSTER.getRestAddress().get()
    place = (address.getHost(), address.getPort(), settings._j_configuration)
    no_jars = get_gateway().new_array(get_gateway().jvm.String, 0)
    java = JAVA.streaming.api.environment.StreamExecutionEnvironment
    environment = StreamExecutionEnvironment(java.createRemoteEnvironment(*place, no_jars))
    environment.get_config().set_auto_watermark_interval(0)
    return environment, StreamTableEnvironment.create(environment)


def table_of(environment, tables, arrivals, wait_us, origin_us):
    """Return a table of arrivals, in order, with a watermark."""
    rows = [Row(at[SOURCE], at[KEY], (at[AT] - origin_us) // 1000, at[VALUE]) for at in arrivals]
    stream = environment.from_collection(rows, Types.ROW_NAMED(list(NAMES), types()))
    schema = Schema.new_builder().column("id", "BIGINT").column("k", "STRING")
    schema.column("at", "BIGINT").column("v", "DOUBLE")
    schema.column_by_expression("rt", "TO_TIMESTAMP_LTZ(`at`, 3)")
    schema.watermark("rt", f"rt - {interval(wait_us + 1000)}")
    return tables.from_data_stream(stream, schema.build())


class _Found(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield json.dumps([key, context.window().start, {each[0]: each[3] for each in elements}])


def run_windows(config, arrivals):
    """Return the steps of a windowed query."""
    size_us, slide_us, wait_us = (config[f"{name}_us"] for name in ("size", "slide", "fixed_slack"))
    if (
        config["control"] != "fixed"
        or config["tasks"] != 1
        or config["aggregate"] not in AGGREGATES
    ):
        sys.exit("the query needs control=fixed, tasks=1, and no quantile")
    origin_us = (arrivals[0][AT] // slide_us - 10**6) * slide_us
    arrivals = [[*at[:KEY], at[KEY] * config["keyed"], *at[KEY + 1 :]] for at in arrivals]
    environment, tables = table_environment()
    stream = tables.to_data_stream(table_of(environment, tables, arrivals, wait_us, origin_us))
    late_tag = OutputTag("late", Types.ROW_NAMED([*NAMES, "rt"], [*types(), Types.INSTANT()]))
    size, slide = Time.milliseconds(size_us // 1000), Time.milliseconds(slide_us // 1000)
    keyed = stream.key_by(lambda row: row[1], key_type=Types.STRING())
    windows = keyed.window(SlidingEventTimeWindows.of(size, slide)).side_output_late_data(late_tag)
    windows.allowed_lateness((config["feedback_us"] or 0) // 1000)
    fired = windows.process(_Found(), Types.STRING())
    late = fired.get_side_output(late_tag).map(lambda at: json.dumps([*at][:3]), Types.STRING())
    answers, steps = {}, []
    for found in map(json.loads, fired.union(late).execute_and_collect()):
        if isinstance(found[2], dict):
            answers.setdefault((found[1] * 1000 + origin_us, found[0]), []).append(found[2])
            continue
        # Flink reports an element that is late for all its windows, and names none of them.
        at_us = found[2] * 1000 + origin_us
        starts_us = range(at_us // slide_us * slide_us, at_us - size_us, -slide_us)
        names = {"kind": "late", "task": 0, "key": found[1], "source_id": found[0]}
        steps += [{**names, "start_us": start_us} for start_us in starts_us]
    for (start_us, key), found in answers.items():
        for kind, values, n in (("result", found[0], "n_rcv"), ("final", found[-1], "n")):
            value = float(AGGREGATES[config["aggregate"]](list(values.values())))
            place = {"task": 0, "start_us": start_us, "key": key}
            steps.append({"kind": kind, **place, "value": value, n: len(values)})
    return steps


def condition(predicate):
    """Return a predicate as a condition of SQL."""
    kind, *rest = predicate
    if kind == "and":
        return " AND ".join(["TRUE", *map(condition, rest)])
    if kind in ("band", "apart"):
        return f"ABS(r.v - s.v) {'<=' if kind == 'band' else '>'} CAST('{rest[1]!r}' AS DOUBLE)"
    operator = "=" if kind == "equi" else rest[1].replace("!=", "<>")
    return f"r.{rest[0][0]} {operator} s.{rest[0][0]}"


def run_join(config, arrivals):
    """Return the steps of an interval join of two sources, whose interleaving is up to Flink."""
    if len({arrival[STREAM] for arrival in arrivals}) < 2:
        return []
    environment, tables = table_environment()
    wait_us = NEVER_US if config["lateness_us"] is None else config["lateness_us"]
    origin_us = arrivals[0][AT] - NEVER_US
    for side in "RS":
        found = [arrival for arrival in arrivals if arrival[STREAM] == side]
        tables.create_temporary_view(side, table_of(environment, tables, found, wait_us, origin_us))
    near = "r.rt BETWEEN s.rt - {0} AND s.rt + {0}".format(interval(config["window_us"]))
    parts = [
        f"SELECT '{query}', r.id, s.id FROM R AS r, S AS s WHERE {condition(predicate)} AND {near}"
        for query, predicate in config["queries"]
    ]
    with tables.execute_sql(" UNION ALL ".join(parts)).collect() as rows:
        return [{"kind": "match", "query": q, "r_id": r, "s_id": s} for q, r, s in rows]


for line in sys.stdin:
    workload = json.loads(line)
    if not workload["flush"]:
        sys.exit("flush is false; the end of a source closes every window")
    run = {"join": run_join, "slack": run_windows}[workload["room"]]
    found = run(workload["config"], workload["arrivals"])
    for row in [{"trace": 1, "producer": "Apache Flink"}, *found, {"end": len(found)}]:
        print(json.dumps(row), flush=True)

"""Pathway behind the judge's protocol: windows with behaviors, and interval joins.

Rules of this file:

* Every arrival is a batch of its own, because Pathway moves time only after a batch.
* The wait is a cutoff: a window takes nothing more once the largest event time has reached its end
  plus the cutoff. With `feedback_us` 0 a window answers once, at that time; otherwise it answers
  with its first tuple, and again with every other one.
* `deduplicate` drops redeliveries; Pathway's own reducers aggregate.
"""

import json
import logging
import sys

import pathway as pw

NAMES = ("seq", "source_id", "k", "at", "v", "stream")
REDUCERS = {
    "sum": pw.reducers.sum,
    "avg": pw.reducers.avg,
    "min": pw.reducers.min,
    "max": pw.reducers.max,
}


class _Arrival(pw.Schema):
    seq: int
    source_id: int
    k: str
    at: int
    v: float
    stream: str


def table_of(arrivals):
    """Return a table of first deliveries, in the order of arrival."""
    rows = [
        (seq, source_id, key, at_us, float(value), stream, 2 * order, 1)
        for order, (seq, source_id, key, at_us, value, _, stream) in enumerate(arrivals, 1)
    ]
    table = pw.debug.table_from_rows(_Arrival, rows, is_stream=True)
    return table.deduplicate(
        value=pw.this.seq,
        instance=(pw.this.stream, pw.this.source_id),
        acceptor=lambda _new, _old: False,
    )


def run(table):
    """Run the pipeline, and return the rows that its result has in the end."""
    found = []

    def note(key, row, time, is_addition):
        if is_addition:
            found.append(row)
        else:
            found.remove(row)

    pw.io.subscribe(table, on_change=note)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return found


def run_windows(config, arrivals):
    """Return the steps of a windowed query."""
    size_us, slide_us, wait_us = (config[f"{name}_us"] for name in ("size", "slide", "fixed_slack"))
    if config["tasks"] != 1 or config["control"] != "fixed":
        sys.exit("one watermark with a fixed wait needs tasks=1, control=fixed")
    if config["aggregate"] not in (*REDUCERS, "count"):
        sys.exit(f"aggregate {config['aggregate']!r} is none of count, {', '.join(REDUCERS)}")
    table = table_of(arrivals)
    if config["feedback_us"] == 0:
        behavior = pw.temporal.exactly_once_behavior(shift=wait_us)
    else:
        behavior = pw.temporal.common_behavior(cutoff=wait_us)
    windows = table.windowby(
        table.at,
        window=pw.temporal.sliding(hop=slide_us, duration=size_us),
        instance=table.k if config["keyed"] else None,
        behavior=behavior,
    )
    n = pw.reducers.count()
    reducer = REDUCERS.get(config["aggregate"])
    result = windows.reduce(
        key=pw.this._pw_instance,
        start_us=pw.this._pw_window_start,
        value=reducer(pw.this.v) if reducer else n,
        n=n,
    )
    steps = []
    for row in run(result):
        place = {"task": 0, "start_us": row["start_us"], "key": row["key"] or ""}
        steps.append({"kind": "final", **place, "value": float(row["value"]), "n": row["n"]})
    return steps


def run_join(config, arrivals):
    """Return the steps of an interval equi-join that remembers both streams."""
    (query, predicate), *more = config["queries"]
    if more or predicate != ["equi", "key"] or config["lateness_us"] is not None:
        sys.exit("a join needs one query, equi on the key, and lateness_us=null")
    table = table_of(arrivals)
    r, s = table.filter(pw.this.stream == "R"), table.filter(pw.this.stream == "S")
    width = pw.temporal.interval(-config["window_us"], config["window_us"])
    pairs = r.interval_join(s, r.at, s.at, width, r.k == s.k)
    rows = run(pairs.select(r_id=r.source_id, s_id=s.source_id))
    return [{"kind": "match", "query": query, **row} for row in rows]


logging.disable(logging.INFO)
for line in sys.stdin:
    workload = json.loads(line)
    if not workload["flush"]:
        sys.exit("flush is false; the end of a source closes every window")
    pw.internals.parse_graph.G.clear()
    rooms = {"join": run_join, "slack": run_windows}
    found = rooms[workload["room"]](workload["config"], workload["arrivals"])
    for row in [{"trace": 1, "producer": "Pathway"}, *found, {"end": len(found)}]:
        print(json.dumps(row))
    sys.stdout.flush()

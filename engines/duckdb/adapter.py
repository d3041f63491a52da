"""DuckDB as a system on trial: each workload is a table, and each query is one statement of SQL.

DuckDB sees the whole stream at once, so that there is no watermark and nothing is late.
"""

import json
import sys

import duckdb

COLUMNS = (
    "seq BIGINT, id BIGINT, key VARCHAR, ts BIGINT, value DOUBLE, arrival BIGINT, stream VARCHAR"
)
ONCE = "SELECT DISTINCT ON (stream, id) * FROM arrivals WHERE isfinite(value) ORDER BY seq"
AGGREGATES = {
    "sum": "sum(value)",
    "count": "count(*)::DOUBLE",
    "avg": "avg(value)",
    "min": "min(value)",
    "max": "max(value)",
    "median": "quantile_disc(value, 0.5)",
    "quantile": "quantile_disc(value, {q!r})",
}


def refuse(sentence):
    sys.exit(f"adapter of DuckDB: {sentence}")


def windows(db, config):
    """Yield the answer of each window: a tuple is joined with the windows that hold it."""
    if config["aggregate"] not in AGGREGATES:
        refuse(f"it has no aggregate {config['aggregate']!r}")
    if config["tasks"] != 1:
        refuse("it has one task")
    size, slide = config["size_us"], config["slide_us"]
    aggregate = AGGREGATES[config["aggregate"]].format(q=config["q"])
    key = "key" if config["keyed"] else "''"
    found = db.execute(
        f"""
        WITH once AS ({ONCE}),
        placed AS (
            SELECT *, unnest(range(
                (floor((ts - {size})::DOUBLE / {slide})::BIGINT + 1) * {slide},
                ts + 1, {slide})) AS start
            FROM once
        )
        SELECT start, {key} AS k, {aggregate}, count(*) FROM placed GROUP BY start, k
        """
    )
    for start, of_key, value, n in found.fetchall():
        yield {"kind": "final", "task": 0, "start_us": start, "key": of_key, "value": value, "n": n}


def condition(predicate):
    """Return a predicate of the join as SQL."""
    kind, *rest = predicate
    if kind == "equi":
        return f"r.{rest[0]} = s.{rest[0]}"
    if kind == "band":
        return f"abs(r.value - s.value) <= {rest[1]!r}"
    if kind == "apart":
        return f"abs(r.value - s.value) > {rest[1]!r}"
    if kind == "ineq":
        left, op, right = rest
        return f"r.{left} {op} s.{right}"
    return " AND ".join(map(condition, rest)) or "true"


def pairs(db, config):
    """Yield the pairs of each query, found by a join of two tables within a time window."""
    if config["lateness_us"] is not None:
        refuse("it has no lateness")
    if config["epochs"]:
        refuse("it has no epochs")
    for name, predicate in config["queries"]:
        found = db.execute(
            f"""
            WITH once AS ({ONCE})
            SELECT r.id, s.id FROM once AS r JOIN once AS s
            ON r.stream = 'R' AND s.stream = 'S' AND {condition(predicate)}
            AND r.ts BETWEEN s.ts - {config["window_us"]} AND s.ts + {config["window_us"]}
            """
        )
        for r_id, s_id in found.fetchall():
            yield {"kind": "match", "query": name, "r_id": r_id, "s_id": s_id}


def run(workload):
    """Return the steps of a workload."""
    rooms = {"slack": windows, "join": pairs}
    if workload["room"] not in rooms:
        refuse(f"it cannot express room {workload['room']}")
    with duckdb.connect(":memory:") as db:
        # Small tables, too, are joined by the operators for large ones.
        db.execute("SET nested_loop_join_threshold = 0; SET merge_join_threshold = 0")
        db.execute(f"CREATE TABLE arrivals ({COLUMNS})")
        if workload["arrivals"]:
            db.executemany(
                "INSERT INTO arrivals VALUES (?, ?, ?, ?, ?, ?, ?)", workload["arrivals"]
            )
        return list(rooms[workload["room"]](db, workload["config"]))


for line in sys.stdin:
    steps = run(json.loads(line))
    for row in [{"trace": 1, "producer": "DuckDB"}, *steps, {"end": len(steps)}]:
        print(json.dumps(row))
    sys.stdout.flush()

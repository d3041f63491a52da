"""Polars as a system on trial: each workload is a frame, and each query is lazy.

Polars sees the whole stream at once, so that there is no watermark and nothing is late.
"""

import json
import sys

import polars as pl

SCHEMA = {
    "seq": pl.Int64,
    "id": pl.Int64,
    "key": pl.String,
    "ts": pl.Int64,
    "value": pl.Float64,
    "arrival": pl.Int64,
    "stream": pl.String,
}


def refuse(sentence):
    sys.exit(f"adapter of Polars: {sentence}")


def aggregates(config):
    """Return an expression for each aggregate."""
    value = pl.col("value")
    return {
        "sum": value.sum(),
        "count": value.len().cast(pl.Float64),
        "avg": value.mean(),
        "min": value.min(),
        "max": value.max(),
        "median": value.quantile(0.5, "equiprobable"),
        "quantile": value.quantile(config["q"], "equiprobable"),
    }


def windows(once, config):
    """Yield the answer of each window, by the operator for windows over time."""
    known = aggregates(config)
    if config["aggregate"] not in known:
        refuse(f"it has no aggregate {config['aggregate']!r}")
    if config["tasks"] != 1:
        refuse("it has one task")
    if not once.height:
        return
    size, slide = config["size_us"], config["slide_us"]
    found = (
        once.lazy()
        .sort("ts")
        .group_by_dynamic(
            "ts",
            every=f"{slide}i",
            period=f"{size}i",
            # By default the first window is the latest that holds the first row.
            offset=f"-{-(-size // slide) * slide}i",
            closed="left",
            label="left",
            start_by="window",
            group_by=["key"] if config["keyed"] else None,
        )
        .agg(value=known[config["aggregate"]], n=pl.len())
        .collect()
    )
    for row in found.iter_rows(named=True):
        if row["n"]:
            yield {
                "kind": "final",
                "task": 0,
                "start_us": row["ts"],
                "key": row.get("key", ""),
                "value": row["value"],
                "n": row["n"],
            }


def conditions(predicate):
    """Yield the parts of a predicate of the join as expressions."""
    kind, *rest = predicate
    r, s = (pl.col(rest[0]), pl.col(f"{rest[0]}_s")) if kind not in ("and",) else (None, None)
    if kind == "equi":
        yield r == s
    elif kind == "band":
        yield (r - s).abs() <= rest[1]
    elif kind == "apart":
        yield (r - s).abs() > rest[1]
    elif kind == "ineq":
        ops = {"<": r < s, "<=": r <= s, ">": r > s, ">=": r >= s, "!=": r != s}
        yield ops[rest[1]]
    else:
        for part in rest:
            yield from conditions(part)


def pairs(once, config):
    """Yield the pairs of each query, by the operator for joins on inequalities."""
    if config["lateness_us"] is not None:
        refuse("it has no lateness")
    if config["epochs"]:
        refuse("it has no epochs")
    window = config["window_us"]
    of_r = once.lazy().filter(pl.col("stream") == "R")
    of_s = once.lazy().filter(pl.col("stream") == "S").rename(lambda name: f"{name}_s")
    for name, predicate in config["queries"]:
        found = of_r.join_where(
            of_s,
            pl.col("ts") >= pl.col("ts_s") - window,
            pl.col("ts") <= pl.col("ts_s") + window,
            *conditions(predicate),
        ).collect()
        for r_id, s_id in found.select("id", "id_s").iter_rows():
            yield {"kind": "match", "query": name, "r_id": r_id, "s_id": s_id}


def run(workload):
    """Return the steps of a workload."""
    rooms = {"slack": windows, "join": pairs}
    if workload["room"] not in rooms:
        refuse(f"it cannot express room {workload['room']}")
    arrived = pl.DataFrame(workload["arrivals"], SCHEMA, orient="row")
    finite = arrived.filter(pl.col("value").is_finite())
    once = finite.unique(["stream", "id"], keep="first", maintain_order=True)
    return list(rooms[workload["room"]](once, workload["config"]))


for line in sys.stdin:
    steps = run(json.loads(line))
    for row in [{"trace": 1, "producer": "Polars"}, *steps, {"end": len(steps)}]:
        print(json.dumps(row))
    sys.stdout.flush()

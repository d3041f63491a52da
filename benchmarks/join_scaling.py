"""Saturation of chains of 1 to 8 workers if comparisons take the time: Spark and simulation.

A machine with few cores cannot show how a chain scales. Here every comparison costs emulated time,
in which its worker sleeps; so eight workers work at the same time on two cores. All else, messages,
indexes and results, takes what it takes.

Two streams of equal rates have 512 keys, which are joined within two seconds: an index selects one
stored tuple in 512. With a rate twice as high, every tuple meets twice as many others, so the ideal
rate grows with the square root of the number of workers. Rates are tuples/s of both streams:

* ``ideal``: workers do nothing but compare, all equally much. No chain can be faster.
* ``simulated``: the largest rate with which a simulated chain keeps up, that is, the last epoch
  ends at most 5% of the run after the last arrival. A simulated chain in overload puts comparisons
  off until the flush, so the time of a backlog says nothing about it.
* ``Spark``: the rate whose backlog a chain on Spark joins at that rate, epochs included.
* ``source``: Figure 9 of S2J, with a hash index and a window of five minutes.

Guards: nothing beats ``ideal``, and the comparisons that are due are made within the measured time.
"""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import STREAMS, Equi
from model.vocabulary.join_load import LoadRules
from sim.join import simulate
from sim.join.tuning import ChainTuning, Costs
from sim.kernel.plan import replay
from spark_impl.join import load
from spark_impl.join.chain import Chain
from spark_impl.join.task import Options
from spark_impl.runtime.session import session

WORKERS = (1, 2, 4, 8)
SOURCE = {2: 4_000, 8: 8_500}
"""Published rates, by number of cores."""
COMPARISON_US = 1_000
"""Emulated cost; so high that two cores have time for the messages of eight workers."""
KEYS = 512
WINDOW_S, SECONDS = 2, 16
"""Length of the window and of the streams; the first window warms up."""
LAG_SHARE = 0.05
BLOCK_SIZE = 20
"""The source's."""
CREDIT = 51
START_US = 1_700_000_000_000_000


def measure() -> dict[str, float]:
    """Return the rates of saturation."""
    figures: dict[str, float] = {}
    with session("local[8]") as spark:
        for workers in WORKERS:
            found = {
                "ideal": ideal_rate(workers),
                "simulated": largest_kept_up(partial(keeps_up_simulated, workers), workers),
                "Spark": saturation(partial(on_spark, spark, workers), workers),
            }
            assert max(found.values()) <= found["ideal"], found
            if workers in SOURCE:
                found["source"] = SOURCE[workers]
            figures |= {f"rate of saturation, {workers}: {who}": r for who, r in found.items()}
            figures[f"Spark / simulated, {workers}"] = found["Spark"] / found["simulated"]
    for who in ("ideal", "simulated", "Spark"):
        rates = [figures[f"rate of saturation, {workers}: {who}"] for workers in (2, 8)]
        figures[f"growth from 2 to 8: {who}"] = rates[1] / rates[0]
    figures["growth from 2 to 8: source"] = SOURCE[8] / SOURCE[2]
    return figures


def ideal_rate(workers: int) -> float:
    """Return the rate at which comparisons alone keep all workers busy."""
    # Each pair within the window is compared once: (rate / 2)^2 * 2 * window / keys a second.
    return sqrt(2 * workers * KEYS / (WINDOW_S * COMPARISON_US / 1e6))


def saturation(joined_at: Callable[[float], float], workers: int) -> float:
    """Return the rate whose backlog is joined at that rate.

    ``joined_at`` returns the rate at which a backlog with some rate in event time is joined. That
    falls as the other one rises, nearly in proportion, so three looks are enough.
    """
    rate = 0.8 * ideal_rate(workers)
    for _ in range(3):
        rate = sqrt(rate * joined_at(rate))
    return rate


def largest_kept_up(keeps_up: Callable[[float], bool], workers: int) -> float:
    """Return the largest rate that is kept up with, between half the ideal rate and all of it."""
    low, high = 0.5 * ideal_rate(workers), ideal_rate(workers)
    assert keeps_up(low)
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps_up(middle) else (low, middle)
    return low


def pairs_due(rate: float, seconds: float) -> float:
    """Return the number of pairs with equal keys, within the window, that come in some seconds."""
    return (rate / 2) ** 2 * 2 * WINDOW_S / KEYS * seconds


def keeps_up_simulated(workers: int, rate: float) -> bool:
    """Return whether a simulated chain keeps up with a rate."""
    events = [
        Event(row["seq"], row["source_id"], row["key"], at_us, row["value"], at_us, row["stream"])
        for row in arrivals(rate, 0, SECONDS).to_pylist()
        for at_us in (row["event_time_us"],)
    ]
    plan = replay(events, "steady", cuts=())
    tuning = ChainTuning(Costs(comparison_us=COMPARISON_US))
    run = simulate(replace(plan, tuning=tuning), config_of(workers), 1)
    assert run.summary["arrivals"] == len(events)
    assert not run.summary["rejected"]
    if run.lag_us > LAG_SHARE * SECONDS * 1e6:
        return False
    work_s = float(run.summary["comparisons"]) * COMPARISON_US / 1e6 / workers
    assert work_s <= SECONDS + run.lag_us / 1e6, "comparisons were put off"
    return True


def config_of(workers: int) -> JoinConfig:
    """Return the configuration of a chain."""
    return JoinConfig(
        WINDOW_S * 1_000_000,
        (("join", Equi("key")),),
        workers=workers,
        block_size=BLOCK_SIZE,
        credit=CREDIT,
        lateness_us=0,
    )


def on_spark(spark: SparkSession, workers: int, rate: float) -> float:
    """Return the rate at which a chain on Spark joins a backlog, after the first window."""
    with tempfile.TemporaryDirectory(prefix="straggler-bench-") as place:
        chain = Chain(
            spark,
            config_of(workers),
            Path(place) / "chain",
            load=LoadRules(least=workers, most=workers, block_size=BLOCK_SIZE),
            options=Options(comparison_us=COMPARISON_US),
        )
        for first_s, last_s in ((0, WINDOW_S), (WINDOW_S, SECONDS)):
            done = chain.advance(spark.createDataFrame(arrivals(rate, first_s, last_s)))
        _, full = (each.measured for each in load(chain.store.root))
    compared = sum(each.compared for each in done)
    assert compared >= 0.9 * pairs_due(rate, SECONDS - WINDOW_S), "comparisons were put off"
    return full.offered / (full.elapsed_us / 1e6)


def arrivals(rate: float, first_s: float, last_s: float) -> pa.Table:
    """Return the arrivals of some seconds of both streams, which take turns."""
    seq = np.arange(int(rate * first_s), int(rate * last_s))
    keys = np.random.default_rng([1, int(first_s)]).integers(KEYS, size=len(seq))
    streams = pa.array(STREAMS)
    return pa.table(
        {
            "stream": streams.take(pa.array(seq % 2)),
            "seq": seq,
            "source_id": seq // 2,
            "key": pa.array([f"key-{each}" for each in range(KEYS)]).take(pa.array(keys)),
            "event_time_us": START_US + (seq * (1e6 / rate)).astype(np.int64),
            "value": np.zeros(len(seq)),
        }
    )

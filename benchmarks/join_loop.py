"""The cost of a chain that follows its load while nothing has to be done about it.

The streams of ``join``, two workers, blocks of 64. A pair of runs is one with rules and one
without, in turns the one or the other first; the rules permit two workers only, and nothing is
shed. ``with / without`` is the median of the ratios within pairs, of processor time (all processes)
and of wall clock (to the last pair, the flush included), with an interval that holds the median
with a probability of at least 95%, by the order statistics of the sign test. The goal is at most
1.03. An interval that holds 1.03 decides nothing.
"""

import tempfile
import time
from math import comb
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from benchmarks._join_chain import FILES, TUPLES, inputs
from benchmarks.join import run_streams
from benchmarks.join_profile import processor_times
from model.vocabulary.join_load import LoadRules
from spark_impl.join import results
from spark_impl.join.store import load_store
from spark_impl.runtime.session import session

PAIRS = 12
"""Measured pairs of runs, after one that warms up."""
RULES = LoadRules(shed="linear", capacity=1 << 20)
"""No chain of the benchmark reaches the thresholds."""


def measure() -> dict[str, float]:
    """Return ratios of runs with and without rules."""
    ratios: dict[str, list[float]] = {"processor time": [], "wall clock": []}
    with session("local[4]", long_running=True) as spark, inputs(TUPLES, FILES) as place:
        for number in range(PAIRS + 1):
            order = (None, RULES) if number % 2 else (RULES, None)
            took = {rules is not None: run_once(spark, place, rules) for rules in order}
            if number:
                for name, with_rules, without in zip(ratios, took[True], took[False], strict=True):
                    ratios[name].append(with_rules / without)
    figures: dict[str, float] = {"pairs of runs": PAIRS}
    for name, own in ratios.items():
        least, most = interval(own)
        figures |= {
            f"{name}, with / without": median(own),
            f"{name}, with / without: least": least,
            f"{name}, with / without: most": most,
        }
    return {**figures, "goal, with / without": 1.03}


def run_once(spark: SparkSession, place: Path, rules: LoadRules | None) -> tuple[float, float]:
    """Return processor time and wall clock of one run, in seconds."""
    with tempfile.TemporaryDirectory(dir=place) as out:
        store = Path(out) / "chain"
        before, begun = sum(processor_times().values()), time.perf_counter()
        run_streams(spark, place, store, 2, 64, rules)
        took_s = time.perf_counter() - begun
        used_s = sum(processor_times().values()) - before
        chain = load_store(store)
        decisions = [each.load for each in chain.commits() if not each.flush]
        assert all((each is not None) == (rules is not None) for each in decisions)
        assert all(each is None or each.decision.share == 0 for each in decisions), "no overload"
        assert results(spark, store).count()
        return used_s, took_s


def interval(ratios: list[float]) -> tuple[float, float]:
    """Return an interval that holds the median with a probability of at least 95%."""
    n, ordered = len(ratios), sorted(ratios)
    outside, cut = 0.0, 0
    while outside + 2 * comb(n, cut) / 2**n <= 0.05:
        outside += 2 * comb(n, cut) / 2**n
        cut += 1
    assert cut, f"{n} pairs are too few for an interval"
    return ordered[cut - 1], ordered[-cut]

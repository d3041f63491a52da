"""Packs: many generated cases in one Spark job, told apart by a grouping column.

A failing pack names its failing cases; the smallest of them is shrunk without Spark, confirmed in
Spark as a job of its own, and stored as a counterexample.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.strategies import SearchStrategy
from pyspark.sql import SparkSession

from model.vocabulary import SlackConfig, Trace, Workload
from properties import strategies
from spark_impl.slack.system import run_workloads

T = TypeVar("T")


def collect(strategy: SearchStrategy[T], n: int, seed: int) -> list[T]:
    """``n`` examples of a strategy, the same ones for the same seed."""
    found: list[T] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=n,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(strategy)
    def draw(example: T) -> None:
        found.append(example)

    draw()
    return found[:n]


class Pack(NamedTuple):
    """Cases with one query."""

    config: SlackConfig
    cases: Mapping[str, Workload]


def pack(config: SlackConfig, n: int, seed: int) -> Pack:
    """``n`` generated streams for a query; a strategy that runs dry gives fewer."""
    drawn = collect(strategies.workloads(config), n, seed)
    named = {f"case-{number}": workload for number, workload in enumerate(drawn)}
    return Pack(config, {name: w.with_(name=name, seed=seed) for name, w in named.items()})


def run_in_spark(spark: SparkSession, cases: Mapping[str, Workload]) -> dict[str, Trace]:
    """All cases in one job; nothing is left behind."""
    with tempfile.TemporaryDirectory(prefix="straggler-pack-") as folder:
        return run_workloads(spark, cases, Path(folder))

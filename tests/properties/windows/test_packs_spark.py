"""Spark does what the models of ``slack`` and ``watermark`` do, on packs of drawn streams.

It does at night. By day ``properties/test_slack.py`` and ``properties/test_watermark.py`` compare
Spark's operators in process, and ``properties/test_promises.py`` asks Spark for exact answers.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from model.vocabulary import Fault, SlackConfig, WatermarkConfig, Workload
from model.vocabulary.windows import AGGREGATES
from properties import profiles, stream_packs
from properties.reached_cases import count_partial
from properties.stream_packs import StreamPack
from straggler.rooms import find_room
from tests.properties.slack.test_rules import assert_parts, queries_of, streams_of

SLACK, WATERMARK = find_room("slack"), find_room("watermark")
AT_ONCE = 4
"""Number of queries that run at the same time, because a query waits half of its time."""
FAULTS = (Fault("restart", 0), Fault("kill", 1))
SHAPES: Mapping[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "corrections": (
        {"corrections": True},
        ("calm arrivals", "stormy arrivals", "early answers", "late pairs", "corrections"),
    ),
    "a side output": (
        {"reading": "scaled", "aggregate": "median"},
        ("late pairs",),
    ),
    "operators upstream": (
        {"upstreams": 2, "insert_every_us": 500, "idle_after_us": 6_000},
        ("passings", "insertions", "late pairs"),
    ),
}
"""Settings of a pack of room ``watermark``, and the cases that it has to meet."""


@pytest.mark.long
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_every_rule_of_a_query_holds_in_spark(
    aggregate: str, seed: int, spark: SparkSession
) -> None:
    queries = queries_of(aggregate, seed)
    streams = [streams_of(query, seed + number) for number, query in enumerate(queries)]
    packs = [StreamPack(*each) for each in zip(queries, map(_named, streams), strict=True)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ran = pool.map(lambda pack: stream_packs.run_in_spark(spark, pack.cases), packs)
        traces = list(ran)
    parts = Counter[SlackConfig]()
    for query, pack, own in zip(queries, packs, traces, strict=True):
        broken = stream_packs.list_failing(SLACK, pack.cases, own)
        assert not broken, stream_packs.report(SLACK, pack, broken)
        parts[query] += sum(map(count_partial, own.values()))
    assert_parts(queries, parts)


def _named(streams: Sequence[Workload]) -> dict[str, Workload]:
    """Return streams by name, each with at most one cut: a micro-batch takes Spark a second."""
    return {
        f"case-{number}": case.with_(name=f"case-{number}", cuts=case.cuts[:1])
        for number, case in enumerate(streams)
    }


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_a_pack_equals_the_model_whatever_restarts_and_kills(
    shape: str, spark: SparkSession, seed: int
) -> None:
    settings, needed = SHAPES[shape]
    config = WatermarkConfig(9_000, 4_000, 9_000, k=5, tasks=2, gamma_us=9_000)
    chosen = stream_packs.draw_pack(replace(config, **settings), profiles.effort().cases, seed)
    cases = {n: w.with_(flush=True, faults=FAULTS) for n, w in chosen.cases.items()}
    batches = max(len(list(case.batches())) for case in cases.values())
    assert batches > 2, "undetermined: the faults would come after the end"
    traces = stream_packs.run_in_spark(spark, cases)
    broken = stream_packs.list_failing(WATERMARK, cases, traces)
    assert not broken, stream_packs.report(WATERMARK, chosen._replace(cases=cases), broken)
    guards = Counter[str]()
    for name, case in cases.items():
        guards.update(WATERMARK.check(case, traces[name]).guards)
    assert all(guards[each] for each in needed), f"undetermined: {guards}"

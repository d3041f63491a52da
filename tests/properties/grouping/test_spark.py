"""Promise 6 of docs/grouping.md, in Spark itself: senders and instances are tasks.

``properties/test_grouping.py`` has many more cases, without Spark.
"""

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from model.grouping.claims import judge
from model.vocabulary import Fault, Workload
from properties import profiles
from properties.hot_keys import WINDOW, skewed
from properties.on_spark import run_on_spark
from properties.stream_packs import collect
from spark_impl.grouping import make_system
from straggler.conformance.promises import count_cases
from straggler.strategies.grouping import cases
from tests.straggler.agreement import grouping_differences as differences

STATEFUL = ("tag", "dkg", "round-robin", "cg", "dag")
"""Policies whose senders carry something of their own from one micro-batch to the next.

``properties/test_grouping.py`` has them all, in process."""

DRAWN = profiles.choose(12, nightly=100)
"""Number of drawn streams. So few hold no heavy keys, which the other tests have."""
NEEDED = (
    "single instances",
    "several senders",
    "latencies",
    "redeliveries",
    "rejected arrivals",
    "keys at several instances",
)
CUTS = 2
"""Most cuts of a drawn stream, because each micro-batch takes Spark a second, however small."""


def draw_streams(number: int, seed: int) -> dict[str, Workload]:
    """Draw streams, each with a configuration of its own."""
    named = ((f"case-{n}", case) for n, case in enumerate(collect(cases(), number, seed)))
    return {name: case.with_(cuts=case.cuts[:CUTS], name=name) for name, case in named}


def test_drawn_streams_on_spark_are_spread_as_by_the_model(spark: SparkSession, seed: int) -> None:
    given = draw_streams(DRAWN, seed)
    traces = run_on_spark(spark, given, kills=0).traces
    found = Counter[str]()
    for name, case in given.items():
        assert not differences(case, traces[name]), name
        found.update({**count_cases(case, traces[name]), **judge(case, traces[name]).guards})
    for guard in NEEDED:
        assert found[guard], f"there were no {guard}"


@pytest.mark.parametrize("policy", profiles.first(STATEFUL, ci=3))
def test_spark_does_what_the_model_does(spark: SparkSession, seed: int, policy: str) -> None:
    whole = skewed(policy, seed)
    cuts = (WINDOW // 2, WINDOW, 2 * WINDOW)
    case = whole.with_(
        arrivals=whole.arrivals[: 2 * WINDOW + 40],
        config={**whole.config, "times_us": [[0, [1, 1, 2, 2, 5, 9, 9]], [2, [9] * 3 + [1] * 4]]},
        cuts=cuts,
        faults=(Fault("restart", 0), Fault("kill", 2)),
    )
    observed = make_system()(case)
    assert not differences(case, observed)
    guards = judge(case, observed).guards
    for guard in ("tuples of heavy keys", "rebalances that changed the table", "rejected arrivals"):
        assert guards[guard], f"there were no {guard}"

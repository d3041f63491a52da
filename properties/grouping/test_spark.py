"""Promise 6 of docs/grouping.md, in Spark itself: senders and instances are tasks.

``test_agreement.py`` has many more cases, without Spark.
"""

import pytest
from pyspark.sql import SparkSession

from model.grouping.claims import judge
from model.vocabulary import Fault
from spark_impl.grouping import make_system
from tests.harness import profiles
from tests.harness.hot_keys import WINDOW, skewed
from tests.properties.agreement import grouping_differences as differences

STATEFUL = ("tag", "dkg", "round-robin", "cg", "dag")
"""Policies whose senders carry something of their own from one micro-batch to the next.

``test_agreement.py`` has them all, in process."""


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

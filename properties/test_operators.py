"""Spark's own operators in simulated time agree with the model on every drawn cluster.

They run in process, over links that lose, repeat and delay messages, on workers of unequal speed
that fail and resume from the contents of Spark's stores: thousands of clusters without a JVM. A
failing cluster is shrunk and described. ``test_promises.py`` does the same with real Spark.
"""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from properties import profiles, stream_packs
from properties.operators.timed import OPERATORS, report

RUNS_FOR_GUARDS = 6
"""Most extra runs, of 50 clusters each, if the clusters of the property lacked some case."""
ALWAYS = ("crashes with state", "messages sent again", "shed arrivals")
NEEDED = {
    "slack": ("tuples served again", "late pairs", "rejected arrivals"),
    "watermark": ("tuples served again", "late pairs", "rejected arrivals"),
    "join": (
        "epochs redone",
        "copies met",
        "messages that came again",
        "rejected arrivals",
        "changes of the number of workers",
    ),
    "grouping": ("tuples served again", "rebalances", "heavy keys"),
    "script": (
        "tuples served again",
        "results sent between workers",
        "notices",
        "late tuples",
    ),
}
"""Cases that must occur, by room."""


@pytest.fixture(scope="module")
def seen() -> Mapping[str, Counter[str]]:
    """Count the clusters, by room, in which Spark's operator met each case."""
    return {name: Counter() for name in OPERATORS}


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", OPERATORS)
@settings(
    max_examples=profiles.simulated(),
    # Hypothesis need not shrink: a cluster that fails is made smaller as a plan.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    report_multiple_bugs=False,
)
@given(data=st.data())
def test_an_operator_does_what_the_model_does(
    name: str, seen: Mapping[str, Counter[str]], data: st.DataObject
) -> None:
    operator = OPERATORS[name]
    drawn = data.draw(operator.drawn)
    if operator.broken(drawn, seen[name]):
        pytest.fail(report(operator, drawn), pytrace=False)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_drawn_clusters_include_every_interesting_one(
    name: str, seen: Mapping[str, Counter[str]], seed: int
) -> None:
    operator, clusters = OPERATORS[name], seen[name]
    for run in range(RUNS_FOR_GUARDS):
        if clusters.keys() >= {*ALWAYS, *NEEDED[name]}:
            break
        for drawn in stream_packs.collect(operator.drawn, stream_packs.RUN, seed + run):
            clusters.update(operator.reached(operator.run(drawn)))
    missing = [case for case in (*ALWAYS, *NEEDED[name]) if not clusters[case]]
    assert not missing, f"undetermined: of {dict(clusters)} there were no {', '.join(missing)}"

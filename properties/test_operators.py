"""Spark's own operators in simulated time agree with the model on every drawn cluster.

The operators run in process, over links that lose, repeat and delay messages, on workers of unequal
speed that fail and resume from the contents of Spark's stores: thousands of clusters without a JVM.
A failing cluster is shrunk and described. ``test_promises.py`` does the same with real Spark.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.promised import Reached, promised
from properties.reached_cases import WIDE
from properties.timed_operators import OPERATORS, report
from straggler.strategies.clusters import REGIONS
from straggler.strategies.troubled import Drawn, all_of

ALWAYS = ("crashes with state", "messages sent again", "shed arrivals")
WINDOWED = (*ALWAYS, *WIDE, "tuples served again", "late pairs", "rejected arrivals")
EXAMPLES = 4
"""Number of times that clusters of all regions are drawn."""


def in_all_regions(room: str) -> st.SearchStrategy[Sequence[Drawn]]:
    """Draw a cluster in each region."""
    return all_of(REGIONS, OPERATORS[room].drawn_in)


def assert_like_the_model(room: str, clusters: Sequence[Drawn], reached: Reached) -> None:
    """Assert that Spark's operator does what the model does, on each cluster."""
    for drawn in clusters:
        if OPERATORS[room].broken(drawn, reached.add):
            pytest.fail(report(OPERATORS[room], drawn), pytrace=False)


@promised(*WINDOWED, examples=EXAMPLES)
@given(clusters=in_all_regions("slack"))
def test_a_slack_operator_does_what_the_model_does(
    reached: Reached, clusters: Sequence[Drawn]
) -> None:
    assert_like_the_model("slack", clusters, reached)


@promised(*WINDOWED, examples=EXAMPLES)
@given(clusters=in_all_regions("watermark"))
def test_a_watermark_operator_does_what_the_model_does(
    reached: Reached, clusters: Sequence[Drawn]
) -> None:
    assert_like_the_model("watermark", clusters, reached)


@promised(
    *ALWAYS,
    "epochs redone",
    "copies met",
    "messages that came again",
    "rejected arrivals",
    "changes of the number of workers",
    examples=EXAMPLES,
)
@given(clusters=in_all_regions("join"))
def test_a_chain_does_what_the_model_does(reached: Reached, clusters: Sequence[Drawn]) -> None:
    assert_like_the_model("join", clusters, reached)


@promised(*ALWAYS, "tuples served again", "rebalances", "heavy keys", examples=EXAMPLES)
@given(clusters=in_all_regions("grouping"))
def test_routers_do_what_the_model_does(reached: Reached, clusters: Sequence[Drawn]) -> None:
    assert_like_the_model("grouping", clusters, reached)


@promised(
    *ALWAYS,
    "tuples served again",
    "results sent between workers",
    "notices",
    "late tuples",
    examples=EXAMPLES,
)
@given(clusters=in_all_regions("script"))
def test_scripts_do_what_the_model_does(reached: Reached, clusters: Sequence[Drawn]) -> None:
    assert_like_the_model("script", clusters, reached)

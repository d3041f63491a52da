"""Spark's own operators in simulated time agree with the model on every drawn cluster.

The operators run in process, over links that lose, repeat and delay messages, on workers of unequal
speed that fail and resume from the contents of Spark's stores: thousands of clusters without a JVM.
A failing cluster is shown as Python. ``test_promises.py`` does the same with real Spark.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.promised import Reached, promised
from straggler.strategies.clusters import REGIONS
from straggler.strategies.scales import WIDE
from straggler.strategies.timed_cases import TimedCase
from straggler.strategies.timed_operators import OPERATORS, report
from straggler.strategies.troubled import all_of

ALWAYS = ("crashes with state", "messages sent again", "shed arrivals")
WINDOWED = (*WIDE, "tuples served again", "late pairs", "rejected arrivals")
OF_CHAINS = (
    *("epochs redone", "copies met", "messages that came again", "rejected arrivals"),
    "changes of the number of workers",
)
OF_ROUTERS = ("tuples served again", "rebalances", "heavy keys")
OF_SCRIPTS = ("tuples served again", "results sent between workers", "notices", "late tuples")
EXAMPLES = 4
"""Number of times that clusters of all regions are drawn."""


def in_all_regions(room: str) -> st.SearchStrategy[Sequence[TimedCase[Any]]]:
    """Draw a cluster in each region."""
    return all_of(REGIONS, OPERATORS[room].drawn_in)


def like_the_model(room: str, *needed: str) -> Callable[..., None]:
    """Return the property that Spark's operator of a room does what the model does.

    It needs these cases.
    """

    @promised(*ALWAYS, *needed, examples=EXAMPLES)
    @given(clusters=in_all_regions(room))
    def of_operator(reached: Reached, clusters: Sequence[TimedCase[Any]]) -> None:
        for drawn in clusters:
            if OPERATORS[room].broken(drawn, reached.add):
                pytest.fail(report(OPERATORS[room], drawn), pytrace=False)

    found: Callable[..., None] = of_operator
    return found


test_a_slack_operator_does_what_the_model_does = like_the_model("slack", *WINDOWED)
test_a_watermark_operator_does_what_the_model_does = like_the_model("watermark", *WINDOWED)
test_a_chain_does_what_the_model_does = like_the_model("join", *OF_CHAINS)
test_routers_do_what_the_model_does = like_the_model("grouping", *OF_ROUTERS)
test_scripts_do_what_the_model_does = like_the_model("script", *OF_SCRIPTS)

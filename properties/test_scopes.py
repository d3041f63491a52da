"""Every behaviour of a model in a small scope keeps every promise.

The number of states and transitions notices each change of what can happen. Larger scopes are
explored by ``straggler explore`` and in ``tests/model/test_scopes.py``.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.checking.explorer import explore as search
from model.grouping import scopes as grouping
from model.join.variants import explore as explore_join
from model.slack.scopes import explore as explore_slack
from model.watermark.scopes import explore as explore_watermark


def explore_grouping(scope: str) -> Any:
    """Explore all streams of four tuples in a scope."""
    small = replace(grouping.SCOPES[scope], tuples=4)
    return search(small.machine(), grouping.claims_of(small))


EXPLORE: Mapping[str, Callable[[str], Any]] = {
    "slack": explore_slack,
    "watermark": explore_watermark,
    "join": explore_join,
    "grouping": explore_grouping,
}
GOLDEN: Mapping[tuple[str, str], tuple[int, int]] = {
    ("slack", "small"): (12_765, 41_726),
    ("slack", "pd"): (1_568, 2_631),
    ("watermark", "scaled"): (625, 1_007),
    ("watermark", "redelivery"): (3_858, 7_499),
    ("join", "adding"): (569, 1_377),
    ("join", "removing"): (4_196, 12_701),
    ("join", "silent"): (645, 1_477),
    ("join", "cut"): (2_308, 5_313),
    ("join", "drop"): (4_508, 11_879),
    ("join", "elastic-drop"): (5_849, 15_999),
    ("grouping", "tag"): (907, 906),
}
"""States and transitions by room and scope.

Of ``grouping``: three keys, finite or not, one to four tuples, cut or not after each but the last.
"""


@pytest.mark.parametrize(("room", "scope"), GOLDEN)
def test_every_behaviour_of_a_small_scope_keeps_the_promises(room: str, scope: str) -> None:
    found = EXPLORE[room](scope)
    assert (found.unique_states, found.transitions, found.cut) == (*GOLDEN[room, scope], None)
    for verdict in found.verdicts:
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence)

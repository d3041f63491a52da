"""Every small stream: golden counts, no claim broken, planted bugs found where they are at home."""

from dataclasses import replace

import pytest

from model.checking.claims import Outcome
from model.checking.explorer import explore as search
from model.grouping import scopes
from model.grouping.scopes import HOMES, SCOPES, claims_of, explore
from model.grouping.variants import VARIANTS

FOUND = {
    "wrong_instance_charged": 3,
    "one_choice_twice": 1,
    "heavy_drawn": 4,
    "uniform_if_light": 3,
    "with_propagation": 5,
    "loads_go_on": 4,
    "last_of_equals": 1,
}
"""Actions of the shortest behaviours; other planted bugs take longer streams than a scope has."""


def streams(keys: int, tuples: int) -> int:
    """Count the streams: cut or not after every tuple but the last possible one."""
    length, found = 1, 1
    for _ in range(1, tuples):
        length *= 2 * keys
        found += length
    return found + length * keys


@pytest.mark.parametrize("name", sorted(set(SCOPES) - {"long"}))
def test_every_small_stream_keeps_every_promise(name: str) -> None:
    scope = replace(SCOPES[name], tuples=4)
    found = search(scope.machine(), claims_of(scope))
    assert found.unique_states == streams(3, 4) == 907
    for verdict in found.verdicts:
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence)


@pytest.mark.parametrize("name", sorted(FOUND))
def test_a_planted_bug_is_found_by_a_shortest_stream(name: str) -> None:
    promise = VARIANTS[name].promise
    found = explore(HOMES[name], name)
    assert len(found.paths[promise].steps) == FOUND[name]
    broken = [each for each in found.verdicts if each.claim == promise]
    assert broken[0].outcome is Outcome.BROKEN
    assert broken[0].witness[0] == "0. Initially nothing has arrived."


def test_streams_are_describe() -> None:
    assert scopes._describe(scopes.Stream("abA", (1, 3))) == "arrived have a | bA"
    assert scopes._action("A") == "A tuple of key a arrives, its value not finite"

"""Golden counts of the small scopes, and planted bugs in them."""

import pytest

from model.checking.claims import Outcome
from model.script.scopes import (
    DISORDERED,
    EVERYDAY,
    FEW,
    LETTERS,
    SCOPES,
    SCRIPTS,
    SILENT,
    explore,
)
from model.script.variants import VARIANTS

LONGER = ("mean_of_means",)
"""Variants whose bug needs three tuples."""
BY_DISORDER = ("late_ones_unseen", "one_cluster_for_all", "watermark_falls")
"""Variants whose bug needs an adaptive watermark: a fixed one has no clusters and cannot fall."""

BY_SILENCE = ("silence_ignored", "floor_taken_back", "silent_by_event_time", "unasked_unheard")
"""Variants whose bug needs a sensor that falls silent."""


def test_every_script_with_every_stream_of_up_to_two_tuples() -> None:
    found = explore("small")
    states = len(SCRIPTS) * (1 + len(LETTERS) + len(LETTERS) ** 2)
    assert (found.unique_states, found.depth, found.cut) == (states, 2, None)
    assert states == 2_279
    assert {verdict.outcome for verdict in found.verdicts} == {Outcome.HOLDS}


def test_a_watermark_by_disorder_with_every_stream_of_up_to_four_tuples() -> None:
    found = explore("disorder")
    states = len(FEW) * sum(len(DISORDERED) ** tuples for tuples in range(5))
    assert (found.unique_states, found.depth, found.cut) == (states, 4, None)
    assert states == 1_023
    assert {verdict.outcome for verdict in found.verdicts} == {Outcome.HOLDS}


def test_sensors_that_fall_silent_with_every_stream_of_up_to_four_tuples() -> None:
    found = explore("silent")
    states = len(FEW) * sum(len(SILENT) ** tuples for tuples in range(5))
    assert (found.unique_states, found.depth, found.cut) == (states, 4, None)
    assert states == 2_343
    assert {verdict.outcome for verdict in found.verdicts} == {Outcome.HOLDS}


@pytest.mark.parametrize("name", BY_SILENCE)
def test_a_mistake_about_silence_is_found(name: str) -> None:
    found = explore("silent", name)
    broken = [each for each in found.verdicts if each.outcome is Outcome.BROKEN]
    assert [each.claim for each in broken] == [VARIANTS[name].promise]
    assert len(broken[0].witness) <= 6, "it takes four tuples at most"


@pytest.mark.parametrize("name", BY_DISORDER)
def test_a_mistake_about_disorder_is_found(name: str) -> None:
    found = explore("disorder", name)
    broken = [each for each in found.verdicts if each.outcome is Outcome.BROKEN]
    assert [each.claim for each in broken] == [VARIANTS[name].promise]
    assert len(broken[0].witness) <= 6, "it takes four tuples at most"


@pytest.mark.parametrize("name", sorted(VARIANTS.keys() - {*BY_DISORDER, *BY_SILENCE}))
def test_a_mistake_is_found_in_the_small_scope(name: str) -> None:
    found = explore(EVERYDAY[0], name)
    broken = [each for each in found.verdicts if each.outcome is Outcome.BROKEN]
    if name in LONGER:
        assert not broken
        return
    assert [each.claim for each in broken] == [VARIANTS[name].promise]
    assert len(broken[0].witness) <= 4, "it takes two tuples at most"


def test_scopes_have_different_scripts() -> None:
    assert len(set(SCRIPTS)) == len(SCRIPTS) == 53
    assert set(EVERYDAY) < set(SCOPES)

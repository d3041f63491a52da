"""Every planted bug and literal reading of room ``join`` is found, by a shortest behaviour."""

import pytest

from model.checking.claims import Outcome
from model.checking.explorer import explore as search
from model.join.claims import judge
from model.join.run import run
from model.join.scopes import SCOPES, Scope, machine_of
from model.join.state_claims import (
    COMPLETE,
    COPIES,
    CROSSED,
    LOST,
    ONE_PLACE,
    STUCK,
    TWICE,
    claims_of,
)
from model.join.variants import PAPER, VARIANTS, explore, scope_of

SHORTEST = {
    "no_copy": (LOST, 5),
    "both_visible": (TWICE, 6),
    "deleted_early": (LOST, 6),
    "acknowledged_first": (LOST, 9),
    "acknowledged_later": (TWICE, 6),
    "channel_for_acks": (TWICE, 6),
    "no_numbers": (TWICE, 6),
    "seen_ignored": (TWICE, 6),
    "released_at_once": (LOST, 7),
    "seen_renewed": (LOST, 7),
    "blocking_send": (STUCK, 8),
    "balance_alone": (STUCK, 15),
    "local_timer": (LOST, 4),
    "source_watermark": (LOST, 5),
    "copies_dropped": (LOST, 9),
    "silent_merge": (LOST, 3),
    "halves": (TWICE, 8),
    "opened_at_once": (LOST, 5),
    "redirected_at_once": (LOST, 7),
    "end_ignored": (LOST, 8),
    "floor_within_an_epoch": (LOST, 6),
    "restored_alone": (TWICE, 9),
}


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_the_explorer_finds_a_shortest_behaviour(name: str) -> None:
    variant = VARIANTS[name]
    promise, length = SHORTEST[name]
    found = explore(variant.home, name)
    assert variant.promise == promise
    verdict = next(verdict for verdict in found.verdicts if verdict.claim == promise)
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.witness[0] == "0. Initially no pair came out."
    assert len(found.paths[promise].steps) == length


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_claims_on_a_trace_catch_every_variant_and_pass_the_reference(name: str) -> None:
    variant = VARIANTS[name]
    # A chain that is stuck owes pairs, which is all that can be seen in what came out of it.
    promise = LOST if variant.promise == STUCK else variant.promise
    found = judge(variant.example, variant.make_system()(variant.example)).verdicts
    assert promise in {v.claim for v in found if v.outcome is Outcome.BROKEN}
    right = judge(variant.example, run(variant.example)).verdicts
    assert not [verdict for verdict in right if verdict.outcome is not Outcome.HOLDS]


def broken(scope: Scope) -> set[str]:
    found = search(machine_of(scope), claims_of(scope), max_states=3_000)
    return {v.claim for v in found.verdicts if v.outcome is Outcome.BROKEN}


def test_acknowledgements_on_their_own_channel_lose_and_repeat_pairs() -> None:
    assert {TWICE, LOST} <= broken(scope_of("fifo", "channel_for_acks"))


@pytest.mark.parametrize(
    ("claim", "name"),
    [
        (ONE_PLACE, "restored_alone"),
        (COPIES, "deleted_early"),
        (CROSSED, "no_copy"),
        (COMPLETE, "silent_merge"),
    ],
)
def test_every_invariant_can_fail(claim: str, name: str) -> None:
    assert claim in broken(VARIANTS[name].scope)


def test_every_home_is_a_scope_and_names_agree() -> None:
    assert set(SHORTEST) == set(VARIANTS)
    for name, variant in VARIANTS.items():
        assert variant.name == name
        assert variant.home in SCOPES
    assert {v.name for v in VARIANTS.values() if v.source == PAPER} >= {"both_visible"}

"""Every claim of every room is broken by a planted bug of the model.

A claim judges a trace and does not know its producer. ``test_promises_spark.py`` plants bugs on
Spark, ``test_simulated_operators.py`` in what Spark's operators restore.
"""

from random import Random

import pytest

from model.checking.claims import Outcome
from model.checking.variants import AGREEMENT
from model.grouping import balance_claims
from model.grouping.rules import least
from model.join.state_claims import LOST, STUCK
from model.vocabulary import Event, GroupingConfig, Workload
from straggler.rooms import find_room, room_names
from tests.quality.claims import assert_breaks, broken, claims_of, reference, variants_of
from tests.quality.model_bugs import MODEL, STALE_FINALS
from tests.quality.planting import Planted


def is_variant_of(room: str, claim: str) -> bool:
    """Return whether a claim is the promise of its variant, which has a test of its own."""
    bug = MODEL[room][claim]
    return isinstance(bug, str) and variants_of(room)[bug].promise == claim


CASES = [
    (room, claim)
    for room, bugs in MODEL.items()
    for claim in bugs
    if not is_variant_of(room, claim)
]


@pytest.mark.parametrize("room", room_names())
def test_every_claim_has_a_planted_bug(room: str) -> None:
    assert set(MODEL[room]) == set(claims_of(room))


@pytest.mark.parametrize(("room", "claim"), CASES)
def test_a_bug_of_the_model_breaks_its_claim(room: str, claim: str) -> None:
    bug = MODEL[room][claim]
    if isinstance(bug, Planted):
        assert_breaks(room, claim, reference(room), bug)
        return
    variant = variants_of(room)[bug]
    assert claim in broken(room, variant.example, variant.make_system()(variant.example))


@pytest.mark.parametrize("room", ["slack", "watermark"])
def test_a_final_answer_that_is_not_the_latest_breaks_a_claim(room: str) -> None:
    assert_breaks(room, "exact means all rows", reference(room), STALE_FINALS)


@pytest.mark.parametrize(
    ("room", "name"),
    [(room, name) for room in room_names() for name in variants_of(room)],
)
def test_a_variant_breaks_its_promise_and_the_right_rules_keep_it(room: str, name: str) -> None:
    variant = variants_of(room)[name]
    example = variant.example
    right, wrong = reference(room)(example), variant.make_system()(example)
    assert broken(room, example, right) == set()
    if variant.promise == AGREEMENT:  # no claim notices it
        of_room = find_room(room)
        assert of_room.compare(example, right, wrong, of_room.step_types, ()).sentences
        return
    # A chain that is stuck owes pairs, which is all that can be seen in what came out of it.
    promise = LOST if variant.promise == STUCK else variant.promise
    assert promise in broken(room, example, wrong)


def test_a_router_that_takes_the_first_candidate_is_not_balanced() -> None:
    """Balance is a bound for independent, equally likely keys, and no claim about a trace."""
    weights = {f"k{number}": 1 for number in range(997)}
    keys = Random(1).choices([*weights], k=12_000)
    config = GroupingConfig(8, "tag", ((0, (1,) * 4 + (10,) * 4),), window_tuples=len(keys))
    arrivals = tuple([Event(seq, seq, key, 100, 1.0, 100) for seq, key in enumerate(keys)])
    case, run = Workload("grouping", arrivals, config.to_json()), reference("grouping")
    right = run(case)
    with Planted(least, lambda _right, candidates, _loads: candidates[0]).in_force():
        wrong = run(case)
    for trace, outcome in ((right, Outcome.HOLDS), (wrong, Outcome.BROKEN)):
        assert balance_claims.check(case, trace, weights, delta=1e-9).outcome is outcome

"""A wrong change in one place of a right trace breaks the claim that must notice it, in a sentence.

The changes are tables of chains and routers; other rooms draw theirs, in ``test_claims.py`` of
``tests/properties``.
"""

from typing import Any

import pytest

from model.checking.claims import Outcome, Verdict
from model.grouping.claims import ANSWERS, FEW, HEAVY, PARTIALS
from model.join.claims import LIMITED
from model.join.run import run as run_chain
from model.join.state_claims import LOST
from model.vocabulary import Trace, Workload
from model.vocabulary.grouping import Answer, Heavy, Partial
from straggler.rooms import find_room
from tests.quality import grouping_changes, join_changes
from tests.quality.changes import Changed, at
from tests.quality.join_changes import Asks, decided, that_ask, within

CHANGES = {"join": join_changes.CHANGES, "grouping": grouping_changes.CHANGES}


def right(workload: Workload) -> Trace:
    if workload.room == "join":
        return run_chain(workload)
    return find_room(workload.room).reference()(workload)


def judged(workload: Workload, trace: Trace) -> dict[str, Verdict]:
    return {each.claim: each for each in find_room(workload.room).check(workload, trace).verdicts}


def broken(workload: Workload, trace: Trace) -> set[str]:
    verdicts = judged(workload, trace).values()
    return {each.claim for each in verdicts if each.outcome is Outcome.BROKEN}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(change, id=f"{room} {number}: {change.claim}")
        for room, changes in CHANGES.items()
        for number, change in enumerate(changes)
    ],
)
def test_a_change_is_noticed(change: Changed) -> None:
    workload, trace = change.workload, right(change.workload)
    before = judged(workload, trace)
    assert Outcome.BROKEN not in {each.outcome for each in before.values()}
    assert before[change.claim].outcome is Outcome.HOLDS
    found = judged(workload, change.trace(trace))[change.claim]
    assert found.outcome is Outcome.BROKEN
    assert change.said in found.sentence


# ----------------------------------------------------------------------------------------- chains


@pytest.mark.parametrize("decisions", join_changes.DECIDED)
def test_other_decisions_than_those_of_the_run_are_found(decisions: Any) -> None:
    assert broken(join_changes.RESIZING, decided(decisions)) >= join_changes.BOTH


@pytest.mark.parametrize(
    ("asks", "claim", "number"),
    [
        # An added query also pairs older tuples.
        (lambda first, last, one, other: within(0, last, one, other), LIMITED, 3),
        # Only the epoch of the later tuple is checked, or only that of the earlier one.
        (lambda first, last, _one, other: within(first, last, other), LIMITED, 2),
        (lambda first, last, one, _other: within(first, last, one), LIMITED, 2),
        # A query leaves out its first epoch.
        (lambda first, last, *epochs: within(first + 1, last, *epochs), LOST, 5),
    ],
)
def test_a_query_that_pairs_tuples_of_other_epochs_is_found(
    asks: Asks, claim: str, number: int
) -> None:
    case = join_changes.LIMITED_CASE
    assert broken(case, that_ask(within)) == set()
    assert broken(case, that_ask(asks)) == {claim}
    found = judged(case, that_ask(asks))[claim].sentence
    assert found.endswith(f"({number} counterexamples in all.)")


# ---------------------------------------------------------------------------------------- routers


@pytest.mark.parametrize("counted", [-1, 0, 10**15])
@pytest.mark.parametrize("policy", ["tag", "tag-literal", "d-choices", "dkg"])
def test_an_impossible_count_is_reported_and_stops_no_other_claim(
    policy: str, counted: int
) -> None:
    config = {**grouping_changes.CONFIG, "policy": policy, "draw_tuples": 1}
    case = grouping_changes.CASE.with_(config=config)
    change = Changed(case, Heavy, at(0, counted=counted), HEAVY)
    found = judged(case, change.trace(right(case)))[HEAVY]
    assert f"has count {counted}" in found.sentence


def test_too_many_candidates_in_all_are_found() -> None:
    case = grouping_changes.CASE.with_(
        config={**grouping_changes.CONFIG, "instances": 2, "times_us": []}
    )
    change = Changed(case, Heavy, at(0, candidates=(0, 1, 0, 1)), FEW)
    assert "keys have" in judged(case, change.trace(right(case)))[FEW].sentence


def test_a_sum_that_can_be_exact_has_to_be() -> None:
    case = grouping_changes.CASE
    large = case.with_(arrivals=tuple(e._replace(value=float(1 << 36)) for e in case.arrivals))
    tenths = case.with_(arrivals=tuple(e._replace(value=0.1) for e in case.arrivals))
    for word, claim in (
        (Answer, ANSWERS),
        (Partial, PARTIALS),
    ):
        change = Changed(
            large, word, lambda steps: [s._replace(total=s.total + 1) for s in steps], claim
        )
        assert claim in broken(large, change.trace(right(large)))
        # A tenth has no exact sums: there a rounding is no mistake.
        rounded = change._replace(
            change=lambda steps: [s._replace(total=s.total * (1 + 2**-50)) for s in steps]
        )
        assert not broken(tenths, rounded.trace(right(tenths)))

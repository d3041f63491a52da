"""A wrong change in one place of a right trace breaks the claim that must notice it, in a sentence.

The changes are tables, a module a room; further down are examples of what claims must let pass.
"""

from random import Random
from typing import Any

import pytest

from model.checking.claims import Outcome, Verdict
from model.grouping import balance
from model.grouping.claims import ANSWERS, FEW, HEAVY, PARTIALS
from model.join.claims import LIMITED
from model.join.run import run as run_chain
from model.join.state_claims import LOST
from model.slack.variants import VARIANTS
from model.vocabulary import Event, Trace, Workload
from model.vocabulary.grouping import Answer, Heavy, Partial
from model.vocabulary.slack import Judged
from model.vocabulary.watermark import Clock
from model.vocabulary.windows import Correlation, Final
from straggler.rooms import find_room
from tests.quality import (
    grouping_changes,
    join_changes,
    script_changes,
    slack_changes,
    watermark_changes,
)
from tests.quality.changes import Changed, all_with, at
from tests.quality.join_changes import Asks, decided, that_ask, within

CHANGES = {
    "slack": slack_changes.CHANGES,
    "watermark": watermark_changes.CHANGES,
    "join": join_changes.CHANGES,
    "grouping": grouping_changes.CHANGES,
    "script": script_changes.CHANGES,
}


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


# ---------------------------------------------------------------------------------------- windows

RULES: dict[str, dict[str, Any]] = {
    "a share": {"lambda_thr": 0.7},
    "count": {"aggregate": "count", "eps": 0.2},
    "median": {"aggregate": "median"},
    "quantile": {"aggregate": "quantile", "q": 0.9},
    "median against an adversary": {"aggregate": "median", "sampling": "adversarial"},
    "sum against an adversary": {"sampling": "adversarial"},
    "average against an adversary": {"aggregate": "avg", "sampling": "adversarial"},
    "normal sum, cv given": {"cv": 0.5},
    "normal sum, cv estimated": {},
    "normal average, cv estimated": {"aggregate": "avg"},
    "rigorous sum": {"method": "rigorous"},
    "rigorous average": {"aggregate": "avg", "method": "rigorous"},
    "permuted sum": {"method": "permutation"},
}


def disordered(seed: int = 0, **settings: Any) -> Workload:
    """Return windows of twenty tuples; a third of the tuples are delayed by up to half a window."""
    random = Random(seed)
    sent = sorted(
        (n + (random.randrange(10) if random.random() < 0.3 else 0), n) for n in range(100)
    )
    arrivals = tuple(
        Event(seq, seq, "a", event_time_us, float(random.randrange(40, 80)), arrival_us)
        for seq, (arrival_us, event_time_us) in enumerate(sent)
    )
    config = {"size_us": 20, "slide_us": 20, "eps": 0.3, "delta": 0.4, **settings}
    return Workload("slack", arrivals, config, cuts=tuple(range(10, 100, 10)))


@pytest.mark.parametrize("rule", RULES)
def test_one_required_tuple_more_or_less_is_noticed(rule: str) -> None:
    case, claim = disordered(**RULES[rule]), slack_changes.COVERAGE
    trace = right(case)
    assert judged(case, trace)[claim].outcome is Outcome.HOLDS
    changed = 0
    for position, step in enumerate(trace.of(Judged)):
        for n_req in (step.n_req - 1, step.n_req + 1):
            if 0 <= n_req <= step.n_rcv + step.n_late:
                change = Changed(case, Judged, at(position, n_req=n_req), claim)
                assert claim in broken(case, change.trace(trace)), (step, n_req)
                changed += 1
    assert changed > len(trace.of(Judged))


@pytest.mark.parametrize(
    ("name", "settings"),
    [("smaller_root", {"eps": 0.1}), ("normal_quantile", {"aggregate": "quantile", "q": 0.95})],
)
def test_a_wrong_formula_is_noticed_in_any_stream(name: str, settings: dict[str, Any]) -> None:
    for seed in range(5):
        case = disordered(seed, **settings)
        found = judged(case, VARIANTS[name].make_system()(case))[slack_changes.COVERAGE]
        assert found.outcome is Outcome.BROKEN
        assert "that is not enough" in found.sentence


def test_the_witness_says_what_was_answered_and_what_was_right() -> None:
    change = slack_changes.CHANGES[0]
    found = judged(change.workload, change.trace(right(change.workload)))[change.claim]
    assert found.witness == (
        "Its 1 distinct tuples: #2 at 12 with 4 (batch 0).",
        "The answer was 9 from 1 tuples (revision 1).",
        "Right is 4 from 1 tuples.",
        "Late for it: #2 in batch 0; cleared: #2.",
    )


def test_the_smallest_counterexample_is_shown_and_all_are_counted() -> None:
    case = slack_changes.STREAM
    change = Changed(case, Final, all_with(value=0.0), slack_changes.EXACT)
    found = judged(case, change.trace(right(case)))[change.claim]
    assert found.sentence.endswith("is wrong. (7 counterexamples in all.)")
    assert found.witness[0].startswith("Its 1 distinct tuples")


def test_sums_of_other_values_are_compared_with_a_tolerance() -> None:
    stream = slack_changes.STREAM
    thirds = stream.with_(arrivals=tuple(e._replace(value=e.value / 3) for e in stream.arrivals))
    trace = right(thirds)
    for factor, expected in ((1 + 1e-12, False), (1 + 1e-6, True)):
        value = trace.of(Final)[0].value * factor
        change = Changed(thirds, Final, at(0, value=value), slack_changes.EXACT)
        assert (change.claim in broken(thirds, change.trace(trace))) is expected


@pytest.mark.parametrize(
    ("case", "word", "claim"),
    [
        (slack_changes.TUMBLING, Correlation, slack_changes.COMPARED),
        (watermark_changes.CASE, Clock, "watermark never decreases"),
    ],
)
def test_without_the_steps_that_it_needs_a_claim_is_undetermined(
    case: Workload, word: type, claim: str
) -> None:
    without = Trace("silent", [step for step in right(case).steps() if type(step) is not word])
    assert judged(case, without)[claim].outcome is Outcome.UNDETERMINED


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


def test_imbalance_hides_what_rho_shows() -> None:
    # The fast instance gets nothing: by I that is a third too much, by the clock 3.3 times.
    counts, times_us = [0, 100, 100, 100], [1, 10, 10, 10]
    assert balance.imbalance(counts, times_us) == pytest.approx(1 / 3)
    assert balance.rho(counts, times_us) == pytest.approx(10 / 3)

"""A right trace, changed by hand in one place: the claim that must notice does, in a sentence."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.grouping import balance, balance_claims, run
from model.grouping.claims import (
    ANSWERS,
    CANDIDATE,
    CLAIMS,
    FEW,
    HEAVY,
    LEAST,
    ONCE,
    PARTIALS,
    REJECTIONS,
    judge,
)
from model.vocabulary import Event, Step, Trace, Workload
from model.vocabulary.grouping import Answer, Heavy, Partial, Rejected, Route
from model.vocabulary.settings import PlainData

KEYS = "aaaaab" + "aaaabc" + "aad"
VALUES = (1.0, 2.0, 2.0, 4.0, 8.0, 1.0, 3.0, 3.0, 5.0, 6.0, 2.0, float("nan"), 1.0, 7.0, 9.0)
ARRIVALS = tuple(
    Event(seq, seq, key, 100, value, 100)
    for seq, (key, value) in enumerate(zip(KEYS, VALUES, strict=True))
)
CONFIG: dict[str, PlainData] = {"instances": 3, "window_tuples": 6, "times_us": [[0, [1, 1, 4]]]}
CASE = Workload("grouping", ARRIVALS, CONFIG, (6, 12))
SENDERS = CASE.with_(config={**CONFIG, "senders": 2})
PKG = CASE.with_(config={**CONFIG, "policy": "pkg"})
TURNS = CASE.with_(config={**CONFIG, "policy": "round-robin"})

Change = Callable[[list[Any]], Iterable[Any]]
"""A function from the steps of one kind to their replacement."""


def changed(workload: Workload, word: type, change: Change) -> Trace:
    trace = run(workload)
    others: list[Step] = [step for step in trace.steps() if type(step) is not word]
    return Trace("changed", [*others, *change(list(trace.of(word)))])


def broken(workload: Workload, trace: Trace) -> dict[str, str]:
    verdicts = judge(workload, trace).verdicts
    return {v.claim: v.sentence for v in verdicts if v.outcome is Outcome.BROKEN}


def at(position: int, **fields: Any) -> Change:
    """Change fields of one step."""
    return lambda steps: [
        step._replace(**fields) if n == position % len(steps) else step
        for n, step in enumerate(steps)
    ]


def without(position: int) -> Change:
    return lambda steps: [step for n, step in enumerate(steps) if n != position % len(steps)]


def extra(step: Step) -> Change:
    return lambda steps: [*steps, step]


def elsewhere(position: int, ahead: int = 1) -> Change:
    """Send one tuple to another instance."""
    return lambda steps: [
        step._replace(instance=(step.instance + ahead) % 3) if n == position else step
        for n, step in enumerate(steps)
    ]


CHANGES: dict[str, tuple[Workload, type, Change, str, str]] = {
    "a route lost": (CASE, Route, without(0), ONCE, "Arrival 0 (key 'a') went to 0 instances."),
    "a route twice": (CASE, Route, extra(Route(3, 0, 1)), ONCE, "went to 2 instances."),
    "a route nowhere": (CASE, Route, at(2, instance=3), ONCE, "went to unknown instance 3."),
    "another sender": (SENDERS, Route, at(2, sender=1), ONCE, "it came to sender 0."),
    "an arrival made up": (CASE, Route, extra(Route(99, 0, 0)), ONCE, "Arrival 99 was routed"),
    "no candidate": (PKG, Route, elsewhere(5, ahead=2), CANDIDATE, "candidates of key 'b' are"),
    "out of turn": (TURNS, Route, elsewhere(5), CANDIDATE, "candidates of key 'b' are (2,)"),
    "not the least load": (PKG, Route, elsewhere(3), LEAST, "best of the candidates"),
    "a heavy key lost": (CASE, Heavy, without(0), HEAVY, "Key 'a' is not heavy in window 1, with"),
    "a heavy key twice": (
        CASE,
        Heavy,
        extra(Heavy(1, "a", 5, 0, 6, (0, 1))),
        HEAVY,
        "Window 1 has 3 heavy keys, 2 different ones.",
    ),
    "a key counted too few": (
        CASE,
        Heavy,
        at(0, counted=4),
        HEAVY,
        "Heavy key 'a' of window 1 has count 4 with error 0; its frequency is 5.",
    ),
    "a key counted too many": (CASE, Heavy, at(0, counted=6), HEAVY, "its frequency is 5"),
    "an error too large": (CASE, Heavy, at(0, error=1), HEAVY, "more than 6 / 30"),
    "another N": (CASE, Heavy, at(0, tuples=7), HEAVY, "was counted among 7 tuples"),
    "a key that is not heavy": (
        CASE,
        Heavy,
        extra(Heavy(1, "z", 0, 0, 6, (0, 1))),
        HEAVY,
        "has count 0 of 6, which is not heavy",
    ),
    "heavy in window 0": (
        CASE,
        Heavy,
        extra(Heavy(0, "a", 5, 0, 6, (0, 1, 2))),
        HEAVY,
        "Window 0 has heavy keys",
    ),
    "other candidates": (
        CASE,
        Heavy,
        at(0, candidates=(0, 2)),
        CANDIDATE,
        "Candidates of the heavy key 'a' in window 1 are (0, 2); the policy has",
    ),
    "a single candidate": (CASE, Heavy, at(0, candidates=(0,)), FEW, "only the candidates (0,)"),
    "a partial lost": (CASE, Partial, without(0), PARTIALS, "There is no single partial aggregate"),
    "a partial wrong": (CASE, Partial, at(0, total=0.5), PARTIALS, "is wrong; it got"),
    "a partial made up": (
        CASE,
        Partial,
        extra(Partial(2, 0, "z", 1, 1.0, 1.0, 1.0)),
        PARTIALS,
        "Instance 0 has a partial aggregate of key 'z' in window 2.",
    ),
    "an answer lost": (CASE, Answer, without(0), ANSWERS, "There is no single answer for key 'a'"),
    "an answer's total": (CASE, Answer, at(0, total=17.5), ANSWERS, "its values are 1, 2, 4, 8, 2"),
    "an answer's distinct": (CASE, Answer, at(0, distinct=5), ANSWERS, "is wrong"),
    "an answer's top": (CASE, Answer, at(0, top=(8.0, 4.0, 1.0)), ANSWERS, "is wrong"),
    "an answer made up": (
        CASE,
        Answer,
        extra(Answer(1, "c", 1, 1.0, 1.0, 1.0, 1, (1.0,))),
        ANSWERS,
        "There is an answer for key 'c' in window 1, which has no tuple.",
    ),
    "not rejected": (CASE, Rejected, without(0), REJECTIONS, "Arrival 11 is not rejected"),
    "rejected": (CASE, Rejected, extra(Rejected(3, "x")), REJECTIONS, "Arrival 3 is rejected: x."),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found(name: str) -> None:
    workload, word, change, claim, sentence = CHANGES[name]
    found = broken(workload, changed(workload, word, change))
    assert sentence in found[claim]


def test_every_claim_can_be_broken_and_the_right_traces_are_right() -> None:
    assert {claim for _, _, _, claim, _ in CHANGES.values()} == set(CLAIMS.guards)
    for workload in (CASE, SENDERS, PKG, TURNS):
        assert not broken(workload, run(workload))


@pytest.mark.parametrize("counted", [-1, 0, 10**15])
@pytest.mark.parametrize("policy", ["tag", "tag-literal", "d-choices", "dkg"])
def test_an_impossible_count_is_reported_and_stops_no_other_test(policy: str, counted: int) -> None:
    case = CASE.with_(config={**CONFIG, "policy": policy, "draw_tuples": 1})
    trace = changed(case, Heavy, at(0, counted=counted))
    assert f"has count {counted}" in broken(case, trace)[HEAVY]


def test_too_many_candidates_in_all_are_found() -> None:
    two = CASE.with_(config={**CONFIG, "instances": 2, "times_us": []})
    trace = changed(two, Heavy, at(0, candidates=(0, 1, 0, 1)))
    assert "keys have" in broken(two, trace)[FEW]


# --------------------------------------------------------------------------------------- balance

HOT = Workload(
    "grouping",
    tuple(Event(seq, seq, "a", 100, 1.0, 100) for seq in range(2_000)),
    {"instances": 4, "policy": "shuffle", "window_tuples": 9_999},
)


def test_more_work_than_the_bound_allows_is_found() -> None:
    trace = changed(HOT, Route, lambda steps: [step._replace(instance=0) for step in steps])
    upper, lower = balance_claims.check(HOT, trace, {"a": 1}, delta=1e-9)
    assert upper.outcome is Outcome.BROKEN
    assert "an instance has the work 2000; more than" in upper.sentence
    assert lower.outcome is Outcome.HOLDS


def test_less_work_than_candidates_allow_is_found() -> None:
    trace = changed(HOT, Route, lambda steps: steps[:1_000])
    upper, lower = balance_claims.check(HOT, trace, {"a": 1}, delta=1e-9)
    assert upper.outcome is Outcome.HOLDS
    assert lower.outcome is Outcome.BROKEN
    assert "500 is the least that candidates allow" in lower.sentence


def test_imbalance_hides_what_rho_shows() -> None:
    # The fast instance gets nothing: by I that is a third too much, by the clock 3.3 times.
    counts, times_us = [0, 100, 100, 100], [1, 10, 10, 10]
    assert balance.imbalance(counts, times_us) == pytest.approx(1 / 3)
    assert balance.rho(counts, times_us) == pytest.approx(10 / 3)


def test_a_bound_judged_by_imbalance_lets_bad_balance_pass() -> None:
    # Half of the instances are ten times slower, and get as many tuples as the others.
    arrivals = tuple(Event(seq, seq, str(seq % 99), 100, 1.0, 100) for seq in range(1_000))
    config = {"instances": 4, "times_us": [[0, [1, 1, 10, 10]]], "window_tuples": 9_999}
    case = Workload("grouping", arrivals, config)
    in_turns = changed(
        case, Route, lambda steps: [step._replace(instance=step.seq % 4) for step in steps]
    )
    weights = {str(number): 1 for number in range(99)}
    (found,) = balance_claims.balances(case, in_turns, weights, delta=1e-9)
    allowed = found.bound * balance.total_speed(found.times_us) / len(arrivals) - 1
    assert found.imbalance < 1 < 4 < found.rho
    assert found.rho > allowed
    assert found.imbalance < allowed


def test_a_sum_that_can_be_exact_has_to_be() -> None:
    large = tuple(event._replace(value=float(1 << 36)) for event in ARRIVALS)
    case = CASE.with_(arrivals=large)
    assert not broken(case, run(case))
    for word, claim in ((Answer, ANSWERS), (Partial, PARTIALS)):
        wrong = changed(case, word, lambda steps: [s._replace(total=s.total + 1) for s in steps])
        assert claim in broken(case, wrong)
        # A tenth has no exact sums: there a rounding is no mistake.
        tenths = case.with_(arrivals=tuple(event._replace(value=0.1) for event in large))
        right = changed(
            tenths, word, lambda steps: [s._replace(total=s.total * (1 + 2**-50)) for s in steps]
        )
        assert not broken(tenths, right)

"""A wrong route or heavy key breaks the claim that must notice it, in a sentence.

Drawn changes, of which every one is wrong, are in ``test_claims.py`` of ``tests/properties``.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest

from model.checking.claims import Outcome, Verdict
from model.grouping.claims import (
    ANSWERS,
    CANDIDATE,
    FEW,
    HEAVY,
    LEAST,
    PARTIALS,
)
from model.vocabulary import Event, SlackConfig, Step, Trace, Workload
from model.vocabulary.grouping import Answer, Heavy, Partial, Route
from model.vocabulary.settings import PlainData
from model.vocabulary.slack import Judged
from straggler.rooms import find_room
from tests.quality.claims import broken, reference

Change = Callable[[list[Any]], Iterable[Any]]
"""Function from the steps of one kind to the changed steps."""


class Changed(NamedTuple):
    """A change of the right trace of a workload, and the claim that must notice it."""

    workload: Workload
    word: type
    """Kind of step that changes."""
    change: Change
    claim: str
    said: str = ""
    """Part of the sentence in which the claim says so."""

    def trace(self) -> Trace:
        """Return the right trace with the change."""
        trace = reference(self.workload.room)(self.workload)
        others: list[Step] = [step for step in trace.steps() if type(step) is not self.word]
        return Trace("changed", [*others, *self.change(list(trace.of(self.word)))])


def at(position: int, **fields: Any) -> Change:
    """Return a change of some fields of one step."""
    return lambda steps: [
        step._replace(**fields) if n == position else step for n, step in enumerate(steps)
    ]


def extra(step: Step) -> Change:
    """Return a change that adds a step."""
    return lambda steps: [*steps, step]


def moved(position: int, ahead: int) -> Change:
    """Return a change that sends one tuple to another of three instances."""
    return lambda steps: [
        step._replace(instance=(step.instance + ahead) % 3) if n == position else step
        for n, step in enumerate(steps)
    ]


KEYS = "aaaaab" + "aaaabc" + "aad"
VALUES = (1.0, 2.0, 2.0, 4.0, 8.0, 1.0, 3.0, 3.0, 5.0, 6.0, 2.0, float("nan"), 1.0, 7.0, 9.0)
ARRIVALS = tuple(
    Event(seq, seq, key, 100, value, 100)
    for seq, (key, value) in enumerate(zip(KEYS, VALUES, strict=True))
)
CONFIG: dict[str, PlainData] = {"instances": 3, "window_tuples": 6, "times_us": [[0, [1, 1, 4]]]}
CASE = Workload("grouping", ARRIVALS, CONFIG, (6, 12))
PKG = CASE.with_(config={**CONFIG, "policy": "pkg"})
TURNS = CASE.with_(config={**CONFIG, "policy": "round-robin"})
TWO = CASE.with_(config={**CONFIG, "instances": 2, "times_us": []})


CHANGES: tuple[tuple[Any, ...], ...] = (
    (PKG, Route, moved(5, 2), CANDIDATE, "candidates of key 'b' are"),
    (TURNS, Route, moved(5, 1), CANDIDATE, "candidates of key 'b' are (2,)"),
    (PKG, Route, moved(3, 1), LEAST, "best of the candidates"),
    (CASE, Heavy, lambda steps: steps[1:], HEAVY, "Key 'a' is not heavy in window 1, with"),
    (CASE, Heavy, extra(Heavy(1, "a", 5, 0, 6, (0, 1))), HEAVY, "keys, 2 different ones"),
    (CASE, Heavy, at(0, counted=4), HEAVY, "1 has count 4 with error 0; its frequency is 5"),
    (CASE, Heavy, at(0, counted=6), HEAVY, "its frequency is 5"),
    (CASE, Heavy, at(0, error=1), HEAVY, "more than 6 / 30"),
    (CASE, Heavy, at(0, tuples=7), HEAVY, "was counted among 7 tuples"),
    (CASE, Heavy, extra(Heavy(1, "z", 0, 0, 6, (0, 1))), HEAVY, "0 of 6, which is not heavy"),
    (CASE, Heavy, extra(Heavy(0, "a", 5, 0, 6, (0, 1, 2))), HEAVY, "Window 0 has heavy keys"),
    (CASE, Heavy, at(0, candidates=(0, 2)), CANDIDATE, "heavy key 'a' in window 1 are (0, 2)"),
    (CASE, Heavy, at(0, candidates=(0,)), FEW, "only the candidates (0,)"),
    (TWO, Heavy, at(0, candidates=(0, 1, 0, 1)), FEW, "keys have"),
)


def judged(workload: Workload, trace: Trace) -> dict[str, Verdict]:
    return {each.claim: each for each in find_room(workload.room).check(workload, trace).verdicts}


@pytest.mark.parametrize("given", CHANGES)
def test_a_change_is_noticed(given: Any) -> None:
    change = Changed(*given)
    room, workload = change.workload.room, change.workload
    assert broken(room, workload, reference(room)(workload)) == set()
    found = judged(workload, change.trace())[change.claim]
    assert found.outcome is Outcome.BROKEN
    assert change.said in found.sentence


@pytest.mark.parametrize("counted", [-1, 0, 10**15])
@pytest.mark.parametrize("policy", ["tag", "tag-literal", "d-choices", "dkg"])
def test_an_impossible_count_is_reported_and_stops_no_other_claim(
    policy: str, counted: int
) -> None:
    case = CASE.with_(config={**CONFIG, "policy": policy, "draw_tuples": 1})
    trace = Changed(case, Heavy, at(0, counted=counted), HEAVY).trace()
    assert f"has count {counted}" in judged(case, trace)[HEAVY].sentence


@pytest.mark.parametrize(("word", "claim"), [(Answer, ANSWERS), (Partial, PARTIALS)])
def test_a_sum_that_can_be_exact_has_to_be(word: type, claim: str) -> None:
    def changed(value: float, change: Callable[[float], float]) -> set[str]:
        case = CASE.with_(arrivals=tuple(each._replace(value=value) for each in CASE.arrivals))
        wrong = Changed(
            case, word, lambda all_: [s._replace(total=change(s.total)) for s in all_], claim
        )
        return broken(case.room, case, wrong.trace())

    assert claim in changed(float(1 << 36), lambda total: total + 1)
    # A tenth has no exact sums: there a rounding is no mistake.
    assert not changed(0.1, lambda total: total * (1 + 2**-50))


@pytest.mark.parametrize("start_us", [0, 90])
@pytest.mark.parametrize("cv", [None, 0.5])
def test_a_miss_with_more_tuples_than_there_are_is_no_miss(start_us: int, cv: float | None) -> None:
    """Window 90 has no tuple. A longer L would show that the counts are wrong."""
    events = tuple([Event(n, n, "a", each, 1.0, n) for n, each in enumerate((1, 2, 30, 3, 60, 70))])
    config = SlackConfig(10, 10, gamma_us=1, max_slack_us=5, cv=cv).to_json()
    case = Workload("slack", events, config, flush=True)
    miss = Judged(0, 0, start_us, "", 0, 9, 0, 1, True, 0.5)
    trace = Trace("x", [*reference("slack")(case).steps(), miss])
    assert broken("slack", case, trace)
    if cv is not None:  # an estimated one is not known for all tuples
        sentence = judged(case, trace)["measured misses are true misses"].sentence
        assert "is judged a miss with 9 of 9" in sentence

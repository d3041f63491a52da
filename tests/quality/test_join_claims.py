"""Claims on traces of room ``join`` catch planted mistakes, and say so in sentences."""

from collections.abc import Callable

import pytest

from model.claims import Outcome
from model.join.claims import IN_TIME, REJECTIONS, WRONG, check
from model.join.run import run
from model.join.scope_claims import LOST, TWICE
from model.vocabulary import Event, JoinConfig, Step, Trace, Workload
from model.vocabulary.join import And, Match, Rejected

CONFIG = JoinConfig(2, (("all", And()),), lateness_us=1)
ARRIVALS = (
    Event(0, 0, "a", 10, 1.0, 0, "R"),
    Event(1, 0, "a", 12, 2.0, 1, "S"),
    Event(2, 1, "a", 20, 1.0, 2, "R"),
    Event(3, 1, "a", 20, 1.0, 3, "S"),
    Event(4, 2, "a", 12, 1.0, 4, "R"),
)
CASE = Workload("join", ARRIVALS, CONFIG.to_json(), (2,))
FOUND: list[Step] = [step for word in (Match, Rejected) for step in run(CASE).of(word)]


def without(word: type) -> list[Step]:
    return [step for step in FOUND if not isinstance(step, word)]


Mistake = Callable[[], list[Step]]


@pytest.mark.parametrize(
    ("mistake", "claim", "sentence"),
    [
        (
            lambda: [*FOUND, Match("all", 1, 1, 2)],
            TWICE,
            "r #1 (at 20, key 'a', value 1) with s #1 (at 20, key 'a', value 1) "
            "is a result of 'all'.",
        ),
        (
            lambda: without(Match),
            LOST,
            "r #0 (at 10, key 'a', value 1) with s #0 (at 12, key 'a', value 2) "
            "is a result of 'all'. (2 in all.)",
        ),
        (
            lambda: [*FOUND, Match("all", 2, 0, 2)],
            WRONG,
            "r #2 (not admitted) with s #0 (at 12, key 'a', value 2) is no result of 'all'.",
        ),
        (
            lambda: [*without(Match), Match("all", 0, 0, 0), Match("all", 1, 1, 0)],
            IN_TIME,
            "r #1 with s #1 came in epoch 0, possible are 1 to 2.",
        ),
        (
            lambda: without(Rejected),
            REJECTIONS,
            "R #2 (arrival 4) is not rejected: event time lies below the watermark of the stream.",
        ),
        (
            lambda: [*FOUND, Rejected("S", 1, 0, "x")],
            REJECTIONS,
            "S #0 (arrival 1) is rejected: x.",
        ),
    ],
)
def test_a_mistake_is_found(mistake: Mistake, claim: str, sentence: str) -> None:
    verdicts = {verdict.claim: verdict for verdict in check(CASE, Trace("x", mistake()))}
    assert verdicts[claim].outcome is Outcome.BROKEN
    assert verdicts[claim].sentence == sentence


def test_the_right_trace_is_right() -> None:
    assert all(v.outcome is Outcome.HOLDS for v in check(CASE, Trace("x", FOUND)))

"""A trace that was tampered with breaks the promise that must notice it."""

from collections.abc import Callable
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.vocabulary import Event, Step, Trace, Workload
from model.vocabulary.watermark import Clock, Inserted, Passing
from model.vocabulary.windows import Cleared, Final, Late, Result, Revision
from model.watermark import run
from model.watermark.claims import CLAIMS, check, judge

ARRIVALS = tuple(
    Event(seq, seq, "a", time_us, 1.0 if seq != 4 else float("inf"), 100 + seq)
    for seq, time_us in enumerate((3, 8, 14, 9, 50, 7, 15, 16, 29, 31, 12, 33))
)
CONFIG = {"size_us": 10, "slide_us": 5, "max_wait_us": 6, "k": 3}
CASE = Workload("watermark", ARRIVALS, {**CONFIG, "corrections": True, "gamma_us": 1}, (3, 6, 9))
RIGHT = run(CASE)
UPSTREAM = CASE.with_(
    arrivals=tuple(event._replace(key="ab"[event.seq % 2]) for event in ARRIVALS),
    config={**CONFIG, "upstreams": 2},
)
"""A case whose keys pass different operators upstream."""
SILENT = UPSTREAM.with_(arrivals=ARRIVALS, config={**CONFIG, "upstreams": 2, "idle_after_us": 3})
"""A case with an operator upstream that no key passes."""
REJECTING = CASE.with_(
    arrivals=(*ARRIVALS[:10], ARRIVALS[10]._replace(value=float("nan")), *ARRIVALS[11:])
)
"""A case whose windows lack a rejected row beside other tuples."""

Tampering = Callable[[Trace], list[Step]]


def but(word: type, at: int, **changes: Any) -> Tampering:
    """Return a change of some fields of one step; without fields, leave the step out."""

    def tamper(right: Trace) -> list[Step]:
        chosen: Any = right.of(word)[at]
        others = [step for step in right.steps() if step is not chosen]
        return [*others, chosen._replace(**changes)] if changes else others

    return tamper


TAMPERED = {
    "a clock is missing": (but(Clock, 3), "every accepted arrival has a clock"),
    "a rejected arrival has a clock": (
        but(Clock, 4, seq=4),
        "every accepted arrival has a clock",
    ),
    "a clock is in another batch": (but(Clock, 4, batch=2), "every accepted arrival has a clock"),
    "pairs are miscounted": (but(Clock, 5, inv=2), "pairs out of order are counted"),
    "a wait is too long": (but(Clock, 2, wait_us=1), "the wait is that of the reading"),
    "calm is waited for": (but(Clock, 2, wait_us=1, wm_us=13), "calm is not waited for"),
    "a watermark runs ahead": (
        but(Clock, 0, wm_us=4),
        "watermark within the wait of the largest event time",
    ),
    "a watermark falls": (but(Clock, 3, wm_us=12), "watermark never decreases"),
    "a watermark is not held": (but(Clock, 3, wm_us=15), "watermark follows the wait"),
    "an answer names another watermark": (
        but(Result, 1, wm_us=15),
        "windows close at the watermark",
    ),
    "a late pair is missing": (but(Late, 0), "each pair once"),
    "a pair is late for an open window": (but(Late, 0, start_us=10), "late means closed"),
    "an answer is missing": (but(Result, 0), "each pair once"),
    "a revision is missing": (but(Revision, 0), "wrong answers are pending"),
    "a pair is not cleared": (but(Cleared, 0), "nothing owed after the flush"),
    "a reversed cluster is waited for too shortly": (
        but(Clock, 4, wait_us=5),
        "reversal is waited for",
    ),
    "a calm cluster is waited for longer": (
        but(Clock, 2, wait_us=7),
        "the wait is monotone in the disorder",
    ),
    "a revision has another number": (but(Revision, 0, revision=2), "one writer"),
    "a pair waits for the flush": (but(Cleared, 0, batch=4), "corrections do not wait"),
    "an arrival does not pass upstream": (
        but(Passing, 0),
        "upstream clocks follow the disorder",
    ),
    "another watermark is inserted": (
        but(Inserted, 1, wm_us=14),
        "the least watermark is inserted",
    ),
    "an answer names another inserted watermark": (
        but(Result, 0, wm_us=14),
        "windows close at the inserted watermark",
    ),
    "a pair is late before the insertion": (
        but(Late, 0, key="b", source_id=3, event_time_us=9, batch=1),
        "late means that a watermark was inserted",
    ),
    "an idle operator holds a watermark back": (
        but(Inserted, 0),
        "an idle operator holds nothing back",
    ),
    "a final answer lacks a rejected row and is called exact": (
        lambda right: [
            step._replace(exact=True) if isinstance(step, Final) else step for step in right.steps()
        ],
        "exact means all rows",
    ),
    "a final answer is missing": (but(Final, 0), "eventual exactness"),
    "a final answer is another one": (but(Final, 0, n=7), "final answers are the latest"),
}


def outcomes(case: Workload, trace: Trace) -> dict[str, Outcome]:
    return {verdict.claim: verdict.outcome for verdict in check(case, trace)}


def test_the_right_trace_puts_nearly_every_claim_to_the_test() -> None:
    judgement = judge(CASE, RIGHT)
    assert {v.outcome for v in judgement.verdicts} == {Outcome.HOLDS}
    guards = ("calm arrivals", "stormy arrivals", "early answers", "late pairs", "corrections")
    assert all(judgement.guards[guard] for guard in guards)


@pytest.mark.parametrize("name", sorted(TAMPERED))
def test_tampered_traces_are_noticed(name: str) -> None:
    tamper, claim = TAMPERED[name]
    cases = (CASE, UPSTREAM, SILENT, REJECTING)
    case = next(each for each in cases if claim in outcomes(each, run(each)))
    right = run(case)
    assert outcomes(case, right)[claim] is Outcome.HOLDS
    assert outcomes(case, Trace("someone", tamper(right)))[claim] is Outcome.BROKEN


def test_tampering_reaches_every_claim() -> None:
    assert {claim for _, claim in TAMPERED.values()} == set(CLAIMS.guards)


NEEDED = {
    Clock: {
        "watermark within the wait of the largest event time",
        "watermark never decreases",
        "watermark follows the wait",
        "every accepted arrival has a clock",
        "pairs out of order are counted",
        "the wait is that of the reading",
        "the wait is monotone in the disorder",
        "calm is not waited for",
        "reversal is waited for",
        "windows close at the watermark",
        "late means closed",
        "corrections do not wait",
    },
    Result: {
        "windows close at the watermark",
        "each pair once",
        "one writer",
        "wrong answers are pending",
    },
}
"""Claims that cannot be judged without a kind of step."""


@pytest.mark.parametrize("word", sorted(NEEDED, key=repr))
def test_without_a_kind_of_step_its_claims_are_undetermined(word: type) -> None:
    trace = Trace("someone", [step for step in RIGHT.steps() if not isinstance(step, word)])
    found = outcomes(CASE, trace).items()
    undetermined = {name for name, outcome in found if outcome is Outcome.UNDETERMINED}
    assert undetermined == NEEDED[word]

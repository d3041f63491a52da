"""Verdicts, differences of traces, smallest counterexamples, missing evidence, accounts of rows."""

from math import nan
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checking.accounts import CountedAnswer, Place, settle
from model.checking.claims import Outcome, Verdict, combine
from model.checking.diff import compare
from model.checking.shrink import smallest
from model.slack import run
from model.slack.claims import CLAIMS, judge
from model.vocabulary import Event, Fault, Trace, Workload
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.windows import Cleared, Final, Late, Rejected, Result
from tests.model.arrivals import stream_of

# ----------------------------------------------------------------------------------------- verdicts


HOLDS = Verdict("a", Outcome.HOLDS, "a holds")
BROKEN = Verdict("b", Outcome.BROKEN, "b is broken", ("1. it breaks",))
UNDETERMINED = Verdict("c", Outcome.UNDETERMINED, "c was never seen")


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], Outcome.UNDETERMINED),
        ([HOLDS], Outcome.HOLDS),
        ([HOLDS, HOLDS], Outcome.HOLDS),
        ([HOLDS, UNDETERMINED], Outcome.UNDETERMINED),
        ([UNDETERMINED, BROKEN, HOLDS], Outcome.BROKEN),
    ],
)
def test_the_worst_outcome_wins(verdicts: list[Verdict], expected: Outcome) -> None:
    assert combine(verdicts) is expected
    assert combine(reversed(verdicts)) is expected


QUERY = {"size_us": 10, "slide_us": 5, "control": "conformal"}
STREAM = Workload("slack", stream_of((20, 1.0), (25, 2.0), (12, 4.0), (60, 8.0)), QUERY, cuts=(3,))
IN_ORDER = STREAM.with_(arrivals=stream_of((20, 1.0), (25, 2.0), (60, 8.0)), cuts=())


def outcomes(workload: Workload, trace: Trace) -> dict[str, Outcome]:
    return {verdict.claim: verdict.outcome for verdict in judge(workload, trace).verdicts}


def test_a_task_may_reject_all_that_it_gets() -> None:
    with_task = STREAM.with_(
        arrivals=stream_of((20, 1.0), (25, 2.0), (12, 4.0), (60, nan, "c")),
        config={**QUERY, "tasks": 8},
    )
    trace = run(with_task)
    (rejected,) = trace.of(Rejected)
    assert rejected.task not in {step.task for step in trace.of(Final)}
    assert Outcome.BROKEN not in outcomes(with_task, trace).values()


def test_a_right_answer_that_stays_provisional_is_not_exact_in_the_end() -> None:
    steps = [
        step._replace(exact=False) if isinstance(step, Final) else step
        for step in run(STREAM).steps()
    ]
    assert outcomes(STREAM, run(STREAM))["eventual exactness"] is Outcome.HOLDS
    assert outcomes(STREAM, Trace("foreign", steps))["eventual exactness"] is Outcome.BROKEN


def only(trace: Trace, *words: type) -> Trace:
    return Trace("foreign", [step for step in trace.steps() if type(step) in words])


def test_a_missing_kind_is_never_green() -> None:
    everything = {type(step) for step in run(STREAM).steps()}
    for word, claims in {
        Final: {"eventual exactness"},
        Late: {"wrong answers are pending", "each pair once"},
        Cleared: {"wrong answers are pending"},
        Result: {"wrong answers are pending", "each pair once"},
        Judged: {"the controller answers for its misses"},
        Progress: {"corrections do not wait"},
    }.items():
        found = outcomes(STREAM, only(run(STREAM), *(everything - {word})))
        assert {found[claim] for claim in claims} == {Outcome.UNDETERMINED}, word


def test_an_empty_trace_is_undetermined() -> None:
    assert combine(judge(STREAM, Trace("nothing", ())).verdicts) is Outcome.UNDETERMINED
    assert Outcome.HOLDS not in outcomes(STREAM, Trace("nothing", ())).values()


def test_many_traces_hold_if_the_interesting_case_occurred_in_one_of_them() -> None:
    both = CLAIMS.over_all([judge(IN_ORDER, run(IN_ORDER)), judge(STREAM, run(STREAM))])
    assert {verdict.outcome for verdict in both} == {Outcome.HOLDS}
    quiet = {v.claim: v for v in CLAIMS.over_all([judge(IN_ORDER, run(IN_ORDER))])}
    assert quiet["eventual exactness"].outcome is Outcome.UNDETERMINED
    assert "late pairs" in quiet["eventual exactness"].sentence


# -------------------------------------------------------------------------------------- differences


class Sale(NamedTuple):
    """A step with an identity of two fields."""

    shop: int
    item: str
    day: int
    price: float


class Closed(NamedTuple):
    """A step that is nothing but its identity."""

    shop: int


IDENTITY = {"sale": ("shop", "item")}
WORDS = (Sale, Closed)
SALES = (Sale(1, "a", 1, 2.5), Sale(1, "b", 1, 3.0), Sale(2, "a", 2, 4.0))
LEFT = Trace("left", (*SALES, Closed(3)))


def right(*sales: Sale) -> Trace:
    return Trace("right", (*sales, Closed(3)))


def test_missing_extra_and_different_steps_are_counted_and_described() -> None:
    observed = right(SALES[0], Sale(2, "a", 3, 4.5), Sale(9, "z", 1, 1.0))
    difference = compare(LEFT, observed, WORDS, identity=IDENTITY)
    sales, closed = difference.kinds
    assert (sales.compared, sales.missing, sales.extra, sales.different) == (2, 1, 1, 1)
    assert closed.mismatches == 0
    assert difference.sentences == (
        "sale shop 1, item 'b' is missing (day 1, price 3.0).",
        "sale shop 2, item 'a': day is 3, expected 2; price is 4.5, expected 4.0.",
        "sale shop 9, item 'z' was not expected (day 1, price 1.0).",
    )


def test_steps_of_one_identity_are_paired_in_order() -> None:
    second = Sale(1, "a", 2, 9.0)
    difference = compare(right(SALES[0], second), right(second), (Sale,), identity=IDENTITY)
    assert (difference.kinds[0].compared, difference.kinds[0].missing) == (1, 1)


def test_differences_of_cancelling_numbers_are_compared_by_the_numbers_magnitude() -> None:
    left, observed = (right(SALES[0]._replace(price=price)) for price in (0.1 + 0.2 - 0.3, 0.0))
    for rel_tol, scales, mismatches in (
        (1e-9, {}, 1),
        (None, {"price": 0.3}, 1),
        (1e-9, {"price": 0.3}, 0),
        (1e-9, {"day": 0.3}, 1),
        (1e-17, {"price": 0.3}, 1),
    ):
        found = compare(left, observed, (Sale,), identity=IDENTITY, rel_tol=rel_tol, scales=scales)
        assert found.mismatches == mismatches, (rel_tol, scales)


# ------------------------------------------------------------------------- smallest counterexamples


@given(
    st.sets(st.integers(0, 40), min_size=1),
    st.sets(st.integers(1, 40)),
    st.integers(0, 9),
    st.sets(st.integers(0, 9)),
)
def test_nothing_can_be_left_out_of_the_result(
    needed: set[int], cuts: set[int], faults: int, needed_faults: set[int]
) -> None:
    needed_faults = {n for n in needed_faults if n < faults}

    def fails(candidate: Workload) -> bool:
        found = {event.source_id for event in candidate.arrivals}
        return needed <= found and needed_faults <= {fault.at for fault in candidate.faults}

    arrivals = tuple(Event(seq, seq, "a", 100 + seq, 1.0, 200 + seq) for seq in range(41))
    planned = tuple(Fault("kill", n) for n in range(faults))
    large = Workload("any", arrivals, {}, tuple(sorted(cuts)), planned)
    small = smallest(large, fails, runs_max=5_000)
    assert [event.source_id for event in small.arrivals] == sorted(needed)
    assert [event.seq for event in small.arrivals] == list(range(len(needed)))
    assert small.cuts == ()
    assert {fault.at for fault in small.faults} == needed_faults
    assert len(small.faults) == len(needed_faults)


# ------------------------------------------------------------------------------- accounts of rows


ROWS = stream_of((20, 1.0), (25, 2.0), (12, 4.0))


def test_rows_in_no_place_and_in_several_are_named() -> None:
    found = settle(ROWS, [(0, Place.LATE), (0, Place.REFUSED), (2, Place.SHED), (7, Place.LATE)])
    assert found.against == [
        "Row 7 is late, but was not handed in.",
        "Row 0 (#0, key 'a') is late and refused.",
        "Row 1 (#1, key 'a') is in no place.",
    ]
    assert found.verdict().sentence.startswith("Accounted for: 1 of 3. Row 7 is late")


def test_a_row_that_several_answers_lack_is_lost_once() -> None:
    answers = [CountedAnswer("a", (0, 1), 1), CountedAnswer("b", (1, 2), 1)]
    found = settle(ROWS, [(seq, Place.ANSWERED) for seq in range(3)], answers)
    assert found.counts == {Place.ANSWERED: 2}
    assert found.against[0] == "The answer of a counts 1 rows, and should count 2: 0, 1."

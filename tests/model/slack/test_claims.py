"""Claims with missing evidence, claims that do not apply, and claims over many traces."""

from model.checking.claims import Judgement, Outcome, Verdict, combine
from model.slack import run
from model.slack.claims import CLAIMS, check, judge, over_all
from model.vocabulary import Trace, Workload
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.windows import Cleared, Correction, Final, Late, Rejected, Result, Revision
from tests.model.slack.strategies import stream_of

CONFIG = {"size_us": 10, "slide_us": 5, "control": "conformal", "cv": 0.5}
STREAM = Workload("slack", stream_of((20, 1.0), (25, 2.0), (12, 4.0), (60, 8.0)), CONFIG, cuts=(3,))
IN_ORDER = STREAM.with_(arrivals=stream_of((20, 1.0), (25, 2.0), (60, 8.0)), cuts=())
FOREIGN = (Result, Late, Revision, Cleared, Final)


def outcomes(workload: Workload, trace: Trace) -> dict[str, Outcome]:
    return {verdict.claim: verdict.outcome for verdict in check(workload, trace)}


def only(trace: Trace, *words: type) -> Trace:
    return Trace("foreign", [step for step in trace.steps() if type(step) in words])


def test_the_reference_keeps_every_promise() -> None:
    assert combine(check(STREAM, run(STREAM))) is Outcome.HOLDS
    assert combine(check(IN_ORDER, run(IN_ORDER))) is Outcome.HOLDS


def test_a_foreign_trace_is_judged_by_what_it_has() -> None:
    found = outcomes(STREAM, only(run(STREAM), *FOREIGN))
    assert {claim for claim, outcome in found.items() if outcome is Outcome.HOLDS} == {
        "eventual exactness",
        "nothing owed after the flush",
        "wrong answers are pending",
        "each pair once",
        "one writer",
        "final answers are the latest",
        "slack within 0 and the largest delay",
        "what is late came later than the slack",
    }
    assert Outcome.BROKEN not in found.values()


def test_a_missing_kind_is_never_green() -> None:
    everything = {type(step) for step in run(STREAM).steps()}
    for word, claims in {
        Final: {"eventual exactness", "final answers are the latest"},
        Late: {"nothing owed after the flush", "wrong answers are pending", "each pair once"},
        Cleared: {"nothing owed after the flush", "wrong answers are pending"},
        Result: {"wrong answers are pending", "each pair once", "one writer"},
        Judged: {"judgements measure what was recorded", "misses within the conformal bound"},
        Progress: {"watermark never decreases", "corrections do not wait"},
    }.items():
        found = outcomes(STREAM, only(run(STREAM), *(everything - {word})))
        assert {found[claim] for claim in claims} == {Outcome.UNDETERMINED}, word


def test_an_empty_trace_is_undetermined() -> None:
    assert combine(check(STREAM, Trace("nothing", ()))) is Outcome.UNDETERMINED
    assert Outcome.HOLDS not in outcomes(STREAM, Trace("nothing", ())).values()


def test_late_pairs_need_not_be_recorded_where_nothing_was_late() -> None:
    found = outcomes(IN_ORDER, run(IN_ORDER))
    assert found["each pair once"] is Outcome.HOLDS
    assert found["an in-order stream has no slack and nothing late"] is Outcome.HOLDS


def test_a_promise_that_the_workload_does_not_test_is_left_out() -> None:
    found = outcomes(STREAM.with_(flush=False), run(STREAM.with_(flush=False)))
    assert "eventual exactness" not in found
    assert "an in-order stream has no slack and nothing late" not in found
    fixed = STREAM.with_(config={**CONFIG, "control": "fixed", "fixed_slack_us": 100})
    found = outcomes(fixed, run(fixed))
    assert found["slack that covers every delay leaves nothing late"] is Outcome.HOLDS
    assert "misses within the conformal bound" not in found


def test_a_source_that_breaks_its_own_promise_cannot_be_judged() -> None:
    again = STREAM.arrivals[0]._replace(seq=4)
    config = {**CONFIG, "dedup": False}
    broken = STREAM.with_(arrivals=(*STREAM.arrivals, again), config=config)
    found = outcomes(broken, run(broken))
    assert found["eventual exactness"] is Outcome.UNDETERMINED
    assert Outcome.BROKEN not in found.values()


def test_a_forgotten_redelivery_may_be_late_in_the_batch_of_its_first_delivery() -> None:
    again = STREAM.arrivals[0]._replace(seq=4)
    one_batch = STREAM.with_(arrivals=(*STREAM.arrivals, again), cuts=())
    trace = run(one_batch)
    assert (15, 0) in [(late.start_us, late.source_id) for late in trace.of(Late)]
    assert combine(check(one_batch, trace)) is Outcome.HOLDS


def test_guards_count_the_interesting_cases() -> None:
    again = STREAM.arrivals[2]._replace(seq=4)
    rejected = STREAM.arrivals[0]._replace(seq=5, source_id=9, value=float("nan"))
    workload = STREAM.with_(arrivals=(*STREAM.arrivals, again, rejected))
    trace = run(workload)
    assert judge(workload, trace).guards == {
        "late pairs": len({late[:4] for late in trace.of(Late)}),
        "mixed tuples": 0,
        "corrections": len(trace.of(Correction)),
        "corrections of several windows": 1,
        "correlated windows": 1,
        "judged windows": len(trace.of(Judged)),
        "judged windows with a negative value": 0,
        "misses": 1,
        "redelivered tuples": 1,
        "rejected arrivals": len(trace.of(Rejected)),
        "tasks with a delay": 1,
        "windows": 7,
        "windows with a rejected row": 2,
    }
    mixed = STREAM.with_(arrivals=stream_of((20, 1.0), (18, 1.0)), cuts=())
    assert judge(mixed, run(mixed)).guards["mixed tuples"] == 1


def test_many_traces_hold_if_the_interesting_case_occurred_in_one_of_them() -> None:
    both = over_all([judge(IN_ORDER, run(IN_ORDER)), judge(STREAM, run(STREAM))])
    assert {verdict.outcome for verdict in both} == {Outcome.HOLDS}
    quiet = {v.claim: v for v in over_all([judge(IN_ORDER, run(IN_ORDER))])}
    assert quiet["eventual exactness"].outcome is Outcome.UNDETERMINED
    assert "late pairs" in quiet["eventual exactness"].sentence


def test_many_traces_are_broken_if_one_is() -> None:
    broken = Verdict("one writer", Outcome.BROKEN, "The stream wrote twice.")
    counts = {claim.guard: 1 for claim in CLAIMS.claims}
    holds = Verdict("one writer", Outcome.HOLDS, "")
    unknown = Verdict("one writer", Outcome.UNDETERMINED, "")
    cases = [Judgement((verdict,), counts) for verdict in (holds, broken, unknown)]
    assert over_all(cases) == (broken,)
    assert over_all(cases[2:])[0].outcome is Outcome.UNDETERMINED
    assert over_all(cases[:1])[0].outcome is Outcome.HOLDS

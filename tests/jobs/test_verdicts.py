"""Verdicts on what streams had: answers, matches of outer joins, or no row at all."""

import threading
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import strategies as st
from pyspark.sql import types as sql

from model.checking.claims import Outcome, Verdict
from straggler.jobs.api import HANGS, _judge
from straggler.jobs.check import ACCOUNTED, FEW, Check
from straggler.jobs.plans import EXACT, ORDER, STATE, Remark
from straggler.jobs.reference import Judged, is_match
from straggler.jobs.report import JobReport
from straggler.jobs.rows import Input, Row
from straggler.jobs.running import Job, Run
from straggler.jobs.shapes import Shape
from straggler.jobs.streams import Stream, Times, Values
from straggler.jobs.verdicts import GUARDS, MOVED, OVER, PLAIN, verdicts_of

SCHEMA = sql.StructType().add("status", "string").add("at", "timestamp")
INPUTS = (Input("input", SCHEMA, "at"),)
SHAPE = Shape(Times((5,), ()))
ALL = [case for guard in GUARDS.values() for case in guard.cases] + ["state", "restarts with state"]


def checked(*missing: str, shape: Any = None, **of_check: Any) -> dict[str, tuple[str, str]]:
    """Return the verdicts on a job whose streams had everything but some cases."""
    job = Job(lambda frame: frame, INPUTS, False, "append", None)
    reference: Any = SimpleNamespace(is_batch=True, runner=SimpleNamespace(is_selection=False))
    guards = Counter([case for case in (*ALL, "matches 0") if case not in missing])
    values = Values(INPUTS, [[]])
    check = Check(job, shape or SHAPE, reference, values, 0, guards=guards, **of_check)
    check.knows_growth = True
    found = verdicts_of(check, keeps_state=False)
    return {each.claim: (str(each.outcome), each.sentence) for each in found}


def test_state_is_not_judged_on_rows_that_few_values_identify() -> None:
    """The rows of the probe are far apart; those of one status would be copies of one row."""
    given = (replace(INPUTS[0], identity=("status",)),)
    reference: Any = SimpleNamespace(is_batch=True, runner=SimpleNamespace(is_selection=False))
    job = Job(lambda frame: frame, given, False, "append", None)
    values = Values((replace(given[0], given={"status": st.just("ok")}),), [[("ok",)]])
    check = Check(job, SHAPE, reference, values, 0, guards=Counter(ALL))
    check.try_growth()
    found = [each for each in verdicts_of(check, keeps_state=False) if each.claim == STATE]
    assert found == [Verdict(STATE, Outcome.UNDETERMINED, FEW)]


def test_no_claim_about_answers_holds_without_any() -> None:
    assert {outcome for outcome, _ in checked().values()} == {"holds"}
    found = checked("answers", shape=replace(SHAPE, filtered=("status",)))
    assert found.pop(STATE) == ("holds", "")
    outcome, sentence = found.pop(EXACT)
    assert outcome == "undetermined"
    assert "no stream had an answer; if the job keeps only some values of status" in sentence
    assert "columns={'status': ...}" in sentence
    assert {*found.values()} == {("undetermined", "no stream had an answer")}


def test_a_recording_without_nulls_is_told_with_what_to_do() -> None:
    rows = [Row(0, 0, (status,)) for status in ("a", None)]
    assert checked("special", recorded=[rows[:1]])[ACCOUNTED] == ("undetermined", PLAIN)
    assert checked("special", recorded=[rows])[ACCOUNTED][1] == "no stream had nulls and the like"


def test_rows_whose_order_matters_are_told_as_such() -> None:
    judged = Judged(Stream(()), Run(), Outcome.BROKEN, "the answers differ", Counter(), {})
    assert checked(failed=judged, claim=ORDER)[ORDER] == ("broken", MOVED)
    failed = judged._replace(run=Run(problem="it failed"), reason="it failed")
    assert checked(failed=failed, claim=ORDER)[ORDER] == ("broken", "it failed")


def test_claims_that_are_undetermined_for_one_reason_share_a_line() -> None:
    found = [
        Verdict("state stays bounded", Outcome.UNDETERMINED, "no state"),
        *(Verdict(claim, Outcome.UNDETERMINED, OVER) for claim in "abc"),
        Verdict("ends exact", Outcome.BROKEN, "an answer is missing"),
    ]
    assert str(JobReport("job", tuple(found), 0, 2)).splitlines()[1:] == [
        "  state stays bounded  undetermined  no state",
        "  ends exact           broken        an answer is missing",
        "  3 further claims     undetermined  not judged after the break",
    ]
    assert "  3 claims  undet" in str(JobReport("job", tuple(found[1:4]), 0, 2))


def test_an_outer_join_needs_a_match() -> None:
    shape = replace(SHAPE, matches=(((1,),),))
    assert checked(shape=shape)[EXACT] == ("holds", "")
    outcome, sentence = checked("matches 0", shape=shape)[EXACT]
    assert outcome == "undetermined"
    assert sentence.startswith("no stream had a match of the outer join")


def test_a_job_that_spark_refuses_is_told_first_what_its_plan_proves() -> None:
    run = Run(problem="Spark refuses the job: AnalysisException")
    judged = Judged(Stream(()), run, Outcome.BROKEN, run.problem, Counter(), {})
    assert judged.is_refused
    remark = Remark("windows never close", True, STATE)
    found = checked(remarks=(remark,), failed=judged, claim=EXACT)
    assert found[EXACT] == ("broken", f"windows never close; {run.problem}")
    assert found[STATE] == ("broken", "windows never close")
    assert checked(failed=judged, claim=EXACT)[EXACT] == ("broken", run.problem)


def test_a_job_that_hangs_while_its_stream_is_made_smaller_stays_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_over = threading.Event()
    stream = Stream(((Row(0, 0, ("a",)), Row(0, 1, ("b",))),))
    broken = Judged(stream, Run(), Outcome.BROKEN, "an answer is missing", Counter(), {})
    known = iter([broken])

    def judge(_: Stream) -> Judged:
        found = next(known, None)
        if found is None:  # a smaller stream
            is_over.wait()
        return found or broken

    running = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))
    runner = SimpleNamespace(spark=SimpleNamespace(_jsc=running), frames=None)
    reference: Any = SimpleNamespace(judge=judge, runner=runner, flush=(), is_batch=True)
    job = Job(lambda frame: frame, INPUTS, False)
    check = Check(job, SHAPE, reference, Values(INPUTS, [[]]), 0)
    monkeypatch.setattr("straggler.jobs.check.LIMIT_S", 0.5)
    monkeypatch.setattr("straggler.jobs.api.calibrate", lambda *_: ([], [], ""))
    monkeypatch.setattr("straggler.jobs.api.run_stages", lambda *_, **__: check.fail(broken))
    report = _judge(check, "job", 0, 0.0, keeps_state=False)
    is_over.set()
    first, *others = report.verdicts
    assert (first.claim, first.outcome) == (EXACT, Outcome.BROKEN)
    assert first.sentence == "an answer is missing"
    assert {each.sentence for each in others} == {HANGS}
    assert "has 2 rows" in report.table[0]


@pytest.mark.parametrize(
    ("answer", "sides", "right"),
    [
        (("a", "null", "null"), ((1, 2),), False),
        (("a", "null", "b"), ((1, 2),), True),
        (("a", "null", "null"), ((0,), (1, 2)), False),
        (("a", "null", "b"), ((0,), (1, 2)), True),
    ],
)
def test_a_match_has_values_of_each_side(
    answer: tuple[str, ...], sides: tuple[tuple[int, ...], ...], right: bool
) -> None:
    assert is_match(answer, sides) is right

"""Verdicts on the claims about a job, from what its check has found."""

from collections.abc import Iterator
from typing import NamedTuple

from model.checking.claims import Outcome, Verdict
from straggler.jobs.check import ACCOUNTED, EXACT, LATE, ORDER, REDELIVERY, RESTARTS, STATE, Check
from straggler.jobs.reference import COMPLETE
from straggler.jobs.report import describe_row


class Guard(NamedTuple):
    """Cases that a claim needs, and what is said if one is missing."""

    cases: tuple[str, ...]
    missing: str


GUARDS = {
    EXACT: Guard(("answers",), "no stream had an answer"),
    ORDER: Guard(("disorder", "cuts"), "no stream had rows out of order in several micro-batches"),
    LATE: Guard(("late", "almost late"), "no stream had a late row and one that was almost late"),
    RESTARTS: Guard(("restarts",), "no query restarted"),
    ACCOUNTED: Guard(("special", "equal times"), "no stream had nulls and the like"),
    REDELIVERY: Guard(("again",), "no row came twice"),
}


def verdicts_of(check: Check, *, keeps_state: bool) -> Iterator[Verdict]:
    """Yield the verdict on each claim that applies to the job."""
    broken = next((each for each in check.remarks if each.is_broken), None)
    told = next((each for each in check.remarks if not each.is_broken), None)
    stopped = bool(check.claim) or bool(check.growth)
    for claim, guard in GUARDS.items():
        if claim == REDELIVERY and not any(each.identity for each in check.job.inputs):
            continue
        if claim == check.claim:
            yield Verdict(claim, Outcome.BROKEN, _broken(check), _witness(check))
        elif claim == EXACT and broken is not None and not check.claim:
            yield Verdict(claim, Outcome.BROKEN, broken.sentence)
        elif check.doubts:
            yield Verdict(claim, Outcome.UNDETERMINED, check.doubts[0])
        elif claim == EXACT and told is not None:
            yield Verdict(claim, Outcome.UNDETERMINED, told.sentence)
        elif stopped or broken is not None:
            yield Verdict(claim, Outcome.UNDETERMINED, "the check ended with the broken claim")
        elif missing := _missing(check, claim, guard):
            yield Verdict(claim, Outcome.UNDETERMINED, missing)
        else:
            yield Verdict(claim, Outcome.HOLDS, _held(check, claim))
    if check.shape.has_state and check.job.mode != COMPLETE and not keeps_state:
        yield _state(check)


def _state(check: Check) -> Verdict:
    if check.growth:
        return Verdict(STATE, Outcome.BROKEN, check.growth)
    if check.growth is None or check.doubts:
        reason = check.doubts[0] if check.doubts else "the check ended with the broken claim"
        return Verdict(STATE, Outcome.UNDETERMINED, reason)
    if not check.guards["state"]:
        return Verdict(STATE, Outcome.UNDETERMINED, "no operator had state")
    return Verdict(STATE, Outcome.HOLDS, "")


def _missing(check: Check, claim: str, guard: Guard) -> str:
    """Return what the streams lacked to put a claim to the test, if anything."""
    cases = list(guard.cases)
    limits = check.shape.times.lateness_us
    if claim == LATE:
        if all(us is None for us in limits):
            cases = ["disorder"]  # nothing is dropped
        elif not any(limits):
            cases.remove("almost late")  # without lateness, a row is late or it is not
    if claim == RESTARTS and check.shape.has_state:
        cases = ["restarts with state"]
    if claim == ACCOUNTED and not any(
        field.nullable for each in check.job.inputs for field in each.others
    ):
        cases.remove("special")
    return guard.missing if any(not check.guards[case] for case in cases) else ""


def _broken(check: Check) -> str:
    if check.rows:
        return "the job answers the same rows differently in another order, even as a batch"
    assert check.failed is not None
    sentence = check.failed.reason
    if check.claim == LATE:
        return "a row that came in time is missing, or a choice among late rows explains nothing"
    return sentence


def _witness(check: Check) -> tuple[str, ...]:
    return tuple([describe_row(row, check.job.inputs) for rows in check.rows[:1] for row in rows])


def _held(check: Check, claim: str) -> str:
    if claim == EXACT and not check.twin.is_batch:
        return "compared with a stream of one sorted micro-batch, because the job runs as no batch"
    return ""

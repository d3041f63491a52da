"""Verdicts on the claims about a job, from what its check has found."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from model.checking.claims import Outcome, Verdict
from straggler.errors import counted
from straggler.jobs import COMPLETE
from straggler.jobs.check import ACCOUNTED, LATE, REDELIVERY, RESTARTS, Check
from straggler.jobs.plans import EXACT, ORDER, STATE
from straggler.jobs.rows import special

OVER = "not judged after the break"
MOVED = "the same rows in another order, or in other micro-batches, give other answers"
PLAIN = (
    "no recorded row has nulls and the like; drawn rows have them (schema= without rows=,"
    " --schema without --input)"
)
WEAK = "nobody knows which answer replaces which in update mode, unless upsert= names the columns"
COUNTED = "where rows were late, only the number of changed answers could be compared"
SELECTS = "the sink keeps other rows than it is given; compared with itself, given all at once"


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
    broken = {each.claim or EXACT: each.sentence for each in check.remarks if each.is_broken}
    for claim, guard in GUARDS.items():
        if claim != REDELIVERY or any(each.identity for each in check.job.inputs):
            yield _verdict(check, claim, guard, broken)
    if STATE in broken:
        yield Verdict(STATE, Outcome.BROKEN, broken[STATE])
    elif check.guards["state"] and check.job.mode != COMPLETE and not keeps_state:
        yield _state(check)


def _verdict(check: Check, claim: str, guard: Guard, broken: Mapping[str, str]) -> Verdict:
    told = {each.claim: each.sentence for each in check.remarks if not each.is_broken}
    if claim == check.claim:
        return Verdict(claim, Outcome.BROKEN, _broken(check))
    if claim in broken:
        return Verdict(claim, Outcome.BROKEN, broken[claim])
    reason = check.doubts[0] if check.doubts else told.get(claim, "")
    if claim == ACCOUNTED and check.unfit:
        reason = "; ".join(dict.fromkeys([each.sentence for each in check.unfit]))
    elif not reason and check.shape.is_weak:
        reason = WEAK
    if not reason and (check.claim or broken):
        reason = OVER
    if reason := reason or _missing(check, claim, guard):
        return Verdict(claim, Outcome.UNDETERMINED, reason)
    return Verdict(claim, Outcome.HOLDS, _held(check, claim))


def _state(check: Check) -> Verdict:
    if check.claim == STATE:
        return Verdict(STATE, Outcome.BROKEN, _broken(check))
    told = [each.sentence for each in check.remarks if each.claim == STATE]
    if not check.knows_growth or check.doubts:
        return Verdict(STATE, Outcome.UNDETERMINED, [*check.doubts, *told, OVER][0])
    return Verdict(STATE, Outcome.HOLDS, "")


def _missing(check: Check, claim: str, guard: Guard) -> str:
    """Return what the streams lacked to put a claim to the test, if anything."""
    if not check.guards["answers"]:
        return guard.missing + _advice(check) if claim == EXACT else GUARDS[EXACT].missing
    if claim == EXACT and not all(
        check.guards[f"matches {n}"] for n, _ in enumerate(check.shape.matches)
    ):
        return "no stream had a match of the outer join" + _advice(check, is_join=True)
    cases = list(guard.cases)
    limits = check.shape.times.lateness_us
    if claim == LATE:
        if all(us is None for us in limits):
            cases = ["disorder"]  # nothing is dropped
        elif not any(limits):
            cases.remove("almost late")  # without lateness, a row is late or it is not
    if claim == RESTARTS and check.guards["state"]:
        cases = ["restarts with state"]
    if claim == ACCOUNTED and not any(
        field.nullable for each in check.job.inputs for field in each.others
    ):
        cases.remove("special")
    missing = [case for case in cases if not check.guards[case]]
    return _without(check, missing) or guard.missing if missing else ""


def _without(check: Check, missing: list[str]) -> str:
    """Return what is known of why a case is missing, if anything."""
    if missing == ["late"] and check.guards["late, counted only"]:
        return COUNTED
    rows = chain.from_iterable(check.recorded)
    if missing == ["special"] and check.recorded and not any(map(special, rows)):
        return PLAIN
    return ""


def _advice(check: Check, *, is_join: bool = False) -> str:
    """Return what a user can do if the job leaves out all rows, or a join matches none."""
    if check.recorded:
        return ""
    names = check.shape.filtered
    values = f" of {', '.join(names)}" if names else ""
    given = "{" + ", ".join(f"{name!r}: ..." for name in names) + "}" if names else ""
    when = "" if is_join else f"if the job keeps only some values{values}, "
    which = " whose values meet" if is_join else ""
    return f"; {when}give columns={given}{which}, or recorded rows (rows=, --input)"


def _broken(check: Check) -> str:
    failed = check.failed
    assert failed is not None
    proved = [each.sentence for each in check.remarks if each.is_broken]
    if proved and failed.is_refused:  # Spark refuses the job, and the plan says why
        return f"{proved[0]}; {failed.reason}"
    if check.claim == LATE and not failed.guards.get("late"):
        return "a row that came in time is missing from the answers, or counts in a wrong one"
    if check.claim == ORDER and not failed.run.problem:
        return MOVED
    if check.claim == RESTARTS and not failed.run.differing and not failed.run.problem:
        return "after a restart the sink holds other answers than without one"
    return failed.reason


def _held(check: Check, claim: str) -> str:
    if claim == EXACT and not check.reference.is_batch:
        return "compared with a stream of one sorted micro-batch, because the job runs as no batch"
    if claim == EXACT and check.reference.runner.is_selection:
        return SELECTS
    number = check.guards["late, counted only"]
    if claim == LATE and number:
        return f"of {counted(number, 'late row')}, only the number of changed answers was compared"
    return ""

"""The promises of docs/watermark.md, section 7, judged on any trace.

Rules of this file:

* A trace is judged against its workload alone; the reference machine is not asked.
* A promise that the workload cannot put to the test (no flush, no corrections) is left out.
* Clocks, passings and insertions are compared with the reference, step by step. Here only the
  promise that the literal reading breaks is judged.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from model.checking.accounts import row_cases
from model.checking.claims import COMPLETE, ClaimSet, Judgement, Recording
from model.vocabulary import Trace, WatermarkConfig, Workload
from model.vocabulary.watermark import Clock, Inserted
from model.vocabulary.windows import Cleared, Late, Revision
from model.watermark.evidence import Moment, Observation, Truth, moments_of, observe_trace, truth_of
from model.windows import claims
from model.windows.accounts import PLACES
from model.windows.claims import (
    LACKING,
    Findings,
    claim,
    count_incomplete_windows,
    every_row,
)
from model.windows.exactness_claims import corrections_do_not_wait, exactness_claim

STORMY = Fraction(1, 5)
"""Share of pairs out of order from which on a moment is stormy."""

Evidence: TypeAlias = claims.Evidence[WatermarkConfig, Clock]

# ------------------------------------------------------------------------------------- the wait


def has_every_clock(truth: Truth) -> bool:
    """Return whether the clock of every accepted arrival is recorded."""
    return truth.config.clocks == "arrivals" and not truth.config.upstreams


def wait_is_monotone(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that of two clusters of a task the one with more disorder waits at least as long."""
    by_task = moments_of(truth, observed)
    for task in sorted(by_task):
        moments = [moment for moment in by_task[task] if moment.n > 1]
        moments.sort(key=lambda moment: (moment.disorder, moment.clock.wait_us, moment.clock.seq))
        for calmer, wilder in pairwise(moments):
            if wilder.disorder > calmer.disorder and wilder.clock.wait_us < calmer.clock.wait_us:
                findings.add(
                    max(calmer.clock.seq, wilder.clock.seq),
                    f"Task {task} waits longer after arrival {calmer.clock.seq} than after "
                    f"arrival {wilder.clock.seq}, which is less in order.",
                    _describe(calmer),
                    _describe(wilder),
                )


def _describe(moment: Moment) -> str:
    return (
        f"Arrival {moment.clock.seq}: {moment.clock.inv} of "
        f"{moment.n * (moment.n - 1) // 2} pairs out of order, wait {moment.clock.wait_us} us."
    )


# ---------------------------------------------------------------------------------------- cases


def _stormy_arrivals(evidence: Evidence) -> int:
    if not has_every_clock(evidence.truth):
        return 0
    by_task = moments_of(evidence.truth, evidence.observed).values()
    return sum(each.n > 1 and each.disorder >= STORMY for moments in by_task for each in moments)


CASES: Mapping[str, Callable[[Evidence], int]] = {
    "insertions": lambda seen: len(seen.observed.trace.of(Inserted)),
    "stormy arrivals": _stormy_arrivals,
    "late pairs": lambda seen: sum(map(len, seen.observed.late.values())),
    "corrections": lambda seen: len(
        {(step.task, step.batch) for step in seen.observed.trace.of(Revision)}
    ),
    LACKING: lambda seen: count_incomplete_windows(seen.truth),
    **row_cases(lambda seen: seen.accounts, *PLACES),
}
"""Function that counts the cases of a kind, by the name of the kind."""

# --------------------------------------------------------------------------------------- claims


def _is_corrected(truth: Truth) -> bool:
    return truth.config.corrections


def _is_corrected_to_the_end(truth: Truth) -> bool:
    return truth.config.corrections and truth.flush


MONOTONE = "the wait is monotone in the disorder"

CLAIMS: ClaimSet[Evidence] = ClaimSet(
    (
        claim(MONOTONE, wait_is_monotone, ((Clock,),), "stormy arrivals", has_every_clock),
        exactness_claim("each pair once"),
        exactness_claim("exact means all rows"),
        exactness_claim("eventual exactness", "corrections", _is_corrected_to_the_end),
        exactness_claim("wrong answers are pending", "corrections", _is_corrected),
        claim(
            "corrections do not wait",
            corrections_do_not_wait,
            ((Late,), (Cleared,), (Clock,)),
            "corrections",
            _is_corrected,
        ),
        every_row(),
    ),
    CASES,
)


def judge(workload: Workload, trace: Trace, recording: Recording = COMPLETE) -> Judgement:
    """Judge every promise that the workload puts to the test, and count the cases.

    A promise about steps that ``recording`` lacks is undetermined.
    """
    truth = truth_of(workload)
    return CLAIMS.judge(Evidence(truth, observe_trace(truth, trace)), recording)

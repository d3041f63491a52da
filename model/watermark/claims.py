"""The promises of docs/watermark.md, section 7, judged on any trace.

Rules of this file:

* A trace is judged against its workload alone; the reference machine is not asked.
* A promise that the workload cannot put to the test (no flush, no corrections) is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from model.checking.accounts import row_cases
from model.checking.claims import COMPLETE, ClaimSet, Judgement, Recording, Verdict
from model.vocabulary import Trace, WatermarkConfig, Workload
from model.vocabulary.watermark import Clock, Inserted, Passing
from model.vocabulary.windows import Cleared, Late, Rejected, Result, Revision
from model.watermark import clock_claims, upstream_claims
from model.watermark.clock_claims import has_every_clock, has_own_clocks, waits_by_disorder
from model.watermark.evidence import Moment, Truth, closings, moments_of, observe_trace, truth_of
from model.watermark.upstream_claims import has_upstreams
from model.windows import claims
from model.windows.accounts import PLACES
from model.windows.claims import claim, count_incomplete_windows, every_row
from model.windows.exactness_claims import corrections_do_not_wait, exactness_claim

STORMY = Fraction(1, 5)
"""Share of pairs out of order from which on a moment is stormy."""

Evidence: TypeAlias = claims.Evidence[WatermarkConfig, Clock]

# ---------------------------------------------------------------------------------------- cases


def _moments(evidence: Evidence) -> Sequence[Moment]:
    """Return the moments of all tasks; none if some clocks are not recorded."""
    if not has_every_clock(evidence.truth):
        return ()
    by_task = moments_of(evidence.truth, evidence.observed).values()
    return [moment for moments in by_task for moment in moments]


def _count(is_case: Callable[[Moment], bool]) -> Callable[[Evidence], int]:
    """Return a function that counts the cases among moments whose cluster has a pair."""
    return lambda seen: sum(is_case(moment) for moment in _moments(seen) if moment.n > 1)


def _held_watermarks(evidence: Evidence) -> int:
    return sum(
        moment.clock.t_max_us - moment.clock.wait_us < moment.clock.wm_us
        for moment in _moments(evidence)
    )


def _early_answers(evidence: Evidence) -> int:
    """Count the answers to windows that a fixed watermark would still have left open."""
    config, closing_of = evidence.truth.config, closings(evidence.observed)
    early = 0
    for result in evidence.observed.trace.of(Result):
        end_us = result.start_us + config.size_us
        closing = closing_of(result.task, end_us)
        early += closing is not None and closing.t_max_us - config.max_wait_us < end_us
    return early


def _has_incomplete_windows(truth: Truth) -> bool:
    return count_incomplete_windows(truth) > 0


LACKING = "windows with a rejected row"

CASES: Mapping[str, Callable[[Evidence], int]] = {
    "arrivals": lambda seen: len(seen.observed.trace.of(Clock)),
    "passings": lambda seen: len(seen.observed.trace.of(Passing)),
    "insertions": lambda seen: len(seen.observed.trace.of(Inserted)),
    "insertions past an idle operator": lambda seen: upstream_claims.count_past_idle(
        seen.truth, seen.observed
    ),
    "calm arrivals": _count(lambda moment: moment.inv == 0),
    "stormy arrivals": _count(lambda moment: moment.disorder >= STORMY),
    "reversed clusters": _count(lambda moment: moment.disorder == 1),
    "held watermarks": _held_watermarks,
    "early answers": _early_answers,
    "late pairs": lambda seen: sum(map(len, seen.observed.late.values())),
    "corrections": lambda seen: len(
        {(step.task, step.batch) for step in seen.observed.trace.of(Revision)}
    ),
    "redelivered tuples": lambda seen: len(seen.truth.deliveries),
    "rejected arrivals": lambda seen: len(seen.observed.trace.of(Rejected)),
    "windows": lambda seen: len(seen.truth.windows),
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
        claim(
            "watermark within the wait of the largest event time",
            clock_claims.watermark_is_near,
            ((Clock,),),
            "arrivals",
            has_own_clocks,
        ),
        claim(
            "watermark never decreases",
            clock_claims.clocks_are_monotone,
            ((Clock,),),
            "arrivals",
            has_own_clocks,
        ),
        claim(
            "watermark follows the wait",
            clock_claims.watermark_follows,
            ((Clock,),),
            "held watermarks",
            has_every_clock,
        ),
        claim(
            "every accepted arrival has a clock",
            clock_claims.every_arrival_has_a_clock,
            ((Clock,),),
            "arrivals",
            has_every_clock,
        ),
        claim(
            "pairs out of order are counted",
            clock_claims.inversions_are_counted,
            ((Clock,),),
            "stormy arrivals",
            has_every_clock,
        ),
        claim(
            "the wait is that of the reading",
            clock_claims.waits_are_those_of_the_reading,
            ((Clock,),),
            "stormy arrivals",
            has_every_clock,
        ),
        claim(
            MONOTONE, clock_claims.wait_is_monotone, ((Clock,),), "stormy arrivals", has_every_clock
        ),
        claim(
            "calm is not waited for",
            clock_claims.calm_is_not_waited_for,
            ((Clock,),),
            "calm arrivals",
            waits_by_disorder,
        ),
        claim(
            "reversal is waited for",
            clock_claims.reversal_is_waited_for,
            ((Clock,),),
            "reversed clusters",
            has_every_clock,
        ),
        claim(
            "windows close at the watermark",
            clock_claims.windows_close_at_the_watermark,
            ((Clock,), (Result,)),
            "early answers",
            has_every_clock,
        ),
        claim(
            "late means closed",
            clock_claims.late_means_closed,
            ((Late,), (Clock,)),
            "late pairs",
            has_every_clock,
            needs_identities=True,
        ),
        claim(
            "upstream clocks follow the disorder",
            upstream_claims.passings_follow_the_disorder,
            ((Passing,),),
            "passings",
            has_upstreams,
        ),
        claim(
            "the least watermark is inserted",
            upstream_claims.the_least_is_inserted,
            ((Passing,),),
            "passings",
            has_upstreams,
        ),
        claim(
            "an idle operator holds nothing back",
            upstream_claims.the_least_is_inserted,
            ((Passing,),),
            "insertions past an idle operator",
            upstream_claims.may_be_idle,
        ),
        claim(
            "windows close at the inserted watermark",
            upstream_claims.windows_close_at_the_insertion,
            ((Inserted,), (Result,)),
            "insertions",
            has_upstreams,
        ),
        claim(
            "late means that a watermark was inserted",
            upstream_claims.late_means_inserted,
            ((Late,), (Inserted,)),
            "late pairs",
            has_upstreams,
            needs_identities=True,
        ),
        exactness_claim("each pair once"),
        exactness_claim("one writer"),
        exactness_claim("final answers are the latest"),
        exactness_claim("exact means all rows", LACKING, _has_incomplete_windows),
        exactness_claim("eventual exactness", "corrections", _is_corrected_to_the_end),
        exactness_claim("nothing owed after the flush", "corrections", _is_corrected_to_the_end),
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

over_all = CLAIMS.over_all


def judge(workload: Workload, trace: Trace, recording: Recording = COMPLETE) -> Judgement:
    """Judge every promise that the workload puts to the test, and count the cases.

    A promise about steps that ``recording`` lacks is undetermined.
    """
    truth = truth_of(workload)
    return CLAIMS.judge(Evidence(truth, observe_trace(truth, trace)), recording)


def check(workload: Workload, trace: Trace) -> tuple[Verdict, ...]:
    """Return the verdicts on a trace without the counts."""
    return judge(workload, trace).verdicts

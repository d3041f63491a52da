"""The promises of docs/watermark.md, section 7, judged on any trace.

Rules of this file:

* A trace is judged against its workload alone; the reference machine is not asked.
* A promise that the workload cannot put to the test (no flush, no corrections) is left out.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from model.checking import claims
from model.checking.claims import Judgement, Verdict
from model.vocabulary import Trace, WatermarkConfig, Workload
from model.vocabulary.answers import Cleared, Final, Late, Rejected, Result, Revision
from model.vocabulary.watermark import Clock
from model.watermark import clock_claims
from model.watermark.clock_claims import has_every_clock, waits_by_disorder
from model.watermark.evidence import Observed, Truth, closings, moments_of, observed_in, truth_of
from model.windows import exactness_claims
from model.windows.judging import Claim, verdicts_of

STORMY = Fraction(1, 5)
"""Disorder from which on a moment counts as stormy."""

# --------------------------------------------------------------------------------------- guards


def _guards(truth: Truth, observed: Observed) -> Mapping[str, int]:
    trace = observed.trace
    moments = [moment for task in moments_of(truth, observed).values() for moment in task]
    if not has_every_clock(truth):
        moments = []
    pairs = [moment for moment in moments if moment.n > 1]
    return {
        "arrivals": len(trace.of(Clock)),
        "calm arrivals": sum(moment.inv == 0 for moment in pairs),
        "stormy arrivals": sum(moment.disorder >= STORMY for moment in pairs),
        "reversed clusters": sum(moment.disorder == 1 for moment in pairs),
        "held watermarks": sum(
            moment.clock.t_max_us - moment.clock.wait_us < moment.clock.wm_us for moment in moments
        ),
        "early answers": _early_answers(truth, observed),
        "late pairs": sum(map(len, observed.late.values())),
        "corrections": len({(step.task, step.batch) for step in trace.of(Revision)}),
        "redelivered tuples": len(truth.deliveries),
        "rejected arrivals": len(trace.of(Rejected)),
        "windows": len(truth.windows),
    }


def _early_answers(truth: Truth, observed: Observed) -> int:
    """Answers to windows that a watermark M behind would still have left open."""
    config, closing_of = truth.config, closings(observed)
    early = 0
    for result in observed.trace.of(Result):
        end_us = result.start_us + config.size_us
        closing = closing_of(result.task, end_us)
        early += closing is not None and closing.t_max_us - config.max_wait_us < end_us
    return early


# --------------------------------------------------------------------------------------- claims


def _is_corrected(truth: Truth) -> bool:
    return truth.config.corrections


def _is_corrected_to_the_end(truth: Truth) -> bool:
    return truth.config.corrections and truth.flush


MONOTONE = "the wait is monotone in the disorder"

CLAIMS: tuple[Claim[WatermarkConfig, Clock], ...] = (
    Claim(
        "watermark within the wait of the largest event time",
        clock_claims.watermark_is_near,
        ((Clock,),),
        "arrivals",
    ),
    Claim("watermark never decreases", clock_claims.clocks_are_monotone, ((Clock,),), "arrivals"),
    Claim(
        "watermark follows the wait",
        clock_claims.watermark_follows,
        ((Clock,),),
        "held watermarks",
        has_every_clock,
    ),
    Claim(
        "every accepted arrival has a clock",
        clock_claims.every_arrival_has_a_clock,
        ((Clock,),),
        "arrivals",
        has_every_clock,
    ),
    Claim(
        "pairs out of order are counted",
        clock_claims.inversions_are_counted,
        ((Clock,),),
        "stormy arrivals",
        has_every_clock,
    ),
    Claim(
        "the wait is that of the reading",
        clock_claims.waits_are_those_of_the_reading,
        ((Clock,),),
        "stormy arrivals",
        has_every_clock,
    ),
    Claim(MONOTONE, clock_claims.wait_is_monotone, ((Clock,),), "stormy arrivals", has_every_clock),
    Claim(
        "calm is not waited for",
        clock_claims.calm_is_not_waited_for,
        ((Clock,),),
        "calm arrivals",
        waits_by_disorder,
    ),
    Claim(
        "reversal is waited for",
        clock_claims.reversal_is_waited_for,
        ((Clock,),),
        "reversed clusters",
        has_every_clock,
    ),
    Claim(
        "windows close at the watermark",
        clock_claims.windows_close_at_the_watermark,
        ((Clock,), (Result,)),
        "early answers",
        has_every_clock,
    ),
    Claim(
        "late means closed",
        clock_claims.late_means_closed,
        ((Late,), (Clock,)),
        "late pairs",
        has_every_clock,
        needs_identities=True,
    ),
    Claim(
        "each pair once",
        exactness_claims.each_pair_once,
        ((Result,), (Late,)),
        "late pairs",
        needs_identities=True,
    ),
    Claim("one writer", exactness_claims.one_writer, ((Result,),), "late pairs"),
    Claim(
        "final answers are the latest",
        exactness_claims.final_answers_are_the_latest,
        ((Final,), (Result, Revision)),
        "late pairs",
    ),
    Claim(
        "eventual exactness",
        exactness_claims.eventual_exactness,
        ((Final,),),
        "corrections",
        _is_corrected_to_the_end,
        needs_identities=True,
    ),
    Claim(
        "nothing owed after the flush",
        exactness_claims.nothing_owed,
        ((Late,), (Cleared,)),
        "corrections",
        _is_corrected_to_the_end,
    ),
    Claim(
        "wrong answers are pending",
        exactness_claims.wrong_answers_are_pending,
        ((Result,), (Late,)),
        "corrections",
        _is_corrected,
        needs_identities=True,
    ),
    Claim(
        "corrections do not wait",
        exactness_claims.corrections_do_not_wait,
        ((Late,), (Cleared,), (Clock,)),
        "corrections",
        _is_corrected,
    ),
)


GUARDS: Mapping[str, str] = {claim.name: claim.guard for claim in CLAIMS}
"""The case without which a claim has not been put to the test, by the name of the claim."""


def check(workload: Workload, trace: Trace) -> tuple[Verdict, ...]:
    """Judge a trace: one verdict for every promise that the workload puts to the test."""
    return judge(workload, trace).verdicts


def judge(workload: Workload, trace: Trace) -> Judgement:
    """Verdicts and guards together, which costs hardly more than either."""
    truth = truth_of(workload)
    observed = observed_in(truth, trace)
    counts = _guards(truth, observed)
    return Judgement(verdicts_of(CLAIMS, truth, observed, counts), counts)


def over_all(cases: Iterable[Judgement]) -> tuple[Verdict, ...]:
    """Judgements of many traces, summed up by claim (:func:`model.checking.claims.over_all`)."""
    return claims.over_all(cases, GUARDS)

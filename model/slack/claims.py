"""The promises of docs/slack.md, section 7, judged on any trace.

Rules of this file:

* A trace is judged against its workload alone; the reference machine is not asked.
* Each promise names the kinds of steps it is read from; without them it is undetermined. A
  promise that the workload cannot put to the test (no flush, another control) is left out.
* Each promise has a guard, the case without which it could hold without a test. One trace need not
  contain it, all of them together must (``over_all``).
* A counterexample is the smallest one found, in sentences.
"""

from collections.abc import Iterable, Mapping

from model.checking import claims
from model.checking.claims import Judgement, Verdict
from model.slack import assumption_claims, clock_claims, coverage_claims, requirement_claims
from model.slack.evidence import Observed, Truth, observed_in, truth_of
from model.vocabulary import SlackConfig, Trace, Workload
from model.vocabulary.slack import (
    Cleared,
    Correlation,
    Final,
    Judged,
    Late,
    Progress,
    Rejected,
    Result,
    Revision,
)
from model.windows import exactness_claims
from model.windows.judging import Claim, is_flushed, verdicts_of

# --------------------------------------------------------------------------------------- guards


def guards(workload: Workload, trace: Trace) -> Mapping[str, int]:
    """How often the interesting cases occurred."""
    truth = truth_of(workload)
    return _guards(truth, observed_in(truth, trace))


def _guards(truth: Truth, observed: Observed) -> Mapping[str, int]:
    trace = observed.trace
    late_windows: dict[tuple[int, int], int] = {}
    event_times: dict[tuple[int, int], int] = {}
    for task, _, _, source_id, event_time_us in {late[:5] for late in trace.of(Late)}:
        late_windows[task, source_id] = late_windows.get((task, source_id), 0) + 1
        event_times[task, source_id] = event_time_us
    corrected: dict[tuple[int, int], int] = {}
    for revision in trace.of(Revision):
        at = revision.task, revision.batch
        corrected[at] = corrected.get(at, 0) + 1
    spec = truth.config.windows
    last_batch = truth.batches if truth.flush else truth.batches - 1
    return {
        "late pairs": sum(map(len, observed.late.values())),
        "mixed tuples": sum(
            count < len(spec.indices(event_times[identity]))
            for identity, count in late_windows.items()
        ),
        "corrections": len(corrected),
        "corrections of several windows": sum(windows > 1 for windows in corrected.values()),
        "correlated windows": len(trace.of(Correlation)),
        "judged windows": len(trace.of(Judged)),
        "misses": sum(judged.miss for judged in trace.of(Judged)),
        "redelivered tuples": len(truth.deliveries),
        "rejected arrivals": len(trace.of(Rejected)),
        "tasks with a delay": sum(
            truth.max_delay_us.get((task, last_batch), 0) > 0 for task in range(truth.config.tasks)
        ),
        "windows": len(truth.windows),
    }


# --------------------------------------------------------------------------------------- claims


def _is_adaptive(truth: Truth) -> bool:
    return truth.config.control != "fixed"


CLAIMS: tuple[Claim[SlackConfig, Progress], ...] = (
    Claim(
        "eventual exactness",
        exactness_claims.eventual_exactness,
        ((Final,),),
        "late pairs",
        is_flushed,
        needs_identities=True,
    ),
    Claim(
        "nothing owed after the flush",
        exactness_claims.nothing_owed,
        ((Late,), (Cleared,)),
        "late pairs",
        is_flushed,
    ),
    Claim(
        "wrong answers are pending",
        exactness_claims.wrong_answers_are_pending,
        ((Result,), (Late,)),
        "late pairs",
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
        "corrections do not wait",
        exactness_claims.corrections_do_not_wait,
        ((Late,), (Cleared,), (Progress,)),
        "late pairs",
    ),
    Claim(
        "alpha within 0 and 1",
        clock_claims.alpha_is_a_share,
        ((Judged, Progress),),
        "judged windows",
        lambda truth: truth.config.control != "pd",
    ),
    Claim(
        "slack within 0 and the largest delay",
        clock_claims.slack_is_bounded,
        ((Result, Progress),),
        "tasks with a delay",
        _is_adaptive,
    ),
    Claim(
        "watermark never decreases",
        clock_claims.watermark_is_monotone,
        ((Progress,),),
        "tasks with a delay",
    ),
    Claim(
        "an in-order stream has no slack and nothing late",
        clock_claims.in_order_is_never_late,
        ((Progress, Result),),
        "windows",
        lambda truth: _is_adaptive(truth) and clock_claims.is_in_order(truth),
    ),
    Claim(
        "slack that covers every delay leaves nothing late",
        clock_claims.enough_slack_is_never_late,
        ((Result, Progress),),
        "tasks with a delay",
        clock_claims.has_enough_slack,
    ),
    Claim(
        "judgements measure what was recorded",
        clock_claims.judgements_are_measured,
        ((Judged,), (Result,)),
        "judged windows",
        needs_identities=True,
    ),
    Claim(
        "misses within the conformal bound",
        clock_claims.misses_are_bounded,
        ((Judged,),),
        "misses",
        lambda truth: truth.config.control == "conformal",
    ),
    Claim(
        "slack follows alpha",
        coverage_claims.slack_follows_alpha,
        ((Progress,), (Judged, Progress)),
        "tasks with a delay",
        _is_adaptive,
    ),
    Claim(
        "what is late came later than the slack",
        coverage_claims.late_is_later_than_the_slack,
        ((Late,), (Result,)),
        "late pairs",
        needs_identities=True,
    ),
    Claim(
        "the controller answers for its misses",
        coverage_claims.misses_are_answered_for,
        ((Judged,), (Result,)),
        "misses",
        lambda truth: truth.config.control == "conformal",
        needs_identities=True,
    ),
    Claim(
        "pd steers the mean coverage",
        clock_claims.pd_telescopes,
        ((Judged,),),
        "judged windows",
        lambda truth: truth.config.control in ("pd", "pd-clamped"),
    ),
    Claim(
        "required coverage is right",
        requirement_claims.required_coverage_is_right,
        ((Judged,),),
        "judged windows",
        needs_identities=True,
    ),
    Claim(
        "measured misses are true misses",
        requirement_claims.misses_are_true,
        ((Judged,),),
        "misses",
        requirement_claims.can_be_compared,
        needs_identities=True,
    ),
    Claim(
        "delay and value are compared as they came",
        assumption_claims.correlations_are_right,
        ((Revision,),),
        "correlated windows",
        needs_identities=True,
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

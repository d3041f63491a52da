"""The promises of docs/slack.md, section 7, judged on any trace.

Rules of this file:

* A trace is judged against its workload alone; the reference machine is not asked.
* Only promises are judged here. Whether judgements and required coverage are right is found by
  comparing them with the reference, step by step.
* A promise that the workload cannot put to the test (no flush, another control) is left out.
* ``model/windows/claims.py`` judges one promise, ``model/checking/claims.py`` sums up many traces.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from model.checking.accounts import row_cases
from model.checking.claims import COMPLETE, ClaimSet, Judgement, Recording
from model.slack import coverage_claims
from model.slack.evidence import Observation, Truth, observe_trace, truth_of
from model.vocabulary import SlackConfig, Step, Trace, Workload
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.windows import Cleared, Late, Result
from model.windows import claims
from model.windows.accounts import PLACES
from model.windows.claims import (
    LACKING,
    Findings,
    claim,
    count_incomplete_windows,
    every_row,
    is_flushed,
    name_of,
)
from model.windows.exactness_claims import (
    corrections_do_not_wait,
    exactness_claim,
)

StepT = TypeVar("StepT", bound=Step)

Evidence: TypeAlias = claims.Evidence[SlackConfig, Progress]

# ---------------------------------------------------------------------------------------- cases


def _tasks_with_a_delay(evidence: Evidence) -> int:
    truth = evidence.truth
    tasks = range(truth.config.tasks)
    return sum(truth.max_delay_us[task, truth.batches] > 0 for task in tasks)


def _steps(evidence: Evidence, word: type[StepT]) -> Sequence[StepT]:
    return evidence.observed.trace.of(word)


def _judged_with_a_negative_value(evidence: Evidence) -> int:
    windows = evidence.truth.windows
    judged = {(each.task, each.start_us, each.key) for each in _steps(evidence, Judged)}
    return sum(any(arrived.value < 0 for arrived in windows.get(each, ())) for each in judged)


CASES: Mapping[str, Callable[[Evidence], int]] = {
    "late pairs": lambda seen: sum(map(len, seen.observed.late.values())),
    "misses": lambda seen: sum(judged.miss for judged in _steps(seen, Judged)),
    "tasks with a delay": _tasks_with_a_delay,
    "windows": lambda seen: len(seen.truth.windows),
    "judged windows with a negative value": _judged_with_a_negative_value,
    LACKING: lambda seen: count_incomplete_windows(seen.truth),
    **row_cases(lambda seen: seen.accounts, *PLACES),
}
"""Function that counts a case, by its name."""

# --------------------------------------------------------------------------------------- claims


def _is_adaptive(truth: Truth) -> bool:
    return truth.config.control != "fixed"


def _is_conformal(truth: Truth) -> bool:
    return truth.config.control == "conformal"


def _is_in_order(truth: Truth) -> bool:
    """Return whether no arrival of any task was delayed."""
    return not any(truth.max_delay_us.values())


def _in_order_is_never_late(truth: Truth, observed: Observation, findings: Findings) -> None:
    for late in observed.trace.of(Late):
        if (late.task, late.source_id) in truth.deliveries:
            continue  # a forgotten redelivery may be late without a delay
        findings.add(
            late.batch,
            f"Tuple #{late.source_id} was late for the {name_of(truth, late[:3])} although nothing "
            "had been delayed.",
        )


CLAIMS: ClaimSet[Evidence] = ClaimSet(
    (
        exactness_claim("eventual exactness", "late pairs", is_flushed),
        exactness_claim("wrong answers are pending"),
        exactness_claim("each pair once"),
        exactness_claim("exact means all rows"),
        claim(
            "corrections do not wait",
            corrections_do_not_wait,
            ((Late,), (Cleared,), (Progress,)),
            "late pairs",
        ),
        claim(
            "an in-order stream has nothing late",
            _in_order_is_never_late,
            ((Progress, Result),),
            "windows",
            lambda truth: _is_adaptive(truth) and _is_in_order(truth),
        ),
        claim(
            "slack follows alpha",
            coverage_claims.slack_follows_alpha,
            ((Progress,), (Judged, Progress)),
            "tasks with a delay",
            _is_adaptive,
        ),
        claim(
            "what is late came later than the slack",
            coverage_claims.late_is_later_than_the_slack,
            ((Late,), (Result,)),
            "late pairs",
            needs_identities=True,
        ),
        claim(
            "the controller answers for its misses",
            coverage_claims.misses_are_answered_for,
            ((Judged,), (Result,)),
            "misses",
            _is_conformal,
            needs_identities=True,
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

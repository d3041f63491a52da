"""Check promises 3 and 4 of docs/slack.md, about the controller and the clock.

Source: Gibbs, Candes 2021 for the conformal bound (a telescoping sum, true for every input).

Rules of this file:

* Bounds are read from recorded steps; the controller is not computed again.
* Float sums are compared with a tolerance of 1e-9 for each judgement.
"""

from itertools import pairwise

from model.slack.evidence import Observation, Truth
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.windows import Late, Result
from model.windows.claims import Findings, name_of

TOLERANCE = 1e-9

# ------------------------------------------------------------------- promise 4: clock and slack


def alpha_is_a_share(_truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that the factor stays within 0 and 1."""
    for judged in observed.trace.of(Judged):
        if not 0 <= judged.alpha <= 1:
            sentence = f"Judgement {judged.order} of task {judged.task} set alpha to {judged.alpha}"
            findings.add(judged.order, f"{sentence}.")
    for progress in observed.trace.of(Progress):
        if not 0 <= progress.alpha <= 1:
            sentence = f"After batch {progress.batch} alpha of task {progress.task} was"
            findings.add(progress.batch, f"{sentence} {progress.alpha}.")


def slack_is_bounded(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that K is at least 0, at most the largest delay so far, and at most its limit."""
    limit_us = truth.config.max_slack_us
    for step in _steps_with_slack(observed):
        longest_us = truth.max_delay_us.get((step.task, step.batch), 0)
        recorded_us = step.max_delay_us if isinstance(step, Progress) else longest_us
        if recorded_us > longest_us:
            findings.add(
                step.batch,
                f"After batch {step.batch} task {step.task} says that its largest delay was "
                f"{recorded_us} us; it was at most {longest_us} us.",
            )
        bound_us = longest_us if limit_us is None else min(longest_us, limit_us)
        if not 0 <= step.slack_us <= bound_us:
            findings.add(
                step.batch,
                f"In batch {step.batch} the slack of task {step.task} was {step.slack_us} us; "
                f"at most {bound_us} us were needed.",
            )


def watermark_is_monotone(_truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that the watermark of a task never decreases, between batches or between results."""
    for task, clock in observed.clocks.items():
        for before, after in pairwise(clock):
            if after.wm_us < before.wm_us or after.t_max_us < before.t_max_us:
                findings.add(
                    after.batch,
                    f"The clock of task {task} went back in batch {after.batch}.",
                    f"After batch {before.batch}: t_max {before.t_max_us}, wm {before.wm_us}.",
                    f"After batch {after.batch}: t_max {after.t_max_us}, wm {after.wm_us}.",
                )
    at_end = {
        (progress.task, progress.batch): progress.wm_us
        for clock in observed.clocks.values()
        for progress in clock
    }
    for result in observed.trace.of(Result):
        wm_us = at_end.get((result.task, result.batch))
        if wm_us is not None and result.wm_us > wm_us:
            findings.add(
                result.batch,
                f"A result of batch {result.batch} was closed at watermark {result.wm_us}, "
                f"after the batch it is {wm_us}.",
            )


def is_in_order(truth: Truth) -> bool:
    """Return whether no arrival of any task was delayed."""
    return not any(truth.max_delay_us.values())


def in_order_is_never_late(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that without delays the slack is 0 and no tuple is late."""
    for step in _steps_with_slack(observed):
        if step.slack_us != 0:
            findings.add(
                step.batch,
                f"In batch {step.batch} task {step.task} waited {step.slack_us} us "
                "although nothing had been delayed.",
            )
    _nothing_is_late(truth, observed, findings, "although nothing had been delayed")


def has_enough_slack(truth: Truth) -> bool:
    """Return whether a fixed slack covers every delay."""
    config = truth.config
    slack_us = config.fixed_slack_us
    if config.max_slack_us is not None:
        slack_us = min(slack_us, config.max_slack_us)
    return config.control == "fixed" and slack_us >= max(truth.max_delay_us.values(), default=0)


def enough_slack_is_never_late(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that no tuple is late if the slack is not smaller than any delay."""
    _nothing_is_late(truth, observed, findings, "although the slack covers every delay")


def _steps_with_slack(observed: Observation) -> tuple[Result | Progress, ...]:
    return (*observed.trace.of(Result), *observed.trace.of(Progress))


def _nothing_is_late(
    truth: Truth, observed: Observation, findings: Findings, although: str
) -> None:
    for late in observed.trace.of(Late):
        identity = late.task, late.source_id
        if identity in truth.deliveries:  # a forgotten redelivery may be late without a delay
            continue
        findings.add(
            late.batch,
            f"Tuple #{late.source_id} was late for the {name_of(truth, late[:3])} {although}.",
        )


# ---------------------------------------------------------------------- promise 3: the controller


def judgements_are_measured(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that each window is judged once, by its answer and late pairs; too few is a miss."""
    seen: set[tuple[int, int, str]] = set()
    for judged in observed.trace.of(Judged):
        window = judged[2:4]
        results = observed.results.get((judged.task, *window), ())
        n_rcv = results[0].n_rcv if results else 0
        n_late = len(observed.late.get((judged.task, *window), ()))
        total = judged.n_rcv + judged.n_late
        name = name_of(truth, (judged.task, *window))
        number = judged.order
        if (judged.task, *window) in seen:
            findings.add(number, f"The {name} was judged twice.")
        seen.add((judged.task, *window))
        if judged.n_rcv != n_rcv or (
            judged.n_late > n_late and not _has_redelivery(truth, judged.task)
        ):
            findings.add(
                number,
                f"The judgement of the {name} counts {judged.n_rcv} tuples in time and "
                f"{judged.n_late} late; recorded are {n_rcv} and at most {n_late}.",
            )
        if judged.miss != (judged.n_rcv < judged.n_req) or not 0 <= judged.n_req <= total:
            findings.add(
                number,
                f"The judgement of the {name} says miss={judged.miss} with {judged.n_rcv} of "
                f"{judged.n_req} required and {total} known tuples.",
            )


def misses_are_bounded(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that misses stay within the conformal bound on every prefix of the judgements."""
    config = truth.config
    rate, target = config.learning_rate, config.delta / 2
    for task, judgements in _by_task(observed).items():
        misses, clipped, alpha = 0, 0.0, 1.0
        for number, judged in enumerate(judgements, start=1):
            misses += judged.miss
            clipped += max(0.0, alpha + rate * (judged.miss - target) - 1)
            alpha = judged.alpha
            allowed = target * number * rate + (alpha - 1 + clipped)
            if judged.order != number - 1:
                findings.add(number, f"Judgement {number - 1} of task {task} is missing.")
                break
            if misses * rate > allowed + TOLERANCE * number:
                findings.add(
                    number,
                    f"{misses} of the first {number} windows of task {task} missed their "
                    f"requirement; the bound allows {allowed / rate if rate else 0.0:.3f}.",
                    f"Judged last: the {name_of(truth, (task, *judged[2:4]))}, alpha {alpha}.",
                )
                break


def pd_telescopes(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that alpha is 1 + kp * (sum of the errors) + kd * (the last error), but for clipping.

    Amounts clipped at 1 are subtracted, those clipped at 0 added. So this law steers the mean of
    the errors, on every prefix of the judgements.
    """
    config = truth.config
    is_clamped = config.control == "pd-clamped"
    for task, judgements in _by_task(observed).items():
        errors, clipped = 0.0, 0.0
        for number, judged in enumerate(judgements, start=1):
            total = judged.n_rcv + judged.n_late
            required = config.lambda_thr
            if required is None:
                required = judged.n_req / total
            err = required - judged.n_rcv / total
            errors += err
            expected = 1 + config.kp * errors + config.kd * err + clipped
            if is_clamped and not 0 <= expected <= 1:
                clipped += (0 if expected < 0 else 1) - expected
                expected = 0 if expected < 0 else 1
            scale = max(1.0, abs(expected), config.kp * number, config.kd)
            if abs(judged.alpha - expected) > TOLERANCE * number * scale:
                findings.add(
                    number,
                    f"After {number} judgements alpha of task {task} is {judged.alpha}; the "
                    f"errors sum up to {errors:.6f}, which makes it {expected}.",
                )
                break


def _has_redelivery(truth: Truth, task: int) -> bool:
    return any(identity[0] == task for identity in truth.deliveries)


def _by_task(observed: Observation) -> dict[int, list[Judged]]:
    judgements: dict[int, list[Judged]] = {}
    for judged in observed.trace.of(Judged):
        judgements.setdefault(judged.task, []).append(judged)
    return judgements

"""Check promises 3 and 4 of docs/slack.md, about the controller and the clock.

Source: Gibbs, Candes 2021 for the conformal bound (a telescoping sum, true for every input).

Rules of this file:

* Bounds are read from recorded steps; the controller is not computed again.
* Float sums are compared with a tolerance of 1e-9 for each judgement.
"""

from model.slack.evidence import Observation, Start, Truth
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.windows import Late, Result
from model.windows.claims import Findings, name_of

TOLERANCE = 1e-9

# ------------------------------------------------------------------- promise 4: clock and slack


def slack_is_bounded(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that K is at least 0, at most the largest delay so far, and at most its limit.

    At the start K may be what the query asks for.
    """
    limit_us, start = truth.config.max_slack_us, Start(truth, observed)
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
        bound_us = max(bound_us, _start_us(start, step))
        if not 0 <= step.slack_us <= bound_us:
            findings.add(
                step.batch,
                f"In batch {step.batch} the slack of task {step.task} was {step.slack_us} us; "
                f"at most {bound_us} us were needed.",
            )


def is_in_order(truth: Truth) -> bool:
    """Return whether no arrival of any task was delayed."""
    return not any(truth.max_delay_us.values())


def in_order_is_never_late(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that without delays the slack is 0, once the start is over, and no tuple is late."""
    start = Start(truth, observed)
    for step in _steps_with_slack(observed):
        if step.slack_us not in (0, _start_us(start, step)):
            findings.add(
                step.batch,
                f"In batch {step.batch} task {step.task} waited {step.slack_us} us "
                "although nothing had been delayed.",
            )
    for late in observed.trace.of(Late):
        identity = late.task, late.source_id
        if identity in truth.deliveries:  # a forgotten redelivery may be late without a delay
            continue
        findings.add(
            late.batch,
            f"Tuple #{late.source_id} was late for the {name_of(truth, late[:3])} although nothing "
            "had been delayed.",
        )


def _start_us(start: Start, step: Result | Progress) -> int:
    """Return the most that the start may have asked for; the clock behind a batch knows it all."""
    return start.most_us(step.task, step.batch + isinstance(step, Progress))


def _steps_with_slack(observed: Observation) -> tuple[Result | Progress, ...]:
    return (*observed.trace.of(Result), *observed.trace.of(Progress))


# ---------------------------------------------------------------------- promise 3: the controller


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


def _by_task(observed: Observation) -> dict[int, list[Judged]]:
    judgements: dict[int, list[Judged]] = {}
    for judged in observed.trace.of(Judged):
        judgements.setdefault(judged.task, []).append(judged)
    return judgements

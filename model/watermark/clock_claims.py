"""Check promises 1 to 3 of docs/watermark.md, about the clock of a task.

Rules of this file:

* Only recorded steps are compared; no machine runs here. Shares are fractions and stay exact.
* The clocks of all arrivals are needed, unless a claim says otherwise.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

from model.vocabulary.watermark import Clock
from model.vocabulary.windows import Late, Result
from model.watermark.evidence import (
    Moment,
    Observation,
    Truth,
    arrivals_by_task,
    closings,
    moments_of,
    share_of,
)
from model.windows.claims import Findings, name_of


def has_every_clock(truth: Truth) -> bool:
    """Return whether the clock of every accepted arrival is recorded."""
    return truth.config.clocks == "arrivals" and has_own_clocks(truth)


def has_own_clocks(truth: Truth) -> bool:
    """Return whether every task has a watermark of its own."""
    return not truth.config.upstreams


def waits_by_disorder(truth: Truth) -> bool:
    """Return whether calm clusters should make the wait short."""
    return has_every_clock(truth) and truth.config.reading != "fixed"


# ------------------------------------------------------------------------------------ the clock


def watermark_is_near(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that the watermark lies at most the wait, and at most M, behind t_max."""
    limit_us = truth.config.max_wait_us
    for clock in observed.trace.of(Clock):
        behind_us = clock.t_max_us - clock.wm_us
        if not 0 <= behind_us <= min(clock.wait_us, limit_us):
            findings.add(
                clock.seq,
                f"{_after(clock)} the watermark lies {behind_us} us behind {clock.t_max_us}; "
                f"the wait is {clock.wait_us} us, and M is {limit_us} us.",
            )


def clocks_are_monotone(_truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that watermark and largest event time never decrease."""
    for clocks in observed.clocks.values():
        for before, after in pairwise(clocks):
            if after.wm_us < before.wm_us or after.t_max_us < before.t_max_us:
                findings.add(
                    after.seq,
                    f"The clock of task {after.task} went back with arrival {after.seq}.",
                    f"Before: N {before.t_max_us}, watermark {before.wm_us}.",
                    f"After: N {after.t_max_us}, watermark {after.wm_us}.",
                )


def watermark_follows(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that N is the largest event time so far and wm = max(previous wm, N - wait)."""
    for moment in _moments(truth, observed):
        clock, event, before = moment.clock, moment.event, moment.before
        t_max_us, wm_us = event.event_time_us, event.event_time_us - clock.wait_us
        if before is not None:
            t_max_us = max(t_max_us, before.t_max_us)
            wm_us = max(before.wm_us, t_max_us - clock.wait_us)
        if (clock.t_max_us, clock.wm_us) != (t_max_us, wm_us):
            findings.add(
                clock.seq,
                f"{_after(clock)} N is {clock.t_max_us} and the watermark {clock.wm_us}; with a "
                f"wait of {clock.wait_us} us they should be {t_max_us} and {wm_us}.",
            )


def every_arrival_has_a_clock(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that each accepted arrival, and no other, has a clock, in its batch.

    The recorded watermark before a redelivery tells whether it is accepted.
    """
    config = truth.config
    batches = truth.workload.batches()
    batch_of = {event.seq: n for n, events in enumerate(batches) for event in events}
    recorded = {(clock.task, clock.seq): clock for clock in observed.trace.of(Clock)}
    expected: set[tuple[int, int]] = set()
    for task, events in arrivals_by_task(truth).items():
        accepted_us: dict[int, int] = {}
        wm_us: int | None = None
        for event in events:
            first_us = accepted_us.get(event.source_id)
            if (
                first_us is not None
                and wm_us is not None
                and config.dedup
                and config.windows.last_end_us(first_us) + config.feedback > wm_us
            ):
                continue
            accepted_us.setdefault(event.source_id, event.event_time_us)
            expected.add((task, event.seq))
            clock = recorded.get((task, event.seq))
            if clock is None:
                findings.add(event.seq, f"Arrival {event.seq} has no clock in task {task}.")
                break
            if clock.batch != batch_of[event.seq]:
                findings.add(event.seq, f"Arrival {event.seq} has a clock in batch {clock.batch}.")
            wm_us = clock.wm_us
        else:
            continue
        return
    for task, seq in sorted(recorded.keys() - expected):
        findings.add(seq, f"Arrival {seq} has a clock in task {task} and was not accepted there.")


# ---------------------------------------------------------------------------------- the disorder


def inversions_are_counted(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that ``inv`` is the number of pairs out of order among the last k arrivals."""
    for moment in _moments(truth, observed):
        if moment.clock.inv != moment.inv:
            findings.add(
                moment.clock.seq,
                f"{_after(moment.clock)} {moment.clock.inv} pairs are recorded as out of "
                f"order; the last {moment.n} event times have {moment.inv}.",
            )


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


def calm_is_not_waited_for(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that after a cluster in order the watermark is the largest event time."""
    for moment in _moments(truth, observed):
        clock = moment.clock
        if moment.n > 1 and moment.inv == 0 and (clock.wait_us or clock.wm_us != clock.t_max_us):
            findings.add(
                clock.seq,
                f"{_after(clock)} the last {moment.n} event times are in order, and the task "
                f"waits {clock.wait_us} us.",
                _describe(moment),
            )


def reversal_is_waited_for(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that the wait after a reversed cluster is M."""
    limit_us = truth.config.max_wait_us
    for moment in _moments(truth, observed):
        if moment.n > 1 and moment.disorder == 1 and moment.clock.wait_us != limit_us:
            findings.add(
                moment.clock.seq,
                f"{_after(moment.clock)} the last {moment.n} event times are reversed, and the "
                f"task waits {moment.clock.wait_us} us of {limit_us}.",
                _describe(moment),
            )


def waits_are_those_of_the_reading(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that the wait is the share of M that section 2 states, rounded down."""
    config = truth.config
    for moment in _moments(truth, observed):
        share = share_of(config.reading, moment.disorder)
        wait_us = config.max_wait_us * share.numerator // share.denominator
        if moment.clock.wait_us != wait_us:
            findings.add(
                moment.clock.seq,
                f"{_after(moment.clock)} the task waits {moment.clock.wait_us} us; with "
                f"{moment.inv} pairs out of order it should be {wait_us}.",
            )


# ----------------------------------------------------------------------------------- the windows


def windows_close_at_the_watermark(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that a window is answered at the first arrival with ``end <= wm``, or at the flush."""
    check_answers(truth, observed, findings, closings(observed), "Arrival {0.seq}")


def check_answers(
    truth: Truth,
    observed: Observation,
    findings: Findings,
    closing_of: Callable[[int, int], Clock | None],
    cause: str,
) -> None:
    """Check that answers say what closed their windows, or were given by the flush.

    ``closing_of(task, end_us)`` returns what closed a window, and ``cause`` names it.
    """
    for result in observed.trace.of(Result):
        end_us = result.start_us + truth.config.size_us
        closing = closing_of(result.task, end_us)
        name = name_of(truth, result[:3])
        if closing is None:
            if result.batch != truth.batches or not truth.flush or result.wm_us < end_us:
                findings.add(result.batch, f"The {name} was answered before it was closed.")
        elif (result.batch, result.slack_us, result.wm_us) != (
            closing.batch,
            closing.wait_us,
            closing.wm_us,
        ):
            findings.add(
                result.batch,
                f"{cause.format(closing)} closed the {name}; its answer says otherwise.",
                f"The clock: batch {closing.batch}, wait {closing.wait_us}, wm {closing.wm_us}.",
                f"The answer: batch {result.batch}, wait {result.slack_us}, wm {result.wm_us}.",
            )


def late_means_closed(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that a pair is late only if the watermark had reached the end of the window."""
    events = {event.seq: event for event in truth.workload.arrivals}
    reached_us: dict[tuple[int, int, int], int] = {}
    for clock in observed.trace.of(Clock):
        if clock.seq in events:
            reached_us[clock.task, events[clock.seq].source_id, clock.batch] = clock.wm_us
    for late in observed.trace.of(Late):
        wm_us = reached_us.get((late.task, late.source_id, late.batch))
        if wm_us is None or late.start_us + truth.config.size_us > wm_us:
            why = "was not accepted then" if wm_us is None else f"found the watermark at {wm_us}"
            name = name_of(truth, late[:3])
            findings.add(
                late.batch, f"Tuple #{late.source_id} was called late for the {name} and {why}."
            )


def _moments(truth: Truth, observed: Observation) -> Iterator[Moment]:
    for moments in moments_of(truth, observed).values():
        yield from moments


def _after(clock: Clock) -> str:
    return f"After arrival {clock.seq} of task {clock.task}"


def _describe(moment: Moment) -> str:
    return (
        f"Arrival {moment.clock.seq} (event time {moment.event.event_time_us}): {moment.inv} of "
        f"{moment.n * (moment.n - 1) // 2} pairs out of order, wait {moment.clock.wait_us} us."
    )

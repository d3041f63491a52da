"""Judge the coverage of first answers from the arrivals themselves (docs/slack.md, section 7).

Source: Gibbs, Candes 2021 for the rate of misses; docs/slack.md, section 4, for what it leaves out.

Rules of this file:

* Tuples, delays and misses are counted from the arrivals. The trace contributes only alpha, the
  slack and the answers.
* The conformal inequality alone is an identity of alpha: it holds for an operator that never waits,
  because misses at alpha = 1 do not count in it. Here, every such miss needs an excuse.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil, floor, inf

from model.slack.evidence import Observation, Start, Truth
from model.vocabulary import SlackConfig
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.windows import Late, Result
from model.windows.aggregates import as_written
from model.windows.claims import Findings, name_of
from model.windows.evidence import WindowId

TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class ArrivalClock:
    """The clock of a task as its arrivals alone determine it."""

    reached_us: Sequence[int]
    """Largest event time so far, each value once, ascending."""
    longest_us: Sequence[int]
    """Largest delay that counted when each of these values was reached first."""
    longest_at_end_us: Mapping[int, int]
    """Largest delay that counts at the end of a batch."""
    longest_within_us: Mapping[int, int]
    """Largest delay that counted at any arrival of a batch."""
    delay_us: Mapping[int, int]
    """Delay of a tuple when it arrived first, by identity."""

    def longest_at(self, t_max_us: int) -> int:
        """Return the largest delay when an event time was reached first; 0 if it never was."""
        position = bisect_left(self.reached_us, t_max_us)
        return self.longest_us[position] if position < len(self.reached_us) else 0


def clocks_of(truth: Truth) -> dict[int, ArrivalClock]:
    """Return the clock of each task from its accepted arrivals."""
    return {task: _clock(truth, task) for task in truth.arrived}


def _clock(truth: Truth, task: int) -> ArrivalClock:
    reached_us: list[int] = []
    longest_us: list[int] = []
    at_end_us: dict[int, int] = {}
    within_us: dict[int, int] = {}
    delay_us: dict[int, int] = {}
    counted = _CountedDelays(truth.config)
    for arrived in truth.arrived[task]:
        ts_us = arrived.event_time_us
        clock_us = max(ts_us, reached_us[-1]) if reached_us else ts_us
        delay_us[arrived.source_id] = clock_us - ts_us
        longest = counted.add(clock_us, clock_us - ts_us)
        if not reached_us or ts_us > reached_us[-1]:
            reached_us.append(ts_us)
            longest_us.append(longest)
        at_end_us[arrived.batch] = longest
        within_us[arrived.batch] = max(longest, within_us.get(arrived.batch, 0))
    for batch in range(truth.batches + 1):
        at_end_us.setdefault(batch, at_end_us.get(batch - 1, 0))
        within_us.setdefault(batch, at_end_us[batch])
    return ArrivalClock(reached_us, longest_us, at_end_us, within_us, delay_us)


class _CountedDelays:
    """The delays of a task that count for its slack: recent ones under ``aq``, else all."""

    def __init__(self, config: SlackConfig) -> None:
        self._recent_us = config.recent_us if config.control == "aq" else inf
        self._largest_first: list[tuple[int, int]] = []
        """Negated delays, each with the clock at which it was seen, as a heap."""

    def add(self, clock_us: int, delay_us: int) -> int:
        """Return the largest delay that counts, after one more at this clock."""
        heap = self._largest_first
        heappush(heap, (-delay_us, clock_us))
        while clock_us - heap[0][1] > self._recent_us:
            heappop(heap)
        return -heap[0][0]


# ------------------------------------------------------------------------- the slack obeys alpha


def slack_follows_alpha(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Find clocks and results whose slack is not alpha times the largest delay that counts.

    At the start it is no less than the query asks for.
    """
    clocks, alphas, start = clocks_of(truth), _alphas(observed), Start(truth, observed)
    # A redelivery moves the clock only if its identity is forgotten.
    unsure = {task for task, _ in truth.deliveries}
    for progress in observed.trace.of(Progress):
        place = progress.task, progress.batch
        longest_us = clocks[progress.task].longest_at_end_us[progress.batch]
        most_us = truth.max_delay_us[place] if progress.task in unsure else longest_us
        low_us, high_us = (
            _slack_us(truth.config, progress.alpha, each) for each in (longest_us, most_us)
        )
        least_us = start.least_us(progress.task, progress.batch)
        low_us = max(low_us, least_us)
        high_us = max(high_us, start.most_us(progress.task, progress.batch + 1))
        if not low_us <= progress.slack_us <= high_us:
            findings.add(
                progress.batch,
                f"After batch {progress.batch} task {progress.task} waits {progress.slack_us} us; "
                f"alpha {progress.alpha} of its largest delay, {longest_us} us, is {low_us}, if no "
                f"less than {least_us}.",
            )
    for result in observed.trace.of(Result):
        if result.batch == truth.batches:
            continue  # the flush waits for nothing
        clock = clocks[result.task]
        # Without a clock of its batch nothing is known about alpha.
        least, most = alphas.get((result.task, result.batch), (0.0, 1.0))
        least_us = clock.longest_at(result.wm_us + result.slack_us)
        low_us = _slack_us(truth.config, least, least_us)
        low_us = max(low_us, start.least_us(result.task, result.batch))
        most_us = clock.longest_within_us[result.batch]
        if result.task in unsure:
            most_us = truth.max_delay_us[result.task, result.batch]
        high_us = _slack_us(truth.config, most, most_us)
        high_us = max(high_us, start.most_us(result.task, result.batch))
        if not low_us <= result.slack_us <= high_us:
            findings.add(
                result.batch,
                f"The {name_of(truth, result[:3])} was closed in batch {result.batch} with a slack "
                f"of {result.slack_us} us; with alpha from {least} to {most} it is at least "
                f"{low_us} and at most {high_us}.",
            )


def _alphas(observed: Observation) -> dict[tuple[int, int], tuple[float, float]]:
    """Return the least and the largest factor that may have been in force in a task's batch."""
    judged: dict[tuple[int, int], list[float]] = {}
    for step in sorted(observed.trace.of(Judged), key=lambda step: step.order):
        judged.setdefault((step.task, step.batch), []).append(step.alpha)
    found: dict[tuple[int, int], tuple[float, float]] = {}
    for task, clock in observed.clocks.items():
        alpha = 1.0
        for tick in clock:
            possible = [alpha, *judged.get((task, tick.batch), ())]
            found[task, tick.batch] = min(possible), max(possible)
            alpha = tick.alpha
    return found


def _slack_us(config: SlackConfig, alpha: float, longest_us: int) -> int:
    """Return K by docs/slack.md, section 2."""
    # Beyond 2^53 the product may be rounded up.
    slack_us = min(longest_us, floor(min(1.0, max(0.0, alpha)) * longest_us))
    return slack_us if config.max_slack_us is None else min(slack_us, config.max_slack_us)


def late_is_later_than_the_slack(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Find late tuples that came within the slack with which their window was closed."""
    clocks = clocks_of(truth)
    for late in observed.trace.of(Late):
        if (late.task, late.source_id) in truth.deliveries:
            continue  # the trace does not show which delivery was late
        results = observed.results.get(late[:3])
        delay_us = clocks[late.task].delay_us.get(late.source_id)
        if results and delay_us is not None and delay_us <= results[0].slack_us:
            findings.add(
                late.batch,
                f"Tuple #{late.source_id} came {delay_us} us behind the largest event time and was "
                f"late for the {name_of(truth, late[:3])}, which claims a slack of "
                f"{results[0].slack_us} us.",
            )


# -------------------------------------------------------------------------- misses are answered for


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Judged windows of a task, and how many were answered with fewer tuples than required."""

    task: int
    judged: int
    below: int
    """Windows whose first answer had fewer tuples than required, counted from the arrivals."""
    unknowable: int
    """Windows of ``below`` that even alpha = 1 could not have kept, by the delays known then."""
    on_its_way: int
    """Windows of ``below`` that closed before the controller had heard of earlier misses."""
    after_judgement: int
    """Windows of ``below`` that lacked nothing when they were judged."""

    @property
    def answered_for(self) -> int:
        """Number of windows below the requirement for which the controller is responsible."""
        return self.below - self.unknowable - self.on_its_way - self.after_judgement


def shortfalls(truth: Truth, observed: Observation) -> tuple[Shortfall, ...]:
    """Count the judged windows that were answered with too few tuples, by task."""
    clocks = clocks_of(truth)
    by_task: dict[int, list[Judged]] = {}
    for judged in sorted(observed.trace.of(Judged), key=lambda step: step.order):
        by_task.setdefault(judged.task, []).append(judged)
    return tuple(
        [_shortfall(truth, observed, clocks[task], each) for task, each in by_task.items()]
    )


def _shortfall(
    truth: Truth, observed: Observation, clock: ArrivalClock, judgements: Sequence[Judged]
) -> Shortfall:
    rate, target = truth.config.learning_rate, truth.config.delta / 2
    below = unknowable = on_its_way = after_judgement = 0
    alpha = 1.0
    for judged in judgements:
        window: WindowId = (judged.task, judged.start_us, judged.key)
        n = len(truth.windows.get(window, ()))
        results = observed.results.get(window)
        n_rcv = results[0].n_rcv if results else 0
        is_below = n_rcv < _required(truth.config, judged, n)
        is_clipped = alpha + rate * (judged.miss - target) > 1 + TOLERANCE
        alpha = judged.alpha
        below += is_below
        if is_below and not judged.miss:
            after_judgement += 1
        elif is_below and is_clipped:
            longest_us = clock.longest_at(results[0].wm_us + results[0].slack_us) if results else 0
            most_us = _slack_us(truth.config, 1.0, longest_us)
            had_most_slack = bool(results and results[0].slack_us >= most_us)
            unknowable += had_most_slack
            on_its_way += not had_most_slack
    return Shortfall(
        judgements[0].task, len(judgements), below, unknowable, on_its_way, after_judgement
    )


def _required(config: SlackConfig, judged: Judged, n: int) -> int:
    """Return how many of a window's n tuples its first answer had to contain."""
    if config.lambda_thr is None:
        return judged.n_req
    share: Fraction = as_written(config.lambda_thr)
    return ceil(share * n)


def misses_are_answered_for(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Find tasks that fell below the required coverage more often than delta/2, without excuse."""
    target = truth.config.delta / 2
    for task in shortfalls(truth, observed):
        allowed = target * task.judged
        if task.answered_for > allowed + TOLERANCE * task.judged:
            findings.add(
                task.judged,
                f"Of {task.judged} judged windows of task {task.task} {task.below} were "
                f"answered with fewer tuples than required; {task.unknowable} lacked tuples later "
                f"than any before, {task.on_its_way} closed before the controller heard of a "
                f"miss, {task.after_judgement} lacked nothing when they were judged. That leaves "
                f"{task.answered_for}; allowed are {allowed:g}.",
            )

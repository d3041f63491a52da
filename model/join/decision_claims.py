"""The promises about decisions: what was shed, what a resized chain holds, what a controller says.

Source: docs/join.md, section 14.

Rules of this file:

* Shedding is judged on answers, resizing on recorded steps, a controller on its log.
* ``claims`` judges the first two with the other promises of a trace.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from math import isfinite
from operator import attrgetter
from typing import NamedTuple

from model.checking.claims import Claim, ClaimSet, Judgement
from model.join.control import decide, decision_at, draw
from model.join.oracle import Admission
from model.vocabulary import Event, JoinConfig, Trace, Workload
from model.vocabulary.join import (
    NO_WATERMARK_US,
    REASON_SHED,
    STREAMS,
    Admit,
    Decision,
    Drop,
    Forward,
    Quiet,
    R,
    Rejected,
    S,
)
from model.vocabulary.join_load import LoadRules, LoadState, Measured

SHED = "what is shed is what the decisions ask for"
RESIZED = "workers come and go as decided, and no tuple held is lost or doubled"
CONTROLLED = "decisions are those of the rules for what was measured"

# --------------------------------------------------------------------------------------- shedding


def is_shed(config: JoinConfig, epoch: int, event: Event) -> bool:
    """Return whether the decision in force sheds an arrival of an epoch."""
    share = decision_at(config, epoch).share
    return bool(share) and draw(event.stream, event.seq) < share


def against_shed(workload: Workload, config: JoinConfig, trace: Trace) -> Iterator[str]:
    """Yield arrivals that are shed without a decision, or are not shed in spite of one."""
    shed = Counter((each.stream, each.seq) for each in trace.of(Rejected) if _was_shed(each))
    for epoch, batch in enumerate(workload.batches()):
        share = decision_at(config, epoch).share
        for event in batch:
            times = shed.pop((event.stream, event.seq), 0)
            if times != is_shed(config, epoch, event):
                at = f"{event.stream} #{event.source_id} (arrival {event.seq}, epoch {epoch})"
                found = "shed" if times == 1 else f"shed {times} times" if times else "not shed"
                chance = draw(event.stream, event.seq)
                yield f"{at} is {found}; its draw is {chance:.4f} and the share {share:g}."
    for stream, seq in sorted(shed):
        yield f"Arrival {seq} of {stream} is shed, and there is no such arrival."


def _was_shed(rejected: Rejected) -> bool:
    return rejected.reason == REASON_SHED


def shed_arrivals(admitted: Admission) -> int:
    """Return how many arrivals are shed."""
    return sum(map(_was_shed, admitted.rejected))


def shed_and_admitted(admitted: Admission) -> int:
    """Return how many shed arrivals are of a tuple that another arrival brings in."""
    known = {
        (stream, event.source_id) for stream in STREAMS for event in admitted.streams[stream].tuples
    }
    return sum(
        _was_shed(each) and (each.stream, each.source_id) in known for each in admitted.rejected
    )


def shed_and_late(workload: Workload, admitted: Admission) -> int:
    """Return how many shed arrivals would be rejected otherwise: late, or not finite."""
    return sum(
        event.event_time_us < wm_us or not isfinite(event.value)
        for event, wm_us in _shed_events(workload, admitted)
    )


def shed_ahead(workload: Workload, config: JoinConfig, admitted: Admission) -> int:
    """Return how many shed arrivals would move the watermark of their stream."""
    late_us = config.lateness_us
    if late_us is None:
        return 0
    return sum(
        event.event_time_us - late_us > wm_us for event, wm_us in _shed_events(workload, admitted)
    )


def _shed_events(workload: Workload, admitted: Admission) -> Iterator[tuple[Event, int]]:
    """Yield the shed arrivals with the watermark that their stream had."""
    shed = {(each.stream, each.seq) for each in admitted.rejected if _was_shed(each)}
    for event in workload.arrivals if shed else ():
        if (event.stream, event.seq) in shed:
            stream = admitted.streams[event.stream]
            n = bisect_right(stream.tuples, event.seq, key=attrgetter("seq"))
            yield event, stream.wm_us[n - 1] if n else NO_WATERMARK_US


# --------------------------------------------------------------------------------------- resizing


def changes(workload: Workload, config: JoinConfig) -> list[tuple[int, int, int]]:
    """Return the epochs that begin with other workers: epoch, workers before and from then on."""
    epochs = sum(1 for _ in workload.batches()) + workload.flush
    workers = [decision_at(config, epoch).workers for epoch in range(epochs)]
    return [
        (epoch, one, other)
        for epoch, (one, other) in enumerate(pairwise(workers), start=1)
        if one != other
    ]


class _EpochSteps(NamedTuple):
    """Sums over the recorded steps of one epoch."""

    workers: int
    moved: Counter[str]
    """Tuples admitted less those dropped, by stream."""
    held: Counter[str]
    """Tuples held at the end, by stream."""
    largest: int
    """Tuples of the largest block."""


def _epochs_of(trace: Trace) -> Iterator[tuple[int, _EpochSteps]]:
    """Yield the epochs of a recording."""
    steps: list[Admit | Drop | Forward | Quiet] = [
        *trace.of(Admit),
        *trace.of(Drop),
        *trace.of(Forward),
        *trace.of(Quiet),
    ]
    steps.sort(key=attrgetter("epoch"))
    for epoch, group in groupby(steps, attrgetter("epoch")):
        moved, held, workers, largest = Counter[str](), Counter[str](), set[int](), 0
        for step in group:
            workers.add(step.worker)
            if isinstance(step, Quiet):
                held[R] += step.r_held
                held[S] += step.s_held
            elif isinstance(step, Forward):
                largest = max(largest, step.tuples)
            else:
                moved[step.stream] += step.tuples if isinstance(step, Admit) else -step.tuples
        yield epoch, _EpochSteps(len(workers), moved, held, largest)


def against_resized(config: JoinConfig, trace: Trace) -> Iterator[str]:
    """Yield epochs with other workers, larger blocks, or more or fewer tuples than there can be."""
    before = Counter[str]()
    for epoch, found in _epochs_of(trace):
        decided = decision_at(config, epoch)
        if found.workers != decided.workers:
            yield f"Epoch {epoch} has {found.workers} workers, not {decided.workers}."
        if found.largest > decided.block_size:
            yield f"Epoch {epoch} has a block of {found.largest}, above {decided.block_size}."
        for stream in STREAMS:
            expected = before[stream] + found.moved[stream]
            if found.held[stream] != expected:
                yield (
                    f"After epoch {epoch} {found.held[stream]} tuples of {stream} are held, not"
                    f" {expected}: {before[stream]} from before, and what came or was dropped."
                )
        before = found.held


def held_at_changes(workload: Workload, config: JoinConfig, trace: Trace) -> int:
    """Return how many tuples were held when workers came or went."""
    before = {epoch - 1 for epoch, _, _ in changes(workload, config)}
    return sum(step.r_held + step.s_held for step in trace.of(Quiet) if step.epoch in before)


# ----------------------------------------------------------------------------------- controllers


class Logged(NamedTuple):
    """One step of a controller: what was measured, and what followed from it."""

    measured: Measured
    state: LoadState
    decision: Decision


class ControlLog(NamedTuple):
    """The steps of a controller."""

    rules: LoadRules
    start: LoadState
    steps: Sequence[Logged]

    def states(self) -> Iterator[tuple[LoadState, Logged]]:
        """Yield each step with the state before it."""
        return zip([self.start, *(step.state for step in self.steps)], self.steps, strict=False)


def _against_controlled(log: ControlLog) -> Iterator[str]:
    for before, (measured, state, decision) in log.states():
        expected = decide(log.rules, before, measured)
        for found, wanted in zip((decision, state), reversed(expected), strict=True):
            if found != wanted:
                yield f"After epoch {measured.epoch} the rules ask for {wanted}, not {found}."


def _more_workers(log: ControlLog) -> int:
    return sum(step.state.workers > before.workers for before, step in log.states())


def _fewer_workers(log: ControlLog) -> int:
    return sum(step.state.workers < before.workers for before, step in log.states())


def _waits(log: ControlLog) -> int:
    """Return how often a utilisation was too high or too low, and not yet for long enough."""
    return sum(
        step.state.high_since_us is not None or step.state.low_since_us is not None
        for step in log.steps
    )


def _smaller_blocks(log: ControlLog) -> int:
    return sum(step.decision.block_size < log.rules.block_size for step in log.steps)


def _held_shares(log: ControlLog) -> int:
    """Return how often shedding went on at or below tau1."""
    return sum(
        step.decision.share > 0 and step.state.smoothed <= log.rules.tau1 for step in log.steps
    )


LOG_CLAIMS: ClaimSet[ControlLog] = ClaimSet(
    (Claim(CONTROLLED, "decisions", _against_controlled),),
    {
        "decisions": lambda log: len(log.steps),
        "more workers": _more_workers,
        "fewer workers": _fewer_workers,
        "moments too high or too low, not yet for long": _waits,
        "shares that are shed": lambda log: sum(step.decision.share > 0 for step in log.steps),
        "shares that are shed at or below tau1": _held_shares,
        "smaller blocks": _smaller_blocks,
    },
)


def judge_log(log: ControlLog) -> Judgement:
    """Judge the decisions of a controller by its rules, each from the state before it."""
    return LOG_CLAIMS.judge(log)

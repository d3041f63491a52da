"""The promise about silent streams (docs/join.md, sections 2 and 10), judged on any trace.

Rules of this file:

* Floors are found from whole epochs by their definition, not from one epoch to the next.
* What was late in a trace is read from the trace; only event times and epochs come from elsewhere.
"""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import NamedTuple

from model.join.control import decision_at, draw
from model.vocabulary import Event, JoinConfig, Trace, Workload
from model.vocabulary.join import NO_WATERMARK_US, REASON_LATE, STREAMS, Rejected

SILENCE = "a silent stream follows the other one, and makes nothing else late"


class Accepted(NamedTuple):
    """An arrival that is neither shed nor rejected as not finite."""

    event: Event
    floor_us: int
    """Floor of its stream in its epoch."""
    own_us: int
    """Watermark of its stream without any floor."""
    is_late: bool


def accepted(workload: Workload, config: JoinConfig, trace: Trace) -> Iterator[Accepted]:
    """Yield the arrivals for which silence may count; none without ``idle_after_us``."""
    if config.idle_after_us is None:
        return
    late = {(r.stream, r.seq) for r in trace.of(Rejected) if r.reason == REASON_LATE}
    epochs: list[Sequence[Event]] = []
    own_us = dict.fromkeys(STREAMS, NO_WATERMARK_US)
    admitted: list[Sequence[Event]] = []
    for number, batch in enumerate(workload.batches()):
        share = decision_at(config, number).share
        epochs.append([e for e in batch if isfinite(e.value) and draw(e.stream, e.seq) >= share])
        floors_us = {each: _floor_us(each, config, epochs[:number], admitted) for each in STREAMS}
        let_in = []
        for event in epochs[number]:
            stream, at_us = event.stream, event.event_time_us
            is_late = (stream, event.seq) in late
            yield Accepted(event, floors_us[stream], own_us[stream], is_late)
            if not is_late:
                let_in.append(event)
                own_us[stream] = max(own_us[stream], at_us - (config.lateness_us or 0))
        admitted.append(let_in)


def _floor_us(
    stream: str,
    config: JoinConfig,
    epochs: Sequence[Sequence[Event]],
    admitted: Sequence[Sequence[Event]],
) -> int:
    """Return the floor of a stream after these epochs."""
    idle_after_us, lateness_us = config.idle_after_us or 0, config.lateness_us or 0
    floor_us = NO_WATERMARK_US
    for number in range(1, len(epochs) + 1):
        others_us = [_times_us(stream, admitted[: n + 1]) for n in range(number)]
        alive = [n for n in range(number) if any(e.stream == stream for e in epochs[n])]
        there = [n for n in range(number) if others_us[n]]
        if there:
            mark_us = max(others_us[max([there[0], *alive[-1:]])])
            latest_us = max(others_us[-1])
            if latest_us - mark_us > idle_after_us:
                floor_us = max(floor_us, latest_us - lateness_us - idle_after_us)
    return floor_us


def _times_us(stream: str, admitted: Sequence[Sequence[Event]]) -> list[int]:
    """Return the event times of the other stream."""
    return [each.event_time_us for events in admitted for each in events if each.stream != stream]


def against_silence(workload: Workload, config: JoinConfig, trace: Trace) -> Iterator[str]:
    """Yield arrivals on the wrong side of a floor."""
    for event, floor_us, own_us, is_late in accepted(workload, config, trace):
        at_us = event.event_time_us
        name = f"{event.stream} #{event.source_id} (arrival {event.seq}) at {at_us:,} us"
        if is_late and at_us >= max(floor_us, own_us):
            yield f"{name} is late, above the floor of its stream at {floor_us:,} us."
        if not is_late and at_us < floor_us:
            yield f"{name} is not late, below the floor of its stream at {floor_us:,} us."


def late_by_a_floor(workload: Workload, config: JoinConfig, trace: Trace) -> int:
    """Return how many arrivals only a floor makes late."""
    return sum(
        each.is_late and each.event.event_time_us >= each.own_us
        for each in accepted(workload, config, trace)
    )


def let_in_above_a_floor(workload: Workload, config: JoinConfig, trace: Trace) -> int:
    """Return how many arrivals of a stream come in again after a floor rose above its watermark."""
    return sum(
        not each.is_late and each.floor_us > each.own_us
        for each in accepted(workload, config, trace)
    )

"""The part of a long workload that can be computed naively, and what is known of results by it.

Source: docs/script.md, sections 5 and 10: what is known in part stays, and no result depends on
tuples with a later stamp.

Rules of this file:

* With a lateness the part is what has come first, for that decides what is late. Without one
  nothing is known before the end, so it is what has the earliest event times.
"""

from typing import NamedTuple

from model.vocabulary import ScriptConfig, Step, Trace, Workload
from model.vocabulary.script import END_US, MILLISECOND_US, Rejected, Result, Undefined


class Begun(NamedTuple):
    """A part of a workload, or all of it."""

    workload: Workload
    is_whole: bool
    until_us: int = END_US
    """What has a stamp below this has it in the whole workload, too."""

    def of(self, meaning: Trace) -> Trace:
        """Of what the part means, that which the whole means, too."""
        if self.is_whole:
            return meaning
        kept = (step for step in meaning.steps() if _stamp_us(step) < self.until_us)
        return Trace(meaning.producer, kept)


def begin(workload: Workload, most: int | None) -> Begun:
    """The part with so many arrivals, at most."""
    arrivals = workload.arrivals
    if most is None or len(arrivals) <= most:
        return Begun(workload, is_whole=True)
    if ScriptConfig.from_json(workload.config).lateness_us is not None:
        return Begun(workload.with_(arrivals=arrivals[:most], cuts=(), flush=False), is_whole=False)
    times_us = sorted(event.event_time_us for event in arrivals)
    # Windows end at whole milliseconds.
    until_us = times_us[most] // MILLISECOND_US * MILLISECOND_US
    kept = tuple(event for event in arrivals if event.event_time_us < until_us)
    return Begun(workload.with_(arrivals=kept, cuts=()), is_whole=False, until_us=until_us)


def known_of(part: Workload, expected: Trace, trace: Trace) -> Trace:
    """Of a trace of the whole, that which the expected steps of a part speak of."""
    last_us: dict[tuple[str, str], int] = {}
    steps: list[Result | Undefined] = [*expected.of(Result), *expected.of(Undefined)]
    for step in steps:
        name = step.workflow, step.name
        last_us[name] = max(step.ts_us, last_us.get(name, -1))
    seqs = {event.seq for event in part.arrivals}
    return Trace(trace.producer, (s for s in trace.steps() if _is_spoken_of(s, last_us, seqs)))


def _is_spoken_of(step: Step, last_us: dict[tuple[str, str], int], seqs: set[int]) -> bool:
    if isinstance(step, Result | Undefined):
        return step.ts_us <= last_us.get((step.workflow, step.name), -1)
    return isinstance(step, Rejected) and step.seq in seqs


def _stamp_us(step: Step) -> int:
    return step.ts_us if isinstance(step, Result | Undefined) else -1

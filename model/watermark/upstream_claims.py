"""Check the promises of docs/watermark.md, section 11, about watermarks from upstream.

Rules of this file:

* Only recorded steps are compared; no machine runs here. Disorder is counted again.
* Passings are judged by the arrivals, insertions by the passings, windows by the insertions.
"""

from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate
from math import inf

from model.vocabulary import Event, task_of
from model.vocabulary.watermark import Clock, Inserted, Passing
from model.vocabulary.windows import Late
from model.watermark.clock_claims import check_answers
from model.watermark.evidence import Observation, Truth, inversions, is_rejected, share_of
from model.windows.claims import Findings, name_of


def has_upstreams(truth: Truth) -> bool:
    """Return whether watermarks come from upstream."""
    return truth.config.upstreams > 0


def passings_follow_the_disorder(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check the clock of every upstream operator after each arrival that passes it."""
    recorded = {step.seq: step for step in observed.trace.of(Passing)}
    expected = {step.seq: step for step in _passings(truth)}
    for seq in sorted(recorded.keys() | expected.keys()):
        found, right = recorded.get(seq), expected.get(seq)
        if found != right:
            findings.add(seq, f"The passing of arrival {seq} should be {right}, not {found}.")


def _passings(truth: Truth) -> Iterator[Passing]:
    config = truth.config
    by_operator: dict[int, list[tuple[int, Event]]] = {}
    for batch, events in enumerate(truth.workload.batches()):
        for event in events:
            if not is_rejected(config, event):
                number = task_of(event.key, config.upstreams)
                by_operator.setdefault(number, []).append((batch, event))
    for number, passed in by_operator.items():
        times_us = [event.event_time_us for _, event in passed]
        counted = inversions(times_us, config.k)
        latest_us = list(accumulate(times_us, max))
        wm_us = None
        for place, (batch, event) in enumerate(passed):
            n, inv = min(place + 1, config.k), counted[place]
            disorder = Fraction(inv, n * (n - 1) // 2) if n > 1 else Fraction(1)
            wait_us = int(config.max_wait_us * share_of(config.reading, disorder))
            behind_us = latest_us[place] - wait_us
            wm_us = behind_us if wm_us is None else max(wm_us, behind_us)
            yield Passing(number, event.seq, batch, latest_us[place], inv, wait_us, wm_us)


def may_be_idle(truth: Truth) -> bool:
    """Return whether operators that are silent for ``idle_after_us`` hold nothing back."""
    return has_upstreams(truth) and truth.config.idle_after_us is not None


def count_past_idle(truth: Truth, observed: Observation) -> int:
    """Return the number of insertions that are due while an operator is idle."""
    return sum(idle > 0 for _, idle in _insertions(truth, observed))


def the_least_is_inserted(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that each due insertion is the least watermark of the awake operators, if it rose."""
    recorded = {step.seq: step for step in observed.trace.of(Inserted)}
    expected = {step.seq: step for step, _ in _insertions(truth, observed)}
    for seq in sorted(recorded.keys() | expected.keys()):
        found, right = recorded.get(seq), expected.get(seq)
        if found != right:
            findings.add(seq, f"At arrival {seq} the insertion should be {right}, not {found}.")


def _insertions(truth: Truth, observed: Observation) -> Iterator[tuple[Inserted, int]]:
    """Yield each insertion due by the recorded passings, with the number of idle operators."""
    config, period_us = truth.config, truth.config.insert_every_us
    limit_us = inf if config.idle_after_us is None else config.idle_after_us
    passings = {step.seq: step for step in observed.trace.of(Passing)}
    latest: dict[int, tuple[int, Passing]] = {}
    first_us: int | None = None
    arrived_us: int | None = None
    inserted_us: int | None = None
    for batch, events in enumerate(truth.workload.batches()):
        for event in events:
            passing = passings.get(event.seq)
            if passing is None:
                continue
            is_due = not period_us or (
                arrived_us is not None and event.arrival_us // period_us > arrived_us // period_us
            )
            now_us = event.arrival_us if arrived_us is None else max(event.arrival_us, arrived_us)
            first_us = now_us if first_us is None else first_us
            if not period_us:
                latest[passing.upstream] = now_us, passing
            unpassed = config.upstreams - len(latest)
            is_held = unpassed > 0 and now_us - first_us <= limit_us
            awake = [each for at_us, each in latest.values() if now_us - at_us <= limit_us]
            if is_due and awake and not is_held:
                wm_us = min(each.wm_us for each in awake)
                if inserted_us is None or wm_us > inserted_us:
                    inserted_us = wm_us
                    t_max_us = max(each.t_max_us for _, each in latest.values())
                    idle = config.upstreams - len(awake)
                    yield Inserted(event.seq, batch, t_max_us, wm_us), idle
            if period_us:
                latest[passing.upstream] = now_us, passing
            arrived_us = now_us


def windows_close_at_the_insertion(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that windows close at the first inserted watermark that reaches their end."""
    ticks = observed.clocks.get(0, ())

    def closing_of(_task: int, end_us: int) -> Clock | None:
        return next((tick for tick in ticks if tick.wm_us >= end_us), None)

    cause = "The watermark {0.wm_us} inserted at arrival {0.seq}"
    check_answers(truth, observed, findings, closing_of, cause)


def late_means_inserted(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that a pair is late only if an inserted watermark had reached the window's end."""
    ticks = observed.clocks.get(0, ())
    seqs = [tick.seq for tick in ticks]
    found = {
        (event.source_id, batch): event
        for batch, events in enumerate(truth.workload.batches())
        for event in events
    }
    for late in observed.trace.of(Late):
        event = found.get((late.source_id, late.batch))
        place = bisect_right(seqs, event.seq) if event else 0
        if not place or late.start_us + truth.config.size_us > ticks[place - 1].wm_us:
            name = name_of(truth, late[:3])
            findings.add(
                late.batch, f"Tuple #{late.source_id} was called late for the {name} too early."
            )

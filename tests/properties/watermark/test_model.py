"""Disorder decides how long a model of room ``watermark`` waits (docs/watermark.md), alone.

Promises about several streams or settings are here; ``windows/test_model.py`` has those of both
rooms. Arrivals come from simulated networks (``straggler/strategies/streams.py``).
"""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.vocabulary import Event, System, Trace, Workload
from model.vocabulary.watermark import Clock, Passing
from model.vocabulary.windows import Final, Late, Result
from model.watermark.claims import judge
from straggler.strategies.streams import without_redeliveries
from straggler.strategies.watermark import cases


def changed(case: Workload, **settings: object) -> Workload:
    """Return the case with other settings."""
    return case.with_(config={**case.config, **settings})


@given(case=cases(readings=("disorder",), corrections=(False,)))
def test_one_upstream_and_one_task_are_a_task_with_its_own_watermark(
    system: System, case: Workload
) -> None:
    # Upstream knows no identities, so redeliveries would enter the cluster.
    first = tuple(without_redeliveries(case.arrivals))
    alone = changed(case, tasks=1, clocks="arrivals").with_(arrivals=first, cuts=(), faults=())
    upstream = changed(alone, upstreams=1)
    own, passed = system(alone), system(upstream)
    assert [step[1:] for step in own.of(Clock)] == [step[1:] for step in passed.of(Passing)]
    assert [step[:6] for step in own.of(Result)] == [step[:6] for step in passed.of(Result)]
    assert own.of(Late) == passed.of(Late)
    assert own.of(Final) == passed.of(Final)


@given(case=cases())
def test_clocks_of_batches_are_the_last_ones(system: System, case: Workload) -> None:
    every = system(changed(case, clocks="arrivals"))
    last = {(clock.task, clock.batch): clock for clock in every.of(Clock)}
    some = system(changed(case, clocks="batches"))
    assert set(some.of(Clock)) == set(last.values())
    others = [step for step in every.steps() if not isinstance(step, Clock)]
    assert [step for step in some.steps() if not isinstance(step, Clock)] == others


# ------------------------------------------------------------- promises about several streams


def moved(case: Workload, of_time: Callable[[int], int]) -> Workload:
    """Move the event times of all arrivals by ``of_time``."""
    arrivals = tuple(
        event._replace(event_time_us=of_time(event.event_time_us)) for event in case.arrivals
    )
    return changed(case.with_(arrivals=arrivals), max_future_us=None, dedup=False)


@given(case=cases(), stretch=st.integers(1, 9), shift=st.integers(-9, 9))
def test_an_increasing_map_of_event_times_changes_no_disorder(
    system: System, case: Workload, stretch: int, shift: int
) -> None:
    def inversions(trace: Trace) -> list[tuple[int, int, int]]:
        return [(clock.task, clock.seq, clock.inv) for clock in trace.of(Clock)]

    def uneven(time_us: int) -> int:
        return time_us * stretch + shift + (time_us > 8_000) * 77

    assert inversions(system(moved(case, uneven))) == inversions(system(moved(case, int)))


def one_task(case: Workload, events: tuple[Event, ...]) -> Workload:
    """Return the case with ``events`` as its arrivals, once each, in one cluster."""
    settings = {"k": max(2, len(events)), "tasks": 1, "clocks": "arrivals", "max_future_us": None}
    return changed(case.with_(arrivals=events, cuts=()), **settings)


@given(case=cases(), data=st.data())
def test_a_swap_that_reverses_a_pair_makes_one_more(
    system: System, case: Workload, data: st.DataObject
) -> None:
    events = [event._replace(value=1.0) for event in without_redeliveries(case.arrivals)]
    first = data.draw(st.integers(0, len(events) - 2))
    earlier, later = events[first : first + 2]
    swapped = list(events)
    swapped[first] = later._replace(seq=first)
    swapped[first + 1] = earlier._replace(seq=first + 1)
    before, after = (
        system(one_task(case, tuple(each))).of(Clock)[-1] for each in (events, swapped)
    )
    change = (earlier.event_time_us < later.event_time_us) - (
        earlier.event_time_us > later.event_time_us
    )
    assert after.inv == before.inv + change


@given(case=cases())
def test_nothing_is_answered_earlier_than_by_a_fixed_watermark_can_be(
    system: System, case: Workload
) -> None:
    plain = changed(case, clocks="arrivals", dedup=False)
    adaptive = system(plain).of(Clock)
    fixed = system(changed(plain, reading="fixed")).of(Clock)
    assert len(adaptive) == len(fixed)
    assert all(one.wm_us >= other.wm_us for one, other in zip(adaptive, fixed, strict=True))


@given(case=cases(readings=("literal",)))
def test_the_literal_reading_keeps_all_promises_but_those_on_disorder(
    system: System, case: Workload
) -> None:
    broken = {
        verdict.claim
        for verdict in judge(case, system(case)).verdicts
        if verdict.outcome is Outcome.BROKEN
    }
    assert broken <= {
        "the wait is monotone in the disorder",
        "calm is not waited for",
        "reversal is waited for",
    }

"""Promises 1 to 3 and 5 of docs/watermark.md on the model.

Arrivals come from simulated networks; see ``straggler/strategies/streams.py``.
"""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.vocabulary import Event, Fault, System, Trace, WatermarkConfig, Workload
from model.vocabulary.watermark import Clock, Inserted, Passing
from model.vocabulary.windows import Correction, Final, Late, Rejected, Result
from model.watermark.claims import judge
from model.watermark.scopes import explore
from properties.oracles.promises import tuples_of
from properties.stream_packs import collect
from straggler.rooms import find_room
from straggler.strategies.streams import CUTS_MAX, cuts, reordered, without_redeliveries
from straggler.strategies.watermark import cases, configs

CASES_FOR_CRASHES = 100


def unbatched(trace: Trace) -> list[object]:
    """Return the steps that may not depend on the cut into micro-batches."""
    # A pair that a forgotten redelivery finds late again is one step in one batch, two in two.
    late = {step._replace(batch=0) for step in trace.of(Late)}
    steps = (trace.of(Clock), trace.of(Inserted), trace.of(Result), trace.of(Rejected))
    unnumbered = [repr(step._replace(batch=0)) for kind in steps for step in kind]
    return [*sorted(unnumbered), *sorted(late), *answers(trace)]


def answers(trace: Trace) -> list[tuple[int, int, str, float, int, bool]]:
    """Return the final answers without the numbers of their revisions."""
    return [(*final[:5], final.exact) for final in trace.of(Final)]


def changed(case: Workload, **settings: object) -> Workload:
    """Return the case with other settings."""
    return case.with_(config={**case.config, **settings})


UPSTREAMS = (1, 2, 3)


@given(case=cases(upstreams=UPSTREAMS), data=st.data())
def test_cuts_change_no_insertion(system: System, case: Workload, data: st.DataObject) -> None:
    flushed = case.with_(flush=True)
    recut = flushed.with_(cuts=data.draw(cuts(len(case.arrivals))))
    assert unbatched(system(recut)) == unbatched(system(flushed))


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


GOLDEN = {"small": (3_839, 6_151), "scaled": (625, 1_007), "redelivery": (3_858, 7_499)}
"""States and transitions of each scope: they change with every change of the rules."""


@pytest.mark.parametrize("scope", GOLDEN)
def test_every_behaviour_of_a_small_scope_keeps_the_promises(scope: str) -> None:
    exploration = explore(scope)
    assert (exploration.unique_states, exploration.transitions) == GOLDEN[scope]
    assert exploration.cut is None
    for verdict in exploration.verdicts:
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.witness)


@given(case=cases(), data=st.data())
def test_cuts_change_nothing(system: System, case: Workload, data: st.DataObject) -> None:
    # Batches determine the corrections before the end, and the clocks of batches.
    flushed = changed(case, clocks="arrivals").with_(flush=True)
    recut = flushed.with_(cuts=data.draw(cuts(len(case.arrivals))))
    for run in (system, find_room("watermark").in_process):
        assert unbatched(run(recut)) == unbatched(run(flushed))


PUBLISHED: dict[str, object] = {
    "aggregate": "sum",
    "q": 0.5,
    "keyed": True,
    "tasks": 1,
    "feedback_us": None,
    "max_future_us": None,
    "gamma_us": 5_000_000,
    "max_age_us": None,
    "dedup": True,
    "reading": "disorder",
    "k": 50,
    "corrections": False,
    "clocks": "arrivals",
    "upstreams": 0,
    "insert_every_us": 0,
}
"""Settings of a query that names none of them; docs/settings.md publishes them."""


@given(case=cases(), data=st.data())
def test_a_setting_that_is_left_out_has_its_published_value(
    system: System, case: Workload, data: st.DataObject
) -> None:
    left_out = data.draw(st.sets(st.sampled_from(sorted(PUBLISHED))))
    chosen = {**case.config, **{name: PUBLISHED[name] for name in left_out}}
    few = {name: value for name, value in chosen.items() if name not in left_out}
    assert WatermarkConfig.from_json(few).to_json() == chosen
    assert [*system(case.with_(config=few)).steps()] == [*system(changed(case, **chosen)).steps()]


@given(case=cases())
def test_clocks_of_batches_are_the_last_ones(system: System, case: Workload) -> None:
    every = system(changed(case, clocks="arrivals"))
    last = {(clock.task, clock.batch): clock for clock in every.of(Clock)}
    some = system(changed(case, clocks="batches"))
    assert set(some.of(Clock)) == set(last.values())
    others = [step for step in every.steps() if not isinstance(step, Clock)]
    assert [step for step in some.steps() if not isinstance(step, Clock)] == others


@given(pair=configs(corrections=(True,)).flatmap(reordered))
def test_another_arrival_order_changes_no_corrected_answer(
    system: System, pair: tuple[Workload, Workload]
) -> None:
    one, other = pair
    assert answers(system(one)) == answers(system(other))


FAULTS = st.builds(Fault, st.sampled_from(["restart", "kill"]), st.integers(0, CUTS_MAX + 1))


@given(case=cases(), fault=FAULTS)
def test_a_crash_changes_no_answer(system: System, case: Workload, fault: Fault) -> None:
    crashed = case.with_(faults=(fault,))
    assert unbatched(system(crashed)) == unbatched(system(case))


def test_crashes_hit_corrections(system: System, seed: int) -> None:
    drawn = collect(st.tuples(cases(corrections=(True,)), FAULTS), CASES_FOR_CRASHES, seed)
    hit = {
        fault.kind
        for case, fault in drawn
        if any(step.batch == fault.at for step in system(case).of(Correction))
    }
    assert hit == {"restart", "kill"}, "no crash was near a correction"


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


def test_answers_are_those_of_results_without_corrections(system: System, seed: int) -> None:
    seen: Counter[str] = Counter()
    for case in collect(cases(corrections=(False,)), 50, seed):
        trace = system(case)
        incomplete = tuples_of(case.to_json()).incomplete
        late = {step[:3] for step in trace.of(Late)}
        stream = {result[:3]: result for result in trace.of(Result)}
        finals = {final[:3]: final for final in trace.of(Final)}
        assert finals.keys() == stream.keys()
        for window, final in finals.items():
            assert (final.value, final.n) == (stream[window].value, stream[window].n_rcv)
            assert final.exact == (window not in late | incomplete)
        seen["late"] += len(late)
        seen["rejected"] += len(incomplete & finals.keys())
    assert seen["late"], "nothing was late"
    assert seen["rejected"], "no window lacked a rejected row"

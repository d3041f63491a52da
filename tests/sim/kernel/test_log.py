"""Sources and the log: what is sent over the network, when, and numbered in order of arrival."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
import simpy

from sim.kernel.disorder import Burst, Disturbance, Gap
from sim.kernel.distributions import Constant, Exponential, Pareto
from sim.kernel.faults import Congest, Duplicate, Fault, Lose, Replay, inject
from sim.kernel.link import Noise, Place
from sim.kernel.log import Arrivals, Log, simulate_arrivals
from sim.kernel.plan import EPOCH_2020_US, Plan
from sim.kernel.seeds import Seeds
from sim.kernel.source import (
    IDS_PER_SOURCE,
    AnySource,
    Feeder,
    Recording,
    Row,
    Sent,
    Source,
    departures_of,
)
from tests.sim.disorder import measure

# ------------------------------------------------------------------------------------------ sources


SECOND = 1_000_000


def sent(
    source: AnySource,
    *faults: Fault,
    disturbances: Sequence[Disturbance] = (),
    number: int = 0,
    seed: int = 1,
) -> Sent:
    first_id = number * IDS_PER_SOURCE
    seeds = Seeds(seed)
    return departures_of(source, number, "s", first_id, EPOCH_2020_US, disturbances, faults, seeds)


def test_a_source_sends_its_tuples_at_their_event_times() -> None:
    found = sent(Source(3, start_us=5, low=7, high=7), number=2)
    departures = found.departures
    assert departures.leave_us.tolist() == [5, SECOND + 5, 2 * SECOND + 5]
    assert departures.source_ids.tolist() == [2 * IDS_PER_SOURCE + n for n in range(3)]
    assert (departures.event_us - EPOCH_2020_US).tolist() == departures.leave_us.tolist()
    assert departures.values.tolist() == [7.0] * 3
    assert departures.streams.tolist() == ["s"] * 3
    assert (found.created, found.duplicated, found.last_us) == (3, 0, 2 * SECOND + 5)


def test_a_gap_takes_tuples_out_and_is_part_of_the_span() -> None:
    gap = Gap(2 * SECOND, 2 * SECOND)
    found = sent(Source(4), disturbances=(gap,))
    assert found.departures.source_ids.tolist() == [0, 1]
    assert (found.created, found.last_us) == (2, 3 * SECOND)


def test_a_duplicate_is_sent_again_unless_it_never_was() -> None:
    faults = [Duplicate("source-0", nth, 7) for nth in (0, 1, 99)]
    gap = Gap(0, SECOND)
    found = sent(Source(3), *faults, Duplicate("source-1", 2, 7), disturbances=(gap,))
    # Tuple 0 is in the gap, and there is no tuple 99.
    assert found.departures.source_ids.tolist() == [1, 1, 2]
    assert found.departures.leave_us.tolist() == [SECOND, SECOND + 7, 2 * SECOND]
    assert (found.created, found.duplicated) == (2, 1)


def test_a_recording_is_sent_when_it_arrived() -> None:
    rows = (
        Row(EPOCH_2020_US + 50, EPOCH_2020_US + 70, "a", 1.5),
        Row(EPOCH_2020_US - 10, EPOCH_2020_US + 70, "b", 2.5, 9, "r"),
        Row(EPOCH_2020_US + 90, EPOCH_2020_US - 5, "a", 3.5),  # arrived before the run began
    )
    departures = sent(Recording(rows), number=1).departures
    assert departures.leave_us.tolist() == [0, 70, 70]
    # Ties keep their order; an identity or stream that was recorded stays.
    assert departures.source_ids.tolist() == [IDS_PER_SOURCE + 2, IDS_PER_SOURCE, 9]
    assert departures.streams.tolist() == ["s", "s", "r"]
    assert (departures.event_us - EPOCH_2020_US).tolist() == [90, 50, -10]


def test_keys_and_values_have_their_shares() -> None:
    source = Source(20_000, interval=Constant(1), keys=("x", "y", "z"), zipf=1.0, low=-2, high=2)
    departures = sent(source).departures
    shares = [float((departures.keys == key).mean()) for key in "xyz"]
    # Zipf 1 over three keys: 6/11, 3/11, 2/11; six standard errors are at most 0.022.
    assert shares == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.022)
    assert set(departures.values.tolist()) == {-2.0, -1.0, 0.0, 1.0, 2.0}


def test_a_feeder_sends_at_its_times() -> None:
    env = simpy.Environment()
    got: list[tuple[int, float]] = []
    departures = sent(Source(3, interval=Constant(15))).departures
    Feeder(env, departures, 800, lambda item: got.append((item.source_id, env.now))).wait()
    env.run()
    assert got == [(0, 0), (1, 15), (2, 30)]


# ------------------------------------------------------------------------------------------ the log


def times(arrivals: Arrivals) -> list[tuple[int, int, int]]:
    """Return (identity, event time, arrival), relative to the start of the run."""
    return [
        (event.source_id, event.event_time_us - EPOCH_2020_US, event.arrival_us - EPOCH_2020_US)
        for event in arrivals.events
    ]


@pytest.mark.parametrize(
    ("place", "arrival_us"),
    [
        (None, 0),
        (Place(), 0),  # 0.1 + 0.04 us
        (Place(process=1), 20),  # 20 + 0.32
        (Place(node=1), 208),  # 200 + 8
        (Place(rack=1), 430),  # 350 + 80
    ],
)
def test_tiers_on_the_way(place: Place | None, arrival_us: int) -> None:
    arrivals = simulate_arrivals(Plan((Source(1, place=place),)), seed=1)
    assert times(arrivals) == [(0, 0, arrival_us)]


def test_in_order_sources_hold_up_what_follows() -> None:
    burst = Burst(0, 1, 1.0, Constant(2.5 * SECOND))
    loose = simulate_arrivals(Plan((Source(4),), disturbances=(burst,)), 1)
    strict = simulate_arrivals(Plan((Source(4, in_order=True),), disturbances=(burst,)), 1)
    assert [event.source_id for event in loose.events] == [1, 2, 0, 3]
    assert [event.source_id for event in strict.events] == [0, 1, 2, 3]
    assert [arrival for *_, arrival in times(strict)] == [2.5 * SECOND] * 3 + [3 * SECOND]


@pytest.mark.parametrize(
    ("plan", "arrived"),
    [
        (Plan(()), 0),
        (Plan((Source(2),)), 2),
        # The last thing that happens is a loss, a copy.
        (Plan((Source(2, place=Place(1)),), faults=(Lose("source-0>log", 1),)), 1),
        (Plan((Source(2, place=Place(1)),), faults=(Replay("source-0>log", 1, SECOND),)), 3),
    ],
)
def test_the_end_of_all_arrivals_is_announced_once(plan: Plan, arrived: int) -> None:
    env = simpy.Environment()
    ended: list[int] = []
    log = Log(env, plan, Seeds(1), lambda _: True, print, lambda: ended.append(len(log.events)))
    inject(env, plan.faults, {}, log.links)
    log.start()
    env.run()
    log.check()
    assert ended == [arrived]


@pytest.mark.parametrize("start", [Gap, lambda at, n: Burst(at, n, 1.0, Constant(1))])
def test_what_begins_after_the_last_tuple_does_nothing(
    start: Callable[[int, int], Gap | Burst],
) -> None:
    calm = Plan((Source(4),))
    late = replace(calm, disturbances=(start(5 * SECOND, 5),))
    assert simulate_arrivals(late, 1) == simulate_arrivals(calm, 1)


STORMY = Plan(
    sources=tuple(
        Source(
            events=40,
            interval=Exponential(50_000),
            delay=Pareto(20_000, 1.3),
            keys=("a", "b"),
            place=Place(rack=number % 2, node=number),
        )
        for number in range(4)
    ),
    disturbances=(Burst(300_000, 600_000, 0.5, Exponential(SECOND)),),
    faults=(
        Congest("source-1>log", 50_000, 500_000),
        Congest("source-2>log", 50_000, 500_000, 0.1),
        Duplicate("source-3", 5, 10_000),
    ),
    noise=Noise(loss=0.05, replay=0.05, replay_after=Exponential(100_000)),
)


@pytest.mark.parametrize("retry_us", [None, 30_000.0])
@pytest.mark.parametrize("seed", range(4))
def test_arrivals_are_in_order_and_complete(seed: int, retry_us: float | None) -> None:
    """The run itself asserts conservation; here is what its users rely on."""
    arrivals = simulate_arrivals(
        replace(STORMY, noise=replace(STORMY.noise, retry_us=retry_us)), seed
    )
    events = arrivals.events
    assert [event.seq for event in events] == list(range(len(events)))
    assert all(a.arrival_us <= b.arrival_us for a, b in pairwise(events))
    assert all(event.arrival_us >= event.event_time_us for event in events)
    assert all(
        type(field) is kind
        for event in events
        for field, kind in zip(event, (int, int, str, int, float, int, str, tuple), strict=True)
    )
    assert arrivals.counts["created"] == 160
    gone = "lost" if retry_us is None else "retried"
    assert all(arrivals.counts[name] > 0 for name in ("replayed", gone, "duplicated"))
    assert measure(events).late_share > 0.2


def events_of(plan: Plan) -> set[tuple[object, ...]]:
    """Return everything about the tuples but their order."""
    return {event[1:] for event in simulate_arrivals(plan, 3).events}


def test_changing_one_component_leaves_the_others_as_they_were() -> None:
    source = Source(30, interval=Exponential(1_000), delay=Exponential(5_000), keys=("a", "b"))
    alone = events_of(Plan((source,)))
    assert alone < events_of(Plan((source, Source(30, delay=Exponential(9_000)))))
    # Another path for the same tuples: same identities, keys, event times and values.
    moved = replace(source, delay=Exponential(1), place=Place(1))
    plan = Plan((moved,))
    assert {event[:-3] for event in events_of(plan)} == {event[:-3] for event in alone}
    # Losses move no other tuple.
    assert events_of(replace(plan, faults=(Lose("source-0>log", 3),))) < events_of(plan)

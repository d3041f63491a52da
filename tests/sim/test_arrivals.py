from itertools import pairwise

import pytest

from model.vocabulary import Event
from sim.kernel.disorder import Burst, Gap, Regime, Straggler, measure
from sim.kernel.distributions import Constant, Exponential, Pareto
from sim.kernel.faults import Clog, Duplicate, Fail, Lose, Pause, Replay, Slow
from sim.kernel.link import Noise, Place
from sim.kernel.log import Arrivals, simulate_arrivals
from sim.kernel.plan import EPOCH_2020_US, Plan, replay
from sim.kernel.source import IDS_PER_SOURCE, Recording, Row, Source
from sim.kernel.station import Worker

SECOND = 1_000_000


def times(arrivals: Arrivals) -> list[tuple[int, int, int]]:
    """(identity, event time, arrival) relative to the start of the run."""
    return [
        (event.source_id, event.event_time_us - EPOCH_2020_US, event.arrival_us - EPOCH_2020_US)
        for event in arrivals.events
    ]


def test_a_source_alone() -> None:
    arrivals = simulate_arrivals(Plan((Source(3, start_us=5, low=7, high=7),)), seed=1)
    assert arrivals.events[0] == Event(0, 0, "a", EPOCH_2020_US + 5, 7.0, EPOCH_2020_US + 5)
    assert times(arrivals) == [(n, n * SECOND + 5, n * SECOND + 5) for n in range(3)]
    assert arrivals.counts["created"] == arrivals.counts["arrived"] == 3


def test_nothing_at_all() -> None:
    assert simulate_arrivals(Plan(()), seed=1).events == ()
    assert simulate_arrivals(Plan((Source(0),)), seed=1).events == ()


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


def test_through_a_worker() -> None:
    source = Source(2, interval=Constant(1), place=Place(node=1), worker=0)
    plan = Plan((source,), workers=(Worker(Constant(100.0), speed=0.5, place=Place(process=1)),))
    # Link 8 us each + 200; work 200 each; link .32 + 20.
    assert times(simulate_arrivals(plan, seed=1)) == [(0, 0, 428), (1, 1, 628)]


def test_a_slow_worker_and_a_slow_source_make_disorder() -> None:
    fast, slow = Source(20, worker=0), Source(20, start_us=10, worker=1)
    workers = (Worker(Constant(1_000.0)), Worker(Constant(1_000.0), speed=0.0006))
    assert measure(simulate_arrivals(Plan((fast, slow), workers), 1).events).late_share > 0.4
    plan = Plan((Source(20), Source(20)), disturbances=(Straggler(1, extra_us=2 * SECOND),))
    # All of the slow one's 20 tuples but the last, whose event time nothing exceeds.
    assert measure(simulate_arrivals(plan, 1).events).late_share == 19 / 40


def test_in_order_sources_hold_up_what_follows() -> None:
    burst = Burst(0, 1, 1.0, Constant(2.5 * SECOND))
    loose = simulate_arrivals(Plan((Source(4),), disturbances=(burst,)), 1)
    strict = simulate_arrivals(Plan((Source(4, in_order=True),), disturbances=(burst,)), 1)
    assert [event.source_id for event in loose.events] == [1, 2, 0, 3]
    assert [event.source_id for event in strict.events] == [0, 1, 2, 3]
    assert [arrival for *_, arrival in times(strict)] == [2.5 * SECOND] * 3 + [3 * SECOND]


def test_gaps_and_regimes() -> None:
    disturbances = (Gap(SECOND, SECOND), Regime(2 * SECOND, Constant(5)))
    arrivals = simulate_arrivals(Plan((Source(4),), disturbances=disturbances), 1)
    assert times(arrivals) == [
        (0, 0, 0),
        (2, 2 * SECOND, 2 * SECOND + 5),
        (3, 3 * SECOND, 3 * SECOND + 5),
    ]
    assert arrivals.counts["created"] == 3


def test_duplicates_replays_and_losses_are_counted() -> None:
    faults = (
        Duplicate("source-0", 0, 7),
        Duplicate("source-0", 99, 7),
        Lose("source-0", 2),
        Replay("source-0", 3, 50),
    )
    plan = Plan((Source(3, place=Place(process=1)),), faults=faults)
    arrivals = simulate_arrivals(plan, 1)
    # Message 1 is the duplicate of message 0.
    assert [event.source_id for event in arrivals.events] == [0, 0, 2, 2]
    counts = arrivals.counts
    assert (counts["duplicated"], counts["lost"], counts["replayed"]) == (1, 1, 1)


def test_full_and_failed_workers_are_counted() -> None:
    source = Source(10, interval=Constant(1), worker=0)
    worker = Worker(Constant(100.0), queue_limit=2, when_full="drop")
    dropped = simulate_arrivals(Plan((source,), (worker,)), 1)
    assert (dropped.counts["dropped"], dropped.counts["arrived"]) == (7, 3)
    blocking = Worker(Constant(100.0), queue_limit=2)
    blocked = simulate_arrivals(Plan((source,), (blocking,)), 1)
    assert (blocked.counts["blocked"], blocked.counts["arrived"]) == (7, 10)
    failing = Plan((source,), (Worker(Constant(100.0)),), faults=(Fail("worker-0", 150, 1_000),))
    failed = simulate_arrivals(failing, 1)
    assert (failed.counts["failed"], failed.counts["arrived"]) == (9, 1)


def test_a_recording_is_replayed_exactly() -> None:
    start_us = 1_415_624_019_862_000
    rows = [
        Row(start_us + 500, start_us + 700, "a", 1.5),
        Row(start_us, start_us + 700, "b", 2.5),
        Row(start_us + 900, start_us + 800, "a", 3.5),  # a clock ahead of the other
    ]
    arrivals = simulate_arrivals(replay(rows, "three rows, recorded"), 1)
    assert arrivals.name == "three rows, recorded"
    assert arrivals.events == tuple(
        Event(seq, seq, row.key, row.event_time_us, row.value, row.arrival_us)
        for seq, row in enumerate(rows)
    )


def test_a_recording_beside_a_source_and_under_disturbance() -> None:
    rows = (
        Row(EPOCH_2020_US + 10, EPOCH_2020_US + 20, "r", 1.0),
        Row(EPOCH_2020_US + 40, EPOCH_2020_US + 50, "r", 2.0),
    )
    disturbances = (Gap(35, 10, source=1), Straggler(1, factor=2.0))
    plan = Plan((Source(1), Recording(rows)), disturbances=disturbances)
    assert times(simulate_arrivals(plan, 1)) == [(0, 0, 0), (IDS_PER_SOURCE, 10, 30)]


def test_keys_and_values() -> None:
    source = Source(20_000, interval=Constant(1), keys=("x", "y", "z"), zipf=1.0, low=-2, high=2)
    events = simulate_arrivals(Plan((source,)), 1).events
    shares = [sum(event.key == key for event in events) / len(events) for key in "xyz"]
    # Zipf 1 over three keys: 6/11, 3/11, 2/11; six standard errors are at most 0.022.
    assert shares == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.022)
    assert {event.value for event in events} == {-2.0, -1.0, 0.0, 1.0, 2.0}


STORMY = Plan(
    sources=tuple(
        Source(
            events=40,
            interval=Exponential(50_000),
            delay=Pareto(20_000, 1.3),
            keys=("a", "b"),
            place=Place(rack=number % 2, node=number),
            worker=number % 2,
        )
        for number in range(4)
    ),
    workers=(Worker(Exponential(5_000)), Worker(Exponential(5_000), speed=0.2, queue_limit=2)),
    disturbances=(Burst(300_000, 600_000, 0.5, Exponential(SECOND)), Straggler(2, factor=4.0)),
    faults=(
        Pause("worker-0", 100_000, 300_000),
        Fail("worker-1", 500_000, 20_000),
        Slow("worker-0", 600_000, 300_000, 5.0),
        Clog("source-1", 50_000, 500_000),
        Duplicate("source-3", 5, 10_000),
    ),
    noise=Noise(loss=0.02, replay=0.05, replay_after=Exponential(100_000)),
)


@pytest.mark.parametrize("seed", range(10))
def test_arrivals_are_in_order_and_complete(seed: int) -> None:
    """The run itself asserts conservation and Little's law; here is what its users rely on."""
    arrivals = simulate_arrivals(STORMY, seed)
    events = arrivals.events
    assert [event.seq for event in events] == list(range(len(events)))
    assert all(a.arrival_us <= b.arrival_us for a, b in pairwise(events))
    assert all(event.arrival_us >= event.event_time_us for event in events)
    assert all(
        type(field) is kind
        for event in events
        for field, kind in zip(event, (int, int, str, int, float, int, str), strict=True)
    )
    assert arrivals.counts["created"] == 160
    assert all(arrivals.counts[name] > 0 for name in ("replayed", "lost", "blocked", "duplicated"))
    assert measure(events).late_share > 0.2


def by_id(plan: Plan, seed: int) -> dict[int, tuple[str, int, float]]:
    events = simulate_arrivals(plan, seed).events
    return {event.source_id: (event.key, event.event_time_us, event.value) for event in events}


def test_changing_one_component_leaves_the_others_as_they_were() -> None:
    source = Source(30, interval=Exponential(1_000), delay=Exponential(5_000), keys=("a", "b"))
    alone = simulate_arrivals(Plan((source,)), 3)
    with_another = simulate_arrivals(Plan((source, Source(30, delay=Exponential(9_000)))), 3)
    assert {event[1:] for event in alone.events} < {event[1:] for event in with_another.events}
    # Another path for the same tuples: same identities, keys, event times and values.
    workers = (Worker(Exponential(100.0)),)
    moved = Source(30, source.interval, delay=Exponential(1), keys=("a", "b"), worker=0)
    assert by_id(Plan((moved,), workers), 3) == by_id(Plan((source,)), 3)


@pytest.mark.parametrize("seed", range(5))
def test_what_nothing_disturbs_arrives_as_in_the_kernel(seed: int) -> None:
    sources = (
        Source(200, Exponential(50_000), delay=Pareto(20_000, 1.3), keys=("a", "b")),
        Source(100, Exponential(80_000), delay=Exponential(90_000), in_order=True),
        Recording((Row(EPOCH_2020_US + 10, EPOCH_2020_US + 20, "r", 1.0),)),
        # Its link sends one message for 800 us, so that they have to wait for each other.
        Source(300, Exponential(1_000), bits=8_000, place=Place(rack=1)),
    )
    faults = tuple([Duplicate(f"source-{n}", 0, 3_000) for n in (0, 2, 3)])
    alone = simulate_arrivals(Plan(sources, faults=faults), seed)
    # A source at a worker makes it a run of the kernel, even if it sends nothing.
    with_worker = Plan((*sources, Source(0, worker=0)), (Worker(),), faults=faults)
    through = simulate_arrivals(with_worker, seed)
    assert alone.events == through.events
    assert alone.counts == through.counts
    assert alone.counts["duplicated"] == 3
    assert measure(alone.events).late_share > 0.1

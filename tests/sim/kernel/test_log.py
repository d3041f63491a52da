"""The log: what sources send over the network, numbered in order of arrival."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
import simpy

from model.vocabulary import Event
from sim.kernel.disorder import Burst, Gap, Regime, Straggler, measure
from sim.kernel.distributions import Constant, Exponential, Pareto
from sim.kernel.faults import Congest, Duplicate, Fail, Lose, Pause, Replay, Slow, inject
from sim.kernel.link import Noise, Place
from sim.kernel.log import Arrivals, Log, drop_later_disturbances, simulate_arrivals
from sim.kernel.plan import EPOCH_2020_US, Plan, Worker, replay
from sim.kernel.seeds import Seeds
from sim.kernel.source import IDS_PER_SOURCE, Recording, Row, Source

SECOND = 1_000_000


def times(arrivals: Arrivals) -> list[tuple[int, int, int]]:
    """Return (identity, event time, arrival), relative to the start of the run."""
    return [
        (event.source_id, event.event_time_us - EPOCH_2020_US, event.arrival_us - EPOCH_2020_US)
        for event in arrivals.events
    ]


def test_a_source_alone() -> None:
    arrivals = simulate_arrivals(Plan((Source(3, start_us=5, low=7, high=7),)), seed=1)
    assert arrivals.events[0] == Event(0, 0, "a", EPOCH_2020_US + 5, 7.0, EPOCH_2020_US + 5)
    assert times(arrivals) == [(n, n * SECOND + 5, n * SECOND + 5) for n in range(3)]
    assert arrivals.counts["created"] == arrivals.counts["arrived"] == 3


def test_a_plan_without_tuples_has_no_arrivals() -> None:
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


def test_the_place_of_the_log_counts() -> None:
    plan = Plan((Source(1, place=Place(rack=1)),), log_place=Place(rack=1, node=4))
    assert times(simulate_arrivals(plan, seed=1)) == [(0, 0, 208)]


def test_through_a_relay() -> None:
    source = Source(2, interval=Constant(1), place=Place(node=1), relay=0)
    relay = Worker(speed=0.5, place=Place(process=1))
    plan = Plan((source,), (relay,), Constant(100.0))
    # Link 8 us each + 200; work 200 each; link .32 + 20.
    assert times(simulate_arrivals(plan, seed=1)) == [(0, 0, 428), (1, 1, 628)]


def test_streams_take_sources_in_turn_and_share_identities() -> None:
    plan = Plan((Source(1), Source(1, start_us=1), Source(1, start_us=2)))
    events = simulate_arrivals(plan, 1, streams=("r", "s")).events
    assert [(event.stream, event.source_id) for event in events] == [
        ("r", 0),
        ("s", 0),
        ("r", IDS_PER_SOURCE),
    ]


def test_a_slow_relay_and_a_slow_source_make_disorder() -> None:
    fast, slow = Source(20, relay=0), Source(20, start_us=10, relay=1)
    relays = (Worker(), Worker(speed=0.0006))
    plan = Plan((fast, slow), relays, Constant(1_000.0))
    assert measure(simulate_arrivals(plan, 1).events).late_share > 0.4
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


# -------------------------------------------------------------------------------------- counts


def test_duplicates_replays_and_losses_are_counted() -> None:
    faults = (
        Duplicate("source-0", 0, 7),
        Duplicate("source-0", 99, 7),
        Lose("source-0>log", 2),
        Replay("source-0>log", 3, 50),
    )
    plan = Plan((Source(3, place=Place(process=1)),), faults=faults)
    arrivals = simulate_arrivals(plan, 1)
    # Message 1 is the duplicate of message 0.
    assert [event.source_id for event in arrivals.events] == [0, 0, 2, 2]
    counts = arrivals.counts
    assert (counts["duplicated"], counts["lost"], counts["replayed"]) == (1, 1, 1)


def test_lost_messages_are_sent_again_if_the_plan_says_so() -> None:
    source = Source(3, interval=Constant(1), place=Place(process=1))
    plan = Plan((source,), faults=(Lose("source-0>log", 1),), noise=Noise(retry_us=1_000.0))
    arrivals = simulate_arrivals(plan, 1)
    assert [arrival for *_, arrival in times(arrivals)] == [20, 1_041, 1_041]
    assert (arrivals.counts["retried"], arrivals.counts["lost"]) == (1, 0)


def test_full_and_failed_relays_are_counted() -> None:
    source = Source(10, interval=Constant(1), relay=0)
    dropping = Worker(queue_limit=2, when_full="drop")
    dropped = simulate_arrivals(Plan((source,), (dropping,), Constant(100.0)), 1)
    assert (dropped.counts["dropped"], dropped.counts["arrived"]) == (7, 3)
    blocking = Worker(queue_limit=2)
    blocked = simulate_arrivals(Plan((source,), (blocking,), Constant(100.0)), 1)
    assert (blocked.counts["blocked"], blocked.counts["arrived"]) == (7, 10)
    faults = (Fail("relay-0", 150, 1_000),)
    failing = Plan((source,), (Worker(),), Constant(100.0), faults=faults)
    failed = simulate_arrivals(failing, 1)
    assert (failed.counts["failed"], failed.counts["arrived"]) == (9, 1)


def test_tuples_without_room_are_shed_and_do_not_arrive() -> None:
    env = simpy.Environment()
    came: list[Event] = []
    ended: list[float] = []
    plan = Plan((Source(6),))
    log = Log(
        env,
        plan,
        Seeds(1),
        lambda item: item.source_id % 2 == 0,
        came.append,
        lambda: ended.append(env.now),
    )
    log.start()
    env.run()
    log.check()
    counts = log.counts()
    assert (counts["shed"], counts["arrived"], counts["created"]) == (3, 3, 6)
    # Arrivals are numbered without a gap; the last tuple is shed, and the end is noticed.
    assert [(event.seq, event.source_id) for event in came] == [(0, 0), (1, 2), (2, 4)]
    assert list(log.events) == came
    assert ended == [5 * SECOND]


@pytest.mark.parametrize(
    ("plan", "arrived"),
    [
        (Plan(()), 0),
        (Plan((Source(2),)), 2),
        # The last thing that happens is a loss, a drop, a failure, a copy.
        (Plan((Source(2, place=Place(1)),), faults=(Lose("source-0>log", 1),)), 1),
        (
            Plan(
                (Source(2, Constant(1), relay=0),),
                (Worker(queue_limit=0, when_full="drop"),),
                Constant(50.0),
            ),
            1,
        ),
        (Plan((Source(2, relay=0),), (Worker(),), faults=(Fail("relay-0", 5, 10 * SECOND),)), 0),
        (Plan((Source(2, place=Place(1)),), faults=(Replay("source-0>log", 1, SECOND),)), 3),
    ],
)
def test_the_end_of_all_arrivals_is_announced_once(plan: Plan, arrived: int) -> None:
    env = simpy.Environment()
    ended: list[int] = []
    log = Log(env, plan, Seeds(1), lambda _: True, print, lambda: ended.append(len(log.events)))
    inject(env, plan.faults, log.stations, log.links)
    log.start()
    env.run()
    log.check()
    assert ended == [arrived]


def test_counts_notice_a_tuple_that_has_vanished() -> None:
    env = simpy.Environment()
    log = Log(env, Plan((Source(2),)), Seeds(1), lambda _: True, print, print)
    log.start()
    env.run()
    log.events.pop()
    with pytest.raises(AssertionError):
        log.counts()


# ---------------------------------------------------------------------------------- recordings


def test_a_recording_is_replayed_exactly() -> None:
    start_us = 1_415_624_019_862_000
    events = [
        Event(0, 5, "a", start_us + 500, 1.5, start_us, "r"),
        Event(1, 5, "b", start_us - 700, 2.5, start_us + 700, "s"),
        Event(2, 1, "a", start_us + 900, 3.5, start_us + 700),  # a clock ahead of the other
    ]
    arrivals = simulate_arrivals(replay(events, "three rows, recorded"), 1)
    assert arrivals.name == "three rows, recorded"
    assert arrivals.events == tuple(events)


def test_a_recording_beside_a_source_and_under_disturbance() -> None:
    rows = (
        Row(EPOCH_2020_US + 10, EPOCH_2020_US + 20, "r", 1.0),
        Row(EPOCH_2020_US + 40, EPOCH_2020_US + 50, "r", 2.0),
    )
    disturbances = (Gap(35, 10, source=1), Straggler(1, factor=2.0))
    plan = Plan((Source(1), Recording(rows)), disturbances=disturbances)
    assert times(simulate_arrivals(plan, 1)) == [(0, 0, 0), (IDS_PER_SOURCE, 10, 30)]


# ------------------------------------------------------------------------- within the run


LATE, EARLY = 5 * SECOND, SECOND


@pytest.mark.parametrize("start", [Gap, lambda at, n: Burst(at, n, 1.0, Constant(1))])
def test_bursts_and_gaps_outside_the_run_are_refused_or_left_out(
    start: Callable[[int, int], Gap | Burst],
) -> None:
    plan = Plan((Source(4),), disturbances=(start(EARLY, 5), start(LATE, 5)))
    message = r"start_us is 5000000; it must be at most 3000000, the last event time of the run"
    with pytest.raises(ValueError, match=message):
        simulate_arrivals(plan, 1)
    kept = drop_later_disturbances(plan, 1)
    assert kept.disturbances == (start(EARLY, 5),)
    assert simulate_arrivals(kept, 1).events


def test_a_disturbance_of_one_source_lies_within_the_time_of_that_source() -> None:
    early, late = Gap(LATE, 5, source=1), Gap(LATE, 5, source=0)
    sources = (Source(2), Source(9))
    assert drop_later_disturbances(Plan(sources, disturbances=(early, late)), 1).disturbances == (
        early,
    )
    message = (
        r"gap.start_us is 5000000; it must be at most 1000000, the last event time of source 0"
    )
    with pytest.raises(ValueError, match=message):
        simulate_arrivals(Plan(sources, disturbances=(late,)), 1)


def test_a_regime_may_begin_at_any_time() -> None:
    plan = Plan((Source(2),), disturbances=(Regime(LATE, Constant(1)), Straggler(0, 2.0)))
    assert drop_later_disturbances(plan, 1) == plan


# ------------------------------------------------------------------------------- all together


STORMY = Plan(
    sources=tuple(
        Source(
            events=40,
            interval=Exponential(50_000),
            delay=Pareto(20_000, 1.3),
            keys=("a", "b"),
            place=Place(rack=number % 2, node=number),
            relay=number % 2,
        )
        for number in range(4)
    ),
    relays=(Worker(place=Place(0, 5)), Worker(0.2, queue_limit=2, place=Place(1, 5))),
    relay_service=Exponential(5_000),
    disturbances=(Burst(300_000, 600_000, 0.5, Exponential(SECOND)), Straggler(2, factor=4.0)),
    faults=(
        Pause("relay-0", 100_000, 300_000),
        Fail("relay-1", 500_000, 20_000),
        Slow("relay-0", 600_000, 300_000, 5.0),
        Congest("source-1>relay-1", 50_000, 500_000),
        Congest("relay-0>log", 50_000, 500_000, 0.1),
        Duplicate("source-3", 5, 10_000),
    ),
    noise=Noise(loss=0.02, replay=0.05, replay_after=Exponential(100_000)),
)


@pytest.mark.parametrize("retry_us", [None, 30_000.0])
@pytest.mark.parametrize("seed", range(10))
def test_arrivals_are_in_order_and_complete(seed: int, retry_us: float | None) -> None:
    """The run itself asserts conservation and Little's law; here is what its users rely on."""
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
        for field, kind in zip(event, (int, int, str, int, float, int, str), strict=True)
    )
    assert arrivals.counts["created"] == 160
    gone = "lost" if retry_us is None else "retried"
    assert all(arrivals.counts[name] > 0 for name in ("replayed", gone, "blocked", "duplicated"))
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
    moved = replace(source, delay=Exponential(1), relay=0)
    plan = Plan((moved,), (Worker(),), Exponential(100.0))
    assert by_id(plan, 3) == by_id(Plan((source,)), 3)
    # Losses move no other tuple's work.
    lossy = replace(plan, sources=(replace(moved, place=Place(1)),), faults=())
    placed = replace(lossy, relays=(Worker(place=Place(0)),))
    kept = simulate_arrivals(replace(placed, faults=(Lose("relay-0>log", 3),)), 3)
    whole = simulate_arrivals(placed, 3)
    assert {event[1:] for event in kept.events} < {event[1:] for event in whole.events}


def test_the_seed_alone_decides() -> None:
    assert simulate_arrivals(STORMY, 3).digest() == simulate_arrivals(STORMY, 3).digest()
    assert simulate_arrivals(STORMY, 3).digest() != simulate_arrivals(STORMY, 4).digest()

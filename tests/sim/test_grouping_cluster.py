"""The timed room on small clusters: what costs time, what is measured, and what faults do."""

from collections import Counter
from dataclasses import replace

import pytest

from model.vocabulary import Fault as Kill
from model.vocabulary import GroupingConfig
from model.vocabulary.grouping import Route
from sim.grouping import simulate
from sim.grouping.cluster import GroupingTuning
from sim.kernel.distributions import Constant
from sim.kernel.faults import Congest, Fail, Schedule, Slow
from sim.kernel.link import HERE, Noise, Place
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.source import Recording, Row, Source
from sim.kernel.trigger import Every, EveryTuples, When

# ----------------------------------------------------------------------------- small clusters


EPOCH_US = 1_000_000
TRIGGER = EveryTuples(100)
ELSEWHERE = Place(rack=1)
"""Another rack: a tuple of 100 bytes takes 80 us on the line, and then 350 us."""


def cluster(*workers: Worker, tuple_bytes: int = 100) -> Cluster:
    """Return a cluster of these workers in turn; a tuple takes 100 us."""
    retried = Noise(retry_us=1_000.0)
    return Cluster(workers or (Worker(place=HERE),), Constant(100.0), tuple_bytes, retried)


def at(*times_us: int, keys: str = "a") -> Recording:
    """Return tuples that arrive at these times, with these keys in turn."""
    rows = [
        Row(EPOCH_US + time_us, EPOCH_US + time_us, keys[n % len(keys)], float(n))
        for n, time_us in enumerate(times_us)
    ]
    return Recording(tuple(rows))


def plan_of(
    source: Source | Recording,
    *workers: Worker,
    faults: Schedule = (),
    trigger: When = TRIGGER,
    measured: bool = False,
    tuple_bytes: int = 100,
) -> Plan:
    return Plan(
        (source,),
        cluster=cluster(*workers, tuple_bytes=tuple_bytes),
        faults=faults,
        trigger=trigger,
        tuning=GroupingTuning(measured=measured),
        epoch_us=EPOCH_US,
    )


def latency_us(plan: Plan) -> float:
    """Return what the only tuple took from arrival until it was served."""
    config = GroupingConfig(1, "shuffle", latency_us=(0,))
    summary = simulate(plan, config, 1).summary
    assert summary["tuples"] == 1
    return float(summary["mean_latency_us"])


# --------------------------------------------------------------------------------- measured times


REGULAR = Source(400, Constant(1_000.0), keys=tuple("abcdefgh"))


def times_us(*workers: Worker, measured: bool = True, **plan: object) -> list[list[object]]:
    """Return the times by window of a tuple a millisecond, in turns, in windows of a hundred."""
    source = plan_of(REGULAR, *workers, measured=measured, **plan)  # type: ignore[arg-type]  # the fields are given by name
    config = GroupingConfig(2, "shuffle", ((0, (100, 100)),), window_tuples=100)
    found: list[list[object]] = simulate(source, config, 1).workload.config["times_us"]
    return found


FAST, SLOW = Worker(place=HERE), Worker(0.25, place=HERE)


def test_times_are_those_that_instances_took() -> None:
    assert times_us(FAST, SLOW) == [[0, [100, 100]], [1, [100, 400]]]
    assert times_us(FAST, SLOW, measured=False) == [[0, [100, 100]]]


def test_a_line_that_is_slower_than_its_instance_is_the_time() -> None:
    # 1,000 bytes at 10 Mb/s.
    far = Worker(place=ELSEWHERE)
    assert times_us(FAST, far, tuple_bytes=1_000)[1] == [1, [100, 800]]


def test_a_line_that_gets_slower_than_its_instance_is_measured() -> None:
    # In the second window a tuple takes 160 us on a line of 8; the last tuple of the first window
    # enters in it, too.
    rack = Worker(place=Place(node=1))
    congested = Congest("log>worker-1", 99_500, 100_000, 0.05)
    found = times_us(rack, rack, faults=(congested,))
    assert found == [[0, [100, 100]], [2, [100, round((8 + 49 * 160) / 50)]], [3, [100, 100]]]


def test_tuples_that_are_not_served_by_the_end_of_a_window_are_not_measured_yet() -> None:
    # Instance 1 gets slow in the second window. At its end it has served 26 tuples of 100 us each,
    # the last one of the first window among them, and 24 slow ones; its 25th is still there.
    slow = Slow("worker-1", 150_000, 1_000_000_000, 10.0)
    found = [times for _, times in times_us(FAST, faults=(slow,))]
    assert [times[0] for times in found] == [100] * len(found)  # type: ignore[index]  # figures are numbers here
    expected = [100, (26 * 100 + 24 * 1_000) // 50, 1_000]
    assert [times[1] for times in found] == expected  # type: ignore[index]  # figures are numbers here


def test_nag_adapts_to_the_network_and_not_to_speeds() -> None:
    # Three windows of 100 tuples; in the second a rack's line takes 160 us a tuple, not 8, so
    # that a way is 360 us, nearer to 430 than to 208.
    rack = Worker(place=Place(node=1))
    congested = Congest("log>worker-1", 99_500, 100_000, 0.05)
    plan = plan_of(REGULAR, rack, replace(rack, speed=0.5), measured=True, faults=(congested,))
    config = GroupingConfig(2, "nag-dynamic", window_tuples=100, tiers=(2, 2))
    timed = simulate(plan, config, 1)
    assert timed.workload.config["later_tiers"] == [[2, [2, 3]], [3, [2, 2]]]
    counts = Counter((each.seq // 100, each.instance) for each in timed.trace.of(Route))
    assert [counts[window, 1] for window in range(4)] == [50, 50, 33, 50]


def test_a_window_waits_for_the_trigger_and_times_for_the_first_tuple_after_it() -> None:
    # The window of 100 tuples is full after 99 ms, and cut after 250 ms; the next one has 250.
    config = GroupingConfig(1, "key", ((0, (7,)),), window_tuples=100)
    timed = simulate(plan_of(REGULAR, FAST, trigger=Every(250_000), measured=True), config, 1)
    assert timed.workload.cuts == (250,)
    assert timed.workload.config["times_us"] == [[0, [7]], [1, [100]]]
    # With nothing after the last window, there is nothing to know times for.
    timed = simulate(plan_of(REGULAR, FAST, trigger=Every(400_000), measured=True), config, 1)
    assert timed.workload.config["times_us"] == [[0, [7]]]


# ------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("at_us", "batches"),
    [
        (50, ()),  # before the first tuple
        (150, (0,)),
        (900, (0,)),  # everything is routed, and one tuple is in service
        (2_000, ()),  # between two micro-batches
        (2_999, ()),
        (3_050, (1,)),
        (9_000, ()),  # after the end
    ],
)
def test_a_failure_is_a_kill_of_the_micro_batch_that_it_interrupts(
    at_us: int, batches: tuple[int, ...]
) -> None:
    source = at(100, 200, 300, 850, 3_000, 3_100)
    plan = plan_of(source, Worker(), faults=(Fail("worker-0", at_us, 10),), trigger=EveryTuples(4))
    timed = simulate(plan, GroupingConfig(1), 1)
    assert timed.workload.cuts == (4,)
    assert timed.workload.faults == tuple(Kill("kill", batch) for batch in batches)
    assert timed.summary.get("served_again", 0) == (at_us in (150, 900, 3_050))


def test_the_log_sheds_what_the_next_sender_has_no_room_for() -> None:
    # An instance has two places, and the sender two more: of ten tuples at once four are let in,
    # and of those that come later all that find the sender with one tuple at most.
    worker = Worker(queue_limit=2, when_full="drop")
    timed = simulate(plan_of(at(*[0] * 10, 150, 160, 250), worker), GroupingConfig(1), 1)
    assert timed.summary["shed"] == 6 + 1
    assert [event.value for event in timed.workload.arrivals] == [0, 1, 2, 3, 10, 12]
    # With two senders it is that of the next number, whatever room the other one has.
    config = GroupingConfig(2, "key", senders=2)
    timed = simulate(plan_of(at(*[0] * 12), worker), config, 1)
    assert len(timed.workload.arrivals) == 2 + 2 * 2

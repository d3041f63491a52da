"""Sources: their tuples, which are drawn before the run, and the times of sending."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import simpy

from sim.kernel.disorder import Burst, Disturbance, Gap
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.faults import Duplicate, Fault
from sim.kernel.plan import EPOCH_2020_US
from sim.kernel.seeds import Seeds
from sim.kernel.source import (
    IDS_PER_SOURCE,
    AnySource,
    Feeder,
    Recording,
    Row,
    Sent,
    Source,
    Tuple,
    departures_of,
)

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


def test_a_source_without_tuples_sends_nothing() -> None:
    found = sent(Source(0))
    assert (found.created, found.last_us, len(found.departures.leave_us)) == (0, -1, 0)


def test_a_delay_moves_the_departure_and_not_the_event_time() -> None:
    departures = sent(Source(2, interval=Constant(1), delay=Constant(30))).departures
    assert departures.leave_us.tolist() == [30, 31]
    assert (departures.event_us - EPOCH_2020_US).tolist() == [0, 1]


def test_the_largest_value_takes_longest() -> None:
    departures = sent(Source(200, delay_by_value_us=1_000.0)).departures
    delays_us = departures.leave_us - (departures.event_us - EPOCH_2020_US)
    assert delays_us.tolist() == (departures.values * 1_000).tolist()


def test_departures_are_in_order_of_time_whatever_the_delays() -> None:
    loose = sent(Source(500, Exponential(1_000), delay=Exponential(9_000))).departures
    assert (np.diff(loose.leave_us) >= 0).all()
    assert (np.diff(loose.event_us) < 0).any()
    strict = sent(Source(500, Exponential(1_000), delay=Exponential(9_000), in_order=True))
    assert (np.diff(strict.departures.leave_us) >= 0).all()
    assert (np.diff(strict.departures.event_us) >= 0).all()


def test_keys_in_turn_come_in_their_order_over_and_over() -> None:
    keys = sent(Source(5, keys=("b", "a"), in_turn=True)).departures.keys
    assert keys.tolist() == ["b", "a", "b", "a", "b"]


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


def test_every_duplicate_of_a_tuple_is_sent() -> None:
    faults = [Duplicate("source-0", 1, after_us) for after_us in (7, 5, 7)]
    found = sent(Source(2), *faults)
    assert found.departures.source_ids.tolist() == [0, 1, 1, 1, 1]
    assert found.departures.leave_us.tolist() == [0, *(SECOND + us for us in (0, 5, 7, 7))]
    assert found.duplicated == 3


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


def test_draws_for_one_purpose_move_no_other_draws() -> None:
    plain = Source(50, Exponential(1_000), delay=Exponential(5_000), keys=("a", "b"))
    one = sent(plain).departures
    burst = Burst(0, SECOND, 0.5, Exponential(100.0))
    other = sent(plain, disturbances=(burst,)).departures
    by_id = [np.argsort(each.source_ids) for each in (one, other)]
    for name in ("source_ids", "keys", "event_us", "values"):
        columns = [
            getattr(each, name)[rows] for each, rows in zip((one, other), by_id, strict=True)
        ]
        assert columns[0].tolist() == columns[1].tolist(), name
    assert one.leave_us.tolist() != other.leave_us.tolist()


# --------------------------------------------------------------------------------- the process


def test_a_feeder_sends_at_its_times_and_waits_while_it_is_blocked() -> None:
    env = simpy.Environment()
    got: list[tuple[int, float]] = []

    def send(item: Tuple, entered: Callable[[], object]) -> bool:
        def enter(_: simpy.Event) -> None:
            entered()

        got.append((item.source_id, env.now))
        if item.source_id == 1:  # blocked for 40 us: the next two are behind their times
            simpy.Timeout(env, 40.0).callbacks.append(enter)
            return True
        return False

    departures = sent(Source(5, interval=Constant(15))).departures
    Feeder(env, departures, 800, send).wait()
    env.run()
    assert got == [(0, 0), (1, 15), (2, 55), (3, 55), (4, 60)]


def test_a_feeder_gives_whole_tuples() -> None:
    env = simpy.Environment()
    got: list[Tuple] = []
    departures = sent(Source(1, keys=("k",), low=3, high=3)).departures

    def send(item: Tuple, _: Callable[[], object]) -> bool:
        got.append(item)
        return False

    Feeder(env, departures, 64, send).wait()
    env.run()
    assert got == [Tuple(0, "k", EPOCH_2020_US, 3.0, "s", 64)]
    assert [type(field) for field in got[0]] == [int, str, int, float, str, int]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Source(10, low=-1, delay_by_value_us=1.0), r"Source.low is -1; it must be at lea"),
        (
            lambda: Source(10, delay_by_value_us=-1.0),
            r"Source.delay_by_value_us is -1.0; it must be finite",
        ),
    ],
)
def test_a_delay_by_value_needs_values_that_are_not_negative(
    build: Callable[[], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        build()

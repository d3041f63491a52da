import gc

import pytest
import simpy

from model.vocabulary import JoinConfig
from model.vocabulary.join import Band
from sim.join.crew import Control, Crew
from sim.join.run import arrivals_of, simulate_stream
from sim.join.scenarios import Rates, steady
from sim.join.timed import Room, Stream
from sim.kernel.run import uncollected


@uncollected()
def is_collecting() -> bool:
    return gc.isenabled()


def test_the_collector_stands_still_and_goes_on() -> None:
    assert gc.isenabled()
    assert [is_collecting(), is_collecting()] == [False, False]
    assert gc.isenabled()
    with uncollected():
        assert not is_collecting()  # within another one
        assert not gc.isenabled()
    assert gc.isenabled()


@uncollected()
def made() -> list[list[int]]:
    return [[number] for number in range(100_000)]


def test_what_a_run_has_made_is_not_gone_through_when_it_is_over() -> None:
    gc.collect()
    kept = made()
    assert sum(gc.get_count()) < len(kept) / 10
    assert any(each is kept for each in gc.get_objects(generation=2))
    assert gc.get_freeze_count() == 0


def test_whatever_was_frozen_stays_so() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        made()
        assert gc.get_freeze_count() == frozen > 0
    finally:
        gc.unfreeze()


@uncollected()
def fails() -> None:
    raise ZeroDivisionError


def test_the_collector_goes_on_after_a_failure() -> None:
    with pytest.raises(ZeroDivisionError):
        fails()
    assert gc.isenabled()


def test_whoever_has_switched_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        assert not is_collecting()
        assert not gc.isenabled()
    finally:
        gc.enable()


CONFIG = JoinConfig(1_000_000, (("near", Band("value", 50.0)),), workers=4)


def stream() -> Stream:
    """Links, stations, messages: what comes to the room in which most happens."""
    plan = steady(Rates(50, 50, 5))
    return Stream(arrivals_of(plan, seed=1), (), plan.epoch_us)


def test_a_run_leaves_no_cycles_while_it_goes_on() -> None:
    room = Room(stream(), CONFIG, Crew(), Control(), (), seed=1, record=True)
    with uncollected():
        gc.collect()
        room.run()
        assert gc.collect() == 0
    assert room.emitted


def test_nothing_is_left_of_a_run_that_is_over() -> None:
    """Hundreds of them, in a sweep, would fill the memory."""
    arriving = stream()
    with uncollected():
        gc.collect()
        simpy.Environment()
        kernel = gc.collect()
        assert simulate_stream(arriving, CONFIG, seed=1, record=True).summary["results"]
        assert gc.collect() == kernel < 10

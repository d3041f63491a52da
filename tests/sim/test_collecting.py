import gc

import pytest

from sim.collecting import uncollected


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

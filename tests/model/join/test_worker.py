"""Single actions of a worker, channels, and when a block is sent."""

from dataclasses import replace

import pytest

from model.join.rules import NUMBERED, Setup
from model.join.scopes import Scope
from model.join.state import (
    BY_KIND,
    CAPACITY_1,
    IN_ORDER,
    UNORDERED,
    Acknowledgement,
    Block,
    Copy,
    Lane,
    Listed,
    Worker,
    unacknowledged,
)
from model.join.worker import (
    acknowledge,
    droppable,
    forward,
    is_overdue,
    is_unbalanced,
    receive,
    sizes,
)
from model.vocabulary.join import END_US, NO_WATERMARK_US, R, S

CONTENT = Listed((10, 4, 30), (10, 11, 12), lambda r, s: 1)


def block(stream: str, number: int, *tuples: int, seen: int = 0, wm_us: int = 0) -> Block:
    return Block(stream, number, seen, tuples, wm_us)


def test_a_block_of_r_meets_the_store_and_the_copies_that_its_sender_had_not_seen() -> None:
    copies = (Copy(block(S, 1, 0), 7), Copy(block(S, 2, 1)))
    worker = Worker(Lane(), Lane(store=(2,), copies=copies))
    _, pairs = receive(worker, block(R, 1, 0, seen=1), CONTENT, NUMBERED)
    assert pairs == ((0, 2), (0, 1))


def test_a_block_of_s_meets_the_store_and_no_copy() -> None:
    worker = Worker(Lane(store=(1,), copies=(Copy(block(R, 1, 0)),)), Lane())
    after, pairs = receive(worker, block(S, 1, 0, wm_us=5), CONTENT, NUMBERED)
    assert pairs == ((1, 0),)
    assert (after.s.store, after.s.received, after.s.wm_us) == ((0,), 1, 5)


def test_a_copy_of_s_stays_until_the_blocks_sent_before_its_acknowledgement_have_come() -> None:
    worker = Worker(Lane(), Lane(copies=(Copy(block(S, 1, 0)),)))
    worker = acknowledge(worker, Acknowledgement(S, 1, 1, 0), NUMBERED, with_size=True)
    assert len(worker.s.copies) == 1
    assert unacknowledged(worker.s) == 0
    worker, pairs = receive(worker, block(R, 1, 0), CONTENT, NUMBERED)
    assert pairs == ((0, 0),)
    assert worker.s.copies == ()


def test_a_second_acknowledgement_changes_nothing() -> None:
    worker = Worker(Lane(), Lane(copies=(Copy(block(S, 1, 0), sent=1),)))
    assert acknowledge(worker, Acknowledgement(S, 1, 0, 0), NUMBERED, with_size=False) == worker


def test_the_watermark_of_a_block_is_bounded_by_what_stays_behind() -> None:
    worker = Worker(Lane(store=(0, 1, 2), wm_us=20), Lane())
    assert forward(worker, R, 1, CONTENT, NUMBERED)[1].wm_us == 4
    assert forward(worker, R, 2, CONTENT, NUMBERED)[1].wm_us == 20
    assert forward(worker, R, 0, CONTENT, NUMBERED)[1].tuples == ()


@pytest.mark.parametrize(("wm_us", "dropped"), [(9, ()), (10, (1,)), (16, (0, 1)), (END_US, None)])
def test_a_tuple_is_dropped_strictly_after_its_window(
    wm_us: int, dropped: tuple[int, ...] | None
) -> None:
    worker = Worker(Lane(store=(0, 1, 2)), Lane(wm_us=wm_us))
    expected = (0, 1, 2) if dropped is None else dropped
    assert droppable(worker, R, 5, CONTENT, NUMBERED) == expected


# ------------------------------------------------------------------------------------- channels


def test_channels_deliver_as_their_order_says() -> None:
    channel = (block(R, 1, 0), block(R, 2, 1), Acknowledgement(S, 1, 0, 0))
    assert IN_ORDER.deliverable(channel) == (0,)
    assert BY_KIND.deliverable(channel) == (0, 2)
    assert UNORDERED.deliverable(channel) == (0, 1, 2)
    assert UNORDERED.deliverable((channel[0], channel[0])) == (0,)
    assert IN_ORDER.deliverable(()) == BY_KIND.deliverable(()) == UNORDERED.deliverable(()) == ()


def test_the_order_of_sending_makes_no_difference_without_order() -> None:
    one, other = block(R, 1, 0), Acknowledgement(S, 1, 0, 0)
    assert UNORDERED.put((one,), other) == UNORDERED.put((other,), one)
    assert not CAPACITY_1.has_room((one,))


# -------------------------------------------------------------------------------------- sending

SETUP: Setup = replace(
    Scope("sending", (10, 4, 30), (10,), window_us=5, free=False, block_size=2).setup(),
    content=CONTENT,
)


@pytest.mark.parametrize(
    ("store", "neighbour", "under_way", "expected"),
    [
        ((0, 1), 0, (), True),
        ((0,), 0, (), False),
        ((0, 1), 1, (), False),
        ((0, 1, 2), 1, (), True),
        ((0, 1, 2), 0, (9, 9), False),
    ],
)
def test_a_block_is_sent_if_the_neighbour_has_a_block_less(
    store: tuple[int, ...], neighbour: int, under_way: tuple[int, ...], expected: bool
) -> None:
    copies = (Copy(block(R, 1, *under_way)),) if under_way else ()
    lane = Lane(store=store, neighbour=neighbour, copies=copies)
    assert is_unbalanced(SETUP, lane) is expected


@pytest.mark.parametrize(("heard_us", "expected"), [(9, False), (10, True)])
def test_a_tuple_is_overdue_when_the_other_stream_has_moved_past_it(
    heard_us: int, expected: bool
) -> None:
    worker = Worker(Lane(store=(0, 1)), Lane(heard_us=heard_us))
    assert is_overdue(SETUP, worker, R) is expected


def test_an_empty_block_is_sent_for_a_new_watermark() -> None:
    setup = replace(SETUP, empty_blocks=True)
    worker = Worker(Lane(wm_us=5), Lane())
    assert list(sizes(setup, worker, R)) == [0]
    assert list(sizes(setup, Worker(Lane(wm_us=5, announced_us=5), Lane()), R)) == []
    assert list(sizes(SETUP, worker, R)) == []
    assert NO_WATERMARK_US < 5

"""When a block is sent, and how large it is.

Source: docs/join.md, section 5.

Rules of this file:

* Nothing here matters for safety: with ``Setup.free`` any block may be sent at any time.
* What a worker knows of others are hints; a wrong one costs time, not pairs.
"""

from collections.abc import Iterator

from model.join.state import Setup
from model.join.worker import Lane, Worker, lanes


def sizes(setup: Setup, worker: Worker, stream: str) -> Iterator[int]:
    """How many tuples the next block may have."""
    lane, _ = lanes(worker, stream)
    most = min(setup.block_size, len(lane.store))
    if setup.free:
        yield from range(1, most + 1)
    elif most and (is_unbalanced(setup, lane) or is_overdue(setup, worker, stream)):
        yield most
    if setup.empty_blocks and not lane.copies and _passing_us(setup, lane, stream) > lane.told_us:
        yield 0


def _passing_us(setup: Setup, lane: Lane, stream: str) -> int:
    return min(lane.wm_us, setup.content.least_us(stream, lane.store))


def is_unbalanced(setup: Setup, lane: Lane) -> bool:
    """Whether the next worker has at least a block less of the stream."""
    size, zeta = len(lane.store), setup.block_size
    if size < zeta:
        return False
    under_way = sum([len(copy.block.tuples) for copy in lane.copies if copy.sent < 0])
    return size - (lane.neighbour + under_way) >= zeta


def is_overdue(setup: Setup, worker: Worker, stream: str) -> bool:
    """Whether the other stream has moved past a stored tuple, as far as is known."""
    lane, opposite = lanes(worker, stream)
    least_us = setup.content.least_us(stream, lane.store)
    return setup.rules.forces and least_us + setup.window_us < opposite.heard_us

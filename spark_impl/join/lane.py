"""One stream at one worker, within an epoch: its state, and the pace at which it flows.

The pace is section 5 of docs/join.md. Safety does not depend on it, except for :func:`can_forward`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from model.vocabulary.join import NO_WATERMARK_US, JoinConfig, R, S
from spark_impl.join.admission import Admitted, Arrivals, Intake
from spark_impl.join.checkpoint import StreamState
from spark_impl.join.control import share_of
from spark_impl.join.matching import Counts
from spark_impl.join.messages import Block
from spark_impl.join.side import Matcher, Side
from spark_impl.runtime.arrays import Ints

RUN = 1024
"""Largest number of arrivals that a worker admits before it looks at messages again."""
_LEAD_BLOCKS = 4
"""Number of blocks by which a stream may always run ahead of the other one."""


@dataclass(slots=True)
class Copy:
    """A block that was sent and is not released yet."""

    tuples: int
    needed: int | None = None
    """Number of the last block of the other stream that must meet this copy.

    It is ``None`` until the block is acknowledged.
    """


@dataclass(slots=True)
class Lane:
    """One stream at one worker: where it comes from, where it goes, and what is here."""

    stream: str
    behind: int | None
    """The neighbour that blocks come from; ``None`` if the stream enters the chain here."""
    ahead: int | None
    """The neighbour that blocks go to; ``None`` if the stream ends here."""
    store: Side
    passed_us: int
    """The passed watermark: every tuple below it has been here, or never will be."""
    intake: Intake | None
    """Admission, at the worker where the stream enters."""
    source_us: int = NO_WATERMARK_US
    """The watermark at the stream's source, as last heard."""
    next_seq: int = NO_WATERMARK_US
    """Arrival number of the stream's next arrival, as last heard."""
    over: bool = False
    """The source has ended its intake for this epoch."""
    sent: int = 0
    """Number of blocks sent."""
    received: int = 0
    """Number of blocks received in order."""
    copies: dict[int, Copy] = field(default_factory=dict)
    """Copies of sent blocks, by block number."""
    early: dict[int, Block] = field(default_factory=dict)
    """Blocks that came before their turn, by block number."""
    unacknowledged: int = 0
    """Number of blocks sent and not acknowledged."""
    on_the_way: int = 0
    """Number of tuples in unacknowledged blocks."""
    est: int = 0
    """Size of the store at the neighbour ahead, from its last acknowledgement."""
    sent_wm_us: int = NO_WATERMARK_US
    """Highest watermark that a sent block carried."""
    promised: int | None = None
    """Number of blocks that come from behind in the whole epoch, once it is known."""
    ended: bool = False
    """No further block will be sent."""

    @property
    def complete(self) -> bool:
        """Return whether everything from behind is here."""
        return self.over if self.behind is None else self.promised == self.received


def open_lane(
    stream: str,
    behind: int | None,
    ahead: int | None,
    config: JoinConfig,
    matcher: Matcher,
    state: StreamState,
    floor_us: int,
) -> Lane:
    """Return the lane of a stream at the beginning of an epoch, from its state at the worker.

    ``config`` is that of the epoch (:func:`spark_impl.join.control.config_of`). The watermark of
    the stream does not lie below ``floor_us``.
    """
    store = Side(matcher, stream)
    store.append(state.tuples)
    passed_us, intake = state.wm_us, None
    if behind is None:
        share = share_of(config)
        intake = Intake(stream, config.lateness_us, state.intake or Admitted(), share, floor_us)
        passed_us = max(passed_us, intake.watermark_us)
    return Lane(stream, behind, ahead, store, passed_us, intake)


def count_accepted(worker_lanes: Mapping[str, Lane]) -> Counts:
    """Return the number of arrivals of each stream that entered at a worker and were accepted."""
    r, s = (worker_lanes[stream].intake for stream in (R, S))
    return Counts(0 if r is None else r.accepted, 0 if s is None else s.accepted)


def can_forward(lane: Lane, config: JoinConfig) -> bool:
    """Return whether the protocol permits to send a block now, whatever the pace."""
    return (
        lane.ahead is not None
        and not lane.ended
        and lane.unacknowledged < config.credit
        and (len(lane.store) > 0 or block_watermark(lane) > lane.sent_wm_us)
    )


def blocks_to_send(lane: Lane, other: Lane, config: JoinConfig) -> int:
    """Return how many blocks to send now.

    At the end of an epoch these are the overdue tuples and the last watermark.
    """
    if not can_forward(lane, config):
        return 0
    zeta = config.block_size
    wanted = 0
    if is_overdue(lane, other, config):
        wanted = -(-lane.store.oldest_with(other.source_us - config.window_us) // zeta)
    if lane.over and other.over:
        last = lane.complete and block_watermark(lane) > lane.sent_wm_us
        wanted = max(wanted, int(last))
    else:
        size = len(lane.store)
        surplus = size - (lane.est + lane.on_the_way)  # every block lowers it by two blocks
        wanted = max(wanted, min(size // zeta, (surplus + zeta) // (2 * zeta)))
    return min(wanted, config.credit - lane.unacknowledged)


def is_overdue(lane: Lane, other: Lane, config: JoinConfig) -> bool:
    """Return whether some stored tuple cannot meet anything new by waiting."""
    return lane.store.least_ts() + config.window_us < other.source_us


def is_held_up(lane: Lane, other: Lane, config: JoinConfig) -> bool:
    """Return whether some overdue tuple waits for an acknowledgement."""
    is_full = lane.ahead is not None and lane.unacknowledged >= config.credit
    return is_full and is_overdue(lane, other, config)


def block_watermark(lane: Lane) -> int:
    """Return the watermark behind everything that was sent; the store bounds it."""
    return min(lane.passed_us, lane.store.least_ts())


def arrivals_to_admit(
    lane: Lane, other: Lane, config: JoinConfig, arrivals: Arrivals, position: int
) -> int:
    """Return how many of the epoch's arrivals to admit now, from ``position`` on.

    The stream with the earlier next arrival never waits for the other stream.
    """
    if is_held_up(lane, other, config):
        return 0
    level = int(np.searchsorted(arrivals.seq, other.next_seq))
    furthest = level + _lead(arrivals.tuples.ts[level : level + RUN], config)
    return max(0, min(RUN, furthest - position, len(arrivals.seq) - position))


def _lead(ts: Ints, config: JoinConfig) -> int:
    """Return by how many arrivals a stream may run ahead; ``ts`` are the times of the next ones.

    What runs ahead reaches the workers in one lump. A lump that is larger than the part of the
    window at one worker leaves the other workers idle.
    """
    within_us = config.window_us // (2 * config.workers)
    is_within = np.maximum.accumulate(ts) <= ts[:1] + within_us
    return max(_LEAD_BLOCKS * config.block_size, int(np.count_nonzero(is_within)))

"""What a worker of the chain keeps: for itself between epochs, and for one stream within one."""

from dataclasses import dataclass, field

import numpy as np

from model.vocabulary.join import NO_WATERMARK_US, JoinConfig
from spark_impl.join.admission import Intake
from spark_impl.join.messages import Block
from spark_impl.join.side import Side
from spark_impl.runtime.arrays import Ints


@dataclass(slots=True)
class Copy:
    """A block that was sent and not released."""

    block: Block
    needed: int | None = None
    """Once acknowledged: blocks of the other stream that still have to meet it, by number."""


@dataclass(slots=True)
class Lane:
    """What a worker keeps for one stream: where it comes from, where it goes, what is here."""

    stream: str
    behind: int | None
    """The neighbour that blocks come from; ``None``: the stream enters here."""
    ahead: int | None
    """The neighbour that blocks go to; ``None``: the stream ends here."""
    store: Side
    passed_us: int
    intake: Intake | None
    source_us: int = NO_WATERMARK_US
    next_seq: int = NO_WATERMARK_US
    over: bool = False
    sent: int = 0
    received: int = 0
    copies: dict[int, Copy] = field(default_factory=dict)
    early: dict[int, Block] = field(default_factory=dict)
    unacknowledged: int = 0
    on_the_way: int = 0
    """Tuples in unacknowledged blocks."""
    est: int = 0
    sent_wm_us: int = NO_WATERMARK_US
    promised: int | None = None
    """Blocks that come from behind in the whole epoch, once that is known."""
    ended: bool = False
    """No block will be sent any more."""

    @property
    def complete(self) -> bool:
        """Nothing comes from behind any more."""
        return self.over if self.behind is None else self.promised == self.received


RUN = 1024
"""Most arrivals that are admitted before messages are looked at again."""
_LEAD_BLOCKS = 4
"""Blocks that a stream may be ahead of the next arrival of the other one."""


def can_forward(lane: Lane, config: JoinConfig) -> bool:
    """The protocol permits to send a block, whatever the policy says."""
    return (
        lane.ahead is not None
        and not lane.ended
        and lane.unacknowledged < config.credit
        and (len(lane.store) > 0 or block_watermark(lane) > lane.sent_wm_us)
    )


def blocks_to_send(lane: Lane, other: Lane, config: JoinConfig) -> int:
    """How many blocks go now; at the end of an epoch what is overdue, and the last watermark."""
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
        ahead = size - (lane.est + lane.on_the_way)  # less by two blocks with every block
        wanted = max(wanted, min(size // zeta, (ahead + zeta) // (2 * zeta)))
    return min(wanted, config.credit - lane.unacknowledged)


def is_overdue(lane: Lane, other: Lane, config: JoinConfig) -> bool:
    """Some tuple in the store cannot meet anything new by waiting."""
    if not len(lane.store) or other.source_us == NO_WATERMARK_US:
        return False
    return lane.store.least_ts() + config.window_us < other.source_us


def is_held_up(lane: Lane, other: Lane, config: JoinConfig) -> bool:
    """Some tuple is overdue, and waits for an acknowledgement."""
    is_full = lane.ahead is not None and lane.unacknowledged >= config.credit
    return is_full and is_overdue(lane, other, config)


def block_watermark(lane: Lane) -> int:
    """What holds for the stream behind everything that was sent: the store bounds it."""
    if not len(lane.store):
        return lane.passed_us
    return min(lane.passed_us, lane.store.least_ts())


def room(lane: Lane, other: Lane, config: JoinConfig, seqs: Ints, position: int) -> int:
    """How many arrivals from ``position`` on may be admitted now.

    The stream whose next arrival is the earlier one never waits for the other.
    """
    if is_held_up(lane, other, config):
        return 0
    lead = max(_LEAD_BLOCKS * config.block_size, RUN)
    furthest = int(np.searchsorted(seqs, other.next_seq)) + lead
    return max(0, min(RUN, furthest - position, len(seqs) - position))

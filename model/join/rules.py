"""The decisions of the protocol, one function each, and the setup of a chain.

Source: docs/join.md, section 3.

Rules of this file:

* A decision only reads; ``worker`` carries it out.
* ``NUMBERED`` are the rules that implementations follow. ``FIFO`` are those without numbers, for
  channels that keep order. A planted bug is one of the two with an entry replaced (``variants``).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypedDict

from model.join.state import (
    IN_ORDER,
    Acknowledgement,
    Action,
    Block,
    ChainState,
    Channel,
    Content,
    Copies,
    Copy,
    Lane,
    Message,
    Network,
    Pair,
    Worker,
    channel_of,
    goes_right,
    with_channel,
)
from model.vocabulary.join import R

# ------------------------------------------------------------------------------------- decisions


def visible(worker: Worker, block: Block) -> Copies:
    """Return the copies that a block is joined with: of blocks sent, and not seen by its sender.

    Only copies of S are ever visible.
    """
    if block.stream != R:
        return ()
    return tuple([copy for copy in worker.s.copies if copy.block.number > block.seen])


def all_visible(worker: Worker, block: Block) -> Copies:
    """Return every copy of S: the decision without numbers."""
    return worker.s.copies if block.stream == R else ()


def in_turn(lane: Lane, block: Block) -> bool:
    """Return whether a block is the next one over its boundary."""
    return block.number == lane.received + 1


def acknowledge(copies: Copies, ack: Acknowledgement) -> Copies:
    """Mark the copy that an acknowledgement names with what was sent before it."""
    return tuple(
        [
            copy._replace(sent=ack.sent) if copy.block.number == ack.number else copy
            for copy in copies
        ]
    )


def acknowledge_oldest(copies: Copies, _ack: Acknowledgement) -> Copies:
    """Mark the oldest copy: the decision without numbers."""
    return (copies[0]._replace(sent=0), *copies[1:]) if copies else ()


def resent(copy: Copy, _worker: Worker) -> Block:
    """Return the block to send again after a connection was lost: the block as it was."""
    return copy.block


def drop_wm_us(worker: Worker, stream: str) -> int:
    """Return the watermark by which tuples are dropped: that of the other stream at this worker."""
    return worker.s.wm_us if stream == R else worker.r.wm_us


@dataclass(frozen=True, slots=True)
class Rules:
    """The table of decisions."""

    numbered: bool = True
    visible: Callable[[Worker, Block], Copies] = visible
    in_turn: Callable[[Lane, Block], bool] = in_turn
    acknowledge: Callable[[Copies, Acknowledgement], Copies] = acknowledge
    resent: Callable[[Copy, Worker], Block] = resent
    drop_wm_us: Callable[[Worker, str], int] = drop_wm_us
    forces: bool = True
    """True if an overdue tuple is sent on, whatever the loads are."""


NUMBERED = Rules()
FIFO = replace(
    NUMBERED,
    numbered=False,
    visible=all_visible,
    in_turn=lambda _lane, _block: True,
    acknowledge=acknowledge_oldest,
)

# ------------------------------------------------------------------------------ setup of a chain


@dataclass(frozen=True, slots=True)
class Setup:
    """The parameters of a chain, which do not change while it runs."""

    workers: int
    """Number of workers at the start."""
    window_us: int
    content: Content
    wm_us: tuple[Sequence[int], Sequence[int]]
    """Watermark of R and of S after the first admission, the second, ..."""
    block_size: int
    credit: int
    rules: Rules = NUMBERED
    network: Network = IN_ORDER
    free: bool = False
    """True if blocks of any size are sent at any time; otherwise the load and overdue tuples
    decide."""
    empty_blocks: bool = False
    ends: bool = True
    """True if there is a flush after the last admission."""
    changes: int = 0
    """Number of times that workers may be merged or split."""
    table: "Mapping[str, Transition] | None" = None
    """Another table than ``chain.TABLE``: planted bugs have actions of their own."""

    @property
    def hints(self) -> bool:
        """Return whether sizes and heard watermarks are used."""
        return not self.free


class SetupChanges(TypedDict, total=False):
    """Fields of ``Setup`` that a scope or a planted bug replaces."""

    block_size: int
    rules: Rules
    network: Network
    free: bool
    empty_blocks: bool
    changes: int
    table: "Mapping[str, Transition] | None"


Step = tuple[ChainState, tuple[Pair, ...]]
"""The next state, and the pairs found in the transition."""


class Transition(NamedTuple):
    """An action: its guard, which lists where it is possible, and its effect."""

    guard: Callable[[Setup, ChainState], Iterator[Action]]
    effect: Callable[[Setup, ChainState, Action], Step]


def initial(setup: Setup) -> ChainState:
    """Return the state in which nothing has been admitted."""
    channels: tuple[Channel, ...] = ((),) * (setup.workers - 1)
    return ChainState(
        (Worker(),) * setup.workers,
        channels,
        channels,
        repeats=setup.network.repeats,
        cuts=setup.network.cuts,
        changes=setup.changes,
    )


def send(setup: Setup, state: ChainState, at: int, message: Message) -> ChainState:
    """Return the state with one more message on its way over a boundary."""
    to_right = goes_right(message)
    channel = setup.network.put(channel_of(state, at, to_right), message)
    return with_channel(state, at, to_right, channel)

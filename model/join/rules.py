"""The decisions of the protocol, one function each, so that one of them can be exchanged.

Source: docs/join.md, section 3.

Rules of this file:

* A decision looks, it changes nothing; ``model/join/worker.py`` does what was decided.
* ``NUMBERED`` is what implementations follow. ``FIFO`` is the variant without numbers, for
  channels that keep order. A planted bug is one of the two with an entry replaced
  (``model/join/variants.py``).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from model.vocabulary.join import R

if TYPE_CHECKING:
    from model.join.worker import Ack, Block, Copies, Copy, Lane, Worker


def visible(worker: "Worker", block: "Block") -> "Copies":
    """Copies of the other stream that a block is joined with: those sent, not seen by its sender.

    Only copies of S are ever visible.
    """
    if block.stream != R:
        return ()
    return tuple([copy for copy in worker.s.copies if copy.block.number > block.seen])


def all_visible(worker: "Worker", block: "Block") -> "Copies":
    """Without numbers: every copy of S."""
    return worker.s.copies if block.stream == R else ()


def in_turn(lane: "Lane", block: "Block") -> bool:
    """Whether a block is the next one over its boundary."""
    return block.number == lane.received + 1


def acknowledge(copies: "Copies", ack: "Ack") -> "Copies":
    """Copies after an acknowledgement: the one it names knows what was sent before it."""
    return tuple(
        [
            copy._replace(sent=ack.sent)
            if copy.block.number == ack.number and copy.sent < 0
            else copy
            for copy in copies
        ]
    )


def acknowledge_oldest(copies: "Copies", _ack: "Ack") -> "Copies":
    """Without numbers: the oldest copy is the one."""
    return (copies[0]._replace(sent=0), *copies[1:]) if copies else ()


def is_released(copy: "Copy", received: int) -> bool:
    """Whether nothing can ask for a copy of S any more.

    ``received`` counts blocks of R over the same boundary.
    """
    return 0 <= copy.sent <= received


def resent(copy: "Copy", _worker: "Worker") -> "Block":
    """What is sent again after a connection was lost: the block as it was."""
    return copy.block


def drop_wm_us(worker: "Worker", stream: str) -> int:
    """The watermark by which a stream's tuples are dropped: what of the other one has passed."""
    return worker.s.wm_us if stream == R else worker.r.wm_us


@dataclass(frozen=True, slots=True)
class Rules:
    """The table of decisions."""

    numbered: bool = True
    visible: Callable[["Worker", "Block"], "Copies"] = visible
    in_turn: Callable[["Lane", "Block"], bool] = in_turn
    acknowledge: Callable[["Copies", "Ack"], "Copies"] = acknowledge
    is_released: Callable[["Copy", int], bool] = is_released
    resent: Callable[["Copy", "Worker"], "Block"] = resent
    drop_wm_us: Callable[["Worker", str], int] = drop_wm_us
    forces: bool = True
    """Whether a tuple that is overdue is sent on whatever the loads."""


NUMBERED = Rules()
FIFO = replace(
    NUMBERED,
    numbered=False,
    visible=all_visible,
    in_turn=lambda _lane, _block: True,
    acknowledge=acknowledge_oldest,
)

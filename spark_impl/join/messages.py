"""What neighbours in the chain say to one another (docs/join.md, section 3)."""

from typing import NamedTuple

from spark_impl.join.matching import Tuples


class Block(NamedTuple):
    """Tuples of one stream, or a watermark alone."""

    stream: str
    number: int
    """1, 2, 3, ... within epoch, boundary and stream."""
    seen: int
    """Blocks of the other stream that the sender had received over this boundary."""
    wm_us: int
    """Every tuple of the stream below it was at the sender before, or never will be."""
    tuples: Tuples


class Ack(NamedTuple):
    """A block was joined and stored."""

    stream: str
    number: int
    sent_opposite: int
    """Blocks of the other stream that the sender had sent over this boundary."""
    size: int
    """Tuples of this stream in the sender's store."""


class Hint(NamedTuple):
    """What the source of a stream tells the chain; never needed for safety."""

    stream: str
    source_wm_us: int
    """Watermark of the stream, as its source has it."""
    next_seq: int
    """``seq`` of the next arrival; no arrival of the stream before it is still to come."""
    over: bool
    """The intake of this epoch has ended: both other fields are final."""


class End(NamedTuple):
    """The sender sends no further block of the stream in this epoch."""

    stream: str
    blocks: int
    """How many it has sent."""


Message = Block | Ack | Hint | End

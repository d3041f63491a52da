"""Channels between neighbours: what may be taken out of them next.

Source: docs/join.md, section 3.

Rules of this file:

* A channel is the tuple of messages in it, all that go one way over one boundary.
* Blocks with a number that was received before are repeats; those that come too early wait.
"""

from dataclasses import dataclass

from model.join.worker import Ack, Block, Message

Channel = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """What the channels do to messages."""

    order: str = "fifo"
    """``fifo``, ``none``, or ``by kind``: blocks and acknowledgements each keep order, alone."""
    repeats: int = 0
    """How often a message may be delivered and still stay in the channel."""
    cuts: int = 0
    """How often a connection may be lost with everything in it, both ways."""
    capacity: int | None = None
    """Most messages in a channel; sending waits for room."""

    def put(self, channel: Channel, message: Message) -> Channel:
        """The channel with one message more."""
        longer = (*channel, message)
        return longer if self.order != "none" else tuple(sorted(longer, key=_sorting))

    def has_room(self, channel: Channel) -> bool:
        """Whether one more may be sent."""
        return self.capacity is None or len(channel) < self.capacity

    def deliverable(self, channel: Channel) -> tuple[int, ...]:
        """Positions of the messages that may come next; equal ones once."""
        if self.order == "fifo":
            return (0,) if channel else ()
        if self.order == "none":
            return tuple(n for n, each in enumerate(channel) if each not in channel[:n])
        firsts = [_first(channel, Block), _first(channel, Ack)]
        return tuple(n for n in firsts if n is not None)


def _first(channel: Channel, kind: type) -> int | None:
    return next((n for n, each in enumerate(channel) if isinstance(each, kind)), None)


def _sorting(message: Message) -> tuple[object, ...]:
    """Without order, channels with the same messages are the same: any fixed order will do."""
    return type(message).__name__, *message


FIFO = Network()
UNORDERED = Network(order="none")
REPEATING = Network(order="none", repeats=1)
CUT = Network(cuts=1)
BY_KIND = Network(order="by kind")
CAPACITY_1 = Network(capacity=1)

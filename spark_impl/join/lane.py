"""What a worker of the chain keeps: for itself between epochs, and for one stream within one."""

from dataclasses import dataclass, field
from typing import NamedTuple

from model.vocabulary.join import NO_WATERMARK_US
from spark_impl.join.admission import Admitted, Intake
from spark_impl.join.matching import Tuples
from spark_impl.join.messages import Block
from spark_impl.join.side import Side


class WorkerState(NamedTuple):
    """What a worker holds when the chain is quiet; an epoch begins and ends with it."""

    r: Tuples
    s: Tuples
    r_wm_us: int = NO_WATERMARK_US
    s_wm_us: int = NO_WATERMARK_US
    r_intake: Admitted | None = None
    """At worker 0 alone."""
    s_intake: Admitted | None = None
    """At the last worker alone."""


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

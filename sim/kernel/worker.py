"""Workers as data: how fast one is, where it stands, and what happens when its queue is full."""

from dataclasses import dataclass
from math import inf
from typing import Literal

from model.vocabulary.settings import require
from sim.kernel.link import Place
from sim.kernel.plain import plain


@plain
@dataclass(frozen=True, slots=True)
class Worker:
    """A worker as data."""

    speed: float = 1.0
    """Work done per microsecond and server; 0.1 is a worker ten times slower."""
    servers: int = 1
    queue_limit: int | None = None
    """Items that may wait, not counting those in service; ``None``: any number."""
    when_full: Literal["block", "drop"] = "block"
    """``block``: an item waits at the door and its sender is told to stop (backpressure);
    ``drop``: it is thrown away."""
    place: Place | None = None
    """Where the worker stands; ``None``: right there, without a link in between."""

    def __post_init__(self) -> None:
        require(0 < self.speed < inf, "Worker.speed", self.speed, "finite and above 0")
        require(self.servers >= 1, "Worker.servers", self.servers, "at least 1")
        good = self.when_full in ("block", "drop")
        require(good, "Worker.when_full", self.when_full, "'block' or 'drop'")
        if self.queue_limit is not None:
            require(self.queue_limit >= 0, "Worker.queue_limit", self.queue_limit, "at least 0")

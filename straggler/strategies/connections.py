"""Trouble on the connections of a chain on Spark, for faults of links that were drawn for SimPy."""

from collections.abc import Iterator, Sequence

from sim.kernel.faults import Congest, Fail, Fault, Lose, Replay
from straggler.judging.trouble import Trouble
from straggler.strategies.queries import LINK_US

HELD_UP = 8
"""Factor by which a message on Spark is held up longer than in simulated time."""


def troubles_of(faults: Sequence[Fault], epochs: int) -> Iterator[Trouble]:
    """Yield the trouble on Spark's own connections that stands for each drawn fault.

    A lost message is sent again, as TCP does, so it comes late; so does a message on a congested
    link. A worker that fails loses the connections to its neighbours in the middle of the run.
    """
    for number, fault in enumerate(faults):
        match fault:
            case Replay(link, nth, after_us):
                yield Trouble("again", *_ends(link), nth, HELD_UP * after_us / 1e6)
            case Lose(link, nth):
                yield Trouble("late", *_ends(link), nth, HELD_UP * LINK_US / 1e6)
            case Congest(link, _, for_us):
                yield Trouble("late", *_ends(link), number % 3, HELD_UP * for_us / 1e6)
            case Fail():
                for sender, receiver in ((0, 1), (1, 0)):
                    yield Trouble("lost", sender, receiver, 0, epoch=epochs // 2)
            case _:
                raise ValueError(f"no trouble of a connection stands for {fault}")


def _ends(link: str) -> tuple[int, int]:
    sender, receiver = (int(end.removeprefix("worker-")) for end in link.split(">"))
    return sender, receiver

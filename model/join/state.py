"""The state of a chain, and what it takes to change one: workers, channels, actions.

Source: docs/join.md, section 3.

Rules of this file:

* Data and access to it; what may happen stands in ``chain``.
* A state does not contain what was emitted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from model.join.network import FIFO, Channel, Network
from model.join.rules import NUMBERED, Rules
from model.join.worker import Block, Content, Message, Pair, Ranks, Worker
from model.vocabulary.join import R

# ---------------------------------------------------------------------------------------- state


@dataclass(frozen=True, slots=True)
class Setup:
    """What does not change while the chain runs."""

    workers: int
    """At the start."""
    window_us: int
    content: Content
    wm_us: tuple[Sequence[int], Sequence[int]]
    """Watermark of R and of S after the first admission, the second, ..."""
    block_size: int = 2
    credit: int = 2
    rules: Rules = NUMBERED
    network: Network = FIFO
    free: bool = False
    """Blocks of any size are sent at any time; otherwise by load, and tuples that are overdue."""
    empty_blocks: bool = False
    ends: bool = True
    """Whether there is a flush after the last admission."""
    changes: int = 0
    """How often workers may be merged or split."""
    table: "Mapping[str, Transition] | None" = None
    """Another table than ``chain.TABLE``: planted bugs have actions of their own."""

    @property
    def hints(self) -> bool:
        """Whether anybody asks for sizes and for watermarks as heard."""
        return not self.free


class State(NamedTuple):
    """The whole chain at one moment."""

    workers: tuple[Worker, ...]
    right: tuple[Channel, ...]
    """By boundary: blocks of R, acknowledgements of S."""
    left: tuple[Channel, ...]
    """By boundary: blocks of S, acknowledgements of R."""
    admitted_r: int = 0
    admitted_s: int = 0
    ended: bool = False
    repeats: int = 0
    """Left to the network, as are ``cuts``."""
    cuts: int = 0
    changes: int = 0
    saved: tuple[Worker, ...] = ()
    """A checkpoint; only a planted bug asks for it."""
    phase: str = ""
    """How far a change at the right end is (``live``); so do the queues belong to it."""
    queue: Ranks = ()
    """Of S, between the source and the worker that was the end at the start."""
    new_queue: Ranks = ()
    """Of S, between the source and the worker that is the end after the change."""


def initial(setup: Setup) -> State:
    """Nothing has been admitted."""
    channels: tuple[Channel, ...] = ((),) * (setup.workers - 1)
    workers = (Worker(),) * setup.workers
    network = setup.network
    return State(
        workers,
        channels,
        channels,
        repeats=network.repeats,
        cuts=network.cuts,
        changes=setup.changes,
    )


def is_quiet(state: State) -> bool:
    """Whether no message is under way and no copy is kept."""
    return not any(state.right) and not any(state.left) and not any(_copies(state))


def _copies(state: State) -> Iterator[bool]:
    for worker in state.workers:
        yield bool(worker.r.copies or worker.s.copies or worker.r.waiting or worker.s.waiting)


class Action(NamedTuple):
    """One thing that may happen."""

    what: str
    worker: int = -1
    """Where; of a cut, the worker left of the boundary."""
    stream: str = ""
    n: int = 0
    """Tuples of a block, or admitted at once (0: one); position of a message in its channel."""
    repeats: bool = False
    """The network delivers the message and keeps it."""


Step = tuple[State, tuple[Pair, ...]]
NO_PAIRS: tuple[Pair, ...] = ()

# -------------------------------------------------------------------------------------- places


def boundary(worker: int, stream: str) -> int:
    """The boundary over which a worker sends a stream."""
    return worker if stream == R else worker - 1


def source(state: State, stream: str) -> int:
    """The worker at which a stream enters."""
    return 0 if stream == R else len(state.workers) - 1


def sends(state: State, worker: int, stream: str) -> bool:
    """Whether there is a boundary over which a worker sends a stream."""
    return worker < len(state.workers) - 1 if stream == R else worker > 0


def goes_right(message: Message) -> bool:
    """Whether it is a block of R or an acknowledgement of S."""
    return (message.stream == R) == isinstance(message, Block)


def channel_of(state: State, at: int, to_right: bool) -> Channel:
    """One of the two channels of a boundary."""
    return (state.right if to_right else state.left)[at]


def with_channel(state: State, at: int, to_right: bool, channel: Channel) -> State:
    """The state with another channel."""
    channels = state.right if to_right else state.left
    changed = (*channels[:at], channel, *channels[at + 1 :])
    workers, right, left = state[:3]
    # Twice as fast as ``_replace``, and this is what a long run does most.
    if to_right:
        return State(workers, changed, left, *state[3:])
    return State(workers, right, changed, *state[3:])


def send(setup: Setup, state: State, at: int, message: Message) -> State:
    """The state with a message more on its way over a boundary."""
    to_right = goes_right(message)
    channel = setup.network.put(channel_of(state, at, to_right), message)
    return with_channel(state, at, to_right, channel)


def with_worker(state: State, number: int, worker: Worker) -> State:
    """The state with another worker."""
    workers = state.workers
    return State((*workers[:number], worker, *workers[number + 1 :]), *state[1:])


class Transition(NamedTuple):
    """An action: where it is possible, and what it does."""

    guard: Callable[[Setup, State], Iterator[Action]]
    effect: Callable[[Setup, State, Action], Step]

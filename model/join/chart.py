"""A behaviour of a chain as a message-sequence chart in plain text.

Rules of this file:

* One line an action, one column a worker, time runs down. What is sent points to the neighbour,
  what is received points from where it came.
* R tuples are r0, r1, ... by rank, S tuples s0, s1, ....
"""

from collections.abc import Iterator, Sequence

from model.checking.explorer import Path
from model.join.protocol import Scope, State
from model.join.state import Action, boundary, channel_of
from model.join.worker import Block, Message, Ranks, lanes, other
from model.vocabulary.join import R, S

WIDTH = 34


def named(stream: str, ranks: Ranks) -> str:
    """Tuples of a stream, for example ``r0 r1``."""
    return " ".join(f"{stream.lower()}{rank}" for rank in ranks) or "nothing"


def emitted(scope: Scope, before: State, after: State) -> str:
    """Pairs that an action brought out, with a mark on those that came out before."""
    again = after.twice & ~before.twice
    fresh = after.once & ~before.once
    parts = []
    for bit, (r, s) in enumerate(scope.pairs):
        if (fresh | again) >> bit & 1:
            parts.append(f"(r{r} s{s})" + " AGAIN" * (again >> bit & 1))
    return " ".join(parts)


def chart(scope: Scope, path: Path[State, Action]) -> tuple[str, ...]:
    """The lines of the chart, header first."""
    columns = max(len(state.chain.workers) for state in (path.initial, *_states(path)))
    lines = [_line("", [f"worker {n}" for n in range(columns)])]
    before = path.initial
    for number, (action, after) in enumerate(path.steps, start=1):
        cells = ["|" if n < len(after.chain.workers) else "" for n in range(columns)]
        at = action.worker if action.worker >= 0 else 0
        text = describe(before, after, action)
        pairs = emitted(scope, before, after)
        cells[at] = f"{text} => {pairs}" if pairs else text
        lines.append(_line(f"{number:>3}. ", cells))
        before = after
    return tuple(lines)


def _states(path: Path[State, Action]) -> Iterator[State]:
    for _, state in path.steps:
        yield state


def _line(number: str, cells: Sequence[str]) -> str:
    line = f"{number:<5}"
    for column, cell in enumerate(cells):
        start = 5 + column * WIDTH
        line = line.ljust(start) if len(line) <= start else line + " "
        line += cell
    return line.rstrip()


def describe(before: State, after: State, action: Action) -> str:
    """An action in a few words, with arrows for what comes and goes."""
    what, at, stream, n, repeats = action
    chain = before.chain
    if what in ("admit", "the source sends"):
        rank = chain.admitted_r if stream == R else chain.admitted_s
        return f"{named(stream, (rank,))} {'enters' if what == 'admit' else 'is sent to the end'}"
    if what in ("read", "read the new queue"):
        queue = chain.queue if what == "read" else chain.new_queue
        return f"{named(stream, queue[:1])} enters"
    if what == "forward":
        lane, _ = lanes(chain.workers[at], stream)
        sent = f"[{named(stream, lane.store[:n])}]"
        return f"{sent} -->" if stream == R else f"<-- {sent}"
    if what in ("receive", "acknowledge"):
        message = _message(before, action)
        text = _received(message) + ", which stays in the channel" * repeats
        return f"--> {text}" if _from_left(message) else f"<-- {text}"
    if what == "drop":
        lane, _ = lanes(chain.workers[at], stream)
        kept, _ = lanes(after.chain.workers[at], stream)
        gone = tuple(rank for rank in lane.store if rank not in kept.store)
        return f"drops {named(stream, gone)}"
    return _other(action)


def _other(action: Action) -> str:
    what, at, stream, n, _ = action
    if what == "hear":
        return f"hears the watermark of {stream}"
    if what == "end":
        return "both streams end"
    if what == "cut":
        return f"loses the connection to {at + 1}"
    if what == "merge":
        return f"is merged with worker {at + 1}"
    if what == "split":
        side = f"{n} of R go right" if stream == R else f"R and {n} of S go right"
        return f"is split: {side}"
    return f"{what} {stream}".rstrip()


def _message(state: State, action: Action) -> Message:
    _, at, stream, n, _ = action
    if action.what == "receive":
        return channel_of(state.chain, boundary(at, other(stream)), stream == R)[n]
    return channel_of(state.chain, boundary(at, stream), stream == S)[n]


def _received(message: Message) -> str:
    if isinstance(message, Block):
        return f"[{named(message.stream, message.tuples)}]"
    return f"ACK {message.stream}{message.number or ''}"


def _from_left(message: Message) -> bool:
    return (message.stream == R) == isinstance(message, Block)

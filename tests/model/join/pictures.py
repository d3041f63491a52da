"""Pictures of docs/join.md: a behaviour as a chart in SVG, and the protocol as a state diagram.

Rules of this file:

* In a chart, a vertical line is a worker, and time runs down. An arrow is a message, from where it
  was sent to where it was taken; a message that is never taken ends half way, dotted. Text stands
  at the worker that acts, on the side away from the arrows of two workers.
* The diagram shows only what happens: a worker's condition is read off states, and an arrow is an
  action of the worker that leads from one condition to another in some behaviour of a scope.
"""

from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import NamedTuple

from model.checking.explorer import Path
from model.join.scopes import Protocol, Scope, State, describe_emitted, name_tuples
from model.join.state import Action, Block, Message, Worker, goes_right, unacknowledged
from model.vocabulary.join import R

COLUMN, ROW, LEFT, TOP = 240, 30, 170, 40


class MessageArrow(NamedTuple):
    """A message: the worker and row that it leaves from, and those where it is taken."""

    message: Message
    start: int
    row: int
    end: int
    taken: int | None


def svg(scope: Scope, path: Path[State, Action]) -> str:
    """Return the chart as the text of an SVG file."""
    states = [path.initial, *(state for _, state in path.steps)]
    columns = max(len(state.chain.workers) for state in states)
    width, height = 2 * LEFT + (columns - 1) * COLUMN, TOP + (len(path.steps) + 1) * ROW
    parts = [
        f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="12">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>',
    ]
    for worker in range(columns):
        x = LEFT + worker * COLUMN
        parts.append(f'<text x="{x}" y="20" text-anchor="middle">worker {worker}</text>')
        parts.append(f'<path d="M{x},28 V{height}" stroke="#999"/>')
    parts += [_draw(arrow) for arrow in message_arrows(path)]
    parts += _words(scope, path)
    return "\n".join([*parts, "</svg>"]) + "\n"


NAMESPACE = "http://www.w3.org/2000/svg"


def message_arrows(path: Path[State, Action]) -> list[MessageArrow]:
    """Return every message of a behaviour, in the order of sending."""
    found: list[MessageArrow] = []
    before = path.initial
    for row, (_, after) in enumerate(path.steps, start=1):
        for at in range(min(len(before.chain.right), len(after.chain.right))):
            for was, now in (
                (before.chain.right[at], after.chain.right[at]),
                (before.chain.left[at], after.chain.left[at]),
            ):
                taken, sent = list(was), list(now)
                for message in was:
                    if message in sent:
                        sent.remove(message)
                        taken.remove(message)
                for message in taken:
                    _take(found, message, at, row)
                for message in sent:
                    start, end = (at, at + 1) if goes_right(message) else (at + 1, at)
                    found.append(MessageArrow(message, start, row, end, None))
        before = after
    return found


def _take(found: list[MessageArrow], message: Message, at: int, row: int) -> None:
    for n, arrow in enumerate(found):
        if arrow.taken is None and arrow.message == message and at in (arrow.start, arrow.end):
            found[n] = arrow._replace(taken=row)
            return


def _draw(arrow: MessageArrow) -> str:
    x, y = LEFT + arrow.start * COLUMN, TOP + arrow.row * ROW
    to_x, to_y = LEFT + arrow.end * COLUMN, TOP + (arrow.taken or arrow.row) * ROW
    dots = ""
    if arrow.taken is None:
        to_x, to_y, dots = (x + to_x) // 2, y + ROW // 2, ' stroke-dasharray="2 4"'
    colour = "#1f77b4" if arrow.message.stream == R else "#d62728"
    line = f'<path d="M{x},{y} L{to_x},{to_y}" stroke="{colour}" marker-end="url(#head)"{dots}/>'
    label_x, label_y = (3 * x + to_x) // 4, (3 * y + to_y) // 4 - 4
    if arrow.taken is None:
        label_x, label_y = to_x, to_y + 12
    label = escape(_label(arrow.message))
    return f'{line}<text x="{label_x}" y="{label_y}" text-anchor="middle">{label}</text>'


def _label(message: Message) -> str:
    if isinstance(message, Block):
        return f"[{name_tuples(message.stream, message.tuples)}]"
    return f"ACK {message.stream}{message.number or ''}"


def _words(scope: Scope, path: Path[State, Action]) -> Iterator[str]:
    """Yield the texts about what happens at a worker, and what comes out."""
    before = path.initial
    for row, (action, after) in enumerate(path.steps, start=1):
        at = max(action.worker, 0)
        is_last = at == len(after.chain.workers) - 1 and at > 0
        x = LEFT + at * COLUMN + (10 if is_last else -10)
        anchor = "start" if is_last else "end"
        text = escape(_text(before, action) + describe_emitted(scope, before, after))
        y = TOP + row * ROW
        if text:
            yield f'<text x="{x}" y="{y + 4}" text-anchor="{anchor}">{text}</text>'
        before = after


def _text(before: State, action: Action) -> str:
    if action.what in ("forward", "receive", "acknowledge"):
        return ""
    if action.what == "admit":
        chain = before.chain
        rank = chain.admitted_r if action.stream == R else chain.admitted_s
        return f"{name_tuples(action.stream, (rank,))} enters "
    return f"{action.what} {action.stream} "


# ---------------------------------------------------------------------------- the state diagram

Change = tuple[str, str, str]
"""Condition before, action, condition after."""


def condition(worker: Worker) -> str:
    """Return what a worker waits for.

    ``Forwarding`` waits for acknowledgements, ``Deleting`` for blocks that must still meet a copy;
    ``Processing`` and ``Empty`` wait for neither.
    """
    sends = unacknowledged(worker.r) + unacknowledged(worker.s) > 0
    keeps = bool(worker.r.copies or worker.s.copies)
    holds = bool(worker.r.store or worker.s.store)
    if sends:
        return "Forwarding"
    if keeps:
        return "Deleting"
    return "Processing" if holds else "Empty"


def changes(
    scope: Scope, number: int, of: Callable[[Worker], str] = condition
) -> tuple[Change, ...]:
    """Return every change of a worker's condition in a scope, in order."""
    protocol = Protocol(scope)
    seen = {protocol.initial()}
    level: Iterable[State] = tuple(seen)
    found: set[Change] = set()
    while level:
        following: list[State] = []
        for state in level:
            for action, after in protocol.actions(state):
                if action.worker == number:
                    before, then = state.chain.workers[number], after.chain.workers[number]
                    found.add((of(before), f"{action.what} {action.stream}".rstrip(), of(then)))
                if after not in seen:
                    seen.add(after)
                    following.append(after)
        level = following
    return tuple(sorted(found))


def mermaid(found: Iterable[Change]) -> tuple[str, ...]:
    """Return the changes as a Mermaid state diagram, one line per pair of conditions."""
    labels: dict[tuple[str, str], list[str]] = {}
    for before, action, then in found:
        if before != then:
            labels.setdefault((before, then), []).append(action)
    lines = [f"    {a} --> {b}: {', '.join(names)}" for (a, b), names in labels.items()]
    return ("stateDiagram-v2", "    [*] --> Empty", *lines)

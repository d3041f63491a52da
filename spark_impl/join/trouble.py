"""Trouble on the connections of a chain, for tests: messages come late, again, or never.

Rules of this file:

* A message is a block or an acknowledgement: timing decides how many hints there are.
* The network keeps its promises. Messages of one direction stay in order, and what is lost breaks
  the connection, so that the stage is run again.
* Every message that comes over a connection is counted, before any trouble: what a neighbour sends
  twice is no trouble of the network.
"""

import json
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from socket import socket
from typing import Any, Literal, NamedTuple, get_args

from model.vocabulary.settings import JsonObject, is_int, is_number, one_of, require, require_known
from spark_impl.join.messages import Block, BlockAck, Message
from spark_impl.join.transport import Links, NeighbourLost

Kind = Literal["late", "again", "lost"]


class Trouble(NamedTuple):
    """Trouble with a message from one worker to another, in every epoch.

    ``late``: it comes ``for_s`` seconds later, and so do those behind it. ``again``: it comes once
    more, ``for_s`` seconds later. ``lost``: the connection breaks when it should come, once a run.
    """

    kind: Kind
    sender: int
    receiver: int
    nth: int
    """Number of the message on its way from the one to the other in an epoch: 0, 1, 2, ..."""
    for_s: float = 0.0
    epoch: int | None = None
    """The epoch of the trouble, if it does not happen in every epoch."""

    @classmethod
    def from_json(cls, data: JsonObject) -> "Trouble":
        """Read the fields of a trouble; raise ``ValueError`` with one sentence for other data."""
        require_known(data, cls._fields, ("kind", "sender", "receiver", "nth"))
        kinds = get_args(Kind)
        require(data["kind"] in kinds, "kind", data["kind"], one_of(kinds))
        for name in ("sender", "receiver", "nth", "epoch"):
            value = data.get(name)
            good = (is_int(value) and value >= 0) or (name == "epoch" and value is None)
            require(good, name, value, "an integer, at least 0")
        for_s = data.get("for_s", 0.0)
        require(is_number(for_s) and 0 <= for_s < inf, "for_s", for_s, "finite, at least 0")
        return cls(**data)


class Troubles(NamedTuple):
    """The troubles of a chain, and the folder in which every one that happened leaves a file."""

    planned: tuple[Trouble, ...]
    folder: str
    receiver: int = -1
    """The worker of :meth:`of`, and its epoch."""
    epoch: int = -1

    def of(self, receiver: int, epoch: int) -> "Troubles":
        """Return those of a worker in an epoch."""
        mine = [
            each
            for each in self.planned
            if each.receiver == receiver and each.epoch in (None, epoch)
        ]
        return self._replace(planned=tuple(mine), receiver=receiver, epoch=epoch)

    def note(self, kind: Kind) -> None:
        """Leave a file."""
        Path(self.folder, f"{kind}-{uuid.uuid4().hex}").touch()

    def report(self, came: Mapping["Came", int]) -> None:
        """Leave a file that tells how often each message has come to a worker in a run."""
        told = {
            "epoch": self.epoch,
            "receiver": self.receiver,
            "messages": [{**message._asdict(), "times": times} for message, times in came.items()],
        }
        Path(self.folder, f"came-{uuid.uuid4().hex}").write_text(json.dumps(told), "utf-8")

    def reports(self) -> list[dict[str, Any]]:
        """Return what workers have told of their runs: epoch, receiver and messages."""
        files = sorted(Path(self.folder).glob("came-*"))
        return [json.loads(file.read_text("utf-8")) for file in files]

    def lose_once(self) -> bool:
        """Return whether nothing has been lost yet, and leave a file."""
        try:
            Path(self.folder, "lost-once").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def counts(self) -> dict[str, int]:
        """Return how often each kind of trouble happened."""
        found = Counter(file.name.split("-")[0] for file in Path(self.folder).iterdir())
        return {"late": found["late"], "again": found["again"], "lost": found["lost"]}


class Came(NamedTuple):
    """A message that came: a block, the acknowledgement of one, a hint, or an end of a stream."""

    sender: int
    kind: str
    stream: str
    number: int
    """Number of the block, or 0."""


class _Held(NamedTuple):
    due: float
    message: Message


class TroubledLinks(Links):
    """Connections of a worker, on which the troubles of its epoch happen."""

    def __init__(
        self,
        number: int,
        connections: Mapping[int, socket],
        patience_s: float,
        troubles: Troubles,
    ) -> None:
        super().__init__(number, connections, patience_s)
        self._troubles = troubles
        self._came = Counter[int]()
        self._counted = Counter[Came]()
        self._queues: dict[int, deque[_Held]] = {each: deque() for each in connections}
        """Messages that have come, in order, with the moment at which each is let through."""
        self._again: list[tuple[int, _Held]] = []

    def exchange(
        self, outgoing: Iterable[tuple[int, Message]], wait_s: float
    ) -> list[tuple[int, list[Message]]]:
        """Exchange messages as :meth:`Links.exchange` does, but not without trouble."""
        held = [queue[0] for queue in self._queues.values() if queue]
        held += [each for _, each in self._again]
        due = min((each.due for each in held), default=time.monotonic() + wait_s)
        wait_s = min(wait_s, max(0.0, due - time.monotonic()))
        for sender, messages in super().exchange(outgoing, wait_s):
            for message in messages:
                self._hold(sender, message)
        return self._let_through()

    def close(self) -> None:
        """Close all connections, and tell what has come over them."""
        super().close()
        self._troubles.report(self._counted)

    def _hold(self, sender: int, message: Message) -> None:
        number = message.number if isinstance(message, Block | BlockAck) else 0
        kind = type(message).__name__
        self._counted[Came(sender, kind, message.stream, number)] += 1
        queue, now = self._queues[sender], time.monotonic()
        due = max(now, queue[-1].due) if queue else now
        if isinstance(message, Block | BlockAck):
            for trouble in self._of(sender, self._came[sender]):
                if trouble.kind == "lost":
                    if self._troubles.lose_once():
                        msg = f"worker {sender} is lost, on purpose"
                        raise NeighbourLost(msg)
                elif trouble.kind == "late":
                    self._troubles.note("late")
                    due += trouble.for_s
                else:
                    self._again.append((sender, _Held(due + trouble.for_s, message)))
            self._came[sender] += 1
        queue.append(_Held(due, message))

    def _of(self, sender: int, nth: int) -> Sequence[Trouble]:
        return [each for each in self._troubles.planned if (each.sender, each.nth) == (sender, nth)]

    def _let_through(self) -> list[tuple[int, list[Message]]]:
        now = time.monotonic()
        through: list[tuple[int, list[Message]]] = []
        for sender, queue in self._queues.items():
            messages: list[Message] = []
            while queue and queue[0].due <= now:
                messages.append(queue.popleft().message)
            if messages:
                through.append((sender, messages))
        for sender, held in [each for each in self._again if each[1].due <= now]:
            self._again.remove((sender, held))
            self._troubles.note("again")
            through.append((sender, [held.message]))
        return through

"""Trouble on the connections of a chain on Spark: messages come late, again, or never.

Rules of this file:

* A message is a block or an acknowledgement: timing decides how many hints there are.
* The network keeps its promises. Messages of one direction stay in order, and what is lost breaks
  the connection, so that the stage is run again.
* Every message that comes over a connection is counted, before any trouble: what a neighbour sends
  twice is no trouble of the network.
"""

import json
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import inf
from pathlib import Path
from socket import socket
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from model.vocabulary import System, Trace, Workload
from model.vocabulary.settings import JsonObject, is_int, is_number, one_of, require, require_known
from spark_impl.join.messages import Block, BlockAck, Message
from spark_impl.join.system import run_chain
from spark_impl.join.transport import Links, NeighbourLost
from spark_impl.runtime.systems import system_maker

# Workers of other machines do not have this module, so what they run goes to them as code.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # as all of Spark's

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


_Held: TypeAlias = tuple[float, int, int, Message, bool]
"""A message on its way: the moment at which it is let through, its place among those of the same
moment, its sender, itself, and whether it comes once more."""


class TroubledLinks(Links):
    """Connections of a worker on which troubles happen; closing them leaves a file in ``folder``.

    The file says how often each message has come, and each kind of trouble has happened.
    """

    def __init__(
        self,
        planned: Sequence[Trouble],
        folder: str,
        number: int,
        epoch: int,
        connections: Mapping[int, socket],
        patience_s: float,
    ) -> None:
        super().__init__(number, epoch, connections, patience_s)
        mine = (each for each in planned if each.receiver == number)
        self._planned = [each for each in mine if each.epoch in (None, epoch)]
        self._folder = folder
        self._came, self._happened = Counter[tuple[int, str, str, int]](), Counter[str]()
        self._blocks = Counter[int]()
        """Number of blocks and acknowledgements that came so far, by sender."""
        self._held: list[_Held] = []
        self._order = count()
        self._due_s = dict.fromkeys(connections, 0.0)
        """Moment at which the last message of each neighbour is let through."""

    def exchange(
        self, outgoing: Iterable[tuple[int, Message]], wait_s: float
    ) -> list[tuple[int, list[Message]]]:
        """Exchange messages as :meth:`Links.exchange` does, but not without trouble."""
        if self._held:
            wait_s = min(wait_s, max(0.0, self._held[0][0] - time.monotonic()))
        for sender, messages in super().exchange(outgoing, wait_s):
            for message in messages:
                self._meet(sender, message)
        through: dict[int, list[Message]] = {}
        now_s = time.monotonic()
        while self._held and self._held[0][0] <= now_s:
            _, _, sender, message, is_again = heappop(self._held)
            self._happened["again"] += is_again
            through.setdefault(sender, []).append(message)
        return [*through.items()]

    def close(self) -> None:
        """Close all connections, and tell what has come over them."""
        super().close()
        names = ("sender", "kind", "stream", "number", "times")
        came = [dict(zip(names, (*each, n), strict=True)) for each, n in self._came.items()]
        told = {"epoch": self.epoch, "receiver": self.number, "messages": came}
        told["happened"] = self._happened
        Path(self._folder, f"{uuid.uuid4().hex}.json").write_text(json.dumps(told), "utf-8")

    def _meet(self, sender: int, message: Message) -> None:
        number = message.number if isinstance(message, Block | BlockAck) else 0
        self._came[sender, type(message).__name__, message.stream, number] += 1
        due_s = max(time.monotonic(), self._due_s[sender])
        where = (sender, self._blocks[sender])
        for trouble in self._planned if number else ():
            if (trouble.sender, trouble.nth) != where:
                continue
            if trouble.kind == "again":
                self._hold(due_s + trouble.for_s, sender, message, True)
            elif trouble.kind == "late":
                self._happened["late"] += 1
                due_s += trouble.for_s
            elif self._is_first_loss():
                self._happened["lost"] += 1
                raise NeighbourLost(f"worker {sender} is lost, on purpose")
        self._blocks[sender] += number > 0
        self._due_s[sender] = due_s
        self._hold(due_s, sender, message)

    def _hold(self, due_s: float, sender: int, message: Message, is_again: bool = False) -> None:
        heappush(self._held, (due_s, next(self._order), sender, message, is_again))

    def _is_first_loss(self) -> bool:
        try:
            Path(self._folder, "lost-once").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def read_reports(folder: Path) -> list[dict[str, Any]]:
    """Return what workers have told of their runs: epoch, receiver, messages, what happened."""
    return [json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.json"))]


def make_troubled(planned: Sequence[Trouble]) -> System:
    """Return a system whose chains meet these troubles on the connections between their workers."""

    def run_one(
        spark: SparkSession, cases: Mapping[str, Workload], workdir: Path
    ) -> dict[str, Trace]:
        ((name, workload),) = cases.items()
        noted = workdir / "noted"
        noted.mkdir()
        links = partial(TroubledLinks, tuple(planned), str(noted))
        return {name: run_chain(spark, workload, workdir / "chain", lambda _: None, links)}

    return system_maker("join", run_one)()

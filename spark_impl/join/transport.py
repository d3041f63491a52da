"""Connections between neighbours in the chain.

Rules of this file:

* A socket listens only on the executor's own address, and only as long as somebody may come: the
  neighbour, and in a stage that stays tasks with rows.
* Every socket that listens does so behind a :class:`Door`. A client shows the token of the job
  first, and sends nothing more until it gets an answer. Any other client is refused and logged, and
  keeps nobody else waiting: neither by silence nor by numbers.
* Every wait has an end. A neighbour that is silent for too long is taken for dead; the error
  names it.
* Receiving is always possible: data that cannot be sent at once stays in a buffer, which the
  credit bounds.
"""

import hmac
import logging
import selectors
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

import pyarrow as pa

from model.vocabulary.settings import JsonObject
from spark_impl.join.messages import (
    BYE,
    FRAME_BYTES_MAX,
    GREETING_BYTES_MAX,
    PING,
    FrameProblem,
    Frames,
    Message,
    decode_json,
    decode_messages,
    encode_json,
    encode_messages,
    frame,
)

log = logging.getLogger("straggler.join")

GREETING_S = 5.0
"""Time within which a client has to show its token, else its connection is closed."""
STRANGERS_MAX = 128
"""Most clients that are waited for; one more takes the place of the one that came first.

A worker greets as it connects, so it does not wait among the silent.
"""
_WAITING_MAX = 1024
"""Connections that the operating system keeps until they are accepted, if it keeps that many."""
_PAUSE_S = 0.01
_PING_S = 2.0
_READ_BYTES = 1 << 18
Address = tuple[str, int]


class NeighbourLost(RuntimeError):  # noqa: N818 (not a bug: the stage is run again)
    """A neighbour died or fell silent; the message names it."""


class NeighbourClosed(NeighbourLost):
    """A neighbour closed the connection, most likely because it failed: that is the cause."""


def listen(host: str) -> socket.socket:
    """Return a socket that listens on one address of this machine, on any free port."""
    return socket.create_server((host, 0), backlog=_WAITING_MAX)


def greet(address: Address, greeting: JsonObject, timeout_s: float) -> socket.socket:
    """Connect and show the token. Raise ``OSError`` if nobody listens."""
    connection = socket.create_connection(address, timeout=timeout_s)
    try:
        connection.sendall(encode_json(greeting))
    except OSError:
        connection.close()
        raise
    return connection


def read_json(connection: socket.socket, deadline: float) -> JsonObject:
    """Read one answer to a greeting, and nothing behind it.

    Raise ``OSError`` or :class:`spark_impl.join.messages.FrameProblem` if none comes.
    """
    frames = Frames(FRAME_BYTES_MAX)
    while True:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        data = connection.recv(frames.missing)
        if not data:
            msg = "the connection was closed without an answer"
            raise ConnectionError(msg)
        for kind, body in frames.feed(data):
            return decode_json(kind, body)


@dataclass(slots=True)
class _Stranger:
    """A client that has not shown its token yet."""

    connection: socket.socket
    deadline: float
    frames: Frames = field(default_factory=lambda: Frames(GREETING_BYTES_MAX))


class Door:
    """Accepts connections and returns those that greet with the token."""

    def __init__(self, listener: socket.socket, token: str) -> None:
        self._listener = listener
        self._token = token
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def fileno(self) -> int:
        """Return the number by which ``select`` waits until there is something to do here."""
        return self._selector.fileno()

    def wait(self, timeout_s: float) -> Iterator[tuple[socket.socket, JsonObject]]:
        """Yield connections that have shown the token meanwhile, with their greetings."""
        ready = [key.data for key, _ in self._selector.select(min(timeout_s, GREETING_S))]
        strangers = [*(each for each in ready if each is not None), *self._accept()]
        heard = [(each.connection, self._listen_to(each)) for each in strangers]
        waiting = self._waiting()
        for number, stranger in enumerate(waiting):
            if stranger.deadline < time.monotonic():
                self._refuse(stranger.connection, "it did not greet in time")
            elif number < len(waiting) - STRANGERS_MAX:
                self._refuse(stranger.connection, "it did not greet, and too many others came")
        # At the end, because whoever takes a connection may be busy with it for long.
        yield from (
            (connection, greeting) for connection, greeting in heard if greeting is not None
        )

    def _accept(self) -> list[_Stranger]:
        """Return the clients that have connected meanwhile, but not too many at once."""
        found: list[_Stranger] = []
        try:
            while len(found) < STRANGERS_MAX:
                connection, _ = self._listener.accept()
                connection.setblocking(False)
                found.append(_Stranger(connection, time.monotonic() + GREETING_S))
                self._selector.register(connection, selectors.EVENT_READ, found[-1])
        except BlockingIOError:  # nobody else waits
            pass
        except OSError:  # the client is gone already, or the process has no file descriptor left
            time.sleep(_PAUSE_S)
        return found

    def _waiting(self) -> list[_Stranger]:
        """Return the clients that have not greeted, in the order in which they came."""
        strangers = [key.data for key in self._selector.get_map().values() if key.data is not None]
        return sorted(strangers, key=lambda each: each.deadline)

    def close(self) -> None:
        """Refuse all clients that have not greeted, and stop listening, unless that is done."""
        for key in list((self._selector.get_map() or {}).values()):
            (self._listener if key.data is None else key.data.connection).close()
        self._selector.close()

    def _listen_to(self, stranger: _Stranger) -> JsonObject | None:
        connection = stranger.connection
        try:
            data = connection.recv(GREETING_BYTES_MAX)
        except BlockingIOError:  # it has only just connected
            return None
        except OSError as error:
            self._refuse(connection, str(error))
            return None
        try:
            if not data:
                self._refuse(connection, "it was closed before it greeted")
                return None
            for kind, body in stranger.frames.feed(data):
                greeting = decode_json(kind, body)
                if self._is_token(greeting.get("token")):
                    self._selector.unregister(connection)
                    return greeting
                self._refuse(connection, "its token is wrong")
                return None
        except FrameProblem as error:
            self._refuse(connection, str(error))
        return None

    def _is_token(self, shown: object) -> bool:
        return (
            isinstance(shown, str)
            and shown.isascii()  # compare_digest rejects other strings
            and hmac.compare_digest(shown, self._token)
        )

    def _refuse(self, connection: socket.socket, reason: str) -> None:
        try:
            name = str(connection.getpeername())
        except OSError:
            name = "somebody"
        log.warning("a connection from %s is refused: %s", name, reason)
        self._selector.unregister(connection)
        connection.close()


@dataclass(slots=True)
class _Peer:
    """A connected neighbour."""

    name: str
    connection: socket.socket
    heard: float
    spoken: float
    frames: Frames = field(default_factory=lambda: Frames(FRAME_BYTES_MAX))
    unsent: bytearray = field(default_factory=bytearray)
    gone: bool = False
    """The neighbour has said that it needs nothing more."""


class Links:
    """The connections of one worker, in one epoch."""

    def __init__(
        self, number: int, epoch: int, connections: Mapping[int, socket.socket], patience_s: float
    ) -> None:
        now = time.monotonic()
        self.number, self.epoch = number, epoch
        self.schemas: Mapping[str, pa.Schema] = {}
        """Columns of the tuples in blocks, by stream."""
        self._parting = self._has_parted = False
        self._patience_s = patience_s
        self._selector = selectors.DefaultSelector()
        self._peers: dict[int, _Peer] = {}
        self.bytes_sent = 0
        self.waited_s = 0.0
        """Time in which nothing came."""
        for neighbour, connection in sorted(connections.items()):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setblocking(False)
            self._peers[neighbour] = _Peer(f"worker {neighbour}", connection, now, now)
            self._selector.register(connection, selectors.EVENT_READ, neighbour)

    def exchange(
        self, outgoing: Iterable[tuple[int, Message]], wait_s: float
    ) -> list[tuple[int, list[Message]]]:
        """Send messages, then wait until some come, or ``wait_s`` seconds; return them by sender.

        Raise :class:`NeighbourLost`, or :class:`spark_impl.join.messages.FrameProblem`.
        """
        by_neighbour: dict[int, list[Message]] = {}
        for neighbour, message in outgoing:
            by_neighbour.setdefault(neighbour, []).append(message)
        for neighbour, messages in by_neighbour.items():
            for part in encode_messages(messages):
                self._peers[neighbour].unsent += part
        now = time.monotonic()
        for neighbour, peer in self._peers.items():
            if not (peer.unsent or self._parting) and now - peer.spoken > _PING_S:
                peer.unsent += frame(PING)
            self._send(neighbour, peer)
            if not peer.gone and now - peer.heard > self._patience_s:
                silent = f"was silent for {self._patience_s:g} s"
                msg = f"{peer.name} {silent}, says worker {self.number}"
                raise NeighbourLost(msg)
        begun = time.monotonic()
        ready = self._selector.select(min(wait_s, _PING_S))
        self.waited_s += time.monotonic() - begun
        # What can be sent now goes out with the next exchange.
        return [(key.data, list(self._read(self._peers[key.data]))) for key, _ in ready]

    def part(self) -> None:
        """Say goodbye and stay until every neighbour has: then no neighbour needs anything more."""
        self._parting = True
        for neighbour, peer in self._peers.items():
            peer.unsent += frame(BYE)
            self._send(neighbour, peer)  # whoever has said goodbye says nothing more
        while any(peer.unsent or not peer.gone for peer in self._peers.values()):
            self.exchange((), _PING_S)
        self._has_parted = True

    def close(self) -> None:
        """Close all connections, unless the neighbours have parted: the next epoch needs them."""
        for peer in self._peers.values():
            if not self._has_parted:
                peer.connection.close()
        self._selector.close()

    def _send(self, neighbour: int, peer: _Peer) -> None:
        if not peer.unsent:
            return
        try:
            sent = peer.connection.send(peer.unsent)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._lost(peer, error)
        if sent:
            del peer.unsent[:sent]
            peer.spoken = time.monotonic()
            self.bytes_sent += sent
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.unsent else 0)
        if self._selector.get_key(peer.connection).events != events:
            self._selector.modify(peer.connection, events, neighbour)

    def _read(self, peer: _Peer) -> Iterator[Message]:
        try:
            data = peer.connection.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(peer, error)
        if not data:
            if not (peer.gone and self._parting):
                self._lost(peer, None)
            self._selector.unregister(peer.connection)  # both have said goodbye
            return
        peer.heard = time.monotonic()
        for kind, body in peer.frames.feed(data):
            if kind == BYE:
                peer.gone = True
            elif kind != PING:
                yield from decode_messages(kind, body, self.schemas)

    def _lost(self, peer: _Peer, error: OSError | None) -> NoReturn:
        reason = error or "it was closed at the other end"
        msg = f"{peer.name} is lost, says worker {self.number}: {reason}"
        raise NeighbourClosed(msg) from error

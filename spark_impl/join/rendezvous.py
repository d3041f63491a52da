"""The meeting point of the workers of a stage: a small server on the driver.

It listens on the driver's own address only; on a local master, everybody does on the loopback one.

Every task registers with its number, its own address and the number that Spark gave to this run of
it. When all workers are there, each one gets the addresses of all, and the id of this attempt; the
connections stay, for what driver and workers tell each other. If Spark begins the stage again
before that, its tasks register anew. Everything that an attempt writes carries its id, so a task of
an older attempt that is still alive can disturb nothing.

``BarrierTaskContext.allGather`` is Spark's own way to do this; it polls once a second.
"""

import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple

from pyspark import SparkContext

from model.vocabulary.settings import JsonObject, is_int, is_text
from spark_impl.join.messages import FrameProblem, encode_json
from spark_impl.join.transport import Address, Door, greet, listen, log, read_json

LOOPBACK = "127.0.0.1"
_EVERYWHERE = ("0.0.0.0", "::")
_HOST_MAX = 255
"""Longest name of a host."""
_TICK_S = 0.2
"""Interval at which the server looks for tasks that are gone."""


class Meeting(NamedTuple):
    """The attempt and the addresses of all its workers; every worker gets it."""

    attempt: str
    addresses: tuple[Address, ...]


class Place(NamedTuple):
    """The address at which workers register, and the token to show there."""

    address: Address
    token: str
    timeout_s: float


class _Seat(NamedTuple):
    run: int
    address: Address
    connection: socket.socket


def _read_address(said: object) -> Address:
    """Return the address that a message gives. Raise ``ValueError`` if it is none."""
    if isinstance(said, list) and len(said) == 2:
        host, port = said
        if is_text(host) and 0 < len(host) <= _HOST_MAX and is_int(port) and 0 < port < 1 << 16:
            return host, port
    msg = "its address is none"
    raise ValueError(msg)


def _read_meeting(said: JsonObject) -> Meeting:
    """Return the answer of a rendezvous. Raise ``ValueError`` if it is none."""
    attempt, addresses = said.get("attempt"), said.get("addresses")
    if not is_text(attempt) or not isinstance(addresses, list):
        msg = "the answer names no attempt"
        raise ValueError(msg)
    return Meeting(attempt, tuple(map(_read_address, addresses)))


def addresses_of(context: SparkContext) -> tuple[str, str]:
    """Return the driver's host for workers, and the address to which the rendezvous is bound.

    The rendezvous does not listen on all addresses of a machine, unless Spark is told to and the
    driver's host is no address of this machine, as behind a gateway.
    """
    if str(context.master).startswith("local"):
        return LOOPBACK, LOOPBACK
    settings = context.getConf()
    host = str(settings.get("spark.driver.host"))
    bound_to = str(settings.get("spark.driver.bindAddress", host))
    if bound_to in _EVERYWHERE:
        with suppress(OSError), listen(host):
            return host, host
    return host, bound_to


class Rendezvous:
    """The server of the meeting point; it listens inside a ``with`` statement."""

    def __init__(
        self, host: str, workers: int, timeout_s: float = 300.0, bound_to: str | None = None
    ) -> None:
        self._workers = workers
        self._listener = listen(bound_to or host)
        port = self._listener.getsockname()[1]
        self.place = Place((host, port), secrets.token_hex(32), timeout_s)
        self._door = Door(self._listener, self.place.token)
        self._seats: dict[int, _Seat] = {}

    def __enter__(self) -> "Rendezvous":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._door.close()
        for seat in self._seats.values():
            seat.connection.close()

    def gather(
        self, is_awaited: Callable[[], bool] = lambda: True
    ) -> tuple[Meeting, list[socket.socket]] | None:
        """Wait until all workers are there; return their meeting and the connections with them.

        Return ``None`` as soon as they are not awaited any more.
        """
        while is_awaited():
            for connection, greeting in self._door.wait(_TICK_S):
                self._seat(connection, greeting)
            self._forget_the_dead()
            if len(self._seats) == self._workers:
                return self._introduce()
        return None

    def _seat(self, connection: socket.socket, greeting: JsonObject) -> None:
        """Register the newest run of a task; ids of runs only grow."""
        number, run = greeting.get("worker"), greeting.get("run")
        try:
            address = _read_address(greeting.get("address"))
        except ValueError:
            address = None
        if address is None or not (is_int(number) and is_int(run) and 0 <= run < 1 << 63):
            log.warning("a registration is refused: its keys are %r", sorted(greeting))
            connection.close()
            return
        before = self._seats.get(number)
        if not 0 <= number < self._workers or (before is not None and before.run > run):
            log.warning(
                "worker %d of run %d is refused: it belongs to another attempt", number, run
            )
            connection.close()
            return
        if before is not None:
            before.connection.close()
        self._seats[number] = _Seat(run, address, connection)

    def _forget_the_dead(self) -> None:
        for number, seat in list(self._seats.items()):
            try:
                seat.connection.recv(1)
                alive = False  # it was closed, or its owner did not wait for the answer
            except BlockingIOError:
                alive = True
            except OSError:
                alive = False
            if not alive:
                seat.connection.close()
                del self._seats[number]

    def _introduce(self) -> tuple[Meeting, list[socket.socket]]:
        seats = [self._seats[number] for number in range(self._workers)]
        meeting = Meeting(secrets.token_hex(8), tuple([seat.address for seat in seats]))
        answer = {"attempt": meeting.attempt, "addresses": [*map(list, meeting.addresses)]}
        for seat in seats:
            # The answer fits into a buffer. Who waits for a worker that is gone will notice.
            with suppress(OSError):
                seat.connection.sendall(encode_json(answer))
        self._seats.clear()
        return meeting, [seat.connection for seat in seats]


def host_of_worker(place: Place, executor: str) -> str:
    """Return the host on which a worker listens, given the address of its executor."""
    return LOOPBACK if place.address[0] == LOOPBACK else executor.rpartition(":")[0]


def token_of(place: Place, meeting: Meeting) -> str:
    """Return the token that workers of an attempt show each other."""
    return f"{place.token}/{meeting.attempt}"


def meet(place: Place, worker: int, run: int, address: Address) -> tuple[Meeting, socket.socket]:
    """Register a worker and wait for the others; return the connection with the driver, too.

    Raise ``TimeoutError`` with one sentence if some of them are missing.
    """
    deadline = time.monotonic() + place.timeout_s
    greeting = {"token": place.token, "worker": worker, "run": run, "address": list(address)}
    try:
        connection = greet(place.address, greeting, place.timeout_s)
        try:
            return _read_meeting(read_json(connection, deadline)), connection
        except BaseException:
            connection.close()
            raise
    except (OSError, ValueError) as error:
        msg = f"worker {worker} did not meet the others within {place.timeout_s:g} s: {error}"
        raise TimeoutError(msg) from error


def join_neighbours(
    door: Door, worker: int, meeting: Meeting, place: Place
) -> dict[int, socket.socket]:
    """Connect a worker with its neighbours: it calls the right one, and the left one calls it.

    ``door`` is that of the worker; it has :func:`token_of`.

    Raise ``TimeoutError`` with one sentence that names the missing neighbour.
    """
    deadline = time.monotonic() + place.timeout_s
    found: dict[int, socket.socket] = {}
    missing = worker + 1
    try:
        if missing < len(meeting.addresses):
            shown = {"token": token_of(place, meeting), "worker": worker}
            found[missing] = greet(meeting.addresses[missing], shown, place.timeout_s)
        missing = worker - 1
        while missing >= 0 and missing not in found:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                msg = "no connection before the deadline"
                raise TimeoutError(msg)
            for connection, greeting in door.wait(left_s):
                number = greeting.get("worker")
                if is_int(number) and number == missing and missing not in found:
                    with suppress(OSError):  # it is gone; another one may come
                        connection.sendall(encode_json({}))
                        found[missing] = connection
                        continue
                connection.close()
        missing = worker + 1
        if missing in found:
            read_json(found[missing], deadline)
    except (OSError, FrameProblem) as error:
        for connection in found.values():
            connection.close()
        msg = f"worker {worker} is not connected with worker {missing}: {error}"
        raise TimeoutError(msg) from error
    return found

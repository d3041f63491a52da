"""The meeting point of the workers of one epoch: a small server on the driver.

Every task registers with its number, its own address and the number that Spark gave to this run of
it. When all workers are there, each one gets the addresses of all, and the id of this attempt. If
Spark runs the stage again, its tasks register anew and get another id. Everything that an attempt
writes carries its id, so a task of an older attempt that is still alive can disturb nothing.

``BarrierTaskContext.allGather`` is Spark's own way to do this; it polls once a second.
"""

import secrets
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple

from model.vocabulary.settings import JsonObject
from spark_impl.join.messages import encode_json
from spark_impl.join.transport import Address, Door, greet, listen, log, read_json

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


class Rendezvous:
    """The server of the meeting point; it runs inside a ``with`` statement."""

    def __init__(
        self, host: str, workers: int, timeout_s: float = 300.0, bound_to: str | None = None
    ) -> None:
        self._workers = workers
        self._listener = listen(bound_to or host)
        port = self._listener.getsockname()[1]
        self.place = Place((host, port), secrets.token_hex(32), timeout_s)
        self._door = Door(self._listener, self.place.token)
        self._seats: dict[int, _Seat] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="rendezvous", daemon=True)

    def __enter__(self) -> "Rendezvous":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        with suppress(OSError):  # a connection wakes the server at once
            socket.create_connection(self._listener.getsockname()[:2], timeout=_TICK_S).close()
        self._thread.join()

    def _serve(self) -> None:
        try:
            while not self._stop.is_set():
                for connection, greeting in self._door.wait(_TICK_S):
                    self._seat(connection, greeting)
                self._forget_the_dead()
                if len(self._seats) == self._workers:
                    self._introduce()
        finally:
            self._door.close()
            for seat in self._seats.values():
                seat.connection.close()

    def _seat(self, connection: socket.socket, greeting: JsonObject) -> None:
        """Register the newest run of a task; ids of runs only grow."""
        try:
            number, run = int(greeting["worker"]), int(greeting["run"])
            host, port = greeting["address"]
            seat = _Seat(run, (str(host), int(port)), connection)
        except (KeyError, TypeError, ValueError):
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
        self._seats[number] = seat

    def _forget_the_dead(self) -> None:
        for number, seat in list(self._seats.items()):
            try:
                alive = seat.connection.recv(1) != b""
            except BlockingIOError:
                alive = True
            except OSError:
                alive = False
            if not alive:
                seat.connection.close()
                del self._seats[number]

    def _introduce(self) -> None:
        seats = [self._seats[number] for number in range(self._workers)]
        answer = {
            "attempt": secrets.token_hex(8),
            "addresses": [list(seat.address) for seat in seats],
        }
        for seat in seats:
            seat.connection.settimeout(self.place.timeout_s)
            with suppress(OSError):  # the other workers will notice that this one is gone
                seat.connection.sendall(encode_json(answer))
            seat.connection.close()
        self._seats.clear()


def meet(place: Place, worker: int, run: int, address: Address) -> Meeting:
    """Register a worker and wait for the others.

    Raise ``TimeoutError`` with one sentence if some of them are missing.
    """
    deadline = time.monotonic() + place.timeout_s
    greeting = {"token": place.token, "worker": worker, "run": run, "address": list(address)}
    try:
        connection = greet(place.address, greeting, place.timeout_s)
        with connection:
            answer = read_json(connection, deadline)
    except OSError as error:
        msg = f"worker {worker} did not meet the others within {place.timeout_s:g} s: {error}"
        raise TimeoutError(msg) from error
    addresses = tuple((str(host), int(port)) for host, port in answer["addresses"])
    return Meeting(str(answer["attempt"]), addresses)


def join_neighbours(
    listener: socket.socket, worker: int, meeting: Meeting, place: Place
) -> dict[int, socket.socket]:
    """Connect a worker with its neighbours: it calls the right one, and the left one calls it.

    Raise ``TimeoutError`` with one sentence that names the missing neighbour.
    """
    deadline = time.monotonic() + place.timeout_s
    token = f"{place.token}/{meeting.attempt}"
    found: dict[int, socket.socket] = {}
    missing = worker + 1
    door = Door(listener, token)
    try:
        if missing < len(meeting.addresses):
            shown = {"token": token, "worker": worker}
            found[missing] = greet(meeting.addresses[missing], shown, place.timeout_s)
        missing = worker - 1
        while missing >= 0 and missing not in found:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                msg = "no connection before the deadline"
                raise TimeoutError(msg)
            for connection, greeting in door.wait(left_s):
                if greeting.get("worker") == missing:
                    connection.settimeout(place.timeout_s)
                    connection.sendall(encode_json({"worker": worker}))
                    found[missing] = connection
                else:
                    connection.close()
        missing = worker + 1
        if missing in found:
            read_json(found[missing], deadline)
    except OSError as error:
        for connection in found.values():
            connection.close()
        msg = f"worker {worker} is not connected with worker {missing}: {error}"
        raise TimeoutError(msg) from error
    finally:
        door.close()
    return found

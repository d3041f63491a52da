"""The rendezvous of a chain serves its workers, whatever anybody sends."""

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from properties.promised import Reached, promised
from spark_impl.join import messages, transport
from spark_impl.join.rendezvous import (
    Meeting,
    Place,
    Rendezvous,
    join_neighbours,
    meet,
)
from spark_impl.join.transport import STRANGERS_MAX, Address, Door, listen

HOST = "127.0.0.1"
SHARED = "token/attempt"
"""Token that neighbours show each other."""
PATIENCE_S = 60.0
LAST_RUN = (1 << 63) - 1
"""The run of the right workers, which no other one exceeds."""
NOT_FINITE = (float("inf"), -float("inf"), float("nan"))
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([1 << 63, -(1 << 70), 10**400, *NOT_FINITE, 1.0, 1e308]),
    st.text(max_size=5),
    st.sampled_from(["\ud800", "x" * 300, HOST]),
)
SHAPES = st.recursive(
    ODD,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
ADDRESSES = st.one_of(
    st.just([HOST, 1]),
    st.tuples(st.just(HOST) | SHAPES, st.integers(-1, 1 << 17) | SHAPES).map(list),
    SHAPES,
)
RIGHT = st.fixed_dictionaries(
    {
        "worker": st.integers(0, 1),
        "run": st.integers(0, LAST_RUN - 1),
        "address": st.just([HOST, 1]),
    }
)
GREETINGS: st.SearchStrategy[dict[str, Any]] = RIGHT | st.fixed_dictionaries(
    {},
    optional={
        "worker": st.integers(-1, 2) | SHAPES,
        "run": st.integers(0, LAST_RUN - 1) | SHAPES,
        "address": ADDRESSES,
        "attempt": SHAPES,
    },
)
"""Registrations of peers that have the token."""
DEEP = b'{"worker":' + b"[" * 4000
NOISE = st.one_of(
    st.binary(max_size=40),
    st.binary(max_size=40).map(lambda data: messages.frame(messages.JSON, data)),
    SHAPES.map(lambda said: messages.frame(messages.JSON, json.dumps(said).encode())),
    st.sampled_from([b"\x7f\xff\xff\xff", b"\0\0\0\0", messages.frame(messages.JSON, DEEP)]),
)
"""Bytes of strangers."""
REFUSED, NOTICED = "a peer was refused", "a stranger was refused"


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "straggler.join")


def tell(address: Address, *sent: bytes) -> socket.socket:
    """Send some bytes, and nothing more."""
    connection = socket.create_connection(address, timeout=PATIENCE_S)
    with suppress(OSError):  # refused meanwhile
        for each in sent:
            connection.sendall(each)
    return connection


def wait_for_end(connection: socket.socket) -> bytes:
    """Say nothing more; return what a connection brings until the other side closes it."""
    found = b""
    with connection, suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        while data := connection.recv(1 << 16):
            found += data
    return found


@contextmanager
def served() -> Iterator[Rendezvous]:
    """Let a rendezvous of two workers gather them again and again."""
    over = threading.Event()

    def serve(rendezvous: Rendezvous) -> None:
        while met := rendezvous.gather(lambda: not over.is_set()):
            for connection in met[1]:
                connection.close()

    with Rendezvous(HOST, 2, timeout_s=PATIENCE_S) as rendezvous:
        server = threading.Thread(target=serve, args=(rendezvous,))
        server.start()
        try:
            yield rendezvous
        finally:
            over.set()
            server.join()


def meet_alone(place: Place, number: int, run: int) -> Meeting:
    """Let a worker meet the other one."""
    meeting, connection = meet(place, number, run, (HOST, number + 1))
    connection.close()
    return meeting


def meet_all(place: Place, run: int = LAST_RUN) -> list[Meeting]:
    """Let both workers of a chain of two meet."""
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(meet_alone, place, number, run) for number in (0, 1)]
        return [job.result() for job in jobs]


def require_meeting(place: Place) -> None:
    """Require that the right workers meet."""
    left, right = meet_all(place)
    assert left == right
    assert left.addresses == ((HOST, 1), (HOST, 2))


@promised(REFUSED, NOTICED, examples=20)
@given(
    peers=st.lists(
        GREETINGS.map(lambda said: (said, b"")) | st.tuples(GREETINGS, NOISE), max_size=4
    ),
    strangers=st.lists(NOISE, max_size=3),
)
@example(peers=[({"worker": float("inf"), "run": 1, "address": [HOST, 1]}, b"")], strangers=[])
@example(peers=[({"worker": 0, "run": float("nan"), "address": [HOST, 1]}, b"")], strangers=[])
@example(peers=[({"worker": 0, "run": 1, "address": [HOST, float("inf")]}, b"")], strangers=[])
@example(peers=[({"worker": True, "run": 1, "address": [HOST, 1]}, b"more")], strangers=[b"\0\0"])
@example(
    peers=[({"worker": each, "run": 1, "address": [HOST, 1]}, b"") for each in (0, 0, 1)],
    strangers=[],
)
def test_right_workers_meet_whatever_peers_and_strangers_said(
    reached: Reached, peers: list[tuple[dict[str, Any], bytes]], strangers: list[bytes]
) -> None:
    with served() as rendezvous, ExitStack() as stack:
        place = rendezvous.place
        for noise in strangers:
            connection = socket.create_connection(place.address, timeout=PATIENCE_S)
            stack.enter_context(connection).sendall(noise)
        told = []
        for said, rest in peers:
            greeting = json.dumps({**said, "token": place.token}).encode()
            told.append(tell(place.address, messages.frame(messages.JSON, greeting), rest))
        for connection in told:
            reached.add({REFUSED: not wait_for_end(connection)})
        require_meeting(place)
        reached.add({NOTICED: len(strangers)})
        require_meeting(place)  # and again, as after a stage that failed


def test_six_hundred_silent_strangers_exhaust_nothing() -> None:
    with served() as rendezvous, ExitStack() as stack:
        threads = threading.active_count()
        for _ in range(600):
            connection = socket.create_connection(rendezvous.place.address, timeout=PATIENCE_S)
            stack.enter_context(connection).sendall(b"\0")
        require_meeting(rendezvous.place)
        assert threading.active_count() == threads
        assert len(rendezvous._door._selector.get_map()) <= STRANGERS_MAX + 1


@given(st.lists(GREETINGS, max_size=4))
@example([{"worker": False}, {"worker": 0.0}, {"worker": -0.0}, {"worker": None}])
def test_a_worker_finds_its_neighbour_whoever_else_knows_the_token(
    greetings: list[dict[str, Any]],
) -> None:
    with closing(listen(HOST)) as left, closing(listen(HOST)) as right:
        addresses = tuple(each.getsockname()[:2] for each in (left, right))
        meeting, place = Meeting("attempt", addresses), Place((HOST, 1), "token", PATIENCE_S)
        for said in greetings:
            own = said.get("worker")
            if isinstance(own, int) and not isinstance(own, bool) and own == 0:
                continue  # it says that it is the neighbour
            shown = json.dumps({**said, "token": SHARED}).encode()
            tell(addresses[1], messages.frame(messages.JSON, shown)).close()
        with ThreadPoolExecutor(2) as pool:
            jobs = [
                pool.submit(
                    join_neighbours, Door(listener, "token/attempt"), number, meeting, place
                )
                for number, listener in enumerate((left, right))
            ]
            found = [job.result() for job in jobs]
        assert [list(each) for each in found] == [[1], [0]]
        (one,), (other,) = (each.values() for each in found)
        with one, other:
            assert one.getsockname() == other.getpeername()


def test_the_rendezvous_listens_where_it_is_bound() -> None:
    with Rendezvous("192.0.2.1", 2, bound_to="127.0.0.2") as rendezvous:
        assert rendezvous._listener.getsockname()[0] == "127.0.0.2"


def test_nobody_is_refused_because_another_client_was_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The taker of a connection is busy for longer than a greeting may take."""
    monkeypatch.setattr(transport, "GREETING_S", 0.2)
    with listen(HOST) as listener, ExitStack() as stack:
        door = stack.enter_context(closing(Door(listener, SHARED)))
        address = listener.getsockname()[:2]
        other, ready = (stack.enter_context(socket.create_connection(address)) for _ in range(2))
        greeting = messages.encode_json({"token": SHARED})
        ready.sendall(greeting)
        taken, until = 0, time.monotonic() + PATIENCE_S
        while taken < 2:
            assert time.monotonic() < until, "the other client is refused"
            for connection, _ in door.wait(0.0):
                stack.enter_context(connection)
                taken += 1
                if taken == 1:
                    other.sendall(greeting)
                    time.sleep(0.5)

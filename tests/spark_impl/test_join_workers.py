"""Workers of a chain: connections and task slots, without Spark."""

import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count, product
from struct import pack
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import STREAMS, And, R, S
from spark_impl.join import driving, messages, rendezvous, stage, transport
from spark_impl.join.checkpoint import empty_state
from spark_impl.join.in_process import arrivals_of
from spark_impl.join.matching import SCHEMA, Pairs, Tuples
from spark_impl.join.rendezvous import Meeting, Place, Rendezvous, join_neighbours, meet
from spark_impl.join.side import Matcher
from spark_impl.join.stage import check_slots
from spark_impl.join.transport import Door, Links, NeighbourClosed, NeighbourLost, greet, listen
from spark_impl.join.worker import Worker
from spark_impl.runtime.session import EnvironmentProblem

# ------------------------------------------------------------------------------------ connections


HOST = "127.0.0.1"
TOKEN = "a secret"
SCHEMAS = {R: SCHEMA, S: SCHEMA}


def block_of(size: int) -> messages.Block:
    numbers = np.arange(size)
    key = np.full(size, "ä", np.object_)
    return messages.Block(R, size, 2, 3, Tuples(numbers, numbers, numbers, numbers / 2, key))


def plain(message: messages.Message) -> tuple[object, ...]:
    """Return the fields of a message, of which all can be compared."""
    if not isinstance(message, messages.Block):
        return tuple(message)
    return (*message[:-1], *(column.tolist() for column in message.tuples.columns()))


def test_a_missing_worker_is_an_error_of_the_others() -> None:
    with (
        Rendezvous(HOST, 2, timeout_s=0.3) as rendezvous,
        pytest.raises(TimeoutError, match=r"worker 1 did not meet the others within 0.3 s"),
    ):
        meet(rendezvous.place, 1, 5, (HOST, 1))


def pair_of_links(patience_s: float = 20.0) -> tuple[Links, Links]:
    with closing(listen(HOST)) as listener:
        one = socket.create_connection(listener.getsockname()[:2])
        other, _ = listener.accept()
    return Links(0, 0, {1: one}, patience_s), Links(1, 0, {0: other}, patience_s)


def idle(links: Links) -> None:
    for _ in range(100):
        links.exchange([], 0.1)


def test_messages_leave_at_once() -> None:
    """The operating system would collect small messages for up to 40 ms."""
    for links in pair_of_links():
        with closing(links):
            for peer in links._peers.values():
                at_once = peer.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                assert at_once != 0


def test_a_neighbour_that_never_calls_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]

    def nobody(_: Door, timeout_s: float) -> Iterator[object]:
        assert 0 < timeout_s <= 20.0 - now_s[0], "it waits for longer than the deadline"
        now_s[0] += 8.0
        yield from ()

    monkeypatch.setattr(Door, "wait", nobody)
    monkeypatch.setattr(rendezvous, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    with closing(listen(HOST)) as listener:
        meeting = Meeting("attempt", ((HOST, 1), listener.getsockname()[:2]))
        sentence = "^worker 1 is not connected with worker 0: no connection before the deadline$"
        with pytest.raises(TimeoutError, match=sentence):
            join_neighbours(Door(listener, TOKEN), 1, meeting, Place((HOST, 1), TOKEN, 20.0))
    assert now_s[0] == 24.0


def say_something(links: Links) -> None:
    for _ in range(2):
        links.exchange([(1, messages.End(R, 0))], 0.0)


@pytest.mark.parametrize("work", [idle, Links.part, say_something])
@pytest.mark.parametrize("dies", [True, False])
def test_a_neighbour_that_goes_is_named(work: Callable[[Links], object], dies: bool) -> None:
    left, right = pair_of_links()
    there = right._peers[0].connection
    if dies:  # its machine resets the connection
        there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
        right.close()
    else:
        there.shutdown(socket.SHUT_WR)
    told = pytest.raises(NeighbourClosed, match="worker 1 is lost, says worker 0")
    with closing(left), closing(right), told:
        work(left)


def test_a_worker_stays_until_all_neighbours_have_said_goodbye(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The left one says it first and ends; the right one says it two looks later."""
    monkeypatch.setattr(transport, "_PING_S", 0.01)
    (left, one), (other, right) = pair_of_links(), pair_of_links()
    ends = [each._peers[1 - n].connection for n, each in ((1, one), (0, other))]
    middle, looks = Links(1, 0, dict(zip((0, 2), ends, strict=True)), 20.0), list[Links]()
    look = middle.exchange

    def goodbye(*given: Any) -> Any:
        looks.append(middle)
        if len(looks) in (1, 3):
            (left, right)[len(looks) // 2].part()
            left._peers[1].connection.close()
        return look(*given)

    monkeypatch.setattr(middle, "exchange", goodbye)
    middle.part()
    for each in (*ends, right._peers[0].connection):
        each.close()
    assert len(looks) >= 3


def test_a_neighbour_that_has_nothing_to_say_is_not_taken_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(transport, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    left, right = pair_of_links(patience_s=20.0)
    with closing(left), closing(right):
        for _ in range(40):
            now_s[0] += 1.5
            assert not any(said for each in (left, right) for _, said in each.exchange([], 0.0))


def test_messages_come_back_in_frames_that_are_small_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(messages, "_TUPLES_MAX", 3)
    sizes = (1, 2, 1, 5, 3, 0, 4)
    sent: list[messages.Message] = [block_of(size) for size in sizes]
    sent[3:3] = [messages.End(S, 3), messages.Hint(S, -1, 7, True), messages.BlockAck(R, 1, 2, 3)]
    sent += [messages.Hint(R, 4, 5, False), block_of(2)]
    frames = messages.Frames(messages.FRAME_BYTES_MAX)
    came = [
        messages.decode_messages(*each, SCHEMAS)
        for part in messages.encode_messages(sent)
        for each in frames.feed(part)
    ]
    assert [len(each) for each in came] == [2, 1, 1, 1, 1, 1, 2, 1, 1, 1]
    assert [plain(each) for part in came for each in part] == [*map(plain, sent)]


def test_what_cannot_be_sent_at_once_is_sent_later() -> None:
    left, right = pair_of_links()
    left.schemas = right.schemas = SCHEMAS
    sent: list[messages.Message] = [block_of(300_000), messages.End(R, 1)]
    came: list[messages.Message] = []
    with closing(left), closing(right):
        left.exchange([(1, each) for each in sent], 0.0)
        assert left._peers[1].unsent
        while len(came) < 2:
            came += [each for _, part in right.exchange([], 0.0) for each in part]
            left.exchange([], 0.0)
    assert [*map(plain, came)] == [*map(plain, sent)]


def test_a_client_that_does_not_greet_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of too many, or with a wrong token, is refused at once, others when time is over."""
    now_s = [0.0]
    monkeypatch.setattr(transport, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    monkeypatch.setattr(transport, "STRANGERS_MAX", 2)
    with ExitStack() as stack:
        listener = stack.enter_context(listen(HOST))
        door = stack.enter_context(closing(Door(listener, TOKEN)))
        clients = []
        for _ in range(3):
            client = socket.create_connection(listener.getsockname()[:2], timeout=0.05)
            clients.append(stack.enter_context(client))
            assert not [*door.wait(5.0)]
            now_s[0] += 1.0
        assert [is_refused(each) for each in clients] == [True, False, False]
        now_s[0] = 1.0 + transport.GREETING_S
        assert not [*door.wait(0.0)]
        clients[1].sendall(messages.encode_json({"token": TOKEN}))
        ((greeted, _),) = door.wait(5.0)
        stack.enter_context(greeted)
        now_s[0] += 1.5
        assert not [*door.wait(0.0)]
        assert [is_refused(each) for each in clients] == [True, False, True]
        other = socket.create_connection(listener.getsockname()[:2], timeout=0.05)
        stack.enter_context(other).sendall(messages.encode_json({"token": "another"}))
        for _ in range(2):
            assert not [*door.wait(0.05)]
        assert is_refused(other)


def is_refused(client: socket.socket) -> bool:
    try:
        return not client.recv(1)
    except TimeoutError:
        return False


def test_nobody_waits_for_a_rendezvous_that_is_over() -> None:
    with Rendezvous(HOST, 2) as rendezvous, ExitStack() as stack:
        place = rendezvous.place
        silent = stack.enter_context(socket.create_connection(place.address, timeout=20.0))
        greeting = {"token": place.token, "worker": 0, "run": 1, "address": [HOST, 1]}
        waiting = stack.enter_context(greet(place.address, greeting, 20.0))
        assert rendezvous.gather(lambda: not rendezvous._seats) is None
        rendezvous.__exit__(None, None, None)
        assert silent.recv(1) == waiting.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(place.address, timeout=20.0)


def test_an_answer_that_trickles_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, waits_s = [0.0], list[float]()

    def recv(_: int) -> bytes:
        now_s[0] += 4.0
        if waits_s[-1] < 1.0:
            raise TimeoutError
        return b"\0"

    monkeypatch.setattr(transport, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    slow: Any = SimpleNamespace(settimeout=waits_s.append, recv=recv)
    with pytest.raises(TimeoutError):
        transport.read_json(slow, 10.0)
    assert waits_s == [10.0, 6.0, 2.0, 0.001]


def test_nobody_waits_for_a_neighbour_that_has_said_goodbye() -> None:
    left, right = pair_of_links()
    with closing(left), closing(right), ThreadPoolExecutor(1) as pool:
        parting = pool.submit(right.part)
        while not left._peers[1].gone:
            left.exchange([], 0.1)
        before_s = left.waited_s
        left.part()
        assert left.waited_s - before_s < 1.0
        parting.result()
    for peer in (*left._peers.values(), *right._peers.values()):
        assert peer.connection.fileno() >= 0, "the next epoch needs it"
        peer.connection.close()


def test_time_in_which_nothing_comes_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the clock takes a second, and one look follows the wait."""
    seconds = count()
    monkeypatch.setattr(transport, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    left, right = pair_of_links()
    with closing(left), closing(right):
        for looks in range(1, 3):
            left.exchange([], 0.0)
            assert left.waited_s == looks


def test_a_neighbour_that_is_silent_is_named() -> None:
    left, right = pair_of_links(patience_s=0.2)
    told = pytest.raises(NeighbourLost, match="worker 1 was silent")
    with closing(left), closing(right), told as raised:
        idle(left)
    assert raised.type is NeighbourLost  # a cause, which is told at once


def test_an_oversized_frame_of_a_neighbour_is_refused() -> None:
    left, right = pair_of_links()
    with closing(left), closing(right):
        right._peers[0].connection.send(b"\x7f\xff\xff\xff")
        with pytest.raises(messages.FrameProblem, match="2147483647 bytes came"):
            left.exchange([], 5.0)


class Alone:
    """Connections of a worker without neighbours, and a clock: a second of three is no waiting."""

    def __init__(self) -> None:
        self.now_s, self.waited_s, self.exchanges = 100.0, 0.0, 0
        self.has_parted = False

    def exchange(self, outgoing: Sequence[object], _wait_s: float) -> list[Any]:
        """Let time pass; nothing comes."""
        assert not outgoing
        self.exchanges += 1
        self.now_s, self.waited_s = self.now_s + 3, self.waited_s + 2
        return []

    def part(self) -> None:
        """Wait for nobody."""
        self.has_parted = True


@pytest.mark.parametrize("rows_max", [1, driving.ROWS_MAX])
def test_a_worker_is_busy_while_it_does_not_wait(
    monkeypatch: pytest.MonkeyPatch, rows_max: int
) -> None:
    """Let it hand on every pair, however many it may hold."""
    links, found = Alone(), list[tuple[int, int]]()
    monkeypatch.setattr(driving, "ROWS_MAX", rows_max)
    monkeypatch.setattr(driving, "time", SimpleNamespace(monotonic=lambda: links.now_s))
    config = JoinConfig(9, (("all", And()),), workers=1)
    events = [Event(n, n, "", n, 1.0, n, "RS"[n % 2]) for n in range(200)]
    arrivals = {each: arrivals_of(events, each, config) for each in STREAMS}
    worker = Worker(config, 0, Matcher(config), empty_state(), 0)

    def hand_on(pairs: Sequence[Sequence[Pairs]]) -> None:
        for each in pairs[0]:
            found.extend(zip(each.r_id.tolist(), each.s_id.tolist(), strict=True))

    given: Any = links
    assert driving.drive(worker, arrivals, given, hand_on) == 1_000_000 * links.exchanges
    pairs = product(range(0, 200, 2), range(1, 200, 2))
    assert sorted(found) == [each for each in pairs if abs(each[0] - each[1]) <= 9]
    assert links.has_parted


# ------------------------------------------------------------------------------------------ slots


MANAGER = SimpleNamespace(defaultResourceProfile=lambda: None)


class Cluster:
    """A stand-in for a session, with a clock."""

    def __init__(self, master: str, slots: Callable[[float], int]) -> None:
        self.now_s = 0.0
        java = SimpleNamespace(
            resourceProfileManager=lambda: MANAGER,
            maxNumConcurrentTasks=lambda _: slots(self.now_s),
        )
        self.sparkContext = SimpleNamespace(master=master, _jsc=SimpleNamespace(sc=lambda: java))

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds


def waited_s(cluster: Any, workers: int, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return how long it takes to find the slots."""
    clock = SimpleNamespace(monotonic=lambda: cluster.now_s, sleep=cluster.sleep)
    monkeypatch.setattr(stage, "time", clock)
    check_slots(cluster, workers)
    return float(cluster.now_s)


def test_executors_that_come_later_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("spark://host:7077", lambda now_s: 4 if now_s >= 9 else 1)
    assert 9 <= waited_s(cluster, 4, monkeypatch) < 10


@pytest.mark.parametrize(("master", "limit_s"), [("local[2]", 1), ("spark://host:7077", 20)])
def test_too_few_slots_are_refused(
    master: str, limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(master, lambda _: 2)
    with pytest.raises(
        EnvironmentProblem, match=r"needs 3 task slots at the same time and .* has "
    ):
        waited_s(cluster, 3, monkeypatch)
    assert cluster.now_s < limit_s

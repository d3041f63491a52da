"""Connections between workers: which clients are accepted, and what happens if a worker dies."""

import logging
import socket
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from types import SimpleNamespace

import pytest

from model.vocabulary import JoinConfig, Trace, Workload
from model.vocabulary.join import STREAMS, Match, R, S
from model.vocabulary.trace import Step
from spark_impl.join import messages, rendezvous
from spark_impl.join.checkpoint import WorkerState, empty_state
from spark_impl.join.driving import drive
from spark_impl.join.in_process import arrivals_of, results_of
from spark_impl.join.matching import Pairs
from spark_impl.join.messages import Block, BlockAck, End, Hint, Message
from spark_impl.join.rendezvous import Meeting, Place, Rendezvous, join_neighbours, meet
from spark_impl.join.side import Matcher
from spark_impl.join.transport import Door, Links, NeighbourLost, listen
from spark_impl.join.worker import Worker
from tests.spark_impl.join_cases import nested_loop, pairs, random_case

HOST = "127.0.0.1"
TOKEN = "a secret"


class Chain:
    """Workers in threads, joined by real connections."""

    def __init__(self, case: Workload, taken: list[int] | None = None) -> None:
        self.taken = taken
        """Number of pairs handed on at a time, if they are handed on."""
        self.config = JoinConfig.from_json(case.config)
        self.case = case
        self.states = [empty_state()] * self.config.workers
        self.found: list[Step] = []

    def run(self, epoch: int, flush: bool) -> None:
        workers = self.config.workers
        with (
            Rendezvous(HOST, workers, timeout_s=20.0) as rendezvous,
            ThreadPoolExecutor(workers) as pool,
        ):
            jobs = [
                pool.submit(self.play, number, epoch, flush, rendezvous.place)
                for number in range(workers)
            ]
            self.states = [job.result() for job in jobs]

    def play(self, number: int, epoch: int, flush: bool, place: Place) -> WorkerState:
        with closing(listen(HOST)) as listener:
            meeting = meet(place, number, number, listener.getsockname()[:2])
            connections = join_neighbours(listener, number, meeting, place)
        state = self.states[number]
        worker = Worker(self.config, number, Matcher(self.config), state, epoch, flush=flush)
        entering = {R: 0, S: self.config.workers - 1}
        arrivals = {
            stream: arrivals_of(self.case.arrivals, stream, self.config.window_us)
            for stream in STREAMS
            if entering[stream] == number and not flush
        }

        def hand_on(found: list[list[Pairs]]) -> None:
            assert self.taken is not None
            self.taken.append(sum(len(each.r_id) for own in found for each in own))
            for (name, _), own in zip(self.config.queries, found, strict=True):
                for each in own:
                    ids = zip(each.r_id.tolist(), each.s_id.tolist(), strict=True)
                    self.found += [Match(name, r_id, s_id, epoch) for r_id, s_id in ids]

        with closing(Links(number, connections, 20.0)) as links:
            drive(worker, arrivals, links, None if self.taken is None else hand_on)
        self.found.extend(results_of(worker, self.config))
        return worker.state()


@pytest.mark.parametrize("seed", range(12))
def test_over_real_connections_every_pair_exactly_once(seed: int) -> None:
    case = random_case(seed, tuples=120)
    chain = Chain(case)
    chain.run(0, flush=False)
    chain.run(1, flush=True)
    assert pairs(Trace("spark", chain.found)) == nested_loop(case)


def test_pairs_are_handed_on_while_there_are_more_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_impl.join.driving.ROWS_MAX", 10)
    monkeypatch.setattr("spark_impl.join.lane.RUN", 4)
    case = random_case(11, tuples=120)
    case = case.with_(config={**case.config, "workers": 1, "block_size": 1})
    everything, parts = Chain(case), list[int]()
    little = Chain(case, parts)
    for chain in (everything, little):
        chain.run(0, flush=False)
        chain.run(1, flush=True)
    assert pairs(Trace("spark", little.found)) == pairs(Trace("spark", everything.found))
    assert max(parts) < sum(parts) / 2
    assert len(parts) > 2, "not only at the end of both epochs"


def test_a_task_of_an_older_attempt_is_not_met() -> None:
    with Rendezvous(HOST, 2, timeout_s=5.0) as rendezvous, ThreadPoolExecutor(4) as pool:
        old = pool.submit(meet, rendezvous.place, 0, 10, (HOST, 1))
        new = pool.submit(meet, rendezvous.place, 0, 20, (HOST, 2))
        with pytest.raises(TimeoutError, match="worker 0 did not meet the others"):
            old.result()
        other = meet(rendezvous.place, 1, 21, (HOST, 3))
        assert new.result() == other
        assert other.addresses == ((HOST, 2), (HOST, 3))


def test_a_missing_worker_is_an_error_of_the_others() -> None:
    with (
        Rendezvous(HOST, 2, timeout_s=0.3) as rendezvous,
        pytest.raises(TimeoutError, match=r"worker 1 did not meet the others within 0.3 s"),
    ):
        meet(rendezvous.place, 1, 5, (HOST, 1))


@contextmanager
def door(greeting_s: float = 0.2) -> Iterator[tuple[Door, tuple[str, int]]]:
    listener = listen(HOST)
    with closing(Door(listener, TOKEN, greeting_s)) as made:
        yield made, listener.getsockname()[:2]


def answers(made: Door, seconds: float = 5.0) -> Mapping[str, object] | None:
    """Return the first accepted greeting, if one comes in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for connection, greeting in made.wait(0.05):
            connection.close()
            return greeting
    return None


BAD = {
    "wrong token": messages.encode_json({"token": "another"}),
    "no token": messages.encode_json({"worker": 1}),
    "half a character": messages.encode_json({"token": "\ud800"}),
    "token of another kind": messages.encode_json({"token": [TOKEN]}),
    "without an end": messages.frame(messages.JSON, b"[" * 4000),
    "no json": messages.frame(messages.JSON, b"\xff{"),
    "not a greeting": messages.frame(messages.PING),
    "oversized": b"\x7f\xff\xff\xff\x05",
    "web browser": b"GET / HTTP/1.1\r\n\r\n",
    "empty frame": b"\x00\x00\x00\x00",
}


@pytest.mark.parametrize("sent", BAD.values(), ids=list(BAD))
def test_a_stranger_is_refused_and_logged(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with door() as (made, address), socket.create_connection(address) as stranger:
        stranger.sendall(sent)
        with caplog.at_level(logging.WARNING, "straggler.join"):
            assert answers(made, 0.5) is None
        assert "is refused" in caplog.text
        stranger.settimeout(5)
        assert stranger.recv(10) == b""


def test_a_silent_stranger_delays_no_worker(caplog: pytest.LogCaptureFixture) -> None:
    with door() as (made, address):
        silent = [socket.create_connection(address) for _ in range(5)]
        silent[0].sendall(b"\x00\x00")
        with socket.create_connection(address) as friend:
            friend.sendall(messages.encode_json({"token": TOKEN, "worker": 3}))
            assert answers(made) == {"token": TOKEN, "worker": 3}
        with caplog.at_level(logging.WARNING, "straggler.join"):
            assert answers(made, 0.6) is None
        assert caplog.text.count("did not greet in time") == 5
        for each in silent:
            each.close()


def pair_of_links(patience_s: float = 20.0) -> tuple[Links, Links]:
    with closing(listen(HOST)) as listener:
        one = socket.create_connection(listener.getsockname()[:2])
        other, _ = listener.accept()
    return Links(0, {1: one}, patience_s), Links(1, {0: other}, patience_s)


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
            join_neighbours(listener, 1, meeting, Place((HOST, 1), TOKEN, 20.0))
    assert now_s[0] == 24.0


def test_a_neighbour_that_dies_is_named() -> None:
    left, right = pair_of_links()
    right.close()
    with closing(left), pytest.raises(NeighbourLost, match="worker 1 is lost, says worker 0"):
        idle(left)


def test_a_neighbour_that_is_silent_is_named() -> None:
    left, right = pair_of_links(patience_s=0.2)
    with closing(left), closing(right), pytest.raises(NeighbourLost, match="worker 1 was silent"):
        idle(left)


def test_an_oversized_frame_of_a_neighbour_is_refused() -> None:
    left, right = pair_of_links()
    with closing(left), closing(right):
        right._peers[0].connection.send(b"\x7f\xff\xff\xff")
        with pytest.raises(messages.FrameProblem, match="2147483647 bytes came"):
            left.exchange([], 5.0)


def test_messages_survive_the_wire() -> None:
    events = random_case(5).arrivals
    tuples = arrivals_of(events, R, 0).tuples
    sent: list[Message] = [
        Block(R, 7, 3, -(1 << 63), tuples),
        Block(R, 8, 4, 5, tuples.take(slice(0, 0))),
        Block(R, 9, 4, 5, tuples.take(slice(1, 3))),
        Block(S, 8, 0, (1 << 63) - 1, tuples.take(slice(0, 0))),
        BlockAck(S, 1, 2, 3),
        Hint(R, 5, (1 << 63) - 1, True),
        End(S, 9),
    ]
    left, right = pair_of_links()
    with closing(left), closing(right):
        left.exchange([(1, message) for message in sent], 0.0)
        came: list[Message] = []
        while len(came) < len(sent):
            for _, messages in right.exchange([], 5.0):
                came.extend(messages)
    for before, after in zip(sent, came, strict=True):
        if isinstance(before, Block) and isinstance(after, Block):
            assert before[:4] == after[:4]
            for one, other in zip(before.tuples.columns(), after.tuples.columns(), strict=True):
                assert one.tolist() == other.tolist()
        else:
            assert before == after


@pytest.mark.parametrize(
    "kind", [0, messages.BLOCKS, messages.ACK, messages.HINT, messages.END, 99]
)
def test_an_invalid_frame_is_refused_in_one_sentence(kind: int) -> None:
    with pytest.raises(messages.FrameProblem, match="frame"):
        messages.decode_messages(kind, b"R" + b"\x01" * 40)


def test_strangers_do_not_disturb_the_meeting_of_workers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Strangers come to the rendezvous and to a worker: one is silent, others send nonsense."""
    caplog.set_level(logging.WARNING, "straggler.join")
    with Rendezvous(HOST, 2, timeout_s=10.0) as rendezvous, ThreadPoolExecutor(2) as pool:
        place = rendezvous.place
        with closing(listen(HOST)) as left, closing(listen(HOST)) as right:
            addresses = [listener.getsockname()[:2] for listener in (left, right)]
            doors = (place.address, *addresses)
            strangers = [socket.create_connection(address) for address in doors * (1 + len(BAD))]
            for stranger, sent in zip(strangers[len(doors) :], list(BAD.values()) * 3, strict=True):
                stranger.sendall(sent)
            jobs = [
                pool.submit(meet, place, number, number, address)
                for number, address in enumerate(addresses)
            ]
            meeting, same = (job.result() for job in jobs)
            assert meeting == same
            joined = [
                pool.submit(join_neighbours, listener, number, meeting, place)
                for number, listener in enumerate((left, right))
            ]
            assert [list(job.result()) for job in joined] == [[1], [0]]
        for each in (*strangers, *(c for job in joined for c in job.result().values())):
            each.close()
    assert "its token is wrong" in caplog.text
    assert "2147483647 bytes came" in caplog.text


def test_blocks_of_a_stream_share_a_frame_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    tuples = arrivals_of(random_case(5, tuples=120).arrivals, R, 0).tuples.take(slice(0, 20))
    parts = [tuples.take(slice(begin, begin + 5)) for begin in range(0, 20, 5)]
    blocks = [Block(R, number, 0, 0, part) for number, part in enumerate(parts, 1)]
    sent: list[Message] = [*blocks, BlockAck(S, 1, 1, 1), blocks[0], blocks[1]._replace(stream=S)]
    assert len(list(messages.encode_messages(sent))) == 4
    monkeypatch.setattr(messages, "_TUPLES_MAX", 12)
    frames = messages.Frames(messages.FRAME_BYTES_MAX)
    encoded = list(messages.encode_messages(sent))
    assert len(encoded) == 5
    came = [
        each
        for frame in encoded
        for kind, body in frames.feed(frame)
        for each in messages.decode_messages(kind, body)
    ]
    assert [each[:3] for each in came] == [each[:3] for each in sent]


def test_a_frame_whose_blocks_do_not_add_up_is_a_problem() -> None:
    tuples = arrivals_of(random_case(5).arrivals, R, 0).tuples.take(slice(0, 4))
    (frame,) = messages.encode_messages([Block(R, 1, 0, 0, tuples)])
    ((kind, body),) = messages.Frames(messages.FRAME_BYTES_MAX).feed(frame)
    wrong = body.replace((4).to_bytes(4, "big"), (5).to_bytes(4, "big"), 1)
    assert wrong != body
    with pytest.raises(messages.FrameProblem, match="cannot be read"):
        messages.decode_messages(kind, wrong)

"""The work of a worker, measured: messages, tuples, comparisons and results, each by itself.

Rules of this file:

* Two workers share a process and talk through the bytes of their messages. Sockets are left out,
  and nobody waits.
* Runs differ in how much of each they have. Least squares give the cost of each.
"""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import STREAMS, And, Band, Equi, R, S
from spark_impl.join.admission import Arrivals
from spark_impl.join.driving import Source
from spark_impl.join.in_process import ChainInProcess, arrivals_of
from spark_impl.join.messages import (
    FRAME_BYTES_MAX,
    Block,
    BlockAck,
    Frames,
    Message,
    decode_messages,
    encode_messages,
)
from spark_impl.join.worker import Worker

ARRIVALS, HELD, RUN = 6_000, 2_000, 256
"""Tuples of both streams in all, and in a window; arrivals that are admitted at once."""
CREDIT = 51
REPETITIONS = 3
EVERYTHING, NOTHING = 1e9, 0.0


MIXES = (
    (8, 4_096, NOTHING),
    (128, 4_096, NOTHING),
    (128, 8, NOTHING),
    (128, 8, EVERYTHING),
)
"""Block size, keys and eps of each run: small blocks have more messages, few keys more comparisons,
a wide band results."""


class Work(NamedTuple):
    """The work that a run has done, and how long that took."""

    messages: int
    """Messages taken and sent, and runs of arrivals."""
    tuples: int
    """Tuples admitted, taken, sent and dropped."""
    comparisons: int
    results: int
    elapsed_us: float


PACKET_BYTES = 66
"""Size of the headers of Ethernet, IP and TCP around a message."""


def measure_sizes(seed: int) -> dict[str, float]:
    """Return the sizes on a link of a message without tuples, and of a tuple in a block.

    Half of the messages are blocks, the others acknowledge these.
    """
    _, keys, _ = MIXES[0]
    tuples = _arrivals(keys, seed)[R].tuples
    few, many = (_size_of(Block(R, 1, 0, 0, tuples.take(slice(0, end)))) for end in (0, RUN))
    both = few + _size_of(BlockAck(R, 1, 0, 0))
    return {"message_bytes": both / 2 + PACKET_BYTES, "tuple_bytes": (many - few) / RUN}


def _size_of(message: Message) -> int:
    return sum(map(len, encode_messages([message])))


def measure_work(seed: int) -> list[list[Work]]:
    """Return the work of each mix, in each repetition, after one that warms up."""
    return [[_run(*mix, seed) for mix in MIXES] for _ in range(REPETITIONS + 1)][1:]


def fit_costs(runs: list[Work]) -> Mapping[str, float]:
    """Return the cost of a message, tuple, comparison and result (us), none below 0."""
    names = Work._fields[:4]
    done = np.array(runs, dtype=np.float64)
    counts, elapsed_us = done[:, :4], done[:, 4]
    costs, _ = nnls(counts / elapsed_us[:, None], np.ones(len(runs)))  # relative errors count
    return {f"{name.removesuffix('s')}_us": float(cost) for name, cost in zip(names, costs)}  # noqa: B905 (equal by the shape)


def _run(block_size: int, keys: int, eps: float, seed: int) -> Work:
    """Join two streams on two workers in turns."""
    query = And((Equi("key"), Band("value", eps)))
    config = JoinConfig(
        HELD, (("join", query),), 2, block_size=block_size, credit=CREDIT, lateness_us=0
    )
    chain = ChainInProcess(2)
    chain.begin(config, lambda _: None)
    workers, streams = chain.workers, _arrivals(keys, seed)
    frames = [Frames(FRAME_BYTES_MAX) for _ in workers]
    exchanged: list[Message] = []
    begun_ns = time.perf_counter_ns()
    sources = [Source(workers[at], name, streams[name]) for at, name in enumerate(STREAMS)]
    runs = 0
    while any(source.left for source in sources):
        for source in sources:
            source.take(min(RUN, source.left))
            runs += 1
        while messages := _exchange(workers, frames):
            exchanged += messages
    elapsed_us = (time.perf_counter_ns() - begun_ns) / 1_000
    held = sum(len(lane.store) for worker in workers for lane in worker.lanes.values())
    crossed = sum(len(each.tuples) for each in exchanged if isinstance(each, Block))
    return Work(
        2 * len(exchanged) + runs,
        2 * crossed + 2 * ARRIVALS - held,
        sum(worker.compared for worker in workers),
        sum(worker.pairs_held for worker in workers),
        elapsed_us,
    )


def _exchange(workers: Sequence[Worker], frames: Sequence[Frames]) -> list[Message]:
    """Let both workers work, and take what the other one says; return all messages."""
    exchanged: list[Message] = []
    for worker in workers:
        worker.work()
        outgoing, worker.outbox = [message for _, message in worker.outbox], []
        exchanged += outgoing
        other = workers[1 - worker.number]
        for kind, body in frames[other.number].feed(b"".join(encode_messages(outgoing))):
            other.receive(worker.number, *decode_messages(kind, body))
    return exchanged


def _arrivals(keys: int, seed: int) -> Mapping[str, Arrivals]:
    """Return two streams that take turns, a tuple each microsecond; no two values are equal."""
    drawn = np.random.default_rng(seed).integers(keys, size=ARRIVALS).tolist()
    events = [
        Event(at, at // 2, f"key-{key}", at, float(at), at, STREAMS[at % 2])
        for at, key in enumerate(drawn)
    ]
    return {stream: arrivals_of(events, stream, HELD) for stream in (R, S)}

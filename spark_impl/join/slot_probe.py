"""Speeds of a cluster's task slots and the links between them, measured by one barrier stage.

Rules of this file:

* Slots meet and connect as the workers of a chain do, with the token of the job.
* One boundary is measured at a time; the others wait.
"""

import json
import socket
import time
from collections.abc import Iterable, Iterator
from functools import partial
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import BarrierTaskContext
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from spark_impl.join.rendezvous import Place, Rendezvous, addresses_of, meet_neighbours
from spark_impl.join.work_probe import Work, measure_work

ROUND_TRIPS, WARM = 30, 5
SENDING_S = 0.5
CHUNK = bytes(1 << 14)
BUFFER_BYTES = 1 << 16
PARTS = 3
"""Parts of what a receiver gets; each is one measurement of the bandwidth."""
KERNELS = 7
REPORT = pa.schema([("slot", pa.string())])
"""Column of the output of a task: its :class:`Slot` as JSON."""


class Slot(NamedTuple):
    """The report of a task slot."""

    slot: int
    host: str
    kernel_us: list[float]
    """Times of the same calculation."""
    latency_us: list[float]
    """Half of each round trip to the right neighbour; the last slot has none."""
    bandwidth_mbps: list[float]
    """Bandwidth from the left neighbour; the first slot has none."""
    work: list[list[Work]]
    """Work of a chain's worker, by repetition; the first slot alone measures it."""


def probe_slots(spark: SparkSession, slots: int, seed: int) -> list[Slot]:
    """Return a report of each slot."""
    host, bound_to = addresses_of(spark.sparkContext)
    with Rendezvous(host, slots, bound_to=bound_to) as rendezvous:
        task = partial(_probe, place=rendezvous.place, slots=slots, seed=seed)
        seats = spark.range(0, slots, 1, slots)
        rows = seats.mapInArrow(task, from_arrow_schema(REPORT), barrier=True).collect()
    told = [Slot(**json.loads(row.slot)) for row in rows]
    found = [
        each._replace(work=[[Work(*one) for one in part] for part in each.work]) for each in told
    ]
    return sorted(found, key=lambda each: each.slot)


def _probe(
    batches: Iterable[pa.RecordBatch], place: Place, slots: int, seed: int
) -> Iterator[pa.RecordBatch]:
    """Measure one slot, as a barrier task of ``mapInArrow``."""
    for _ in batches:
        pass
    context = BarrierTaskContext.get()
    number = context.partitionId()
    host, _, _ = context.getTaskInfos()[number].address.rpartition(":")
    _, connections = meet_neighbours(place, context)
    kernels = [_kernel_us() for _ in range(KERNELS)]
    latency_us: list[float] = []
    bandwidth_mbps: list[float] = []
    for left in range(slots - 1):
        context.barrier()
        if number == left:
            latency_us = _send(connections[left + 1])
        elif number == left + 1:
            bandwidth_mbps = _answer(connections[left])
    for connection in connections.values():
        connection.close()
    context.barrier()
    work = measure_work(seed) if number == 0 else []
    found = Slot(number, host, kernels, latency_us, bandwidth_mbps, work)
    yield pa.RecordBatch.from_pylist([{"slot": json.dumps(found._asdict())}], REPORT)


def _kernel_us() -> float:
    begun_ns = time.perf_counter_ns()
    values = np.arange(100_000, dtype=np.float64)
    for _ in range(20):
        values = np.sqrt(values * values + 1.0)
    sum(value for value in values[:10_000].tolist())
    return (time.perf_counter_ns() - begun_ns) / 1_000


def _send(connection: socket.socket) -> list[float]:
    """Measure the latency of a connection, then fill it for a while; return latencies (us)."""
    connection.settimeout(60.0)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    found = []
    for _ in range(WARM + ROUND_TRIPS):
        begun_ns = time.perf_counter_ns()
        connection.sendall(b"?")
        connection.recv(1)
        found.append((time.perf_counter_ns() - begun_ns) / 2_000)
    until = time.monotonic() + SENDING_S
    while time.monotonic() < until:
        connection.sendall(CHUNK)
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)  # the other side has read everything
    return found[WARM:]


def _answer(connection: socket.socket) -> list[float]:
    """Answer the other side of :func:`_send`; return the bandwidth (Mb/s) of parts of the data."""
    connection.settimeout(60.0)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(WARM + ROUND_TRIPS):
        connection.recv(1)
        connection.sendall(b"!")
    times, sizes = [], []
    while data := connection.recv(len(CHUNK)):
        times.append(time.perf_counter())
        sizes.append(len(data))
    connection.sendall(b".")
    return bandwidths_mbps(times, sizes)


def bandwidths_mbps(times_s: list[float], sizes: list[int]) -> list[float]:
    """Return the bandwidth in each of three parts of what came, by the times of its pieces.

    The first half is left out: a shaped link lets a burst pass at once.
    """
    came = np.cumsum(sizes)
    first = int(np.searchsorted(came, came[-1] / 2))
    bounds = np.linspace(first, len(came) - 1, PARTS + 1).astype(int)
    spent_s, megabits = np.diff(np.take(times_s, bounds)), np.diff(came[bounds]) * 8 / 1e6
    found: list[float] = (megabits[spent_s > 0] / spent_s[spent_s > 0]).tolist()
    return found


def speeds_of(slots: list[Slot]) -> tuple[float, ...]:
    """Return the relative speed of each slot; the fastest has 1."""
    typical_us = [median(slot.kernel_us) for slot in slots]
    return tuple(min(typical_us) / each for each in typical_us)

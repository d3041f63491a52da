"""Runs one worker over its connections until its part of an epoch is over."""

from collections.abc import Callable, Mapping

from model.vocabulary.join import END_US
from spark_impl.join.admission import Arrivals
from spark_impl.join.matchfile import ROWS_MAX
from spark_impl.join.matching import Pairs
from spark_impl.join.transport import Links
from spark_impl.join.worker import Worker

_IDLE_S = 1.0


class _Source:
    """Arrivals of one stream on their way into the worker where it enters."""

    def __init__(self, worker: Worker, stream: str, arrivals: Arrivals) -> None:
        self._worker = worker
        self._stream = stream
        self._arrivals = arrivals
        self._position = 0
        self._ended = False
        worker.admit(stream, arrivals.run(0, 0), self._next_seq())

    def advance(self) -> bool:
        """Admit what may be admitted now; whether there was anything to do."""
        if self._ended:
            return False
        first, seqs = self._position, self._arrivals.seq
        if first == len(seqs):
            self._ended = True
            self._worker.end_intake(self._stream)
            return True
        room = self._worker.room(self._stream, seqs, first)
        if room:
            self._position = first + room
            run = self._arrivals.run(first, self._position)
            self._worker.admit(self._stream, run, self._next_seq())
        return room > 0

    def _next_seq(self) -> int:
        seqs = self._arrivals.seq
        return int(seqs[self._position]) if self._position < len(seqs) else END_US


def drive(
    worker: Worker,
    arrivals: Mapping[str, Arrivals],
    links: Links,
    hand_on: Callable[[list[list[Pairs]]], None] | None = None,
) -> None:
    """Admit, work and talk until the worker has finished and its neighbours need it no more.

    ``arrivals`` has the streams that enter at this worker, none in a flush. ``hand_on`` is given
    the pairs by query, many at a time and what is left at the end; without it they stay in
    ``worker.found``. Raises what
    :meth:`spark_impl.join.transport.Links.exchange` raises.
    """
    sources = [_Source(worker, stream, own) for stream, own in sorted(arrivals.items())]
    while not worker.finished:
        busy = sum(source.advance() for source in sources) > 0
        worker.work()
        outgoing, worker.outbox = worker.outbox, []
        wait_s = 0.0 if busy or worker.finished else _IDLE_S
        for sender, messages in links.exchange(outgoing, wait_s):
            worker.receive(sender, *messages)
        if hand_on is not None and (worker.finished or worker.pairs_held > ROWS_MAX):
            hand_on(worker.take_found())
    links.part()

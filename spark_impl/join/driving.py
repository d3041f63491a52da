"""Loop of a worker in its task, not of Spark's driver: arrivals and messages in, pairs out."""

import time
from collections.abc import Callable, Mapping

from model.vocabulary.join import END_US
from spark_impl.join.admission import Arrivals
from spark_impl.join.lane import RUN
from spark_impl.join.matching import Pairs
from spark_impl.join.transport import Links
from spark_impl.join.worker import Worker

ROWS_MAX = 1 << 17
"""Most pairs that a worker holds before it writes them, of all queries together."""


_IDLE_S = 1.0
_TURN_S = 0.05
"""A worker that is busy for longer between two looks at messages admits fewer arrivals at once."""
_RUN_MIN = 16


class Source:
    """Arrivals of one stream on their way into the worker where it enters."""

    def __init__(self, worker: Worker, stream: str, arrivals: Arrivals) -> None:
        self.worker = worker
        self.ended = False
        self._stream = stream
        self._arrivals = arrivals
        self._position = 0
        self.take(0)

    @property
    def left(self) -> int:
        """Number of arrivals that have not been taken."""
        return len(self._arrivals.seq) - self._position

    def take(self, count: int) -> None:
        """Let the worker take the next arrivals."""
        first, self._position = self._position, self._position + count
        next_seq = int(self._arrivals.seq[self._position]) if self.left else END_US
        self.worker.admit(self._stream, self._arrivals.run(first, self._position), next_seq)

    def end(self) -> None:
        """End the intake."""
        self.ended = True
        self.worker.end_intake(self._stream)

    def advance(self, at_most: int) -> bool:
        """Admit as many arrivals as the pace permits; return whether there was anything to do."""
        if self.ended:
            return False
        if not self.left:
            self.end()
            return True
        permitted = self.worker.arrivals_to_admit(self._stream, self._arrivals, self._position)
        count = min(at_most, permitted)
        if count:
            self.take(count)
        return count > 0


def drive(
    worker: Worker,
    arrivals: Mapping[str, Arrivals],
    links: Links,
    hand_on: Callable[[list[list[Pairs]]], None],
) -> int:
    """Run a worker over its connections until it and its neighbours have finished.

    Return its busy time (us): what was not spent on waiting for its neighbours.

    ``arrivals`` has the streams that enter at this worker, none in a flush. ``hand_on`` is called
    with the pairs by query, many at a time, and with the rest at the end. Raise the errors of
    :meth:`spark_impl.join.transport.Links.exchange`.
    """
    begun = time.monotonic()
    at_most = RUN
    sources = [Source(worker, stream, own) for stream, own in sorted(arrivals.items())]
    while not worker.finished:
        turn, waited_s = time.monotonic(), links.waited_s
        busy = sum(source.advance(at_most) for source in sources) > 0
        worker.work()
        outgoing, worker.outbox = worker.outbox, []
        wait_s = 0.0 if busy or worker.finished else _IDLE_S
        for sender, messages in links.exchange(outgoing, wait_s):
            worker.receive(sender, *messages)
        if worker.finished or worker.pairs_held > ROWS_MAX:
            hand_on(worker.take_found())
        spent_s = time.monotonic() - turn - (links.waited_s - waited_s)
        at_most = max(at_most // 2, _RUN_MIN) if spent_s > _TURN_S else min(2 * at_most, RUN)
    links.part()
    return max(0, int(1e6 * (time.monotonic() - begun - links.waited_s)))

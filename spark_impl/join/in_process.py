"""The whole chain in one process: workers joined by queues, and a scheduler with a seed.

It is fast and needs neither Spark nor sockets. The network can be better or worse than a real one.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from model.vocabulary import Event, JoinConfig, Trace, Workload
from model.vocabulary.join import STREAMS, Match, R, S
from model.vocabulary.trace import Step
from spark_impl.join.admission import Admitted, Arrivals
from spark_impl.join.checkpoint import adopt, decode_state, empty_state, encode_state
from spark_impl.join.columns import names_of, with_more
from spark_impl.join.control import Clocks, begin_epoch, config_of, end_epoch, find_in_force
from spark_impl.join.driving import Source
from spark_impl.join.lane import count_accepted
from spark_impl.join.matching import Counts, ranks_of
from spark_impl.join.messages import Message
from spark_impl.join.side import Matcher
from spark_impl.join.task import sort_arrivals
from spark_impl.join.worker import Worker
from spark_impl.runtime.systems import arrivals_table


class Network(NamedTuple):
    """The behaviour of connections, and the timing of workers."""

    ordered: bool = True
    """True if messages of one direction arrive in the order in which they were sent."""
    twice: float = 0.0
    """Share of deliveries that are repeated later."""
    unforced: float = 0.0
    """Share of steps that send a block although the pace does not ask for it."""


FIFO = Network()
RUN = 4
"""Largest number of arrivals admitted at once."""


class _Runner:
    """One epoch: chooses the next step until the chain is quiet."""

    def __init__(
        self,
        workers: list[Worker],
        arrivals: Mapping[str, Arrivals],
        network: Network,
        choose: random.Random,
        flush: bool,
    ) -> None:
        self._workers = workers
        entering = {R: workers[0], S: workers[-1]}
        self._sources = [] if flush else [Source(entering[s], s, arrivals[s]) for s in STREAMS]
        self._network = network
        self._choose = choose
        self._channels: dict[tuple[int, int], list[Message]] = {}
        for left in range(len(workers) - 1):
            self._channels[left, left + 1] = []
            self._channels[left + 1, left] = []

    def run(self, steps: int | None = None) -> None:
        """Run for some steps, or until every worker has finished and no message is under way."""
        for worker in self._workers:
            self._collect(worker)
        while steps is None or steps > 0:
            actions = [*self._deliveries(), *self._admissions()]
            if not actions and self._stands_still():
                if all(worker.finished for worker in self._workers):
                    return
                msg = "the chain stands still before it is quiet"
                raise RuntimeError(msg)
            self._choose.choice([*actions, *self._works()] or [lambda: None])()
            steps = None if steps is None else steps - 1

    def _stands_still(self) -> bool:
        """Return whether no worker has anything left to do or to say."""
        for worker in self._workers:
            worker.work()
            self._collect(worker)
        return not any(self._channels.values())

    def _deliveries(self) -> Iterator[Callable[[], None]]:
        for where, queue in self._channels.items():
            if queue:
                yield partial(self._deliver, where)

    def _deliver(self, where: tuple[int, int]) -> None:
        queue = self._channels[where]
        position = 0 if self._network.ordered else self._choose.randrange(len(queue))
        message = queue.pop(position)
        if self._choose.random() < self._network.twice:
            queue.insert(self._choose.randrange(len(queue) + 1), message)
        sender, receiver = where
        self._workers[receiver].receive(sender, message)
        self._collect(self._workers[receiver])

    def _admissions(self) -> Iterator[Callable[[], None]]:
        for source in self._sources:
            if not source.ended:
                yield partial(self._admit, source)

    def _admit(self, source: Source) -> None:
        if source.left:
            source.take(min(self._choose.randint(1, RUN), source.left))
        else:
            source.end()
        self._collect(source.worker)

    def _works(self) -> Iterator[Callable[[], None]]:
        for worker in self._workers:
            if not worker.finished:
                yield partial(self._work, worker)

    def _work(self, worker: Worker) -> None:
        if self._choose.random() < self._network.unforced:
            stream = self._choose.choice(STREAMS)
            if worker.can_forward(stream):
                worker.forward(stream, 1)
        else:
            worker.work()
        self._collect(worker)

    def _collect(self, worker: Worker) -> None:
        for neighbour, message in worker.outbox:
            self._channels[worker.number, neighbour].append(message)
        worker.outbox.clear()


def run_in_process(workload: Workload, network: Network = FIFO, seed: int | None = None) -> Trace:
    """Run a workload with an interleaving drawn from ``seed`` (default: the seed of the workload).

    A fault of the kind ``kill`` stops its batch in the middle and runs it again from the state
    before it. The trace holds every step of the protocol. Raise ``ValueError`` for an arrival of an
    unknown stream, with a time out of range, or with the identity of another one; raise
    ``RuntimeError`` if the chain stands still.
    """
    given = JoinConfig.from_json(workload.config)
    choose = random.Random(workload.seed if seed is None else seed)
    killed = {fault.at for fault in workload.faults if fault.kind == "kill"}
    chain = ChainInProcess(given.workers)
    trace: list[Step] = []
    batches: list[Iterable[Event] | None] = [*workload.batches()]
    for epoch, events in enumerate([*batches, None] if workload.flush else batches):
        config = config_of(given, find_in_force(given, epoch))
        arrivals = {name: arrivals_of(events or (), name, config) for name in STREAMS}
        for attempt in range(2 if epoch in killed else 1):
            steps: list[Step] = []
            chain.begin(config, steps.append, flush=events is None)
            breaks_off = choose.randint(1, 50) if epoch in killed and attempt == 0 else None
            _Runner(chain.workers, arrivals, network, choose, events is None).run(breaks_off)
        chain.commit()
        trace.extend(steps)
        for worker in chain.workers:
            trace.extend(results_of(worker, config))
    return Trace("spark", trace)


class ChainInProcess:
    """The workers of a chain without Spark, and the content of its store between epochs."""

    def __init__(self, workers: int) -> None:
        self.workers: list[Worker] = []
        """The workers of the epoch that began last."""
        self.matcher: Matcher
        """The matcher that all workers share."""
        self._states = [encode_state(empty_state())] * workers
        self._admitted = [Counts(0, 0)]
        self._config: JoinConfig
        self._clocks = self._begun = Clocks()

    @property
    def epoch(self) -> int:
        """Number of the epoch that is under way, or of the next one."""
        return len(self._admitted) - 1

    def begin(
        self, config: JoinConfig, record: Callable[[Step], None], *, flush: bool = False
    ) -> None:
        """Begin the epoch, perhaps again, from the states after the epoch before."""
        epoch, states = self.epoch, self._states
        matcher = Matcher(config, ranks=ranks_of(config, epoch, self._admitted.__getitem__))
        self.matcher, self.workers = matcher, []
        self._config, self._begun = config, begin_epoch(config, self._clocks)
        for number in range(config.workers):
            state, found = adopt(
                lambda old: decode_state(states[old]), len(states), config.workers, number, matcher
            )
            self.workers.append(
                Worker(
                    config,
                    number,
                    matcher,
                    state,
                    epoch,
                    flush=flush,
                    record=record,
                    found=found,
                    floors_us=self._begun.floors,
                )
            )

    def commit(self) -> None:
        """End the epoch and keep the states of the workers."""
        states = [worker.state() for worker in self.workers]
        r, s = states[0].r.intake or Admitted(), states[-1].s.intake or Admitted()
        self._states = [encode_state(state) for state in states]
        self._admitted.append(Counts(r.tuples, s.tuples))
        counts = [count_accepted(worker.lanes) for worker in self.workers]
        accepted = Counts(*map(sum, zip(*counts, strict=True)))
        t_max_us = Counts(r.t_max_us, s.t_max_us)
        self._clocks = end_epoch(self._config, self._begun, t_max_us, accepted)


def results_of(worker: Worker, config: JoinConfig) -> Iterator[Step]:
    """Yield the matches and rejections of a worker."""
    for (name, _), found in zip(config.queries, worker.found, strict=True):
        for pairs in found:
            for r_id, s_id in zip(pairs.r_id.tolist(), pairs.s_id.tolist(), strict=True):
                yield Match(name, r_id, s_id, worker.epoch)
    for each in worker.rejections:
        yield from each.steps()


def arrivals_of(events: Iterable[Event], stream: str, config: JoinConfig) -> Arrivals:
    """Return the arrivals of one stream.

    Raise ``ValueError`` for an unknown stream, and for an event time out of range.
    """
    own: list[Event] = []
    for event in events:
        if event.stream not in STREAMS:
            msg = f"arrival {event.seq} is of stream {event.stream!r}; it must be 'R' or 'S'"
            raise ValueError(msg)
        if event.stream == stream:
            own.append(event)
    columns = config.columns(stream)
    rows = with_more(arrivals_table(own), own, stream, columns)
    return sort_arrivals(rows, config.window_us, names_of(columns, stream))

"""Machine of a simulated chain that runs the workers of the Spark side in process."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from model.vocabulary import Event, JoinConfig, Step
from model.vocabulary.join import NO_WATERMARK_US, STREAMS, Drop, R, S
from sim.join.machine import ChainGauges, FoundPairs, Sent, Service
from sim.join.tuning import ChainTuning
from spark_impl.join.control import find_in_force
from spark_impl.join.in_process import ChainInProcess, arrivals_of
from spark_impl.join.messages import Block, BlockAck, Message


class SparkMachine:
    """A chain whose workers live for an epoch; between epochs their states are in a store."""

    def __init__(self, config: JoinConfig, tuning: ChainTuning) -> None:
        self._given = self._config = config
        self._records = tuning.record and not tuning.control.resizes
        self._chain = ChainInProcess(config.workers)
        self._steps: list[Step] = []

    # ---------------------------------------------------------------------------- an epoch

    def begin(self, epoch: int, *, flush: bool) -> None:
        """Begin an epoch from the states in the store, with the configured number of workers."""
        assert epoch == self._chain.epoch
        self._steps = []
        decision = find_in_force(self._given, epoch)
        shedding = replace(self._config, decisions=(decision,) if decision else ())
        self._chain.begin(shedding, self._steps.append, flush=flush)

    def end_intake(self) -> None:
        """End the intakes at both ends of the chain; messages tell the other workers."""
        self._chain.workers[0].end_intake(R)
        self._chain.workers[-1].end_intake(S)

    def is_over(self) -> bool:
        """Return whether every worker has finished."""
        return all(worker.finished for worker in self._chain.workers)

    def commit(self) -> Sequence[Step]:
        """Put the states of the workers into the store; return rejections and recorded steps."""
        self._chain.commit()
        rejected = [
            step
            for worker in self._chain.workers
            for each in worker.rejections
            for step in each.steps()
        ]
        return [*rejected, *self._steps] if self._records else rejected

    def resize(self, workers: int) -> Service:
        """Let the next epoch have ``workers`` workers; it finds the pairs that merging creates."""
        self._config = replace(self._config, workers=workers)
        return Service()

    # ---------------------------------------------------------------------- gauges and controls

    def set_block_size(self, block_size: int) -> None:
        """Set the largest block from the next epoch on."""
        if block_size != self._config.block_size:
            self._config = replace(self._config, block_size=block_size)

    def gauges(self) -> ChainGauges:
        """Return what the workers hold, and the lower one of the streams' watermarks."""
        workers = self._chain.workers
        if not workers:
            return ChainGauges([0] * self._config.workers, NO_WATERMARK_US)
        held = [sum(len(lane.store) for lane in worker.lanes.values()) for worker in workers]
        ends = zip((workers[0], workers[-1]), STREAMS, strict=True)
        return ChainGauges(held, min(worker.lanes[stream].source_us for worker, stream in ends))

    # -------------------------------------------------------------------------------- services

    def admit(self, worker: int, stream: str, events: Sequence[Event]) -> Service:
        """Admit arrivals at the worker where a stream enters; later ones have larger numbers."""
        arrivals = arrivals_of(events, stream, self._config)
        self._chain.workers[worker].admit(stream, arrivals, events[-1].seq + 1)
        return self._served(worker, len(events))

    def receive(self, worker: int, sender: int, message: object) -> Service:
        """Take a message from a neighbour; the same message may come twice."""
        assert isinstance(message, Message)
        self._chain.workers[worker].receive(sender, message)
        return self._served(worker, _tuples(message))

    def look(self, worker: int) -> Service:
        """Let a worker act without a message."""
        return self._served(worker, 0)

    def _served(self, number: int, taken: int) -> Service:
        """Let a worker drop and send; return everything that happened since the last call."""
        worker, matcher, done = self._chain.workers[number], self._chain.matcher, len(self._steps)
        worker.work()
        outbox, worker.outbox = worker.outbox, []
        sent = [Sent(to, message, _kind(message), _tuples(message)) for to, message in outbox]
        left = sum([each.tuples for each in sent])
        left += sum([step.tuples for step in self._steps[done:] if isinstance(step, Drop)])
        found = [
            FoundPairs(query, pairs.r_id, pairs.s_id)
            for query, parts in enumerate(worker.take_found())
            for pairs in parts
        ]
        compared, matcher.compared = matcher.compared, 0
        return Service(sent, found, taken + left, compared)


def _kind(message: Message) -> Literal["block", "ack", "hint"]:
    """Return the kind under which a message is counted."""
    if isinstance(message, Block):
        return "block"
    return "ack" if isinstance(message, BlockAck) else "hint"


def _tuples(message: Message) -> int:
    return len(message.tuples) if isinstance(message, Block) else 0

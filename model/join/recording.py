"""What a worker writes down: the steps of the protocol, from the states before and after.

Source: docs/join.md, section 9.

Rules of this file:

* It looks at actions that were taken and decides nothing.
* A worker numbers its own steps; there is no other order.
"""

from model.join import worker as local
from model.join.state import Action, Setup, State, boundary, channel_of
from model.join.worker import Block, lanes
from model.vocabulary import Step
from model.vocabulary.join import Ack, Admit, Drop, Forward, Quiet, R, Receive, S


class Recorder:
    """The recording of one epoch."""

    def __init__(self, epoch: int, setup: Setup) -> None:
        self.epoch = epoch
        self.setup = setup
        self.steps: list[Step] = []
        self.counts: dict[int, int] = {}

    def record(self, before: State, action: Action, after: State, pairs: int) -> None:
        """Write down an action, if it is one that is recorded."""
        at, stream = action.worker, action.stream
        if action.what == "admit":
            rank = before.admitted_r if stream == R else before.admitted_s
            self.steps.append(Admit(*self._at(at), stream, rank, action.n or 1, pairs))
        elif action.what == "forward":
            self._forward(after, action)
        elif action.what == "receive":
            self._receive(before, after, action, pairs)
        elif action.what == "acknowledge":
            message = channel_of(before, boundary(at, stream), stream == S)[action.n]
            self.steps.append(Ack(*self._at(at), stream, message.number))
        elif action.what == "drop":
            self._drop(before, after, action)

    def quiet(self, state: State) -> None:
        """Write down what every worker holds."""
        for at, (r, s) in enumerate(state.workers):
            held = len(r.store), len(s.store)
            self.steps.append(Quiet(*self._at(at), *held, r.wm_us, s.wm_us))

    def _at(self, worker: int) -> tuple[int, int, int]:
        number = self.counts.get(worker, 0)
        self.counts[worker] = number + 1
        return self.epoch, worker, number

    def _forward(self, after: State, action: Action) -> None:
        lane, _ = lanes(after.workers[action.worker], action.stream)
        block = lane.copies[-1].block
        first, last = (block.tuples[0], block.tuples[-1]) if block.tuples else (-1, -1)
        self.steps.append(
            Forward(
                *self._at(action.worker),
                action.stream,
                block.number,
                block.seen,
                first,
                last,
                len(block.tuples),
                block.wm_us,
            )
        )

    def _receive(self, before: State, after: State, action: Action, pairs: int) -> None:
        to, stream = action.worker, action.stream
        channel = channel_of(before, boundary(to, local.other(stream)), stream == R)
        block = channel[action.n]
        assert isinstance(block, Block)
        copies = len(self.setup.rules.visible(before.workers[to], block))
        lane, opposite = lanes(after.workers[to], stream)
        at = self._at(to)
        self.steps.append(
            Receive(*at, stream, block.number, copies, pairs, opposite.sent, len(lane.store))
        )

    def _drop(self, before: State, after: State, action: Action) -> None:
        at, stream = action.worker, action.stream
        horizon_us = self.setup.rules.drop_wm_us(before.workers[at], stream) - self.setup.window_us
        gone = len(lanes(before.workers[at], stream)[0].store) - len(
            lanes(after.workers[at], stream)[0].store
        )
        self.steps.append(Drop(*self._at(at), stream, horizon_us, gone))

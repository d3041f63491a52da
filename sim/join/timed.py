"""Room ``join`` in time: epochs, failures, load, and workers that come and go.

Source: docs/join.md, sections 6 to 8; S2J, a chain of stream-join workers.

Rules of this file:

* An epoch is over when its arrivals have been taken and the chain is quiet. Its pairs count from
  then on; a failure before that takes the whole chain back to the end of the epoch before it.
* The number of workers changes between epochs, on a quiet chain, by the model's merge and split.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple, assert_never

import numpy as np
import simpy

from model.join import chain, load
from model.join.load_claims import Moment
from model.join.oracle import Gate
from model.join.recording import Recorder
from model.join.run import next_epoch
from model.join.sending import is_overdue
from model.join.state import Action, Setup, State, initial
from model.join.worker import Lane, Worker
from model.vocabulary import Event, JoinConfig, Step
from model.vocabulary.join import STREAMS, R, S
from sim.join.columns import Columns, columns_of
from sim.join.content import Found, Held, Index
from sim.join.crew import Control, Crew
from sim.join.intake import Doors, Source
from sim.join.results import Emitted, Results, gathered
from sim.join.workers import Line, Task
from sim.kernel import faults
from sim.kernel.distributions import FloatArray
from sim.kernel.faults import Fail, Schedule
from sim.kernel.seeds import Seeds


class Sample(NamedTuple):
    """The chain as it was at one moment."""

    moment: Moment
    held: int
    """Tuples in stores, over all workers."""
    waiting: int
    """Arrivals that have come and are not taken."""
    block_size: int
    busy_us: float
    """Time so far in which workers worked, over all of them."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What arrives: events with their streams, the epochs they are cut into, the start."""

    arrivals: tuple[Event, ...]
    cuts: tuple[int, ...]
    start_us: int
    """The moment, since 1970, at which kernel time is 0."""
    flush: bool = True
    name: str = "stream"

    def columns(self) -> Columns:
        """The arrivals with the epoch of each; empty ones do not count."""
        bounds = pairwise((0, *self.cuts, len(self.arrivals)))
        sizes = [right - left for left, right in bounds if right > left]
        epochs = np.repeat(np.arange(len(sizes)), sizes)
        return columns_of(self.arrivals, epochs, self.start_us)


class Room:
    """A chain with its two sources, from the first arrival to the end of the flush."""

    def __init__(
        self,
        stream: Stream,
        config: JoinConfig,
        crew: Crew,
        control: Control,
        schedule: Schedule,
        seed: int,
        record: bool,
    ) -> None:
        self.stream, self.config, self.crew, self.control = stream, config, crew, control
        self.env = env = simpy.Environment()
        arrived = stream.columns()
        sizes = {name: int(np.count_nonzero(arrived.stream == name)) for name in STREAMS}
        self.index = Index(config, sizes, crew.is_indexed)
        self.gate = Gate(config)
        self.epochs = int(arrived.epoch[-1]) + 1 if stream.arrivals else 0
        self.doors = Doors(stream.arrivals, arrived, self.gate, self.index)
        self.line = Line(
            env, self._setup(), self.index, crew, self._after, self._when_idle, self._emit
        )
        chances = Seeds(seed).stream("shedding").random(len(stream.arrivals))
        calls = (self._admit, self._waits, self._look)
        self.sources = {
            name: Source(env, name, self.doors, chances, crew, *calls) for name in STREAMS
        }
        for name in STREAMS:
            self.sources[name].other = self.sources[S if name == R else R]
        self.record = record
        self.steps: list[Step] = []
        self.emitted: list[Emitted] = []
        self.samples: list[Sample] = []
        self.resized: list[tuple[float, int, int]] = []
        """When, from how many workers, to how many."""
        self.commits_us: list[float] = []
        self.failures = 0
        self.redone = 0
        """Arrivals that were taken again after a failure."""
        self._epoch = 0
        self._attempt = 0
        self._is_active = False
        self._starts_at = dict.fromkeys(STREAMS, 0)
        self._pending: list[Emitted] = []
        self._watch = load.Watch()
        self._wanted = config.workers
        self._smoothed = 0.0
        self._offered = self._shed = 0  # at the last moment
        start = initial(self.line.setup)
        lane = Lane(store=Held().as_ranks())
        self._saved = start._replace(workers=(Worker(lane, lane),) * config.workers)
        self.line.begin(self._saved, None)  # its workers are there to be faulted
        self._inject(schedule)

    def _setup(self) -> Setup:
        admitted = self.gate.admitted
        config = self.config
        return Setup(
            config.workers,
            config.window_us,
            self.index,
            (admitted[R].wm_us, admitted[S].wm_us),
            config.block_size,
            config.credit,
        )

    def _inject(self, schedule: Schedule) -> None:
        stations = {f"worker-{n}": each for n, each in enumerate(self.line.stations)}
        links = {f"right-{n}": each for n, each in enumerate(self.line.right)}
        links |= {f"left-{n}": each for n, each in enumerate(self.line.left)}
        for fault in schedule:
            match fault:
                case Fail(worker, at_us, for_us):
                    faults.check_fault(fault)
                    if worker not in stations:
                        msg = f"there is no worker {worker!r} to fault; there are: "
                        raise ValueError(msg + ", ".join(stations))
                    self._later(at_us, partial(self._fail, for_us))
                case faults.Pause() | faults.Slow() | faults.Clog():
                    faults.inject(self.env, (fault,), stations, links)
                case faults.Lose() | faults.Replay() | faults.Duplicate():
                    msg = f"fault is {fault.kind!r}; connections of a chain lose and double nothing"
                    raise ValueError(msg)
                case _:
                    assert_never(fault)

    # ------------------------------------------------------------------------------- epochs

    def run(self) -> None:
        """Until everything has been taken, and, with a flush, every store is empty."""
        self._start(self._attempt)
        self._tick()
        self._hint()
        self.env.run()
        for station in self.line.stations:
            station.check()

    def close(self) -> None:
        """Let go of parts that hold each other: the collector may not come by for long."""
        for source in self.sources.values():
            del source.other
        self.sources.clear()
        for parts in (self.line.stations, self.line.right, self.line.left):
            parts.clear()
        del self.line

    @property
    def end_us(self) -> float:
        """When the last epoch was over."""
        return self.commits_us[-1] if self.commits_us else 0.0

    @cached_property
    def results(self) -> Results:
        """Everything that came out of a run that is over."""
        return gathered(self.emitted)

    @cached_property
    def latencies_us(self) -> tuple[FloatArray, FloatArray]:
        """When each result came out, and how long after its later tuple had; of a run that is over.

        Kernel microseconds.
        """
        at_us, _, _, r, s = self.results
        of_r, of_s = (self.index.columns[name].arrival_us for name in STREAMS)
        return at_us, at_us - np.maximum(of_r[r], of_s[s])

    @property
    def is_over(self) -> bool:
        """Whether nothing follows."""
        return self._epoch == self.epochs + self.stream.flush

    def _start(self, attempt: int) -> None:
        if attempt != self._attempt or self.is_over:
            return
        state = next_epoch(self._saved)
        number = self._epoch
        recorder = Recorder(number, self.line.setup) if self.record else None
        self.line.begin(state, recorder)
        self._is_active = True
        if number == self.epochs:
            self.line.state, _ = chain.after(self.line.setup, state, Action("end"))
            for at in sorted({0, len(state.workers) - 1}):
                self.line.offer(at, Task("look"))
            return
        for source in self.sources.values():
            source.begin(number, self._starts_at[source.stream])
        self._look()

    def _look(self) -> None:
        """Take what has come; let the chain become quiet once everything has entered."""
        sources = self.sources.values()
        before, taken = -1, sum([source.at for source in sources])
        while taken > before:  # what one takes may end the pause of the other
            for source in sources:
                source.look()
            before, taken = taken, sum([source.at for source in sources])
        if self._is_active and all(source.is_done for source in sources):
            if self._epoch < self.epochs:
                self.line.forwards = False
            if not self.line.under_way:
                self._when_idle()

    def _when_idle(self) -> None:
        if not self._is_active:
            return
        if self._epoch < self.epochs:
            if not self.line.forwards:
                self._commit()
        elif not any(r.store or s.store for r, s in self.line.workers):
            self._commit()
        else:
            sent = self.line.hint(eager=True)
            assert sent, "the chain stands still with tuples in it"

    def _commit(self) -> None:
        """The epoch is over, and what it found counts."""
        self._is_active = False
        recorder = self.line.recorder
        if recorder is not None:
            recorder.quiet(self.line.state)
            self.steps += recorder.steps
        self.emitted += self._pending
        self._pending = []
        self.commits_us.append(self.env.now)
        self._epoch += 1
        self._starts_at = {name: source.at for name, source in self.sources.items()}
        self._saved = self.line.state
        pause_us = self.crew.commit_us + self._resize()
        if not self.is_over:
            self._later(pause_us, partial(self._start, self._attempt))

    def _fail(self, for_us: int) -> None:
        """A worker is lost with all it holds: the chain goes back to the last quiet epoch."""
        if self.is_over:
            return
        self.failures += 1
        self._attempt += 1
        self._is_active = False
        self._pending = []
        for name, source in self.sources.items():
            self.redone += source.at - self._starts_at[name]
            source.stop()
        self.line.begin(self._saved, None)
        self._later(for_us, partial(self._start, self._attempt))

    # ------------------------------------------------------------------- what happens inside

    def _admit(self, stream: str, n: int) -> None:
        at = 0 if stream == R else len(self.line.workers) - 1
        self.line.offer(at, Task("admit", stream, n))

    def _waits(self, stream: str) -> bool:
        """Whether tuples that are overdue wait at the source's worker."""
        workers = self.line.workers
        at = 0 if stream == R else len(workers) - 1
        return len(workers) > 1 and is_overdue(self.line.setup, workers[at], stream)

    def _after(self, _at: int, task: Task) -> None:
        if self._epoch == self.epochs or not self._is_active:
            return
        if task.what == "admit":
            self.sources[task.stream].taken()
            self._look()
        elif any(source.is_due for source in self.sources.values()):
            self._look()

    def _emit(self, found: Found) -> None:
        self._pending.append(Emitted(self.env.now, self._epoch, found))

    def _later(self, delay_us: float, call: "partial[None]") -> None:
        simpy.Timeout(self.env, delay_us).callbacks.append(lambda _: call())

    def _hint(self) -> None:
        if self._is_active and self.line.forwards:
            self.line.hint()
        if not self.is_over:
            self._later(self.crew.hint_us, partial(self._hint))

    # --------------------------------------------------------------------------------- load

    def _tick(self) -> None:
        """Look at the load, and set block size, shedding and the number of workers."""
        control, limits = self.control, self.control.limits
        workers = self.line.workers
        held = [len(r.store) + len(s.store) for r, s in workers]
        m, mean = len(held), sum(held) / len(held) / control.capacity
        self._smoothed += control.smoothing * (mean - self._smoothed)
        if control.blocks == "adaptive":
            largest = self.config.block_size
            size = load.block_size(mean, control.capacity, m, limits.tau1, largest)
            self.line.set_block_size(size)
        rule, did = control.rule, self.doors.share > 0
        if control.shed != "no":
            self.doors.share = load.share_to_shed(
                did, self._smoothed, limits.tau1, rule.base, rule.power, rule.margin
            )
        now_us = round(self.env.now)
        if control.scale and self._wanted == m:
            self._watch, self._wanted = load.watch(self._watch, now_us, m, mean, limits)
        offered, shed = self.doors.offered, len(self.doors.shed)
        moment = Moment(
            now_us,
            m,
            mean,
            max(held) / control.capacity,
            self._smoothed,
            self.doors.share,
            offered - self._offered,
            shed - self._shed,
            self._wanted,
        )
        self._offered, self._shed = offered, shed
        self._sample(moment, sum(held))
        if not self.is_over:
            self._later(control.every_us, partial(self._tick))

    def _sample(self, moment: Moment, held: int) -> None:
        waiting = sum(source.waiting() for source in self.sources.values())
        busy_us = sum(station.utilisation() for station in self.line.stations) * self.env.now
        size = self.line.setup.block_size
        self.samples.append(Sample(moment, held, waiting, size, busy_us))

    def _resize(self) -> float:
        """Change the number of workers on the quiet chain; returns how long it takes."""
        before = len(self._saved.workers)
        if self._wanted == before or self._epoch >= self.epochs:
            return 0.0
        self.resized.append((self.env.now, before, self._wanted))
        state, moved = self._saved, 0
        while len(state.workers) != self._wanted:
            action, n = _change(state, grow=len(state.workers) < self._wanted)
            state, _ = chain.after(self.line.setup, state, action)
            moved += n
        for found in self.index.take():
            self.emitted.append(Emitted(self.env.now, self._epoch, found))
        self._saved = state
        self.line.setup = replace(self.line.setup, workers=self._wanted)
        tier = self.crew.tiers[0]
        return tier.latency_us + 8 * moved * self.crew.costs.tuple_bytes / tier.bandwidth_mbps


def _change(state: State, grow: bool) -> tuple[Action, int]:
    """Split the fullest worker in two equal parts, or merge the emptiest neighbours.

    With the number of tuples that move.
    """
    sizes = [(len(r.store), len(s.store)) for r, s in state.workers]
    held = [r + s for r, s in sizes]
    if not grow:
        at = min(range(len(held) - 1), key=lambda n: held[n] + held[n + 1])
        return Action("merge", at), held[at + 1]
    at = max(range(len(held)), key=lambda n: held[n])
    (of_r, _), half = sizes[at], held[at] // 2
    if half <= of_r:
        return Action("split", at, R, half), half
    return Action("split", at, S, half - of_r), half

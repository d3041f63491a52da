"""The cluster of room ``join``: epochs of a chain, failures, and workers that come and go.

Source: docs/join.md, sections 6 to 8 and 13; S2J, a chain of stream-join workers.

Rules of this file:

* An epoch begins when there are arrivals. It is over when it has been cut, its arrivals have been
  taken, and the machine says that it is over. Its pairs count from then on.
* A failure before its end takes the whole chain back to the end of the previous epoch.
* The number of workers changes between two epochs, or with ``live`` while tuples flow.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import simpy

from model.vocabulary import Event, Fault, JoinConfig, Step
from model.vocabulary.join import STREAMS, R, S
from model.vocabulary.settings import require
from sim.join.intake import Intake
from sim.join.line import ChainTask, Line
from sim.join.live_chain import LiveChain, RightEnd
from sim.join.load import LoadControl, Shedding
from sim.join.machine import ChainMachine, FoundPairs
from sim.join.tuning import ChainTuning
from sim.kernel.distributions import Uniform, iterate_samples
from sim.kernel.link import AnyLink
from sim.kernel.plan import Plan
from sim.kernel.seeds import Seeds
from sim.kernel.source import Tuple
from sim.kernel.station import Station
from sim.timed_room import check_all, kills_of


class EmittedPairs(NamedTuple):
    """Pairs that came out at one time."""

    at_us: float
    epoch: int
    found: FoundPairs


class Resizing(NamedTuple):
    """A change of the number of workers."""

    at_us: float
    before: int
    after: int
    began_us: float
    """Time at which the change began; between epochs that is ``at_us``."""


class ChainCluster:
    """A chain with its two intakes, behind the log of a run."""

    def __init__(
        self,
        env: simpy.Environment,
        seeds: Seeds,
        plan: Plan,
        config: JoinConfig,
        tuning: ChainTuning,
        machine: ChainMachine,
    ) -> None:
        self.plan, self.config, self.tuning = plan, config, tuning
        self.machine = machine
        self.line = Line(env, seeds, plan, tuning.costs, machine, self._served, self._emit)
        self.line.resize(config.workers)
        self.shedding = Shedding(iterate_samples(Uniform(0, 1), seeds.stream("shedding")))
        self.intakes = {
            stream: Intake(stream, tuning, self.shedding, self.line.admit, self._has_room)
            for stream in STREAMS
        }
        self.load = LoadControl(config, tuning.control, machine, self.shedding)
        self._end = None
        if tuning.control.live:
            good = isinstance(machine, LiveChain)
            require(good, "live", "yes", f"no for a {type(machine).__name__}")
            assert isinstance(machine, LiveChain)
            self._end = RightEnd(self.line, machine, self._note_resizing)
        self.steps: list[Step] = []
        """Rejections and recorded steps of the epochs that are over."""
        self.emitted: list[EmittedPairs] = []
        """Pairs of the epochs that are over."""
        self.resizings: list[Resizing] = []
        self.commits_us: list[float] = []
        """Times at which epochs were over."""
        self.failures = 0
        """Number of failures that broke an epoch off."""
        self.taken_again = 0
        """Number of arrivals that were handed over again after a failure."""
        self._env = env
        self._began_us = -1.0  # when the first epoch began
        self.workers_of: dict[int, int] = {}
        """Number of workers at the start of each epoch."""
        self._batches = 0  # number of epochs that were cut
        self._firsts = [0]  # number of the first arrival of each batch
        self._is_flushed = False
        self._epoch = 0
        self._starts_at = dict.fromkeys(STREAMS, 0)
        self._is_running = self._is_ending = self._is_resting = False
        self._failed: list[int] = []  # workers whose failure lasts
        self._broken_off: set[int] = set()
        self._pending: list[EmittedPairs] = []
        self._kept_resizings = 0  # number of changes before the epoch under way
        self._polls = Clock(env, tuning.intake_us, self._poll)
        self._looks = Clock(env, tuning.hint_us, self._let_look)
        self._controls = Clock(env, tuning.control.every_us, self._control)
        self._controls.start()

    # ------------------------------------------------------------------------ called by the run

    @property
    def workers(self) -> Mapping[str, "Member"]:
        """The workers at the start, by the names that faults use."""
        stations = enumerate(self.line.stations)
        return {f"worker-{n}": Member(self, n, station) for n, station in stations}

    @property
    def links(self) -> Mapping[str, AnyLink]:
        """Links from the log, and between neighbours, by the names that faults use."""
        return self.line.links

    def admits(self, item: Tuple) -> bool:
        """Return whether the worker where a tuple enters takes it in; a full one may shed it."""
        return not self.line.sheds(item.stream) or self.line.has_room(item.stream)

    def arrive(self, event: Event) -> None:
        """Add an arrival to the intake of its stream."""
        if event.stream not in self.intakes:
            require(False, "stream of an arrival", event.stream, f"one of {', '.join(STREAMS)}")
        self.intakes[event.stream].events.append(event)
        self._polls.start(again=True)
        if not self._is_running:
            self._begin()

    def end_batch(self) -> None:
        """Cut the epoch, whose arrivals are complete."""
        for intake in self.intakes.values():
            intake.cut()
        self._batches += 1
        self._firsts.append(sum([len(intake.events) for intake in self.intakes.values()]))
        self._hand_over()

    def flush(self) -> None:
        """Add a last epoch, which empties all stores."""
        self._is_flushed = True
        self._begin()

    def check(self) -> None:
        """Assert conservation and Little's law at every worker and link."""
        check_all(self.line.stations, self.line.links.values())

    def close(self) -> None:
        """Drop the callbacks, because reference cycles would stay in memory."""
        self.line.close()
        self.intakes.clear()
        del self._polls, self._looks, self._controls

    @property
    def end_us(self) -> float:
        """Time at which the last epoch was over."""
        return self.commits_us[-1] if self.commits_us else 0.0

    def kills(self) -> tuple[Fault, ...]:
        """Return a kill of each epoch that the failure of a worker broke off."""
        return kills_of(self._broken_off)

    # ------------------------------------------------------------------------------- epochs

    @property
    def _is_over(self) -> bool:
        return self._epoch > self._batches

    def _begin(self) -> None:
        """Begin the next epoch if there is one and it can begin."""
        if self._is_running or self._is_resting or self._failed or self._is_over:
            return
        intakes = self.intakes
        has_arrivals = any(
            self._starts_at[stream] < len(intake.events) for stream, intake in intakes.items()
        )
        is_flush = self._is_flushed and self._epoch == self._batches
        if not has_arrivals and not is_flush:
            return
        wanted = self.load.take_decision(self._epoch)
        # A flush follows no load, but may have a decision.
        can_change = self._end is None and (not is_flush or bool(self.config.decisions))
        if wanted != self.line.workers and can_change:
            self._rest(self._resize(wanted))
            return
        self._is_running, self._is_ending = True, is_flush
        self._began_us = self._env.now if self._began_us < 0 else self._began_us
        self.machine.begin(self._epoch, flush=is_flush)
        if self._end is not None:
            self._end.begin()
        self.workers_of[self._epoch] = self.line.workers
        self._looks.start()
        self._controls.start()
        self.line.look(everyone=True)
        if not is_flush:
            for stream, intake in intakes.items():
                intake.begin(self._epoch, self._firsts[self._epoch], self._starts_at[stream])
            self._hand_over()

    def _hand_over(self) -> None:
        """Hand over arrivals; end the intake when everything has been taken."""
        if not self._is_running or self._is_ending:
            return
        r, s = self.intakes[R], self.intakes[S]
        while any([r.hand_over(), s.hand_over()]):
            pass
        if r.is_done and s.is_done:
            self._is_ending = True
            self.machine.end_intake()
            self.line.look(everyone=True)

    def _served(self, task: ChainTask) -> None:
        if task.stream is not None:
            self.intakes[task.stream].is_busy = False
        if self._end is not None:
            self._end.go_on(is_taken=not self.intakes[S].is_busy)
        if not self._is_ending:
            if task.stream is not None or any(each.is_due for each in self.intakes.values()):
                self._hand_over()
        elif (self.line.is_silent if self.tuning.drains else self.line.is_idle) and (
            self.machine.is_over()  # a watermark on its way may let tuples go on
        ):
            self._commit()

    def _commit(self) -> None:
        """End the epoch: its pairs count."""
        self._is_running = self._is_ending = False
        self.line.forget()
        self.steps += self.machine.commit()
        self.emitted += self._pending
        self._pending = []
        if self.tuning.control.rules is not None and self._epoch < self._batches:
            since_us = self.commits_us[-1] if self.commits_us else self._began_us
            self.load.conclude(self._epoch, since_us, self._env.now, self.line)
        self.commits_us.append(self._env.now)
        self._kept_resizings = len(self.resizings)
        self._epoch += 1
        for stream, intake in self.intakes.items():
            self._starts_at[stream] = intake.at
            intake.stop()
        self._rest(self.tuning.commit_us)

    def _rest(self, for_us: float) -> None:
        """Begin no epoch for a while."""
        self._is_resting = True
        simpy.Timeout(self._env, for_us).callbacks.append(self._rested)

    def _rested(self, _: simpy.Event) -> None:
        self._is_resting = False
        self._begin()

    def _resize(self, wanted: int) -> float:
        """Change the number of workers; return how long that takes (us)."""
        now = self._env.now
        self._note_resizing(self.line.workers, wanted, now)
        service = self.machine.resize(wanted)
        self.emitted += [EmittedPairs(now, self._epoch, found) for found in service.found]
        self.line.resize(wanted)
        cluster = self.plan.cluster
        tier = self.plan.way(cluster.worker(0).place, cluster.worker(1).place)
        if tier is None:
            return 0.0
        return tier.travel_us(8 * service.tuples * cluster.tuple_bytes)

    def _note_resizing(self, before: int, after: int, began_us: float) -> None:
        self.resizings.append(Resizing(self._env.now, before, after, began_us))

    def fail(self, worker: int) -> None:
        """Take the chain back to the end of the last epoch, because one of its workers failed."""
        if worker >= self.line.workers:
            return
        self._failed.append(worker)
        if len(self._failed) == 1:
            self.line.fail()
        if not self._is_running:
            return
        self.failures += 1
        self._is_running = self._is_ending = False
        self.line.forget()
        self._broken_off.add(self._epoch)
        self._pending = []
        del self.resizings[self._kept_resizings :]
        for stream, intake in self.intakes.items():
            self.taken_again += intake.at - self._starts_at[stream]
            intake.at = self._starts_at[stream]
            intake.stop()
        self.machine.begin(self._epoch, flush=False)  # so that gauges show what is kept
        if self._end is not None:
            self._end.begin()

    def recover(self, worker: int) -> None:
        """Begin the epoch again, once every worker has recovered."""
        if worker in self._failed:
            self._failed.remove(worker)
            if not self._failed:
                self.line.recover()
                self._begin()

    # ------------------------------------------------------------------- called by the chain

    def _poll(self) -> bool:
        for intake in self.intakes.values():
            intake.see()
        self._hand_over()
        return False

    def _has_room(self, stream: str) -> bool:
        """Return whether a stream may be handed over: the worker sheds, or has room."""
        if self._end is not None and self._end.is_held and stream == S:
            return False
        return self.line.sheds(stream) or self.line.has_room(stream)

    def _emit(self, found: FoundPairs) -> None:
        self._pending.append(EmittedPairs(self._env.now, self._epoch, found))

    def _let_look(self) -> bool:
        """Let workers drop and send tuples at intervals."""
        if not self._is_running:
            return False
        self.line.look()
        is_stuck = self._is_ending and self.line.is_silent
        assert not is_stuck, "the chain stands still with tuples in it"
        return True

    def _control(self) -> bool:
        waiting = sum([intake.waiting for intake in self.intakes.values()])
        self.load.look(self._env.now, waiting)
        if self._end is not None and self._is_running and not self._is_ending:
            self._end.change(self.load.wanted, self._env.now)
        return self._is_running or self._is_resting or bool(self._failed)


class Member:
    """One worker of the chain, as faults see it: if it fails, the chain fails."""

    def __init__(self, cluster: ChainCluster, number: int, station: Station[ChainTask]) -> None:
        self._cluster, self._number = cluster, number
        self.pause, self.resume = station.pause, station.resume
        self.slow, self.unslow = station.slow, station.unslow

    def fail(self) -> None:
        """Fail, if the worker belongs to the chain now."""
        self._cluster.fail(self._number)

    def recover(self) -> None:
        """Undo one failure."""
        self._cluster.recover(self._number)


class Clock:
    """A clock that rings at multiples of an interval, while ``ring()`` returns true.

    A stopped clock does not prolong a run.
    """

    def __init__(self, env: simpy.Environment, interval_us: int, ring: Callable[[], bool]) -> None:
        self._env, self._interval_us, self._ring = env, interval_us, ring
        self._is_going = False
        self._rang_us = -1.0  # the multiple at which it rang last

    def start(self, *, again: bool = False) -> None:
        """Start the clock if it has stopped; with ``again`` it may ring twice at a multiple."""
        if not self._is_going:
            self._is_going = True
            now = self._env.now
            due_us = -(-now // self._interval_us) * self._interval_us
            if due_us == self._rang_us and not again:
                due_us += self._interval_us
            self._rang_us = due_us
            wake = simpy.Timeout(self._env, due_us - now)
            wake.callbacks.append(self._wake)

    def _wake(self, _: simpy.Event) -> None:
        self._is_going = False
        if self._ring():
            self.start()

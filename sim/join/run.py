"""One timed run of room ``join``: two streams through a chain, and figures."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from model.join.load import Traffic
from model.join.load_claims import Moment, Rule
from model.vocabulary import Event, JoinConfig, System, Trace, Workload
from model.vocabulary.join import STREAMS, Match, R, S
from sim.join.crew import Control, Crew
from sim.join.series import Series, series_of
from sim.join.summary import Summary, summary_of, traffic_of
from sim.join.timed import Room, Stream
from sim.kernel.faults import Schedule
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Plan
from sim.kernel.recorder import digest_of
from sim.kernel.run import uncollected
from sim.kernel.trigger import cut

PRODUCER = "sim"
ORDINARY = Crew()
UNCONTROLLED = Control()


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a run gave."""

    workload: Workload
    """The arrivals that were not shed, in their order, and the epochs: the model or Spark, given
    this, must find the same."""
    trace: Trace
    """Matches, rejections and, if they were recorded, the steps of the protocol."""
    series: Series
    """Columns of one table; see :func:`sim.join.series.series_of`."""
    summary: Summary
    """Figures by name; see :mod:`sim.join.summary`."""
    moments: tuple[Moment, ...]
    """The load, for the claims of ``model.join.load_claims``."""
    rule: Rule
    """By which it was controlled."""
    traffic: Traffic
    """What the chain carried, for the formula of docs/join.md, section 8."""

    @property
    def digest(self) -> str:
        """SHA-256 over everything in this run, in hexadecimal."""
        return digest_of(self.trace, self.workload, self.summary, self.series)


def simulate(
    plan: Plan,
    config: JoinConfig,
    seed: int,
    *,
    crew: Crew = ORDINARY,
    control: Control = UNCONTROLLED,
    faults: Schedule = (),
    epoch_us: int = 10_000_000,
    record: bool = False,
) -> Run:
    """Run a plan through a chain until every pair has come out.

    Even sources of the plan are of R, odd ones of S. Arrivals depend on the seed and the plan
    alone: chains of any shape meet the same. An epoch ends every ``epoch_us``, if anything
    arrived. ``faults``: workers ``worker-0``, ... pause, slow down or fail; links ``right-0``,
    ``left-0``, ... are clogged. ``record`` keeps the steps of the protocol; a chain whose workers
    come and go has none.

    The same seed gives the same run. Raises ``ValueError`` with one sentence that names the
    offending value.
    """
    events = arrivals_of(plan, seed)
    cuts, _ = cut(events, plan.epoch_us, epoch_us)
    stream = Stream(events, cuts, plan.epoch_us, name=plan.name)
    return simulate_stream(
        stream, config, seed, crew=crew, control=control, faults=faults, record=record
    )


@uncollected()
def simulate_stream(
    stream: Stream,
    config: JoinConfig,
    seed: int,
    *,
    crew: Crew = ORDINARY,
    control: Control = UNCONTROLLED,
    faults: Schedule = (),
    record: bool = False,
) -> Run:
    """The same for arrivals that are there; the seed then draws what is shed."""
    steps = record and not control.scale
    with closing(Room(stream, config, crew, control, faults, seed, steps)) as room:
        room.run()
        return _observed(room, seed)


def arrivals_of(plan: Plan, seed: int) -> tuple[Event, ...]:
    """What arrives of a plan, with the streams: even sources are of R, odd ones of S."""
    return simulate_arrivals(plan, seed, STREAMS).events


def _observed(room: Room, seed: int) -> Run:
    head: Summary = {"input": room.stream.name, "seed": seed, "workers": room.config.workers}
    kept = _kept(room)
    return Run(
        _workload(room, kept, seed),
        _trace(room, kept),
        series_of(room),
        {**head, **summary_of(room)},
        tuple([sample.moment for sample in room.samples]),
        room.control.rule,
        traffic_of(room),
    )


def _kept(room: Room) -> Sequence[int]:
    """Positions of the arrivals that were not shed."""
    everything, shed = range(len(room.stream.arrivals)), room.doors.shed
    return [n for n in everything if n not in shed] if shed else everything


def _workload(room: Room, kept: Sequence[int], seed: int) -> Workload:
    arrivals, cuts = room.stream.arrivals, room.stream.cuts
    if len(kept) < len(arrivals):
        arrivals = tuple([arrivals[n]._replace(seq=seq) for seq, n in enumerate(kept)])
        cuts = tuple(np.searchsorted(kept, cuts).tolist())
    config, stream = room.config.to_json(), room.stream
    return Workload("join", arrivals, config, cuts, seed=seed, flush=stream.flush, name=stream.name)


def _trace(room: Room, kept: Sequence[int]) -> Trace:
    rejected = [each._replace(seq=bisect_left(kept, each.seq)) for each in room.gate.rejected]
    return Trace(PRODUCER, [*rejected, *_matches(room), *room.steps])


def _matches(room: Room) -> Iterator[Match]:
    """In the order of a trace, which then has nothing to sort."""
    _, epoch, query, r, s = room.results
    columns = room.index.columns
    r_ids, s_ids = columns[R].source_id[r], columns[S].source_id[s]
    names = [name for name, _ in room.config.queries]
    place = np.argsort(np.argsort(np.array(names, dtype=object)))
    order = np.lexsort((epoch, s_ids, r_ids, place[query]))
    numbers, *others = [column[order].tolist() for column in (query, r_ids, s_ids, epoch)]
    return map(Match._make, zip(map(names.__getitem__, numbers), *others, strict=True))


def make_system() -> System:
    """The timed chain as a System: a workload's arrivals are replayed when they came."""

    def replay(workload: Workload, /) -> Trace:
        config = JoinConfig.from_json(workload.config)
        return simulate_stream(stream_of(workload), config, workload.seed, record=True).trace

    return replay


def stream_of(workload: Workload) -> Stream:
    """What arrives in a workload; the run starts at its first arrival."""
    start_us = workload.arrivals[0].arrival_us if workload.arrivals else 0
    return Stream(workload.arrivals, workload.cuts, start_us, workload.flush, workload.name)

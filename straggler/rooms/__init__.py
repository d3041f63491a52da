"""Rooms: what the command line and the property tests know about each published idea.

Rules of this file:

* Room ``x`` is the package ``straggler.rooms.x`` with a module ``room`` that defines ``ROOM``.
  Rooms are found in every folder ``straggler/rooms`` on the search path, and are listed nowhere.
* Output lists rooms by their ``position``. Help and errors list their names alphabetically, which
  imports no room.
* A room is declared here and made elsewhere: types that only annotations name are not imported, so
  that help loads neither the simulation nor readers of files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import extend_path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from model.checking.claims import COMPLETE, Judgement, Recording, Verdict
from model.vocabulary import System, Trace, Workload
from model.vocabulary.settings import JsonObject, Settings
from model.vocabulary.trace import TraceReader
from straggler.errors import UsageError, refuse_unknown

if TYPE_CHECKING:
    from model.checking.diff import Difference
    from model.checking.explorer import Exploration
    from sim.kernel.plan import Plan
    from sim.kernel.run import TimedRun
    from sim.timed_room import TimedRoom
    from straggler.inputs.columns import Columns
    from straggler.inputs.set_aside import SetAside
    from straggler.options import Arguments, Option
    from straggler.pages.errata import Erratum

__path__ = extend_path(__path__, __name__)


class Case(NamedTuple):
    """One comparison that is due: an input and a query, as a workload."""

    name: str
    """Name of the input, as given."""
    input: str
    """Name of the input for a reader, for example with the word simulated."""
    query: str
    workload: Workload
    set_aside: tuple[SetAside, ...] = ()
    """Bad rows of the files of the input."""


class SkippedInput(NamedTuple):
    """A default input that is not available."""

    input: str
    reason: str


Figures = Mapping[str, float | int | None]
"""Figures of a run, by name; ``None`` for those without observations."""


class Figure(NamedTuple):
    """A column of the table of judgements."""

    name: str
    """Name in :data:`Figures`."""
    heading: str
    format: str = ","
    """Format specification of the number."""


class ReferenceRun(NamedTuple):
    """The workload that a system on trial receives, and the trace that is expected of it."""

    reference: str
    """``model`` or ``both``."""
    workload: Workload
    trace: Trace
    simulated: tuple[Verdict, ...] = ()
    """Verdict on the agreement of simulation and model, if both ran."""


class Remark(NamedTuple):
    """A note on a case; it is not a verdict."""

    name: str
    sentence: str
    """Sentence without a full stop."""
    data: JsonObject
    """The same note as plain data."""


class Check(Protocol):
    """Function that checks the claims of a room."""

    def __call__(
        self, workload: Workload, trace: Trace, /, *, recording: Recording = COMPLETE
    ) -> Judgement:
        """Check the claims on a trace, as far as what is recorded decides them."""
        ...


class JudgedCase(NamedTuple):
    """A case that was run, with both traces and the evidence."""

    case: Case
    expected: Trace
    """Trace of the reference."""
    observed: Trace
    """Trace of the system on trial."""
    evidence: Judgement
    """Evidence from the observed trace."""
    step_types: Collection[type]
    """Step classes that are compared."""


class Alternatives(NamedTuple):
    """A table of runs with the same arrivals as a timed run, under other settings."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    data: tuple[Mapping[str, object], ...]
    """The same rows as plain data."""
    remark: str
    """Sentence that explains the table."""


AnyExploration: TypeAlias = "Exploration[Hashable, object]"
"""The result of a search, whatever the states and actions of its machine are."""


class Explorer(NamedTuple):
    """The small scopes of a room's model."""

    scopes: Collection[str]
    everyday: tuple[str, ...]
    """Scopes that take seconds, the quickest first."""
    explore: Callable[[str], AnyExploration]
    """Explore a scope."""


@dataclass(frozen=True, slots=True)
class Room:
    """One published idea, wired together."""

    name: str
    position: int
    """Rank in output that lists several rooms."""
    step_types: tuple[type, ...]
    """Step classes that are compared."""
    answers: Mapping[type, tuple[str, ...]]
    """Fields of answers, by step class: what a user reads, however the system came to it."""
    config: type[Settings]
    """Class of the settings of a query."""
    inputs: str
    """Inputs that ``--input`` accepts, for its help."""
    batches: int
    """Default number of micro-batches."""
    options: Callable[[], Iterator[Option]]
    """Yield the options of a query of ``straggler diff``."""
    cases: Callable[[Arguments, Columns], Iterator[Case | SkippedInput]]
    """Yield the cases that the options ask for."""
    reference: Callable[[], System]
    """Return the model."""
    spark: Callable[[], System]
    """Return the Spark pipeline in the running session."""
    in_process: Callable[[], System]
    """Return the part of the Spark pipeline that runs without Spark."""
    in_process_step_types: tuple[type, ...]
    """Step classes that :attr:`in_process` records."""
    compare: Callable[[Workload, Trace, Trace, Collection[type], Collection[str]], Difference]
    """Compare the expected with the observed trace in some step classes; some fields are neither
    compared nor shown."""
    check: Check
    """Check the claims on a trace of a workload."""
    refuse_query: Callable[[Any, Workload], None]
    """Raise :class:`UsageError` for a stored workload above a limit, given its query."""
    figures: Callable[[JudgedCase], Figures]
    """Return the figures of a case."""
    shown: tuple[Figure, ...]
    """Figures that are columns of the table."""
    summarise_agreement: Callable[[Mapping[str, float]], str]
    """Return what was compared and agrees with the reference, given the sums of all figures."""
    guard: Callable[[Case, Figures], Verdict]
    """Judge whether the interesting case occurred."""
    refuse_settings: Callable[[Mapping[str, str]], None]
    """Raise :class:`UsageError` for a setting of a timed run above its limit."""
    run: Callable[[Mapping[str, str], int], TimedRun]
    """Simulate settings with a seed."""
    timed: TimedRoom[Any, Any]
    """Simulation of plans and replays, and the plot of a run."""
    explorer: Explorer | None = None
    """Small scopes of the model, if it has some."""
    slots: Callable[[Workload], int] = lambda _: 2
    """Return the number of task slots that a workload needs."""
    workers: int | None = None
    """Default number of workers, if the room has ``--workers`` and ``--lateness``."""
    alternatives: Callable[[Any, Mapping[str, str], int], Alternatives | None] = lambda *_: None
    """Return the runs under other settings that are shown with a timed run."""
    undetermined_steps: Callable[[Plan], Collection[type]] = lambda _: ()
    """Return the step classes that the workload of a plan does not determine."""
    simpler: Callable[[Workload], Iterator[Workload]] = lambda _: iter(())
    """Yield workloads with the same arrivals and a simpler query, to shrink a counterexample."""
    settings: Callable[[Workload], Mapping[str, object]] = lambda workload: workload.config
    """Return the settings that the description of a counterexample names."""
    errata: tuple[Erratum, ...] = ()
    """Promises that the published idea breaks if it is read literally."""
    quick: str = ""
    """Options of ``straggler diff`` that choose a query and an input for a quick comparison."""
    quick_s: int = 60
    """Rough duration of the quick comparison; the shortest one goes first."""
    protocol_types: tuple[type, ...] = ()
    """Step classes that a trace may have and that only claims read."""

    @property
    def words(self) -> tuple[type, ...]:
        """Step classes that a trace may have."""
        return (*self.step_types, *self.protocol_types)

    def refuse(self, workload: Workload) -> None:
        """Raise :class:`UsageError` for a stored workload without a query, or above a limit."""
        try:
            config = self.config.from_json(workload.config)
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from error
        self.refuse_query(config, workload)

    def simulate(self, settings: Mapping[str, str], seed: int) -> TimedRun:
        """Simulate settings with a seed.

        Raise ``ValueError`` with one sentence for an impossible setting, and :class:`UsageError`
        for one above its limit.
        """
        self.refuse_settings(settings)
        return self.run(settings, seed)

    def trace_reader(self, whole_steps: bool) -> TraceReader:
        """Return a reader of traces; without ``whole_steps`` only fields of answers are needed."""
        return TraceReader(self.words, {} if whole_steps else self.answers)

    def determined_steps(self, plan: Plan, step_types: Iterable[type]) -> tuple[type, ...]:
        """Return the step classes that the workload of a plan determines."""
        undetermined = self.undetermined_steps(plan)
        return tuple([step_type for step_type in step_types if step_type not in undetermined])


def room_names() -> tuple[str, ...]:
    """Return the names of all rooms, sorted."""
    files = [file for folder in __path__ for file in Path(folder).glob("*/room.py")]
    return tuple(sorted({file.parent.name for file in files}))


def find_room(name: str) -> Room:
    """Return the room called ``name``.

    Raise :class:`UsageError` with a suggestion if there is no such room, and for a room without
    its object.
    """
    refuse_unknown("room", name, room_names())
    module = import_module(f"{__name__}.{name}.room")
    if not hasattr(module, "ROOM"):
        raise UsageError(f"{module.__name__} defines no ROOM; a room is its folder and this object")
    room: Room = module.ROOM
    return room


def find_rooms(name: str) -> list[Room]:
    """Return the room called ``name``, or every room in order of display for ``all``."""
    if name != "all":
        return [find_room(name)]
    return sorted(map(find_room, room_names()), key=lambda room: (room.position, room.name))


def sort_names(names: Iterable[str]) -> list[str]:
    """Sort names of rooms in order of display; names of no room come last, alphabetically."""
    order = [room.name for room in find_rooms("all")]
    given = set(names)
    return [name for name in order if name in given] + sorted(given.difference(order))

"""Rooms: what the command line and the property tests know about each published idea."""

import argparse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from model.checking.claims import Verdict
from model.checking.diff import Difference
from model.checking.explorer import Exploration
from model.checking.explorer import Path as Behaviour
from model.vocabulary import System, Trace, Workload
from model.vocabulary.settings import nearest
from properties.data.tables import Columns
from properties.errors import UsageError
from properties.judging.predictions import NO_PREDICTION, Prediction, Predictor
from properties.pages.errata import Erratum
from sim.kernel.plan import Plan
from sim.kernel.run import TimedRun

NAMES = ("slack", "join", "grouping", "watermark", "script")
"""Rooms that are run on data; room ``x`` is described by ``ROOM`` in ``properties.x.room``."""


class Case(NamedTuple):
    """One comparison to be made."""

    name: str
    """Of the input, as given."""
    input: str
    """The same as a reader should see it, for example with the word simulated."""
    query: str
    workload: Workload
    in_order: bool
    """Nothing in the input is late, so the absence of late pairs says nothing against it."""


class SkippedInput(NamedTuple):
    """A default input that is not there."""

    input: str
    reason: str


Figures = Mapping[str, float | int | None]
"""What happened in a run, by name; ``None`` for what was not observed."""


class Figure(NamedTuple):
    """A figure that is shown: a column of the table of judgements."""

    name: str
    heading: str
    format: str = ","
    """How its number is written, as in a format string."""


class ReferenceRun(NamedTuple):
    """What a system on trial is given, and what it should observe."""

    reference: str
    """``sim``, ``model`` or ``both``."""
    workload: Workload
    trace: Trace
    predicted: Prediction = NO_PREDICTION
    """What the simulation says of times, if there was one."""
    simulated: tuple[Verdict, ...] = ()
    """Whether simulation and model agree, if both were asked."""


class Remark(NamedTuple):
    """Something a reader should know of a case that is no verdict."""

    name: str
    sentence: str
    """Without a full stop."""
    data: Mapping[str, Any]
    """The same for a program."""


class Evidence(Protocol):
    """What the claims of a room found in one trace."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One for every claim that the workload puts to the test."""
        ...

    @property
    def guards(self) -> Mapping[str, int]:
        """How often the interesting cases occurred."""
        ...


class JudgedCase(NamedTuple):
    """A case that was run, with everything that was found out about it."""

    case: Case
    expected: Trace
    """Of the reference."""
    observed: Trace
    evidence: Evidence
    """Of the observed trace."""
    step_types: Collection[type]
    """Kinds of steps that are compared."""


class PlantedBug(Protocol):
    """Rules of the model that break a promise, on purpose."""

    @property
    def promise(self) -> str:
        """The claim that they break."""
        ...

    @property
    def mistake(self) -> str:
        """What they do, in a sentence."""
        ...

    @property
    def source(self) -> str:
        """Who says so."""
        ...

    @property
    def corrected(self) -> str:
        """The rule that keeps the promise."""
        ...

    @property
    def example(self) -> Workload:
        """A small workload on which the promise is broken."""
        ...

    def make_system(self) -> System:
        """The model with these rules."""
        ...


class Alternatives(NamedTuple):
    """What stands beside a timed run: the same arrivals under other settings, as a table."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    data: tuple[Mapping[str, Any], ...]
    """The same for a program."""
    remark: str
    """What a reader should know, a sentence."""


class Explorer(NamedTuple):
    """The small scopes of a room's model."""

    scopes: Collection[str]
    everyday: tuple[str, ...]
    """Those that take seconds, the quickest first."""
    variants: Mapping[str, PlantedBug]
    explore: Callable[[str, str | None], Exploration[Any, Any]]
    """A scope, by the right rules or those of a variant."""
    homes: Mapping[str, str] = {}
    """The scope of a variant that is looked for in one scope alone."""
    chart: Callable[[str, str, Behaviour[Any, Any]], tuple[str, ...]] | None = None
    """A path of a scope with a variant in it, drawn; otherwise it is told in sentences."""


@dataclass(frozen=True, slots=True)
class Room:
    """One published idea, wired together."""

    name: str
    step_types: tuple[type, ...]
    """Step classes that are compared."""
    add_options: Callable[[argparse._ArgumentGroup], None]
    cases: Callable[[argparse.Namespace, Columns], Iterator[Case | SkippedInput]]
    reference: Callable[[], System]
    spark: Callable[[], System]
    """The Spark pipeline, in the session that is running."""
    slots: Callable[[Workload], int]
    """Task slots that the session must have for a workload."""
    in_process: System
    """What of the Spark pipeline runs without Spark; records ``in_process_words`` only."""
    in_process_step_types: tuple[type, ...]
    compare: Callable[[Workload, Trace, Trace, Collection[type]], Difference]
    """Expected and observed trace of a workload, in some kinds of steps."""
    check: Callable[[Workload, Trace], Evidence]
    refuse: Callable[[Workload], None]
    """:class:`UsageError` for a stored workload that would not end, or that has no query."""
    figures: Callable[[JudgedCase], Figures]
    shown: tuple[Figure, ...]
    """Those of the figures that stand in the table."""
    summarise_agreement: Callable[[Sequence[Figures]], str]
    """What cases in which all is well agree in with the reference, as the end of a sentence."""
    guard: Callable[[Case, Figures], Verdict]
    """Whether the interesting case occurred."""
    remarks: Callable[[JudgedCase], tuple[Remark, ...]]
    explorer: Explorer
    simulate: Callable[[Mapping[str, str], int], TimedRun]
    """Settings and a seed; ``ValueError`` with one sentence for a setting that cannot be, and
    :class:`UsageError` for a run that would not end."""
    simulate_plan: Callable[[Plan, Mapping[str, Any], int], TimedRun]
    """Run a plan and the query of a workload, with a seed."""
    replay: Callable[[Workload], TimedRun]
    """Replay a workload through the stated cluster."""
    predictor: Predictor
    """What a replay says of times."""
    plot: Callable[[Any, Path], None]
    """A timed run as an SVG file."""
    timed_remarks: Callable[[Any], tuple[Remark, ...]] = lambda _: ()
    """What a reader should know of a timed run."""
    alternatives: Callable[[Any, Mapping[str, str], int], Alternatives | None] = lambda *_: None
    """What stands beside a timed run with these settings and this seed."""
    undetermined_steps: Callable[[Plan], Collection[type]] = lambda _: ()
    """Kinds of steps that the workload of a plan does not determine."""
    simpler: Callable[[Workload], Iterator[Workload]] = lambda _: iter(())
    """The same arrivals with less asked of them, to make a counterexample small."""
    settings: Callable[[Workload], Mapping[str, Any]] = lambda workload: workload.config
    """What a reader wants to know of the configuration of a counterexample."""
    errata: tuple[Erratum, ...] = ()
    """What the published idea, read literally, does not keep."""
    in_process_max: int | None = None
    """Arrivals beyond which Spark is faster than what runs in process."""

    def determined_steps(self, plan: Plan, step_types: Iterable[type]) -> tuple[type, ...]:
        """Return those of the kinds of steps that the workload of a plan determines."""
        undetermined_steps = self.undetermined_steps(plan)
        return tuple([word for word in step_types if word not in undetermined_steps])


def find_room(name: str) -> Room:
    """The room called ``name``; :class:`UsageError` with a suggestion when there is none."""
    if name not in NAMES:
        raise UsageError(
            f"there is no room {name!r}, only {', '.join(NAMES)}{nearest(name, NAMES)}"
        )
    found: Room = import_module(f"properties.{name}.room").ROOM
    return found


def find_rooms(name: str) -> list[Room]:
    """The room called ``name``, or every room for ``all``."""
    return [find_room(each) for each in (NAMES if name == "all" else (name,))]

"""Faults of a run: a schedule that can be printed, and shrunk by a test.

A schedule is a tuple of small NamedTuples. A test shrinks it by removing elements or lowering
numbers; its ``repr`` is Python that builds it again. Times are microseconds since the start of the
run. ``kind`` makes faults of different kinds unequal, even if all their numbers are equal.

Targets are named ``source-0``, ``source-1``, ... and, for workers of the cluster, ``worker-0``,
...; a link is named by its ends, for example ``source-0>log``, ``log>worker-1`` or
``worker-0>worker-1``.
"""

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeVar, get_args

import simpy

from model.vocabulary.durations import TOO_LONG_US
from model.vocabulary.settings import nearest, require
from model.vocabulary.trace import fields_of
from sim.kernel.link import AnyLink

TargetT = TypeVar("TargetT")


class Pause(NamedTuple):
    """A pause: a worker does nothing from ``at_us`` for ``for_us``, and loses nothing."""

    worker: str
    at_us: int
    for_us: int
    kind: Literal["pause"] = "pause"


class Slow(NamedTuple):
    """A slowdown: a worker is ``factor`` times slower from ``at_us`` for ``for_us``."""

    worker: str
    at_us: int
    for_us: int
    factor: float
    kind: Literal["slow"] = "slow"


class Fail(NamedTuple):
    """A failure: a worker fails at ``at_us`` and recovers ``for_us`` later.

    It restarts from its last checkpoint; docs/simulation.md defines checkpoints for each room.
    """

    worker: str
    at_us: int
    for_us: int
    kind: Literal["fail"] = "fail"


class Congest(NamedTuple):
    """A congestion: a link has a share of its bandwidth, or none, from ``at_us`` for ``for_us``."""

    link: str
    at_us: int
    for_us: int
    share: float = 0.0
    kind: Literal["congest"] = "congest"


class Lose(NamedTuple):
    """A loss: message number ``nth`` of a link, counted from 0, is lost once."""

    link: str
    nth: int
    kind: Literal["lose"] = "lose"


class Replay(NamedTuple):
    """A replay: message number ``nth`` of a link arrives once more, ``after_us`` later."""

    link: str
    nth: int
    after_us: int
    kind: Literal["replay"] = "replay"


class Duplicate(NamedTuple):
    """A duplicate: a source sends tuple number ``nth`` once more, ``after_us`` later."""

    source: str
    nth: int
    after_us: int
    kind: Literal["duplicate"] = "duplicate"


Fault: TypeAlias = Pause | Slow | Fail | Congest | Lose | Replay | Duplicate
Schedule: TypeAlias = tuple[Fault, ...]
Lasting: TypeAlias = Pause | Slow | Fail | Congest
"""Faults with a beginning and an end."""

KINDS: Mapping[str, type[Fault]] = {each._field_defaults["kind"]: each for each in get_args(Fault)}


def check_fault(fault: Fault) -> None:
    """Raise ``ValueError`` with one sentence that names an impossible value."""
    for name, value in fault._asdict().items():
        label = f"{fault.kind}.{name}"
        if isinstance(value, float):
            require(isfinite(value), label, value, "finite")
        if name.endswith("_us"):
            require(value < TOO_LONG_US, label, value, "less than 2^61")
        if name in ("at_us", "nth", "after_us"):
            require(value >= 0, label, value, "at least 0")
        elif name in ("for_us", "factor"):
            require(value > 0, label, value, "above 0")
        elif name == "share":
            require(0 <= value < 1, label, value, "at least 0 and below 1")


def schedule_of(text: str) -> Schedule:
    """Parse faults from a command line: ``slow worker-1 20000000 5000000 4; lose a>b 7``.

    A fault is its kind and then its fields in order. Raise ``ValueError`` with one sentence if the
    text is no schedule.
    """
    return tuple([_fault_of(part) for part in text.split(";") if part.strip()])


def _fault_of(text: str) -> Fault:
    kind, *words = text.split()
    if kind not in KINDS:
        msg = f"there is no fault {kind!r}{nearest(kind, KINDS)}; there are {', '.join(KINDS)}"
        raise ValueError(msg)
    names = [name for name in fields_of(KINDS[kind]) if name != "kind"]
    make: Callable[..., Fault] = KINDS[kind]
    try:
        kinds = [float if name in ("factor", "share") else int for name in names[1:]]
        # The zip stops at the last field; a field without a word makes the constructor fail.
        numbers = [read(word) for read, word in zip(kinds, words[1:], strict=False)]
        if len(numbers) != len(words) - 1:
            raise ValueError
        fault = make(*words[:1], *numbers)
    except (TypeError, ValueError) as error:
        msg = f"{text.strip()!r} is not a fault; write {kind} {' '.join(names)}"
        raise ValueError(msg) from error
    check_fault(fault)
    return fault


class Faultable(Protocol):
    """A target of faults: a station, or a cluster that fails as a whole."""

    def pause(self) -> None:
        """Stop working."""

    def resume(self) -> None:
        """Undo one pause."""

    def slow(self, factor: float) -> None:
        """Work slower by a factor."""

    def unslow(self, factor: float) -> None:
        """Undo a slowdown."""

    def fail(self) -> None:
        """Fail."""

    def recover(self) -> None:
        """Undo one failure."""


def inject(
    env: simpy.Environment,
    faults: Iterable[Fault],
    workers: Mapping[str, Faultable],
    links: Mapping[str, AnyLink],
) -> None:
    """Schedule the faults of workers and links before the run starts.

    Sources send duplicates themselves. A fault precedes all other events of the same instant.
    Raise ``ValueError`` with one sentence for an unknown target or an impossible value.
    """
    for fault in faults:
        check_fault(fault)
        match fault:
            case Pause(target, at_us, for_us):
                worker = _find(workers, target, fault)
                _span(env, at_us, for_us, worker.pause, worker.resume)
            case Slow(target, at_us, for_us, factor):
                worker = _find(workers, target, fault)
                _span(env, at_us, for_us, worker.slow, worker.unslow, factor)
            case Fail(target, at_us, for_us):
                worker = _find(workers, target, fault)
                _span(env, at_us, for_us, worker.fail, worker.recover)
            case Congest(target, at_us, for_us, share):
                link = _find(links, target, fault)
                _span(env, at_us, for_us, link.congest, link.clear, share)
            case Lose(target, nth):
                _find(links, target, fault).lose(nth)
            case Replay(target, nth, after_us):
                _find(links, target, fault).replay(nth, after_us)
            case Duplicate():
                pass


def _span(
    env: simpy.Environment,
    at_us: float,
    for_us: float,
    begin: Callable[..., None],
    end: Callable[..., None],
    *given: float,
) -> None:
    simpy.Timeout(env, at_us).callbacks.append(lambda _: begin(*given))
    simpy.Timeout(env, at_us + for_us).callbacks.append(lambda _: end(*given))


def _find(targets: Mapping[str, TargetT], name: str, fault: Fault) -> TargetT:
    if name not in targets:
        choice = f"it must be one of {', '.join(targets)}{nearest(name, targets)}"
        if not targets:  # A run always has sources and workers.
            choice = "this run has no links, because everything is in the place of the log"
        msg = f"target of {fault.kind} is {name!r}; {choice}"
        raise ValueError(msg)
    return targets[name]

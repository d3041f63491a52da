"""Faults: what goes wrong in a run, as a printable schedule that a test can shrink.

A schedule is a tuple of small NamedTuples: dropping elements or lowering numbers gives a simpler
schedule. ``repr`` of one is Python that builds it again; :func:`to_json` and :func:`from_json` make
it plain data. Times are microseconds since the start of the run. ``kind`` keeps faults of
different kinds with equal numbers from being equal, as bare tuples would be.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import simpy

from sim.cluster import Station
from sim.distributions import require
from sim.network import Link

T = TypeVar("T")


class Pause(NamedTuple):
    """A worker stands still from ``at_us`` for ``for_us``; nothing is lost."""

    worker: str
    at_us: int
    for_us: int
    kind: Literal["pause"] = "pause"


class Fail(NamedTuple):
    """A worker loses what it holds at ``at_us``, and what it is sent for ``for_us``."""

    worker: str
    at_us: int
    for_us: int
    kind: Literal["fail"] = "fail"


class Slow(NamedTuple):
    """A worker works ``factor`` times slower from ``at_us`` for ``for_us``."""

    worker: str
    at_us: int
    for_us: int
    factor: float
    kind: Literal["slow"] = "slow"


class Clog(NamedTuple):
    """Nothing goes out of a link from ``at_us`` for ``for_us``; nothing is lost."""

    link: str
    at_us: int
    for_us: int
    kind: Literal["clog"] = "clog"


class Lose(NamedTuple):
    """Message number ``nth`` of a link, counted from 0, does not arrive."""

    link: str
    nth: int
    kind: Literal["lose"] = "lose"


class Replay(NamedTuple):
    """Message number ``nth`` of a link arrives once more, ``after_us`` later."""

    link: str
    nth: int
    after_us: int
    kind: Literal["replay"] = "replay"


class Duplicate(NamedTuple):
    """A source sends its tuple number ``nth`` once more, ``after_us`` later."""

    source: str
    nth: int
    after_us: int
    kind: Literal["duplicate"] = "duplicate"


Fault: TypeAlias = Pause | Fail | Slow | Clog | Lose | Replay | Duplicate
Schedule: TypeAlias = tuple[Fault, ...]

_KINDS: Mapping[str, Callable[..., Fault]] = {
    "pause": Pause,
    "fail": Fail,
    "slow": Slow,
    "clog": Clog,
    "lose": Lose,
    "replay": Replay,
    "duplicate": Duplicate,
}


def check_fault(fault: Fault) -> None:
    """Raise ``ValueError`` naming the value that makes no sense."""
    for name, value in fault._asdict().items():
        label = f"{fault.kind}.{name}"
        if name in ("at_us", "nth", "after_us"):
            require(value >= 0, label, value, "at least 0")
        elif name in ("for_us", "factor"):
            require(value > 0, label, value, "above 0")


def to_json(faults: Iterable[Fault]) -> list[dict[str, Any]]:
    """Plain data, one object a fault, its kind first."""
    return [{"kind": fault.kind, **fault._asdict()} for fault in faults]


def from_json(rows: Iterable[Mapping[str, Any]]) -> Schedule:
    """Read what :func:`to_json` wrote; ``ValueError`` for anything that is not a fault."""
    return tuple(_parse(row) for row in rows)


def _parse(row: Mapping[str, Any]) -> Fault:
    try:
        fault = _KINDS[row["kind"]](**row)
        check_fault(fault)
    except (KeyError, TypeError) as error:
        msg = f"not a fault: {dict(row)}"
        raise ValueError(msg) from error
    return fault


def inject(
    env: simpy.Environment,
    faults: Iterable[Fault],
    workers: Mapping[str, Station[T]],
    links: Mapping[str, Link[T]],
) -> None:
    """Set up faults of workers and links before the run starts.

    Duplicates are up to the source. A fault comes before anything else of the same instant.
    Raises ``ValueError`` for an unknown target or a value that makes no sense.
    """
    for fault in faults:
        check_fault(fault)
        match fault:
            case Pause() | Fail() | Slow():
                _inject_into_worker(env, fault, _find(workers, fault.worker, "worker"))
            case Clog(_, at_us, for_us):
                link = _find(links, fault.link, "link")
                _span(env, at_us, for_us, link.hold, link.release)
            case Lose(_, nth):
                _find(links, fault.link, "link").lose(nth)
            case Replay(_, nth, after_us):
                _find(links, fault.link, "link").replay(nth, after_us)
            case Duplicate():
                pass


def _inject_into_worker(
    env: simpy.Environment, fault: Pause | Fail | Slow, worker: Station[T]
) -> None:
    match fault:
        case Pause():
            begin, end = worker.pause, worker.resume
        case Fail():
            begin, end = worker.fail, worker.recover
        case Slow():
            factor = fault.factor
            begin, end = lambda: worker.slow(factor), lambda: worker.unslow(factor)
    _span(env, fault.at_us, fault.for_us, begin, end)


def _span(
    env: simpy.Environment,
    at_us: float,
    for_us: float,
    begin: Callable[[], None],
    end: Callable[[], None],
) -> None:
    simpy.Timeout(env, at_us).callbacks.append(lambda _: begin())
    simpy.Timeout(env, at_us + for_us).callbacks.append(lambda _: end())


_Target = TypeVar("_Target")


def _find(targets: Mapping[str, _Target], name: str, kind: str) -> _Target:
    if name not in targets:
        known = ", ".join(sorted(targets)) or "none"
        msg = f"there is no {kind} {name!r} to fault; there are: {known}"
        raise ValueError(msg)
    return targets[name]

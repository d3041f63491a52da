"""Traces, lists of typed steps that a producer observed, and systems, which produce them."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from model.vocabulary.settings import PlainData
from model.vocabulary.workload import Workload


class Step(Protocol):
    """One raw observation: a NamedTuple of plain values; its class name is its kind."""

    def _asdict(self) -> dict[str, PlainData]: ...


StepT = TypeVar("StepT", bound=Step)

_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""Encoder of a value as JSON. It is shared: ``json.dumps`` makes an encoder for every value."""


def fields_of(word: type[Step]) -> tuple[str, ...]:
    """Return the names of the fields of a kind of step."""
    fields: tuple[str, ...] = vars(word)["_fields"]
    return fields


def kind_of(word: type) -> str:
    """Return the name of a kind of step in files: the class name in lower case."""
    return word.__name__.lower()


def _line(step: Step) -> str:
    return _encoded({"kind": kind_of(type(step)), **step._asdict()})


class Trace:
    """Steps that a producer recorded; a step recorded twice is there twice.

    Order has no meaning between tasks. A trace is kept in canonical order (kind, then fields in
    their order), so that two producers with the same observations have equal traces.
    """

    __slots__ = ("_by_kind", "producer")

    def __init__(self, producer: str, steps: Iterable[Step]) -> None:
        self.producer = producer
        by_type: dict[type, list[Any]] = defaultdict(list)
        for step in steps:
            by_type[type(step)].append(step)
        by_kind: dict[str, list[Any]] = defaultdict(list)
        for word, found in by_type.items():
            by_kind[kind_of(word)] += found
        self._by_kind = {kind: tuple(sorted(by_kind[kind])) for kind in sorted(by_kind)}

    def of(self, word: type[StepT]) -> tuple[StepT, ...]:
        """Return all steps of one kind, in canonical order."""
        return cast("tuple[StepT, ...]", self._by_kind.get(kind_of(word), ()))

    def steps(self) -> Iterable[Step]:
        """Yield all steps in canonical order."""
        for steps in self._by_kind.values():
            yield from steps

    def __len__(self) -> int:
        return sum(len(steps) for steps in self._by_kind.values())

    def digest(self) -> str:
        """Return the SHA-256 of the NDJSON lines in canonical order, in hexadecimal."""
        sha = hashlib.sha256()
        for step in self.steps():
            sha.update(_line(step).encode("utf-8"))
            sha.update(b"\n")
        return sha.hexdigest()

    def write(self, path: Path) -> None:
        """Write NDJSON: a header line, then one line per step."""
        with path.open("w", encoding="utf-8") as out:
            out.write(json.dumps({"trace": 1, "producer": self.producer}) + "\n")
            out.writelines(_line(step) + "\n" for step in self.steps())

    @classmethod
    def read(cls, path: Path, words: Iterable[type]) -> "Trace":
        """Read NDJSON; ``words`` are the step classes of the room.

        Raise ``ValueError`` with the line number for anything that is not a step.
        """
        with path.open(encoding="utf-8") as lines:
            try:
                producer = str(json.loads(next(lines))["producer"])
            except (StopIteration, KeyError, TypeError, ValueError) as error:
                msg = f"{path.name}: the first line is not a trace header"
                raise ValueError(msg) from error
            by_kind = {kind_of(word): word for word in words}
            return cls(producer, [_parse(line, n, by_kind) for n, line in enumerate(lines, 2)])


def _parse(line: str, number: int, words: Mapping[str, type[Step]]) -> Step:
    try:
        row = json.loads(line)
        word = words[row.pop("kind")]
        step = word(**{name: _as_recorded(value) for name, value in row.items()})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"line {number} is not a step of this room: {line.strip()[:120]}"
        raise ValueError(msg) from error
    return step


def _as_recorded(value: PlainData) -> PlainData:
    """Return a tuple for a list: JSON has no tuples, steps have no lists."""
    return tuple(value) if isinstance(value, list) else value


class System(Protocol):
    """A callable that runs a workload and returns its observations.

    Model, simulation and Spark pipeline each provide a System for every room. Users plug in their
    own with ``--system package.module:factory``; the factory takes no arguments and returns a
    System. A System records raw observations, never interpretations.
    """

    def __call__(self, workload: Workload, /) -> Trace:
        """Run the workload to its end and return the trace."""
        ...

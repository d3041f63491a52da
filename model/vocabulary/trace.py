"""Traces, lists of typed steps that a producer observed, and systems, which produce them."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

from model.vocabulary.settings import PlainData, is_int
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


class FieldType(NamedTuple):
    """The declared type of a field of a step."""

    kind: type
    """Type of the value, or of each value of a tuple: int, float, str or bool."""
    is_tuple: bool

    @property
    def expected(self) -> str:
        """Description of an allowed value, as the end of a sentence."""
        words = {int: "integer", float: "finite number", str: "text", bool: "truth value"}
        if self.is_tuple:
            return f"a list of {words[self.kind]}s"
        return f"{'an' if self.kind is int else 'a'} {words[self.kind]}"

    @property
    def blank(self) -> PlainData:
        """The value of a field that is not recorded; a truth value is then true."""
        return () if self.is_tuple else self.kind(self.kind is bool)

    def allows(self, value: object) -> bool:
        """Return whether a step may have this value; integers have 64 bits."""
        if self.is_tuple:
            return isinstance(value, tuple) and all(map(self._is_allowed, value))
        return self._is_allowed(value)

    def _is_allowed(self, value: object) -> bool:
        if self.kind is int or (self.kind is float and is_int(value)):
            return is_int(value) and -(1 << 63) <= value < 1 << 63
        if isinstance(value, float):
            return self.kind is float and isfinite(value)
        return isinstance(value, self.kind)


def field_types(word: type[Step]) -> Mapping[str, FieldType]:
    """Return the declared types of the fields of a kind of step, by name, in their order."""
    found: Mapping[str, FieldType] = _field_types(cast("Any", word))
    return found


@cache
def _field_types(word: Any) -> Mapping[str, FieldType]:
    hints = get_type_hints(word)
    return {
        name: FieldType(get_args(hint)[0], True)
        if get_origin(hint) is tuple
        else FieldType(hint, False)
        for name, hint in ((name, hints[name]) for name in fields_of(word))
    }


def describe_bad_step(step: Step, words: Iterable[type[Step]]) -> str:
    """Return why a step is none of a room whose step classes are ``words``, or an empty string."""
    word = type(step)
    if word not in words:
        known = ", ".join(map(kind_of, words))
        return f"a step is {step!r}; it must be one of the room's own: {known}"
    for (name, declared), value in zip(field_types(word).items(), cast("Any", step), strict=True):
        if not declared.allows(value):
            return f"{name} of a {kind_of(word)} step is {value!r}; it must be {declared.expected}"
    return ""


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

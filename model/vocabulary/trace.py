"""Traces, lists of typed steps that a producer observed, and systems, which produce them."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from math import isfinite
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

from model.vocabulary.settings import PlainData, is_int, is_text, look_up, nearest, require
from model.vocabulary.workload import NOT_FINITE, Workload


class Step(Protocol):
    """One raw observation: a NamedTuple of plain values; its class name is its kind."""

    def _asdict(self) -> dict[str, PlainData]: ...


StepT = TypeVar("StepT", bound=Step)

VERSION = 1
"""Version of the lines of a trace."""
_SHOWN = 4
"""Fields of a wrong step that a sentence on it shows, so that a reader can find it."""
_DIGITS = 4000
_MANY_DIGITS = re.compile(rf"\d{{{_DIGITS}}}", re.ASCII)

_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""Encoder of a value as JSON. It is shared: ``json.dumps`` makes an encoder for every value."""


def fields_of(word: type[Step]) -> tuple[str, ...]:
    """Return the names of the fields of a kind of step."""
    fields: tuple[str, ...] = vars(word)["_fields"]
    return fields


def kind_of(word: type) -> str:
    """Return the name of a kind of step in files: the class name in lower case."""
    return word.__name__.lower()


def _name_of(word: type) -> str:
    kind = kind_of(word)
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} step"


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
        return () if self.is_tuple else self.kind is bool or self.kind()

    def allows(self, value: object) -> bool:
        """Return whether a step may have this value; integers have 64 bits."""
        if self.is_tuple:
            return isinstance(value, tuple) and all(map(self._is_allowed, value))
        return self._is_allowed(value)

    def is_no_number(self, value: object) -> bool:
        """Return whether a value stands where a number belongs, but is NaN, infinite or null."""
        if self.is_tuple:
            if not isinstance(value, tuple):
                return False
            bad = [each for each in value if not self._is_allowed(each)]
            return bool(bad) and all(map(self._replace(is_tuple=False).is_no_number, bad))
        is_float = isinstance(value, float) and not isfinite(value)
        return self.kind is float and (value is None or is_float)

    def _is_allowed(self, value: object) -> bool:
        if self.kind is int or (self.kind is float and is_int(value)):
            return is_int(value) and -(1 << 63) <= value < 1 << 63
        if isinstance(value, float):
            return self.kind is float and isfinite(value)
        return is_text(value) if self.kind is str else isinstance(value, self.kind)


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


def describe_bad_step(
    step: Step, words: Iterable[type[Step]], *, passes_no_numbers: bool = False
) -> str:
    """Return why a step is none of a room whose step classes are ``words``, or an empty string.

    With ``passes_no_numbers`` a step may have NaN, infinity or null as a number.
    """
    word = type(step)
    if word not in words:
        known = ", ".join(map(kind_of, words))
        return f"a step is {step!r}; it must be one of the room's own: {known}"
    for (name, declared), value in zip(field_types(word).items(), cast("Any", step), strict=True):
        if declared.allows(value):
            continue
        if declared.is_no_number(value):
            if not passes_no_numbers:
                others = {key: each for key, each in step._asdict().items() if key != name}
                of = ", ".join(f"{key} {each!r}" for key, each in list(others.items())[:_SHOWN])
                written = json.dumps(value)
                return (
                    f"{name} of {_name_of(word)} ({of}) is {written};"
                    f" it must be {declared.expected}"
                )
        else:
            return f"{name} of {_name_of(word)} is {value!r}; it must be {declared.expected}"
    return ""


def _line(step: Step) -> str:
    return _encoded({"kind": kind_of(type(step)), **step._asdict()})


def _sorted(steps: list[Any]) -> list[Any]:
    """Return steps in canonical order; wrong ones may have values that cannot be compared."""
    try:
        return sorted(steps)
    except TypeError:
        return sorted(steps, key=repr)


class Trace:
    """Steps that a producer recorded; a step recorded twice is there twice.

    Order has no meaning between tasks. A trace is kept in canonical order (kind, then fields in
    their order), so that two producers with the same observations have equal traces.

    Args:
        producer: name of the system that observed the steps.
        steps: NamedTuples of the room's vocabulary (docs/your-system.md), in any order.

    Examples:
        >>> len(Trace("mine", run.trace.steps())) == len(run.trace)
        True
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
        self._by_kind = {kind: tuple(_sorted(by_kind[kind])) for kind in sorted(by_kind)}

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

    def lines(self) -> Iterator[str]:
        """Yield the trace as lines of JSON: a header, a line for each step, and an end."""
        yield json.dumps({"trace": VERSION, "producer": self.producer}) + "\n"
        for step in self.steps():
            yield _line(step) + "\n"
        yield json.dumps({"end": len(self)}) + "\n"


class TraceReader:
    """Reads traces from lines of JSON, one line after the other, and checks every field.

    ``words`` are the step classes of the room. ``required`` names the fields that a step must have,
    by step class; other fields may be missing and are then blank. A step class without an entry
    must have all fields. A number may be NaN, infinite or null: it is the judge who says that such
    an answer is wrong.
    """

    def __init__(
        self,
        words: Iterable[type[Step]],
        required: Mapping[type, Collection[str]] = MappingProxyType({}),
    ) -> None:
        self._words = {kind_of(word): word for word in words}
        self._required = required
        self._producer: str | None = None
        self._steps: list[Step] = []

    @property
    def is_between(self) -> bool:
        """True before the header of a trace and after its end."""
        return self._producer is None

    def feed(self, line: str) -> Trace | None:
        """Take the next line, and return the trace if the line ends it.

        Raise ``ValueError`` with one sentence for a line that does not belong there.
        """
        row = parse_object(line, has_constants=True)
        if self._producer is None:
            self._producer = _parse_header(row)
        elif "end" in row:
            steps, self._steps = self._steps, []
            producer, self._producer = self._producer, None
            _require_fields("the end", row, ("end",))
            good = is_int(row["end"]) and row["end"] == len(steps)
            require(good, "end", row["end"], f"{len(steps)}, the number of steps")
            return Trace(producer, steps)
        else:
            self._steps.append(self._parse_step(row))
        return None

    def _parse_step(self, row: dict[str, PlainData]) -> Step:
        if "kind" not in row:
            msg = "the field 'kind' is missing"
            raise ValueError(msg)
        word = look_up("kind", str(row.pop("kind")), self._words)
        declared, named = field_types(word), _name_of(word)
        _require_fields(named, row, declared)
        for name in self._required.get(word, declared):
            if name not in row:
                msg = f"the field {name!r} of {named} is missing"
                raise ValueError(msg)
        given = {name: each.blank for name, each in declared.items()}
        needed = self._required.get(word, declared)
        for name, value in row.items():
            recorded = _as_recorded(value, declared[name])
            if name in needed or not declared[name].is_no_number(recorded):
                given[name] = recorded
        step: Step = cast("Any", word)(**given)
        bad = describe_bad_step(step, [word], passes_no_numbers=True)
        if bad:
            raise ValueError(bad)
        return step


def parse_object(line: str, *, has_constants: bool = False) -> dict[str, PlainData]:
    """Return the JSON object of a line; raise ``ValueError`` with one sentence for other text.

    ``has_constants`` says that NaN, Infinity and -Infinity are numbers.
    """
    try:
        row = parse_json(line, None if has_constants else _refuse_constant)
        if "\\u" in line:
            json.dumps(row, ensure_ascii=False).encode()
    except _NotJsonError:
        raise
    except UnicodeEncodeError as error:
        msg = f"a text has {error.object[error.start]!r}, a surrogate without the other"
        raise ValueError(msg) from error
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        text = line.strip()
        msg = f"{text[:60]!r} is no JSON object" if text else "a line is empty"
        raise ValueError(msg)
    return row


def parse_json(text: str, parse_constant: Callable[[str], PlainData] | None = None) -> PlainData:
    """Return plain data; raise ``ValueError`` for text that is no JSON or is nested too deep."""
    # Python refuses to read longer integers; as none has more than 64 bits, their end is no matter.
    parse_int = (lambda digits: int(digits[:_DIGITS])) if _MANY_DIGITS.search(text) else None
    try:
        data: PlainData = json.loads(text, parse_int=parse_int, parse_constant=parse_constant)
    except RecursionError as error:
        msg = "it is nested too deep"
        raise _NotJsonError(msg) from error
    return data


def refuse_long_integers(data: PlainData) -> None:
    """Raise ``ValueError`` with the name of a field whose integer has more than 64 bits."""
    left: list[tuple[str, PlainData]] = [("", data)]
    while left:
        name, value = left.pop()
        if isinstance(value, dict):
            left += ((f"{name}.{key}".lstrip("."), each) for key, each in value.items())
        elif isinstance(value, list):
            left += ((f"{name}[{place}]", each) for place, each in enumerate(value))
        elif is_int(value):
            require(-(1 << 63) <= value < 1 << 63, name, value, "an integer of 64 bits")


class _NotJsonError(ValueError):
    """Text that is refused for a reason of its own: a number that JSON has not, or its depth."""


def _refuse_constant(name: str) -> PlainData:
    msg = f"{name} is no JSON number"
    raise _NotJsonError(msg)


def _require_fields(what: str, row: Iterable[str], known: Iterable[str]) -> None:
    for name in row:
        if name not in known:
            hint = nearest(name, known)
            msg = f"{what} has no field {name!r}, only {', '.join(known)}{hint}"
            raise ValueError(msg)


def _parse_header(row: dict[str, PlainData]) -> str:
    if "trace" not in row:
        msg = "the field 'trace' is missing; the first line of a trace is its header"
        raise ValueError(msg)
    _require_fields("a header", row, ("trace", "producer"))
    good = is_int(row["trace"]) and row["trace"] == VERSION
    require(good, "trace", row["trace"], f"{VERSION}, the version of the format")
    producer = row.get("producer", "someone")
    require(isinstance(producer, str), "producer", producer, "a text")
    return str(producer)


def _as_recorded(value: PlainData, declared: FieldType) -> PlainData:
    """Return a value as steps have it: a tuple for a list, and 2 for 2.0 where integers belong.

    The texts of :data:`NOT_FINITE` are numbers.
    """
    if declared.is_tuple and isinstance(value, list):
        one = declared._replace(is_tuple=False)
        return tuple([_as_recorded(each, one) for each in value])
    if declared.kind is float and is_int(value):
        return float(str(value))  # of an integer that is too large, infinity
    if declared.kind is float and value in NOT_FINITE:
        return float(value)
    if declared.kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


class System(Protocol):
    """A callable that runs a workload and returns its observations.

    Model, simulation and Spark pipeline each provide a System for every room. Users plug in their
    own with ``--system package.module:factory``; the factory takes no arguments and returns a
    System. A System records raw observations, never interpretations.
    """

    def __call__(self, workload: Workload, /) -> Trace:
        """Run the workload to its end and return the trace."""

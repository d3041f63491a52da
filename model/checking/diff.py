"""The difference of two traces, word by word.

Rules of this file:

* A step is identified by some of its fields; two steps of one identity are compared in the others.
  Several steps of one identity are paired in canonical order.
* Steps that differ only in ignored fields are one; a step recorded twice counts twice.
* Differences are ordered by kind, then by identity: the first difference of a kind is the
  smallest one.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import isclose
from types import MappingProxyType
from typing import Any, NamedTuple

from model.vocabulary.trace import Step, Trace, fields_of, kind_of

SHOWN = 10
"""Most sentences on a kind of step."""


@dataclass(frozen=True, slots=True)
class KindDifference:
    """The difference in one kind of step. ``compared`` counts identities found in both."""

    kind: str
    compared: int
    missing: int
    extra: int
    different: int
    sentences: tuple[str, ...]
    """First differences, smallest identity first."""

    @property
    def mismatches(self) -> int:
        """Number of steps that are missing, not expected, or not as expected."""
        return self.missing + self.extra + self.different


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two traces: one entry a kind, in the order the caller named them."""

    kinds: tuple[KindDifference, ...]

    @property
    def compared(self) -> int:
        """Number of steps found in both traces."""
        return sum(kind.compared for kind in self.kinds)

    @property
    def mismatches(self) -> int:
        """Number of steps that are missing, not expected, or not as expected."""
        return sum(kind.mismatches for kind in self.kinds)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The first differences of every kind."""
        return tuple(sentence for kind in self.kinds for sentence in kind.sentences)


def compare(
    expected: Trace,
    observed: Trace,
    words: Sequence[type],
    *,
    identity: Mapping[str, tuple[str, ...]],
    ignore: Collection[str] = (),
    rel_tol: float | None = None,
    scales: Mapping[str, float] = MappingProxyType({}),
) -> Difference:
    """Compare the steps of the given kinds.

    ``identity`` names the identifying fields of a kind; a kind without an entry is identified by
    all its fields. Fields in ``ignore`` are not compared. Two floats are equal if their distance is
    at most ``rel_tol`` times the larger one; without ``rel_tol`` they must be the same. Floats in a
    field of ``scales`` may also differ by ``rel_tol`` times the scale. At most :data:`SHOWN`
    sentences a kind.
    """
    tolerance = None if rel_tol is None else _Tolerance(rel_tol, scales)
    return Difference(
        tuple(
            _compare_kind(expected, observed, word, _Fields.of(word, identity, ignore), tolerance)
            for word in words
        )
    )


class _Tolerance(NamedTuple):
    """The distance that two equal floats may have."""

    relative: float
    scales: Mapping[str, float]

    def allows(self, name: str, wanted: object, found: object) -> bool:
        """Return whether two values of a field count as equal."""
        if not (isinstance(wanted, float) and isinstance(found, float)):
            return False
        absolute = self.relative * self.scales.get(name, 0.0)
        return isclose(wanted, found, rel_tol=self.relative, abs_tol=absolute)


class _Fields(NamedTuple):
    """Positions of fields within a step."""

    names: tuple[str, ...]
    identity: tuple[int, ...]
    others: tuple[int, ...]

    @classmethod
    def of(
        cls, word: type[Step], identity: Mapping[str, tuple[str, ...]], ignore: Collection[str]
    ) -> "_Fields":
        names = fields_of(word)
        identifying = identity.get(kind_of(word), names)
        unknown = [name for name in identifying if name not in names]
        if unknown:
            msg = f"{kind_of(word)} has no field {unknown[0]!r}; it has {', '.join(names)}"
            raise ValueError(msg)
        kept = [n for n, name in enumerate(names) if name not in ignore]
        return cls(
            names,
            tuple(n for n in kept if names[n] in identifying),
            tuple(n for n in kept if names[n] not in identifying),
        )


_Groups = dict[tuple[object, ...], list[tuple[object, ...]]]


def _compare_kind(
    expected: Trace,
    observed: Trace,
    word: type[Step],
    fields: _Fields,
    tolerance: _Tolerance | None,
) -> KindDifference:
    kind = kind_of(word)
    wanted: Sequence[Any] = expected.of(word)
    found: Sequence[Any] = observed.of(word)
    if wanted == found:
        return KindDifference(kind, len(wanted), 0, 0, 0, ())
    wanted_by, found_by = _group(wanted, fields), _group(found, fields)
    both = missing = extra = different = 0
    sentences: list[str] = []
    for key in sorted(wanted_by.keys() | found_by.keys()):
        for left, right in zip_longest(wanted_by.get(key, ()), found_by.get(key, ())):
            both += left is not None and right is not None
            missing += right is None
            extra += left is None
            unequal = (
                [] if left is None or right is None else _unequal(fields, left, right, tolerance)
            )
            different += bool(unequal)
            if len(sentences) < SHOWN and (unequal or left is None or right is None):
                name = f"{kind} {_listed(fields.names, fields.identity, key)}"
                sentences.append(_sentence(name, fields, left, right, unequal))
    return KindDifference(kind, both, missing, extra, different, tuple(sentences))


def _group(steps: Sequence[tuple[object, ...]], fields: _Fields) -> _Groups:
    """Return the other fields of the steps, in canonical order, by identity."""
    groups: _Groups = {}
    if len(fields.identity) + len(fields.others) < len(fields.names):
        steps = _one_of_each(steps, fields)
    for step in steps:
        key = tuple([step[n] for n in fields.identity])
        groups.setdefault(key, []).append(tuple([step[n] for n in fields.others]))
    for found in groups.values():
        if len(found) > 1:
            found.sort()
    return groups


def _one_of_each(steps: Sequence[tuple[object, ...]], fields: _Fields) -> list[tuple[object, ...]]:
    """Return, of steps that differ only in ignored fields, those that were recorded most often."""
    kept: dict[tuple[object, ...], tuple[int, tuple[object, ...]]] = {}
    for step, times in Counter(steps).items():
        compared = tuple([step[n] for n in (*fields.identity, *fields.others)])
        if compared not in kept or kept[compared][0] < times:
            kept[compared] = times, step
    return [step for times, step in kept.values() for _ in range(times)]


def _unequal(
    fields: _Fields, left: Sequence[object], right: Sequence[object], tolerance: _Tolerance | None
) -> list[int]:
    if left == right:
        return []
    names = [fields.names[n] for n in fields.others]
    return [
        n
        for n, (name, wanted, found) in enumerate(zip(names, left, right, strict=True))
        if wanted != found and not (tolerance and tolerance.allows(name, wanted, found))
    ]


def _sentence(
    name: str,
    fields: _Fields,
    left: Sequence[object] | None,
    right: Sequence[object] | None,
    unequal: Sequence[int],
) -> str:
    if left is None or right is None:
        what, values = ("is missing", left) if right is None else ("was not expected", right)
        rest = _listed(fields.names, fields.others, values or ())
        return f"{name} {what}" + (f" ({rest})." if rest else ".")
    parts: Iterator[str] = (
        f"{fields.names[fields.others[n]]} is {right[n]!r}, expected {left[n]!r}" for n in unequal
    )
    return f"{name}: {'; '.join(parts)}."


def _listed(names: Sequence[str], positions: Sequence[int], values: Sequence[object]) -> str:
    pairs = zip(positions, values, strict=True)
    return ", ".join(f"{names[position]} {value!r}" for position, value in pairs)

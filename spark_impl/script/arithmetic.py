"""Exact sums, the aggregates made of them, and operations (docs/script.md, section 5).

A float64 is an integer times a power of two, so sums are sums of integers: in 64 bits if they fit,
as they do for measurements with few digits, and in Python's unbounded integers otherwise.

Rules of this file:

* Integers are an array of dtype int64, or of objects; arithmetic is the same for both. A caller
  that adds or multiplies calls :func:`widen` first.
* NaN stands for a value that is not finite; it is no result.
* An operation reads all tuples of one stamp before it computes. So there is at most one result per
  stamp, in any order of arrival.
* Operations receive tuples in order of time: none is older than an earlier one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from model.vocabulary.script.graph import Node
from spark_impl.runtime.arrays import Column, Floats, Ints

Integers: TypeAlias = Column
"""Arrays of dtype int64 or object."""

_ROOM = 1 << 62
_SURE = 1 << 53
"""Integers up to this one are float64 numbers."""
_DIGITS = 53


class Scaled(NamedTuple):
    """Numbers ``integers * 2**unit``."""

    integers: Integers
    unit: int


class Folded(NamedTuple):
    """Aggregates with one element each: count, sum, and sum of squares."""

    n: Ints
    total: Scaled
    squares: Scaled
    """Empty if no window needs it."""
    least: Floats
    greatest: Floats


def to_scaled(values: Floats) -> Scaled:
    """Return finite numbers as integers, with the largest unit that all are multiples of, or 1."""
    whole = np.abs(values) < _SURE
    if whole.all() and (values == np.rint(values)).all():
        return Scaled(values.astype(np.int64), 0)
    fraction, exponent = np.frexp(values)
    digits = np.ldexp(fraction, _DIGITS).astype(np.int64)
    # The lowest bit that is set is a power of two; that of 0 is 0, and shifts nothing.
    zeros = np.maximum(np.frexp((digits & -digits).astype(np.float64))[1] - 1, 0)
    digits, place = digits >> zeros, exponent.astype(np.int64) - _DIGITS + zeros
    used = digits != 0
    unit = int(place[used].min())
    shift = np.where(used, place - unit, 0)
    if int((exponent[used] - unit).max()) < 62:
        return Scaled(digits << shift, unit)
    return Scaled(digits.astype(object) << shift.astype(object), unit)


def rescale(numbers: Scaled, unit: int) -> Integers:
    """Return the integers for a smaller unit."""
    shift = numbers.unit - unit
    return widen(numbers.integers, 1 << shift) << shift if shift else numbers.integers


def concat(first: Scaled, second: Scaled) -> Scaled:
    """Concatenate two arrays of numbers."""
    if not len(first.integers):
        return second
    unit = min(first.unit, second.unit)
    return Scaled(np.concatenate((rescale(first, unit), rescale(second, unit))), unit)


def widen(integers: Integers, factor: int) -> Integers:
    """Return the same integers in a type with room for products with ``factor``."""
    if integers.dtype != object and len(integers):
        largest = max(int(integers.max()), -int(integers.min()))
        if largest * factor >= _ROOM:
            return integers.astype(object)
    return integers


def narrow(integers: Integers) -> Integers:
    """Return the same integers, in 64 bits if they fit."""
    if integers.dtype == object and all(-_ROOM < each < _ROOM for each in integers):
        return integers.astype(np.int64)
    return integers


def fold(values: Floats, starts: Ints, squares: bool) -> Folded:
    """Aggregate runs of finite values; run i begins at ``starts[i]``, no run is empty."""
    numbers, unit = to_scaled(values)
    squared = numbers[:0]
    if squares:
        squared = _sums(widen(numbers, int(np.abs(numbers).max())) ** 2, starts)
    return Folded(
        np.diff(starts, append=len(values)),
        Scaled(_sums(numbers, starts), unit),
        Scaled(squared, 2 * unit),
        np.minimum.reduceat(values, starts),
        np.maximum.reduceat(values, starts),
    )


def _sums(integers: Integers, starts: Ints) -> Integers:
    return np.add.reduceat(widen(integers, len(integers)), starts)


def cumulate(numbers: Scaled) -> Scaled:
    """Return the sums of all numbers before each position, and of all numbers."""
    integers = widen(numbers.integers, len(numbers.integers))
    return Scaled(np.concatenate(([0], np.cumsum(integers))).astype(integers.dtype), numbers.unit)


def aggregate(op: str, folded: Folded) -> Floats:
    """Return the aggregate ``op``, rounded once; NaN if it is not finite."""
    if op in ("max", "min"):
        return folded.greatest if op == "max" else folded.least
    if op == "count":
        return folded.n.astype(np.float64)
    total, n = folded.total, folded.n
    if op == "sum":
        return ratio(total.integers, np.ones_like(n), total.unit)
    if op == "avg":
        return ratio(total.integers, n, total.unit)
    if op != "stddev":
        msg = f"there is no aggregate {op!r}"
        raise ValueError(msg)
    longest = int(n.max(initial=1))
    square = widen(total.integers, int(np.abs(total.integers).max(initial=1))) ** 2
    spread = widen(folded.squares.integers, longest) * n - square
    return np.sqrt(ratio(spread, widen(n, longest) * n, folded.squares.unit))


def ratio(numerators: Integers, denominators: Integers, unit: int) -> Floats:
    """Return quotients times ``2**unit``, rounded once; NaN beyond the range of float64."""
    if _fits(numerators) and _fits(denominators) and abs(unit) < 900:
        # Far from the ends of the range, multiplying by the power of two is exact.
        quotient = numerators.astype(np.float64) / denominators.astype(np.float64)
        return np.asarray(np.ldexp(quotient, unit), np.float64)
    up, down = 1 << max(unit, 0), 1 << max(-unit, 0)
    pairs = zip(numerators.tolist(), denominators.tolist(), strict=True)
    return np.array([_quotient(one * up, other * down) for one, other in pairs], np.float64)


def _fits(integers: Integers) -> bool:
    return not len(integers) or max(int(integers.max()), -int(integers.min())) <= _SURE


def _quotient(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator  # division of integers rounds once, for any size
    except OverflowError:
        return float("nan")


_ARITHMETIC: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}


class Tuples(NamedTuple):
    """Tuples of a stream."""

    ts: Ints
    """Stamps in microseconds."""
    values: Floats


NO_TUPLES = Tuples(np.empty(0, np.int64), np.empty(0))


def operate(
    node: Node,
    constants: Mapping[int, float],
    latest: Mapping[int, float],
    fresh: Mapping[int, Tuples],
) -> tuple[Tuples, dict[int, float]]:
    """Return the results of an operation on new tuples, and the latest values afterwards.

    ``constants`` are the inputs that are numbers. ``latest`` holds the values that inputs had
    before, if they had one. ``fresh`` holds the new tuples of every other input. A value that is
    not finite is NaN.
    """
    stamps = np.unique(np.concatenate([each.ts for each in fresh.values()]))
    after = dict(latest)
    defined = np.ones(len(stamps), np.bool_)
    values: dict[int, Floats] = {
        number: np.full(len(stamps), constant) for number, constant in constants.items()
    }
    for number, (ts, given) in fresh.items():
        order = np.lexsort(
            (given, ts)
        )  # among equal stamps, the greatest value counts as the latest
        place = np.searchsorted(ts[order], stamps, side="right")
        # Element 0 is the latest earlier value.
        every = np.concatenate(([latest.get(number, np.nan)], given[order]))
        values[number] = every[place]
        defined &= (place > 0) | (number in latest)
        if len(given):
            after[number] = float(every[-1])
    inputs = [values[number][defined] for number in node.inputs]
    return Tuples(stamps[defined], _applied(node.op, inputs)), after


def _applied(op: str, inputs: Sequence[Floats]) -> Floats:
    if op in _ARITHMETIC:
        with np.errstate(all="ignore"):
            found = _ARITHMETIC[op](*inputs)
        return np.where(np.isfinite(found), found, np.nan) + 0.0  # -0 counts as 0
    if not len(inputs[0]):
        return inputs[0]
    rows = np.stack(inputs, axis=1)
    starts = np.arange(0, rows.size, len(inputs))
    return aggregate(op, fold(rows.ravel(), starts, squares=False))

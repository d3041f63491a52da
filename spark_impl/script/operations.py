"""Operations on the latest values of streams (docs/script.md, section 5).

Rules of this file:

* All tuples of one stamp are taken in before an operation looks, so there is at most one result a
  stamp, whatever comes first.
* Tuples come when they are known: none is older than what was taken before.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spark_impl.runtime.arrays import Floats, Ints
from spark_impl.script.exact import finished, fold
from spark_impl.script.graph import Node

_ARITHMETIC: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}


class Tuples(NamedTuple):
    """Some tuples of a stream."""

    ts: Ints
    """Microseconds."""
    values: Floats


NO_TUPLES = Tuples(np.empty(0, np.int64), np.empty(0))


def operate(
    node: Node,
    constants: Mapping[int, float],
    latest: Mapping[int, float],
    fresh: Mapping[int, Tuples],
) -> tuple[Tuples, dict[int, float]]:
    """What an operation gives on tuples that were not known before, and the latest values after.

    ``constants`` are the inputs that are numbers, ``latest`` the values that inputs had before,
    where they had one, ``fresh`` the new tuples of every other input. A value that is not finite
    is NaN.
    """
    stamps = np.unique(np.concatenate([each.ts for each in fresh.values()]))
    after = dict(latest)
    defined = np.ones(len(stamps), np.bool_)
    values: dict[int, Floats] = {
        number: np.full(len(stamps), constant) for number, constant in constants.items()
    }
    for number, (ts, given) in fresh.items():
        order = np.lexsort((given, ts))  # of equal stamps the greatest is the latest
        place = np.searchsorted(ts[order], stamps, side="right")
        # Element 0 is what was there before.
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
    return finished(op, fold(rows.ravel(), starts, squares=False))

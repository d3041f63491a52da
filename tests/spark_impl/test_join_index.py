"""Stores of a chain in process: how much their indexes look at for what they find."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

from model.vocabulary import JoinConfig
from model.vocabulary.join import And, Apart, Ineq, Predicate, R, S, Where
from spark_impl.join import index
from spark_impl.join.matching import Tuples
from spark_impl.join.side import Matcher, Side
from spark_impl.runtime.arrays import Ints


class Row(NamedTuple):
    """A tuple of either stream."""

    ts: int
    value: float
    key: str


def tuples(rows: Sequence[Row], first: int = 0) -> Tuples:
    """Return rows with numbers from ``first`` on as identities and ranks."""
    numbers = np.arange(first, first + len(rows))
    ts, value, key = ([getattr(row, name) for row in rows] for name in Row._fields)
    return Tuples(
        numbers,
        numbers,
        np.array(ts, np.int64),
        np.array(value, np.float64),
        np.array(key, np.object_),
    )


def looked_at(side: Side, probing: Sequence[Row]) -> tuple[int, int]:
    """Return how many rows an index selects, and how many of them are pairs."""
    counts = []
    select = index.Index.candidates

    def counted(*args: Any) -> Iterator[tuple[Ints, Ints]]:
        for one, here in select(*args):
            counts.append(len(here))
            yield one, here

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index.Index, "candidates", counted)
        (found,) = side.probe(tuples(probing))
    return sum(counts), len(found.at)


def side_of(predicate: Predicate, window_us: int, stored: Sequence[Row]) -> Side:
    """Return a store of S whose rows came in blocks."""
    side = Side(Matcher(JoinConfig(window_us, (("q", predicate),))), S)
    for first in range(0, len(stored), 700):
        side.append(tuples(stored[first : first + 700], first))
        side.probe(tuples([]))
    return side


FEW = 20
LOOKUPS: list[tuple[Predicate, Callable[[int], float | str]]] = [
    (Ineq("value", "<", "value"), lambda size: float(size - 1 - FEW)),
    (Ineq("value", "<=", "value"), lambda size: float(size - FEW)),
    (Ineq("value", ">", "value"), lambda _: float(FEW)),
    (Ineq("value", ">=", "value"), lambda _: float(FEW - 1)),
    (Apart("value", 50_000.5), lambda _: 50_000.0 + FEW),
    (Ineq("key", "<", "key"), lambda size: f"{size - 1 - FEW:05}"),
    (Ineq("key", ">=", "key"), lambda _: f"{FEW - 1:05}"),
]
"""Inequalities, and a value or a key of R that few of the first numbers satisfy."""


@pytest.mark.parametrize(("predicate", "few"), LOOKUPS, ids=[str(each) for each, _ in LOOKUPS])
def test_an_inequality_looks_at_its_results_alone(
    predicate: Predicate, few: Callable[[int], float | str]
) -> None:
    size = 16_000
    asked = few(size)
    probe = Row(0, asked, "") if isinstance(asked, float) else Row(0, 0.0, asked)
    side = side_of(predicate, size, shuffled(size))
    assert looked_at(side, [probe] * 3) == (3 * FEW, 3 * FEW)


def test_rows_outside_the_window_are_hardly_looked_at() -> None:
    """A store of 40 windows, of which one tuple reaches two."""
    size = 16_000
    stored = [row._replace(ts=n) for n, row in enumerate(shuffled(size))]
    side = side_of(Ineq("value", "<", "value"), size // 40, stored)
    looked, pairs = looked_at(side, [Row(at, 0.9 * size, "") for at in range(1_000, 15_000, 100)])
    assert pairs > 140 * 0.08 * size / 20
    assert looked < 2.5 * pairs


def test_rows_that_left_are_hardly_looked_at() -> None:
    size = 16_000
    side = side_of(Ineq("value", "<", "value"), size, shuffled(size))
    side.drop_below(size - 100)
    looked, pairs = looked_at(side, [Row(0, -1.0, "")])
    assert (looked, pairs) == (100, 100)
    side.drop_below(size - 10)
    looked, pairs = looked_at(side, [Row(0, -1.0, "")])
    assert pairs == 10
    assert looked <= 100


def test_selections_come_before_the_search() -> None:
    where = Where(S, "value", "<", 10.0), Where(R, "key", "=", "a")
    side = side_of(And((*where, Ineq("value", "<", "value"))), 2_000, shuffled(2_000))
    assert looked_at(side, [Row(0, 0.0, "b"), Row(0, 0.0, "a")]) == (9, 9)


def shuffled(size: int) -> list[Row]:
    """Return rows with the numbers below ``size``, in a drawn order."""
    found = [Row(n, float(n), f"{n:05}") for n in range(size)]
    Random(1).shuffle(found)
    return found

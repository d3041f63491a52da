"""Conditions on the columns of two tuples, with what they mean in plain Python."""

from collections.abc import Callable, Mapping
from itertools import chain
from math import inf, nan
from operator import eq, ge, gt, le, lt, ne
from random import Random
from typing import Any, NamedTuple

from model.vocabulary import JoinConfig
from model.vocabulary.join import (
    Apart,
    Band,
    Between,
    Equi,
    Ineq,
    Predicate,
    R,
    S,
    Where,
)


class Row(NamedTuple):
    """A tuple of either stream; ``None`` is missing."""

    ts: int
    value: float
    key: str
    x: float | None = None
    n: int | None = None
    at: int | None = None
    word: str | None = None
    flag: bool | None = None


LARGEST = (1 << 63) - 1
NO_INTEGER = -LARGEST - 1
COLUMNS = (
    ("x", "number"),
    ("n", "integer"),
    ("at", "time"),
    ("word", "text"),
    ("flag", "boolean"),
)


def config_of(predicate: Predicate, window_us: int) -> JoinConfig:
    """Return a configuration with one query."""
    return JoinConfig(window_us, (("q", predicate),), r_columns=COLUMNS, s_columns=COLUMNS)


Holds = Callable[[Row, Row], bool]


def on(r: str, s: str, holds: Callable[[Any, Any], bool]) -> Holds:
    """Return what a condition on two columns means; nothing that is missing satisfies it."""

    def both(one: Row, other: Row) -> bool:
        left, right = getattr(one, r), getattr(other, s)
        return None not in (left, right) and left == left and right == right and holds(left, right)

    return both


COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "!=": ne,
}


def within(low: float | None, high: float | None) -> Callable[[Any, Any], bool]:
    """Return a function that tells whether s - r lies between two bounds."""
    return lambda r, s: (low is None or low <= s - r) and (high is None or s - r <= high)


def distances(r: str, s: str, eps: float) -> list[tuple[Predicate, Holds]]:
    """Return the conditions on a distance."""
    return [
        (Band(r, eps, s), on(r, s, lambda one, other: abs(one - other) <= eps)),
        (Apart(r, eps, s), on(r, s, lambda one, other: abs(one - other) > eps)),
    ]


ORDERED = (
    ("value", "value"),
    ("key", "key"),
    ("x", "value"),
    ("n", "n"),
    ("at", "at"),
    ("word", "key"),
)
TIME = "event_time"
CONDITIONS: list[tuple[Predicate, Holds]] = [
    *((Ineq(r, op, s), on(r, s, compare)) for r, s in ORDERED for op, compare in COMPARE.items()),
    *((Equi(r, s), on(r, s, eq)) for r, s in (*ORDERED, ("flag", "flag"))),
    *chain.from_iterable(distances("value", "value", eps) for eps in (0.0, 1.0)),
    *distances("x", "x", 0.5),
    *chain.from_iterable(distances("n", "n", eps) for eps in (0, 1)),
    *chain.from_iterable(distances("at", "at", eps) for eps in (2, LARGEST)),
    *(
        (Between(r, low, high, s), on(r, s, within(low, high)))
        for r, s, low, high in (
            ("value", "value", 0.0, 1.0),
            ("x", "value", -2.8, -1.0),
            ("value", "x", 1.0, None),
            ("x", "value", None, -1.0),
            ("n", "n", 1, 2),
            ("n", "n", -LARGEST, -1),
            ("at", "at", None, 0),
        )
    ),
    (Ineq("flag", "!=", "flag"), on("flag", "flag", ne)),
    (Between(TIME, 0, None), lambda r, s: s.ts >= r.ts),
    (Ineq(TIME, ">", TIME), lambda r, s: r.ts > s.ts),
    (Band(TIME, 3, "at"), on("ts", "at", lambda r, s: abs(r - s) <= 3)),
    (Where(R, "x", ">", 0.0), lambda r, _: r.x is not None and r.x > 0),
    (Where(S, "word", "!=", "a"), lambda _, s: s.word not in (None, "a")),
    (Where(S, "flag", "=", True), lambda _, s: s.flag is True),
    (Where(R, "key", "<=", "b"), lambda r, _: r.key <= "b"),
]
"""Conditions, and what they mean in plain Python."""
VALUES = (-1e308, -1.9, -0.9, -0.1, -5e-324, -0.0, 0.0, 0.1, 0.9, 1.9, 1e16, 1e16 + 2, 1e308)
"""Some lie at 1.0 or 2.8 only because the difference is rounded."""
KEYS = ("", "a", "a\0", "aa", "b", "é", "\uffff", "\U00010000")
INTEGERS = (-LARGEST, -3, -2, -1, 0, 1, 2, 3, 1 << 53, (1 << 53) + 1, LARGEST - 1, LARGEST)
FAR_US = 1 << 60
TIMES_US = (*range(-9, 10), -FAR_US, FAR_US, FAR_US + 3)
WINDOWS_US = (0, 1, 4, 1 << 59, 1 << 61, LARGEST)


def rows(draws: Random, most: int) -> list[Row]:
    """Draw rows."""
    return [
        Row(
            draws.choice(TIMES_US),
            draws.choice(VALUES),
            draws.choice(KEYS),
            draws.choice((*VALUES, -inf, inf, nan, None)),
            draws.choice((*INTEGERS, None)),
            draws.choice((*INTEGERS, None)),
            draws.choice((*KEYS, None)),
            draws.choice((True, False, None)),
        )
        for _ in range(draws.randint(0, most))
    ]

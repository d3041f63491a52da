"""Hypothesis strategies: columns of two streams, their values, and conditions on them.

Rules of this file:

1. The values of a tuple follow from its stream and identity, so that every delivery is the same.
2. Few values are usual, so that conditions often hold; at the others arithmetic goes wrong.
3. Columns of the two streams have the same kinds, in another order and partly under other names.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, nan
from random import Random
from typing import Any

from hypothesis import strategies as st

from model.join.claims import Evidence
from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import (
    OPERATORS,
    And,
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
from model.vocabulary.join_predicates import (
    BOOLEAN,
    DISTANT,
    EQUALITIES,
    INTEGER,
    LARGEST,
    NUMBER,
    SELECTIONS,
    TEXT,
    TIME,
    Columns,
    columns_of,
    is_of_kind,
    kinds_of,
    parts_of,
)
from straggler.strategies.streams import UNIT_US

R_COLUMNS: Columns = (
    ("pm25", NUMBER),
    ("ad", INTEGER),
    ("at", TIME),
    ("ok", BOOLEAN),
    ("site", TEXT),
)
S_COLUMNS: Columns = (
    ("site", TEXT),
    ("clicked", INTEGER),
    ("pm10", NUMBER),
    ("ok", BOOLEAN),
    ("at", TIME),
)
USUAL: Mapping[str, Sequence[Any]] = {
    NUMBER: (0.0, 1.0, 4.0),
    INTEGER: (0, 1, 4),
    TIME: (0, UNIT_US, 8 * UNIT_US),
    BOOLEAN: (True, False),
    TEXT: ("a", "b", "c"),
}
"""Values that most tuples have, by kind."""
ODD: Mapping[str, Sequence[Any]] = {
    NUMBER: (None, nan, inf, -inf, -0.0, 0.1, 2.0**53, 1e308, -1e308),
    INTEGER: (None, -1, 1 << 53, (1 << 53) + 1, LARGEST, -LARGEST),
    TIME: (None, -1, LARGEST, -LARGEST),
    BOOLEAN: (None,),
    # Order by UTF-16 is not that by code point: the last one is above the one before.
    TEXT: (None, "", "B", 'a"\\\n', "é", "\uffff", "\U0001f600"),
}
"""Values at which conditions go wrong, by kind."""
SORTS = (Equi, Band, Apart, Between, Ineq, Where)
DISTANCES: Mapping[str, Sequence[Any]] = {
    NUMBER: (0.0, 1.0, 4.0, 0.1, 1e308),
    INTEGER: (0, 1, 4, LARGEST),
    TIME: (0, UNIT_US, 8 * UNIT_US, LARGEST),
}

# ---------------------------------------------------------------------------------------- tuples


def with_values(events: Iterable[Event], config: JoinConfig, seed: int) -> tuple[Event, ...]:
    """Return the events with a value for each column of their stream; some are missing."""
    return tuple(
        event._replace(more=_values(config.columns(event.stream), event, seed)) for event in events
    )


def _values(columns: Columns, event: Event, seed: int) -> tuple[Any, ...]:
    random = Random(f"{seed} {event.stream} {event.source_id}")
    return tuple(
        random.choice(ODD[kind] if random.random() < 0.3 else USUAL[kind]) for _, kind in columns
    )


# ------------------------------------------------------------------------------------ conditions


@st.composite
def conditions(draw: st.DrawFn, r_columns: Columns = (), s_columns: Columns = ()) -> Predicate:
    """Draw one condition, of any sort, on columns of any kind."""
    r_kinds, s_kinds = kinds_of(r_columns), kinds_of(s_columns)
    sort = draw(st.sampled_from(SORTS))
    if sort is Where:
        stream, kinds = draw(st.sampled_from([(R, r_kinds), (S, s_kinds)]))
        column, kind = draw(st.sampled_from(sorted(kinds.items())))
        op = draw(st.sampled_from(EQUALITIES if kind == BOOLEAN else SELECTIONS))
        known = [each for each in (*USUAL[kind], *ODD[kind]) if is_of_kind(kind, each)]
        return Where(stream, column, op, draw(st.sampled_from(known)))
    kind, column, other = draw(
        st.sampled_from(
            [
                (kind, column, other)
                for column, kind in r_kinds.items()
                for other in s_kinds
                if s_kinds[other] == kind and (kind in DISTANT or sort in (Equi, Ineq))
            ]
        )
    )
    if sort is Equi:
        return Equi(column, other)
    if sort is Ineq:
        op = "!=" if kind == BOOLEAN else draw(st.sampled_from(OPERATORS))
        return Ineq(column, op, other)
    distances = st.sampled_from(DISTANCES[kind])
    if sort is Between:
        bounds = st.builds(lambda each, sign: each * sign, distances, st.sampled_from([1, -1]))
        low, high = sorted([draw(bounds), draw(bounds)])
        missing = draw(st.sampled_from(["neither", "neither", "low", "high"]))
        ends = None if missing == "low" else low, None if missing == "high" else high
        return Between(column, *ends, other)
    return (Band if sort is Band else Apart)(column, draw(distances), other)


def predicates(r_columns: Columns = (), s_columns: Columns = ()) -> st.SearchStrategy[Predicate]:
    """Return a strategy for predicates of one condition, of several, or of none."""
    single = conditions(r_columns, s_columns)
    return st.one_of(single, st.lists(single, max_size=2).map(lambda parts: And(tuple(parts))))


# ----------------------------------------------------------------------------------------- cases

MISSING = "values missing in columns"
COLUMNED = (*(f"results of {sort.__name__} on columns" for sort in SORTS), MISSING)
"""Cases of columns: results of queries with each sort of condition on them, and missing values."""


def count_columns(seen: Evidence) -> dict[str, int]:
    """Count the cases of columns in a run of a chain."""
    declared = {(each, name) for each in (R, S) for name, _ in seen.config.columns(each)}
    found = dict.fromkeys(COLUMNED, 0)
    found[MISSING] = sum(event.more.count(None) for event in seen.tuples)
    predicates = dict(seen.config.queries)
    for query, _, _ in seen.results:
        sorts = {
            type(part)
            for part in parts_of(predicates[query])
            if declared.intersection(columns_of(part))
        }
        for sort in sorts:
            found[f"results of {sort.__name__} on columns"] += 1
    return found

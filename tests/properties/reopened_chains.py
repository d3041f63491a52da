"""Chains that are opened again with other queries."""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from hypothesis import strategies as st

from model.vocabulary import JoinConfig
from model.vocabulary.join import And, Equi, Predicate

PREDICATES: st.SearchStrategy[Predicate] = st.sampled_from([And(), And(), And(), Equi("key")])


class Reopened(NamedTuple):
    """A chain before it is closed and as it is opened again, at an epoch."""

    before: JoinConfig
    functions: Collection[str]
    given: JoinConfig
    given_functions: Collection[str]
    epoch: int


@st.composite
def configs(draw: st.DrawFn) -> tuple[JoinConfig, Collection[str]]:
    """Draw queries with few names, some limited to epochs, some of them functions."""
    names = sorted(draw(st.sets(st.sampled_from("abc"), min_size=1)))
    predicates = [draw(PREDICATES) for _ in names]
    limited = []
    for name in names:
        first, epochs = draw(st.integers(0, 4)), draw(st.sampled_from([None, None, 0, 1, 3]))
        if draw(st.booleans()):
            limited.append((name, first, None if epochs is None else first + epochs))
    queries = tuple(zip(names, predicates, strict=True))
    functions = {name for name in names if draw(st.sampled_from([False] * 5 + [True]))}
    return JoinConfig(1_000, queries, epochs=tuple(limited)), functions


@st.composite
def reopened_chains(draw: st.DrawFn) -> Reopened:
    """Draw a chain that is opened with other queries, or with some of the same."""
    before, functions = draw(configs())
    given, given_functions = draw(configs())
    if draw(st.booleans()):  # the same names mean the same
        known = dict(before.queries)
        same = tuple((name, known.get(name, predicate)) for name, predicate in given.queries)
        given = replace(given, queries=same)
        given_functions = functions & dict(given.queries).keys()
    return Reopened(before, functions, given, given_functions, draw(st.integers(1, 5)))

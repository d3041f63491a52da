"""A chain that is opened again may change its queries from now on, never for past epochs."""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.vocabulary import JoinConfig
from model.vocabulary.join import And, Equi, Predicate
from properties.promised import Reached, promised
from spark_impl.join.queries import continue_config
from spark_impl.runtime.storage import InputProblem

PREDICATES: st.SearchStrategy[Predicate] = st.sampled_from([And(), And(), And(), Equi("key")])
EPOCHS = range(8)
"""Epochs in which spans begin and end, and some behind them."""
MISSING, CHANGED, PAST, OVER = (
    "a function is not given again",
    "a predicate changes",
    "a past epoch changes",
    "a query has ended",
)


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
def chains(draw: st.DrawFn) -> Reopened:
    """Draw a chain that is opened with other queries, or with some of the same."""
    before, functions = draw(configs())
    given, given_functions = draw(configs())
    if draw(st.booleans()):  # the same names mean the same
        known = dict(before.queries)
        same = tuple((name, known.get(name, predicate)) for name, predicate in given.queries)
        given = replace(given, queries=same)
        given_functions = functions & dict(given.queries).keys()
    return Reopened(before, functions, given, given_functions, draw(st.integers(1, 5)))


def pairs_in(config: JoinConfig, name: str, epoch: int) -> bool:
    """Return whether a query pairs the tuples of an epoch."""
    first, last = config.span(name)
    return name in dict(config.queries) and first <= epoch and (last is None or epoch <= last)


def refusals(chain: Reopened) -> set[str]:
    """Return the reasons for which a chain must not be opened like this."""
    before, given, found = dict(chain.before.queries), dict(chain.given.queries), set()
    explicit = {name for name, _, _ in chain.given.epochs}
    for name in before:
        is_function = name in chain.functions
        if name not in given:
            found |= {MISSING} if is_function else set()
        elif (before[name], is_function) != (given[name], name in chain.given_functions):
            found.add(CHANGED)
    for name in given:
        first, last = chain.before.span(name)
        if name not in explicit:
            ended = name in before and last is not None and last < chain.epoch - 1
            found |= {OVER} if ended else set()
            continue
        past = range(chain.epoch)
        moved = any(pairs_in(chain.before, name, e) != pairs_in(chain.given, name, e) for e in past)
        begins = name in before and chain.given.span(name)[0] != first
        found |= {PAST} if moved or begins else set()
    return found


def expected(chain: Reopened, name: str, epoch: int) -> bool:
    """Return whether a query of a chain that was opened again pairs the tuples of an epoch."""
    if epoch < chain.epoch:
        return pairs_in(chain.before, name, epoch)
    if name not in dict(chain.given.queries):
        return False
    is_limited = any(name == each for each, _, _ in chain.given.epochs)
    if is_limited or name not in dict(chain.before.queries):
        return pairs_in(chain.given, name, epoch)
    return pairs_in(chain.before, name, epoch)


def reopened(
    *before: tuple[str, int, int | None],
    functions: Collection[str] = (),
    given: JoinConfig | None = None,
    epoch: int = 1,
) -> Reopened:
    """Return a chain of query ``a``, limited to epochs ``before``, opened again with another."""
    plain = JoinConfig(1_000, (("a", And()),), epochs=before)
    return Reopened(plain, functions, given or replace(plain, epochs=()), (), epoch)


@promised("taken", MISSING, CHANGED, PAST, OVER, examples=80)
@given(chain=chains())
@example(chain=reopened())
@example(chain=reopened(functions={"a"}, given=JoinConfig(1_000, (("b", And()),))))
@example(chain=reopened(given=JoinConfig(1_000, (("a", Equi("key")),))))
@example(chain=reopened(given=JoinConfig(1_000, (("b", And()),), epochs=(("b", 0, None),))))
@example(chain=reopened(("a", 0, 0), epoch=3))
def test_queries_change_only_for_epochs_to_come(reached: Reached, chain: Reopened) -> None:
    reasons = refusals(chain)
    reached.add({"taken" if not reasons else ", ".join(sorted(reasons)): 1})
    if reasons:
        with pytest.raises(InputProblem, match=r"^the query '[abc]' [^\n]+$"):
            continue_config(*chain)
        return
    after = continue_config(*chain)
    predicates = dict(chain.before.queries) | dict(chain.given.queries)
    for name in "abc":
        for epoch in EPOCHS:
            assert pairs_in(after, name, epoch) == expected(chain, name, epoch), (name, epoch)
    assert all(predicates[name] == predicate for name, predicate in after.queries)

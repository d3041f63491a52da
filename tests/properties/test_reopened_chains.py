"""A chain that is opened again may change its queries from now on, never for past epochs."""

from collections.abc import Collection
from dataclasses import replace

import pytest
from hypothesis import example, given

from model.vocabulary import JoinConfig
from model.vocabulary.join import And, Equi
from properties.promised import Reached, promised
from spark_impl.join.queries import continue_config
from spark_impl.runtime.storage import InputProblem
from tests.properties.reopened_chains import Reopened, reopened_chains

EPOCHS = range(8)
"""Epochs in which spans begin and end, and some behind them."""
MISSING, CHANGED, PAST, OVER = (
    "a function is not given again",
    "a predicate changes",
    "a past epoch changes",
    "a query has ended",
)


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
@given(chain=reopened_chains())
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

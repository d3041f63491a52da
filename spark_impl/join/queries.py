"""Which queries a chain has, and which tuples each of them pairs, from epoch to epoch.

Rules of this file:

* What is over does not change: from the next epoch on a query can come, and it can end.
* A query that has ended stays in the configuration. It pairs no new tuples, and pairs of old ones
  may still be owed.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from model.vocabulary import JoinConfig
from model.vocabulary.join import END_US
from spark_impl.runtime.histories import InputProblem

FIXED = ("window_us", "lateness_us")
"""Settings of a chain that stay what they are; all others may change between two epochs."""
_NO_RANK = END_US
"""Above every rank."""
Span: TypeAlias = tuple[int, int | None]
"""First and last epoch of a query; ``None``: no last one."""


class Counts(NamedTuple):
    """A number for each stream, such as the tuples admitted so far."""

    r: int
    s: int


class Ranks(NamedTuple):
    """Tuples that a query pairs: from a rank on and below another one, in each stream."""

    first: Counts
    end: Counts


def ranks_of(
    config: JoinConfig, epoch: int, admitted: Callable[[int], Counts]
) -> tuple[Ranks | None, ...]:
    """The tuples that each query pairs, as far as they are known in an epoch; ``None``: all.

    ``admitted`` says how many tuples were admitted before an epoch that has begun.
    """
    nobody = Counts(_NO_RANK, _NO_RANK)

    def of(query: str) -> Ranks | None:
        first, last = config.span(query)
        if (first, last) == (0, None):
            return None
        has_ended = last is not None and last < epoch
        return Ranks(
            admitted(first) if first <= epoch else nobody,
            admitted(last + 1) if last is not None and has_ended else nobody,
        )

    return tuple(of(name) for name, _ in config.queries)


def continued(
    before: JoinConfig,
    functions: Collection[str],
    given: JoinConfig,
    given_functions: Collection[str],
    epoch: int,
) -> JoinConfig:
    """What a chain does from ``epoch`` on that did ``before`` and is now ``given`` something else.

    A query that is new begins with this epoch, one that is gone has ended with the epoch before.
    Functions are queries that this configuration does not say. Raises :class:`InputProblem` when
    the past would have to change.
    """
    known, wanted = dict(before.queries), dict(given.queries)
    for name, predicate in known.items():
        if name not in wanted and name in functions:
            msg = f"the query {name!r} is a function: give it again, for it may still owe pairs"
            raise InputProblem(msg)
        same = (predicate, name in functions) == (wanted.get(name), name in given_functions)
        if name in wanted and not same:
            msg = f"the query {name!r} was another one: a new one needs a name of its own"
            raise InputProblem(msg)
    queries, limited = [], []
    for name, predicate in {**known, **wanted}.items():
        span = _span(name, before, given, epoch)
        if span is not None:
            queries.append((name, predicate))
            limited += [(name, *span)] if span != (0, None) else []
    return replace(given, queries=tuple(queries), epochs=tuple(limited))


def _span(name: str, before: JoinConfig, given: JoinConfig, epoch: int) -> Span | None:
    """The epochs of a query; ``None`` if it is gone before it began."""
    is_known = any(name == each for each, _ in before.queries)
    span: Span = before.span(name) if is_known else (epoch, None)
    if not any(name == each for each, _ in given.queries):
        return _ended(span, epoch)
    if any(name == each for each, _, _ in given.epochs):
        return _moved(name, span, given.span(name), is_known, epoch)
    if _is_over(span, epoch):
        msg = f"the query {name!r} ended with epoch {span[1]}: a new one needs a name of its own"
        raise InputProblem(msg)
    return span


def _ended(span: Span, epoch: int) -> Span | None:
    first, last = span
    if first >= epoch:
        return None
    return first, epoch - 1 if last is None else min(last, epoch - 1)


def _moved(name: str, span: Span, wanted: Span, is_known: bool, epoch: int) -> Span:
    """The epochs that are asked for, if only the future changes by them."""
    begin_moves = wanted[0] != span[0] and (is_known or wanted[0] < epoch)
    end_moves = wanted[1] != span[1] and (_is_over(span, epoch) or _is_over(wanted, epoch))
    if begin_moves or end_moves:
        msg = (
            f"the query {name!r} cannot have the epochs {wanted[0]} to {wanted[1]}:"
            f" the next epoch is {epoch}"
        )
        raise InputProblem(msg)
    return wanted


def _is_over(span: Span, epoch: int) -> bool:
    """The query ended before the last epoch: that does not change any more."""
    return span[1] is not None and span[1] < epoch - 1

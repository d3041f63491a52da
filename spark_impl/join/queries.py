"""Queries that come and go: each pairs the tuples of its epochs (docs/join.md, section 10)."""

from collections.abc import Collection
from dataclasses import replace

from model.vocabulary import JoinConfig
from model.vocabulary.join import ALWAYS, STREAMS, Predicate, Span
from spark_impl.runtime.storage import InputProblem


def continue_config(
    before: JoinConfig,
    functions: Collection[str],
    given: JoinConfig,
    given_functions: Collection[str],
    epoch: int,
    changed: Collection[str] = (),
) -> JoinConfig:
    """Return the configuration from ``epoch`` on of a chain with a past.

    ``before`` is the configuration so far, ``given`` is the new one. A new query begins with this
    epoch; a removed one has ended with the epoch before. It stays in the configuration and pairs no
    new tuples, but pairs of old ones may still be owed. ``functions`` and ``given_functions`` name
    the queries whose predicates are functions; ``changed`` names those that were submitted or
    withdrawn while the chain ran, which ``given`` need not know. Raise :class:`InputProblem` if the
    past would have to change, or a column that the chain has is not given any more. Epochs in
    ``given`` change no epochs of the chain: a workload gives the same ones again.
    """
    _require_columns(before, given)
    known, wanted = dict(before.queries), dict(given.queries)
    for name, predicate in known.items():
        if name not in wanted and name in functions:
            msg = f"the query {name!r} is a function: give it again, because it may still owe pairs"
            raise InputProblem(msg)
        same = (predicate, name in functions) == (wanted.get(name), name in given_functions)
        if name in wanted and not same:
            msg = f"the query {name!r} has changed: a changed query needs another name"
            raise InputProblem(msg)
    queries, limited, spans = [], [], before.spans()
    asked = {*changed, *given.spans()}
    for name, predicate in {**known, **wanted}.items():
        span: Span | None = spans.get(name, ALWAYS)
        if name not in known:
            span = None if name in changed else (epoch, None)  # withdrawn before, or new
        elif name not in asked:
            span = _continue_span(name, spans.get(name, ALWAYS), name in wanted, epoch)
        if span is not None:
            queries.append((name, predicate))
            limited += [(name, *span)] if span != ALWAYS else []
    return replace(given, queries=tuple(queries), epochs=tuple(limited))


def _require_columns(before: JoinConfig, given: JoinConfig) -> None:
    """Raise :class:`InputProblem` unless all columns so far are given, of the same kinds."""
    for stream in STREAMS:
        kinds = dict(given.columns(stream))
        for name, kind in before.columns(stream):
            if kinds.get(name) != kind:
                found = f"it is {kinds[name]} now" if name in kinds else "it is not given"
                msg = (
                    f"{stream} has the column {name!r} ({kind}) in this chain, but {found}: columns"
                    " may come, but none may go or change"
                )
                raise InputProblem(msg)


def _continue_span(name: str, span: Span, is_wanted: bool, epoch: int) -> Span | None:
    """Return the epochs of a query of which nobody asked anything but in openings."""
    first, last = span
    if not is_wanted:
        return _end_span(span, epoch)
    if last is not None and last < epoch:
        msg = f"the query {name!r} ended with epoch {last}: a new query needs another name"
        raise InputProblem(msg)
    return first, last


def _end_span(span: Span, epoch: int) -> Span | None:
    first, last = span
    if first >= epoch:
        return None
    return first, epoch - 1 if last is None else min(last, epoch - 1)


def submit(config: JoinConfig, name: str, predicate: Predicate, epoch: int) -> JoinConfig:
    """Return a configuration with a query that begins with ``epoch``.

    Raise :class:`InputProblem` if it names a column that the chain does not carry.
    """
    try:
        return replace(
            config,
            queries=(*config.queries, (name, predicate)),
            epochs=(*config.epochs, (name, epoch, None)),
        )
    except ValueError as error:
        raise InputProblem(str(error)) from error


def withdraw(config: JoinConfig, name: str, epoch: int) -> JoinConfig:
    """Return a configuration with a query that ends before ``epoch``, or never begins."""
    span = _end_span(config.span(name), epoch)
    epochs = tuple(each for each in config.epochs if each[0] != name)
    if span is not None:
        return replace(config, epochs=(*epochs, (name, *span)))
    queries = tuple(each for each in config.queries if each[0] != name)
    return replace(config, queries=queries, epochs=epochs)

"""Arguments of users: conditions, columns, numbers of workers, and places for pairs."""

from collections.abc import Collection, Mapping
from typing import TypeAlias

from model.vocabulary import JoinConfig
from model.vocabulary.join import ALWAYS, PREDICATES, And, Predicate, R, S
from model.vocabulary.join_conditions import parse_condition
from model.vocabulary.join_load import LoadRules
from model.vocabulary.join_predicates import (
    RESERVED,
    Columns,
    check_columns,
    check_predicate,
    columns_of,
    kind_of_column,
    kinds_of,
)
from model.vocabulary.settings import is_int
from spark_impl.join.matching import FreePredicate
from spark_impl.join.task import COLUMNS
from spark_impl.runtime.storage import InputProblem

Condition: TypeAlias = Predicate | FreePredicate | str
"""A predicate, a function on columns, or a text such as ``"r.pm25 apart 5 of s.pm25"``."""
Used: TypeAlias = Collection[tuple[str, str]]
"""Streams and columns."""


def declare(condition: Condition, columns: Mapping[str, Columns]) -> Predicate:
    """Return the predicate for the configuration; for a function, one that every pair satisfies.

    Raise ``ValueError`` for a text that is no condition on streams with these columns.
    """
    if isinstance(condition, str):
        return parse_condition(condition, *(kinds_of(columns[each]) for each in (R, S)))
    if isinstance(condition, PREDICATES):
        return condition
    if callable(condition):
        return And()
    msg = f"{condition!r} is neither a predicate nor a function"
    raise ValueError(msg)


def declare_columns(stream: str, given: Mapping[str, str] | None) -> Columns:
    """Return the columns of a stream for the configuration.

    Raise ``ValueError`` if they are no columns, or if Spark, which ignores case, takes two columns
    of an input for one.
    """
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        msg = f"{stream.lower()}_columns is {given!r}; it must be a dict of kinds by name"
        raise ValueError(msg)
    taken = {name.lower() for name in COLUMNS}
    for name in map(str, given):
        if name.lower() in taken or (name not in RESERVED and name.lower() in RESERVED):
            msg = f"a column of {stream} cannot be called {name!r}, which is taken"
            raise ValueError(msg)
        taken.add(name.lower())
    found = tuple(given.items())
    check_columns(f"{stream.lower()}_columns", found)  # before a text is read, which needs kinds
    return found


def used_columns(config: JoinConfig, epoch: int) -> Used:
    """Return the columns that predicates use from an epoch on."""
    found, spans = set[tuple[str, str]](), config.spans()
    for name, predicate in config.queries:
        _, last = spans.get(name, ALWAYS)
        if last is None or last >= epoch:
            found.update(columns_of(predicate))
    return found


def declare_for(name: str, condition: Condition, config: JoinConfig, absent: Used) -> Predicate:
    """Return the predicate of a query for a chain that runs.

    Raise :class:`InputProblem` if it is none, or uses a column that an input lacks.
    """
    try:
        predicate = declare(condition, {stream: config.columns(stream) for stream in (R, S)})
        check_predicate(name, predicate, *(kinds_of(config.columns(each)) for each in (R, S)))
    except ValueError as error:
        raise InputProblem(str(error)) from error
    for stream, column in columns_of(predicate):
        if (stream, column) in absent:
            msg = f"query {name!r}: the input {stream} has no column {column!r}"
            raise InputProblem(msg)
    return predicate


def read_select(
    config: JoinConfig, select: Collection[str], taken: Collection[str] = ()
) -> dict[str, tuple[str, str, str]]:
    """Return stream, column and kind of columns such as ``"r.key"``, by their names in answers.

    Raise :class:`InputProblem` for any other text, for a column that is not there, and for a name
    that is ``taken``.
    """
    if isinstance(select, str):
        msg = f"select is {select!r}; it must be a list of columns such as 'r.key'"
        raise InputProblem(msg)
    found = {}
    for text in dict.fromkeys(select):
        stream, _, column = text.partition(".")
        if stream not in ("r", "s") or not column:
            msg = f"select has {text!r}; it must have columns such as 'r.key'"
            raise InputProblem(msg)
        try:
            kind = kind_of_column(config.kinds(), stream.upper(), column)
        except ValueError as error:
            raise InputProblem(str(error)) from error
        name = f"{stream}_{column}"
        if name.lower() in taken:
            msg = f"select has {text!r}, but pairs have a column {name.lower()!r} already"
            raise InputProblem(msg)
        found[name] = stream.upper(), column, kind
    return found


def range_of(workers: int | tuple[int, int], load: LoadRules | None) -> tuple[int, int]:
    """Return the least and the most workers; ``ValueError`` if nothing chooses between them."""
    if load is not None and not isinstance(load, LoadRules):
        msg = f"load is {load!r}; it must be LoadRules(...)"
        raise ValueError(msg)
    if not isinstance(workers, tuple | list):
        return workers, workers
    if len(workers) != 2 or not all(map(is_int, workers)):
        msg = f"workers is {workers!r}; it must be a number, or the least and the most"
        raise ValueError(msg)
    if load is None:
        msg = f"workers is {workers!r}; it must be a number, because load= gives no rules"
        raise ValueError(msg)
    least, most = workers
    return least, most


def check_reach(master: str) -> None:
    """Raise :class:`InputProblem` unless all workers write on the driver's machine."""
    if not master.startswith("local"):
        msg = (
            f"without a store the pairs stay on the machines of {master}: give a folder that the"
            " driver and all workers reach under one address"
        )
        raise InputProblem(msg)

"""Queries and columns of a chain that just fit, the nearest that do not, and the reason."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import END_US, And, Band, Equi, Ineq, Predicate, R, S, Where
from model.vocabulary.join_load import LoadRules
from spark_impl.join import ChainJoin, queries
from spark_impl.join.answers import require_history
from spark_impl.join.given import check_reach, declare_for, range_of, used_columns
from spark_impl.join.in_process import arrivals_of
from spark_impl.join.matching import Chosen, Counts, Guarded, Query, Ranks, decide, ranks_of
from spark_impl.join.query import ChainStream
from spark_impl.runtime.storage import locate

NEXT = 4
"""The first epoch that a chain has not run yet."""
RULES = LoadRules(most=9)
CHAIN = JoinConfig(9, (("a", And()),))
Named = tuple[str, int, int | None]
"""A query with the first and the last epoch whose tuples it pairs."""


# ---------------------------------------------------------------------------------------- queries


def _build(own: Mapping[str, Any]) -> None:
    given: dict[str, Any] = {"workers": 2, "window_us": 9, "predicate": "any", **own}
    ChainJoin(**given)


def queries_of(*spans: Named, **columns: Any) -> JoinConfig:
    """Return a chain with queries that pair everything in some epochs."""
    limited = tuple(each for each in spans if each[1:] != (0, None))
    return JoinConfig(9, tuple((name, And()) for name, *_ in spans), epochs=limited, **columns)


def require_pairs(config: JoinConfig, name: str, epoch: int) -> None:
    """Raise ``ValueError`` if a query pairs nothing of an epoch."""
    first, last = config.span(name) if name in dict(config.queries) else (epoch + 1, None)
    if not (first <= epoch and (last is None or epoch <= last)):
        raise ValueError(f"{name} pairs nothing of epoch {epoch}")


def _again(
    *before: Named,
    after: Sequence[Named],
    asked: tuple[str, int],
    changed: str = "",
    functions: tuple[str, str] = ("", ""),
) -> Callable[[], None]:
    """Return the opening of a chain with other queries, which asks for the pairs of a query.

    ``changed`` names the queries that were submitted or withdrawn while it ran; ``functions`` are
    those whose predicates are functions, before and after.
    """

    def ask() -> None:
        was, now = functions
        found = queries.continue_config(
            queries_of(*before), was, queries_of(*after), now, NEXT, changed
        )
        require_pairs(found, *asked)

    return ask


def _grow(columns: Mapping[str, str]) -> None:
    """Open a chain with one column again, with other columns."""
    before, after = (
        queries_of(("a", 0, None), s_columns=tuple(each.items()))
        for each in ({"at": "time"}, columns)
    )
    assert queries.continue_config(before, (), after, (), NEXT) == after


def _submit(given: tuple[Predicate, int]) -> None:
    predicate, epoch = given
    found = queries.submit(queries_of(("a", 0, None)), "b", predicate, NEXT)
    assert dict(found.queries) == {"a": And(), "b": predicate}
    require_pairs(found, "a", epoch)
    require_pairs(found, "b", epoch)


def _withdraw(given: tuple[Named, str, int]) -> None:
    """End a query of a chain; ask for the pairs of a query."""
    query, name, epoch = given
    config = queries_of(("a", 0, None), ("c", 1, 2), query)
    require_pairs(queries.withdraw(config, query[0], NEXT), name, epoch)


def _rank(given: tuple[Named, Ranks | None]) -> None:
    """Compare the ranks that a query pairs in an epoch, in which ten tuples came with each one."""
    query, due = given
    (found,) = ranks_of(queries_of(query), NEXT, lambda epoch: Counts(10 * epoch, 10 * epoch + 1))
    if found != due:
        raise ValueError(f"the ranks are {found}")


def _ranks(first: int, end: int) -> Ranks:
    first_s, end_s = (each if each == END_US else each + 1 for each in (first, end))
    return Ranks(Counts(first, first_s), Counts(end, end_s))


def _use(given: tuple[int | None, int]) -> None:
    """Ask for the columns that a query with a last epoch uses from an epoch on."""
    last, epoch = given
    config = JoinConfig(9, (("q", Band("value", 1.0)),), epochs=(("q", 1, last),))
    if used_columns(config, epoch) != {(R, "value"), (S, "value")}:
        raise ValueError(f"no column is used from epoch {epoch} on")


def _range(given: tuple[Any, Any, tuple[int, int]]) -> None:
    workers, load, due = given
    if range_of(workers, load) != due:
        raise ValueError(f"the range of {workers} is another")


def _decide(function: Callable[[Any, Any], Any]) -> None:
    """Let a function decide on two pairs, of which an input has no column ``value``."""
    events = [Event(seq, seq, "ab"[seq], seq, 0.0, seq, R) for seq in range(2)]
    chosen = Chosen(arrivals_of(events, R, queries_of(("a", 0, None))).tuples, np.arange(2))
    found = decide(Query("f", And(), Guarded(function, {(S, "value")})), chosen, chosen)
    assert found.tolist() == [True, False]


_A, _B, _C, _D = ("a", 0, None), ("b", 2, None), ("c", 0, 2), ("d", 5, None)
_ALL = ("c", 0, None)


def _keep(kept: Sequence[bool]) -> None:
    """Read the tuples of all epochs, some of which have perhaps kept none."""
    commits = [SimpleNamespace(epoch=epoch, history=each) for epoch, each in enumerate(kept)]
    store: Any = SimpleNamespace(commits=lambda: commits)
    require_history(store, 0, len(kept) - 1)


def _number(batch: int) -> None:
    """Take a micro-batch of Spark for a chain of three epochs, the last of which is a flush."""
    store = SimpleNamespace(root="chain", at=lambda: None)
    chain: Any = SimpleNamespace(epochs=3, flushed=True, limits=None, store=store)
    rows: Any = SimpleNamespace(sparkSession=None)
    ChainStream(chain, rows, None, locate("/nowhere"))._epoch(rows, batch)


JOINED: Mapping[str, Callable[[Any], object]] = {
    "chain": _build,
    "workers": _range,
    "used": _use,
    "ranks": _rank,
    "kept": _keep,
    "numbered": _number,
    "carried": lambda absent: declare_for("q", Where(R, "value", ">", 1.0), CHAIN, absent),
    "declared": lambda condition: declare_for("q", condition, CHAIN, set()),
    "reach": check_reach,
    "continued": lambda ask: ask(),
    "grown": _grow,
    "submitted": _submit,
    "withdrawn": _withdraw,
    "function": _decide,
}
OF_QUERIES: Sequence[tuple[str, Any, Any, str]] = (
    ("numbered", 1, 0, "the stream is at micro-batch 0, but chain expects 2"),
    ("kept", [True, True], [True, False], "the tuples of epoch 1 were not kept"),
    (
        "chain",
        {"patience_s": 0.1},
        {"patience_s": "0s"},
        "patience_s is 0.0; it must be more than 0",
    ),
    (
        "chain",
        {"patience_s": "1s"},
        {"patience_s": None},
        "patience_s is None; it must be more than 0",
    ),
    ("chain", {"load": RULES}, {"load": 3}, "load is 3; it must be LoadRules"),
    ("chain", {"workers": (1, 3), "load": RULES}, {"workers": (1, 3)}, "because load= gives no"),
    ("chain", {"predicate": max}, {"predicate": 3}, "3 is neither a predicate nor a function"),
    ("chain", {"predicate": {"a": Equi("key")}}, {"predicate": {"a": None}}, "None is neither a"),
    ("chain", {"r_columns": {"at": "time"}}, {"r_columns": ["at"]}, "must be a dict of kinds by"),
    ("chain", {"r_columns": {"a": "time"}}, {"r_columns": {"Key": "text"}}, "'Key', which is tak"),
    ("chain", {"r_columns": {"a": "time"}}, {"r_columns": {"Rank": "text"}}, "'Rank', which is ta"),
    ("chain", {"r_columns": {"a": "time"}}, {"r_columns": {"rank": "text"}}, "must be none of key"),
    ("chain", {}, {"r_columns": {"a": "time", "A": "time"}}, "of R cannot be called 'A', which is"),
    (
        "chain",
        {"s_columns": {"a": "time"}, "predicate": "s.a < '2000-01-01'"},
        {"s_columns": {"a": "float"}, "predicate": "s.a < 1"},
        "the kind of 'a' in s_columns is 'float'; it must be one of number",
    ),
    ("workers", (3, None, (3, 3)), ((1, 2, 3), RULES, (1, 3)), "or the least and the most"),
    ("workers", ((1, 3), RULES, (1, 3)), ((1,), RULES, (1, 1)), "or the least and the most"),
    ("workers", ([2, 3], RULES, (2, 3)), ((True, 3), RULES, (1, 3)), "or the least and the most"),
    ("workers", (3, RULES, (3, 3)), ((1, 3), None, (1, 3)), "because load= gives no rules"),
    ("used", (2, 2), (2, 3), "no column is used from epoch 3 on"),
    ("used", (None, 9), (1, 2), "no column is used from epoch 2 on"),
    ("ranks", (_A, None), (_B, None), "the ranks are "),
    ("ranks", (_B, _ranks(20, END_US)), (_B, _ranks(20, 40)), "the ranks are "),
    ("ranks", (_C, _ranks(0, 30)), (_C, _ranks(0, END_US)), "the ranks are "),
    ("ranks", (("q", 1, NEXT - 1), _ranks(10, 10 * NEXT)), (_C, None), "the ranks are "),
    ("ranks", (("q", NEXT, NEXT), _ranks(10 * NEXT, END_US)), (_C, None), "the ranks are "),
    ("ranks", (("q", 5, None), _ranks(END_US, END_US)), (_C, None), "the ranks are "),
    ("carried", {(S, "value")}, {(R, "value")}, "query 'q': the input R has no column 'value'"),
    ("declared", Equi("key"), Equi("site"), "R has no column 'site'"),
    ("reach", "local[2]", "spark://h:7077", "the pairs stay on the machines of spark://h:7077"),
    (
        "continued",
        _again(_A, _B, after=[_A], asked=("b", 9), changed="b"),
        _again(_A, _B, after=[_A], asked=("b", NEXT)),
        "b pairs nothing of epoch 4",
    ),
    (
        "continued",
        _again(_A, _B, after=[_A], asked=("b", 3)),
        _again(_A, _B, after=[_A], asked=("b", 1)),
        "b pairs nothing of epoch 1",
    ),
    (
        "continued",
        _again(_A, _C, after=[_A, _ALL], asked=("c", 2), changed="c"),
        _again(_A, _C, after=[_A, _ALL], asked=("c", 3), changed="c"),
        "c pairs nothing of epoch 3",
    ),
    (
        "continued",
        _again(_A, _C, after=[_A, ("c", 1, 9)], asked=("c", 0), changed="c"),
        _again(_A, _C, after=[_A, ("c", 1, 9)], asked=("c", NEXT), changed="c"),
        "c pairs nothing of epoch 4",
    ),
    (
        "continued",
        _again(_A, after=[_A, _D], asked=("d", 9)),
        _again(_A, after=[_A, _D], asked=("d", 9), changed="d"),
        "d pairs nothing of epoch 9",
    ),
    (
        "continued",
        _again(_A, _C, after=[_A], asked=("c", 2)),
        _again(_A, _C, after=[_A, _ALL], asked=("c", 2)),
        "the query 'c' ended with epoch 2: a new query needs another name",
    ),
    (
        "continued",
        _again(_A, _C, after=[_A, _C], asked=("c", 2)),
        _again(_A, _C, after=[_A, _ALL], asked=("c", 2)),
        "the query 'c' ended with epoch 2: a new query needs another name",
    ),
    (
        "continued",
        _again(_A, ("c", 0, 3), after=[_A], asked=("c", 3)),
        _again(_A, ("c", 0, 3), after=[_A, _ALL], asked=("c", 3)),
        "the query 'c' ended with epoch 3: a new query needs another name",
    ),
    (
        "continued",
        _again(_A, ("c", 0, NEXT), after=[_A, _ALL], asked=("c", NEXT)),
        _again(_A, ("c", 0, NEXT), after=[_A, _ALL], asked=("c", 5)),
        "c pairs nothing of epoch 5",
    ),
    (
        "continued",
        _again(_A, _B, after=[_A, _B], asked=("b", 9), functions=("b", "b")),
        _again(_A, _B, after=[_A], asked=("b", 3), functions=("b", "")),
        "the query 'b' is a function: give it again",
    ),
    (
        "continued",
        _again(_A, _B, after=[_A, _B], asked=("a", 0), functions=("b", "b")),
        _again(_A, _B, after=[_A, _B], asked=("b", 9), functions=("b", "")),
        "the query 'b' has changed: a changed query",
    ),
    (
        "continued",
        _again(_A, _B, after=[_A, _B, _D], asked=("d", 5), functions=("", "d")),
        _again(_A, _B, after=[_A, _B], asked=("b", 9), functions=("", "b")),
        "the query 'b' has changed: a changed query",
    ),
    (
        "continued",
        _again(_A, after=[_A, ("d", 0, None)], asked=("d", NEXT)),
        _again(_A, after=[_A, ("d", 0, None)], asked=("d", 3)),
        "d pairs nothing of epoch 3",
    ),
    (
        "continued",
        _again(_A, ("b", 3, None), after=[_A], asked=("b", 3)),
        _again(_A, ("b", NEXT, None), after=[_A], asked=("b", NEXT)),
        "b pairs nothing of epoch 4",
    ),
    (
        "continued",
        _again(_A, ("b", 2, 9), after=[_A], asked=("b", 3)),
        _again(_A, ("b", 2, 9), after=[_A], asked=("b", NEXT)),
        "b pairs nothing of epoch 4",
    ),
    (
        "continued",
        _again(_A, _B, after=[_A, ("b", 0, None)], asked=("b", 2)),
        _again(_A, _B, after=[_A, ("b", 0, None)], asked=("b", 1)),
        "b pairs nothing of epoch 1",
    ),
    (
        "grown",
        {"at": "time", "n": "integer"},
        {"n": "integer"},
        "(time) in this chain, but it is n",
    ),
    (
        "grown",
        {"at": "time"},
        {"at": "integer"},
        "'at' (time) in this chain, but it is integer now",
    ),
    ("submitted", (Equi("key"), NEXT), (Equi("key"), NEXT - 1), "b pairs nothing of epoch 3"),
    ("submitted", (And(), 9), (Ineq("no", "<", "no"), 9), "R has no column 'no'"),
    ("withdrawn", (_B, "b", 3), (_B, "b", NEXT), "b pairs nothing of epoch 4"),
    ("withdrawn", (("b", 3, 9), "b", 3), (("b", NEXT, 9), "b", NEXT), "b pairs nothing of epoch 4"),
    ("withdrawn", (_B, "a", 9), (("b", 1, 2), "b", 3), "b pairs nothing of epoch 3"),
    ("withdrawn", (_B, "c", 2), (_B, "c", 3), "c pairs nothing of epoch 3"),
    ("function", lambda r, _: r.key == "a", lambda r, _: r.key, "has to return 2 truth values"),
    (
        "function",
        lambda _, s: s.ts == 0,
        lambda r, _: (r.ts == 0)[:1],
        "array of bool of the shape",
    ),
    (
        "function",
        lambda r, _: r.value < r.rank + 1 - r.ts,
        lambda _, s: s.value == 0,
        "'value', wh",
    ),
    ("function", lambda r, _: r.key == "a", lambda r, _: hasattr(r, "no"), "returned bool False"),
    (
        "function",
        lambda *_: [True, False],
        lambda *_: [[True], []],
        "it returned list [[True], []]",
    ),
)
"""Actions: what each can be done with, what it just cannot be done with, and why."""

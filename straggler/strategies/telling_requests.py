"""Requests to chains and routers that just hold, the nearest that do not, and the reason."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
from pyspark.sql.types import StructType

from model.vocabulary import GroupingConfig
from model.vocabulary.join import END_US, NO_WATERMARK_US, And
from spark_impl.grouping import Grouping
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.tasks import Columns, require_columns
from spark_impl.grouping.windows import add_times, advance, start
from spark_impl.join import answers, ask, progress, register, status, submit, withdraw
from spark_impl.join.agent import status_of
from spark_impl.join.control import Clocks
from spark_impl.join.matching import Counts
from spark_impl.join.register import Register
from spark_impl.join.store import ChainStore, Commit, open_store
from spark_impl.runtime.storage import Location, locate
from straggler.strategies.telling_joins import NEXT, Named, queries_of, require_pairs

_A, _B, _C = ("a", 0, None), ("b", 1, None), ("c", 2, None)
_NONE = Counts(0, 0)
_FREE: Any = max
Change: TypeAlias = Callable[[Register], Register]


@contextmanager
def _place() -> Iterator[Location]:
    with TemporaryDirectory() as folder:
        yield locate(folder)


def _ask(asked: Callable[[Location], object]) -> None:
    """Ask a chain without epochs and history, whose query ``f`` is a function."""
    given = Register(queries_of(_A, ("f", 0, None)), 0, functions=("f",))
    with _place() as folder:
        register.change(open_store(folder, given.config), None, lambda _: given)
        asked(folder)


def _flush(folder: Location) -> None:
    known = Register(queries_of(_A), 0)
    register.change(ChainStore(folder), None, lambda _: register.begun(known, 0, flush=True))


def _ask_new(is_started: bool) -> None:
    """Ask a chain that has perhaps never been started."""
    given = Register(queries_of(_A), 0, functions=("a",))
    with _place() as folder:
        store = open_store(folder, given.config)
        if is_started:
            register.change(store, None, lambda _: given)
        nothing = ("a", "a function", (), 0, None, NO_WATERMARK_US, 0, 0, 0, 0)
        assert status(folder) == (-1, 0, False, (nothing,))
        assert progress(folder)[:2] == (-1, NO_WATERMARK_US)


def _change(given: tuple[Named, Sequence[Change], tuple[str, int]]) -> None:
    """Change the queries of a chain one after the other; then ask for the pairs of one."""
    query, changes, asked = given
    known = Register(queries_of(_A, query), NEXT)
    for change in changes:
        known = change(known)
    require_pairs(known.config, *asked)


def _become(after: Register, _known: Register | None) -> Register:
    return after


def _race(name: str) -> None:
    """Submit ``b``, then ``e``, while another process submits ``c``, then ``d``; ask for one."""
    begun = Register(queries_of(_A), 0)

    def submit_both(store: ChainStore, own: str, others: list[str]) -> None:
        def asked(known: Register | None) -> Register:
            after = register.submitted(known or begun, own, And())
            while others:
                other = register.submitted(known or begun, others.pop(), And())
                register.change(store, None, partial(_become, other))
            return after

        register.change(store, None, asked)

    with _place() as folder:
        store = ChainStore(folder)
        submit_both(store, "b", ["c"])
        submit_both(store, "e", ["d"])
        found = register.read(store, None)
        assert found is not None
        for each in ("b", "d", "e", name):
            found.require(each)


def _settle(given: tuple[Sequence[Named], Sequence[Named], tuple[str, int]]) -> None:
    """Ask for pairs after a process took back its last epoch, which another one committed.

    The queries are those that the one has noted, and those with which the other one ran.
    """
    noted, ran, asked = given
    names = [name for name, *_ in ran]
    nothing: dict[str, int] = {}
    done = Commit(
        NEXT - 1, False, queries_of(*ran), False, 0, nothing, nothing, _NONE, _NONE, 0, Clocks()
    )
    with _place() as folder:
        store = ChainStore(folder)
        register.change(store, None, lambda _: Register(queries_of(*noted), NEXT - 1))
        found = register.read(store, done)
        assert found is not None
        assert found.next == NEXT, found
        assert {*names, *(each for each, first, _ in noted if first >= NEXT)} <= {*found.names}
        require_pairs(found.config, *asked)


def _read(change: Callable[[bytes], bytes]) -> None:
    """Read a register whose file was changed."""
    given = Register(queries_of(_A), 0)
    with _place() as folder:
        store = ChainStore(folder)
        register.change(store, None, lambda _: given)
        content = change(json.dumps(given.to_json()).encode())
        (store.control / "00000001.json").write_bytes(content)
        assert register.read(store, None) == given


def _wait(given: tuple[Sequence[int], Sequence[int], int | None, str, int]) -> None:
    """Compare the number of tuples of a query that wait for a partner.

    Of both streams the ranks of those are given that workers hold. Each of two epochs has admitted
    five; the query ends with one, or was changed by somebody.
    """
    r_held, s_held, last, changed, due = given
    known = Register(queries_of(("q", 0, last)), 2, changed=(changed,))
    counts = [Counts(5 * epoch, 5 * epoch) for epoch in range(3)]
    nothing: dict[str, int] = {}
    rest = False, known.config, False, 0, nothing, nothing
    commits = [Commit(each, *rest, counts[each + 1], _NONE, 7, Clocks()) for each in range(2)]
    place: Any = SimpleNamespace(admitted_before=counts.__getitem__)
    held = np.array(r_held, np.int64), np.array(s_held, np.int64)
    found = status_of(place, known, commits, held, "q", And())
    if (found.pending, found.complete_us) != (due, 7 if due else END_US):
        raise ValueError(f"{found.pending} wait, and below {found.complete_us} all came out")


def _submit(name: str) -> Change:
    return lambda known: register.submitted(known, name, And())


def _withdraw(name: str) -> Change:
    return lambda known: register.withdrawn(known, name)


def _route(given: tuple[bool, bool, Sequence[str]]) -> None:
    """Route rows by the columns of their keys, order and values, from a stream or not."""
    is_streaming, is_stream, names = given
    kinds = {"k": "string", "n": "long", "x": "double", "t": "timestamp"}
    schema = StructType()
    for name, kind in {**kinds, **({names[3]: "integer"} if names[3:] else {})}.items():
        schema.add(name, kind)
    rows: Any = SimpleNamespace(isStreaming=is_streaming, columns=schema.names, schema=schema)
    require_columns(rows, Columns(*names[:3]), is_stream)


Spent: TypeAlias = Sequence[tuple[int, int]]
"""Number of tuples of each of two instances, and the microseconds that they took."""


def _time(given: tuple[Sequence[Spent], Mapping[str, Any], tuple[int, ...]]) -> None:
    """Compare the times with which the next window begins, when instances have worked.

    A window has four tuples. The settings are those of a configuration, and ``transfer_us``.
    """
    batches, settings, due = given
    own = {name: each for name, each in settings.items() if name != "transfer_us"}
    config = GroupingConfig(2, window_tuples=4, **own)
    standing = start(config)
    for spent in batches:
        tuples = sum(each for each, _ in spent)
        timed = add_times(standing, spent)
        standing = advance(config, timed, [SenderState()], tuples, settings.get("transfer_us", ()))
    if standing.table.times != due:
        raise ValueError(f"the times are {standing.table.times}")


_THREE, _LESS = ((3, 30), (0, 0)), ((1, 10), (2, 80))
_LATER = ((0, (5, 6)), (1, (7, 8)))
REQUESTED: Mapping[str, Callable[[Any], object]] = {
    "asked": _ask,
    "asked at first": _ask_new,
    "waited": _wait,
    "changed": _change,
    "raced": _race,
    "settled": _settle,
    "register": _read,
    "spread": lambda own: Grouping(2, **own),
    "spread by": _route,
    "learned": _time,
}
OF_REQUESTS: Sequence[tuple[str, Any, Any, str]] = (
    (
        "asked",
        lambda at: submit(at, "b", "key"),
        lambda at: submit(at, "b", _FREE),
        "query 'b': a store cannot hold a function; write",
    ),
    (
        "asked",
        lambda at: submit(at, "b", "key"),
        lambda at: submit(at, "b", "key", select=["r.key"]),
        "keeps no history, which select reads",
    ),
    (
        "asked",
        lambda at: submit(at, "a", "any"),
        lambda at: submit(at, "a", "key"),
        "the query 'a' has changed: a changed query needs another name",
    ),
    (
        "asked",
        lambda at: submit(at, "a", "any"),
        lambda at: submit(at, "f", "any"),
        "the query 'f' has changed: a changed query needs another name",
    ),
    (
        "asked",
        lambda at: answers(at, "a", select=["r.key"], complete=True),
        lambda at: answers(at, "b"),
        "there is no query 'b'; there are a, f",
    ),
    (
        "asked",
        lambda at: answers(at, "a"),
        lambda at: ask(at, "any"),
        "has no epoch yet",
    ),
    (
        "asked",
        lambda at: withdraw(at, "a"),
        lambda at: withdraw(at, "b"),
        "there is no query 'b'; there are a, f",
    ),
    (
        "asked",
        lambda at: withdraw(at, "a"),
        lambda at: [withdraw(at, each) for each in "af"],
        "the query 'f' has not begun, and a chain needs a query",
    ),
    (
        "asked",
        lambda at: submit(at, "b", "key"),
        lambda at: [each(at) for each in (_flush, lambda at: withdraw(at, "a"))],
        "was flushed, and nothing may follow that",
    ),
    ("asked at first", True, False, "has not been started yet"),
    ("waited", ([3, 5], [4, 9], 0, "", 2), ([3], [5, 9], 0, "", 1), "0 wait, and below 9223"),
    ("waited", ([0, 4], [0], 0, "", 3), ([], [1, 4], 0, "", 2), "0 wait, and below 9223"),
    ("waited", ([3], [], 1, "", 1), ([3, 8], [], 1, "q", 2), "0 wait, and below 9223"),
    ("waited", ([3, 9], [5], 1, "q", 3), ([3], [5], 1, "q", 0), "2 wait, and below 7 all"),
    ("waited", ([8], [], None, "q", 1), ([8], [], 2, "q", 0), "1 wait, and below 7 all"),
    (
        "changed",
        (_B, [_submit("b")], ("b", 9)),
        (_B, [_withdraw("b")], ("b", NEXT)),
        "b pairs noth",
    ),
    (
        "changed",
        (_B, [_withdraw("b"), _withdraw("b")], ("b", NEXT - 1)),
        (_B, [_withdraw("b"), _submit("b")], ("b", NEXT - 1)),
        "the query 'b' ended with epoch 3: a new query needs another name",
    ),
    (
        "changed",
        (("b", 0, NEXT), [_submit("b")], ("b", NEXT)),
        (("b", 0, NEXT - 1), [_submit("b")], ("b", NEXT - 1)),
        "the query 'b' ended with epoch 3: a new query needs another name",
    ),
    (
        "changed",
        (("b", 0, 2), [_withdraw("b")], ("b", 2)),
        (("b", 0, 2), [_withdraw("b")], ("b", 3)),
        "b pairs nothing of epoch 3",
    ),
    ("changed", (_B, [_submit("c")], ("c", NEXT)), (_B, [_submit("c")], ("c", 3)), "c pairs noth"),
    ("raced", "c", "f", "there is no query 'f'; there are a, c, b, d, e"),
    (
        "settled",
        ([_A, ("b", 1, 2)], [_A, _B], ("b", 3)),
        ([_A, ("b", 1, 2)], [_A, _B], ("b", NEXT)),
        "b pairs nothing of epoch 4",
    ),
    (
        "settled",
        ([_A, ("b", 1, 2)], [_A, ("b", 1, 3)], ("b", 3)),
        ([_A, ("b", 1, 2)], [_A, ("b", 1, 2)], ("b", 3)),
        "b pairs nothing of epoch 3",
    ),
    (
        "settled",
        ([_A, ("b", 1, 9)], [_A, _B], ("b", 9)),
        ([_A, ("b", 1, 9)], [_A, _B], ("b", 10)),
        "b pairs nothing of epoch 10",
    ),
    (
        "settled",
        ([_A, ("b", 3, None)], [_A, _B], ("b", 1)),
        ([_A, ("b", 3, None)], [_A, _B], ("b", 0)),
        "b pairs nothing of epoch 0",
    ),
    (
        "settled",
        ([_A, _B], [_A, _B], ("b", 9)),
        ([_A], [_A, _B], ("b", NEXT)),
        "b pairs nothing of epoch 4",
    ),
    (
        "settled",
        ([_A], [_A, _B], ("b", 3)),
        ([_A, ("b", 3, None)], [_A], ("b", 3)),
        "b pairs nothing of epoch 3",
    ),
    (
        "settled",
        ([_A, ("b", 3, None)], [_A], ("b", NEXT)),
        ([_A, ("b", 6, None)], [_A], ("b", 5)),
        "b pairs nothing of epoch 5",
    ),
    (
        "settled",
        ([_A, ("b", 3, NEXT)], [_A], ("b", NEXT)),
        ([_A, ("b", 3, 3)], [_A], ("b", NEXT)),
        "b pairs nothing of epoch 4",
    ),
    *(
        ("register", lambda told: told, lambda told, bad=bad: bad, "00000001.json is damaged: res")
        for bad in (b"", b"[]", b"{", b'{"next": 1}', b"\xff", b"[" * 100_000)
    ),
    *(
        ("spread", {"times_us": [1, "9ms"]}, {"times_us": bad}, "are not 2 whole microseconds, eac")
        for bad in ([0, 9], [1], [1, 1, 1], [1.5, 1])
    ),
    ("spread", {"transfer_us": [1, 1]}, {"transfer_us": [5, 0]}, "transfer_us [5, 0] are not 2"),
    ("spread by", (True, True, "knx"), (False, True, "knx"), "is bounded; it must be a stream"),
    ("spread by", (False, False, "knx"), (True, False, "knx"), "is a stream; it must be bounded"),
    ("spread by", (True, True, "k"), (True, True, "o"), "has no column 'o'; it has k, n, x, t"),
    ("spread by", (True, True, "k"), (True, True, "n"), "'n' is of type bigint; a key is a string"),
    ("spread by", (True, True, "kn"), (True, True, "kx"), "an order is made of integers"),
    ("spread by", (True, True, "knx"), (True, True, "knt"), "of type timestamp; a value is a num"),
    (
        "spread by",
        (True, True, [*"knx", "place"]),
        (True, True, [*"knx", "instance"]),
        "already has a column 'instance'",
    ),
    ("learned", ([_LESS, _THREE], {}, (10, 40)), ([_THREE], {}, (10, 10)), "the times are (1, 1)"),
    (
        "learned",
        ([_THREE, ((1, 13), (0, 0))], {}, (11, 11)),
        ([_LESS, _LESS], {}, (10, 41)),
        "the times are (10, 40)",
    ),
    (
        "learned",
        ([_THREE, _THREE], {"times_us": _LATER}, (10, 8)),
        ([_THREE], {"times_us": _LATER}, (7, 8)),
        "the times are (5, 6)",
    ),
    (
        "learned",
        ([((0, 0), (4, 1))], {}, (1, 1)),
        ([((0, 0), (4, 1))], {}, (1, 0)),
        "the times are (1, 1)",
    ),
    (
        "learned",
        ([_LESS, _LESS, _THREE, _THREE], {}, (10, 40)),
        ([_LESS, _LESS, _THREE, _THREE], {}, (10, 10)),
        "the times are (10, 40)",
    ),
    (
        "learned",
        ([_THREE, _THREE], {"transfer_us": (9, 50)}, (10, 50)),
        ([_LESS, _LESS], {"transfer_us": (11, 39)}, (10, 40)),
        "the times are (11, 40)",
    ),
)
"""Requests, columns and measurements: what just holds, what just does not, and why."""

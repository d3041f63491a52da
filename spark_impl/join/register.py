"""The register of a chain: its queries as its store has them, for all processes that ask.

    _control/00000017.json    the queries, their epochs, and the first epoch that has not begun

Rules of this file:

* A change is a new file with the next number, and no number is given twice: who comes second reads
  again. So all changes, of all processes, have one order.
* The beginning of an epoch is a change, too: requests before it hold in this epoch, requests behind
  it in a later one.
* The commit of an epoch has the queries as they were when it began. So old files can go, and a
  register that was lost is that of the last commit.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from model.vocabulary import JoinConfig
from model.vocabulary.join import ALWAYS, STREAMS, Predicate
from model.vocabulary.join_predicates import columns_of
from model.vocabulary.settings import JsonObject
from spark_impl.join import queries
from spark_impl.join.store import ChainStore, Commit, queries_of
from spark_impl.runtime.storage import InputProblem, Location, reason_of

_KEPT = 16
"""Number of old files that stay, so that who reads one does not have to read again."""


class Register(NamedTuple):
    """The queries of a chain at some moment."""

    config: JoinConfig
    """The chain, with all queries that it ever had, and their epochs."""
    next: int
    """The first epoch that has not begun: requests hold from there on."""
    flush: bool = False
    """True if the last epoch that has begun is a flush."""
    functions: tuple[str, ...] = ()
    """Queries whose predicates are functions."""
    changed: tuple[str, ...] = ()
    """Queries that were submitted or withdrawn."""
    selects: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Columns that answers to a query have besides, by query."""
    absent: tuple[tuple[str, str], ...] = ()
    """Streams and built-in columns that the inputs lack."""
    history: bool = False
    """True if the chain keeps its admitted tuples."""

    @property
    def names(self) -> list[str]:
        """The names of all queries."""
        return [name for name, _ in self.config.queries]

    def require(self, name: str) -> None:
        """Raise :class:`InputProblem` unless there is a query of this name."""
        if name not in self.names:
            msg = f"there is no query {name!r}; there are {', '.join(self.names)}"
            raise InputProblem(msg)

    def require_open(self, root: Location) -> None:
        """Raise :class:`InputProblem` if the chain in ``root`` was flushed."""
        if self.flush:
            msg = f"the chain in {root} was flushed, and nothing may follow that"
            raise InputProblem(msg)

    def to_json(self) -> JsonObject:
        """Return plain data; :meth:`from_json` reads it back."""
        return {**self._asdict(), "config": self.config.to_json(), "selects": {**self.selects}}

    @classmethod
    def from_json(cls, data: JsonObject) -> "Register":
        """Build a register from plain data."""
        return cls(**{**data, **queries_of(data)})


def register_of(done: Commit | None) -> Register | None:
    """Return the register as the commit of an epoch has it."""
    if done is None:
        return None
    return Register(
        done.config,
        done.epoch + 1,
        done.flush,
        done.functions,
        done.changed,
        done.selects,
        done.absent,
        done.history,
    )


# -------------------------------------------------------------------------------------- the files


def read(store: ChainStore, done: Commit | None) -> Register | None:
    """Return the register now; ``done`` is the last commit, which was read before."""
    return _settle(_read(store)[1], register_of(done))


def change(
    store: ChainStore, done: Commit | None, how: Callable[[Register | None], Register]
) -> Register:
    """Change the register, and return it; ``done`` is the last commit, which was read before.

    ``how`` returns what the register becomes; it is called again if others were quicker, and
    changes nothing if what it wants holds.
    """
    while True:
        number, noted = _read(store)
        after = how(_settle(noted, register_of(done)))
        if after == noted or _append(store, number, after):
            return after


def tidy(store: ChainStore) -> None:
    """Remove files that nobody needs any more."""
    for old in store.control.children(_NAME)[:-_KEPT]:
        old.remove()


_NAME = r"\d{8}\.json"


def _read(store: ChainStore) -> tuple[int, Register | None]:
    """Return the last file and its number, -1 if there is none."""
    while files := store.control.children(_NAME):
        try:
            content = files[-1].read_bytes()
        except FileNotFoundError:  # there are later ones by now
            continue
        except OSError as error:
            msg = f"{files[-1]} cannot be read: {reason_of(error)}"
            raise InputProblem(msg) from error
        try:
            return int(files[-1].stem), Register.from_json(json.loads(content))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            msg = f"{files[-1]} is damaged: restore it from a copy, or remove it and open the chain"
            raise InputProblem(msg) from error
    return -1, None


def _append(store: ChainStore, number: int, after: Register) -> bool:
    """Write the file behind ``number``; return whether it certainly counts."""
    before, file = (store.control / f"{each:08d}.json" for each in (number, number + 1))
    try:
        file.write_bytes(json.dumps(after.to_json()).encode(), is_new=True)
    except InputProblem:
        if _read(store)[0] > number:
            return False
        raise
    # The oldest files go first: if the one before is there, this number was free.
    return before.exists() if number >= 0 else _read(store)[0] < _KEPT


def _settle(noted: Register | None, done: Register | None) -> Register | None:
    """Return the register, given its last file and the last commit.

    Usually the file is later. If two processes ran the chain, one of them may have committed an
    epoch that the other one had taken back; then the epochs that are over are those of the commit.
    """
    if noted is None or done is None or noted.next >= done.next:
        return noted or done
    kept, spans = dict[str, Predicate](), list[tuple[str, int, int | None]]()
    last = done.next - 1
    ran, wanted = dict(done.config.queries), dict(noted.config.queries)
    had, now = done.config.spans(), noted.config.spans()
    for name, predicate in {**ran, **wanted}.items():
        first, end = now.get(name, ALWAYS) if name in wanted else (done.next, last)
        if name in ran:
            first, until = had.get(name, ALWAYS)
            lasted = until is None or until >= last
            end = max(end, last) if lasted and end is not None else end
        else:
            first = max(first, done.next)
        if end is None or first <= end:
            kept[name] = predicate
            spans.append((name, first, end))
    r_columns, s_columns = (
        tuple({**dict(done.config.columns(each)), **dict(noted.config.columns(each))}.items())
        for each in STREAMS
    )
    config = replace(
        noted.config,
        queries=tuple(kept.items()),
        epochs=tuple(spans),
        r_columns=r_columns,
        s_columns=s_columns,
    )
    return noted._replace(
        config=config,
        next=done.next,
        flush=done.flush,
        functions=tuple(sorted({*noted.functions, *done.functions})),
        changed=tuple(sorted({*noted.changed, *done.changed})),
        selects={**done.selects, **noted.selects},
    )


# ------------------------------------------------------------------------------------ the changes


def opened(known: Register | None, done: Commit | None, given: Register) -> Register:
    """Return the register of a chain that is opened, perhaps again, with some queries.

    Queries that were given before and never began are forgotten: only requests last. Errors are
    those of :func:`spark_impl.join.queries.continue_config`.
    """
    if known is None:
        return given
    ran = set[str]() if done is None else {name for name, _ in done.config.queries}
    kept = [each for each in known.config.queries if each[0] in {*ran, *known.changed}]
    if not kept:
        left = [each for each in given.config.queries if each[0] not in known.changed]
        spans = tuple(each for each in given.config.epochs if each[0] not in known.changed)
        config = given.config
        if left:
            config = replace(config, queries=tuple(left), epochs=spans)
    else:
        config = queries.continue_config(
            _with_queries(known, kept, done),
            known.functions,
            given.config,
            given.functions,
            given.next,
            known.changed,
        )
    names = {name for name, _ in config.queries}
    return given._replace(
        config=config,
        functions=tuple(each for each in given.functions if each in names),
        changed=known.changed,
        selects=known.selects,
    )


def _with_queries(
    known: Register, kept: list[tuple[str, Predicate]], done: Commit | None
) -> JoinConfig:
    """Return a chain with some of its queries, and with the columns that it cannot do without.

    Queries that were only given have the epochs of the commit: an opening that committed nothing
    changes nothing.
    """
    config, names = known.config, {name for name, _ in kept}
    epochs = [each for each in config.epochs if each[0] in names]
    used = {column for _, predicate in kept for column in columns_of(predicate)}
    if done is not None:
        used |= {(stream, name) for stream in STREAMS for name, _ in done.config.columns(stream)}
        only_given = {name for name, _ in done.config.queries} & names - {*known.changed}
        epochs = [each for each in epochs if each[0] not in only_given]
        epochs += [each for each in done.config.epochs if each[0] in only_given]
    r_columns, s_columns = (
        tuple(each for each in config.columns(stream) if (stream, each[0]) in used)
        for stream in STREAMS
    )
    return replace(
        config,
        queries=tuple(kept),
        epochs=tuple(epochs),
        r_columns=r_columns,
        s_columns=s_columns,
    )


def begun(known: Register, epoch: int, *, flush: bool) -> Register:
    """Return the register when an epoch has begun."""
    return known._replace(next=epoch + 1, flush=flush)


def taken_back(known: Register, epoch: int) -> Register:
    """Return the register when an epoch that had begun has failed: it will begin again."""
    return known._replace(next=epoch, flush=False) if known.next == epoch + 1 else known


def submitted(
    known: Register,
    name: str,
    predicate: Predicate,
    select: tuple[str, ...] = (),
) -> Register:
    """Return the register with a query that holds from the next epoch on, if it is not there.

    Raise :class:`InputProblem` if the name has ended or stands for another query, or if the
    predicate names a column that the chain does not carry.
    """
    asked = dict(known.config.queries)
    if name not in asked:
        return known._replace(
            config=queries.submit(known.config, name, predicate, known.next),
            changed=tuple(sorted({*known.changed, name})),
            selects={**known.selects, **({name: select} if select else {})},
        )
    before = asked[name], known.selects.get(name, ()), name in known.functions
    if before != (predicate, select, False):
        msg = f"the query {name!r} has changed: a changed query needs another name"
        raise InputProblem(msg)
    last = known.config.span(name)[1]
    if last is not None and last < known.next:
        msg = f"the query {name!r} ended with epoch {last}: a new query needs another name"
        raise InputProblem(msg)
    # Who asks for what the chain was given counts on it, too.
    return known._replace(changed=tuple(sorted({*known.changed, name})))


def withdrawn(known: Register, name: str) -> Register:
    """Return the register with a query that ends before the next epoch, if it has not ended.

    Raise :class:`InputProblem` for an unknown name, or if no query would be left.
    """
    known.require(name)
    first, last = known.config.span(name)
    if last is not None and last < known.next:
        return known
    if known.names == [name] and first >= known.next:
        msg = f"the query {name!r} has not begun, and a chain needs a query"
        raise InputProblem(msg)
    config = queries.withdraw(known.config, name, known.next)
    has_begun = first < known.next
    return known._replace(
        config=config,
        functions=tuple(each for each in known.functions if has_begun or each != name),
        changed=tuple(sorted({*known.changed, name})),
        selects={each: own for each, own in known.selects.items() if has_begun or each != name},
    )


def end_of(known: Register, name: str) -> int:
    """Return the epoch before which a query has ended that was withdrawn."""
    last = known.config.span(name)[1] if name in known.names else None
    return known.next if last is None else last + 1

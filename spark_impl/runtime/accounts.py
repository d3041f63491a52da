"""The ledger of a store: where each row is that was handed in, counted where it is decided.

A store has rows of kind :data:`ACCOUNT`: for each micro-batch, the rows that were read and the
number in each place (docs/production.md, "The ledger"). ``pending`` is the change, so sums over
micro-batches are the present numbers. The driver counts rows that were read, in the footers of a
history's files, and tasks count those about which they decide.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from model.vocabulary import join
from model.vocabulary.script import config as script
from model.vocabulary.settings import JsonObject
from spark_impl.runtime.histories import VALUE, bounds_of, file_of, read_footer
from spark_impl.runtime.landed_files import Landed, landed_in
from spark_impl.runtime.provenance import identity_of, read_note
from spark_impl.runtime.storage import Address, InputProblem, Location, locate
from spark_impl.runtime.stores import Draft, TableStore, require_view
from spark_impl.runtime.tables import BATCH, TableWriter, View, plan_of

ACCOUNT = "account"
COLUMNS = pa.schema([("place", pa.string()), ("rows", pa.int64()), ("seq", pa.int64())])
"""Columns of rows of this kind; ``seq`` is the last arrival number that was read."""
READ, REFUSED, ANSWERED, PENDING = "read", "refused", "answered", "pending"
REDELIVERED, LATE, SHED, UNASKED = "redelivered", "late", "shed", "unasked"
DROPPED = "dropped"
PLACES = (REDELIVERED, LATE, SHED, UNASKED, ANSWERED, PENDING, DROPPED)
"""Places besides those of refused rows."""
_REASONS = {
    LATE: pa.array([join.REASON_LATE, script.REASON_LATE]),
    SHED: pa.array([join.REASON_SHED]),
}
"""Reasons of listed rows that are in a place of their own, by place."""
_KINDS = {ACCOUNT: COLUMNS, "rejected": pa.schema([("reason", pa.string())])}
LANDING, QUERY = "landing", "query"
"""Stages that refuse rows."""


class Reading(NamedTuple):
    """The rows of a micro-batch, as the files say that Spark has planned for it."""

    rows: int
    seq: int | None
    """The last arrival number, None without rows."""


Counted: TypeAlias = tuple[Reading, dict[str, int]]
"""The reading of a micro-batch, and the places of rows that it has left out."""


def planned_files(history: Location, checkpoint: Location, batch: int) -> list[Location]:
    """Return the files of a history that Spark has planned for a micro-batch, and for none before.

    Two streams of one history may be at different files, and the plan of one that has nothing new
    is that of the micro-batch before.
    """
    own = offsets_of(checkpoint, batch)
    first = min((each["first"] for each in own), default=0)
    if plan_of(checkpoint, batch - 1).exists():
        first = max([first, *(each["next"] for each in offsets_of(checkpoint, batch - 1))])
    until = max((each["next"] for each in own), default=0)
    return [file_of(history, at) for at in range(max(first, 0), until)]


def offsets_of(checkpoint: Location, batch: int) -> list[JsonObject]:
    """Return where Spark's plan for a micro-batch ends in a history, for each stream of it."""
    text = plan_of(checkpoint, batch).read_bytes().decode("utf-8")
    # The version and the settings of the micro-batch, then a line for each source.
    offsets = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [each for each in offsets if {"next", "first", "requests"} <= each.keys()]


def read_planned(history: Location, checkpoint: Location, batch: int) -> Reading:
    """Count the rows of the files that Spark has planned for a micro-batch."""
    footers = [read_footer(file) for file in planned_files(history, checkpoint, batch)]
    bounds = [bounds_of(each, ("seq",)) for each in footers]
    last = max((each["seq"][1] for each in bounds if each), default=None)
    return Reading(sum(each.num_rows for each in footers), last)


def read_streams(writer: TableWriter, history: Location | None, batch: int, rows: int) -> Counted:
    """Count what a micro-batch has read, ``rows`` rows of streams that may come from a history.

    Rows of the history that are in none of the streams are unasked.
    """
    if history is None or writer.checkpoint is None:
        return Reading(rows, None), {}
    reading = read_planned(history, writer.checkpoint, batch)
    return reading, {UNASKED: reading.rows - rows}


def write_account(draft: Draft, reading: Reading, places: Mapping[str, int]) -> None:
    """Write what a micro-batch has read, and the number of rows in each place."""
    rows = [(READ, *reading), *((place, each, None) for place, each in places.items())]
    found = [dict(zip(COLUMNS.names, row, strict=True)) for row in rows if row[1]]
    draft.write(ACCOUNT, pa.Table.from_pylist(found, COLUMNS))


class Ledger(NamedTuple):
    """The places of all rows that were handed in."""

    read: int
    """Rows that the source has handed in."""
    landed: int | None
    """Rows that its landing has written to the history, None without a landing."""
    refused: Mapping[str, Mapping[str, int]]
    """Refused rows, by stage and reason."""
    redelivered: int = 0
    """Rows whose identity was accepted before."""
    late: int = 0
    """Rows that are in no answer because they came too late."""
    shed: int = 0
    """Rows that a chain has shed under load."""
    unasked: int = 0
    """Rows that belong to no window, or to no sensor of a script."""
    answered: int = 0
    """Rows that count in an answer, or were routed."""
    pending: int = 0
    """Rows that wait for the query, for a window, a watermark, a correction or a partner."""
    dropped: int = 0
    """Rows that were removed from the history before the query began."""

    def rows(self) -> Iterator[tuple[str, int]]:
        """Yield each place and its number of rows, refused rows by stage and reason."""
        for stage, reasons in self.refused.items():
            for reason, rows in reasons.items():
                yield f"{REFUSED} ({stage}): {reason}", rows
        for place in PLACES:
            yield place, getattr(self, place)

    @property
    def accounted(self) -> int:
        """Number of rows that are in a place."""
        return sum(rows for _, rows in self.rows())

    @property
    def balances(self) -> bool:
        """Return whether each row that was handed in is in exactly one place."""
        return self.accounted == self.read


@dataclass(frozen=True, slots=True)
class _AnyStore(TableStore):
    """The kinds of rows that the ledger needs, of any room."""

    kinds = _KINDS


def rows_of_batch(store: TableStore) -> dict[str, int]:
    """Return the number of rows that the last micro-batch read, and of those in each place."""
    account = _AnyStore(store.root, seen=store.view).read_kind(ACCOUNT, store.view.last)
    return dict(_share(_counts(account)))


def listed_as(place: str, rows: pa.Table) -> pa.Table:
    """Return those of some listed rows that are in a place; the reason says which."""
    if place in _REASONS:
        return rows.filter(pc.is_in(rows.column("reason"), _REASONS[place]))
    elsewhere = pa.concat_arrays([*_REASONS.values()])
    return rows.filter(pc.invert(pc.is_in(rows.column("reason"), elsewhere)))


def rows_since(view: View, first: int) -> Counter[str]:
    """Return the number of rows in each place of the micro-batches from ``first`` on."""
    opened, since = _AnyStore(view.root, seen=view), pc.field(BATCH) >= first
    return _counts(opened.read(view.of(ACCOUNT, first), ACCOUNT, since))


def ledger(store: Address) -> Ledger:
    """Return where each row is that was handed in to a query, without Spark.

    If the query reads the history of a :class:`Landing`, that begins with what Spark has handed to
    the landing. Raise :class:`InputProblem` if ``store`` is not the store of a query, or if an
    earlier version has written it.

    Args:
        store: folder with the answers of the query.

    Examples:
        >>> places = ledger(f"{folder}/power/answers")
        >>> places.read, places.landed, places.answered
        (3, 2, 2)
    """
    view = require_view(locate(store))
    opened = _AnyStore(view.root, seen=view)
    if not view.columns.issuperset(COLUMNS.names):
        msg = f"{view.root} has no ledger: an earlier version of Straggler has written it"
        raise InputProblem(msg)
    account = opened.read_kind(ACCOUNT).sort_by(BATCH)
    counts = _counts(account)
    is_shared = counts[UNASKED] < 0
    counts = _share(counts)
    places = {place: counts[place] for place in PLACES}
    reasons = listed_as(REFUSED, opened.read_kind("rejected")).column("reason")
    listed = {each["values"]: each["counts"] for each in reasons.value_counts().to_pylist()}
    landed = None if is_shared else _landed_for(view)
    if landed is not None:
        listed = _in_words_of_landing(listed, view)
    refused = {QUERY: dict(sorted(listed.items()))} if listed else {}
    known = account.filter(pc.field("seq").is_valid())
    until = _until(account)
    if landed is None or until is None:
        return Ledger(counts[READ], None, refused, **places)
    # Files are read one after the other, so rows are dropped before the first of them only.
    first = known.slice(0, 1).to_pylist()
    places[DROPPED] = first[0]["seq"] + 1 - first[0]["rows"] if first else 0
    places[PENDING] += landed.rows - until
    return Ledger(landed.read, landed.rows, {**_refused_by(landed), **refused}, **places)


def first_unread(view: View) -> int | None:
    """Return the first arrival number that a query has not read, None if only it knows the rows."""
    account = _AnyStore(view.root, seen=view).read_kind(ACCOUNT)
    is_shared = _counts(account)[UNASKED] < 0
    return None if is_shared or _landed_for(view) is None else _until(account)


def _until(account: pa.Table) -> int | None:
    """Return the arrival number behind those that were read, None if rows came without them."""
    last = pc.max(account.column("seq")).as_py()
    if last is None:
        return None if _counts(account)[READ] else 0
    return int(last) + 1


def ledger_of_landing(history: Address, checkpoint: Location | None = None) -> Ledger:
    """Return where each row is that Spark has handed to a landing.

    Rows that have landed are pending: this does not know the queries. Raise :class:`InputProblem`
    if no landing has written the history.
    """
    folder = locate(history)
    landed = landed_in(folder, checkpoint)
    if landed is None:
        msg = f"{folder} is not the history of a landing"
        raise InputProblem(msg)
    return Ledger(landed.read, landed.rows, _refused_by(landed), pending=landed.rows)


def _landed_for(view: View) -> Landed | None:
    """Return what the landing of a store's history has done, None if it has none, or has moved."""
    if view.history is None:
        return None
    history = locate(view.history["address"])
    return landed_in(history) if identity_of(history) == view.history["id"] else None


def _in_words_of_landing(listed: Mapping[str, int], view: View) -> dict[str, int]:
    """Return refused rows by reasons that name the column of values, if the landing has one.

    The landing leaves a value NULL that is missing, or that it cannot read.
    """
    note = read_note(locate(view.history["address"])) if view.history else None
    named = (note or {}).get("value")
    column = named if isinstance(named, str) else VALUE
    found = Counter[str]()
    for reason, rows in listed.items():
        about = reason.replace("is NULL", "is missing or not a number")
        found[about.replace(VALUE, column)] += rows
    return dict(found)


def _refused_by(landed: Landed) -> dict[str, Mapping[str, int]]:
    return {LANDING: landed.refused} if landed.refused else {}


def _counts(account: pa.Table) -> Counter[str]:
    """Return the number of rows in each place, and of those that were read."""
    found = Counter[str]()
    for row in account.to_pylist():
        found[row["place"]] += row["rows"]
    return found


def _share(counts: Counter[str]) -> Counter[str]:
    """Count rows that streams share, which came once with each of them, for each of them."""
    if counts[UNASKED] < 0:
        counts[READ] -= counts.pop(UNASKED)
    return counts

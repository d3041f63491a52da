"""The files of a landing: what the last one says, and the lists of rejected rows that count.

The metadata of a file has the number of the micro-batch, a digest of Spark's plan for it, and the
number of rows that Spark has handed in until its end. So the number of rows that are not in the
history is known, also if their lists were removed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_impl.runtime.histories import bounds_of, files_of, read_footer, read_parquet
from spark_impl.runtime.provenance import read_note
from spark_impl.runtime.storage import InputProblem, Location
from spark_impl.runtime.tables import digest_of

BATCH, PLAN, READ = b"straggler.batch", b"straggler.plan", b"straggler.read"
"""Metadata of a file: the micro-batch, a digest of Spark's plan for it, and the rows until then."""
_REJECTED = r"\d+-\w+-\d+-\d+\.parquet"
_FAULTS = pa.schema([("column", pa.string()), ("reason", pa.string()), ("seq", pa.int64())])


class LastFile(NamedTuple):
    """The last file of a history."""

    number: int = -1
    batch: int = -1
    plan: int = 0
    """Digest of Spark's plan for the micro-batch, 0 before the first one."""
    read: int = 0
    """Rows that Spark has handed in until its end."""
    first: int = 0
    """The first arrival number of the file."""
    seq: int = -1
    arrival_us: int = -(1 << 63)


def find_last(history: Location) -> LastFile:
    """Return the last file of a history; without files, what comes before the first one."""
    files = files_of(history)
    return last_of(files[-1], read_footer(files[-1])) if files else LastFile()


def last_of(file: Location, footer: pq.FileMetaData) -> LastFile:
    """Return what a footer says. Raise :class:`InputProblem` if no landing has written it."""
    kept = footer.metadata or {}
    if BATCH not in kept:
        msg = f"{file} was not written by a landing"
        raise InputProblem(msg)
    bounds = bounds_of(footer, ("seq", "arrival_us"))
    batch, plan, read = (int(kept.get(name, 0)) for name in (BATCH, PLAN, READ))  # rewritten: 0
    return LastFile(int(file.stem), batch, plan, read, *bounds["seq"], bounds["arrival_us"][1])


def require_same(file: Location, last: LastFile, rows: int) -> None:
    """Raise :class:`InputProblem` unless a repeated micro-batch lands the rows of its file.

    A stricter guard refuses more of the same rows, so the number of rows tells guards apart.
    """
    landed = last.seq - last.first + 1
    if rows != landed:
        msg = (
            f"{file} has {landed} rows of micro-batch {last.batch}, of which {rows} would land now:"
            " finish it with the max_future of the run that began it, and with the same source"
        )
        raise InputProblem(msg)


class RejectedList(NamedTuple):
    """A file with the rejected rows of a micro-batch."""

    file: Location
    batch: int
    plan: int
    """Digest of Spark's plan for the micro-batch."""
    gone: int
    """Number of rows that did not land."""


def name_of_list(batch: int, plan: int, faults: int, gone: int) -> str:
    """Return the name of a list with ``faults`` rows, of which ``gone`` did not land."""
    return f"{batch:08d}-{plan:x}-{faults}-{gone}.parquet"


def rejected_lists(history: Location) -> list[RejectedList]:
    """Return the lists of rejected rows, one for each plan of a micro-batch."""
    found = {}
    for file in (history / "_rejected").children(_REJECTED):
        batch, plan, _, gone = file.stem.split("-")
        digest = int(plan, 16)
        found[batch, digest] = RejectedList(file, int(batch), digest, int(gone))
    return [*found.values()]


def rows_before(
    lists: Sequence[RejectedList],
    last: LastFile,
    checkpoint: Location | None,
    batch: int | None = None,
) -> int:
    """Return the number of rows that Spark has handed in before a micro-batch, or until now.

    ``last`` is the last file before it. Lists behind it count if they are of the plans in the
    ``checkpoint`` of the landing, or if it is not known.
    """
    behind = [each for each in lists if each.batch > last.batch]
    own = (each for each in behind if digest_of(checkpoint, each.batch) in (0, each.plan))
    return last.read + sum(each.gone for each in own if batch is None or each.batch < batch)


class Landed(NamedTuple):
    """The rows that Spark has handed to a landing, and their places."""

    read: int
    """Number of rows that Spark has handed to it."""
    rows: int
    """Number of rows that it has written to the history."""
    refused: Mapping[str, int]
    """Number of rows that did not land, by column and reason, as lists have them."""


def landed_in(history: Location, checkpoint: Location | None = None) -> Landed | None:
    """Return what the landing of a history has done; None if no landing writes it.

    Lists of another plan than that of the landing do not count: its rows are others, and came again
    to the landing that went on. ``checkpoint`` is that of the landing, if it is known.
    """
    if read_note(history) is None:
        return None
    last = find_last(history)
    lists = rejected_lists(history)  # once: the landing may be writing another one
    read = rows_before(lists, last, checkpoint)
    if sum(each.gone for each in lists) > read - (last.seq + 1):
        lists = _own_lists(history, lists, checkpoint)
    faults = read_parquet([each.file for each in lists if each.gone], _FAULTS)
    gone = faults.filter(pc.field("seq").is_null())
    columns = (gone.column(name).to_pylist() for name in ("column", "reason"))
    refused = Counter(f"{column} {reason}" for column, reason in zip(*columns, strict=True))
    return Landed(read, last.seq + 1, dict(sorted(refused.items())))


def _own_lists(
    history: Location, lists: Sequence[RejectedList], checkpoint: Location | None
) -> list[RejectedList]:
    """Return the lists of plans that the landing has carried out, as far as that is known."""
    files = (last_of(file, read_footer(file)) for file in files_of(history))
    plans = {each.batch: each.plan for each in files}
    own = []
    for each in lists:
        plan = plans.get(each.batch) or digest_of(checkpoint, each.batch)
        if plan in (0, each.plan):
            own.append(each)
    return own

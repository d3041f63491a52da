"""Many workloads in one query, told apart by a grouping column.

Rules of this file:

* File j of the history holds batch j of every workload that has one.
* Faults strike the query as a whole.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from model.vocabulary import Event, Workload
from spark_impl.runtime.histories import append
from spark_impl.windows.blocks import COLUMNS

CASE = "case_id"
"""Grouping column that tells the workloads of a pack apart."""
_Config = TypeVar("_Config")


class Query(Protocol):
    """A query with a store, opened as often as it is started again."""

    def run_available(self) -> None:
        """Process everything that is in the history now."""

    def flush(self, wanted: Callable[[tuple[Any, ...]], bool] | None = None) -> None:
        """The same, then end the streams of some combinations of the grouping columns' values."""


def drive(
    cases: Mapping[str, Workload],
    history: Path,
    store: Path,
    opened: Callable[[], Query],
    killed: Callable[[int], object],
) -> bool:
    """Write the history of a pack, and run its query with all faults; False if nothing arrives.

    ``killed`` is told each micro-batch in which the query was killed.
    """
    batches = {name: list(workload.batches()) for name, workload in cases.items()}
    count = max((len(each) for each in batches.values()), default=0)
    if not count:
        return False
    done = 0
    faults = sorted({fault for workload in cases.values() for fault in workload.faults})
    for fault in [*(each for each in faults if each.at < count), None]:
        upto = count if fault is None else fault.at + 1
        for j in range(done, upto):
            append(history, _file(batches, j))
        done = max(done, upto)
        query = opened()
        if fault is None and any(workload.flush for workload in cases.values()):
            query.flush(lambda group: cases[group[0]].flush)  # after all that is there
        else:
            query.run_available()
        if fault is not None and fault.kind == "kill":
            lose_commit(store)
            killed(fault.at)
    return True


def lose_commit(store: Path) -> None:
    """Make a store look as after a crash just before Spark noted that the last batch was done."""
    commits = store / "checkpoint" / "commits"
    last = max(int(path.name) for path in commits.glob("[0-9]*"))
    for path in (commits / str(last), commits / f".{last}.crc"):
        path.unlink(missing_ok=True)


def common_config(
    read: Callable[[Mapping[str, Any]], _Config], cases: Mapping[str, Workload]
) -> _Config:
    """The configuration that all workloads of a pack have."""
    configs = {name: read(case.config) for name, case in cases.items()}
    first = next(iter(configs))
    for name, config in configs.items():
        if config != configs[first]:
            msg = f"the cases {first!r} and {name!r} of a pack have different configurations"
            raise ValueError(msg)
    return configs[first]


def _file(batches: Mapping[str, list[tuple[Event, ...]]], j: int) -> pa.Table:
    """Batch j of every case that has one."""
    rows = [
        {CASE: name, **event._asdict()}
        for name, own in batches.items()
        if j < len(own)
        for event in own[j]
    ]
    return pa.Table.from_pylist(rows, schema=schema_of(pa.field(CASE, pa.string())))


def schema_of(*groups: pa.Field) -> pa.Schema:
    """The columns of a history behind some grouping columns."""
    return pa.schema([*groups, *(pa.field(*each) for each in COLUMNS.items())])

"""The tables in which a query keeps what it found out, and the records that tasks leave."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from spark_impl.windows.records import LATE, REJECTED, RESULT
from spark_impl.windows.room import Room

INT, FLOAT, TEXT, FLAG = pa.int64(), pa.float64(), pa.string(), pa.bool_()
Columns = Mapping[str, pa.DataType]
"""Columns of a table behind the grouping columns and ``task``."""
WINDOW: Columns = {"start_us": INT, "key": TEXT}
"""Columns that name a window of a task."""
PAIRS: Columns = {**WINDOW, "source_id": INT, "event_time_us": INT, "windows": INT}
"""A row stands for a tuple and a run of ``windows`` windows, the first begins at ``start_us``."""
_STREAM: Mapping[str, Columns] = {
    "result": {**WINDOW, "value": FLOAT, "n_rcv": INT, "slack_us": INT, "wm_us": INT},
    "late": PAIRS,
    "rejected": {"seq": INT, "source_id": INT, "reason": TEXT},
}
_PROGRESS: Columns = {
    "t_max_us": INT,
    "slack_us": INT,
    "wm_us": INT,
    "seq": INT,
    "flushed": FLAG,
}
_CORRECTION: Mapping[str, Columns] = {
    "revision": {**WINDOW, "revision": INT, "value": FLOAT, "n": INT},
    "correlation": {
        **WINDOW,
        "revision": INT,
        "n": INT,
        "cross": INT,
        "delay_spread": INT,
        "value_spread": INT,
    },
    "correction": {
        "reason": TEXT,
        "pairs": INT,
        "windows": INT,
        "rows_read": INT,
        "rows_needed": INT,
    },
    "cleared": PAIRS,
    "pending": PAIRS,
}


def tables(room: Room[Any]) -> dict[str, Columns]:
    """All tables of a room's queries."""
    return {**stream_tables(room), **_CORRECTION}


def stream_tables(room: Room[Any]) -> dict[str, Columns]:
    """Those that the stream part writes; the others belong to the correction."""
    return {**_STREAM, **room.columns, "progress": {**_PROGRESS, **room.progress}}


def found(room: Room[Any]) -> Columns:
    """What one task has found in one micro-batch, as a row: where it stands, then its records."""
    progress = stream_tables(room)["progress"]
    return {"active": FLAG, **progress, **dict.fromkeys(("keys", *records_of(room)), pa.binary())}


def records_of(room: Room[Any]) -> dict[str, Any]:
    """The tables that tasks leave records for, and the dtype of these."""
    return {"result": RESULT, "late": LATE, "rejected": REJECTED, **room.records}

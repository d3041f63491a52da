"""Figures of the last micro-batch of a store."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import SlackConfig
from spark_impl.runtime.storage import locate
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import TableWriter
from spark_impl.slack.query import SLACK
from spark_impl.windows.progress import BatchProgress, progress
from spark_impl.windows.store import open_store

NO_CLOCK = -(1 << 62)
"""Watermark of a task that has accepted nothing."""
SMALL = st.integers(0, 9)
ROWS = {
    "progress": {"slack_us": SMALL, "wm_us": st.sampled_from([NO_CLOCK, -5, 0, 3, 8, 1 << 60])},
    "result": {"n_rcv": SMALL},
    "late": {"windows": SMALL},
    "pending": {"windows": SMALL},
    "correction": {"pairs": SMALL},
    "rejected": {"seq": SMALL},
}
"""Columns that the figures of a micro-batch depend on, by table."""
BATCHES = st.lists(
    st.fixed_dictionaries(
        {
            name: st.lists(st.fixed_dictionaries(columns), max_size=3)
            for name, columns in ROWS.items()
        }
    ),
    max_size=3,
)


@given(BATCHES)
def test_progress_shows_the_last_micro_batch(
    tmp_path_factory: pytest.TempPathFactory, batches: list[dict[str, list[dict[str, int]]]]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    store = open_store(locate(folder), SLACK, SlackConfig(4, 2), ())
    for number, tables in enumerate(batches):
        own = {
            name: pa.Table.from_pylist(
                [{"task": task, **row} for task, row in enumerate(rows)], store.schema(name)
            )
            for name, rows in tables.items()
        }
        writer = TableWriter(store.root)
        draft = Draft(store, writer.view, number)
        draft.replace("pending", own.pop("pending"), "driver")
        for name, table in own.items():
            draft.write(name, table, "driver")
        draft.commit(writer)
    last_number = max((i for i, each in enumerate(batches) if any(each.values())), default=-1)
    last = batches[last_number] if last_number >= 0 else {name: [] for name in ROWS}
    pending = batches[-1]["pending"] if batches else []

    def column(table: str, name: str) -> list[int]:
        return [row[name] for row in last[table]]

    lowest = min(column("progress", "wm_us"), default=None)
    pairs, late = sum(column("result", "n_rcv")), sum(column("late", "windows"))
    found = progress(SLACK, folder)
    assert found == BatchProgress(
        batch=last_number,
        tasks=len(last["progress"]),
        slack_us=max(column("progress", "slack_us"), default=0),
        watermark_us=None if lowest == NO_CLOCK else lowest,
        pairs=pairs,
        late_pairs=late,
        pending_pairs=sum(row["windows"] for row in pending),
        corrections=len(last["correction"]),
        rejected=sum(len(each["rejected"]) for each in batches),
        held_by=None
        if lowest in (None, NO_CLOCK)
        else f"task {column('progress', 'wm_us').index(lowest)}",
    )
    assert found.late_share == (late / (pairs + late) if pairs + late else 0)

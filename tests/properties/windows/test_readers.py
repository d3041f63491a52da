"""Rows that are read from a store belong together, although its query goes on writing."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import SlackConfig
from properties.promised import Reached, promised
from spark_impl.runtime.storage import locate
from spark_impl.slack.query import SLACK
from spark_impl.windows.answers import read_undisturbed
from spark_impl.windows.progress import BatchProgress, progress
from spark_impl.windows.store import open_store

UNDISTURBED, CHANGED, INCOMPLETE, NOTHING, FAILED = (
    "undisturbed",
    "the micro-batch changed",
    "the micro-batch was incomplete",
    "there is nothing yet",
    "reading failed twice",
)


class Moment(NamedTuple):
    """A store at one moment: its last micro-batch, and the mark of its completion."""

    last: int
    mark: int | None


class Attempt(NamedTuple):
    """Behaviour of a store while it is read once."""

    before: Moment
    mark_after: int | None
    fails: bool


MARKS = st.sampled_from([0, 0, 1, None])
MOMENTS = st.builds(Moment, st.sampled_from([-1, 0, 1, 1, 1]), MARKS)
ATTEMPTS = st.lists(
    st.builds(Attempt, MOMENTS, MARKS, st.sampled_from([False, False, True])), max_size=6
)


class Writer:
    """A store that changes while it is read."""

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        self._attempts = [*attempts, Attempt(Moment(2, 7), 7, fails=False)]
        self._marks: list[int | None] = []
        self.tries = -1

    def committed(self) -> int:
        """Return the last complete micro-batch."""
        self.tries += 1
        before, after, _ = self._attempts[self.tries]
        self._marks = [before.mark, after]
        return before.last

    def mark(self, batch: int) -> int | None:
        """Return the mark of a micro-batch."""
        assert batch == self._attempts[self.tries].before.last
        return self._marks.pop(0)

    def read(self, last: int) -> tuple[int, int]:
        """Return what is read, or fail as a reader does whose file disappears."""
        assert last == self._attempts[self.tries].before.last
        if self._attempts[self.tries].fails:
            raise FileNotFoundError
        return self.tries, last


def expected(attempts: Sequence[Attempt]) -> tuple[int, str]:
    """Return the attempt that decides, and how it ends."""
    failed: list[Moment] = []
    for number, (before, after, fails) in enumerate(attempts):
        if fails:
            if before in failed[-1:]:
                return number, FAILED
            failed.append(before)
        elif before.last < 0:
            return number, NOTHING
        elif before.mark is not None and after == before.mark:
            return number, UNDISTURBED
    return len(attempts), UNDISTURBED


def check(attempts: Sequence[Attempt]) -> Counter[str]:
    """Read a store that changes; return what disturbed the reader."""
    writer = Writer(attempts)
    number, outcome = expected(attempts)
    if outcome == FAILED:
        with pytest.raises(FileNotFoundError):
            read_undisturbed(writer, writer.read)  # type: ignore[arg-type]  # it stands in for one
    else:
        assert read_undisturbed(writer, writer.read)[0] == number  # type: ignore[arg-type]  # as above
    assert writer.tries == number
    passed = [each for each in attempts[:number] if not each.fails]
    met = Counter([outcome])
    met[INCOMPLETE] = sum(each.before.mark is None for each in passed)
    met[CHANGED] = len(passed) - met[INCOMPLETE]
    return met


@promised(UNDISTURBED, CHANGED, INCOMPLETE, NOTHING, FAILED, examples=100)
@given(attempts=ATTEMPTS)
def test_a_reader_reads_again_until_nothing_has_changed(
    reached: Reached, attempts: list[Attempt]
) -> None:
    reached.add(check(attempts))


# ------------------------------------------------------------------------------------- progress


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
        mark = own.pop("pending")
        written = {name: store.write(name, number, table) for name, table in own.items()}
        store.complete(number, mark, written)
    last = batches[-1] if batches else {name: [] for name in ROWS}

    def column(table: str, name: str) -> list[int]:
        return [row[name] for row in last[table]]

    lowest = min(column("progress", "wm_us"), default=None)
    pairs, late = sum(column("result", "n_rcv")), sum(column("late", "windows"))
    found = progress(SLACK, folder)
    assert found == BatchProgress(
        batch=len(batches) - 1,
        tasks=len(last["progress"]),
        slack_us=max(column("progress", "slack_us"), default=0),
        watermark_us=None if lowest == NO_CLOCK else lowest,
        pairs=pairs,
        late_pairs=late,
        pending_pairs=sum(column("pending", "windows")),
        corrections=len(last["correction"]),
        rejected=sum(len(each["rejected"]) for each in batches),
        held_by=None
        if lowest in (None, NO_CLOCK)
        else f"task {column('progress', 'wm_us').index(lowest)}",
    )
    assert found.late_share == (late / (pairs + late) if pairs + late else 0)

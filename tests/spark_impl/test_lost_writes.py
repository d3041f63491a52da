"""A process that dies at any write, and a history that loses rows: no answer is wrong."""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import fs
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from model.vocabulary import SlackConfig
from model.vocabulary.settings import PlainData
from properties import profiles
from properties.promised import Reached, promised
from spark_impl.runtime import cells, columns, landing, storage
from spark_impl.runtime.histories import files_of, history_schema, write_parquet
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.limits import Limits
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import TableWriter, plan_of
from spark_impl.slack import SLACK
from spark_impl.windows import processor
from spark_impl.windows.blocks import encode
from spark_impl.windows.correction import Corrections
from spark_impl.windows.history import History
from spark_impl.windows.processor import WindowProcessor
from spark_impl.windows.room import WindowSettings
from spark_impl.windows.store import WindowStore, all_tables, open_store
from tests.spark_impl.test_windows_query import FIRST, LATE, history

CONFIG = SlackConfig(size_us=10, slide_us=5, control="fixed", gamma_us=3)
ASKED = SLACK.settings(CONFIG)
BATCHES = (FIRST, LATE, [(4, 32.0), (40, 64.0)])
Tables = dict[str, pa.Table]
Visible = dict[str, list[dict[str, PlainData]]]


class Killed(BaseException):
    """The process is dead and cleans up nothing."""


class Disk(fs.LocalFileSystem):  # type: ignore[misc]  # pyarrow has no types
    """Local files of a process that dies at one of its writes or removals."""

    def __init__(self, writes: int) -> None:
        super().__init__(use_mmap=True)
        self._left = writes

    def create_dir(self, path: str, *, recursive: bool = True) -> None:
        self.count()
        super().create_dir(path, recursive=recursive)

    def open_output_stream(self, path: str) -> pa.NativeFile:
        if not self._left:
            Path(path).write_bytes(b"PAR1, and then no more")
        self.count()
        return super().open_output_stream(path)

    def move(self, src: str, dest: str) -> None:
        self.count()
        super().move(src, dest)

    def delete_file(self, path: str) -> None:
        self.count()
        super().delete_file(path)

    def delete_dir(self, path: str) -> None:
        self.count()
        super().delete_dir(path)

    def count(self) -> None:
        """Count a write, and die if it is the one."""
        if not self._left:
            raise Killed
        self._left -= 1


def attempts(monkeypatch: pytest.MonkeyPatch, what: Callable[[], object]) -> Iterator[int]:
    """Die at the first write, and so on until all are done: at every one at night, or at some."""
    for writes in range(0, 200, profiles.choose(3, nightly=1)):
        disk = Disk(writes)
        with monkeypatch.context() as patch, suppress(Killed):
            patch.setattr(storage, "_connect", lambda _system, disk=disk: disk)
            patch.setattr(TableWriter, "commit", around(disk, TableWriter.commit))
            what()
            return
        yield writes
    pytest.fail("it never ends")


def around(disk: Disk, commit: Callable[..., None]) -> Callable[..., None]:
    """Return a commit, which Delta writes at once, with a death before it or behind it."""

    def run(writer: TableWriter, *given: Any) -> None:
        disk.count()
        commit(writer, *given)
        disk.count()

    return run


def stream_part(source: Path, place: WindowStore, config: SlackConfig = CONFIG) -> list[Tables]:
    """Return the stream tables of every micro-batch, and of a final flush."""
    operator = WindowProcessor(SLACK, config)
    tester = TwsTester(operator)
    found = []
    for file in [*files_of(locate(source)), None]:
        block = None if file is None else encode(ASKED, pq.read_table(file.path))
        operator.outputs.clear()
        tester.test(0, [Row(block=block)])
        found.append(processor.output_tables(place, ASKED, operator.outputs))
    return found


def finish(
    place: WindowStore, source: Path, batch: int, found: Tables, asked: WindowSettings = ASKED
) -> None:
    """Write a micro-batch as :class:`SlackQuery` does."""
    draft = Draft(place, TableWriter(place.root), batch)
    for name, rows in found.items():
        draft.write(name, rows)
    history_files = History(None, asked, locate(source), ())  # type: ignore[arg-type]  # no session is needed
    if draft.is_new:
        Corrections(asked, place, history_files).run(draft, found["progress"])
    draft.commit()


def visible(place: WindowStore) -> Visible:
    """Return the tables that a reader sees."""
    return {name: place.at().read_kind(name).to_pylist() for name in all_tables(SLACK)}


def test_no_reader_sees_half_a_batch_and_doing_it_again_repairs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = history(tmp_path / "h", *BATCHES)
    straight, bumpy = (
        open_store(tmp_path / name, SLACK, CONFIG, ()) for name in ("straight", "bumpy")
    )
    expected = {-1: visible(straight)}
    interruptions = 0
    for batch, found in enumerate(stream_part(source, straight)):
        finish(straight, source, batch, found)
        expected[batch] = visible(straight)
        for _ in ("for the first time", "again, because Spark did not note that it was done"):
            for _ in attempts(monkeypatch, lambda: finish(bumpy, source, batch, found)):  # noqa: B023  # it is called within the loop
                assert bumpy.at().view.last in (batch - 1, batch)
                assert visible(bumpy) == expected[bumpy.at().view.last]
                interruptions += 1
            assert visible(bumpy) == expected[batch]
    assert expected[batch]["revision"]
    assert expected[batch]["late"]
    assert interruptions > profiles.choose(30, nightly=100)


# ---------------------------------------------------------- a history that has lost rows


Batch = list[tuple[int, float]]
LOST = "has lost rows: it holds 2 of at least 3 deliveries for the window .* of task 0, key 'a'$"


@pytest.mark.parametrize(
    ("gamma_us", "max_age_us", "reason"), [(4, 14, "gamma"), (5, 13, "age"), (5, 14, "flush")]
)
def test_a_correction_is_due_beyond_its_limits(
    tmp_path: Path, gamma_us: int, max_age_us: int, reason: str
) -> None:
    """Late tuples at 12 and 17 wait; the watermark is 26."""
    source = history(tmp_path / "h", FIRST, LATE)
    config = replace(CONFIG, gamma_us=gamma_us, max_age_us=max_age_us)
    place = open_store(tmp_path / "s", SLACK, config, ())
    for batch, found in enumerate(stream_part(source, place, config)):
        finish(place, source, batch, found, SLACK.settings(config))
    assert place.at().read_kind("correction").column("reason").to_pylist() == [reason]


def test_correction_notices_that_the_rows_of_a_file_are_gone(tmp_path: Path) -> None:
    """An earlier correction has found three deliveries; there are as many late tuples again."""
    batches: list[Batch] = [[(3, 1.0), (26, 2.0)], [(4, 4.0), (9, 1.0)], [(5, 4.0), (1, 4.0)]]
    source = history(tmp_path / "h", *batches)
    found = stream_part(source, open_store(tmp_path / "scratch", SLACK, CONFIG, ()))
    for each in files_of(locate(source)):  # files of other programs, which are no chain
        write_parquet(pq.read_table(each.path).replace_schema_metadata(None), each)
    place = open_store(tmp_path / "s", SLACK, CONFIG, ())
    for batch in range(2):
        finish(place, source, batch, found[batch])
    before = visible(place)
    file = files_of(locate(source))[1]
    whole = file.read_bytes()
    write_parquet(history_schema().empty_table(), file)
    with pytest.raises(InputProblem, match=LOST):
        finish(place, source, 2, found[2])
    assert place.at().view.last == 1
    assert visible(place) == before
    file.write_bytes(whole)
    for batch in range(2, len(found)):
        finish(place, source, batch, found[batch])
    windows = {row["start_us"]: row["n"] for row in place.at().read_kind("revision").to_pylist()}
    assert windows[0] == sum(0 <= ts < 10 for rows in batches for ts, _ in rows)


# ---------------------------------------------------------- a landing that goes on otherwise

GUARDS_US = (None, 0, 5)
STARTS = st.lists(st.tuples(st.sampled_from(GUARDS_US), st.integers(0, 12)), max_size=3)
"""Guards of the starts that die, and the number of writes that each of them can do."""
AHEAD_US = st.lists(st.sampled_from([0, 5, 6, None]), min_size=1, max_size=4)
"""Distances of event times beyond the arrival time; ``None`` is a time that cannot be read."""
FIELDS = [columns.Field("event_time_us", "ts", cells.TIMES)]
FIELDS += [columns.Field("value", "v", cells.NUMBERS)]


class PlannedRows:
    """The rows of a micro-batch, which one task in this process reads, numbers and writes."""

    def __init__(self, ahead_us: Sequence[int | None], guard_us: int | None) -> None:
        names, typed = {"event_time_us": "ts", "value": "v"}, ("event_time_us", "value", "key")
        chosen = columns.Chosen(
            dict.fromkeys(("key", "source_id", "arrival_us")) | names, ["value"], (), "us", guard_us
        )
        schema = pa.schema([history_schema().field(name) for name in (*typed, "arrival_us")])
        self._reader = columns.Reader(FIELDS, ["ts", "v"], [], chosen, schema)
        self._rows = pa.record_batch({"ts": pa.array(ahead_us, pa.int64())})
        for name, values in (("v", range(len(ahead_us))), ("now", [0] * len(ahead_us))):
            self._rows = self._rows.append_column(name, pa.array([*values], pa.int64()))

    def mapInArrow(self, write: Callable[..., Any], _: str) -> "PlannedRows":  # noqa: N802 (Spark's name)
        self._found = [*write(columns.read_batches([self._rows], self._reader))]
        return self

    def collect(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(**row) for each in self._found for row in each.to_pylist()]


def run_landing(
    folder: Path, batch: int, ahead_us: Sequence[int | None], guard_us: int | None
) -> Landing:
    """Land a micro-batch as the first one of a run; Spark has planned it."""
    made = object.__new__(Landing)
    for name in ("history", "checkpoint"):
        setattr(made, f"_{name}", locate(folder / name))
    vars(made).update(_schema=history_schema(), _values={"value": "v"}, _by_arrival=False)
    made._limits = Limits()
    made._last = None
    made._read = None
    if batch >= 0:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(landing, "in_order", lambda rows, by_arrival: rows)
            made._land(PlannedRows(ahead_us, guard_us), batch)  # type: ignore[arg-type]
    return made


@promised("deaths before a file", "deaths behind a file", "refusals", "listed rows", examples=100)
@example(before=[0], ahead_us=[5], starts=[(None, 7)])  # its file is there, its list is not
@given(before=AHEAD_US, ahead_us=AHEAD_US, starts=STARTS)
def test_a_row_lands_or_is_listed_once_whatever_guards_a_crash_separates(
    reached: Reached,
    tmp_path_factory: pytest.TempPathFactory,
    before: list[int | None],
    ahead_us: list[int | None],
    starts: list[tuple[int | None, int]],
) -> None:
    """A start may be refused; the guard of the run that has landed the micro-batch is not."""
    folder = tmp_path_factory.mktemp("landing")

    def start(guard_us: int | None) -> str:
        try:
            run_landing(folder, 1, ahead_us, guard_us)
        except InputProblem as refusal:
            return str(refusal)
        return ""

    plan_of(locate(folder / "checkpoint"), 0).write_bytes(b"0")
    run_landing(folder, 0, before, 0)
    files = len(files_of(locate(folder / "history")))
    plan_of(locate(folder / "checkpoint"), 1).write_bytes(b"1")
    for guard_us, writes in starts:
        disk = Disk(writes)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(storage, "_connect", lambda _system, disk=disk: disk)
            try:
                start(guard_us)
            except Killed:
                place = "behind" if len(files_of(locate(folder / "history"))) > files else "before"
                reached.add({f"deaths {place} a file": 1})
    refusals = [start(guard_us) for guard_us in GUARDS_US]
    assert "" in refusals
    assert all("finish it with the max_future of the run" in each for each in refusals if each)
    landed = [pq.read_table(file.path) for file in files_of(locate(folder / "history"))]
    listed = [pq.read_table(file) for file in (folder / "history" / "_rejected").glob("0*")]
    assert len(listed) <= 2, "a micro-batch has one list"
    values = [int(value) for each in landed for value in each.column("value").to_pylist()]
    values += [json.loads(row)["v"] for each in listed for row in each.column("row").to_pylist()]
    assert sorted(values) == sorted([*range(len(before)), *range(len(ahead_us))])
    reached.add({"refusals": sum(map(bool, refusals)), "listed rows": sum(map(len, listed))})


@pytest.mark.parametrize("landing_ones", [*product([False, True], repeat=3)])
def test_a_checkpoint_behind_what_was_landed_or_listed_is_refused(
    tmp_path: Path, landing_ones: Sequence[bool]
) -> None:
    checkpoint = locate(tmp_path / "checkpoint")
    for batch, lands in enumerate(landing_ones):
        plan_of(checkpoint, batch).write_bytes(str(batch).encode())
        run_landing(tmp_path, batch, [0 if lands else None], None)
    run_landing(tmp_path, -1, [], None)._require_last()
    plan_of(checkpoint, 0).remove()  # Spark keeps the plans of the last hundred
    run_landing(tmp_path, -1, [], None)._require_last()
    plan_of(checkpoint, 0).write_bytes(b"0")
    for batch in (2, 1, 0):
        plan_of(checkpoint, batch).remove()
        with pytest.raises(InputProblem, match=f"is at batch {batch}, .*/history at 2 already$"):
            run_landing(tmp_path, -1, [], None)._require_last()


@pytest.mark.parametrize(("file_h", "folder_h", "stays"), [(25, 25, 0), (25, 23, 1), (23, 25, 1)])
def test_files_that_a_task_has_left_are_removed_after_a_day(
    tmp_path: Path, file_h: int, folder_h: int, stays: bool
) -> None:
    file = tmp_path / "_scratch" / "a" / "b"
    file.parent.mkdir(parents=True)
    file.touch()
    for path, hours in ((file, file_h), (file.parent, folder_h)):
        os.utime(path, (time.time() - 3_600 * hours,) * 2)
    landing._remove_old(locate(tmp_path / "_scratch"))
    assert file.exists() == stays


def test_a_landing_misses_its_last_file(tmp_path: Path) -> None:
    for batch in range(2):
        plan_of(locate(tmp_path / "checkpoint"), batch).write_bytes(str(batch).encode())
        run_landing(tmp_path, batch, [0], None)
    files_of(locate(tmp_path / "history"))[-1].remove()
    with pytest.raises(InputProblem, match=r"its landing has written another 00000001\.parquet"):
        run_landing(tmp_path, -1, [], None)._require_last()

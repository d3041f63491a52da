"""A process that dies at any write, and a history that loses rows: no answer is wrong."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from model.vocabulary import SlackConfig
from model.vocabulary.settings import PlainData
from spark_impl.runtime import storage
from spark_impl.runtime.histories import files_of, history_schema, write_parquet
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import TableWriter
from spark_impl.slack.query import SLACK
from spark_impl.windows import processor
from spark_impl.windows.blocks import encode
from spark_impl.windows.correction import Corrections
from spark_impl.windows.history import History
from spark_impl.windows.processor import WindowProcessor
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
    """Die at the first write, at the second, and so on until all are done."""
    for writes in range(200):
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


def stream_part(source: Path, place: WindowStore) -> list[Tables]:
    """Return the stream tables of every micro-batch, and of a final flush."""
    operator = WindowProcessor(SLACK, CONFIG)
    tester = TwsTester(operator)
    found = []
    for file in [*files_of(locate(source)), None]:
        block = None if file is None else encode(ASKED, pq.read_table(file.path))
        operator.outputs.clear()
        tester.test(0, [Row(block=block)])
        found.append(processor.output_tables(place, ASKED, operator.outputs))
    return found


def finish(place: WindowStore, source: Path, batch: int, found: Tables) -> None:
    """Write a micro-batch as :class:`SlackQuery` does."""
    draft = Draft(place, TableWriter(place.root), batch)
    for name, rows in found.items():
        draft.write(name, rows)
    history_files = History(None, ASKED, locate(source), ())  # type: ignore[arg-type]  # no session is needed
    if draft.is_new:
        Corrections(ASKED, place, history_files).run(draft, found["progress"])
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
    assert interruptions > 100


# ---------------------------------------------------------- a history that has lost rows


Batch = list[tuple[int, float]]
LOST = "has lost rows: it holds 2 of at least 3 deliveries for the window .* of task 0, key 'a'$"


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

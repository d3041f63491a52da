"""A full disk or a dying process at any write: no reader sees half a micro-batch."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.tws_tester import TwsTester

from model.vocabulary import SlackConfig
from model.vocabulary.settings import PlainData
from spark_impl.runtime import storage
from spark_impl.runtime.histories import files_of, history_schema, write_parquet
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import TableWriter
from spark_impl.slack import QueryProblem, SlackQuery
from spark_impl.slack.query import SLACK
from spark_impl.windows import processor
from spark_impl.windows.blocks import encode
from spark_impl.windows.correction import Corrections
from spark_impl.windows.history import History
from spark_impl.windows.processor import WindowProcessor
from spark_impl.windows.store import WindowStore, all_tables, open_store
from tests.spark_impl.test_slack_query import FIRST, FIXED, LATE, answers, history

CONFIG = SlackConfig(size_us=10, slide_us=5, control="fixed", gamma_us=3)
ASKED = SLACK.settings(CONFIG)
BATCHES = (FIRST, LATE, [(4, 32.0), (40, 64.0)])
Tables = dict[str, pa.Table]
Visible = dict[str, list[dict[str, PlainData]]]


class Killed(BaseException):
    """The process is dead and cleans up nothing."""


class Disk(fs.LocalFileSystem):  # type: ignore[misc]  # pyarrow has no types
    """Local files on a disk that fails after some writes, for a dead process also removals."""

    def __init__(self, writes: int, failure: type[BaseException]) -> None:
        super().__init__(use_mmap=True)
        self._left = writes
        self._failure = failure
        self.is_dying = failure is Killed

    def create_dir(self, path: str, *, recursive: bool = True) -> None:
        self.count()
        super().create_dir(path, recursive=recursive)

    def open_output_stream(self, path: str) -> pa.NativeFile:
        try:
            self.count()
        except BaseException:
            Path(path).write_bytes(b"PAR1, and then no more")
            raise
        return super().open_output_stream(path)

    def move(self, src: str, dest: str) -> None:
        self.count()
        super().move(src, dest)

    def delete_file(self, path: str) -> None:
        self.count(is_removal=True)
        super().delete_file(path)

    def delete_dir(self, path: str) -> None:
        self.count(is_removal=True)
        super().delete_dir(path)

    def count(self, *, is_removal: bool = False) -> None:
        """Count a write, and fail if there were enough."""
        is_full = self._failure is InputProblem
        if is_removal and is_full:
            return
        if not self._left:
            raise OSError(errno.ENOSPC, "") if is_full else self._failure
        self._left -= 1


@contextmanager
def limited(
    monkeypatch: pytest.MonkeyPatch, writes: int, failure: type[BaseException]
) -> Iterator[None]:
    """Fail all writes from one on."""
    disk = Disk(writes, failure)
    with monkeypatch.context() as patch:
        patch.setattr(storage, "_connect", lambda _system: disk)
        patch.setattr(TableWriter, "commit", around(disk, TableWriter.commit))
        yield


def around(disk: Disk, commit: Callable[..., None]) -> Callable[..., None]:
    """Return a commit, which Delta writes at once, with a failure before it or behind it."""

    def run(writer: TableWriter, *given: Any) -> None:
        with storage.writing(Path("log")):
            disk.count()
        commit(writer, *given)
        if disk.is_dying:
            disk.count()

    return run


def attempts(
    monkeypatch: pytest.MonkeyPatch, failure: type[BaseException], what: Callable[[], object]
) -> Iterator[int]:
    """Try with a failure at the first write, at the second, and so on until nothing fails."""
    for writes in range(200):
        with limited(monkeypatch, writes, failure), suppress(Killed):
            try:
                what()
                return
            except InputProblem as problem:
                sentence = str(problem)
                assert sentence.endswith(" cannot be written: No space left on device")
        yield writes
    pytest.fail("it never ends")


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
    return {name: place.read_all(name).to_pylist() for name in all_tables(SLACK)}


@pytest.mark.parametrize("failure", [Killed, pytest.param(InputProblem, marks=pytest.mark.long)])
def test_no_reader_sees_half_a_batch_and_doing_it_again_repairs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
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
            for _ in attempts(monkeypatch, failure, lambda: finish(bumpy, source, batch, found)):  # noqa: B023  # it is called within the loop
                assert bumpy.committed() in (batch - 1, batch)
                assert visible(bumpy) == expected[bumpy.committed()]
                interruptions += 1
            assert visible(bumpy) == expected[batch]
    assert expected[batch]["revision"]
    assert expected[batch]["late"]
    assert interruptions > 100


def torn_first_plan(checkpoint: Path) -> None:
    """Leave scratch files, as Spark does when it fails while it writes its first plan."""
    plans = checkpoint / "offsets"
    plans.mkdir(parents=True)
    (plans / ".0.1d77352c.tmp").touch()
    (plans / "..0.1d77352c.tmp.crc").touch()


def test_first_plan_that_could_not_be_written(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("3,1.0\n12,2.0\n", encoding="utf-8")
    lines = spark.readStream.schema("ts string, v string").csv(str(tmp_path / "in"))
    landing = Landing(
        lines, tmp_path / "h", tmp_path / "l", event_time="ts", value="v", time_unit="us"
    )
    torn_first_plan(tmp_path / "l")
    landing.run_available()
    assert landing.counts() == (2, 0)
    query = SlackQuery(spark, FIXED, tmp_path / "h", tmp_path / "s")
    torn_first_plan(tmp_path / "s" / "_checkpoint")
    query.run_available()
    assert len(answers(spark, tmp_path / "s")) == 2


@pytest.mark.long
def test_files_that_grow_beyond_what_a_disk_takes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    if not hasattr(resource, "prlimit"):
        pytest.skip("limits of other processes can be set on Linux only")
    query = SlackQuery(spark, FIXED, history(tmp_path / "h", FIRST, LATE), tmp_path / "s")
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # it is of that kind here
    before = resource.prlimit(java, resource.RLIMIT_FSIZE)
    resource.prlimit(java, resource.RLIMIT_FSIZE, (50, before[1]))
    try:
        with pytest.raises(QueryProblem, match=r"Spark cannot write to.*: File too large$"):
            query.run_available()
    finally:
        resource.prlimit(java, resource.RLIMIT_FSIZE, before)
    assert answers(spark, tmp_path / "s") == {}
    full = "cannot be written.*: No space left on device$"
    with limited(monkeypatch, 0, InputProblem), pytest.raises(QueryProblem, match=full):
        query.run_available()
    assert answers(spark, tmp_path / "s") == {}
    query.flush()
    assert answers(spark, tmp_path / "s")[10] == (26.0, 3, 1, 1 / 3, "exact")


# ---------------------------------------------------------- a history that has lost rows


Batch = list[tuple[int, float]]
LOST = "has lost rows: it holds {} for the window .* of task 0, key 'a'$"


def run(
    folder: Path, *batches: Batch, redelivered: tuple[int, ...] = ()
) -> tuple[Path, list[Tables]]:
    """Return a history and its stream tables; the last file redelivers an earlier one."""
    source = history(folder / "h", *batches)
    for number in redelivered:
        history(source, batches[number], source_id=number)
    return source, stream_part(source, open_store(folder / "scratch", SLACK, CONFIG, ()))


@pytest.mark.parametrize(
    ("batches", "lost", "fails_at", "holds"),
    [
        # the first answer and its late tuple
        ([[(3, 1.0), (20, 2.0)], [(4, 4.0)]], 0, 2, "1 of at least 2 deliveries"),
        # what an earlier correction has found, and as many tuples again
        (
            [[(3, 1.0), (26, 2.0)], [(4, 4.0), (9, 1.0)], [(5, 4.0), (1, 4.0)]],
            1,
            2,
            "2 of at least 3 deliveries",
        ),
    ],
)
def test_correction_notices_that_the_rows_of_a_file_are_gone(
    tmp_path: Path, batches: list[Batch], lost: int, fails_at: int, holds: str
) -> None:
    source, found = run(tmp_path, *batches)
    for each in files_of(locate(source)):  # files of other programs, which are no chain
        write_parquet(pq.read_table(each.path).replace_schema_metadata(None), each)
    place = open_store(tmp_path / "s", SLACK, CONFIG, ())
    for batch in range(fails_at):
        finish(place, source, batch, found[batch])
    before = visible(place)
    file = files_of(locate(source))[lost]
    whole = file.read_bytes()
    write_parquet(history_schema().empty_table(), file)
    with pytest.raises(InputProblem, match=LOST.format(holds)):
        finish(place, source, fails_at, found[fails_at])
    assert place.committed() == fails_at - 1
    assert visible(place) == before
    file.write_bytes(whole)
    for batch in range(fails_at, len(found)):
        finish(place, source, batch, found[batch])
    windows = {row["start_us"]: row["n"] for row in place.read_all("revision").to_pylist()}
    assert windows[0] == sum(0 <= ts < 10 for rows in batches for ts, _ in rows)

"""A full disk or a dying process at any write, and incomplete files."""

import errno
import json
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import current_thread

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.tws_tester import TwsTester

from model.vocabulary import SlackConfig
from model.vocabulary.settings import PlainData
from spark_impl.runtime import storage
from spark_impl.runtime.failures import sentence_of
from spark_impl.runtime.histories import append, files_of, write_parquet
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
from spark_impl.windows.store import WindowStore, open_store
from tests.harness.background_kills import BACKGROUND
from tests.spark_impl.test_query import FIRST, FIXED, LATE, answers, history

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

    def create_dir(self, path: str, *, recursive: bool = True) -> None:
        self._count()
        super().create_dir(path, recursive=recursive)

    def open_output_stream(self, path: str) -> pa.NativeFile:
        try:
            self._count()
        except BaseException:
            Path(path).write_bytes(b"PAR1, and then no more")
            raise
        return super().open_output_stream(path)

    def move(self, src: str, dest: str) -> None:
        self._count()
        super().move(src, dest)

    def delete_file(self, path: str) -> None:
        self._count(is_removal=True)
        super().delete_file(path)

    def delete_dir(self, path: str) -> None:
        self._count(is_removal=True)
        super().delete_dir(path)

    def _count(self, *, is_removal: bool = False) -> None:
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
    """Fail all writes from one on, but not those of drivers in the background."""
    disk, connect = Disk(writes, failure), storage._connect

    def connected(system: str) -> fs.FileSystem:
        return connect(system) if current_thread().name.startswith(BACKGROUND) else disk

    with monkeypatch.context() as patch:
        patch.setattr(storage, "_connect", connected)
        yield


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


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            "pyarrow.lib.ArrowInvalid: Failed to parse string: 'abc'",
            "Failed to parse string: 'abc'",
        ),
        ("spark_impl.runtime.storage.InputProblem: h has lost rows: 1", "h has lost rows: 1"),
        ("ValueError: arrival number 3 comes after 4", "arrival number 3 comes after 4"),
        ("somewhere.inside._OwnError: not today", "not today"),
    ],
)
def test_error_of_a_worker_is_one_sentence(error: str, sentence: str) -> None:
    text = (
        "[STREAM_FAILED] Query [id = x] terminated with exception:"
        " An exception was thrown from the Python worker:\n"
        f'Traceback (most recent call last):\n  File "x", line 1\n{error}\n SQLSTATE: XXKST'
    )
    assert sentence_of(StreamingQueryException(text)) == sentence


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            "pyspark.errors.exceptions.captured.AnalysisException: [NOT_FOUND] There is no x.\n"
            "Search path: [a]. SQLSTATE: 42P01;",
            "[NOT_FOUND] There is no x.",
        ),
        ("NotToday: the table is locked", "NotToday: the table is locked"),
        ("RuntimeError", "RuntimeError"),
        (
            "py4j.protocol.Py4JJavaError: An error occurred while calling o153.parquet.\n"
            ": org.apache.spark.SparkException: Job aborted: Mkdirs failed\n\tat org.apache.x",
            "Job aborted: Mkdirs failed",
        ),
        ("ValueError: no column x", "no column x"),
    ],
)
def test_error_of_a_sink_is_one_sentence(error: str, sentence: str) -> None:
    text = (
        "[STREAM_FAILED] Query [id = x] terminated with exception:"
        " [FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in"
        " foreach batch sink. Reason: An exception was raised by the Python Proxy. Return Message:"
        f' Traceback (most recent call last):\n  File "x", line 1\n    sink()\n{error}\n'
        " SQLSTATE: 39000 SQLSTATE: XXKST"
    )
    assert sentence_of(StreamingQueryException(text)) == sentence


def test_an_error_of_java_without_a_text_is_a_sentence_all_the_same() -> None:
    text = (
        "[STREAM_FAILED] Query [id = x] terminated with exception:  SQLSTATE: XXKST\n"
        "=== Streaming Query ===\nIdentifier: [id = x]\n"
    )
    said = sentence_of(StreamingQueryException(text))
    assert said.startswith("Spark gives no reason")
    assert said.endswith("run the same query again")


def test_sink_that_ends_the_process_stops_the_query(spark: SparkSession, tmp_path: Path) -> None:
    """Java waits for an answer to its call, which no other than an ordinary error gives."""

    def leave(answers: DataFrame, batch: int) -> None:
        sys.exit(f"no more after {batch}")

    source = history(tmp_path / "h", FIRST)
    running = SlackQuery(spark, FIXED, source, tmp_path / "s", sink=leave).start()
    try:
        with pytest.raises(StreamingQueryException, match="SystemExit: no more after 0"):
            running.awaitTermination(60)
    finally:
        running.stop()


def stream_part(source: Path, place: WindowStore) -> list[Tables]:
    """Return the stream tables of every micro-batch, and of a final flush."""
    tester = TwsTester(WindowProcessor(SLACK, CONFIG))
    found = []
    for file in [*files_of(locate(source)), None]:
        block = None if file is None else encode(ASKED, pq.read_table(file.path))
        rows = [row.asDict() for row in tester.test(0, [Row(block=block)])]
        found.append(processor.output_tables(place, ASKED, rows))
    return found


def finish(place: WindowStore, source: Path, batch: int, found: Tables) -> None:
    """Write a micro-batch as :class:`SlackQuery` does."""
    writer = TableWriter(place.root)
    if not place.begin(writer.view, batch):
        return
    draft = Draft(place, writer.view, batch)
    for kind, rows in found.items():
        draft.write(kind, rows, f"task-{uuid.uuid4().hex}")
    history_files = History(None, ASKED, locate(source), ())  # type: ignore[arg-type]  # no session is needed
    Corrections(ASKED, place, history_files).run(draft, found["progress"])
    draft.commit(writer)


def visible(place: WindowStore) -> Visible:
    """Return the tables that a reader sees."""
    return {kind: sorted(place.read_all(kind).to_pylist(), key=repr) for kind in place.kinds()}


@pytest.mark.parametrize("failure", [InputProblem, Killed])
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
    assert interruptions > 50


def test_scratch_files_do_not_stay_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"x": [1]})
    for write in (
        lambda: append(tmp_path, rows),
        lambda: write_parquet(rows, locate(tmp_path / "x")),
    ):
        for _ in attempts(monkeypatch, InputProblem, write):
            assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert len(list(tmp_path.iterdir())) == 2


def test_tables_and_checkpoint_that_do_not_fit(tmp_path: Path) -> None:
    place = open_store(tmp_path / "s", SLACK, CONFIG, ())
    schema = place.schema("progress")
    rows = pa.table([pa.array([0]).cast(each.type) for each in schema], schema=schema)
    for batch in range(2):
        writer = TableWriter(place.root)
        assert place.begin(writer.view, batch)
        draft = Draft(place, writer.view, batch)
        draft.write("progress", rows, "task")
        draft.commit(writer)
    for batch in (0, 3):
        sentence = f"of .*/s is at micro-batch {batch}, its table is at 1;"
        with pytest.raises(InputProblem, match=sentence):
            place.begin(writer.look(), batch)
    assert (place.committed(), place.begin(writer.view, 1)) == (1, False)
    place.note_empty(2)
    assert place.begin(writer.view, 3)


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


@pytest.mark.fails_tasks
def test_file_that_is_still_being_written(spark: SparkSession, tmp_path: Path) -> None:
    source = history(tmp_path / "h", FIRST, LATE)
    whole = (source / "00000001.parquet").read_bytes()
    for name in ("_metadata.parquet", "_a=b.parquet", ".x.parquet"):
        (source / name).write_bytes(whole)  # none of these is there for anybody
    query = SlackQuery(spark, FIXED, source, tmp_path / "s")
    for length in (0, 4, len(whole) - 1):
        (source / "00000001.parquet").write_bytes(whole[:length])
        with pytest.raises(QueryProblem, match=r"h/00000001\.parquet .* not complete yet$"):
            query.flush()
    assert len(answers(spark, tmp_path / "s")) == 4
    (source / "00000001.parquet").write_bytes(whole)
    query.flush()
    assert answers(spark, tmp_path / "s")[10] == (26.0, 3, 1, 1 / 3, "exact")
    plan = (tmp_path / "s" / "_checkpoint" / "offsets" / "1").read_text(encoding="utf-8")
    assert json.loads(plan.splitlines()[2])["next"] == 2


def test_files_that_grow_beyond_what_a_disk_takes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    if not hasattr(resource, "prlimit"):
        pytest.skip("limits of other processes can be set on Linux only")
    query = SlackQuery(spark, FIXED, history(tmp_path / "h", FIRST, LATE), tmp_path / "s")
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # it is of that kind here
    # This process cannot be limited: it starts drivers meanwhile, which would be limited, too.
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
    assert len(answers(spark, tmp_path / "s")) == 4, "the driver writes nothing of its own at first"
    query.flush()
    assert answers(spark, tmp_path / "s")[10] == (26.0, 3, 1, 1 / 3, "exact")
